//! A simulated tester and device between two trials.

use super::{rng::Rng, setup::SimSetup};
use crate::{placement::PlacementClassifier, schema::timeline::Timeline};

/// A tester and a DUT, simulated.
#[derive(Debug, Clone)]
pub struct SimDut {
    pub(super) setup: SimSetup,
    pub(super) now_s: f64,
    pub(super) trials: u32,
    pub(super) rng: Rng,
    pub(super) at: usize,
    pub(super) classifier: PlacementClassifier,
    pub(super) patience_s: Option<f64>,
    /// When it is dead as it was asked for, once an event came.
    pub(super) dead: Option<Option<(f64, f64)>>,
    /// Frames that the last trial left in the queue.
    pub(super) queued: f64,
    /// The last trial that was cut into slices.
    pub(super) timeline: Timeline,
}

impl SimSetup {
    /// The DUT, at virtual time zero.
    pub fn start(self) -> SimDut {
        let rng = Rng::new(self.seed);
        SimDut {
            setup: self,
            now_s: 0.0,
            trials: 0,
            rng,
            at: 0,
            classifier: PlacementClassifier::default(),
            patience_s: None,
            dead: None,
            queued: 0.0,
            timeline: Timeline::default(),
        }
    }
}

impl SimDut {
    /// How often the DUT stalls within so many seconds, and the frames that loses.
    pub(super) fn stalled(&mut self, time: f64) -> (u64, u64) {
        let (mut times, mut frames) = (0, 0);
        for stalls in &self.setup.stalls {
            let now = self.rng.events(stalls.rate * time);
            times += now;
            frames += now.saturating_mul(stalls.frames);
        }
        (times, frames)
    }

    pub(super) fn inverted(&self, load: f64, sent: u64) -> u64 {
        let inversion = self.setup.inversion.filter(|i| i.band.0 <= load && load <= i.band.1);
        inversion.map_or(0, |i| (sent as f64 * i.loss).round() as u64)
    }
}
