//! What every document derives from the counts, once.

use std::collections::BTreeMap;

use measure::{
    result::{Outcome, RunResult, SizeResult, WarningKind},
    trial::{DirectionCounts, LatencySummary, Purpose, Rule, TrialRecord},
};
use units::{rate, Fps, Frames, LinkSpeed, Ratio};

/// The throughput of one frame size, as documents may show it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Shown {
    /// The throughput.
    Exactly(Fps),
    /// The DUT does at least this.
    AtLeast(Fps),
    /// The outcome does not allow a figure.
    Nothing,
}

impl Shown {
    /// Only an outcome that stands for a figure shows one: the one place that decides it.
    pub(crate) fn of(size: &SizeResult, link: Option<LinkSpeed>) -> Self {
        match (size.outcome, size.throughput_fps) {
            (Outcome::Found, Some(fps)) => Self::Exactly(fps),
            (Outcome::AtMaximum, Some(fps)) if at_line_rate(size, link) => Self::Exactly(fps),
            (Outcome::AtMaximum | Outcome::TesterLimited, Some(fps)) => Self::AtLeast(fps),
            _ => Self::Nothing,
        }
    }

    pub(crate) fn rate(self) -> Option<Fps> {
        match self {
            Self::Exactly(fps) | Self::AtLeast(fps) => Some(fps),
            Self::Nothing => None,
        }
    }
}

/// The ends of the interval behind a throughput that is shown exactly: highest load shown to pass, lowest shown to fail.
pub(crate) fn ends(size: &SizeResult, link: Option<LinkSpeed>) -> Option<(Fps, Fps)> {
    let answer = size.answer.filter(|_| matches!(Shown::of(size, link), Shown::Exactly(_)))?;
    Some((answer.lower_fps?, answer.upper_fps?)).filter(|(lower, upper)| lower <= upper)
}

/// Above this part of the highest rate the end of an interval does not stretch a picture's scale.
const STRETCH: f64 = 1.5;

/// The highest of rates and of the upper ends of their intervals, for the scale of a picture: the end of a very wide interval must
/// not press every bar flat.
pub(crate) fn highest(rates: impl Iterator<Item = f64>, uppers: impl Iterator<Item = f64>) -> f64 {
    let best = rates.fold(0.0, f64::max);
    uppers.filter(|upper| *upper <= best * STRETCH).fold(best, f64::max)
}

/// Whether the highest load that met the goal is the line rate within 0.1 %. The links then set the figure.
pub(crate) fn at_line_rate(size: &SizeResult, link: Option<LinkSpeed>) -> bool {
    match (size.outcome, size.throughput_fps, link) {
        (Outcome::AtMaximum, Some(fps), Some(link)) => rate::line_percent(fps, size.frame_size_bytes, link) >= 99.9,
        _ => false,
    }
}

/// The rates of one load at one frame size. All but `per_direction` are summed over the directions.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Rates {
    pub(crate) per_direction: Fps,
    pub(crate) sum: Fps,
    pub(crate) l2_bps: f64,
    pub(crate) l1_bps: f64,
    /// Of the line rate: the same for one direction of one link and for both of both.
    pub(crate) line_percent: Option<f64>,
}

impl Rates {
    pub(crate) fn new(per_direction: Fps, frames: Frames, directions: u32, link: Option<LinkSpeed>) -> Self {
        let sum = Fps::from_raw(per_direction.get() * f64::from(directions.max(1)));
        Self {
            per_direction,
            sum,
            l2_bps: rate::l2_bps(sum, frames),
            l1_bps: rate::l1_bps(sum, frames),
            line_percent: link.map(|l| rate::line_percent(per_direction, frames, l)),
        }
    }
}

/// Loss over all directions: unsent frames count as lost. `None` when nothing was asked for.
pub(crate) fn loss(directions: &[DirectionCounts]) -> Option<Ratio> {
    let intended: u64 = directions.iter().map(|d| d.intended).sum();
    let lost: u64 = directions.iter().map(|d| d.lost.saturating_add(d.refused)).sum();
    (intended > 0).then(|| Ratio::of(lost, intended))
}

/// Loss at the throughput of a size: by slices, that of the slices that count.
pub(crate) fn loss_at(result: &RunResult, size: &SizeResult) -> Option<Ratio> {
    let trial = result.trials.iter().find(|t| Some(t.number) == size.at_throughput_trial && t.spec.by_slices);
    match trial.and_then(|trial| trial.evidence.as_ref()).filter(|e| e.offered > 0) {
        Some(e) => Some(Ratio::of(e.lost, e.offered)),
        None => loss(&size.at_throughput),
    }
}

/// Smallest, mean and largest delay over all directions, ns.
pub(crate) fn latency(directions: &[DirectionCounts]) -> Option<(u64, f64, u64)> {
    let all: Vec<&LatencySummary> = directions.iter().filter_map(|d| d.latency.as_ref()).collect();
    let frames: u64 = all.iter().map(|l| l.frames).sum();
    let min = all.iter().map(|l| l.min_ns).min()?;
    let max = all.iter().map(|l| l.max_ns).max()?;
    let sum: f64 = all.iter().map(|l| l.avg_ns * l.frames as f64).sum();
    Some((min, if frames > 0 { sum / frames as f64 } else { 0.0 }, max))
}

/// The sizes whose figures may be shown.
pub(crate) fn shown(result: &RunResult) -> impl Iterator<Item = &SizeResult> {
    result.sizes.iter().filter(|s| Shown::of(s, result.link_bps) != Shown::Nothing)
}

/// The trial that `linerate trial` was asked for: its last try.
pub(crate) fn single(result: &RunResult) -> Option<&TrialRecord> {
    result.trials.iter().rev().find(|t| t.spec.purpose == Purpose::Single).or(result.trials.last())
}

/// Whether the device was simulated.
pub(crate) fn simulated(result: &RunResult) -> bool {
    result.warnings.iter().any(|w| w.kind == WarningKind::Simulated)
}

/// How many trials were run and why some were discarded.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct TrialTally {
    pub(crate) run: usize,
    pub(crate) invalid: usize,
    /// Trials that broke each rule; one trial may break several.
    pub(crate) by_rule: BTreeMap<Rule, usize>,
}

impl TrialTally {
    pub(crate) fn of<'a>(trials: impl IntoIterator<Item = &'a TrialRecord>) -> Self {
        let mut tally = Self::default();
        for trial in trials {
            tally.run += 1;
            tally.invalid += usize::from(!trial.valid());
            let mut rules: Vec<Rule> = trial.violations.iter().map(|v| v.rule).collect();
            rules.sort_unstable();
            rules.dedup();
            for rule in rules {
                *tally.by_rule.entry(rule).or_default() += 1;
            }
        }
        tally
    }
}

/// Items that are the same for many frame sizes, with the sizes they hold for, in order of first sight.
pub(crate) fn by_sizes<'a>(
    result: &'a RunResult,
    items: impl Fn(&'a SizeResult) -> Vec<String>,
) -> Vec<(String, Vec<Frames>)> {
    let mut seen: Vec<(String, Vec<Frames>)> = vec![];
    for size in &result.sizes {
        for item in items(size) {
            match seen.iter_mut().find(|(text, _)| *text == item) {
                Some((_, sizes)) => sizes.push(size.frame_size_bytes),
                None => seen.push((item, vec![size.frame_size_bytes])),
            }
        }
    }
    seen
}

/// `64 B`, `64, 128 B`, or nothing when that is all of them.
pub(crate) fn sizes_text(sizes: &[Frames], all: usize) -> String {
    if sizes.len() == all {
        return String::new();
    }
    Frames::list(sizes)
}
