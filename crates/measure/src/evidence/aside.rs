//! Which slices are set aside, since somebody was away in them or shortly before.

use super::sums::{Sums, BATCHING, TELLING};

/// A silence is an absence from so many slices on.
const STALL_SLICES: usize = 3;
/// Slices after an absence that are set aside at least.
const AFTER: usize = 2;
/// Most slices after an absence, where the delay does not come back to its floor: in overload it never does.
const AFTER_MOST: usize = 200;

/// Slices in which nothing came out of a device that was loaded, though the tester was there: of an outside device nobody
/// knows whether it or the host was away. None where silence is frequent.
pub(super) fn stalls(sums: &Sums) -> Vec<bool> {
    let mut stalled = vec![false; sums.all.len()];
    let (mut run, mut loaded) = (0, 0);
    let mean = sums.all.iter().map(|s| s.offered()).sum::<u64>() as f64 / sums.all.len().max(1) as f64;
    // With few frames a slice without one says nothing.
    if mean < TELLING {
        return stalled;
    }
    for (i, sum) in sums.all.iter().enumerate() {
        let there = sum.tester_away_s == 0.0 && sum.offered() > 0;
        loaded += usize::from(there);
        if there && sum.arrived == 0 && i > 0 {
            run += 1;
        } else {
            run = 0;
        }
        if run >= STALL_SLICES {
            stalled.iter_mut().take(i + 1).skip(i + 1 - run).for_each(|s| *s = true);
        }
    }
    let share = stalled.iter().filter(|s| **s).count() as f64 / loaded.max(1) as f64;
    if share > BATCHING {
        stalled.fill(false);
    }
    stalled
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
        let recovered = match (sum.min_delay_ns, ceiling) {
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
