//! What the label of a test says of what was really done.

use std::time::Duration;

use units::{Fps, FrameSize};

use super::device::{drive, plan, setting, Device, LINE};
use crate::{
    label::{self, LabelFacts},
    plan::{Test, ValidPlan},
    procedure::{Found, Reset, ResetTrial, Setting, TestOutcome},
    result::{Compliance, StandardLabel},
};

/// A device outside that was taught as the standard has it.
const TAUGHT: LabelFacts = LabelFacts {
    software_ports: false,
    learning_wait: Some(Duration::from_secs(2)),
    mix: None,
    aside_share: None,
    repeated: 0,
    several_placements: false,
    simulated: false,
};

fn label(test: Test, plan: &ValidPlan, setting: &Setting, found: &Found) -> (StandardLabel, Compliance) {
    label::procedure(test, plan, setting, found, &TAUGHT)
}

/// The departures that another label has not.
fn beyond(label: &StandardLabel, whole: &StandardLabel) -> String {
    let more = label.departures.iter().filter(|d| !whole.departures.contains(d));
    more.map(String::as_str).collect::<Vec<_>>().join("\n")
}

#[test]
fn an_overload_that_is_cut_short_departs() {
    let plan = plan("recovery", "");
    let at = |throughput: f64, max: f64| {
        let setting = Setting { max: Fps::from_raw(max), ..setting(Some(throughput)) };
        let (findings, _) = drive(&mut Device::new(throughput, 0.0), Test::Recovery, &plan, &setting);
        label(Test::Recovery, &plan, &setting, &findings.found).0
    };
    let whole = at(9.5e6, LINE);
    insta::assert_snapshot!(whole.departures.join("\n"), @r"
    frame sizes 128, 256, 512, 1024, 1280, 1518 of RFC 2544 §9.1 left out
    no routing update to a router before each trial (RFC 2544 §23 a)
    ");
    // The highest load of the tester or the plan, well below both 110 % and the line rate.
    insta::assert_snapshot!(beyond(&at(9.5e6, 10e6), &whole), @"an overload of 105.26 % instead of 110 % of the throughput");
    // The medium may.
    let medium = at(14e6, LINE);
    assert_eq!(medium.departures, whole.departures);
    insta::assert_snapshot!(beyond(&at(14e6, 14.1e6), &whole), @"an overload of 100.71 % instead of the line rate (14.88 Mpps)");
}

#[test]
fn an_overload_beyond_110_percent_departs_unless_the_medium_is_the_least() {
    let plan = plan("recovery", "recovery.overload_percent = 150");
    let at = |throughput: f64| {
        let setting = setting(Some(throughput));
        let (findings, _) = drive(&mut Device::new(throughput, 0.0), Test::Recovery, &plan, &setting);
        label(Test::Recovery, &plan, &setting, &findings.found).0
    };
    // At 14 Mpps it is the medium that is the least.
    insta::assert_snapshot!(at(14e6).departures.join("\n"), @r"
    frame sizes 128, 256, 512, 1024, 1280, 1518 of RFC 2544 §9.1 left out
    no routing update to a router before each trial (RFC 2544 §23 a)
    ");
    insta::assert_snapshot!(beyond(&at(5e6), &at(14e6)), @"an overload of 150 % instead of 110 % of the throughput");
}

#[test]
fn a_reset_names_its_event_and_what_it_lacks() {
    let told = |more: &str, size: u32| {
        let plan = plan("reset", more);
        let setting = Setting { frame_size: FrameSize::new(size).unwrap().into(), ..setting(Some(1e6)) };
        let repetitions = plan.reset.as_ref().map_or(1, |table| table.repetitions);
        let trials = vec![ResetTrial::default(); repetitions as usize];
        let found = Found::Reset(Reset { trials, ..Reset::default() });
        let (label, compliance) = label(Test::Reset, &plan, &setting, &found);
        assert_eq!(compliance, Compliance::Departs);
        label
    };
    let command = "reset.command = ['systemctl', 'restart', 'vswitch']";
    let short = told(&format!("{command}\nreset.at = '10s'\nreset.repetitions = 1"), 64);
    let whole = told(command, 64);
    assert_eq!(whole.departures.len() + 2, short.departures.len());
    let large = told(command, 128);
    let quick = told(&format!("{command}\nreset.at = '500ms'\nreset.duration = '5s'"), 64);
    let more = [&short, &large, &quick].map(|label| beyond(label, &whole));
    let mut names = vec![short.name];
    for event in ["link", "command"] {
        let label = told(&format!("reset.event = '{event}'\nreset.command = ['{}']", "x".repeat(200)), 64);
        assert!(label.name.ends_with("x ...") && label.name.len() < 200, "{label:?}");
        names.push(label.name);
    }
    insta::assert_snapshot!(names.join("\n"), @r"
    RFC 2544 §26.6, RFC 6201 §4.2.2 process reset; event: process, by systemctl restart vswitch
    RFC 2544 §26.6 reset; event: link down and up, by xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx ...
    RFC 2544 §26.6 reset; event: command, by xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx ...
    ");
    insta::assert_snapshot!(more.join("\n"), @r"
    10 s instead of 15 s of forwarding before the event (RFC 6201 §4.2.2)
    one trial instead of multiple (RFC 6201 §1.4)
    frames of 128 B instead of the smallest of Ethernet, 64 B (RFC 2544 §26.6)
    0.5 s instead of 15 s of forwarding before the event (RFC 6201 §4.2.2)
    trials of 5 s instead of 60 s (RFC 2544 §24)
    ");
}

#[test]
fn a_burst_as_long_as_the_longest_tried_is_no_answer_of_rfc_9004() {
    let plan = plan("back-to-back", "");
    let (findings, _) = drive(&mut Device::new(10e6, 1e8), Test::BackToBack, &plan, &setting(Some(10e6)));
    assert_eq!(findings.outcome, TestOutcome::AtMaximum);
    let (told, compliance) = label(Test::BackToBack, &plan, &setting(Some(10e6)), &findings.found);
    assert_eq!(compliance, Compliance::Departs);
    let limited = told;
    // All of them, well below the limit.
    let (findings, _) = drive(&mut Device::new(10e6, 1024.0), Test::BackToBack, &plan, &setting(Some(10e6)));
    let (told, compliance) = label(Test::BackToBack, &plan, &setting(Some(10e6)), &findings.found);
    assert_eq!(compliance, Compliance::Conditional, "{told:?}");
    insta::assert_snapshot!(format!("{}\n{}", limited.name, beyond(&limited, &told)), @r"
    RFC 9004 §6 back-to-back frames: TST009 §12.3.2 binary search, N=1, step 1, bursts up to 29761904 frames (2 s)
    1 search instead of 50 (RFC 2544 §26.4; RFC 9004 leaves N open)
    the figure is at or near the longest burst tried: repeat with longer bursts (RFC 9004 §6.2)
    ");
    insta::assert_snapshot!(told.departures.join("\n"), @r"
    the search sets the length of a burst, instead of trials of 2 s (RFC 2544 §26.4, before RFC 9004)
    frame sizes 128, 256, 512, 1024, 1280, 1518 of RFC 2544 §9.1 left out
    no routing update to a router before each trial (RFC 2544 §23 a)
    ");
    insta::assert_snapshot!(told.name, @"RFC 9004 §6 back-to-back frames: TST009 §12.3.2 binary search, N=50, step 1, bursts up to 29761904 frames (2 s)");
}

#[test]
fn a_limit_that_the_tester_lowers_is_told() {
    let plan = plan("back-to-back", "");
    let mut device = Device { longest: 100_000, ..Device::new(10e6, 1e8) };
    let (findings, _) = drive(&mut device, Test::BackToBack, &plan, &setting(Some(10e6)));
    let Found::BackToBack(found) = &findings.found else { panic!("{findings:?}") };
    let limit = found.limit_frames;
    assert!(findings.outcome == TestOutcome::TesterLimited && limit <= 100_000, "{found:?}");
    let (told, compliance) = label(Test::BackToBack, &plan, &setting(Some(10e6)), &findings.found);
    let tried = format!("{limit} frames ({} s)", (limit as f64 / LINE * 1e6).round() / 1e6);
    assert!(told.name.ends_with(&tried), "{told:?}");
    assert!(told.departures.iter().any(|d| d.contains(&tried)), "{told:?}");
    insta::assert_snapshot!(told.departures.join("\n").replace(&tried, "[tried]"), @r"
    1 search instead of 50 (RFC 2544 §26.4; RFC 9004 leaves N open)
    bursts of at most [tried] instead of 2 s: the tester cannot send longer bursts
    the figure is at or near the longest burst tried: repeat with longer bursts (RFC 9004 §6.2)
    the search sets the length of a burst, instead of trials of 2 s (RFC 2544 §26.4, before RFC 9004)
    frame sizes 128, 256, 512, 1024, 1280, 1518 of RFC 2544 §9.1 left out
    no routing update to a router before each trial (RFC 2544 §23 a)
    ");
    assert_eq!(compliance, Compliance::Departs);
}

#[test]
fn a_test_that_goes_by_a_goal_tells_what_the_goal_tolerates() {
    let of = |more: &str| {
        let plan = plan("recovery", more);
        let setting = setting(Some(9.5e6));
        let (findings, _) = drive(&mut Device::new(9.5e6, 0.0), Test::Recovery, &plan, &setting);
        label(Test::Recovery, &plan, &setting, &findings.found)
    };
    let without = of("").0;
    let going = |goals: &str| {
        let (label, compliance) = of(&format!("search.method = 'mlrsearch'\nsearch.goals = {goals}"));
        (beyond(&label, &without), compliance)
    };
    let (csit, compliance) = going("'csit'");
    assert_eq!(compliance, Compliance::Conditional);
    insta::assert_snapshot!(csit, @r"
    the throughput used comes from the first goal of MLRsearch, not from RFC 2544 §26.1
    the throughput used tolerates more loss in trials of up to 50 % of the time
    the throughput used comes from trials of 1 s instead of 60 s
    ");
    let (pdr, compliance) = going("[{ name = 'PDR', loss_ratio = '0.5%' }]");
    assert_eq!(compliance, Compliance::Departs);
    insta::assert_snapshot!(pdr, @r"
    the throughput used comes from the first goal of MLRsearch, not from RFC 2544 §26.1
    the throughput used tolerates a loss of 0.5 %
    the throughput used tolerates more loss in trials of up to 50 % of the time
    the throughput used comes from trials of 1 s instead of 60 s
    ");
    let (strict, compliance) = going("'rfc2544'");
    assert_eq!((strict.lines().count(), compliance), (1, Compliance::Conditional), "{strict}");
}

#[test]
fn a_forwarding_rate_is_of_a_device_that_was_taught() {
    let plan = plan("forwarding-rate", "");
    let rate = |device: &mut Device, setting: &Setting, facts: &LabelFacts| {
        let (findings, _) = drive(device, Test::ForwardingRate, &plan, setting);
        label::procedure(Test::ForwardingRate, &plan, setting, &findings.found, facts)
    };
    let throughput = setting(Some(9e6));
    let (told, compliance) = rate(&mut Device::new(9e6, 0.0), &throughput, &TAUGHT);
    assert_eq!(compliance, Compliance::Conditional, "{told:?}");
    let whole = told;
    insta::assert_snapshot!(whole.departures.join("\n"), @"frame sizes 128, 256, 512, 1024, 1280, 1518 of RFC 2544 §9.1 left out");
    let untaught = LabelFacts { learning_wait: None, ..TAUGHT };
    let (told, compliance) = rate(&mut Device::new(9e6, 0.0), &throughput, &untaught);
    insta::assert_snapshot!(beyond(&told, &whole), @"no learning frames before each trial (RFC 2889 §5.6.3.1)");
    assert_eq!(compliance, Compliance::Departs);
    // The tester gives up on the way, and what it offered last is the maximum offered load.
    let mut slow = Device { tester: 11e6, ..Device::new(9e6, 0.0) };
    let (told, _) = rate(&mut slow, &throughput, &TAUGHT);
    insta::assert_snapshot!(beyond(&told, &whole), @r"
    the maximum offered load is 10.49 Mpps, below the line rate
    the maximum offered load was lowered from 14.88 Mpps: the tester cannot offer more
    ");
}
