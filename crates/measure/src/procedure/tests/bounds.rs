//! Every test ends, and says how, whatever the device and the tester do.

use super::device::{drive, plan, setting, Device};
use crate::{
    attempts::GivenUp,
    plan::{Plan, Test},
    procedure::{for_test, Ask, TestOutcome},
    trial::{Rule, Violation},
};

const ALL: [Test; 9] = [
    Test::FrameLoss,
    Test::BackToBack,
    Test::Recovery,
    Test::Reset,
    Test::Bursty,
    Test::ForwardingRate,
    Test::LatencyProfile,
    Test::Pdv,
    Test::Soak,
];

fn outcomes(throughput: f64, mut device: impl FnMut() -> Device) -> Vec<(Test, TestOutcome)> {
    ALL.map(|test| {
        let plan = plan(test.name(), "");
        (test, drive(&mut device(), test, &plan, &setting(Some(throughput))).0.outcome)
    })
    .to_vec()
}

#[test]
fn a_device_that_forwards_nothing() {
    for (test, outcome) in outcomes(1e6, || Device { always: u64::MAX / 4, ..Device::new(10e6, 0.0) }) {
        let expected = match test {
            // For hours, as asked; and every interval.
            Test::Soak => TestOutcome::Failed,
            _ => TestOutcome::NoTraffic,
        };
        assert_eq!(outcome, expected, "{test}");
    }
}

#[test]
fn a_device_that_loses_a_frame_at_every_load() {
    for (test, outcome) in outcomes(1e6, || Device { always: 1, ..Device::new(1e15, 0.0) }) {
        let expected = match test {
            Test::BackToBack | Test::Bursty => TestOutcome::BelowMinimum,
            Test::Soak => TestOutcome::Failed,
            _ => TestOutcome::Done,
        };
        assert_eq!(outcome, expected, "{test}");
    }
}

#[test]
fn a_tester_that_falls_short_at_every_load() {
    for (test, outcome) in outcomes(1e6, || Device { tester: 1.0, ..Device::new(10e6, 0.0) }) {
        let limited = matches!(outcome, TestOutcome::TesterLimited | TestOutcome::Inconclusive);
        assert!(limited, "{test}: {outcome:?}");
    }
}

#[test]
fn trials_that_are_never_valid_and_time_that_runs_out() {
    for test in ALL {
        let plan = plan(test.name(), "");
        let mut procedure = for_test(test, &plan, &setting(Some(1e6))).unwrap();
        let mut device = Device::new(10e6, 0.0);
        let (mut tries, mut load) = (0, units::Fps::ZERO);
        while let Ask::Run(spec) | Ask::Event { spec, .. } = procedure.wanted() {
            let mut record = device.run(&spec);
            record.violations = vec![Violation { rule: Rule::Stalled, text: "away".to_owned() }];
            procedure.report(&record);
            (tries, load) = (tries + 1, spec.load_fps);
        }
        let findings = procedure.so_far();
        // The loss curve goes on below a load without a figure, up to three of them.
        let loads = if test == Test::FrameLoss { 3 } else { 1 };
        assert_eq!((findings.outcome, tries), (TestOutcome::Inconclusive, 11 * loads), "{test}");
        let reason = findings.reason.unwrap();
        let why = |load| GivenUp::Invalid { trials: 11, load, last: "away".to_owned() }.to_string();
        assert!(loads > 1 || reason == why(load), "{test}: {reason}");

        let hurried = super::super::Setting { timeout_s: 0.5, ..setting(Some(1e6)) };
        let (findings, made) = drive(&mut Device::new(0.9e6, 0.0), test, &plan, &hurried);
        assert!(made.len() <= 1, "{test}");
        if findings.outcome == TestOutcome::Inconclusive {
            let why = GivenUp::TooLong { key: "test_timeout", most_s: 0.5 };
            assert_eq!(findings.reason, Some(why.to_string()), "{test}");
        }
    }
}

#[test]
fn trials_of_another_placement_or_another_spec_do_not_count() {
    let plan = plan("pdv", "");
    let home = super::super::Setting { placement: Some(0), ..setting(Some(1e6)) };
    let mut procedure = for_test(Test::Pdv, &plan, &home).unwrap();
    let mut device = Device::new(10e6, 0.0);
    let Ask::Run(spec) = procedure.wanted() else { panic!() };
    let other = crate::trial::TrialSpec { duration_s: 1.0, ..spec };
    procedure.report(&device.run(&other));
    assert_eq!(procedure.so_far().trials.len(), 0);
    for _ in 0..20 {
        assert_eq!(procedure.wanted(), Ask::Run(spec));
        let mut record = device.run(&spec);
        record.interference.core_to_core_before_ns = Some(300.0);
        record.interference.placement = Some(1);
        procedure.report(&record);
    }
    assert_eq!((procedure.wanted(), procedure.so_far().outcome), (Ask::Done, TestOutcome::Inconclusive));
    assert_eq!(procedure.so_far().reason, Some(GivenUp::Elsewhere.to_string()));
}

#[test]
fn no_throughput_is_a_reason_not_to_run() {
    for test in ALL {
        let plan = plan(test.name(), "");
        let reason = for_test(test, &plan, &setting(None)).err();
        assert_eq!(reason.is_some(), Plan::default().needs_throughput(test), "{test}: {reason:?}");
    }
}
