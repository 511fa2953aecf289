//! How delays move: their floor, and whether they grow. Above the capacity of a device with a buffer, frames are late before
//! they are lost.

use super::sums::{Sum, Sums};
use crate::schema::evidence::DelayTrend;

/// Slices of a stretch that a trend can be seen in.
const SHORTEST: usize = 10;
/// Share of the slices whose smallest delays are at the floor.
const FLOOR: f64 = 0.05;

/// The floor of the delay, nanoseconds; `None` where nothing came.
pub(super) fn floor(sums: &Sums) -> Option<u32> {
    let mut delays: Vec<u32> = sums.all.iter().filter_map(|sum| sum.min_delay_ns()).collect();
    delays.sort_unstable();
    delays.get((delays.len() as f64 * FLOOR) as usize).copied()
}

/// The trend over the stretches that count; `None` where none is long enough.
pub(super) fn of(sums: &Sums, aside: &[bool], floor: u32) -> Option<DelayTrend> {
    let (mut growths, mut ends, mut time) = (0.0, Vec::new(), 0.0);
    let counts: Vec<usize> = (0..sums.all.len()).filter(|i| !aside.get(*i).copied().unwrap_or(true)).collect();
    for stretch in counts.chunk_by(|a, b| a + 1 == *b).filter(|s| s.len() >= SHORTEST) {
        let points: Vec<(f64, f64)> =
            stretch.iter().filter_map(|&i| point(i, sums.all.get(i)?, sums.slice_s)).collect();
        let Some(growth) = slope(&points) else { continue };
        let seconds = stretch.len() as f64 * sums.slice_s;
        growths += growth * seconds;
        time += seconds;
        // The smallest of the last few: one late slice is not an end.
        let last = points.iter().rev().take(SHORTEST / 2).map(|p| p.1).fold(f64::INFINITY, f64::min);
        ends.push((last * 1e9) as u64);
    }
    ends.sort_unstable();
    let end_ns = *ends.get(ends.len() / 2)?;
    Some(DelayTrend { floor_ns: floor.into(), end_ns, growth: growths / time })
}

fn point(i: usize, sum: &Sum, slice_s: f64) -> Option<(f64, f64)> {
    Some((i as f64 * slice_s, f64::from(sum.min_delay_ns()?) * 1e-9))
}

/// The median slope of pairs a quarter of the points apart (after Theil and Sen): neither late slices nor a step move it,
/// since a step lies between at most a third of the pairs.
fn slope(points: &[(f64, f64)]) -> Option<f64> {
    let apart = (points.len() / 4).max(1);
    let mut slopes: Vec<f64> = points
        .iter()
        .zip(points.get(apart..)?)
        .filter(|(a, b)| b.0 > a.0)
        .map(|(a, b)| (b.1 - a.1) / (b.0 - a.0))
        .collect();
    slopes.sort_unstable_by(f64::total_cmp);
    slopes.get(slopes.len() / 2).copied()
}
