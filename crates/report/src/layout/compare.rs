//! Generation against generation: two results of the same plan, with the improvement, as the two-VM document prints it.

use measure::{
    placement::same_place,
    result::{RunResult, SizeResult, Warning, WarningKind},
};
use serde_json::Value;
use units::{derived, Frames};

use super::{
    columns::{bold, Row, What},
    simulated, Sheet,
};
use crate::{
    figures::Shown,
    table::{Cell, Table},
    text,
};

/// Differences of plans named before the rest is only counted.
const NAMED: usize = 4;
/// Keys of a plan that do not change what a figure means: words, the device, and bounds on effort. Frame sizes are
/// compared by themselves.
const NO_MATTER: [&str; 12] = [
    "name",
    "description",
    "source",
    "frame_sizes",
    "dut",
    "needs",
    "test_timeout",
    "search.max_trials",
    "search.timeout",
    "trust.max_repeats",
    "trust.settle",
    "trust.selftest",
];

/// A row a frame size: the new figures, the old ones, and the improvement in percent.
///
/// # Errors
/// Why the two do not compare, a reason each: another plan, other frame sizes, simulated against measured, or not one
/// frame size whose figures stand and were found in the same placement of the cores.
pub fn compare(new: &RunResult, old: &RunResult) -> Result<Sheet, Vec<String>> {
    let reasons = differences(new, old);
    if !reasons.is_empty() {
        return Err(reasons);
    }
    let mut table = Table::default();
    table.right(0, "Packet", "size B");
    for which in ["new", "old"] {
        table.right(1, which, "PPS");
        table.right(1, which, "Mbps");
        table.right(1, which, "throughput %");
    }
    table.right(2, "Improvement", "%");
    let (mut notes, mut compared) = (Vec::new(), 0);
    for size in &new.sizes {
        let Some(was) = old.sizes.iter().find(|s| s.frame_size_bytes == size.frame_size_bytes) else { continue };
        let (now, then) = (Row::of(new, size), Row::of(old, was));
        let improvement = match improvement(&now, &then, size, was) {
            Ok(percent) => {
                compared += 1;
                for (which, row) in [("new", &now), ("old", &then)] {
                    if row.at_line_rate() {
                        notes.push(format!(
                            "{}: the {which} one is at line rate: its device may do more",
                            row.frames().with_unit("B")
                        ));
                    }
                }
                format!("{percent:.2}")
            }
            Err(why) => {
                notes.push(format!("{}: {why}", size.frame_size_bytes.with_unit("B")));
                "-".to_owned()
            }
        };
        let figures = [What::Pps, What::MbpsCut, What::Percent(2)];
        let cells = |row: &Row<'_>| figures.map(|w| Cell::from(row.text(w).unwrap_or_else(|| "-".to_owned())));
        let mut row = vec![size.frame_size_bytes.to_string().into()];
        row.extend(cells(&now));
        row.extend(cells(&then));
        row.push(bold(improvement));
        table.row(row);
    }
    if compared == 0 {
        return Err(notes);
    }
    notes.insert(0, format!("new: {}", of_whom(new)));
    notes.insert(1, format!("old: {}", of_whom(old)));
    Ok(Sheet { title: format!("{}: new against old", text::clean(&new.plan_name)), table, notes })
}

fn of_whom(result: &RunResult) -> String {
    let host = &result.host;
    let parts =
        [&result.dut, &host.hostname, &host.cpu_model, &result.started_at].map(|p| text::clip(&text::clean(p), 60));
    parts.into_iter().filter(|p| !p.is_empty()).collect::<Vec<_>>().join(", ")
}

/// The improvement of one frame size, percent, or why there is none.
fn improvement(now: &Row<'_>, then: &Row<'_>, new: &SizeResult, old: &SizeResult) -> Result<f64, String> {
    if now.at_line_rate() && then.at_line_rate() {
        return Err("both are at line rate: the links, not the devices, set the figures".to_owned());
    }
    let (now, then) = match (now.shown, then.shown) {
        (Shown::Exactly(now), Shown::Exactly(then)) => (now, then),
        (Shown::Nothing, _) => return Err("the new result has no figure that stands".to_owned()),
        (_, Shown::Nothing) => return Err("the old result has no figure that stands".to_owned()),
        _ => return Err("one of the figures is a lower bound: its highest load, not the device, set it".to_owned()),
    };
    if let (Some(a), Some(b)) = (new.placement, old.placement) {
        if !same_place(a.core_to_core_ns, b.core_to_core_ns) {
            return Err(format!(
                "found in different placements of the cores, {:.0} and {:.0} ns apart",
                a.core_to_core_ns, b.core_to_core_ns
            ));
        }
    }
    derived::gain_percent(now.get(), then.get()).ok_or_else(|| "the old figure is 0".to_owned())
}

/// Why two results do not compare as a whole; empty when they do.
fn differences(new: &RunResult, old: &RunResult) -> Vec<String> {
    let mut reasons = Vec::new();
    for (which, result) in [("new", new), ("old", old)] {
        if result.sizes.is_empty() {
            reasons.push(format!("the {which} result holds no throughput (linerate trial)"));
        }
    }
    match (simulated(new), simulated(old)) {
        (true, false) => reasons.push("the new one was simulated, the old one measured".to_owned()),
        (false, true) => reasons.push("the old one was simulated, the new one measured".to_owned()),
        _ => {}
    }
    if new.plan_name != old.plan_name {
        let name = |r: &RunResult| text::clip(&text::clean(&r.plan_name), 60);
        reasons.push(format!("plan {} against {}", name(new), name(old)));
    }
    let sizes = |r: &RunResult| {
        let mut sizes: Vec<_> = r.sizes.iter().map(|s| s.frame_size_bytes).collect();
        sizes.sort_unstable();
        sizes
    };
    let (now, then) = (sizes(new), sizes(old));
    if now != then {
        reasons.push(format!("frame sizes {} against {}", Frames::list(&now), Frames::list(&then)));
    }
    if new.link_bps != old.link_bps {
        let link = |r: &RunResult| r.link_bps.map_or_else(|| "an unknown speed".to_owned(), |l| format!("{l}bit/s"));
        reasons.push(format!("links of {} against {}", link(new), link(old)));
    }
    reasons.extend(plan_differences(&new.effective_plan, &old.effective_plan));
    reasons
}

/// Why a run of this plan, not yet made, would not compare with an old result: to be known before it is measured.
pub fn plan_against(name: &str, plan: &Value, simulated_run: bool, old: &RunResult) -> Vec<String> {
    let sizes = plan.get("frame_sizes").and_then(|s| serde_json::from_value::<Vec<Frames>>(s.clone()).ok());
    let mut planned: Vec<SizeResult> = old.sizes.clone();
    if let Some(sizes) = sizes {
        let of = |size| old.sizes.first().map(|s| SizeResult { frame_size_bytes: size, ..s.clone() });
        planned = sizes.into_iter().filter_map(of).collect();
    }
    let mut new = RunResult { plan_name: name.to_owned(), effective_plan: plan.clone(), sizes: planned, ..old.clone() };
    new.warnings.retain(|w| w.kind != WarningKind::Simulated);
    if simulated_run {
        new.warnings.push(Warning { kind: WarningKind::Simulated, text: String::new() });
    }
    differences(&new, old)
}

/// Keys of two effective plans that differ and matter: `traffic.flows 1 against 1000`.
fn plan_differences(new: &Value, old: &Value) -> Vec<String> {
    let mut found = Vec::new();
    differing("", new, old, &mut found);
    let more = found.len().saturating_sub(NAMED);
    found.truncate(NAMED);
    if more > 0 {
        found.push(format!("and {more} more keys of the plan"));
    }
    found
}

/// The present name of a value that a plan of an earlier version has.
fn present(path: &str, value: &Value) -> Value {
    match (path, value.as_str()) {
        ("trust.placements", Some("apart")) => "separate".into(),
        ("trust.placements", Some("together")) => "combined".into(),
        _ => value.clone(),
    }
}

fn differing(path: &str, new: &Value, old: &Value, found: &mut Vec<String>) {
    if new == old || *new == present(path, old) || NO_MATTER.contains(&path) {
        return;
    }
    if let (Value::Object(a), Value::Object(b)) = (new, old) {
        let mut keys: Vec<&String> = a.keys().chain(b.keys()).collect();
        keys.sort_unstable();
        keys.dedup();
        for key in keys {
            let at = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
            differing(&at, a.get(key).unwrap_or(&Value::Null), b.get(key).unwrap_or(&Value::Null), found);
        }
        return;
    }
    let shown = |v: &Value| text::clip(&text::clean(&v.to_string()), 40);
    found.push(format!("{} {} against {}", text::clip(&text::clean(path), 60), shown(new), shown(old)));
}
