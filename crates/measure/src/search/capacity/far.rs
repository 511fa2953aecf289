//! A device far below the highest load: its rate by what came through a whole trial.

use units::Fps;

use super::{loads::MOST_S, CapacitySearch, Phase, Shown, SATURATED_S};
use crate::schema::trial::{TrialRecord, TrialSpec};

/// A device that let through less than this share of what it was offered is far below the load, whatever its slices say.
const FAR: f64 = 0.5;
/// At least this share of what came of a trial was forwarded in it, and did not only wait in buffers.
const BUFFERED: f64 = 0.25;
/// Loads that are lowered for that at most.
const MOST_LOWERED: u32 = 10;
/// The lowest load of a search is this share of the rate expected at most, where nobody gave one.
const LOWEST: f64 = 0.1;

impl CapacitySearch {
    /// The lowest load: lower than other searches have where the device is so slow.
    pub(super) fn floor(&self) -> f64 {
        let floor = self.config.floor().get();
        let slow = (self.expected * LOWEST).max(1.0 / (self.config.precision.get() * MOST_S));
        if self.config.lower > Fps::ZERO {
            floor
        } else {
            floor.min(slow)
        }
    }

    /// The rate of a device that let through little of the load, where slices do not tell it: too few of them count, or so few
    /// frames came out in each that the device seems to be away.
    pub(super) fn far_below(&self, spec: &TrialSpec, trial: &TrialRecord, shown: Shown) -> Option<f64> {
        let clean = trial.evidence.as_ref().is_some_and(|e| e.is_clean(spec.duration_s));
        let told = match shown {
            Shown::Unclear => false,
            Shown::Lossy(rate) => clean && rate > self.floor(),
            Shown::Busy(_) | Shown::Passed(_) | Shown::Buffered(_) => true,
        };
        let nothing = self.rates.is_empty() && self.rough.is_empty();
        let is_first = matches!(self.phase, Phase::Top | Phase::Above) && nothing;
        if told || !is_first || self.lowered >= MOST_LOWERED {
            return None;
        }
        // What its buffers took is in it: it is more than the rate, and not by much.
        let (came, offered) = trial.directions.iter().fold((0, 0), |(came, offered), direction| {
            (came + direction.received, offered + direction.sent + direction.refused)
        });
        let whole = came as f64 / trial.directions.len().max(1) as f64 / spec.duration_s;
        let busy = trial.evidence.as_ref().and_then(|e| e.as_measured).filter(|busy| busy.seconds >= SATURATED_S);
        let rate = busy.map_or(whole, |busy| busy.fps.get().max(whole * BUFFERED));
        (came > 0 && (came as f64) < FAR * offered as f64).then_some(rate)
    }

    /// Goes on a little above this rate.
    pub(super) fn lower_to(&mut self, rate: f64) {
        self.lowered += 1;
        self.attempts.restart();
        self.unclear = 0;
        (self.expected, self.phase) = (rate, Phase::Above);
    }
}
