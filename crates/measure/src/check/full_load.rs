//! How fast both cores are at full load, and how steady. Medians: a slice in which a queue was empty for another reason
//! does not count for more than any other.

use units::Fps;

use crate::schema::{
    check::FullLoad,
    timeline::{Party, Timeline},
};

/// Slices that do not count after an absence: the queues are not yet what they were.
const AFTER: usize = 2;
/// Slices that a figure needs.
const LEAST: usize = 8;

/// The median, and the standard deviation that the median distance from it stands for (1.4826 times it, of a normal
/// distribution). `None` of no values.
pub(super) fn spread(values: &[f64]) -> Option<(f64, f64)> {
    let middle = median(values.to_vec())?;
    let distance = median(values.iter().map(|v| (v - middle).abs()).collect())?;
    Some((middle, 1.4826 * distance))
}

fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let upper = *values.get(values.len() / 2)?;
    let lower = *values.get(values.len().saturating_sub(1) / 2)?;
    Some((lower + upper) / 2.0)
}

/// What came through in the slices in which nobody was away; `None` where there were fewer than 8.
pub fn full_load(timeline: &Timeline, duration_s: f64) -> Option<FullLoad> {
    let slice_s = Some(timeline.slice_s).filter(|s| s.is_finite() && *s > 0.0)?;
    let slices = timeline.directions.iter().map(Vec::len).min()?;
    let whole = ((duration_s / slice_s + 1e-9) as usize).min(slices);
    let away = [Party::Tester, Party::Device].map(|who| timeline.away(who, whole));
    let is_away = |i: usize| away.iter().any(|party| party.get(i).is_some_and(|s| *s > 0.0));
    // The first slices do not count, either: queues and caches are empty.
    let counts = |i: &usize| *i >= AFTER && !(i - AFTER..=*i + 1).any(is_away);
    let received = |i: usize| timeline.directions.iter().filter_map(|d| d.get(i)).map(|s| f64::from(s.received)).sum();
    let frames: Vec<f64> = (0..whole).filter(counts).map(received).collect();
    let n = frames.len() as f64;
    let (middle, deviation) = spread(&frames).filter(|(middle, _)| frames.len() >= LEAST && *middle > 0.0)?;
    Some(FullLoad {
        fps: Fps::from_raw(middle / timeline.directions.len() as f64 / slice_s),
        deviation: deviation / middle,
        slice_s,
        clean_s: n * slice_s,
        aside_s: (whole as f64 - n) * slice_s,
    })
}
