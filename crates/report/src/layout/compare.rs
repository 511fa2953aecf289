//! Generation against generation: two results of the same plan, with the improvement, as the two-VM document prints it.

use std::collections::BTreeSet;

use measure::{
    answer::IntervalAnswer,
    placement::same_place,
    result::{RunResult, SizeResult},
};
use units::{derived, Fps};

use super::{
    columns::{Row, What},
    differences::differences,
};
use crate::{
    document::Section,
    figures::Shown,
    names, num, sheet,
    table::{Cell, Table},
    text,
};

/// A row a frame size: the new figures, the old ones, and the improvement in percent.
///
/// # Errors
/// Why the two do not compare, a reason each: another plan, other frame sizes, simulated against measured, or not one
/// frame size whose figures stand and were found in the same placement of the cores.
pub fn compare(new: &RunResult, old: &RunResult) -> Result<Section, Vec<String>> {
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
    let with_noise = new.sizes.iter().any(|size| size.answer.is_some());
    if with_noise {
        table.left(2, "difference", "");
    }
    let (mut notes, mut compared, mut proposed, mut by_point) = (Vec::new(), 0, false, false);
    for size in &new.sizes {
        let Some(was) = old.sizes.iter().find(|s| s.frame_size_bytes == size.frame_size_bytes) else { continue };
        let (now, then) = (Row::of(new, size), Row::of(old, was));
        let improvement = improvement(&now, &then, size, was);
        by_point |= points(size.answer.as_ref(), was.answer.as_ref()).is_some() && improvement.is_ok();
        let compares = improvement.is_ok();
        let improvement = match improvement {
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
                num::percent(percent)
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
        row.push(Cell::bold(improvement));
        if with_noise {
            let noise = match compares {
                true => noise(size.answer.as_ref(), was.answer.as_ref()),
                false => String::new(),
            };
            if let Some(both) = both(size.answer.as_ref(), was.answer.as_ref()).filter(|_| noise.contains("within")) {
                proposed = true;
                notes.push(format!("{}: {both}", size.frame_size_bytes.with_unit("B")));
            }
            row.push(noise.into());
        }
        table.row(row);
    }
    if compared == 0 {
        return Err(notes);
    }
    if proposed {
        notes.push(
            "within noise: the intervals overlap. linerate bench --repeat N resolves smaller differences".to_owned(),
        );
    }
    if by_point {
        notes.push("improvement: of the likeliest loads; PPS are the lower ends of the intervals".to_owned());
    }
    notes.insert(0, format!("new: {}", of_whom(new)));
    notes.insert(1, format!("old: {}", of_whom(old)));
    notes.extend(host_settings(new, old));
    Ok(sheet::of(format!("{}: new against old", text::clean(&new.plan_name)), table, notes))
}

/// Most runs that are proposed.
const MOST_RUNS: f64 = 100.0;
/// What is said of a difference that is more than noise.
pub(super) const BEYOND: &str = "beyond noise";
/// A difference of less, as a share, is not worth a run: clocks and bursts are not known better.
pub(super) const NOTHING: f64 = 1e-3;

/// Whether the intervals of two answers overlap, and how many runs of each would then decide, if the figures stay as they
/// are: an interval shrinks with the root of the number of runs. Empty where an answer has no interval.
fn noise(new: Option<&IntervalAnswer>, old: Option<&IntervalAnswer>) -> String {
    let ends = |answer: &IntervalAnswer| Some((answer.lower_fps?.get(), answer.upper_fps?.get()));
    let (Some(new), Some(old)) = (new.and_then(ends), old.and_then(ends)) else { return String::new() };
    if new.0 > old.1 || old.0 > new.1 {
        return BEYOND.to_owned();
    }
    let apart = ((new.0 + new.1) - (old.0 + old.1)).abs() / 2.0;
    if apart < NOTHING * new.0 {
        return "within noise".to_owned();
    }
    let runs = (((new.1 - new.0) + (old.1 - old.0)) / 2.0 / apart).powi(2).ceil();
    match runs <= MOST_RUNS {
        true => format!("within noise; {runs:.0} runs of each would decide"),
        false => "within noise".to_owned(),
    }
}

/// Findings about the host that only one of the two runs had: what else is different.
fn host_settings(new: &RunResult, old: &RunResult) -> Vec<String> {
    let ids = |result: &RunResult| {
        let findings = result.host.findings.as_ref()?;
        Some(findings.iter().map(|finding| text::clean(&finding.id)).collect::<BTreeSet<_>>())
    };
    let (Some(now), Some(then)) = (ids(new), ids(old)) else { return Vec::new() };
    let only = |which: &str, these: &BTreeSet<String>, others: &BTreeSet<String>| {
        let only: Vec<&str> = these.difference(others).map(String::as_str).collect();
        (!only.is_empty())
            .then(|| format!("settings of the host found wrong in the {which} run only: {}", only.join(", ")))
    };
    [only("new", &now, &then), only("old", &then, &now)].into_iter().flatten().collect()
}

fn of_whom(result: &RunResult) -> String {
    let host = &result.host;
    let dut = names::dut(result);
    let parts = [&dut, &host.hostname, &host.cpu_model, &result.started_at].map(|p| text::clip(&text::clean(p), 60));
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
    if let (Some(a), Some(b)) = (way(new), way(old)) {
        if let Some(why) = other_places(a, b) {
            return Err(why);
        }
    }
    let (now, then) = points(new.answer.as_ref(), old.answer.as_ref()).unwrap_or((now.get(), then.get()));
    derived::gain_percent(now, then).ok_or_else(|| "the old figure is 0".to_owned())
}

/// The likeliest loads of two answers with intervals: of wide ones the lower ends say little of a difference.
fn points(new: Option<&IntervalAnswer>, old: Option<&IntervalAnswer>) -> Option<(f64, f64)> {
    let point = |answer: &IntervalAnswer| answer.relative_width().and(answer.point_fps).map(Fps::get);
    new.and_then(point).zip(old.and_then(point))
}

/// The two intervals in words.
fn both(new: Option<&IntervalAnswer>, old: Option<&IntervalAnswer>) -> Option<String> {
    let ends = |of: &IntervalAnswer| Some(format!("{} to {}", num::pps(of.lower_fps?), num::pps(of.upper_fps?)));
    Some(format!("{} against {} pps", new.and_then(ends)?, old.and_then(ends)?))
}

/// The way from core to core behind an answer, ns: that of its placement, or of a search of all placements the median.
fn way(size: &SizeResult) -> Option<f64> {
    let placed = size.placement.map(|placement| placement.core_to_core_ns);
    placed.or(size.core_to_core.map(|seen| seen.median_ns))
}

/// Why figures found with these ways from core to core, ns, do not compare.
pub(super) fn other_places(new_ns: f64, old_ns: f64) -> Option<String> {
    let text = || format!("found in different placements of the cores, {new_ns:.0} and {old_ns:.0} ns apart");
    (!same_place(new_ns, old_ns)).then(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(lower: f64, upper: f64) -> IntervalAnswer {
        let [lower_fps, upper_fps] = [lower, upper].map(|fps| Some(Fps::from_raw(fps)));
        IntervalAnswer {
            lower_fps,
            upper_fps,
            point_fps: None,
            standing: None,
            confidence: Some(0.95),
            clean_seconds: 1.0,
            passes: 3,
            aside_share: 0.0,
            as_measured: None,
        }
    }

    #[test]
    fn intervals_that_overlap_are_noise() {
        let of = |a: (f64, f64), b: (f64, f64)| noise(Some(&answer(a.0, a.1)), Some(&answer(b.0, b.1)));
        assert_eq!(of((10.0, 11.0), (12.0, 13.0)), "beyond noise");
        assert_eq!(of((12.0, 13.0), (10.0, 11.0)), "beyond noise");
        // Two wide, one apart: four runs halve each.
        assert_eq!(of((10.0, 12.0), (11.0, 13.0)), "within noise; 4 runs of each would decide");
        assert_eq!(of((10.0, 12.0), (10.0, 12.0)), "within noise");
        assert_eq!(noise(None, Some(&answer(1.0, 2.0))), "");
    }

    #[test]
    fn wide_answers_are_compared_by_their_likeliest_loads() {
        let of = |lower: f64, upper: f64, point: Option<f64>| IntervalAnswer {
            point_fps: point.map(Fps::from_raw),
            ..answer(lower, upper)
        };
        let (wide, other) = (of(0.05e6, 6.8e6, Some(5.4e6)), of(4.8e6, 7.9e6, Some(6.7e6)));
        assert_eq!(points(Some(&wide), Some(&other)), Some((5.4e6, 6.7e6)));
        assert_eq!(points(Some(&wide), Some(&of(4.8e6, 7.9e6, None))), None);
        let words = both(Some(&wide), Some(&other)).unwrap();
        assert_eq!(words, "50,000 to 6,800,000 against 4,800,000 to 7,900,000 pps");
        assert_eq!((points(Some(&wide), None), both(None, Some(&other))), (None, None));
    }
}
