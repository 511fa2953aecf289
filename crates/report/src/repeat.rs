//! What several whole runs of a plan found: a row a frame size, with median and spread.

use std::collections::BTreeMap;

use measure::{
    repeat::{figure, Remark, RemarkKind, RepeatResult, RepeatedPlacement, RepeatedSize},
    result::{RunResult, SizeResult, WarningKind},
};

use crate::{
    document::Section,
    figures::{self, Shown},
    names, num, several, sheet,
    style::Paint,
    table::{Cell, Table},
    text, words,
};

/// Most notes below the table.
const MAX_NOTES: usize = 9;
/// Longest note.
const NOTE: usize = 190;
/// Most numbers of runs in a note.
const MAX_NUMBERS: usize = 6;
/// Of fewer pairs of intervals that overlap it is said that runs differ by more than the intervals say.
const OVERLAP: f64 = 0.8;

/// The table: median, range and spread of the figures, how many intervals overlap, and how many runs answered.
pub fn sheet(repeat: &RepeatResult) -> Section {
    let mut t = Table::default();
    t.right(0, "frame", "B");
    t.right(1, "median", "pps");
    t.right(1, "min", "pps");
    t.right(1, "max", "pps");
    t.right(1, "spread", "%");
    t.left(1, "overlap", "");
    t.left(1, "answers", "");
    t.left(1, "result", "");
    for size in &repeat.sizes {
        t.row(row(repeat, size));
    }
    let both_ways = repeat.runs.iter().any(|run| run.directions > 1);
    let ways = if both_ways { "both ways, each direction" } else { "one way" };
    let (made, took) = (repeat.runs.len(), num::duration(repeat.elapsed_s));
    let plural = if made == 1 { "" } else { "s" };
    let title = format!("Throughput of {made} run{plural} in {took}, {ways}");
    sheet::of(title, t, notes(repeat))
}

/// How all runs stand, below the table.
pub fn standing(repeat: &RepeatResult) -> Section {
    several::section(repeat.standing)
}

fn row(repeat: &RepeatResult, size: &RepeatedSize) -> Vec<Cell> {
    let found = size.figures.as_ref();
    let shown: Vec<Shown> = of_size(repeat, size).map(|(run, s)| Shown::of(s, run.link_bps)).collect();
    let at_least = shown.iter().filter(|s| matches!(s, Shown::AtLeast(_))).count();
    // The median of figures that are lower bounds is one, too.
    let least = if at_least > 0 && at_least * 2 >= size.answered { ">= " } else { "" };
    let (words, paint) = outcomes(repeat, size);
    vec![
        size.frame_size_bytes.to_string().into(),
        Cell::bold(found.map_or_else(|| "-".to_owned(), |f| format!("{least}{}", num::pps(f.median_fps)))),
        found.map(|f| num::pps(f.min_fps)).into(),
        found.map(|f| num::pps(f.max_fps)).into(),
        found.filter(|_| size.answered > 1).map(|f| format!("{:.2}", f.relative_stddev * 100.0)).into(),
        Some(of(size.overlapping, size.pairs)).filter(|_| size.pairs > 0).into(),
        of(size.answered, size.made).into(),
        Cell::painted(words, paint),
    ]
}

fn of(part: usize, whole: usize) -> String {
    format!("{} of {}", num::thousands(part as u64), num::thousands(whole as u64))
}

/// The answers at a frame size, with their runs.
fn of_size<'a>(
    repeat: &'a RepeatResult,
    size: &'a RepeatedSize,
) -> impl Iterator<Item = (&'a RunResult, &'a SizeResult)> {
    let at = |run: &'a RunResult| run.sizes.iter().find(|s| s.frame_size_bytes == size.frame_size_bytes);
    repeat.runs.iter().filter_map(move |run| Some((run, at(run)?)))
}

/// How the searches ended: empty when all found it, one word when all ended alike.
fn outcomes(repeat: &RepeatResult, size: &RepeatedSize) -> (String, Paint) {
    let mut counts: BTreeMap<&str, (usize, Paint)> = BTreeMap::new();
    for (run, answer) in of_size(repeat, size) {
        let word = words::outcome(answer, run.link_bps);
        counts.entry(word).or_insert((0, words::outcome_paint(answer, run.link_bps))).0 += 1;
    }
    let all: usize = counts.values().map(|(n, _)| n).sum();
    let mut others: Vec<_> = counts.into_iter().filter(|(word, _)| !word.is_empty()).collect();
    others.sort_by_key(|(_, (n, _))| std::cmp::Reverse(*n));
    match others.as_slice() {
        [] => (String::new(), Paint::Plain),
        [(word, (n, paint))] if *n == all => ((*word).to_owned(), *paint),
        several => {
            let each: Vec<_> = several.iter().map(|(word, (n, _))| format!("{n} {word}")).collect();
            (each.join(", "), Paint::Warn)
        }
    }
}

/// What the reader needs to judge the table by, the most important first.
fn notes(repeat: &RepeatResult) -> Vec<String> {
    let mut notes = Vec::new();
    let mut say = |note: String| {
        let note = text::clip(&text::clean(&note), NOTE);
        if !notes.contains(&note) {
            notes.push(note);
        }
    };
    if let Some(run) = repeat.runs.first() {
        say(format!("{}; {}", names::dut(run), repeat.plan_name));
    }
    if repeat.runs.len() < repeat.planned {
        say(format!("{} runs: the others were not made", of(repeat.runs.len(), repeat.planned)));
    }
    for size in &repeat.sizes {
        let frames = size.frame_size_bytes.with_unit("B");
        size.remarks.iter().for_each(|remark| say(format!("{frames}: {}", remark_text(remark))));
        if !size.placements.is_empty() {
            say(format!("{frames}: {}", placements_text(&size.placements)));
        }
        let (overlapping, pairs) = comparable_pairs(size);
        if pairs >= 3 && (overlapping as f64) < OVERLAP * pairs as f64 {
            let (pairs, place) =
                (of(overlapping, pairs), if size.placements.is_empty() { "" } else { " of a placement" });
            say(format!(
                "{frames}: {pairs} pairs of intervals{place} overlap: runs differ by more than the intervals say"
            ));
        }
    }
    if repeat.runs.iter().any(figures::simulated) {
        say("simulated: no frame was sent and no device measured; each run has a seed of its own".to_owned());
    }
    let warnings = repeat.runs.iter().flat_map(|run| &run.warnings);
    let once = [WarningKind::Simulated, WarningKind::Stopped, WarningKind::CpuShared];
    let shared = repeat.runs.iter().filter(|run| run.warnings.iter().any(|w| w.kind == WarningKind::CpuShared)).count();
    if shared > 0 {
        let of = of(shared, repeat.runs.len());
        say(format!(
            "{of} runs shared a CPU with another Linerate, which slows both: the JSON result names the processes"
        ));
    }
    warnings.filter(|w| !once.contains(&w.kind)).for_each(|w| say(w.text.clone()));
    if repeat.runs.iter().any(|run| !run.tests.is_empty()) {
        say("the other tests are in the JSON result, run by run".to_owned());
    }
    let more = notes.len().saturating_sub(MAX_NOTES);
    notes.truncate(MAX_NOTES);
    if more > 0 {
        notes.push(format!("and {more} more notes: the JSON result has all"));
    }
    notes.push("spread: standard deviation over the mean; overlap: pairs of runs whose intervals overlap".to_owned());
    notes
}

/// Pairs that overlap and all pairs, of runs whose cores were equally far apart.
fn comparable_pairs(size: &RepeatedSize) -> (usize, usize) {
    if size.placements.is_empty() {
        return (size.overlapping, size.pairs);
    }
    size.placements.iter().fold((0, 0), |(part, whole), group| (part + group.overlapping, whole + group.pairs))
}

/// What the runs found in each placement of the cores.
fn placements_text(groups: &[RepeatedPlacement]) -> String {
    let one = |group: &RepeatedPlacement| {
        let (low, high) = (format!("{:.0}", group.min_ns), format!("{:.0}", group.max_ns));
        let ns = if low == high { low } else { format!("{low} to {high}") };
        format!("{} at {ns} ns, median {}", group.runs.len(), group.figures.median_fps)
    };
    let each: Vec<String> = groups.iter().map(one).collect();
    format!("runs by the way from core to core: {}", each.join("; "))
}

/// What is clear about the figures, and where it usually comes from.
fn remark_text(remark: &Remark) -> String {
    let percent = |change: f64| format!("{:.1} %", change.abs() * 100.0);
    let (change, below) = (remark.change, remark.change < 0.0);
    match remark.kind {
        RemarkKind::FirstRun => format!(
            "the first run is {} {} the median: caches or tables may have been cold",
            percent(change),
            if below { "below" } else { "above" }
        ),
        RemarkKind::Outliers => format!(
            "run{} {}, far from the others, up to {} {} the median",
            if remark.runs.len() == 1 { "" } else { "s" },
            match remark.runs.as_slice() {
                [one] => one.to_string(),
                several => listed(several),
            },
            percent(change),
            if below { "below" } else { "above" }
        ),
        RemarkKind::Drift => format!(
            "the figures {} from run to run, by {} from the first to the last",
            if below { "fall" } else { "rise" },
            percent(change)
        ),
    }
}

fn listed(numbers: &[usize]) -> String {
    let first: Vec<String> = numbers.iter().take(MAX_NUMBERS).map(ToString::to_string).collect();
    let more = numbers.len().saturating_sub(MAX_NUMBERS);
    if more > 0 {
        format!("{} and {more} more", first.join(", "))
    } else {
        first.join(", ")
    }
}

/// The figures of one run in a line, for those who watch: `64 B 7.762 Mpps, 128 B -`.
pub fn line(result: &RunResult) -> String {
    let each = |size: &SizeResult| {
        let rate = figure(size).map_or_else(|| "-".to_owned(), |fps| fps.to_string());
        format!("{} {rate}", size.frame_size_bytes.with_unit("B"))
    };
    result.sizes.iter().map(each).collect::<Vec<_>>().join(", ")
}

/// A line a frame size: the figures of all runs summarised, under the schema's own names.
pub fn csv(repeat: &RepeatResult) -> String {
    let mut t = Table::default();
    t.data_columns(
        "frame_size_bytes,made,answered,device_limits,median_fps,min_fps,max_fps,mean_fps,mean_error_fps,\
         relative_stddev,pairs,overlapping",
    );
    for size in &repeat.sizes {
        let found = size.figures.as_ref();
        let fps = |of: Option<units::Fps>| of.map_or_else(String::new, |fps| fps.get().to_string());
        t.data_row(vec![
            size.frame_size_bytes.written(),
            size.made.to_string(),
            size.answered.to_string(),
            size.device_limits.to_string(),
            fps(found.map(|f| f.median_fps)),
            fps(found.map(|f| f.min_fps)),
            fps(found.map(|f| f.max_fps)),
            fps(found.map(|f| f.mean_fps)),
            fps(found.and_then(|f| f.mean_error_fps)),
            found.map_or_else(String::new, |f| f.relative_stddev.to_string()),
            size.pairs.to_string(),
            size.overlapping.to_string(),
        ]);
    }
    t.csv()
}
