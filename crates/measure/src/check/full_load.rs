//! How fast both cores are at full load, and how steady. Means, no medians: slices hold whole bursts.

use units::Fps;

use crate::schema::{
    check::FullLoad,
    timeline::{Party, Timeline},
};

/// Slices that do not count after an absence: the queues are not yet what they were.
const AFTER: usize = 2;
/// Slices that a figure needs.
const LEAST: usize = 8;

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
    let mean = frames.iter().sum::<f64>() / n;
    if frames.len() < LEAST || mean <= 0.0 {
        return None;
    }
    let variance = frames.iter().map(|f| (f - mean).powi(2)).sum::<f64>() / (n - 1.0);
    Some(FullLoad {
        fps: Fps::from_raw(mean / timeline.directions.len() as f64 / slice_s),
        deviation: variance.sqrt() / mean,
        slice_s,
        clean_s: n * slice_s,
        aside_s: (whole as f64 - n) * slice_s,
    })
}
