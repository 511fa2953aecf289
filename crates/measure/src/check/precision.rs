//! The precision to be expected.
//!
//! A search makes up to 12 passes. In each, half of the time goes to an overload, whose slices tell the rate, and half to a
//! load just below. Of a time T of measuring with a clean share c, n = c T / (2 s) slices of length s tell the rate. With
//! d, the standard deviation of a slice over the mean, and b, what differs between passes beyond that, the half width of an
//! interval of 95 % is the larger of
//!
//! ```text
//! by slices: 1.96 d / sqrt(n)        by trials: t b / sqrt(12), t of Student for the trials seen
//! ```
//!
//! and never less than 0.05 %. b is what is left of the variance of the trials at full load, v, when the part that their
//! slices explain is taken out: b^2 = v - d^2 s / clean time of a trial. v is taken from the median distance from the median,
//! and terms of d are medians over the trials, so that one trial in ten that went wrong does not decide.

use super::loads::CLEAN_SHARE;
use crate::{
    schema::check::{ExpectedPrecision, FullLoad},
    student::{t_95, Z_95},
};

/// The time of measuring that the answer is about, seconds.
pub const WITHIN_S: f64 = 60.0;
/// Passes of a search.
const PASSES: f64 = 12.0;
/// Trials that are needed, as passes of a search.
const LEAST: usize = 3;
/// Least half width.
const RESOLUTION: f64 = 5e-4;

/// The precision after so many seconds of measuring, by trials at full load; `None` where they say nothing: fewer than
/// three, or too little time without an absence.
pub fn expected(trials: &[FullLoad], within_s: f64) -> Option<ExpectedPrecision> {
    let trials: Vec<&FullLoad> = trials.iter().filter(|t| is_sound(t)).collect();
    let clean = clean_share(trials.iter().copied()).filter(|share| *share >= CLEAN_SHARE)?;
    if trials.len() < LEAST {
        return None;
    }
    let of = |term: &dyn Fn(&FullLoad) -> f64| trials.iter().map(|t| term(t)).collect::<Vec<f64>>();
    let (middle, deviation) = spread(&of(&|t| t.fps.get()))?;
    // Of a second: slices of trials may differ in length.
    let second = median(of(&|t| t.deviation.powi(2) * t.slice_s))?;
    let own = median(of(&|t| t.deviation.powi(2) * t.slice_s / t.clean_s))?;
    let between = ((deviation / middle).powi(2) - own).max(0.0).sqrt();
    let by_slices = Z_95 * (second / (clean * within_s / 2.0)).sqrt();
    let by_trials = t_95(trials.len().saturating_sub(1)) * between / PASSES.sqrt();
    let width = 2.0 * by_slices.max(by_trials).max(RESOLUTION);
    let all = ExpectedPrecision { within_s, width, by_slices, by_trials };
    [width, by_slices, by_trials, within_s].iter().all(|v| v.is_finite()).then_some(all)
}

/// The median, and the standard deviation that the median distance from it stands for (1.4826 times it, of a normal
/// distribution). `None` of no values.
fn spread(values: &[f64]) -> Option<(f64, f64)> {
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

/// Time in slices that count over the time of all; `None` without time.
pub(super) fn clean_share<'a>(trials: impl IntoIterator<Item = &'a FullLoad>) -> Option<f64> {
    let add = |(clean, all), t: &FullLoad| (clean + t.clean_s, all + t.clean_s + t.aside_s);
    let (clean, all) = trials.into_iter().filter(|t| is_sound(t)).fold((0.0, 0.0), add);
    (all > 0.0).then(|| (clean / all).clamp(0.0, 1.0))
}

/// Figures that can be reckoned with.
fn is_sound(t: &FullLoad) -> bool {
    let all = [t.fps.get(), t.deviation, t.slice_s, t.clean_s, t.aside_s];
    all.iter().all(|v| v.is_finite() && *v >= 0.0) && t.fps.get() > 0.0 && t.slice_s > 0.0 && t.clean_s > 0.0
}

/// Rounded up to 1, 2 or 5 of a decade, at least 0.1 %.
pub(super) fn rounded_up(width: f64) -> f64 {
    let steps = [0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0];
    steps.into_iter().find(|step| width <= step * (1.0 + 1e-9)).unwrap_or(f64::INFINITY)
}

/// A share in percent, without closing zeros.
pub(super) fn percent(share: f64) -> String {
    let text = format!("{:.2}", share * 100.0);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}
