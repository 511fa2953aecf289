//! The part of a search that chooses loads: what it wants next, and the bounds that it has.

use units::{Fps, Ratio};

use crate::schema::{
    goal::GoalResult,
    outcome::Outcome,
    trial::{Purpose, TrialRecord},
};

/// What a strategy wants next.
pub(crate) enum Want {
    /// A trial at this load, as long as the configuration says.
    Load(Fps, Purpose),
    /// A trial at this load for so many seconds.
    Trial(Fps, f64, Purpose),
    End(Outcome),
}

/// The bounds of a strategy.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Bounds {
    /// Highest load passed, and the trial that did.
    pub lower: Option<(Fps, u32)>,
    /// Lowest load failed above it.
    pub upper: Option<Fps>,
    pub retries: Vec<(Fps, u32)>,
}

/// The part of a search that only sees valid trials of the load it asked for.
pub(crate) trait Strategy: Clone {
    fn next(&mut self) -> Want;
    fn verdict(&mut self, load: Fps, passed: bool, trial: &TrialRecord);
    /// The tester cannot offer more than `top`.
    fn cap(&mut self, top: Fps);
    fn bounds(&self) -> Bounds;
    /// The least and the most loss that its goals tolerate, when it has goals of its own.
    fn tolerated_loss(&self) -> Option<(Ratio, Ratio)> {
        None
    }
    /// The load nearest to this one that it could try itself.
    fn near(&self, load: Fps) -> Fps {
        load
    }
    /// A valid trial that it did not ask for, at such a load.
    fn aside(&mut self, _load: Fps, _trial: &TrialRecord) {}
    /// What stands for each goal, when there are several.
    fn goals(&self) -> Vec<GoalResult> {
        Vec::new()
    }
}
