//! How far several whole runs of one plan agree: median, spread, overlap of intervals, outliers, drift.
//!
//! Outliers are found as `hyperfine` finds them: by the distance from the median, over the median of such distances.

use units::{Fps, Frames};

pub use crate::schema::repeat::{
    Remark, RemarkKind, RepeatResult, RepeatedFigures, RepeatedPlacement, RepeatedSize, REPEAT_SCHEMA,
};
use crate::{
    answer::IntervalAnswer,
    placement::same_place,
    result::{Outcome, RunResult, SizeResult},
    search::{mean, Sample},
};

/// Fewest figures among which an outlier is told.
const FEWEST_FOR_OUTLIERS: usize = 5;
/// Fewest figures among which a drift is told.
const FEWEST_FOR_DRIFT: usize = 8;
/// An outlier is this many standard deviations from the median, told by the median distance (`hyperfine` takes the same).
const FAR: f64 = 10.0;
/// The standard deviation over the median distance, of normal figures.
const DEVIATION: f64 = 1.4826;
/// Mann and Kendall's statistic of a drift that comes about by chance once in a thousand.
const TREND: f64 = 3.29;
/// Least change that is worth a remark, as a share of the median.
const WORTH: f64 = 0.01;

/// The number of a run, from 1, and what it answered at a frame size.
type Answered<'a> = (usize, &'a SizeResult);

/// How far the runs agree, at each frame size in the order of its first sight.
pub fn sizes(runs: &[RunResult]) -> Vec<RepeatedSize> {
    let mut seen: Vec<Frames> = Vec::new();
    for size in runs.iter().flat_map(|run| &run.sizes) {
        if !seen.contains(&size.frame_size_bytes) {
            seen.push(size.frame_size_bytes);
        }
    }
    seen.into_iter().map(|frames| of_size(frames, runs)).collect()
}

fn of_size(frames: Frames, runs: &[RunResult]) -> RepeatedSize {
    let made: Vec<(usize, &SizeResult)> = (1..)
        .zip(runs)
        .filter_map(|(n, run)| Some((n, run.sizes.iter().find(|s| s.frame_size_bytes == frames)?)))
        .collect();
    let answered: Vec<Answered<'_>> = made.iter().copied().filter(|(_, size)| size.outcome.has_figure()).collect();
    let figures = figures(&answered);
    let (pairs, overlapping) = pairs(&intervals(&answered));
    RepeatedSize {
        frame_size_bytes: frames,
        made: made.len(),
        answered: figures.len(),
        device_limits: answered.iter().filter(|(_, size)| size.outcome == Outcome::Found).count(),
        figures: summary(&figures),
        pairs,
        overlapping,
        placements: placements(&answered),
        remarks: remarks(&figures),
    }
}

/// The figure of a run: the likeliest load of its interval, or else its throughput.
pub fn figure(size: &SizeResult) -> Option<Fps> {
    size.answer.and_then(|answer| answer.point_fps).or(size.throughput_fps).filter(|_| size.outcome.has_figure())
}

/// From the highest load shown to pass to the lowest shown to fail; without one, no bound there.
fn interval(answer: &IntervalAnswer) -> Option<(f64, f64)> {
    let (lower, upper) = (answer.lower_fps.map(Fps::get), answer.upper_fps.map(Fps::get));
    (lower.is_some() || upper.is_some()).then(|| (lower.unwrap_or(0.0), upper.unwrap_or(f64::INFINITY)))
}

/// The numbers of runs and their figures.
fn figures(answered: &[Answered<'_>]) -> Vec<(usize, f64)> {
    answered.iter().filter_map(|(n, size)| Some((*n, figure(size)?.get()))).collect()
}

/// Groups of runs whose cores were equally far apart. Empty of fewer than two groups: then placements explain nothing.
fn placements(answered: &[Answered<'_>]) -> Vec<RepeatedPlacement> {
    let mut ways: Vec<(f64, Answered<'_>)> =
        answered.iter().filter_map(|&(n, size)| Some((size.core_to_core?.median_ns, (n, size)))).collect();
    ways.sort_by(|a, b| a.0.total_cmp(&b.0));
    let groups: Vec<_> = ways.chunk_by(|a, b| same_place(a.0, b.0)).collect();
    if groups.len() < 2 {
        return Vec::new();
    }
    let of = |group: &[(f64, Answered<'_>)]| {
        let mut runs: Vec<Answered<'_>> = group.iter().map(|(_, run)| *run).collect();
        runs.sort_by_key(|(n, _)| *n);
        let (pairs, overlapping) = pairs(&intervals(&runs));
        Some(RepeatedPlacement {
            min_ns: group.first()?.0,
            max_ns: group.last()?.0,
            runs: runs.iter().map(|(n, _)| *n).collect(),
            figures: summary(&figures(&runs))?,
            pairs,
            overlapping,
        })
    };
    groups.into_iter().filter_map(of).collect()
}

fn intervals(answered: &[Answered<'_>]) -> Vec<(f64, f64)> {
    answered.iter().filter_map(|(_, size)| interval(size.answer.as_ref()?)).collect()
}

/// Number of pairs, and of those that overlap.
fn pairs(intervals: &[(f64, f64)]) -> (usize, usize) {
    let each = intervals.iter().enumerate().flat_map(|(i, a)| intervals.iter().skip(i + 1).map(move |b| (a, b)));
    each.fold((0, 0), |(all, over), (a, b)| (all + 1, over + usize::from(a.0 <= b.1 && b.0 <= a.1)))
}

fn median(values: impl Iterator<Item = f64>) -> Option<f64> {
    let mut all: Vec<f64> = values.collect();
    all.sort_by(f64::total_cmp);
    let (low, high) = (all.get(all.len().checked_sub(1)? / 2)?, all.get(all.len() / 2)?);
    Some((low + high) / 2.0)
}

fn summary(figures: &[(usize, f64)]) -> Option<RepeatedFigures> {
    let values = || figures.iter().map(|(_, fps)| *fps);
    let samples: Vec<Sample> = values().map(|value| Sample { value, error: 0.0 }).collect();
    let found = mean(&samples)?;
    let n = samples.len() as f64;
    let several = samples.len() > 1;
    let variance = values().map(|fps| (fps - found.mean).powi(2)).sum::<f64>() / (n - 1.0).max(1.0);
    Some(RepeatedFigures {
        median_fps: Fps::from_raw(median(values())?),
        min_fps: Fps::from_raw(values().min_by(f64::total_cmp)?),
        max_fps: Fps::from_raw(values().max_by(f64::total_cmp)?),
        mean_fps: Fps::from_raw(found.mean),
        mean_error_fps: several.then(|| Fps::from_raw(found.half)),
        relative_stddev: if found.mean > 0.0 { variance.sqrt() / found.mean } else { 0.0 },
    })
}

/// Outliers and a drift, where they are clear.
fn remarks(figures: &[(usize, f64)]) -> Vec<Remark> {
    let Some(middle) = median(figures.iter().map(|(_, fps)| *fps)).filter(|middle| *middle > 0.0) else {
        return Vec::new();
    };
    let far = outliers(figures, middle);
    let of = |kind, wanted: &dyn Fn(usize) -> bool| {
        let those: Vec<_> = far.iter().copied().filter(|(n, _)| wanted(*n)).collect();
        let change = those.iter().map(|(_, change)| *change).max_by(|a, b| a.abs().total_cmp(&b.abs()))?;
        Some(Remark { kind, runs: those.iter().map(|(n, _)| *n).collect(), change })
    };
    let is_far = |n: usize| far.iter().any(|(other, _)| *other == n);
    // One run far away must not look like a drift.
    let near: Vec<_> = figures.iter().copied().filter(|(n, _)| !is_far(*n)).collect();
    let drift = drift(&near, middle).map(|change| Remark { kind: RemarkKind::Drift, runs: Vec::new(), change });
    let first = figures.first().map_or(0, |(n, _)| *n);
    [of(RemarkKind::FirstRun, &|n| n == first), of(RemarkKind::Outliers, &|n| n != first), drift]
        .into_iter()
        .flatten()
        .collect()
}

/// Runs that are far from the rest, and how far as a share of the median.
fn outliers(figures: &[(usize, f64)], middle: f64) -> Vec<(usize, f64)> {
    if figures.len() < FEWEST_FOR_OUTLIERS {
        return Vec::new();
    }
    let distance = median(figures.iter().map(|(_, fps)| (fps - middle).abs())).unwrap_or_default();
    let bound = (FAR * DEVIATION * distance).max(WORTH * middle);
    let far = figures.iter().filter(|(_, fps)| (fps - middle).abs() > bound);
    far.map(|(n, fps)| (*n, (fps - middle) / middle)).collect()
}

/// The change from the first run to the last as a share of the median, by the median of the slopes between two (Theil and
/// Sen), where Mann and Kendall's test is sure that there is one.
fn drift(figures: &[(usize, f64)], middle: f64) -> Option<f64> {
    let n = figures.len();
    if n < FEWEST_FOR_DRIFT {
        return None;
    }
    let pairs = || figures.iter().enumerate().flat_map(|(i, a)| figures.iter().skip(i + 1).map(move |b| (a, b)));
    let score: f64 = pairs().map(|(a, b)| if a.1 == b.1 { 0.0 } else { (b.1 - a.1).signum() }).sum();
    let len = n as f64;
    let variance = len * (len - 1.0) * (2.0 * len + 5.0) / 18.0;
    let slope = median(pairs().map(|(a, b)| (b.1 - a.1) / (b.0 - a.0) as f64))?;
    let (first, last) = (figures.first()?.0, figures.last()?.0);
    let change = slope * (last - first) as f64 / middle;
    ((score.abs() - 1.0) / variance.sqrt() >= TREND && change.abs() >= WORTH).then_some(change)
}

#[cfg(test)]
mod tests;
