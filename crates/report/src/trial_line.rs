//! One line about a trial, for the progress output.

use measure::trial::TrialRecord;
use units::Fps;

use crate::{
    figures, num, progress,
    style::{Paint, Style},
    words,
};

/// One line about a trial for the progress output, with the bounds after it when a search has any:
/// `#12 64 B 12.30 Mpps 0.3 s  lost 0  [8.100 M .. 14.20 Mpps]  valid`.
pub fn render(trial: &TrialRecord, bounds: (Option<Fps>, Option<Fps>), style: &Style) -> String {
    let lost = num::thousands(trial.lost());
    let ratio =
        figures::loss(&trial.directions).filter(|l| l.get() > 0.0).map_or_else(String::new, |l| format!(" ({l})"));
    let bounds = match bounds {
        (None, None) => String::new(),
        (low, high) => format!("  {}", progress::bounds(low, high)),
    };
    let paint = if trial.valid() { Paint::Good } else { Paint::Warn };
    format!(
        "#{} {} {} {}  lost {lost}{ratio}{bounds}  {}",
        trial.number,
        trial.spec.frame_size_bytes.with_unit("B"),
        trial.spec.load_fps,
        num::duration(trial.spec.duration_s),
        style.paint(paint, &words::validity(trial)),
    )
}
