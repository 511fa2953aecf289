//! The part of a search that chooses loads.

use units::{Fps, Ratio};

use super::gave::Gave;
use crate::schema::{goal::GoalResult, outcome::Outcome, trial::Purpose};

/// The next step of a strategy.
pub(crate) enum Want {
    /// A trial at this load, with the duration of the configuration.
    Load(Fps, Purpose),
    /// A trial at this load for this many seconds.
    Trial(Fps, f64, Purpose),
    End(Outcome),
}

/// The bounds of a strategy.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Bounds {
    /// Highest load that passed, and the number of the trial.
    pub lower: Option<(Fps, u32)>,
    /// Lowest load above `lower` that failed.
    pub upper: Option<Fps>,
    pub retries: Vec<(Fps, u32)>,
    /// How far two neighbours of the loads are apart that the strategy could request, where that is the same for all.
    pub step: Option<Fps>,
}

/// Chooses loads. Gets only valid trials, and gets trials that it did not request by [`Strategy::aside`].
pub(crate) trait Strategy: Clone {
    fn next(&mut self) -> Want;
    fn verdict(&mut self, load: Fps, passed: bool, gave: &Gave);
    /// A trial that passed, but of which the tester offered no more than [`Gave::load`]: the device passes lower loads, too.
    fn passed_less(&mut self, gave: &Gave);
    /// Tells the strategy that the tester cannot offer more than `top`.
    fn cap(&mut self, top: Fps);
    fn bounds(&self) -> Bounds;
    /// Whether a pass at a load somewhat below the one asked for tells more than is known; `None`: the strategy has loads of its
    /// own.
    fn takes(&self, _load: Fps) -> Option<bool> {
        None
    }
    /// The least and the most loss that the goals tolerate, if the strategy has goals.
    fn tolerated_loss(&self) -> Option<(Ratio, Ratio)> {
        None
    }
    /// The nearest load that the strategy could request.
    fn near(&self, load: Fps) -> Fps {
        load
    }
    /// A valid trial that the strategy did not request, at a load returned by [`Strategy::near`].
    fn aside(&mut self, _load: Fps, _gave: &Gave) {}
    /// The current result of each goal, if the strategy has goals.
    fn goals(&self) -> Vec<GoalResult> {
        Vec::new()
    }
}
