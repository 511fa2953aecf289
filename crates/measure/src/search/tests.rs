//! Searches against simulated devices of known truth.

use std::collections::BTreeMap;

use proptest::prelude::*;
use units::{Fps, FrameSize, LinkSpeed, Ratio};

use super::*;
use crate::{
    attempts::{broken, GivenUp},
    plan::{Method, Placements, Plan, PlanError},
    result::Outcome,
    sim::{SimDut, SimPlacement, SimSetup},
    trial::{Purpose, Rule, TrialRecord, TrialSpec, Violation},
};

fn config(method: Method) -> SearchConfig {
    let mut plan = Plan::default();
    plan.search.upper = Some("10Mpps".parse().unwrap());
    if method != Method::Mlrsearch {
        plan.search.precision = "1%".parse().unwrap();
        plan.search.duration = std::time::Duration::from_secs(1);
    }
    plan.search.method = method;
    SearchConfig::for_size(&plan.validate().unwrap(), FrameSize::MIN, None, None).unwrap()
}

fn run(config: &SearchConfig, dut: &mut SimDut) -> (Answer, Vec<TrialRecord>) {
    let (answer, trials) = dut.drive(&mut fresh(config), 2 * config.max_trials);
    (answer.expect("searches end"), trials)
}

/// `10000000 fail, 5050000 pass, ...` and how it ended.
fn sequence(answer: &Answer, trials: &[TrialRecord]) -> String {
    let one = |t: &TrialRecord| {
        let verdict = match (t.valid(), t.lost()) {
            (false, _) => "invalid".to_owned(),
            (true, 0) => "pass".to_owned(),
            (true, lost) => format!("lost {lost}"),
        };
        let again = if t.spec.purpose == Purpose::Verification { " again" } else { "" };
        format!("{}{again}: {verdict}", t.spec.load_fps.get())
    };
    let lines: Vec<_> = trials.iter().map(one).collect();
    let shown = |load: Option<Fps>| load.map_or("none".to_owned(), |l| l.get().to_string());
    let (low, high) = (shown(answer.throughput), shown(answer.upper_bound));
    format!("{}\n{:?} {low} .. {high}", lines.join("\n"), answer.outcome)
}

fn snapshot(config: &SearchConfig, dut: &mut SimDut) -> String {
    let (answer, trials) = run(config, dut);
    sequence(&answer, &trials)
}

#[test]
fn rfc2544_starts_at_the_top_and_bisects() {
    insta::assert_snapshot!(snapshot(&config(Method::Rfc2544), &mut SimDut::new(3.3e6, 1)), @r"
    10000000: lost 6699744
    5000500: lost 1700244
    2500750: pass
    3750625: lost 450369
    3125688: pass
    3438157: lost 137901
    3281923: pass
    3360040: lost 59784
    3320982: lost 20726
    3301453: lost 1197
    Found 3281923 .. 3301453
    ");
}

#[test]
fn tst009_walks_its_array() {
    insta::assert_snapshot!(snapshot(&config(Method::Tst009), &mut SimDut::new(3.3e6, 1)), @r"
    5000000: lost 1699744
    2500000: pass
    3700000: lost 399744
    3100000: pass
    3400000: lost 99744
    3200000: pass
    3300000: pass
    Found 3300000 .. 3400000
    ");
}

#[test]
fn tst009_verifies_losses_and_gives_up_on_large_ones() {
    let mut config = config(Method::Tst009);
    config.retries = 3;
    config.retry_max_lost = Some(5000);
    config.precision = "10%".parse().unwrap();
    let mut dut = SimSetup { accidents: (0.6, 20), ..SimSetup::new(6.5e6, 9) }.start();
    let (answer, trials) = run(&config, &mut dut);
    insta::assert_snapshot!(sequence(&answer, &trials), @r"
    5000000: pass
    8000000: lost 1499744
    6000000: lost 9
    6000000 again: lost 4
    6000000 again: lost 2
    6000000 again: pass
    7000000: lost 499744
    Found 6000000 .. 7000000
    ");
    let retried: u32 = answer.retries.iter().map(|r| r.1).sum();
    assert_eq!(retried as usize, trials.iter().filter(|t| t.spec.purpose == Purpose::Verification).count());
}

#[test]
fn the_ends_of_the_range_have_their_names() {
    for method in [Method::Rfc2544, Method::Tst009] {
        let config = config(method);
        let (answer, _) = run(&config, &mut SimDut::new(2e7, 1));
        assert_eq!((answer.outcome, answer.throughput), (Outcome::AtMaximum, Some(config.upper)), "{method:?}");

        let by_tester = SearchConfig { upper_is_tester: true, ..config.clone() };
        assert_eq!(run(&by_tester, &mut SimDut::new(2e7, 1)).0.outcome, Outcome::TesterLimited);
        assert_eq!(run(&by_tester, &mut SimDut::new(5e6, 1)).0.outcome, Outcome::Found);

        let low = SearchConfig { lower: Fps::new(1e6).unwrap(), ..config.clone() };
        let (answer, trials) = run(&low, &mut SimDut::new(5e5, 1));
        assert_eq!((answer.outcome, answer.throughput), (Outcome::BelowMinimum, None));
        assert_eq!(answer.upper_bound, Some(low.lower), "the lowest load itself was tried");
        assert!(trials.iter().all(|t| t.spec.load_fps >= low.lower));

        let (answer, trials) = run(&config, &mut SimDut::new(0.0, 1));
        assert_eq!((answer.outcome, trials.len()), (Outcome::NoTraffic, 2));
        assert!(trials[1].spec.load_fps.get() <= 1e5);
    }
}

/// The searches of the three methods, each from 0 to 10 Mpps.
fn all_methods() -> [SearchConfig; 3] {
    [Method::Rfc2544, Method::Tst009, Method::Mlrsearch].map(config)
}

/// Whether the answer tells of trials in which the device was silent.
fn tells_of_silence(answer: &Answer) -> bool {
    let is_silence = |reason: &Reason| {
        use GivenUp::{Gone, NoTraffic, Silent};
        matches!(reason, Reason::WasDown { .. } | Reason::GivenUp(NoTraffic { .. } | Silent { .. } | Gone { .. }))
    };
    answer.reasons.iter().any(is_silence)
}

/// Of a device that is away from when to when: the search finds the truth, or says that it cannot.
#[track_caller]
fn assert_truth(config: &SearchConfig, setup: SimSetup, must_find: bool) -> Answer {
    let (capacity, dead) = (setup.placements[0].capacity, setup.dead.unwrap());
    let (answer, trials) = run(config, &mut setup.start());
    let what = format!("{:?} {dead:?}: {answer:?}", config.method);
    match answer.outcome {
        Outcome::Found => {
            let (low, high) = (answer.throughput.unwrap().get(), answer.upper_bound.unwrap().get());
            let width = 2.0 * config.precision.get() * config.upper.get();
            assert!(low <= capacity * 1.001 && high >= capacity * 0.999 && high - low <= width, "{what}");
        }
        Outcome::Inconclusive | Outcome::NoTraffic => assert!(!must_find && tells_of_silence(&answer), "{what}"),
        _ => panic!("{what}"),
    }
    let silent = trials.iter().find(|t| t.lost() > 0 && t.directions[0].received == 0);
    assert!(silent.is_none() || tells_of_silence(&answer), "{what}");
    run(config, &mut SimSetup { dead: Some(dead), ..SimSetup::new(capacity, 1) }.start()).0
}

#[test]
fn a_device_that_dies_and_comes_back_gets_its_own_throughput() {
    for config in all_methods() {
        let s = config.duration_s;
        // Three trials long, from the end of the second trial or within it; then one that does not come back.
        for (from, to) in [(2.0, 5.0), (1.3, 4.2), (1.9, 3.0), (0.0, 1.5), (3.5, 5.5)] {
            assert_truth(&config, SimSetup { dead: Some((from * s, to * s)), ..SimSetup::new(6.2e6, 1) }, true);
        }
        let gone = assert_truth(&config, SimSetup { dead: Some((2.5 * s, 1e9)), ..SimSetup::new(6.2e6, 1) }, false);
        assert_eq!(gone.outcome, Outcome::Inconclusive, "{gone:?}");
        assert_eq!(gone.reasons, [GivenUp::Gone { first: 4, last: 9 }.into()]);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// Not of one that dies in the last trial: nothing after it shows that it did.
    #[test]
    fn whenever_a_device_is_away_for_some_trials_the_truth_is_found_or_none(
        from in 0.0f64..4.0, trials in 2.0f64..9.0, capacity in 1e6f64..9e6, method in 0usize..2,
    ) {
        let config = &all_methods()[method];
        let dead = (from * config.duration_s, (from + trials) * config.duration_s);
        assert_truth(config, SimSetup { dead: Some(dead), ..SimSetup::new(capacity, 1) }, false);
    }
}

#[test]
fn a_device_that_forwards_nothing_in_overload_is_no_dead_one() {
    for config in all_methods() {
        let mut search = fresh(&config);
        let (mut dut, mut made) = (SimDut::new(4e6, 1), Vec::new());
        let answer = loop {
            let spec = match search.next() {
                Step::Run(spec) => spec,
                Step::Done(answer) => break answer,
            };
            let mut trial = dut.run(&spec);
            if spec.load_fps.get() > 6e6 {
                let all = &mut trial.directions[0];
                (all.received, all.lost) = (0, all.sent);
            }
            search.report(&trial);
            made.push(trial);
        };
        assert_eq!(answer.outcome, Outcome::Found, "{:?} {answer:?}", config.method);
        assert!((3.9e6..=4.01e6).contains(&answer.throughput.unwrap().get()), "{:?} {answer:?}", config.method);
        assert_eq!(answer.reasons, []);
        let quiet = run(&config, &mut SimDut::new(4e6, 1)).1.len();
        let mut silent: Vec<_> = made.iter().map(|t| t.spec.load_fps.get() as u64).filter(|&l| l > 6_000_000).collect();
        silent.dedup();
        assert!(made.len() <= quiet + 3 * silent.len(), "{:?}: {} trials for {quiet}", config.method, made.len());
    }
}

#[test]
fn a_dut_just_above_the_lowest_load_is_found_there() {
    let config = SearchConfig { lower: Fps::new(1e6).unwrap(), ..config(Method::Rfc2544) };
    let (answer, _) = run(&config, &mut SimSetup { queue: 0, ..SimSetup::new(1_000_500.0, 1) }.start());
    assert_eq!((answer.outcome, answer.throughput), (Outcome::Found, Some(config.lower)));
}

#[test]
fn tolerated_loss_moves_the_answer() {
    let config = SearchConfig { tolerated_loss: "10%".parse().unwrap(), ..config(Method::Rfc2544) };
    let (answer, _) = run(&config, &mut SimDut::new(4.5e6, 1));
    let found = answer.throughput.unwrap().get();
    assert!((4.95e6..=5.01e6).contains(&found), "{found}");
}

#[test]
fn a_load_beyond_the_tester_lowers_the_top() {
    for method in [Method::Rfc2544, Method::Tst009] {
        let config = config(method);
        let limited = SimSetup { tester_max: 6e6, ..SimSetup::new(2e7, 1) }.start();
        let (answer, trials) = run(&config, &mut limited.clone());
        assert_eq!(answer.outcome, Outcome::TesterLimited, "{method:?}");
        let found = answer.throughput.unwrap().get();
        assert!((5.5e6..=6e6).contains(&found), "{found}");
        assert!(trials.iter().filter(|t| !t.valid()).count() <= 6);
        assert!(trials.iter().filter(|t| !t.valid()).all(|t| t.violations[0].rule == Rule::TesterShort));
        // The DUT's own limit below the tester's is still found.
        let (answer, _) = run(&config, &mut SimSetup { tester_max: 6e6, ..SimSetup::new(2e6, 1) }.start());
        assert_eq!(answer.outcome, Outcome::Found);
        assert!((1.95e6..=2.02e6).contains(&answer.throughput.unwrap().get()));
    }
    insta::assert_snapshot!(snapshot(&config(Method::Rfc2544), &mut SimSetup { tester_max: 6e6, ..SimSetup::new(2e7, 1) }.start()), @r"
    10000000: invalid
    10000000: invalid
    10000000: invalid
    5580000: pass
    TesterLimited 5580000 .. none
    ");
}

/// A trial of a tester that offers only this share of each load.
fn offered_in_part(dut: &mut SimDut, spec: &TrialSpec, share: f64) -> TrialRecord {
    let offered = TrialSpec { load_fps: Fps::from_raw(spec.load_fps.get() * share), ..*spec };
    let mut trial = dut.run(&offered);
    trial.spec = *spec;
    for d in &mut trial.directions {
        d.skipped += (spec.load_fps.get() * spec.duration_s).round() as u64 - d.intended;
        d.intended += d.skipped;
    }
    if share < 1.0 && !spec.at_offered {
        trial.violations = vec![Violation { rule: Rule::TesterShort, text: String::new() }];
    }
    trial
}

#[test]
fn a_trial_that_passes_counts_at_the_load_that_was_offered() {
    // Each load is offered to 98 %, so that none between 0.98 of the device's and that is.
    let answer_of = |method, share: f64| {
        let config = SearchConfig { precision: Ratio::new(0.005).unwrap(), ..config(method) };
        let (mut search, mut dut) = (fresh(&config), SimDut::new(3.3e6, 1));
        loop {
            match search.next() {
                Step::Run(spec) => search.report(&offered_in_part(&mut dut, &spec, share)),
                Step::Done(answer) => break answer,
            }
        }
    };
    let exact = answer_of(Method::Rfc2544, 1.0);
    assert_eq!((exact.outcome, &exact.reasons[..]), (Outcome::Found, &[][..]));
    let short = answer_of(Method::Rfc2544, 0.98);
    let (lower, upper) = (short.throughput.unwrap().get(), short.upper_bound.unwrap().get());
    assert_eq!(short.outcome, Outcome::Found);
    assert!((3.2e6..=3.3e6).contains(&lower) && (3.3e6..=3.3e6 / 0.98 * 1.01).contains(&upper), "{short:?}");
    // How wide that is, is said: the load of a trial that fails is the one asked for.
    assert!(matches!(short.reasons[..], [Reason::Precision { reached, .. }] if reached.get() > 0.015), "{short:?}");
    // A tester that was away does not limit the search: what was shown stands.
    let away = |share: f64| {
        let (mut search, mut dut) = (fresh(&config(Method::Rfc2544)), SimDut::new(3.3e6, 1));
        loop {
            match search.next() {
                Step::Run(spec) => {
                    let mut trial = offered_in_part(&mut dut, &spec, share);
                    trial.interference.lcores[0].total_gap_ns = (spec.duration_s * (1.0 - share) * 1e9) as u64;
                    search.report(&trial);
                }
                Step::Done(answer) => break answer,
            }
        }
    };
    let (disturbed, quiet) = (away(0.98), away(1.0));
    assert_eq!([disturbed.outcome, quiet.outcome], [Outcome::Found; 2], "{disturbed:?}");
    assert!((3.1e6..=3.3e6).contains(&disturbed.throughput.unwrap().get()), "{disturbed:?}");
    // TST009 has loads of its own: it repeats them, and lowers the highest.
    let steps = answer_of(Method::Tst009, 0.98);
    assert!(steps.throughput.is_none_or(|fps| fps.get() <= 3.3e6), "{steps:?}");
}

#[test]
fn a_tester_below_the_lowest_load_has_no_answer() {
    for method in [Method::Rfc2544, Method::Tst009] {
        let config = SearchConfig { lower: Fps::new(7e6).unwrap(), ..config(method) };
        let (answer, _) = run(&config, &mut SimSetup { tester_max: 6e6, ..SimSetup::new(2e7, 1) }.start());
        assert_eq!((answer.outcome, answer.throughput), (Outcome::Inconclusive, None));
    }
}

#[test]
fn invalid_trials_are_repeated_within_a_bound_then_inconclusive() {
    let config = config(Method::Rfc2544);
    let (answer, trials) = run(&config, &mut SimSetup { tester_stalls: 1.0, ..SimSetup::new(3e6, 1) }.start());
    assert_eq!((answer.outcome, answer.throughput), (Outcome::Inconclusive, None));
    assert_eq!((trials.len(), answer.invalid_trials), (11, 11));
    assert!(trials.iter().all(|t| t.spec == trials[0].spec));
    let (load, last) = (trials[0].spec.load_fps, broken(&trials[10]));
    assert_eq!(answer.reasons, [GivenUp::Invalid { trials: 11, load, last }.into()]);
    assert!(answer.trials.is_empty());
}

#[test]
fn a_machine_that_disturbs_every_trial_is_given_up_soon() {
    for method in [Method::Rfc2544, Method::Tst009] {
        let mut search = fresh(&config(method));
        let (mut dut, mut made) = (SimDut::new(3e6, 1), 0);
        let answer = loop {
            let spec = match search.next() {
                Step::Run(spec) => spec,
                Step::Done(answer) => break answer,
            };
            made += 1;
            let mut trial = dut.run(&spec);
            let late = &mut trial.directions[0];
            late.skipped = late.intended / 50;
            trial.interference.lcores[0].total_gap_ns = (spec.duration_s * 3e7) as u64;
            trial.violations = vec![Violation { rule: Rule::TesterShort, text: String::new() }];
            search.report(&trial);
        };
        assert_eq!((answer.outcome, answer.throughput, made), (Outcome::Inconclusive, None, 18), "{method:?}");
        assert_eq!(answer.reasons, [GivenUp::Disturbed.into()]);
    }
}

#[test]
fn disturbed_trials_do_not_change_the_answer() {
    let config = config(Method::Rfc2544);
    let (quiet, _) = run(&config, &mut SimDut::new(3.3e6, 1));
    let (noisy, trials) = run(&config, &mut SimSetup { tester_stalls: 0.4, ..SimSetup::new(3.3e6, 7) }.start());
    assert!(trials.iter().any(|t| !t.valid()));
    assert_eq!((noisy.outcome, noisy.throughput), (quiet.outcome, quiet.throughput));
}

#[test]
fn trials_and_time_are_bounded() {
    let few = SearchConfig { max_trials: 4, ..config(Method::Rfc2544) };
    let (answer, trials) = run(&few, &mut SimDut::new(3e6, 1));
    assert_eq!((answer.outcome, trials.len()), (Outcome::Inconclusive, 4));
    assert!(answer.throughput.is_some() && answer.upper_bound.is_some(), "the bounds so far are kept");
    let short = SearchConfig { timeout_s: 20.0, ..config(Method::Rfc2544) };
    let (answer, trials) = run(&short, &mut SimDut::new(3e6, 1));
    // Each takes 1 s and 7 s of waits.
    assert_eq!((answer.outcome, trials.len()), (Outcome::Inconclusive, 3));
    assert_eq!(answer.reasons, [GivenUp::TooLong { key: "search.timeout", most_s: 20.0 }.into()]);
}

#[test]
fn asking_again_is_the_same_and_strange_reports_are_ignored() {
    let mut search = fresh(&config(Method::Rfc2544));
    let Step::Run(spec) = search.next() else { panic!("a trial first") };
    assert_eq!(search.next(), Step::Run(spec));
    let other = TrialSpec { load_fps: Fps::new(5.0).unwrap(), ..spec };
    search.report(&SimDut::new(1e9, 1).run(&other));
    assert_eq!(search.next(), Step::Run(spec));
    assert_eq!(search.so_far().outcome, Outcome::Interrupted);
}

#[test]
fn the_trials_left_are_those_made() {
    for method in [Method::Rfc2544, Method::Tst009] {
        let (config, mut dut) = (config(method), SimDut::new(3.3e6, 1));
        let mut search = fresh(&config);
        let mut left = Vec::new();
        while let Step::Run(spec) = search.next() {
            left.push(config.trials_left(&search.so_far()));
            search.report(&dut.run(&spec));
        }
        let made = left.len() as u32;
        assert!(left.iter().enumerate().all(|(i, &l)| (made - i as u32).abs_diff(l) <= 2), "{left:?} of {made}");
    }
}

#[test]
fn a_config_needs_bounds_that_agree() {
    let size = FrameSize::MIN;
    let ten_g: LinkSpeed = "10G".parse().unwrap();
    let plan = Plan::default().validate().unwrap();
    let for_size = |link, most: Option<f64>| SearchConfig::for_size(&plan, size, link, most.map(Fps::from_raw));
    insta::assert_snapshot!(for_size(None, None).unwrap_err(), @"search.upper = (absent): must be given: the link's speed is not known and the self-test is off (or add --link 10G)");
    let by_link = for_size(Some(ten_g), Some(5e7)).unwrap();
    assert_eq!((by_link.upper.get() as u64, by_link.upper_is_tester), (14_880_952, false));
    let by_tester = for_size(Some(ten_g), Some(5e6)).unwrap();
    assert_eq!((by_tester.upper.get() as u64, by_tester.upper_is_tester), (5_000_000, true));

    let mut above = Plan::default();
    above.search.lower = "50%".parse().unwrap();
    let above = above.validate().unwrap();
    // A tester below the lowest load is not a contradiction: the search finds that nobody can offer it.
    let config = SearchConfig::for_size(&above, size, Some(ten_g), Some(Fps::from_raw(1e6))).unwrap();
    assert!(config.upper_is_tester && config.lower < config.upper);
    for method in [Method::Rfc2544, Method::Tst009] {
        let config = SearchConfig { method, ..config.clone() };
        let (answer, _) = run(&config, &mut SimSetup { tester_max: 1e6, ..SimSetup::new(2e7, 1) }.start());
        assert_eq!((answer.outcome, answer.throughput), (Outcome::Inconclusive, None), "{method:?}");
    }
    let mut crossed = Plan::default();
    (crossed.search.lower, crossed.search.upper) = ("50%".parse().unwrap(), Some("1Mpps".parse().unwrap()));
    let error = crossed.validate().and_then(|p| SearchConfig::for_size(&p, size, Some(ten_g), None)).unwrap_err();
    assert!(matches!(&error, PlanError::Value { key, .. } if key == "search.lower"), "{error:?}");
    insta::assert_snapshot!(error, @"search.lower = 50%: must be below search.upper = 1Mpps, 1.000 Mpps at 64 bytes");
}

fn two_placements(flip: f64, seed: u64) -> SimSetup {
    let placements = vec![
        SimPlacement { core_to_core_ns: 60.0, capacity: 8e6 },
        SimPlacement { core_to_core_ns: 340.0, capacity: 2e6 },
    ];
    SimSetup { placements, flip, flip_within: flip / 4.0, ..SimSetup::new(0.0, seed) }
}

/// Every bound of an answer stems from valid trials of its own placement, and no trial serves two.
fn assert_unmixed(answer: &Answer, trials: &[TrialRecord]) {
    let by_number: BTreeMap<u32, _> = trials.iter().map(|t| (t.number, t)).collect();
    let own: Vec<_> = answer.trials.iter().map(|n| by_number[n]).collect();
    for t in &own {
        assert!(t.valid());
        assert_eq!(t.interference.placement, answer.placement);
    }
    if let Some(found) = answer.throughput {
        // At the load that was offered.
        let at = |t: &&&TrialRecord| t.spec.load_fps == found || t.offered_load().get().floor() == found.get();
        assert!(own.iter().filter(at).any(|t| t.lost() == 0 && Some(t.number) == answer.best_trial));
    }
    if let Some(upper) = answer.upper_bound {
        assert!(own.iter().any(|t| t.spec.load_fps == upper && t.lost() > 0));
    }
}

#[test]
fn each_placement_gets_its_own_search() {
    let config = config(Method::Rfc2544);
    let mut dut = two_placements(0.3, 5).start();
    let mut search = for_config(config);
    let (answer, trials) = dut.drive(&mut search, 200);
    let answer = answer.unwrap();
    assert_eq!(answer.outcome, Outcome::Found);
    assert_unmixed(&answer, &trials);
    let capacity =
        if dut.classifier().placement(answer.placement.unwrap()).unwrap().core_to_core_ns < 100.0 { 8e6 } else { 2e6 };
    let found = answer.throughput.unwrap().get();
    assert!((capacity * 0.985..=capacity * 1.001).contains(&found), "{found} of {capacity}");
    let others = search.others(dut.classifier());
    assert_eq!(others.len(), 1);
    assert_eq!(others[0].outcome, Outcome::Interrupted);
    assert_ne!(Some(others[0].placement.class), answer.placement);
}

#[test]
fn cores_that_never_rest_end_inconclusive() {
    let config = config(Method::Rfc2544);
    let mut dut = SimSetup { flip_within: 1.0, ..two_placements(0.0, 1) }.start();
    let (answer, trials) = dut.drive(&mut for_config(config), 200);
    let answer = answer.unwrap();
    assert_eq!((answer.outcome, answer.placement), (Outcome::Inconclusive, None));
    assert_eq!((trials.len(), answer.invalid_trials), (11, 11));
    let last = broken(trials.last().unwrap());
    assert_eq!(answer.reasons, [GivenUp::Unplaced { trials: 11, last }.into()]);
}

#[test]
fn placements_taken_together_answer_for_the_worst() {
    let mut dut = SimSetup { flip_within: 1.0, ..two_placements(0.0, 1) }.start().with_placements(Placements::Combined);
    let mut search = for_config(config(Method::Rfc2544));
    let (answer, trials) = dut.drive(&mut search, 200);
    let answer = answer.unwrap();
    assert_eq!((answer.outcome, answer.placement, answer.invalid_trials), (Outcome::Found, Some(0), 0));
    assert_unmixed(&answer, &trials);
    assert!(answer.throughput.unwrap().get() < 6e6, "no more than the two placements' mean: {answer:?}");
    assert!(search.others(dut.classifier()).is_empty());
}

#[test]
fn one_core_is_one_placement() {
    let config = config(Method::Rfc2544);
    let (plain, _) = run(&config, &mut SimDut::new(3.3e6, 1));
    let (placed, _) = SimDut::new(3.3e6, 1).drive(&mut for_config(config), 200);
    assert_eq!(placed.unwrap(), Answer { placement: Some(0), ..plain });
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn the_capacity_is_found_within_the_precision(
        capacity in 2e5f64..9.9e6, precision in 0.002f64..0.05, tst in any::<bool>(), seed in any::<u64>(), stalls in 0.0f64..0.3,
    ) {
        let mut config = config(if tst { Method::Tst009 } else { Method::Rfc2544 });
        config.precision = precision.try_into().unwrap();
        let (answer, trials) = run(&config, &mut SimSetup { tester_stalls: stalls, ..SimSetup::new(capacity, seed) }.start());
        prop_assert_eq!(answer.outcome, if tst && capacity + 256.0 < 1e7 * precision { Outcome::BelowMinimum } else { Outcome::Found });
        let Some(found) = answer.throughput.map(Fps::get) else { return Ok(()) };
        let upper = answer.upper_bound.unwrap().get();
        // The queue lets a load pass that is above the capacity by so many frames in the second.
        prop_assert!(found <= capacity + 257.0, "{} of {}", found, capacity);
        prop_assert!(upper > capacity && upper > found);
        let width = if tst { 1e7 * precision * 1.000_001 } else { upper * precision * 1.000_001 };
        prop_assert!(upper - found <= width, "{}..{}", found, upper);
        prop_assert!(trials.len() <= 100);
        prop_assert_eq!(answer.trials.len() + answer.invalid_trials as usize, trials.len());
    }

    #[test]
    fn whatever_happens_searches_end_and_never_mix(
        flip in 0.0f64..0.7, stalls in 0.0f64..0.6, accident in 0.0f64..0.5, retries in 0u32..4, tst in any::<bool>(),
        tester_max in 1e5f64..2e7, seed in any::<u64>(), max_trials in 1u32..120,
    ) {
        let mut config = config(if tst { Method::Tst009 } else { Method::Rfc2544 });
        config.retries = if tst { retries } else { 0 };
        config.max_trials = max_trials;
        let mut dut = SimSetup { tester_stalls: stalls, tester_max, accidents: (accident, 50), directions: 2, ..two_placements(flip, seed) }.start();
        let mut search = for_config(config);
        let (answer, trials) = dut.drive(&mut search, max_trials + 1);
        let answer = answer.expect("ends within its bound");
        prop_assert!(trials.len() <= max_trials as usize);
        assert_unmixed(&answer, &trials);
        for other in search.others(dut.classifier()) {
            prop_assert_ne!(Some(other.placement.class), answer.placement);
        }
        if let (Some(found), Some(upper)) = (answer.throughput, answer.upper_bound) {
            prop_assert!(found < upper);
        }
    }
}

#[test]
fn a_plan_of_goals_is_an_mlrsearch() {
    let mut plan = Plan::default();
    plan.search.upper = Some("20Mpps".parse().unwrap());
    plan.search.method = Method::Mlrsearch;
    plan.search.warmup = std::time::Duration::from_secs(2);
    let config = SearchConfig::for_size(&plan.validate().unwrap(), FrameSize::MIN, None, None).unwrap();
    assert_eq!((config.duration_s, config.precision.get(), config.max_trials), (1.0, 0.005, 400));
    let (answer, made) = SimDut::new(3.3e6, 1).drive(&mut for_config(config), 1000);
    let answer = answer.unwrap();
    assert_eq!((made[0].spec.purpose, made[0].spec.duration_s), (Purpose::Warmup, 2.0));
    assert_eq!(answer.goals.iter().map(|g| g.goal.name.as_str()).collect::<Vec<_>>(), ["NDR", "PDR"]);
    assert!(answer.goals.iter().all(|g| g.regularity == mlr::Regularity::Regular));
    assert_eq!((answer.throughput, answer.upper_bound), (answer.goals[0].lower_fps, answer.goals[0].upper_fps));
}

#[test]
fn the_steps_of_tst009_are_shares_of_what_the_tester_offers() {
    // Half a percent of 10 Mpps is more than this tester offers at all.
    let config = config(Method::Tst009);
    let limited = |capacity| SimSetup { tester_max: 40e3, ..SimSetup::new(capacity, 1) }.start();
    let (answer, trials) = run(&config, &mut limited(2e7));
    assert_eq!(answer.outcome, Outcome::TesterLimited);
    assert!((36e3..=40e3).contains(&answer.throughput.unwrap().get()), "{answer:?}");
    assert!(trials.len() < 20, "{}", trials.len());
    // A lowest load that the tester does not reach stays the lowest.
    let config = SearchConfig { lower: Fps::from_raw(50e3), ..config };
    assert_eq!(run(&config, &mut limited(2e7)).0.outcome, Outcome::Inconclusive);
}
