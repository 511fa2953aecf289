//! What all documents about latency have.

use host::audit::{Finding, Verdict};
use latency::{
    disturbed::Interference,
    result::{Precision, Stretches, Times},
    steps::Step,
    tally::Counts,
};

use crate::{
    num,
    style::Paint,
    table::{Cell, Table},
    text,
};

/// Lines of a picture at most.
const LINES: usize = 16;
/// Characters of the longest bar.
const BAR: f64 = 40.0;
/// The share of samples that the lines of a picture hold one by one; the others are one line.
const SHOWN: f64 = 0.995;

/// Rules that are named of those that are open.
const NAMED: usize = 3;

/// What was open on the host, the worst first; `None` if nothing was.
pub(super) fn findings(open: Option<&Vec<Finding>>) -> Option<String> {
    let open = open.filter(|open| !open.is_empty())?;
    let mut ids: Vec<(&str, bool)> = open.iter().map(|f| (f.id.as_str(), f.verdict == Verdict::Bad)).collect();
    ids.dedup();
    Some(format!("settings: {}", text::open_rules(ids.into_iter(), NAMED).0))
}

/// Times in ns, whole.
pub(super) fn ns(ns: Option<u64>) -> String {
    ns.map_or_else(|| "-".to_owned(), num::thousands)
}

/// Times in us.
pub(super) fn us(ns: Option<u64>) -> String {
    ns.map_or_else(|| "-".to_owned(), |ns| num::us(ns as f64))
}

/// The name of a percentile.
pub(super) fn percentile(percent: f64) -> String {
    match percent {
        0.0 => "least".to_owned(),
        100.0 => "greatest".to_owned(),
        percent => num::trim(percent, 3),
    }
}

/// What became of messages or frames, behind its first word.
pub(super) fn counts(what: &str, counts: &Counts, came: &str, refused: u64) -> String {
    let mut parts = vec![
        format!("{} sent", num::thousands(counts.sent)),
        format!("{} {came}", num::thousands(counts.replied)),
        format!("{} lost", num::thousands(counts.lost)),
    ];
    let more = [
        (refused, "of them not taken"),
        (counts.late, "too late"),
        (counts.duplicates, "twice"),
        (counts.reordered, "out of order"),
        (counts.foreign, "foreign"),
        (counts.damaged, "damaged"),
    ];
    parts.extend(more.iter().filter(|(n, _)| *n > 0).map(|(n, what)| format!("{} {what}", num::thousands(*n))));
    format!("{what}: {}", parts.join(", "))
}

/// How much of it nobody disturbed; `None` if the kernel does not say.
pub(super) fn undisturbed(all: &Times, undisturbed: Option<&Times>, stretches: Stretches) -> Option<String> {
    let undisturbed = undisturbed?;
    Some(format!(
        "undisturbed: {} of {} stretches of 5 ms or more, {} of {} samples; nothing is left out of the other columns",
        num::thousands(stretches.all - stretches.disturbed.min(stretches.all)),
        num::thousands(stretches.all),
        num::thousands(undisturbed.samples),
        num::thousands(all.samples)
    ))
}

/// What the kernel counted meanwhile; `None` if it does not say.
pub(super) fn interference(counted: &Interference) -> Option<String> {
    let parts: Vec<String> = [
        (counted.involuntary_switches, "switched out against its will"),
        (counted.interrupts, "interrupts"),
        (counted.throttles, "throttled"),
    ]
    .into_iter()
    .filter_map(|(count, what)| Some(format!("{} {what}", num::thousands(count?))))
    .chain(counted.steal_ns.map(|ns| format!("{} ms given to others by the hypervisor", num::trim(ns as f64 / 1e6, 0))))
    .collect();
    (!parts.is_empty()).then(|| format!("the measuring thread meanwhile: {}", parts.join(", ")))
}

/// A precision that was asked for and not reached.
pub(super) fn missed(precision: &Precision) -> Option<String> {
    let reached = precision.reached.map_or_else(
        || "too few samples say how well median and 99th percentile are known".to_owned(),
        |reached| format!("median and 99th percentile are known to {} %", num::trim(reached * 100.0, 2)),
    );
    let asked = num::trim(precision.asked * 100.0, 2);
    precision.is_missed().then(|| format!("{reached}; {asked} % was asked: measure for longer (--duration)"))
}

/// A bar for a share of the longest one.
pub(super) fn bar(share: f64) -> Cell {
    Cell::painted("█".repeat((share.clamp(0.0, 1.0) * BAR).round() as usize), Paint::Bar)
}

/// How times are distributed, as bars: a line a step.
pub(super) fn picture(steps: &[Step]) -> Table {
    let mut table = Table::default();
    table.right(0, "from", "ns");
    table.right(0, "to", "ns");
    table.right(0, "share", "%");
    table.left(0, "", "");
    let total: u64 = steps.iter().map(|step| step.samples).sum();
    if total == 0 {
        return table;
    }
    let mut below = 0;
    let shown = steps.iter().take_while(|step| {
        let more = (below as f64) < SHOWN * total as f64;
        below += step.samples;
        more
    });
    let shown = shown.count();
    let at_once = shown.div_ceil(LINES).max(1);
    let mut lines: Vec<(f64, Option<f64>, u64)> = Vec::new();
    for few in steps[..shown].chunks(at_once) {
        if let (Some(first), Some(last)) = (few.first(), few.last()) {
            lines.push((first.from_ns, Some(last.to_ns), few.iter().map(|step| step.samples).sum()));
        }
    }
    if let Some(rest) = steps.get(shown..).filter(|rest| !rest.is_empty()) {
        lines.push((rest[0].from_ns, None, rest.iter().map(|step| step.samples).sum()));
    }
    let most = lines.iter().map(|line| line.2).max().unwrap_or(1).max(1);
    let time = |ns: f64| num::thousands(ns.round() as u64);
    for (from, to, samples) in lines {
        table.row(vec![
            time(from).into(),
            to.map_or_else(|| "more".to_owned(), time).into(),
            format!("{:.3}", samples as f64 / total as f64 * 100.0).into(),
            bar(samples as f64 / most as f64),
        ]);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::style::Style;

    #[test]
    fn a_picture_has_few_lines_and_all_samples() {
        let step = |n: i32, samples| Step {
            from_ns: 2f64.powf(f64::from(n) / 4.0),
            to_ns: 2f64.powf(f64::from(n + 1) / 4.0),
            samples,
        };
        let narrow: Vec<Step> = vec![step(28, 10), step(29, 700), step(30, 280), step(31, 9), step(32, 0), step(33, 1)];
        insta::assert_snapshot!(picture(&narrow).text(&Style::PIPE));
        let wide: Vec<Step> = (0..80).map(|n| step(n, 10)).collect();
        assert!(picture(&wide).rows() <= LINES + 1);
        assert!(picture(&[]).is_empty() && picture(&[step(5, 0)]).is_empty());
    }

    #[test]
    fn what_did_not_happen_is_not_said() {
        let quiet = Counts { sent: 2000, replied: 2000, ..Counts::default() };
        assert_eq!(counts("frames", &quiet, "received", 0), "frames: 2,000 sent, 2,000 received, 0 lost");
        let all = Counts { sent: 9, replied: 3, lost: 6, late: 1, duplicates: 2, reordered: 3, foreign: 4, damaged: 5 };
        insta::assert_snapshot!(counts("messages", &all, "replied", 1), @"messages: 9 sent, 3 replied, 6 lost, 1 of them not taken, 1 too late, 2 twice, 3 out of order, 4 foreign, 5 damaged");
    }
}
