//! How a run stands, decided from its figures: for each frame size, for each test, and for the whole.
//!
//! The criteria are those that a plan sets: the loss budget of a soak. A test that is to show an end (recovery, reset) and
//! does not, and a search whose lowest load fails, miss a criterion, too.

use crate::schema::{
    goal::Regularity,
    outcome::{Outcome, TestOutcome},
    result::{RunResult, SizeResult, TestResult},
    standing::Standing,
    test::Test,
};

/// The figures of the searches of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Figures {
    /// One for each frame size, or for each goal of each.
    pub all: usize,
    /// Those that are limits of the device, rather than of the tester, the link or the plan.
    pub device_limits: usize,
}

impl Figures {
    /// Of these frame sizes. A size or goal without a figure is not counted.
    pub fn of(sizes: &[SizeResult]) -> Self {
        let count = |size: &SizeResult| match size.goals.as_slice() {
            [] => (usize::from(size.outcome.has_figure()), usize::from(size.outcome == Outcome::Found)),
            goals => (
                goals.iter().filter(|g| has_figure(g.regularity)).count(),
                goals.iter().filter(|g| g.regularity == Regularity::Regular).count(),
            ),
        };
        sizes.iter().map(count).fold(Self::default(), |sum, (all, limits)| Self {
            all: sum.all + all,
            device_limits: sum.device_limits + limits,
        })
    }

    /// `0 of 7 figures are limits of the device`; nothing where there are none.
    pub fn describe(self) -> Option<String> {
        Some(match (self.all, self.device_limits) {
            (0, _) => return None,
            (1, 1) => "the figure is a limit of the device".to_owned(),
            (1, _) => "the figure is not a limit of the device".to_owned(),
            (all, 1) => format!("1 of {all} figures is a limit of the device"),
            (all, limits) => format!("{limits} of {all} figures are limits of the device"),
        })
    }
}

/// Whether a goal with these bounds has a figure.
fn has_figure(regularity: Regularity) -> bool {
    match regularity {
        Regularity::Regular | Regularity::AtMaximum | Regularity::TesterLimited => true,
        Regularity::BelowMinimum | Regularity::Unfinished => false,
    }
}

/// How the search at one frame size stands. The outcome is the first goal's; where it has a figure, the other goals count,
/// too.
pub fn of_size(size: &SizeResult) -> Standing {
    let any_goal = |how| size.goals.iter().any(|g| g.regularity == how);
    match size.outcome {
        Outcome::Inconclusive => Standing::NotTrustworthy,
        Outcome::BelowMinimum | Outcome::NoTraffic => Standing::CriterionMissed,
        Outcome::Interrupted => Standing::Interrupted,
        Outcome::Found | Outcome::AtMaximum | Outcome::TesterLimited if any_goal(Regularity::Unfinished) => {
            Standing::NotTrustworthy
        }
        Outcome::Found | Outcome::AtMaximum | Outcome::TesterLimited if any_goal(Regularity::BelowMinimum) => {
            Standing::CriterionMissed
        }
        Outcome::Found => Standing::Completed,
        Outcome::AtMaximum | Outcome::TesterLimited if any_goal(Regularity::Regular) => Standing::Completed,
        Outcome::AtMaximum | Outcome::TesterLimited => Standing::NotDeviceLimit,
    }
}

/// How a test at one frame size stands; `None` when it was not to be run there.
pub fn of_test(test: &TestResult) -> Option<Standing> {
    Some(match test.outcome {
        TestOutcome::NotRun => return None,
        TestOutcome::Done if test.test == Test::Soak => Standing::CriterionMet,
        TestOutcome::Done => Standing::Completed,
        TestOutcome::AtMaximum | TestOutcome::TesterLimited => Standing::NotDeviceLimit,
        TestOutcome::Failed | TestOutcome::BelowMinimum | TestOutcome::NoTraffic => Standing::CriterionMissed,
        TestOutcome::Inconclusive => Standing::NotTrustworthy,
        TestOutcome::Interrupted => Standing::Interrupted,
    })
}

/// How a whole run stands: as the worst of its parts. Without any part it was interrupted.
pub fn of_run(sizes: &[SizeResult], tests: &[TestResult], stopped: bool) -> Standing {
    if stopped {
        return Standing::Stopped;
    }
    if sizes.is_empty() && tests.is_empty() {
        return Standing::Interrupted;
    }
    let of_tests = || tests.iter().filter_map(of_test);
    let is_any = |wanted| sizes.iter().map(of_size).chain(of_tests()).any(|standing| standing == wanted);
    for bad in [Standing::NotTrustworthy, Standing::CriterionMissed, Standing::Interrupted] {
        if is_any(bad) {
            return bad;
        }
    }
    // The figures of the searches come first: the other tests go by them.
    let is_device_limit = match sizes {
        [] => of_tests().any(|standing| standing != Standing::NotDeviceLimit) || of_tests().next().is_none(),
        sizes => Figures::of(sizes).device_limits > 0,
    };
    if is_any(Standing::CriterionMet) {
        Standing::CriterionMet
    } else if is_device_limit {
        Standing::Completed
    } else {
        Standing::NotDeviceLimit
    }
}

/// How several runs stand together: as the worst of those that did not end well. Of good ones, one figure that is a limit
/// of the device is enough, and each has to meet a criterion. `None` of none.
pub fn of_several(standings: impl IntoIterator<Item = Standing> + Clone) -> Option<Standing> {
    let all = || standings.clone().into_iter();
    let worst = all().max()?;
    if !worst.is_good() {
        return Some(worst);
    }
    let alike = all().all(|standing| standing == worst);
    Some(if alike { worst } else { Standing::Completed })
}

/// How a result stands, in one sentence: `completed; no criterion was set; 0 of 7 figures are limits of the device`.
pub fn describe(result: &RunResult) -> String {
    let figures = match result.standing {
        Standing::Stopped | Standing::Interrupted => None,
        _ => Figures::of(&result.sizes).describe(),
    };
    [Some(result.standing.describe().to_owned()), figures].into_iter().flatten().collect::<Vec<_>>().join("; ")
}

#[cfg(test)]
pub(crate) mod tests;
