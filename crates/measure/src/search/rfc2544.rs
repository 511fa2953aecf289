//! Binary search for the throughput (RFC 2544 §26.1).

use units::Fps;

use super::{
    config::SearchConfig,
    gave::Gave,
    retrying::Retrying,
    strategy::{Bounds, Strategy, Want},
};
use crate::{
    bisection::{is_narrow, whole_middle},
    result::Outcome,
    trial::Purpose,
};

/// Binary search for the throughput of RFC 2544 §26.1.
///
/// The first trial is at the upper bound; then the interval is halved until it is narrower than the precision. The
/// load answered with was measured, valid and met the goal. Without any such load, the lower bound itself is tried.
pub type Rfc2544Search = Retrying<Bisection>;

impl Rfc2544Search {
    /// A fresh search.
    pub fn new(config: SearchConfig) -> Self {
        let strategy = Bisection {
            top_is_tester: config.upper_is_tester,
            ..Bisection::over(config.floor(), config.upper, config.precision.get())
        };
        Self::with(config, strategy)
    }
}

/// The bounds of a binary search and how they move.
#[derive(Debug, Clone)]
pub struct Bisection {
    floor: Fps,
    precision: f64,
    /// Highest load to try; the tester's limit rather than the user's when `top_is_tester`.
    top: Fps,
    top_is_tester: bool,
    top_tried: bool,
    floor_failed: bool,
    lower: Option<(Fps, u32)>,
    upper: Option<Fps>,
}

impl Bisection {
    /// From the highest load down to the floor, to a relative width.
    pub(crate) fn over(floor: Fps, top: Fps, precision: f64) -> Self {
        Self {
            floor,
            precision,
            top,
            top_is_tester: false,
            top_tried: false,
            floor_failed: false,
            lower: None,
            upper: None,
        }
    }

    /// The middle of an interval in whole frames/s where that is strictly inside.
    fn middle(lower: Fps, upper: Fps) -> Option<Fps> {
        whole_middle(lower.get(), upper.get()).map(Fps::from_raw)
    }

    fn narrow(&self, lower: Fps, upper: Fps) -> bool {
        is_narrow(lower.get(), upper.get(), self.precision)
    }
}

impl Strategy for Bisection {
    fn next(&mut self) -> Want {
        let try_at = |load| Want::Load(load, Purpose::Search);
        if let Some((lower, _)) = self.lower {
            if self.upper.is_some_and(|upper| self.narrow(lower, upper)) {
                return Want::End(Outcome::Found);
            }
            if lower >= self.top {
                return Want::End(match (self.top_is_tester, self.upper) {
                    (false, _) => Outcome::AtMaximum,
                    (true, None) => Outcome::TesterLimited,
                    // The tester offers no load between them.
                    (true, Some(_)) => Outcome::Found,
                });
            }
        }
        if !self.top_tried {
            // The tester does not reach the lowest load. That does not describe the DUT.
            if self.top < self.floor && self.top_is_tester {
                return Want::End(Outcome::Inconclusive);
            }
            return try_at(self.top);
        }
        let upper = self.upper.unwrap_or(self.top);
        match self.lower {
            Some((lower, _)) => Self::middle(lower, upper).map_or(Want::End(Outcome::Found), try_at),
            None if self.floor_failed || upper <= self.floor => Want::End(Outcome::BelowMinimum),
            None if self.narrow(self.floor, upper) => try_at(self.floor),
            None => try_at(Self::middle(self.floor, upper).unwrap_or(self.floor)),
        }
    }

    fn takes(&self, load: Fps) -> Option<bool> {
        let known = self.lower.map_or(self.floor.get(), |(lower, _)| lower.get() * (1.0 + self.precision));
        Some(load.get() >= known)
    }

    fn verdict(&mut self, load: Fps, passed: bool, gave: &Gave) {
        if load >= self.top {
            self.top_tried = true;
        }
        if passed {
            let counted = if gave.load < load { gave.load } else { load };
            self.lower = Some((counted, gave.number));
        } else {
            self.upper = Some(load);
            self.floor_failed |= load <= self.floor;
        }
    }

    // By slices another search halves.
    fn passed_less(&mut self, _gave: &Gave) {}

    fn cap(&mut self, top: Fps) {
        if top < self.top {
            self.top = top;
        }
        self.top_is_tester = true;
        self.top_tried = self.upper.is_some_and(|upper| upper <= self.top);
    }

    fn bounds(&self) -> Bounds {
        Bounds { lower: self.lower, upper: self.upper, ..Bounds::default() }
    }
}
