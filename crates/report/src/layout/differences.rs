//! Why two results do not compare.

use measure::result::{RunResult, SizeResult, Warning, WarningKind};
use serde_json::Value;
use units::Frames;

use crate::{figures::simulated, text};

/// Differences of plans named before the rest is only counted.
const NAMED: usize = 4;
/// Keys of a plan that do not change what a figure means: words, the device, and bounds on effort. Frame sizes are
/// compared by themselves.
const NO_MATTER: [&str; 13] = [
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
    "trust.ready_timeout",
    "trust.settle",
    "trust.selftest",
];

/// Why two results do not compare as a whole; empty when they do.
pub(super) fn differences(new: &RunResult, old: &RunResult) -> Vec<String> {
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
    for (which, result) in [("new", new), ("old", old)] {
        if result.warnings.iter().any(|w| w.kind == WarningKind::Emulated) {
            reasons.push(format!("the {which} one is of emulated virtual machines, whose rates mean nothing"));
        }
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
