//! Which slices are set aside, since somebody was away in them or shortly before.

use super::sums::{Sum, Sums, BATCHING, GONE, TELLING};

/// A silence is an absence from so many slices on.
const STALL_SLICES: usize = 3;
/// And from one slice on where slices have at least so many frames and at most this share of them is silent: the host takes a
/// core for a moment now and then, and a device that sends in batches does so all the time.
const SHORT_FRAMES: f64 = 32.0;
const SHORT_SHARE: f64 = 0.05;
/// A pause loses frames in so many slices at most; so many before, and so many after, the queue is empty.
const PAUSE: usize = 3;
const BEFORE: usize = 5;
const EMPTIED: usize = 30;
/// Around a pause, slices have this share of the frames of a slice at least. While the queue empties, the tester was away for
/// this share of a slice at most: a queue that empties since less is sent says nothing.
const LOADED: f64 = 0.8;
const BRIEFLY: f64 = 0.1;
/// Slices after an absence that are set aside at least.
const AFTER: usize = 2;
/// Most slices after an absence, where the delay does not come back to its floor: in overload it never does.
const AFTER_MOST: usize = 200;

/// What is known of the time in which the device was away.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Watch {
    /// The timeline has its absences, as those of a built-in device.
    Known,
    /// Of an outside device only silence tells.
    Silence,
    /// The same, and the host of a virtual machine may stop it for less than a slice.
    Pauses,
}

/// Slices in which a device stood still that was loaded, though the tester was there: of an outside device nobody knows
/// whether it or the host was away. None where that is frequent.
pub(super) fn stalls(sums: &Sums, watch: Watch, floor: Option<u32>) -> Vec<bool> {
    match (watch, floor) {
        (Watch::Known, _) => vec![false; sums.all.len()],
        (Watch::Silence, _) | (Watch::Pauses, None) => silent(sums),
        (Watch::Pauses, Some(floor)) => {
            silent(sums).into_iter().zip(pauses(sums, floor)).map(|(silent, paused)| silent || paused).collect()
        }
    }
}

/// Slices that lost frames since the device stood still for less than a slice. Its queue was full then, and emptied under the
/// same load soon after: a device that can do this forwards more than the load, so that not the load was too high. None where
/// that is frequent.
fn pauses(sums: &Sums, floor: u32) -> Vec<bool> {
    let (len, ceiling) = (sums.all.len(), floor.saturating_add(margin(floor)));
    let mean = sums.all.iter().map(|s| s.offered()).sum::<u64>() as f64 / len.max(1) as f64;
    let mut paused = vec![false; len];
    if mean < SHORT_FRAMES {
        return paused;
    }
    let is_empty = |sum: &Sum| sum.min_delay_ns().is_some_and(|ns| ns <= ceiling);
    let is_full = |sum: &Sum| sum.min_delay_ns().is_some_and(|ns| ns > ceiling);
    let is_loaded = |sum: &Sum, away: f64| {
        sum.offered() as f64 >= LOADED * mean && sum.tester_any_s <= away * sums.slice_s && sum.device_away_s == 0.0
    };
    let mut at = 1;
    while at < len {
        let lossy = sums.all.iter().skip(at).take_while(|sum| sum.lost() > 0).count();
        let end = at + lossy;
        let empty = |i: &usize| sums.all.get(*i).is_some_and(is_empty);
        let before = (at.saturating_sub(BEFORE)..at).rev().find(empty);
        let emptied = (end..len.min(end + EMPTIED)).find(empty);
        if let Some((before, emptied)) = before.zip(emptied).filter(|_| (1..=PAUSE).contains(&lossy)) {
            let of = |from: usize, to: usize| sums.all.get(from..=to).unwrap_or_default();
            let calm = of(at, end).iter().any(is_full)
                && of(before, at - 1).iter().all(|sum| sum.lost() == 0)
                && of(before, end - 1).iter().all(|sum| is_loaded(sum, GONE))
                && of(end, emptied).iter().all(|sum| is_loaded(sum, BRIEFLY) && sum.lost() == 0);
            if calm {
                paused.iter_mut().take(end).skip(at).for_each(|slice| *slice = true);
            }
        }
        at = end + 1;
    }
    let share = paused.iter().filter(|slice| **slice).count() as f64 / len as f64;
    if share > SHORT_SHARE {
        paused.fill(false);
    }
    paused
}

/// Slices in which nothing came out of the device.
fn silent(sums: &Sums) -> Vec<bool> {
    let mean = sums.all.iter().map(|s| s.offered()).sum::<u64>() as f64 / sums.all.len().max(1) as f64;
    // With few frames a slice without one says nothing.
    if mean < TELLING {
        return vec![false; sums.all.len()];
    }
    let (short, share) = silences(sums, 1);
    if mean >= SHORT_FRAMES && share <= SHORT_SHARE {
        return short;
    }
    let (mut long, share) = silences(sums, STALL_SLICES);
    if share > BATCHING {
        long.fill(false);
    }
    long
}

/// The slices of silences that last for `least` slices, and their share of those in which the device was loaded.
fn silences(sums: &Sums, least: usize) -> (Vec<bool>, f64) {
    let mut silent = vec![false; sums.all.len()];
    let (mut run, mut loaded) = (0, 0);
    for (i, sum) in sums.all.iter().enumerate() {
        let there = sum.tester_away_s == 0.0 && sum.tester_gone_s == 0.0 && sum.offered() > 0;
        loaded += usize::from(there);
        run = if there && sum.arrived == 0 && i > 0 { run + 1 } else { 0 };
        if run >= least {
            silent.iter_mut().take(i + 1).skip(i + 1 - run).for_each(|s| *s = true);
        }
    }
    let share = silent.iter().filter(|s| **s).count() as f64 / loaded.max(1) as f64;
    (silent, share)
}

/// Slices that do not count: those in which somebody was away, and those after until the delay is back at its floor. The
/// first slice does not count, either: queues and caches are empty. Nor the last one if it lost frames: what a device holds
/// back until further frames push it out, as one that reorders does, stays there.
pub(super) fn slices(sums: &Sums, stalls: &[bool], floor: Option<u32>) -> Vec<bool> {
    let mut aside = vec![false; sums.all.len()];
    let ceiling = floor.map(|floor| floor.saturating_add(margin(floor)));
    // Slices since the last absence; none so far.
    let mut since: Option<usize> = Some(0);
    for (i, sum) in sums.all.iter().enumerate() {
        let away = sum.tester_gone_s > 0.0 || sum.device_away_s > 0.0 || stalls.get(i).copied().unwrap_or_default();
        if away {
            since = Some(0);
            // Frames that departed just before it wait for the device, or for the tester to take them in.
            if let Some(before) = i.checked_sub(1).and_then(|b| aside.get_mut(b)) {
                *before = true;
            }
        }
        if sum.missed {
            if let Some(this) = aside.get_mut(i) {
                *this = true;
            }
        }
        let Some(slices) = since else { continue };
        if let Some(this) = aside.get_mut(i) {
            *this = true;
        }
        let recovered = match (sum.min_delay_ns(), ceiling) {
            (Some(delay), Some(ceiling)) => delay <= ceiling,
            _ => false,
        };
        since = match slices + 1 {
            n if n > AFTER_MOST => None,
            n if n > AFTER && recovered => None,
            n => Some(n),
        };
    }
    if let (Some(last), Some(sum)) = (aside.last_mut(), sums.all.last()) {
        *last |= sum.lost() > 0;
    }
    aside
}

/// How far above the floor a delay may be to count as at the floor, nanoseconds.
pub(super) fn margin(floor: u32) -> u32 {
    (floor / 4).max(3_000)
}
