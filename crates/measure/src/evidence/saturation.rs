//! The rate of a device from the stretches in which it was kept busy.
//!
//! Frames are counted by departure. At both ends of a stretch the queue of the device is full (frames before and after it
//! were lost), so that what departed in between and came through is what the device forwarded in that time, plus or minus
//! one burst.

use units::Fps;

use super::sums::Sums;
use crate::schema::evidence::Saturation;

/// Slices without loss that may stand within a stretch while nobody is away: a device loses whole bursts.
const BRIDGE: usize = 3;
/// Slices at each end that do not count: the queue was full in a part of them only.
const TRIM: usize = 2;
/// Slices of a part, whose rates tell the error.
const PART: usize = 10;
/// Frames that the ends of a stretch are uncertain by: the frames of this time, within these bounds.
const BURST_S: f64 = 10e-6;
const BURST: std::ops::RangeInclusive<f64> = 2.0..=64.0;

/// The rate in all stretches; `None` without a stretch. `away`: slices that do not count, with those beside them.
pub(super) fn of(sums: &Sums, away: &[bool]) -> Option<Saturation> {
    let stretches = stretches(sums);
    let is_away = |i: usize| away.get(i).copied().unwrap_or_default();
    // Beside an absence a slice holds a part of it.
    let counts = |i: &usize| !(is_away(*i) || is_away(i + 1) || i.checked_sub(1).is_some_and(is_away));
    let (mut frames, mut slices, mut number) = (0, 0, 0);
    let mut parts: Vec<f64> = Vec::new();
    for stretch in &stretches {
        let counted: Vec<usize> = stretch.clone().filter(counts).collect();
        if counted.is_empty() {
            continue;
        }
        number += 1;
        slices += counted.len();
        for part in counted.chunks(PART) {
            let received: u64 = part.iter().filter_map(|i| sums.all.get(*i)).map(|s| s.received).sum();
            frames += received;
            if part.len() == PART {
                parts.push(sums.rate(received, PART).get());
            }
        }
    }
    if slices == 0 {
        return None;
    }
    let seconds = slices as f64 * sums.slice_s;
    let fps = sums.rate(frames, slices);
    let burst = (fps.get() * BURST_S).clamp(*BURST.start(), *BURST.end());
    // A batch more or less at each end, of as many frames as it may hold.
    let offered = sums.rate(sums.all.iter().map(|s| s.offered()).sum(), sums.all.len());
    let burst = burst.max(offered.get() * sums.batch_s * sums.directions);
    let ends = burst * f64::from(number).sqrt() / seconds / sums.directions;
    let error = spread(&parts).map_or(f64::INFINITY, |s| s / (parts.len() as f64).sqrt());
    // One part tells no spread: then it is the ends, and the rate of a stretch so short is not known better than 1 %.
    let error = if error.is_finite() { error.hypot(ends) } else { ends.max(fps.get() * 0.01) };
    Some(Saturation { fps, error_fps: Fps::from_raw(error), seconds, stretches: number })
}

/// The most frames a direction that came through beyond this rate in a run of slices without loss: see
/// [`crate::schema::evidence::SliceEvidence::absorbed`].
pub(super) fn absorbed(sums: &Sums, rate: Fps) -> u64 {
    let of_a_slice = rate.get() * sums.directions * sums.slice_s;
    let (mut run, mut most) = (0.0f64, 0.0f64);
    for sum in &sums.all {
        run = if sum.lost() == 0 { (run + sum.received as f64 - of_a_slice).max(0.0) } else { 0.0 };
        most = most.max(run);
    }
    (most / sums.directions).round() as u64
}

/// Standard deviation; `None` of fewer than two values.
fn spread(values: &[f64]) -> Option<f64> {
    let n = values.len() as f64;
    if n < 2.0 {
        return None;
    }
    let mean = values.iter().sum::<f64>() / n;
    Some((values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / (n - 1.0)).sqrt())
}

/// Runs of slices under pressure while the tester was there, without their ends.
fn stretches(sums: &Sums) -> Vec<std::ops::Range<usize>> {
    let mut all = Vec::new();
    // The first and the last pressed slice of a run.
    let mut run: Option<(usize, usize)> = None;
    let mut close = |run: &mut Option<(usize, usize)>| {
        if let Some((first, last)) = run.take().filter(|(first, last)| last + 1 > first + 2 * TRIM) {
            all.push(first + TRIM..last + 1 - TRIM);
        }
    };
    for (i, sum) in sums.all.iter().enumerate() {
        let there = sum.tester_away_s == 0.0;
        if !there {
            close(&mut run);
        } else if sum.lost() > 0 {
            match &mut run {
                Some((_, last)) if i - *last <= BRIDGE + 1 => *last = i,
                _ => {
                    close(&mut run);
                    run = Some((i, i));
                }
            }
        }
    }
    close(&mut run);
    all
}
