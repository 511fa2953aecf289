//! Which load a search asks for next, and for how long.

use super::{CapacitySearch, Phase, DEGRADED};
use crate::bisection::middle;

/// Frames that a trial is to have, and the longest that it is made for that, seconds.
const FRAMES: f64 = 2_400.0;
pub(super) const MOST_S: f64 = 0.5;
/// Share of a trial in which the queue of the device is to fill, and the highest load for that over the rate.
const FILLING: f64 = 0.1;
const FILLING_MOST: f64 = 2.0;

impl CapacitySearch {
    /// The load of the next trial.
    pub(super) fn load(&self) -> f64 {
        let floor = self.floor();
        let load = match self.phase {
            Phase::Top => self.top(),
            Phase::Above if self.is_held() => self.top(),
            Phase::Above => self.expected * (1.0 + (self.overload.max(self.filling()) - 1.0) * self.climb),
            // Below what the passes so far leave open, too: a load within that may pass or not. Two that differ leave much open: a
            // load below both will do.
            Phase::Below => {
                let open = self.rate().map_or(0.0, |m| m.half / m.mean);
                let least = self.rates.iter().map(|rate| rate.value).fold(self.expected, f64::min);
                (self.expected * (1.0 - self.below.max(open))).max(least * (1.0 - self.below.max(DEGRADED)))
            }
            Phase::Between => {
                let best = self.best().unwrap_or(floor);
                middle(best, self.lowest_failed(best).unwrap_or(self.top()))
            }
            Phase::Probe => self.probe_load(),
            Phase::Again => self.best().unwrap_or(floor),
            Phase::Against => self.best().and_then(|best| self.lowest_failed(best)).unwrap_or(self.top()),
        };
        load.min(self.top()).max(floor)
    }

    /// The same in whole frames, but the highest load as it is: it need not be whole, and is not to be passed.
    pub(super) fn whole_load(&self) -> f64 {
        let (load, top) = (self.load(), self.top());
        match load > top - 1.0 {
            true => top,
            false => load.round().max(1.0),
        }
    }

    /// The overload that fills the queue of the device in a small part of a trial.
    fn filling(&self) -> f64 {
        let frames = self.expected * self.duration_s() * FILLING;
        (1.0 + self.busiest.absorbed() / frames.max(1.0)).min(FILLING_MOST)
    }

    /// Few frames tell a rate roughly.
    pub(super) fn duration_s(&self) -> f64 {
        let wanted = (FRAMES / self.expected).max(self.config.duration_s * self.longer);
        self.config.duration_s.max(wanted.min(MOST_S))
    }
}
