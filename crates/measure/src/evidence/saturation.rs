//! The rate of a device from the stretches in which it was kept busy.
//!
//! Frames are counted by departure. At both ends of a stretch the queue of the device is full (frames before and after it
//! were lost), so that what departed in between and came through is what the device forwarded in that time, plus or minus
//! one burst. Where frames wait longer at the end of a stretch than at its begin, it was forwarded in that much more time: a
//! device may lose frames at its door while its queue still fills.

use units::Fps;

use super::sums::{waits_for_tester, Sum, Sums};
use crate::schema::evidence::Saturation;

/// Slices without loss that may stand within a stretch while nobody is away: a device loses whole bursts.
const BRIDGE: usize = 3;
/// Slices at each end that do not count: the queue was full in a part of them only.
const TRIM: usize = 2;
/// Slices of a part, whose rates tell the error.
const PART: usize = 10;
/// Runs that tell the error where they are shorter than a part, at least, and slices of each.
const RUNS: usize = 4;
const RUN: usize = 3;
/// How well the rate of one run is known at most, as a share.
const OF_ONE: f64 = 0.01;
/// Frames that the ends of a stretch are uncertain by: the frames of this time, within these bounds.
const BURST_S: f64 = 10e-6;
const BURST: std::ops::RangeInclusive<f64> = 2.0..=64.0;
/// Of a device that forwards less than this share of the load a batch holds so many times the frames of its time at most.
const FAR: f64 = 0.1;
const BATCH: f64 = 2.0;
/// Time in which slices that are even tell a rate, seconds: shorter ones are a moment of the device.
const LONG_S: f64 = 0.05;
/// A device that sends frame by frame has as many in each slice, give or take one: so many slices show it.
const EVEN: usize = 12;

/// A wait counts as longer where it is, by this many times the usual jump between slices and by this share of a slice.
const LONGER: f64 = 5.0;
const LONGER_SLICES: f64 = 0.5;

/// The rate in all stretches; `None` without a stretch. `away`: slices that do not count, with those beside them.
pub(super) fn of(sums: &Sums, away: &[bool]) -> Option<Saturation> {
    let stretches = stretches(sums);
    let usual = usual(sums);
    let is_away = |i: usize| away.get(i).copied().unwrap_or_default();
    // Slices before each in which the device was away.
    let mut gone = vec![0usize];
    gone.extend((0..sums.all.len()).scan(0, |gone, i| {
        *gone += usize::from(is_away(i) || sums.all.get(i).is_some_and(|s| s.device_away_s > 0.0));
        Some(*gone)
    }));
    // What departed so long before an absence of the tester came back in it, and some of it was lost in the tester's queue.
    let wait = (sums.queue_s / sums.slice_s).round() as usize;
    let is_deaf = |i: usize| sums.all.get(i + wait).is_some_and(|s| s.tester_deaf_s > 0.0);
    let rested = rested(sums, away);
    let is_missed = |i: usize| sums.all.get(i).is_some_and(|s| s.missed);
    let skipped = |i: usize| is_away(i) || is_deaf(i) || is_missed(i) || rested.get(i).copied().unwrap_or_default();
    // Beside an absence a slice holds a part of it.
    let counts = |i: &usize| !(skipped(*i) || skipped(i + 1) || i.checked_sub(1).is_some_and(skipped));
    let (mut frames, mut slices, mut number, mut seconds) = (0, 0, 0, 0.0);
    let (mut parts, mut runs, mut counts_of) = (Vec::new(), Vec::new(), Vec::new());
    for stretch in &stretches {
        let counted: Vec<usize> = stretch.clone().filter(counts).collect();
        let before = slices;
        // Over an absence the wait changes for other reasons.
        for run in counted.chunk_by(|a, b| a + 1 == *b) {
            let Some(longer) = longer(sums, run, &gone, usual) else { continue };
            slices += run.len();
            let (frames_before, seconds_before) = (frames, seconds);
            let fills = longer.iter().sum::<f64>().abs() > usual;
            for (part, longer) in run.chunks(PART).zip(longer.chunks(PART)) {
                let waits: f64 = if fills { longer.iter().sum() } else { 0.0 };
                counts_of.extend(part.iter().filter_map(|i| sums.all.get(*i)).map(|s| s.received as f64));
                let received: u64 = part.iter().filter_map(|i| sums.all.get(*i)).map(|s| s.received).sum();
                let time = part.len() as f64 * sums.slice_s + waits;
                frames += received;
                seconds += time;
                if part.len() == PART {
                    parts.push(received as f64 / sums.directions / time);
                }
            }
            if run.len() >= RUN {
                runs.push((frames - frames_before) as f64 / sums.directions / (seconds - seconds_before));
            }
        }
        number += u32::from(slices > before);
    }
    if slices == 0 || seconds <= 0.0 {
        return None;
    }
    let fps = Fps::from_raw(frames as f64 / sums.directions / seconds);
    let burst = (fps.get() * BURST_S).clamp(*BURST.start(), *BURST.end());
    let burst = if burst > *BURST.start() { burst } else { even(&counts_of).unwrap_or(burst) };
    // A batch more or less at each end, of as many frames as it may hold. Far above the rate that is not what was offered.
    let offered = sums.rate(sums.all.iter().map(|s| s.offered()).sum(), sums.all.len());
    let batch_fps = if fps.get() < offered.get() * FAR { fps.get() * BATCH } else { offered.get() };
    let burst = burst.max(batch_fps * sums.batch_s * sums.directions);
    let ends = burst * f64::from(number).sqrt() / seconds / sums.directions;
    let error = |rates: &[f64]| spread(rates).map(|s| (s / (rates.len() as f64).sqrt()).hypot(ends));
    // One part tells no spread: then it is the ends, and the rate of a stretch so short is not known better than 1 %. Several
    // such stretches tell it better.
    let of_runs =
        |n: usize| (n >= RUNS).then(|| error(&runs)).flatten().map(|e| e.max(fps.get() * OF_ONE / (n as f64).sqrt()));
    // Of a device that sends frame by frame for long enough each slice tells it.
    let of_slices = || {
        let frames = spread(&counts_of).filter(|_| seconds >= LONG_S && even(&counts_of).is_some())?;
        Some((frames / (counts_of.len() as f64).sqrt() / sums.slice_s / sums.directions).hypot(ends))
    };
    let known = error(&parts).or_else(of_slices).or_else(|| of_runs(runs.len()));
    let error = known.unwrap_or(ends.max(fps.get() * OF_ONE));
    Some(Saturation { fps, error_fps: Fps::from_raw(error), seconds, stretches: number })
}

/// The frames that a slow device sends at once, of slices with these counts: at least one. `None` where they differ by more
/// than the least [`BURST`], or are few.
fn even(counts: &[f64]) -> Option<f64> {
    // A slice holds a burst more or less: a standard deviation of half of it at most.
    let burst = 2.0 * spread(counts).filter(|_| counts.len() >= EVEN)?;
    (burst < *BURST.start()).then_some(burst.max(1.0))
}

/// Slices behind an absence of the device until it loses frames again, that one included: it has saved up tokens meanwhile, say,
/// and forwards more for a while than it can sustain.
fn rested(sums: &Sums, away: &[bool]) -> Vec<bool> {
    let mut resting = false;
    let one = |(i, sum): (usize, &Sum)| {
        if away.get(i).copied().unwrap_or_default() {
            resting = true;
            return false;
        }
        let this = resting;
        resting &= sum.lost() == 0;
        this
    };
    sums.all.iter().enumerate().map(one).collect()
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

/// How much longer frames wait behind each slice of a run than at its begin, seconds. What changed over slices without a
/// frame stands at the last slice before them. `None` where they wait longer, or less, and nobody knows whether that is the
/// queue: then the run tells no rate.
fn longer(sums: &Sums, run: &[usize], gone: &[usize], usual: f64) -> Option<Vec<f64>> {
    let own = |i: usize, ns: &u32| !waits_for_tester(&sums.all, sums.slice_s, i, *ns);
    // Not where the device was away meanwhile either: frames wait longer then, in a queue of the same length.
    let there = |from: usize, wait: f64| {
        let to = (from + (wait / sums.slice_s) as usize + 1).min(gone.len().saturating_sub(1));
        gone.get(from) == gone.get(to)
    };
    let wait = |i: usize| {
        let ns = sums.all.get(i)?.min_delay_ns().filter(|ns| own(i, ns))?;
        Some(f64::from(ns) * 1e-9).filter(|wait| there(i, *wait))
    };
    let raw: Vec<u32> = run.iter().filter_map(|i| sums.all.get(*i)?.min_delay_ns()).collect();
    let changed = raw.first().zip(raw.last()).map_or(0.0, |(first, last)| f64::from(first.abs_diff(*last)) * 1e-9);
    let known = run.iter().filter(|i| wait(**i).is_some()).count();
    if changed > usual && 2 * known < run.len() {
        return None;
    }
    let mut steps = vec![0.0; run.len()];
    // Place in the run, and wait.
    let mut known = run.iter().enumerate().filter_map(|(at, &i)| Some((at, wait(i)?))).peekable();
    let mut slope = 0.0;
    while let Some((at, from)) = known.next() {
        let step = match known.peek() {
            Some((next, to)) => {
                slope = (to - from) / (next - at) as f64;
                to - from
            }
            // Behind the last slice it goes on as it did before.
            None => slope,
        };
        if let Some(here) = steps.get_mut(at) {
            *here = step;
        }
    }
    // A slice by itself: those beside it hold a part of an absence.
    if let ([step], [i]) = (&mut steps[..], run) {
        let beside = i.checked_sub(1).and_then(wait).zip(wait(i + 1));
        *step = beside.map_or(0.0, |(before, behind)| (behind - before) / 2.0);
    }
    Some(steps)
}

/// How much longer a wait has to be to count as longer, seconds: beyond what waits jump by from slice to slice. A steady growth
/// does not count as a jump.
fn usual(sums: &Sums) -> f64 {
    let waits: Vec<f64> = sums
        .all
        .iter()
        .filter(|s| s.lost() > 0)
        .filter_map(|s| s.min_delay_ns())
        .map(|ns| f64::from(ns) * 1e-9)
        .collect();
    let jump = |w: &[f64]| Some((w.first()? - 2.0 * w.get(1)? + w.get(2)?).abs());
    let mut jumps: Vec<f64> = waits.windows(3).filter_map(jump).collect();
    jumps.sort_unstable_by(f64::total_cmp);
    let usual = jumps.get(jumps.len() / 2).copied().unwrap_or(0.0);
    (LONGER * usual).max(LONGER_SLICES * sums.slice_s)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_that_sends_frame_by_frame_is_told_from_one_in_bursts() {
        let of = |counts: &[f64]| even(&counts.repeat(4));
        assert_eq!(of(&[30.0; 6]), Some(1.0));
        // A standard deviation of 0.72 frames, and of 1.04.
        let some = of(&[30.0, 31.0, 30.0, 31.0, 32.0, 31.0]).unwrap();
        assert!((1.4..1.5).contains(&some), "{some}");
        assert_eq!(of(&[30.0, 32.0, 30.0, 32.0]), None);
        assert_eq!(of(&[30.0, 24.0, 30.0, 36.0]), None);
        assert_eq!(even(&[30.0; EVEN - 1]), None, "too few to tell");
        assert_eq!(even(&[30.0; EVEN]), Some(1.0));
    }
}
