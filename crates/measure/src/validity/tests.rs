//! Each validity rule on its evidence, and just below it.

use units::FrameSize;

use super::*;
use crate::shape::{LoadShape, ReplayCounts};
use crate::trial::{DirectionCounts, Interference, Purpose, TrialSpec};

/// 1 Mpps for 1 s, nothing lost, one quiet tester lcore.
fn clean() -> TrialRecord {
    TrialRecord {
        number: 1,
        spec: TrialSpec::steady(FrameSize::MIN, Fps::new(1e6).unwrap(), 1.0, Purpose::Search),
        attempt: 1,
        real_duration_s: 1.0,
        directions: vec![DirectionCounts {
            from: "a".to_owned(),
            to: "b".to_owned(),
            intended: 1_000_000,
            sent: 1_000_000,
            received: 1_000_000,
            ..DirectionCounts::default()
        }],
        interference: Interference {
            lcores: vec![lcore(LcoreRole::Tester, 0, 0)],
            placement: Some(0),
            core_to_core_before_ns: Some(60.0),
            core_to_core_after_ns: Some(62.0),
            device_waited_ns: None,
            clock_drift_ppm: 1.0,
        },
        dut: None,
        switch_threads: Vec::new(),
        evidence: None,
        power: None,
        violations: Vec::new(),
    }
}

fn lcore(role: LcoreRole, largest_gap_ns: u64, total_gap_ns: u64) -> LcoreInterference {
    LcoreInterference {
        role,
        lcore: 2,
        cpu: Some(5),
        largest_gap_ns,
        total_gap_ns,
        gaps: 3,
        ..LcoreInterference::default()
    }
}

fn verdict(change: impl FnOnce(&mut TrialRecord)) -> Vec<Violation> {
    let mut trial = clean();
    change(&mut trial);
    let trust = Trust::default();
    judge(&Evidence { trial: &trial, trust: &trust, tsc_invariant: true, selftest_max: None })
}

fn rules(change: impl FnOnce(&mut TrialRecord)) -> Vec<Rule> {
    verdict(change).into_iter().map(|v| v.rule).collect()
}

fn lose(t: &mut TrialRecord, lost: u64) {
    t.directions[0].lost = lost;
    t.directions[0].received -= lost;
}

fn skip(t: &mut TrialRecord, skipped: u64) {
    t.directions[0].skipped = skipped;
    t.directions[0].sent -= skipped;
    t.directions[0].received -= skipped;
}

#[test]
fn a_clean_trial_and_an_honest_loss_are_valid() {
    assert_eq!(rules(|_| ()), []);
    assert_eq!(rules(|t| lose(t, 400_000)), []);
}

#[test]
fn each_rule_breaks_on_its_evidence_and_not_below_it() {
    assert_eq!(rules(|t| skip(t, 1_000)), []);
    assert_eq!(rules(|t| skip(t, 1_001)), [Rule::TesterShort]);
    assert_eq!(rules(|t| t.real_duration_s = 1.0099), []);
    assert_eq!(rules(|t| t.real_duration_s = 1.0101), [Rule::Stretched]);
    assert_eq!(rules(|t| t.real_duration_s = 0.98), [Rule::Stretched]);
    assert_eq!(rules(|t| t.real_duration_s = f64::NAN), [Rule::Stretched]);
    for role in [LcoreRole::Tester, LcoreRole::Dut] {
        assert_eq!(rules(|t| t.interference.lcores.push(lcore(role, 10_000_000, 0))), []);
        assert_eq!(rules(|t| t.interference.lcores.push(lcore(role, 10_000_001, 0))), [Rule::Stalled]);
    }
    assert_eq!(rules(|t| t.interference.clock_drift_ppm = -500.0), []);
    assert_eq!(rules(|t| t.interference.clock_drift_ppm = -501.0), [Rule::Clock]);
    assert_eq!(rules(|t| t.interference.placement = None), [Rule::Moved]);
    let one_core = |t: &mut TrialRecord| {
        t.interference = Interference { lcores: t.interference.lcores.clone(), ..Interference::default() }
    };
    assert_eq!(rules(one_core), []);
}

#[test]
fn gaps_excuse_only_the_loss_they_explain() {
    // 1 Mpps: 1 ms away is 1000 frames.
    let lost_with = |lost, gaps: &[LcoreInterference]| {
        rules(|t| {
            lose(t, lost);
            t.interference.lcores = gaps.to_vec();
        })
    };
    let (tester, dut) = (lcore(LcoreRole::Tester, 500_000, 600_000), lcore(LcoreRole::Dut, 300_000, 400_000));
    assert_eq!(lost_with(1_000, &[tester.clone(), dut.clone()]), [Rule::Interrupted]);
    assert_eq!(lost_with(1_001, &[tester.clone(), dut.clone()]), []);
    assert_eq!(lost_with(0, &[tester.clone(), dut]), []);
    // A DUT outside has no record: its loss stands.
    assert_eq!(lost_with(601, &[tester]), []);
    // Both directions pass through the lcore.
    let both = |t: &mut TrialRecord| {
        t.directions.push(t.directions[0].clone());
        lose(t, 1_200);
        t.interference.lcores = vec![lcore(LcoreRole::Tester, 500_000, 600_000)];
    };
    assert_eq!(rules(both), [Rule::Interrupted]);
}

#[test]
fn frames_that_the_testers_ports_missed_are_not_the_devices_loss() {
    let lost_with = |missed, lcores: &[LcoreInterference]| {
        rules(|t| {
            lose(t, 1_000);
            t.directions[0].port_missed = Some(missed);
            t.interference.lcores = lcores.to_vec();
        })
    };
    assert_eq!(lost_with(1_000, &[]), [Rule::Interrupted]);
    assert_eq!(lost_with(999, &[]), []);
    // Together with 600 frames that gaps explain.
    let gaps = lcore(LcoreRole::Tester, 500_000, 600_000);
    assert_eq!(lost_with(400, std::slice::from_ref(&gaps)), [Rule::Interrupted]);
    assert_eq!(lost_with(399, &[gaps]), []);
}

#[test]
fn a_trial_that_passes_with_all_it_lost_is_valid_despite_gaps_that_explain_it() {
    let lost_with = |passing: Option<f64>, lost| {
        rules(|t| {
            t.spec.passing_loss = passing.map(|r| Ratio::new(r).unwrap());
            lose(t, lost);
            t.interference.lcores = vec![lcore(LcoreRole::Dut, 100_000, 9_000_000)];
        })
    };
    assert_eq!(lost_with(Some(0.005), 5_000), []);
    assert_eq!(lost_with(Some(0.005), 5_001), [Rule::Interrupted]);
    assert_eq!(lost_with(Some(0.0), 1), [Rule::Interrupted]);
    assert_eq!(lost_with(None, 5_000), [Rule::Interrupted]);
}

#[test]
fn a_steady_trial_whose_load_need_not_be_exact_counts_at_the_load_offered() {
    let short = |purpose, skipped| {
        rules(|t| {
            t.spec.purpose = purpose;
            skip(t, skipped);
        })
    };
    for purpose in [Purpose::Test, Purpose::Single] {
        assert_eq!(short(purpose, 50_000), []);
        assert_eq!(short(purpose, 50_001), [Rule::TesterShort]);
    }
    for purpose in [Purpose::Search, Purpose::Verification, Purpose::AtThroughput, Purpose::SelfTest] {
        assert_eq!(short(purpose, 1_000), []);
        assert_eq!(short(purpose, 1_001), [Rule::TesterShort]);
    }
    // That of a binary search passes what was offered, or shows nothing of the rest.
    let searched = |shape, lost, skipped| {
        rules(|t| {
            (t.spec.passing_loss, t.spec.shape, t.spec.at_offered) = (Some(Ratio::new(0.001).unwrap()), shape, true);
            skip(t, skipped);
            lose(t, lost);
        })
    };
    assert_eq!(searched(LoadShape::Steady, 950, 50_000), []);
    assert_eq!(searched(LoadShape::Steady, 951, 50_000), [Rule::TesterShort]);
    assert_eq!(searched(LoadShape::Steady, 0, 50_001), [Rule::TesterShort]);
    assert_eq!(searched(LoadShape::Burst { frames: 1_000_000 }, 0, 50_000), [Rule::TesterShort]);
    // Bursts go on, one load in two steps does not, and one burst has to be whole.
    let then_fps = Fps::new(2e6).unwrap();
    let shaped = |shape, skipped| {
        rules(|t| {
            (t.spec.purpose, t.spec.shape) = (Purpose::Test, shape);
            skip(t, skipped);
        })
    };
    let bursts = LoadShape::Bursts { frames: 16, burst_fps: then_fps };
    for (shape, most) in [
        (bursts, 50_000),
        (LoadShape::Step { step_s: 0.5, then_fps }, 1_000),
        (LoadShape::Burst { frames: 1_000_000 }, 1_000),
    ] {
        assert_eq!(shaped(shape, most), []);
        assert_eq!(shaped(shape, most + 1), [Rule::TesterShort]);
    }
    let mut trial = clean();
    skip(&mut trial, 1_000);
    assert_eq!(trial.offered_load(), trial.spec.load_fps);
    skip(&mut trial, 40_000);
    assert_eq!(trial.offered_load().get().round(), 960_000.0);
    lose(&mut trial, 9_600);
    assert!((trial.loss_ratio() - 0.01).abs() < 1e-12, "of what was offered: {}", trial.loss_ratio());
}

#[test]
fn a_load_offered_in_part_counts_when_even_that_was_lost_beyond_what_is_tolerated() {
    let short = |tolerated: Option<f64>, lost, away_ns| {
        rules(|t| {
            t.spec.tolerated_loss = tolerated.map(|r| Ratio::new(r).unwrap());
            skip(t, 50_000);
            lose(t, lost);
            t.interference.lcores = vec![lcore(LcoreRole::Tester, 100_000, away_ns)];
        })
    };
    assert_eq!(short(Some(0.005), 5_001, 0), []);
    assert_eq!(short(Some(0.005), 5_000, 0), [Rule::TesterShort]);
    assert_eq!(short(Some(0.0), 1, 0), []);
    assert_eq!(short(Some(0.0), 0, 0), [Rule::TesterShort]);
    // 1 Mpps: 1 ms away explains 1000 frames, which are nobody's.
    assert_eq!(short(Some(0.005), 6_000, 1_000_000), [Rule::TesterShort]);
    assert_eq!(short(Some(0.005), 6_001, 1_000_000), []);
    assert_eq!(short(None, 900_000, 0), [Rule::TesterShort]);
}

#[test]
fn a_full_port_queue_is_loss_and_no_fault_of_the_tester() {
    let refused = |t: &mut TrialRecord| {
        t.directions[0].refused = 300_000;
        t.directions[0].sent -= 300_000;
        t.directions[0].received -= 300_000;
    };
    assert_eq!(rules(refused), []);
}

#[test]
fn counts_must_add_up() {
    let cases: [fn(&mut DirectionCounts); 5] = [
        |d| d.received += 1,
        |d| d.lost = 1,
        |d| d.sent = d.received - 5,
        |d| d.intended += 2,
        |d| *d = DirectionCounts::default(),
    ];
    for case in cases {
        assert_eq!(rules(|t| case(&mut t.directions[0])), [Rule::Counters]);
    }
    assert_eq!(rules(|t| t.directions[0].intended += 1), [], "rounding of load times duration");
    assert_eq!(rules(|t| t.directions.clear()), [Rule::Counters]);
}

#[test]
fn a_load_above_the_self_test_is_the_testers_limit() {
    let (trial, trust) = (clean(), Trust::default());
    let at = |most: f64| {
        let selftest_max = Some(Fps::new(most).unwrap());
        judge(&Evidence { trial: &trial, trust: &trust, tsc_invariant: true, selftest_max }).len()
    };
    assert_eq!((at(1e6), at(0.9995e6), at(0.99e6)), (0, 0, 1), "0.1 % above it is within the tolerance");
}

#[test]
fn a_short_burst_may_take_a_turn_of_the_loop_longer() {
    // 64 frames in 6.4 us.
    let burst = |t: &mut TrialRecord, real_duration_s: f64| {
        t.spec.shape = LoadShape::Burst { frames: 64 };
        (t.spec.load_fps, t.spec.duration_s) = (Fps::new(1e7).unwrap(), 6.4e-6);
        t.real_duration_s = real_duration_s;
    };
    assert_eq!(rules(|t| burst(t, 56e-6)), []);
    assert_eq!(rules(|t| burst(t, 57e-6)), [Rule::Stretched]);
    // A long one has no more than any other trial.
    let long = |t: &mut TrialRecord| {
        t.spec.shape = LoadShape::Burst { frames: 1_000_000 };
        t.real_duration_s = 1.0101;
    };
    assert_eq!(rules(long), [Rule::Stretched]);
    insta::assert_snapshot!(verdict(|t| burst(t, 57e-6))[0].text, @"sending took 0.000057 s instead of 0.0000064 s (+790.63 %, allowed 50 us): the tester was stopped or its clock jumped; keep other work off its core, or send for longer");
    let strict = Trust { duration_tolerance: Ratio::ZERO, ..Trust::default() };
    let mut trial = clean();
    trial.real_duration_s = 1.0001;
    let evidence = Evidence { trial: &trial, trust: &strict, tsc_invariant: true, selftest_max: None };
    insta::assert_snapshot!(judge(&evidence)[0].text, @"sending took 1.000100 s instead of 1 s (+0.01 %, allowed 0 %): the tester was stopped or its clock jumped; keep other work off its core, or send for longer");
}

#[test]
fn gaps_excuse_what_was_due_in_them_and_no_more() {
    let lost_with = |shape, lost, gaps: &LcoreInterference| {
        rules(|t| {
            t.spec.shape = shape;
            lose(t, lost);
            t.interference.lcores = vec![gaps.clone()];
        })
    };
    // Three gaps of 0.6 ms in all at 1 Mpps.
    let gaps = lcore(LcoreRole::Tester, 500_000, 600_000);
    let fast = Fps::new(10e6).unwrap();
    for (shape, explained) in [
        (LoadShape::Steady, 600),
        (LoadShape::Burst { frames: 1_000_000 }, 600),
        (LoadShape::Burst { frames: 100 }, 100),
        (LoadShape::Bursts { frames: 100, burst_fps: fast }, 900),
        (LoadShape::Bursts { frames: 100_000, burst_fps: fast }, 5_999),
        (LoadShape::Step { step_s: 0.5, then_fps: fast }, 5_999),
        (LoadShape::Step { step_s: 0.5, then_fps: Fps::ZERO }, 600),
    ] {
        assert_eq!(lost_with(shape, explained, &gaps), [Rule::Interrupted], "{shape:?}");
        assert_eq!(lost_with(shape, explained + 1, &gaps), [], "{shape:?}");
    }
}

#[test]
fn the_self_test_bounds_what_is_sent_for_long() {
    let limited = |shape| {
        let (mut trial, trust) = (clean(), Trust::default());
        trial.spec.shape = shape;
        let selftest_max = Some(Fps::new(2e6).unwrap());
        let broken = judge(&Evidence { trial: &trial, trust: &trust, tsc_invariant: true, selftest_max });
        broken.iter().any(|v| v.rule == Rule::TesterLimited)
    };
    let fast = Fps::new(10e6).unwrap();
    assert!(!limited(LoadShape::Bursts { frames: 64, burst_fps: fast }));
    assert!(limited(LoadShape::Step { step_s: 0.5, then_fps: fast }));
    let mut burst = clean();
    (burst.spec.shape, burst.spec.load_fps) = (LoadShape::Burst { frames: 64 }, fast);
    let selftest_max = Some(Fps::new(2e6).unwrap());
    assert_eq!(
        tester_limited(&Evidence { trial: &burst, trust: &Trust::default(), tsc_invariant: true, selftest_max }),
        None
    );
}

#[test]
fn an_unsteady_tsc_withholds_latency_only() {
    let (mut trial, trust) = (clean(), Trust::default());
    trial.violations = judge(&Evidence { trial: &trial, trust: &trust, tsc_invariant: false, selftest_max: None });
    assert_eq!(trial.violations.len(), 1);
    assert!(trial.valid());
}

#[test]
fn texts_are_one_line_with_figures_cause_and_remedy() {
    let all = verdict(|t| {
        skip(t, 2_000);
        lose(t, 70);
        t.real_duration_s = 1.05;
        t.interference
            .lcores
            .push(LcoreInterference { largest_gap_at_ns: 12_000_000, ..lcore(LcoreRole::Dut, 50_000_000, 50_100_000) });
        t.interference.clock_drift_ppm = 1e4;
        t.interference.placement = None;
        t.directions.push(DirectionCounts { sent: 5, received: 6, ..t.directions[0].clone() });
    });
    let texts: Vec<_> = all.iter().map(|v| format!("{:?}: {}", v.rule, v.text)).collect();
    insta::assert_snapshot!(texts.join("\n"), @r"
    TesterShort: the tester did not offer 2000 of 1000000 frames due from a (0.2 %, allowed 0.1 %): its core is too slow or was taken away; lower the load, use larger frames, or give it a core of its own
    Stretched: sending took 1.050000 s instead of 1 s (+5.00 %, allowed 1 %): the tester was stopped or its clock jumped; keep other work off its core, or send for longer
    Interrupted: 140 frames were lost or refused and polling gaps explain up to 100200: 50.1 ms away in all, most of it on the data plane's lcore 2 (CPU 5) (50.1 ms in 3 gaps, the largest 50.0 ms); isolate its CPU, or leave it to Linerate
    Stalled: the data plane's lcore 2 (CPU 5) did not poll for 50.0 ms, 12.0 ms into the trial (allowed 10.0 ms): the load was not what was asked; something else ran on its CPU or the host took it, keep it free
    Counters: counts do not add up (a -> b: 6 frames came back of 5 sent): frames of another trial or sender, or a fault of the tester; wait longer between trials (trust.residual), and keep other senders off the ports
    Clock: TSC and CLOCK_MONOTONIC drifted +10000 ppm apart (allowed 500 ppm): delays are withheld, loss still counts; boot with a TSC the kernel trusts (clocksource=tsc)
    Moved: a cache line took 60 ns from core to core before the trial and 62 ns after it: the host moved the cores; pin the virtual CPUs on the host, or send for a shorter time
    ");
}

#[test]
fn who_took_the_cpu_is_told_where_the_kernel_counts_it() {
    let said = |waited_ns| {
        let all = verdict(|t| {
            lose(t, 70);
            t.interference.lcores =
                vec![LcoreInterference { waited_ns, ..lcore(LcoreRole::Tester, 40_000_000, 50_000_000) }];
        });
        let ends = |v: &Violation| v.text.rsplit_once("; ").map(|(_, end)| end.to_owned());
        assert_eq!(all.iter().map(|v| v.rule).collect::<Vec<_>>(), [Rule::Interrupted, Rule::Stalled]);
        all.iter().filter_map(ends).collect::<Vec<_>>().join("\n")
    };
    let threads = said(Some(25_000_000));
    insta::assert_snapshot!(threads, @r"
    other programs had its CPU for 25.0 ms: isolate it, or leave it to Linerate
    other programs had its CPU for 25.0 ms: isolate it, or leave it to Linerate
    ");
    assert_eq!(said(Some(50_000_000)).replace("50.0", "25.0"), threads);
    insta::assert_snapshot!(said(Some(24_900_000)), @r"
    other programs had its CPU for only 24.9 ms, so the host of this machine, interrupts or the firmware took it: keep its physical CPU free
    other programs had its CPU for only 24.9 ms, so the host of this machine, interrupts or the firmware took it: keep its physical CPU free
    ");
    insta::assert_snapshot!(said(Some(0)), @r"
    no other program had its CPU, so the host of this machine, interrupts or the firmware took it: keep its physical CPU free
    no other program had its CPU, so the host of this machine, interrupts or the firmware took it: keep its physical CPU free
    ");
    // Of one gap that is too short to be among those that add up.
    let one = |waited_ns| match taker(&LcoreInterference { waited_ns, ..lcore(LcoreRole::Dut, 40_000, 0) }) {
        Taker::Threads(time) => Some(time),
        Taker::Machine(_) | Taker::Unknown => None,
    };
    assert_eq!([19_999, 20_000].map(|ns| one(Some(ns))), [None, Some(Nanos(20_000))]);
    insta::assert_snapshot!(said(None), @r"
    isolate its CPU, or leave it to Linerate
    something else ran on its CPU or the host took it, keep it free
    ");
}

#[test]
fn a_replay_whose_frames_left_late_is_none() {
    let late = |late_departures| {
        verdict(|t| {
            let counts = ReplayCounts { late_departures, lateness_max_ns: 7_000_000, ..ReplayCounts::default() };
            t.directions[0].replay = Some(counts);
        })
    };
    assert_eq!(late(1000), []);
    let violations = late(1001);
    assert_eq!(violations.len(), 1);
    assert_eq!(violations[0].rule, Rule::TesterShort);
    insta::assert_snapshot!(violations[0].text, @"1001 of 1000000 frames left a more than 100 us after they were due, the latest 7.00 ms (0.1 %, allowed 0.1 %): the tester's core is too slow or was taken away; replay more slowly, or give it a core of its own");
}

#[test]
fn a_short_trial_is_beyond_the_tester_unless_its_gaps_explain_it() {
    let trial = |total_gap_ns: u64, largest_gap_ns: u64| {
        let mut t = clean();
        skip(&mut t, 5_000);
        t.interference.lcores = vec![lcore(LcoreRole::Tester, largest_gap_ns, total_gap_ns)];
        let trust = Trust::default();
        t.violations = judge(&Evidence { trial: &t, trust: &trust, tsc_invariant: true, selftest_max: None });
        t
    };
    assert!(beyond_tester(&trial(0, 0)));
    assert!(beyond_tester(&trial(2_400_000, 2_400_000)));
    assert!(!beyond_tester(&trial(2_500_000, 2_500_000)), "away for half of what was missed");
    assert!(beyond_tester(&trial(0, 20_000_000)), "stalled, but the gaps do not explain it");
    assert!(!beyond_tester(&clean()));
    let mut within_tolerance = clean();
    skip(&mut within_tolerance, 1_000);
    assert!(!beyond_tester(&within_tolerance));
    // One that counts at what was offered breaks no rule, but fell short all the same.
    let mut counts = clean();
    counts.spec.at_offered = true;
    assert!(!fell_short(&counts) && !beyond_tester(&counts));
    skip(&mut counts, 1_001);
    assert!(fell_short(&counts) && beyond_tester(&counts));
    counts.spec.at_offered = false;
    assert!(!fell_short(&counts) && !beyond_tester(&counts));
}

#[test]
fn the_gap_threshold_follows_the_ring() {
    assert_eq!(gap_threshold_ns(10e6, 2048), 51_200);
    assert_eq!(gap_threshold_ns(30e6, 2048), 20_000);
    assert_eq!(gap_threshold_ns(1e3, 2048), 100_000);
    assert_eq!(gap_threshold_ns(0.0, 2048), 100_000);
}

#[test]
fn a_probe_without_an_answer_leaves_no_placement() {
    let trust = Trust::default();
    let settled = |probes_expected, after: Option<f64>| {
        let mut trial = clean();
        let seen = &mut trial.interference;
        (seen.core_to_core_before_ns, seen.core_to_core_after_ns, seen.placement) = (Some(60.0), after, Some(0));
        let conditions = Conditions { trust: &trust, tsc_invariant: true, selftest_max: None, probes_expected };
        settle(&mut trial, &conditions);
        (trial.violations.iter().map(|v| v.rule).collect::<Vec<_>>(), trial.interference.placement)
    };
    assert_eq!(settled(true, None), (vec![Rule::Moved], None));
    assert_eq!(settled(true, Some(60.0)), (vec![], Some(0)));
    assert_eq!(settled(false, None), (vec![], Some(0)), "one core, or combined placements");
}

#[test]
fn delays_go_with_a_clock_that_cannot_be_trusted() {
    let trust = Trust::default();
    let conditions =
        |tsc_invariant| Conditions { trust: &trust, tsc_invariant, selftest_max: None, probes_expected: false };
    let mut trial = clean();
    trial.directions[0].latency = Some(crate::trial::LatencySummary::default());
    settle(&mut trial, &conditions(true));
    assert!(trial.valid() && trial.directions[0].latency.is_some());
    settle(&mut trial, &conditions(false));
    assert!(trial.valid() && trial.directions[0].latency.is_none(), "the counts stand");
}

#[test]
fn a_trial_cut_short_is_stretched() {
    let mut trial = clean();
    trial.violations.push(cut_short(&trial));
    assert!(!trial.valid() && trial.violations[0].rule == Rule::Stretched);
}
