//! Which slices are set aside, since somebody was away in them or shortly before.

use super::sums::{Sums, BATCHING, TELLING};

/// A silence is an absence from so many slices on.
const STALL_SLICES: usize = 3;
/// And from one slice on where slices have at least so many frames and at most this share of them is silent: the host takes a
/// core for a moment now and then, and a device that sends in batches does so all the time.
const SHORT_FRAMES: f64 = 32.0;
const SHORT_SHARE: f64 = 0.05;
/// Slices after an absence that are set aside at least.
const AFTER: usize = 2;
/// Most slices after an absence, where the delay does not come back to its floor: in overload it never does.
const AFTER_MOST: usize = 200;

/// Slices in which nothing came out of a device that was loaded, though the tester was there: of an outside device nobody
/// knows whether it or the host was away. None where silence is frequent.
pub(super) fn stalls(sums: &Sums) -> Vec<bool> {
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
/// first slice does not count, either: queues and caches are empty.
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
    aside
}

/// How far above the floor a delay may be to count as at the floor, nanoseconds.
pub(super) fn margin(floor: u32) -> u32 {
    (floor / 4).max(3_000)
}
