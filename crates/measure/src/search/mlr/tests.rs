//! MLRsearch against simulated devices with a known capacity.

use std::time::Duration;

use proptest::prelude::*;
use units::{Fps, FrameSize, Nanos, Ratio};

use super::{
    classify::{classify, conditional_throughput, Class, Seen},
    *,
};
use crate::{
    result::Outcome,
    search::{Answer, PlacementSearch, SearchConfig},
    sim::{Inversion, SimDut, SimPlacement, SimSetup, Stalls},
    trial::{Purpose, TrialRecord},
};

fn config() -> SearchConfig {
    let mut plan = crate::plan::Plan::default();
    plan.search.upper = Some("20Mpps".parse().unwrap());
    plan.search.max_trials = Some(500);
    SearchConfig::for_size(&plan.validate().unwrap(), FrameSize::MIN, None, None).unwrap()
}

fn dut(text: &str) -> SimDut {
    text.parse::<SimSetup>().unwrap().start()
}

fn run(config: &SearchConfig, goals: &GoalSet, mut dut: SimDut) -> (Answer, Vec<TrialRecord>) {
    let mut search = MlrSearch::new(config.clone(), goals.clone(), 0.0);
    let (answer, trials) = dut.drive(&mut search, 2 * config.max_trials);
    let answer = answer.expect("searches end");
    assert_sound(&answer, &trials);
    (answer, trials)
}

/// The answer follows from the trials: recomputes everything from the records, without the table of the search.
fn assert_sound(answer: &Answer, trials: &[TrialRecord]) {
    let counted: Vec<_> = trials
        .iter()
        .filter(|t| t.valid() && t.spec.purpose == Purpose::Search && answer.trials.contains(&t.number))
        .collect();
    let at = |load: Fps| -> Vec<Seen> {
        let own = counted.iter().filter(|t| t.spec.load_fps == load);
        let seen = |t: &&&TrialRecord| {
            let duration_s = t.spec.duration_s;
            Seen { duration_s, effective_s: duration_s, loss_ratio: t.loss_ratio() }
        };
        own.map(|t| seen(&t)).collect()
    };
    for result in &answer.goals {
        let goal = &result.goal;
        let mut loads: Vec<Fps> = counted.iter().map(|t| t.spec.load_fps).collect();
        loads.sort_by(|a, b| a.partial_cmp(b).unwrap());
        let of = |class| loads.iter().copied().filter(move |&l| classify(goal, &at(l)) == class);
        let upper = of(Class::Upper).next();
        let lower = of(Class::Lower).rfind(|&l| upper.is_none_or(|u| l < u));
        assert_eq!((result.lower_fps, result.upper_fps), (lower, upper), "{}", goal.name);
        let throughput = lower.and_then(|l| conditional_throughput(goal, l, &at(l)));
        assert_eq!(result.conditional_throughput_fps, throughput);
        let own: Vec<_> = counted.iter().filter(|t| [lower, upper].contains(&Some(t.spec.load_fps))).collect();
        assert_eq!(result.trials.len(), own.len());
        assert!((result.trial_s - own.iter().map(|t| t.spec.duration_s).sum::<f64>()).abs() < 1e-6);
        let narrow = || goal.narrow(lower.unwrap().get(), upper.unwrap().get());
        match result.regularity {
            Regularity::Regular => assert!(narrow()),
            Regularity::AtMaximum | Regularity::TesterLimited => assert!(lower.is_some()),
            Regularity::BelowMinimum => assert!(lower.is_none() && upper.is_some()),
            Regularity::Unfinished => assert_ne!(answer.outcome, Outcome::Found),
        }
    }
}

/// `NDR Regular 9.975..10.025 ct 9.975; ...; 34 s in 34 trials`, loads in millions.
fn line(answer: &Answer, trials: &[TrialRecord]) -> String {
    let m = |load: Option<Fps>| load.map_or("none".to_owned(), |l| format!("{:.4}", l.get() / 1e6));
    let one = |g: &GoalResult| {
        let throughput = m(g.conditional_throughput_fps);
        format!("{} {:?} {}..{} ct {throughput}", g.goal.name, g.regularity, m(g.lower_fps), m(g.upper_fps))
    };
    let goals: Vec<_> = answer.goals.iter().map(one).collect();
    let seconds: f64 = trials.iter().map(|t| t.real_duration_s).sum();
    format!("{:?}; {}; {seconds} s in {} trials", answer.outcome, goals.join("; "), trials.len())
}

fn outline(goals: &GoalSet, text: &str) -> String {
    let (answer, trials) = run(&config(), goals, dut(text));
    line(&answer, &trials)
}

#[test]
fn a_clean_dut_takes_one_trial_more_than_the_definition_demands() {
    // 11 s at each of three loads: the upper bound without loss is the lower bound of the goal with 0.5 %.
    insta::assert_snapshot!(outline(&GoalSet::csit(), "sim:capacity=10M"), @r"
    Found; NDR Regular 9.9710..10.0211 ct 9.9710; PDR Regular 10.0211..10.0714 ct 10.0003; 34 s in 34 trials
    ");
}

#[test]
fn noise_costs_little_and_does_not_move_the_answer() {
    insta::assert_snapshot!(
        ["stalls=0.05/s:2000", "stalls=0.3/s:50", "inversion=2M-3M:0.1%", "inversion=9M-10M:0.1%", "drift=-0.1%/min"]
            .map(|noise| outline(&GoalSet::csit(), &format!("sim:capacity=10M,seed=3,{noise}")))
            .join("\n"), @r"
    Found; NDR Regular 9.9710..10.0211 ct 9.9710; PDR Regular 10.0211..10.0714 ct 10.0003; 34 s in 34 trials
    Found; NDR Regular 9.9710..10.0211 ct 9.9710; PDR Regular 10.0211..10.0714 ct 10.0002; 39 s in 39 trials
    Found; NDR Regular 9.9710..10.0211 ct 9.9710; PDR Regular 10.0211..10.0714 ct 10.0003; 34 s in 34 trials
    Found; NDR Regular 8.9870..9.0321 ct 8.9870; PDR Regular 10.0211..10.0714 ct 10.0003; 55 s in 55 trials
    Found; NDR Regular 9.9710..10.0211 ct 9.9710; PDR Regular 10.0211..10.0714 ct 9.9965; 34 s in 34 trials
    ");
}

#[test]
fn the_goals_of_the_standards_are_met_with_few_long_trials() {
    insta::assert_snapshot!(
        ["rfc2544", "tst009"].map(|name| outline(&name.parse().unwrap(), "sim:capacity=10M")).join("\n"), @r"
    Found; RFC 2544 Regular 9.9710..10.0211 ct 9.9710; 63 s in 4 trials
    Found; TST009 Regular 9.9710..10.0211 ct 9.9710; 123 s in 5 trials
    ");
}

#[test]
fn every_end_has_its_name() {
    let csit = GoalSet::csit();
    let outcome = |text: &str| {
        let (answer, trials) = run(&config(), &csit, dut(text));
        let goals: Vec<_> = answer.goals.iter().map(|g| g.regularity).collect();
        (answer.outcome, goals, trials.len(), answer)
    };
    use Regularity::{AtMaximum, BelowMinimum, Regular, TesterLimited, Unfinished};

    let (ended, goals, trials, answer) = outcome("sim:capacity=30M");
    assert_eq!((ended, goals, trials), (Outcome::AtMaximum, vec![AtMaximum; 2], 11));
    assert_eq!(answer.goals[0].lower_fps, Some(config().upper), "an effective lower bound");
    assert_eq!(answer.goals[0].conditional_throughput_fps, Some(config().upper));

    let (ended, goals, trials, answer) = outcome("sim:capacity=30M,tester=8M");
    assert_eq!((ended, goals), (Outcome::TesterLimited, vec![TesterLimited; 2]));
    assert!(trials < 30 && (7e6..8e6).contains(&answer.throughput.unwrap().get()));

    let (ended, goals, trials, answer) = outcome("sim:capacity=10M,stalls=5/s:1000000");
    assert_eq!((ended, goals), (Outcome::BelowMinimum, vec![BelowMinimum; 2]));
    assert!(trials < 60 && answer.throughput.is_none(), "{trials}");

    // Enough lost frames to fail the goal without loss at every load, but not the goal with 0.5 %.
    let above = SearchConfig { lower: Fps::new(1e6).unwrap(), ..config() };
    let (answer, _) = run(&above, &csit, dut("sim:capacity=10M,stalls=5/s:20"));
    assert_eq!((answer.goals[0].regularity, answer.goals[1].regularity), (BelowMinimum, Regular));

    let (ended, goals, trials, _) = outcome("sim:dead=0s-30d");
    assert_eq!((ended, goals, trials), (Outcome::NoTraffic, vec![Unfinished; 2], 2));

    let (ended, goals, trials, answer) = outcome("sim:capacity=10M,tester-stalls=100%");
    assert_eq!((ended, goals, trials), (Outcome::Inconclusive, vec![Unfinished; 2], 11));
    insta::assert_snapshot!(answer.reason().unwrap(), @"all 11 trials at 20.00 Mpps were invalid, the last: the tester's lcore 1 did not poll for 30.0 ms, 0 ns into the trial (allowed 10.0 ms): the load was not what was asked; something else ran on its CPU or the host took it, keep it free");

    let (ended, _, _, answer) = outcome("sim:capacity=10M,tester=1");
    assert_eq!((ended, answer.throughput), (Outcome::Inconclusive, None));
}

#[test]
fn a_dut_that_loses_only_at_low_load_is_found_above_or_below() {
    let (answer, trials) = run(&config(), &GoalSet::csit(), dut("sim:capacity=10M,inversion=1k-5M:10%"));
    assert_eq!((answer.outcome, trials.len()), (Outcome::Found, 34), "no trial was made in the band");
    // A search with a trial in the band takes its loss as an upper bound.
    let (answer, _) = run(&config(), &GoalSet::csit(), dut("sim:capacity=10M,inversion=1-10M:10%"));
    assert_eq!(answer.outcome, Outcome::BelowMinimum);
}

#[test]
fn a_dut_that_dies_and_returns_ends_in_a_verdict() {
    for (from, to) in [(0, 5), (3, 8), (10, 14), (20, 60), (33, 40), (5, 100_000)] {
        let (answer, trials) = run(&config(), &GoalSet::csit(), dut(&format!("sim:capacity=10M,dead={from}s-{to}s")));
        assert!(trials.len() <= 250, "{from}-{to}: {}", line(&answer, &trials));
        assert_ne!(answer.outcome, Outcome::Interrupted);
    }
}

#[test]
fn trials_and_time_are_bounded_and_what_stands_is_kept() {
    let few = SearchConfig { max_trials: 25, ..config() };
    let (answer, trials) = run(&few, &GoalSet::csit(), dut("sim:capacity=10M"));
    assert_eq!((answer.outcome, trials.len()), (Outcome::Inconclusive, 25));
    assert_eq!(answer.goals[0].regularity, Regularity::Regular, "the first goal was done");
    assert_eq!(answer.goals[1].regularity, Regularity::Unfinished);
    let short = SearchConfig { timeout_s: 80.0, ..config() };
    let (answer, trials) = run(&short, &GoalSet::csit(), dut("sim:capacity=10M"));
    // Each takes 1 s and 7 s of waits.
    assert_eq!((answer.outcome, trials.len()), (Outcome::Inconclusive, 10));
    let why = crate::attempts::GivenUp::TooLong { key: "search.timeout", most_s: 80.0 };
    assert_eq!(answer.reasons, [why.into()]);
}

#[test]
fn the_warm_up_counts_for_nothing() {
    // The warm-up loses every frame. If it counted, the highest load would have a high-loss trial.
    let mut dut = dut("sim:capacity=30M,dead=0s-2s");
    dut.wait(1.5);
    let (answer, trials) = dut.drive(&mut MlrSearch::new(config(), GoalSet::csit(), 0.5), 100);
    let answer = answer.unwrap();
    assert_eq!(trials[0].spec.purpose, Purpose::Warmup);
    assert_eq!((trials[0].spec.load_fps, trials[0].spec.duration_s), (config().upper, 0.5));
    assert_sound(&answer, &trials);
    assert_eq!(answer.outcome, Outcome::AtMaximum);
    assert!(!answer.trials.contains(&trials[0].number));
}

#[test]
fn placements_do_not_mix() {
    let placements = vec![
        SimPlacement { core_to_core_ns: 60.0, capacity: 8e6 },
        SimPlacement { core_to_core_ns: 340.0, capacity: 2e6 },
    ];
    let mut dut = SimSetup { placements, flip: 0.2, ..SimSetup::new(0.0, 3) }.start();
    let mut search = PlacementSearch::new(&config(), || MlrSearch::new(config(), GoalSet::csit(), 0.0));
    let (answer, trials) = dut.drive(&mut search, 500);
    let answer = answer.unwrap();
    assert_eq!(answer.outcome, Outcome::Found);
    assert!(trials
        .iter()
        .filter(|t| answer.trials.contains(&t.number))
        .all(|t| t.interference.placement == answer.placement));
    assert_sound(&answer, &trials);
}

fn any_goal() -> impl Strategy<Value = SearchGoal> {
    let exceed = prop_oneof![Just(0.0), Just(0.5), 0.0f64..0.9];
    let initial = prop_oneof![Just(None), (50u64..1000).prop_map(Some)];
    let attributes = (1u64..4, 1u64..30, prop_oneof![Just(0.0), 0.0f64..0.01], exceed, 0.002f64..0.05, initial);
    attributes.prop_map(|(final_s, more, loss, exceed, width, initial)| SearchGoal {
        name: String::new(),
        final_duration: Duration::from_secs(final_s),
        duration_sum: Duration::from_secs(final_s + more),
        loss_ratio: Ratio::new(loss).unwrap(),
        exceed_ratio: Ratio::new(exceed).unwrap(),
        initial_duration: initial.map(Duration::from_millis),
        width: Ratio::new(width.max(loss)).unwrap(),
    })
}

fn any_goals() -> impl Strategy<Value = GoalSet> {
    prop::collection::vec(any_goal(), 1..4).prop_filter_map("no goal twice", |goals| {
        let named = |(i, goal): (usize, SearchGoal)| SearchGoal { name: i.to_string(), ..goal };
        GoalSet::new(goals.into_iter().enumerate().map(named).collect()).ok()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// With any DUT, tester and goals, the search ends within its bounds, and the answer follows from the trials.
    #[test]
    fn every_search_ends_in_a_verdict(
        goals in any_goals(), capacity in 1e4f64..3e7, onset in prop_oneof![Just(0.0), 0.0f64..0.05],
        stalls in prop_oneof![Just(0.0), 0.0f64..5.0], frames in 1u64..100_000, dead in prop_oneof![Just(None), (0.0f64..60.0, 0.1f64..60.0).prop_map(Some)],
        inversion in prop_oneof![Just(None), (0.01f64..1.0, 0.0f64..0.1).prop_map(Some)], tester in prop_oneof![Just(f64::INFINITY), 1e3f64..3e7],
        tester_stalls in prop_oneof![Just(0.0), 0.0f64..1.0], drift in -0.2f64..0.2, seed in any::<u64>(),
    ) {
        let setup = SimSetup {
            onset,
            stalls: vec![Stalls { rate: stalls, frames }],
            dead: dead.map(|(from, long)| (from, from + long)),
            inversion: inversion.map(|(share, loss)| Inversion { band: (capacity * share * 0.5, capacity * share), loss }),
            tester_max: tester,
            tester_stalls,
            drift_per_min: drift,
            latency: Nanos(0),
            ..SimSetup::new(capacity, seed)
        };
        let config = SearchConfig { max_trials: 300, ..config() };
        let (answer, trials) = run(&config, &goals, setup.start());
        prop_assert!(trials.len() <= 300);
        prop_assert_ne!(answer.outcome, Outcome::Interrupted);
        prop_assert!(trials.iter().all(|t| t.spec.load_fps <= config.upper));
    }

    /// A sharp DUT without noise: both bounds are around its capacity, with hardly a trial too many.
    #[test]
    fn a_clean_dut_is_found_wherever_it_is(capacity in 5e4f64..1.98e7, seed in any::<u64>()) {
        let mut dut = SimSetup { queue: 0, ..SimSetup::new(capacity, seed) }.start();
        let (answer, trials) = dut.drive(&mut MlrSearch::new(config(), GoalSet::csit(), 0.0), 500);
        let answer = answer.unwrap();
        assert_sound(&answer, &trials);
        prop_assert_eq!(answer.outcome, Outcome::Found);
        prop_assert!(trials.len() <= 40, "{}", trials.len());
        let ndr = &answer.goals[0];
        // Loads are whole frames per second.
        prop_assert!(ndr.lower_fps.unwrap().get() <= capacity + 1.0 && capacity < ndr.upper_fps.unwrap().get() + 1.0);
    }
}
