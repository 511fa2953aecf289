//! Runs of one device, and what their intervals say.

use std::time::{Duration, Instant};

use serde_json::Value;

use crate::support::tester::Ended;

/// What a search goes by.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Rule {
    Slices,
    WholeTrial,
    Package,
}

impl Rule {
    /// # Panics
    /// If the name is none of theirs.
    pub fn parse(name: &str) -> Self {
        let all = [Self::Slices, Self::WholeTrial, Self::Package];
        all.into_iter().find(|rule| rule.name() == name).expect("rules are slices, whole-trial and package")
    }

    pub fn name(self) -> &'static str {
        match self {
            Self::Slices => "slices",
            Self::WholeTrial => "whole-trial",
            Self::Package => "package",
        }
    }
}

/// What one run ended with.
#[derive(Clone, Debug)]
pub struct Run {
    pub outcome: String,
    /// Ends of the interval, frames/s. The upper one is `None` where only the tester is the limit.
    pub interval: Option<(f64, Option<f64>)>,
    /// The way of a cache line between the cores, ns: the median of its trials.
    pub core_to_core_ns: Option<f64>,
    pub time: Duration,
}

impl Run {
    /// From the result of `linerate bench` at its first frame size.
    ///
    /// # Panics
    /// If there is no result.
    pub fn of(ended: &Ended, time: Duration) -> (Self, Value) {
        assert!(matches!(ended.code, 0 | 3), "exit code {}: {}", ended.code, ended.stderr);
        let result = ended.json();
        let size = &result["sizes"][0];
        let figure = |of: &Value| of.as_f64();
        let (lower, upper) = match &size["answer"] {
            Value::Null => (figure(&size["throughput_fps"]), figure(&size["upper_bound_fps"])),
            answer => (figure(&answer["lower_fps"]), figure(&answer["upper_fps"])),
        };
        let outcome = size["outcome"].as_str().unwrap_or_default().to_owned();
        let interval = match outcome.as_str() {
            "found" => lower.zip(upper).map(|(lower, upper)| (lower, Some(upper))),
            "tester_limited" => lower.map(|lower| (lower, None)),
            _ => None,
        };
        let core_to_core_ns = figure(&size["core_to_core"]["median_ns"]);
        (Self { outcome, interval, core_to_core_ns, time }, result)
    }

    /// Runs it, timed.
    pub fn timed(run: impl FnOnce() -> Ended) -> (Self, Value) {
        let begun = Instant::now();
        let ended = run();
        Self::of(&ended, begun.elapsed())
    }
}

/// The middle one; `None` of none.
pub fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_unstable_by(f64::total_cmp);
    values.get(values.len() / 2).copied()
}

fn seconds(runs: &[Run]) -> String {
    let times: Vec<f64> = runs.iter().map(|r| r.time.as_secs_f64()).collect();
    let most = times.iter().fold(0.0, |a: f64, b| a.max(*b));
    format!("{:.1} s, {most:.1} s", median(times).unwrap_or_default())
}

/// A device whose truth is known: `answers | hold the truth | median width | largest miss | median, longest`.
pub fn known(runs: &[(Run, f64)]) -> String {
    let share = |(run, truth): &(Run, f64)| {
        let (lower, upper) = run.interval?;
        Some((lower / truth, upper? / truth))
    };
    let ends: Vec<(f64, f64)> = runs.iter().filter_map(share).collect();
    let held = ends.iter().filter(|(lower, upper)| *lower <= 1.0 && 1.0 <= *upper).count();
    let miss = ends.iter().map(|(lower, upper)| (lower - 1.0).max(1.0 - upper)).fold(0.0, f64::max);
    let width = median(ends.iter().map(|(lower, upper)| upper - lower).collect());
    let width = width.map_or("-".to_owned(), |w| format!("{:.2} %", w * 100.0));
    let others: Vec<Run> = runs.iter().map(|(run, _)| run.clone()).collect();
    let cells =
        [format!("{} of {}", ends.len(), runs.len()), held.to_string(), width, format!("{:.2} %", miss * 100.0)];
    format!("{} | {}{}", cells.join(" | "), seconds(&others), outcomes(&others))
}

/// Runs of `--repeat` that a row of unknown truth is also read as.
const REPEAT: usize = 3;

/// A device whose truth nobody knows: `answers | median | range | median width | pairs that overlap | the same in one placement |
/// pairs of three runs whose ranges overlap | median, longest`. A width is a share of the middle of its interval.
pub fn unknown(runs: &[Run]) -> String {
    let answered: Vec<(&Run, (f64, Option<f64>))> = runs.iter().filter_map(|run| Some((run, run.interval?))).collect();
    let all: Vec<(f64, Option<f64>)> = answered.iter().map(|(_, interval)| *interval).collect();
    let overlap = |a: &(f64, Option<f64>), b: &(f64, Option<f64>)| {
        a.0 <= b.1.unwrap_or(f64::INFINITY) && b.0 <= a.1.unwrap_or(f64::INFINITY)
    };
    let same_place = |a: &Run, b: &Run| match (a.core_to_core_ns, b.core_to_core_ns) {
        (Some(a), Some(b)) => measure::placement::same_place(a, b),
        _ => false,
    };
    let pairs = || answered.iter().enumerate().flat_map(|(i, a)| answered.iter().skip(i + 1).map(move |b| (a, b)));
    let count = |wanted: &dyn Fn(&Run, &Run) -> bool| {
        let those = || pairs().filter(|(a, b)| wanted(a.0, b.0));
        format!("{} of {}", those().filter(|(a, b)| overlap(&a.1, &b.1)).count(), those().count())
    };
    // As `--repeat 3` has them: from the lowest end to the highest.
    let range = |runs: &[(f64, Option<f64>)]| {
        let upper = runs.iter().map(|a| a.1.unwrap_or(f64::INFINITY)).fold(0.0, f64::max);
        (runs.iter().map(|a| a.0).fold(f64::INFINITY, f64::min), Some(upper))
    };
    let repeats: Vec<_> = all.chunks_exact(REPEAT).map(range).collect();
    let of_repeats = || repeats.iter().enumerate().flat_map(|(i, a)| repeats.iter().skip(i + 1).map(move |b| (a, b)));
    let mpps = |fps: f64| format!("{:.3}", fps / 1e6);
    let least = all.iter().map(|a| a.0).fold(f64::INFINITY, f64::min);
    let most = all.iter().map(|a| a.1.unwrap_or(a.0)).fold(0.0, f64::max);
    let middle = median(all.iter().map(|a| a.1.map_or(a.0, |upper| (a.0 + upper) / 2.0)).collect());
    let widths = all.iter().filter_map(|a| a.1.map(|upper| 2.0 * (upper - a.0) / (upper + a.0)));
    let width = median(widths.collect());
    let cells = [
        format!("{} of {}", all.len(), runs.len()),
        middle.map_or("-".to_owned(), mpps),
        if all.is_empty() { "-".to_owned() } else { format!("{} to {}", mpps(least), mpps(most)) },
        width.map_or("-".to_owned(), |w| format!("{:.1} %", w * 100.0)),
        count(&|_, _| true),
        count(&same_place),
        format!("{} of {}", of_repeats().filter(|(a, b)| overlap(a, b)).count(), of_repeats().count()),
    ];
    format!("{} | {}{}", cells.join(" | "), seconds(runs), outcomes(runs))
}

/// The outcomes that are no interval with two ends, and how often.
fn outcomes(runs: &[Run]) -> String {
    let mut counts = std::collections::BTreeMap::new();
    for run in runs.iter().filter(|run| run.outcome != "found") {
        *counts.entry(run.outcome.as_str()).or_insert(0) += 1;
    }
    let words: Vec<String> = counts.into_iter().map(|(outcome, n)| format!("{n} {outcome}")).collect();
    if words.is_empty() {
        String::new()
    } else {
        format!(" ({})", words.join(", "))
    }
}
