//! Configuration of a search for one frame size.

use units::{Fps, Frames, LinkSpeed, Ratio};

use super::step::Answer;
use crate::{
    attempts::Budget,
    plan::{check_bounds, GoalSet, Method, PlanError, ValidPlan},
    schema::goal::SearchGoal,
};

/// Share of what the tester does over kernel interfaces alone below which the kernel forwards in the tester's own calls.
const IN_CALLS: f64 = 0.9;

/// Configuration of a search for one frame size.
#[derive(Debug, Clone, PartialEq)]
pub struct SearchConfig {
    /// The search method.
    pub method: Method,
    /// Frame size, FCS included.
    pub frame_size: Frames,
    /// Lowest load per direction; zero: see [`SearchConfig::floor`].
    pub lower: Fps,
    /// Highest load per direction.
    pub upper: Fps,
    /// Whether `upper` is the maximum of the tester, below the plan's load or the line rate.
    pub upper_is_tester: bool,
    /// Loss ratio that still passes. For MLRsearch, that of the first goal; precision and duration are the least of all
    /// goals.
    pub tolerated_loss: Ratio,
    /// Relative width at which the search stops.
    pub precision: Ratio,
    /// Sending time of each trial, seconds.
    pub duration_s: f64,
    /// Waits around each trial in seconds. They count against the timeout.
    pub overhead_s: f64,
    /// Most repeats of an invalid trial at one load.
    pub max_repeats: u32,
    /// TST009: max(r) - 1.
    pub retries: u32,
    /// TST009: z. A trial that lost more frames is not repeated.
    pub retry_max_lost: Option<u64>,
    /// Most trials, including invalid ones.
    pub max_trials: u32,
    /// Most time in trials and waits, seconds.
    pub timeout_s: f64,
    /// MLRsearch: the goals. Other methods ignore them.
    pub goals: GoalSet,
    /// Whether slices are the evidence, instead of whole trials: of a testbed that has them, and not of every method.
    pub by_slices: bool,
    /// What the tester does over kernel interfaces without a device; `None` over other ports. Where it does clearly less with
    /// the device, the kernel forwards in the tester's own calls, and that is the device's limit.
    pub kernel_pair: Option<Fps>,
    /// MLRsearch: sending time of the warm-up trial in seconds; zero: none.
    pub warmup_s: f64,
}

impl SearchConfig {
    /// The search of a plan for one frame size. The highest load is the plan's, or else the line rate of the plan's link
    /// speed, or else of `link`; but at most `selftest_max`, the self-test maximum of the tester per direction.
    ///
    /// Errors when the bounds contradict each other or the link, or when the highest load is not known.
    pub fn for_size(
        plan: &ValidPlan,
        frames: impl Into<Frames>,
        link: Option<LinkSpeed>,
        selftest_max: Option<Fps>,
    ) -> Result<Self, PlanError> {
        let (s, size) = (&plan.search, frames.into());
        let goals = s.goals.clone().unwrap_or_default().set()?;
        let least = |of: fn(&SearchGoal) -> f64| goals.goals().iter().map(of).fold(f64::INFINITY, f64::min);
        let (tolerated_loss, precision, duration_s) = match (s.method, goals.goals()) {
            (Method::Mlrsearch, [first, ..]) => {
                let width = Ratio::new(least(|g| g.width.get())).unwrap_or(first.width);
                (first.loss_ratio, width, least(SearchGoal::initial_s))
            }
            _ => (s.tolerated_loss, s.precision, s.duration.as_secs_f64()),
        };
        let link = plan.link.speed.or(link);
        let resolve =
            |key: &str, load: units::Load| load.resolve(size, link).map_err(|e| PlanError::value(key, load, e.legal));
        let asked = match s.upper {
            Some(load) => Some(resolve("search.upper", load)?),
            None => link.map(|l| l.line_rate(size)),
        };
        let (upper, upper_is_tester) = match (asked, selftest_max) {
            (Some(asked), Some(most)) if most < asked => (most, true),
            (Some(asked), _) => (asked, false),
            (None, Some(most)) => (most, true),
            (None, None) => {
                let legal = "must be given: the link's speed is not known and the self-test is off (or add --link 10G)";
                return Err(PlanError::value("search.upper", "(absent)", legal));
            }
        };
        let lower = resolve("search.lower", s.lower)?;
        // If the tester cannot reach the lowest load, the plan is still valid: the search reports the load as not offered.
        let upper = match lower >= upper && upper_is_tester {
            true => Fps::from_raw(lower.get() * (1.0 + 2.0 * precision.get())),
            false => upper,
        };
        check_bounds(plan, size, Some(lower.get()), upper.get())?;
        Ok(Self {
            method: s.method,
            frame_size: size,
            lower,
            upper,
            upper_is_tester,
            tolerated_loss,
            precision,
            duration_s,
            overhead_s: (plan.trust.residual + plan.trust.settle).as_secs_f64(),
            max_repeats: plan.trust.max_repeats,
            retries: s.retries,
            retry_max_lost: s.retry_max_lost,
            max_trials: s.max_trials(),
            timeout_s: s.timeout.as_secs_f64(),
            goals,
            by_slices: false,
            kernel_pair: None,
            warmup_s: s.warmup.as_secs_f64(),
        })
    }

    /// Whether the kernel forwards in the tester's own calls, where the tester offers no more than `most` with the device.
    pub(super) fn is_in_calls(&self, most: Fps) -> bool {
        self.kernel_pair.is_some_and(|alone| most.get() < alone.get() * IN_CALLS)
    }

    /// Frames/s that a device which forwards in the tester's own calls does at most, when the tester offers this: each frame
    /// takes as long as offered, less what the tester alone takes for it (the rate of such a pair without a device). Nothing
    /// lower was shown to fail.
    pub(crate) fn without_own_calls(&self, most: f64) -> f64 {
        match self.kernel_pair.map(Fps::get) {
            Some(alone) if alone > most => 1.0 / (1.0 / most - 1.0 / alone),
            _ => most,
        }
    }

    /// What the search may spend.
    pub(super) fn budget(&self) -> Budget {
        Budget::new("search.timeout", self.timeout_s, self.overhead_s).with_trials(self.max_trials)
    }

    /// The lowest load that a search tries: `lower`, if given. Otherwise the load whose trial holds `1 / precision` frames,
    /// but at least 1/10000 of the highest load, which bounds the trials spent on a DUT that loses frames at any load, and
    /// at most `precision` times the highest load. (A TST009 array starts at its step instead.)
    pub fn floor(&self) -> Fps {
        if self.lower > Fps::ZERO {
            return self.lower;
        }
        let (upper, precision) = (self.upper.get(), self.precision.get());
        let least = 1.0 / (precision * self.duration_s);
        Fps::from_raw(least.max(upper * 1e-4).min(upper * precision))
    }

    /// About how many valid trials a binary search with these bounds still needs, for progress. Not meaningful for
    /// MLRsearch.
    pub fn trials_left(&self, so_far: &Answer) -> u32 {
        if so_far.throughput.is_none() && so_far.upper_bound.is_none() {
            return 1 + (1.0 / self.precision.get()).log2().ceil().max(0.0) as u32;
        }
        let upper = so_far.upper_bound.unwrap_or(self.upper).get();
        let lower = so_far.throughput.unwrap_or(self.floor()).get();
        let stop = self.precision.get() * if self.method == Method::Rfc2544 { upper } else { self.upper.get() };
        ((upper - lower) / stop).log2().ceil().max(0.0) as u32
    }
}
