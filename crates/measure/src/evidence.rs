//! What the slices of a trial show: which of them count, the rate of a device that was kept busy, and how delays move.
//!
//! A device has memory (a bucket, a buffer, a ring): what it does in a slice depends on the time before. So the slices after
//! an absence are set aside until the delay is back at its floor, and a rate is taken from stretches alone in which the
//! device was under pressure from end to end. Pathload (Jain and Dovrolis, PAM 2002) looks at trends of delay in the same
//! way.

mod aside;
#[cfg(test)]
pub(crate) mod model;
mod saturation;
mod sums;
mod trend;

pub use aside::Watch;
use sums::{Sum, Sums, FRAMES, GONE};

pub use crate::schema::evidence::{DelayTrend, Saturation, Settled, SliceEvidence};
#[cfg(doc)]
use crate::schema::timeline::Cut;
use crate::schema::timeline::{Timeline, FRAMES_A_SLICE};

/// Delays of so little are none, nanoseconds: the checker counts those below zero as zero.
const NO_DELAY_NS: u32 = 1;

/// What the slices of a trial show; `None` of a trial without slices, of a device that sends in batches too long to tell by
/// them, and of clocks that cannot be believed. `usual`: slices that make one of usual length, see [`Cut`].
///
/// Slices have a usual length of 0.1 to 1 ms. Where somebody is away so often that no time between two absences is long enough
/// to see delays grow in it, what counts for the load comes from shorter slices, and the rates from those of usual length.
pub fn of(timeline: &Timeline, duration_s: f64, watch: Watch, usual: usize) -> Option<SliceEvidence> {
    // Slices of a long trial are longer than those, and what a queue of the tester holds is not.
    let slice_s = (timeline.slice_s * usual.max(1) as f64).min(timeline.usual_slice_s(duration_s));
    let gone_s = GONE * slice_s;
    let read = |timeline: &Timeline, frames| {
        Sums::of(timeline, duration_s, frames, gone_s).and_then(|sums| read(&sums, watch))
    };
    let longer = read(&timeline.in_longer(usual), FRAMES)?;
    if usual <= 1 || longer.delay.is_some() {
        return Some(longer);
    }
    let shorter = read(timeline, FRAMES_A_SLICE).filter(|e| e.delay.is_some() && e.clean_s > longer.clean_s);
    let SliceEvidence { queue_s, absorbed, as_measured, undisturbed, .. } = longer;
    Some(shorter.map_or(longer, |e| SliceEvidence { queue_s, absorbed, as_measured, undisturbed, ..e }))
}

fn read(sums: &Sums, watch: Watch) -> Option<SliceEvidence> {
    let floor = trend::floor(sums);
    // No frame arrives as it departs: the clocks of both ends have stepped apart, and no delay can be believed.
    if floor.is_some_and(|ns| ns <= NO_DELAY_NS) {
        return None;
    }
    let stalls = aside::stalls(sums, watch, floor);
    let stalled = || sums.all.iter().zip(&stalls).filter(|(_, stalled)| **stalled).map(|(sum, _)| sum);
    let aside = aside::slices(sums, &stalls, floor);
    let counted = || sums.all.iter().zip(&aside).filter(|(_, aside)| !**aside).map(|(sum, _)| sum);
    let slices = counted().count();
    let offered = counted().map(Sum::offered).sum();
    let away: Vec<bool> = sums.all.iter().zip(&stalls).map(|(s, stalled)| s.device_away_s > 0.0 || *stalled).collect();
    let nobody = vec![false; sums.all.len()];
    let as_measured = saturation::of(sums, &nobody);
    let undisturbed = saturation::of(sums, &away);
    Some(SliceEvidence {
        slice_s: sums.slice_s,
        clean_s: slices as f64 * sums.slice_s,
        aside_s: (sums.all.len() - slices) as f64 * sums.slice_s,
        offered_fps: sums.rate(offered, slices),
        offered,
        lost: counted().map(Sum::lost).sum(),
        stalled_s: stalled().count() as f64 * sums.slice_s,
        stalled_lost: stalled().map(Sum::lost).sum(),
        queue_s: sums.queue_s,
        absorbed: undisturbed.map_or(0, |busy| saturation::absorbed(sums, busy.fps)),
        as_measured,
        undisturbed,
        settled: settled(sums, &aside),
        delay: floor.and_then(|floor| trend::of(sums, &aside, floor)),
    })
}

/// What was offered after the first quarter; `None` where frames were lost, or no slice counts.
fn settled(sums: &Sums, aside: &[bool]) -> Option<Settled> {
    if sums.all.iter().any(|sum| sum.lost() > 0) {
        return None;
    }
    let rest = sums.all.get(sums.all.len() / 4..)?;
    let (earlier, later) = rest.split_at(rest.len() / 2);
    let rate = |slices: &[Sum]| sums.rate(slices.iter().map(Sum::offered).sum(), slices.len());
    let counted = || rest.iter().zip(aside.iter().skip(sums.all.len() / 4)).filter(|(_, aside)| !**aside);
    let clean_fps = sums.rate(counted().map(|(sum, _)| sum.offered()).sum(), counted().count());
    let told = counted().count() > 0 && !earlier.is_empty();
    told.then(|| Settled { all_fps: rate(rest), clean_fps, earlier_fps: rate(earlier), later_fps: rate(later) })
}

#[cfg(test)]
mod tests;
