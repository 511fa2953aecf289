//! How runs stand, by their figures.

use units::{Fps, FrameSize};

use super::*;
use crate::schema::{
    found::Found,
    goal::{GoalResult, SearchGoal},
    outcome::{Compliance, StandardLabel},
};

/// A result of 1 Mpps at 64 bytes.
pub(crate) fn size(outcome: Outcome) -> SizeResult {
    SizeResult {
        frame_size_bytes: FrameSize::MIN.into(),
        outcome,
        throughput_fps: Some(Fps::from_raw(1e6)),
        upper_bound_fps: None,
        answer: None,
        standard: StandardLabel::default(),
        compliance: None,
        latency_standard: None,
        latency_compliance: None,
        placement: None,
        other_placements: Vec::new(),
        core_to_core: None,
        at_throughput_trial: None,
        at_throughput: Vec::new(),
        trials: Vec::new(),
        invalid_trials: 0,
        diagnosis: None,
        goals: Vec::new(),
    }
}

fn goals(outcome: Outcome, regularities: &[Regularity]) -> SizeResult {
    let goal = |&regularity: &Regularity| GoalResult {
        goal: SearchGoal::default(),
        regularity,
        lower_fps: None,
        upper_fps: None,
        conditional_throughput_fps: None,
        trials: Vec::new(),
        trial_s: 0.0,
    };
    SizeResult { goals: regularities.iter().map(goal).collect(), ..size(outcome) }
}

fn test(test: Test, outcome: TestOutcome) -> TestResult {
    TestResult {
        test,
        frame_size_bytes: FrameSize::MIN.into(),
        outcome,
        reason: None,
        standard: StandardLabel::default(),
        compliance: Compliance::Conditional,
        trials: Vec::new(),
        invalid_trials: 0,
        found: Found::Nothing,
    }
}

fn of_sizes(outcomes: &[Outcome]) -> Standing {
    let sizes: Vec<SizeResult> = outcomes.iter().map(|&outcome| size(outcome)).collect();
    of_run(&sizes, &[], false)
}

#[test]
fn a_run_stands_as_the_worst_of_its_sizes() {
    use Outcome::*;
    assert_eq!(of_sizes(&[Found, TesterLimited]), Standing::Completed);
    assert_eq!(of_sizes(&[TesterLimited, AtMaximum]), Standing::NotDeviceLimit);
    assert_eq!(of_sizes(&[Found, BelowMinimum]), Standing::CriterionMissed);
    assert_eq!(of_sizes(&[Found, NoTraffic, Interrupted]), Standing::CriterionMissed);
    assert_eq!(of_sizes(&[Found, Interrupted]), Standing::Interrupted);
    assert_eq!(of_sizes(&[BelowMinimum, Inconclusive]), Standing::NotTrustworthy);
    assert_eq!(of_sizes(&[]), Standing::Interrupted, "nothing was measured");
    assert_eq!(of_run(&[size(Inconclusive)], &[], true), Standing::Stopped);
}

#[test]
fn every_goal_counts_where_the_first_has_a_figure() {
    use Regularity::*;
    assert_eq!(of_size(&goals(Outcome::Found, &[Regular, Regular])), Standing::Completed);
    assert_eq!(of_size(&goals(Outcome::Found, &[Regular, Unfinished])), Standing::NotTrustworthy);
    assert_eq!(of_size(&goals(Outcome::Found, &[Regular, BelowMinimum])), Standing::CriterionMissed);
    assert_eq!(of_size(&goals(Outcome::AtMaximum, &[AtMaximum, Regular])), Standing::Completed);
    assert_eq!(of_size(&goals(Outcome::TesterLimited, &[TesterLimited])), Standing::NotDeviceLimit);
    assert_eq!(of_size(&goals(Outcome::BelowMinimum, &[BelowMinimum, Unfinished])), Standing::CriterionMissed);
}

#[test]
fn the_budget_of_a_soak_is_a_criterion() {
    use TestOutcome::*;
    let run = |outcome, sizes: &[SizeResult]| of_run(sizes, &[test(Test::Soak, outcome)], false);
    assert_eq!(run(Done, &[]), Standing::CriterionMet);
    assert_eq!(run(Done, &[size(Outcome::TesterLimited)]), Standing::CriterionMet);
    assert_eq!(run(Failed, &[size(Outcome::Found)]), Standing::CriterionMissed);
    assert_eq!(run(Inconclusive, &[size(Outcome::Found)]), Standing::NotTrustworthy);
    let alone = |outcome| of_run(&[], &[test(Test::FrameLoss, outcome)], false);
    assert_eq!((alone(Done), alone(TesterLimited)), (Standing::Completed, Standing::NotDeviceLimit));
    assert_eq!((alone(NotRun), alone(NoTraffic)), (Standing::Completed, Standing::CriterionMissed));
}

#[test]
fn figures_are_counted() {
    let sizes = [size(Outcome::Found), size(Outcome::TesterLimited), goals(Outcome::Found, &[Regularity::Regular; 2])];
    assert_eq!(Figures::of(&sizes), Figures { all: 4, device_limits: 3 });
    for without in [Outcome::BelowMinimum, Outcome::NoTraffic, Outcome::Inconclusive, Outcome::Interrupted] {
        assert_eq!(Figures::of(&[size(Outcome::Found), size(without)]), Figures { all: 1, device_limits: 1 });
    }
    let some = [goals(Outcome::Found, &[Regularity::AtMaximum, Regularity::BelowMinimum, Regularity::Unfinished])];
    assert_eq!(Figures::of(&some), Figures { all: 1, device_limits: 0 });
    let limited = vec![size(Outcome::TesterLimited); 7];
    let texts = [&sizes[..], &limited, &sizes[..1], &sizes[1..2], &[]].map(|sizes| Figures::of(sizes).describe());
    insta::assert_debug_snapshot!(texts);
}

#[test]
fn several_runs_stand_as_the_worst_or_as_the_figures_they_have() {
    use Standing::*;
    assert_eq!(of_several([Completed, NotTrustworthy, CriterionMissed]), Some(NotTrustworthy));
    assert_eq!(of_several([CriterionMet, CriterionMet]), Some(CriterionMet));
    assert_eq!(of_several([CriterionMet, NotDeviceLimit]), Some(Completed));
    assert_eq!(of_several([Completed, NotDeviceLimit]), Some(Completed));
    assert_eq!((of_several([NotDeviceLimit; 3]), of_several([])), (Some(NotDeviceLimit), None));
}
