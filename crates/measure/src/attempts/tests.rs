//! When trials are repeated and when something is given up.

use units::{Fps, FrameSize};

use super::*;
use crate::schema::{
    evidence::SliceEvidence,
    trial::{Purpose, Rule, TrialRecord, TrialSpec, Violation},
};

/// A trial of a simulated device that broke these rules.
fn trial(rules: &[Rule]) -> TrialRecord {
    let spec = TrialSpec::steady(FrameSize::MIN, Fps::from_raw(1e6), 1.0, Purpose::Test);
    let mut trial = crate::sim::SimDut::new(2e6, 1).run(&spec);
    trial.violations = rules.iter().map(|&rule| Violation { rule, text: "the rule".to_owned() }).collect();
    trial
}

/// One that the tester offered only in part, and did not have the gaps for.
fn short() -> TrialRecord {
    let mut trial = trial(&[Rule::TesterShort]);
    let d = &mut trial.directions[0];
    (d.sent, d.skipped) = (800_000, 200_000);
    trial
}

/// In this placement.
fn placed(placement: u32) -> TrialRecord {
    let mut trial = trial(&[]);
    (trial.interference.core_to_core_before_ns, trial.interference.placement) = (Some(60.0), Some(placement));
    trial
}

#[test]
fn an_invalid_trial_is_repeated_within_the_bound() {
    let mut attempts = Attempts::new(2);
    let rulings: Vec<Ruling> = (0..3).map(|_| attempts.rule(&trial(&[Rule::Stalled]), None)).collect();
    let given_up = GivenUp::Invalid { trials: 3, load: Fps::from_raw(1e6), last: "the rule".to_owned() };
    assert_eq!(rulings, [Ruling::Repeat, Ruling::Repeat, Ruling::GiveUp(given_up)]);
    attempts.restart();
    assert_eq!(attempts.rule(&trial(&[Rule::Stalled]), None), Ruling::Repeat);
    assert_eq!(attempts.rule(&trial(&[Rule::Clock]), None), Ruling::Counts, "a clock withholds delays only");
}

#[test]
fn a_load_that_is_not_offered_is_beyond_the_tester() {
    let mut attempts = Attempts::new(10);
    let last = (0..SHORT_IN_A_ROW).map(|_| attempts.rule(&short(), None)).last();
    let most_offered = Fps::from_raw(8e5);
    assert_eq!(last, Some(Ruling::BeyondTester { most_offered, disturbed: false }));
    // Its own gaps explain it: more patience.
    let mut disturbed = short();
    disturbed.interference.lcores[0].total_gap_ns = 400_000_000;
    let mut attempts = Attempts::new(10);
    let rulings: Vec<Ruling> = (0..6).map(|_| attempts.rule(&disturbed, None)).collect();
    assert!(rulings[..5].iter().all(|r| *r == Ruling::Repeat));
    assert_eq!(rulings[5], Ruling::BeyondTester { most_offered, disturbed: true });
    let beyond = Attempts::new(10).rule(&trial(&[Rule::TesterLimited]), None);
    assert_eq!(beyond, Ruling::BeyondTester { most_offered: Fps::ZERO, disturbed: false });
}

#[test]
fn a_slice_trial_that_was_short_or_unclear_is_repeated_within_its_bound() {
    let mut attempts = Attempts::new(10);
    let rulings: Vec<Ruling> = [7e5, 8e5, 6e5].map(|fps| attempts.short(Fps::from_raw(fps))).into();
    let beyond = Ruling::BeyondTester { most_offered: Fps::from_raw(8e5), disturbed: false };
    assert_eq!(rulings, [Ruling::Repeat, Ruling::Repeat, beyond], "the most that any of them offered");
    let mut attempts = Attempts::new(2);
    let seen = TrialRecord { evidence: Some(SliceEvidence::default()), ..trial(&[]) };
    let rulings: Vec<Ruling> = (0..3).map(|_| attempts.unclear(&seen)).collect();
    let given_up = GivenUp::Unclear { trials: 3, load: Fps::from_raw(1e6) };
    assert_eq!(rulings, [Ruling::Repeat, Ruling::Repeat, Ruling::GiveUp(given_up)]);
    let mut attempts = Attempts::new(1000);
    let given_up = (1..).find(|_| attempts.unclear(&trial(&[])) != Ruling::Repeat);
    assert_eq!(given_up, Some(UNCLEAR));
    // Both count against the one bound.
    let mut attempts = Attempts::new(1);
    assert_eq!(attempts.short(Fps::from_raw(7e5)), Ruling::Repeat);
    let given_up = GivenUp::Untold { trials: 2, load: Fps::from_raw(1e6) };
    assert_eq!(attempts.unclear(&trial(&[])), Ruling::GiveUp(given_up), "without slices that say anything");
}

#[test]
fn a_trial_of_which_nothing_was_sent_does_not_count() {
    let with = |sent, refused| {
        let mut trial = trial(&[]);
        let d = &mut trial.directions[0];
        (d.sent, d.refused, d.skipped) = (sent, refused, d.intended - sent - refused);
        (d.received, d.lost) = (0, sent);
        Attempts::new(10).rule(&trial, None)
    };
    assert_eq!(with(0, 0), Ruling::Repeat);
    assert_eq!([with(1, 0), with(0, 1)], [Ruling::Counts, Ruling::Counts], "the device is silent");
    let mut none_due = trial(&[]);
    let d = &mut none_due.directions[0];
    (d.intended, d.sent) = (0, 0);
    assert_eq!(Attempts::new(10).rule(&none_due, None), Ruling::Counts);
}

#[test]
fn few_repeats_are_enough_to_give_up() {
    let most_offered = Fps::from_raw(8e5);
    let first = |max_repeats, trial: &TrialRecord| Attempts::new(max_repeats).rule(trial, None);
    assert_eq!(first(0, &short()), Ruling::BeyondTester { most_offered, disturbed: false });
    assert_eq!(first(1, &short()), Ruling::BeyondTester { most_offered, disturbed: true });
    assert!(matches!(first(0, &trial(&[Rule::Stalled])), Ruling::GiveUp(GivenUp::Invalid { trials: 1, .. })));
}

#[test]
fn refused_frames_were_offered() {
    let mut refused = short();
    (refused.directions[0].sent, refused.directions[0].refused) = (700_000, 100_000);
    let ruling = Attempts::new(0).rule(&refused, None);
    assert_eq!(ruling, Ruling::BeyondTester { most_offered: Fps::from_raw(8e5), disturbed: false });
}

#[test]
fn a_placement_that_does_not_come_back_ends_it() {
    let mut attempts = Attempts::new(1000);
    assert_eq!(attempts.rule(&placed(0), Some(0)), Ruling::Counts);
    assert_eq!(attempts.rule(&placed(1), None), Ruling::Counts, "the first settles where it is");
    assert_eq!(attempts.rule(&trial(&[]), Some(1)), Ruling::Counts, "nothing to probe");
    let rulings: Vec<Ruling> = (0..ELSEWHERE).map(|_| attempts.rule(&placed(1), Some(0))).collect();
    assert_eq!(rulings.iter().filter(|r| **r == Ruling::Repeat).count(), ELSEWHERE as usize - 1);
    assert_eq!(rulings.last(), Some(&Ruling::GiveUp(GivenUp::Elsewhere)));
}

#[test]
fn a_confirmation_ends() {
    let until_end = |mut confirmation: Confirmation, trial: &TrialRecord| loop {
        match confirmation.rule(trial) {
            Ruling::Repeat => {}
            other => break (confirmation.attempt() - 1, other),
        }
    };
    let new = |tester_limited| Confirmation::new(10, Some(0), tester_limited);
    assert_eq!(until_end(new(false), &placed(0)), (1, Ruling::Counts));
    let (trials, duration_s) = (20, 1.0);
    let unconfirmed = Ruling::GiveUp(GivenUp::Unconfirmed { trials, duration_s });
    assert_eq!(until_end(new(false), &placed(1)), (20, unconfirmed.clone()));
    assert_eq!(until_end(new(false), &short()), (20, unconfirmed));
    let (made, beyond) = until_end(new(true), &short());
    assert!(made == SHORT_CONFIRMATIONS && matches!(beyond, Ruling::BeyondTester { .. }), "{beyond:?}");
    let mut silent = placed(0);
    silent.directions[0].received = 0;
    let gone = GivenUp::GoneAfterSearch { trials: SILENT_CHECKS, duration_s, last: silent.number };
    assert_eq!(until_end(new(false), &silent), (SILENT_CHECKS, Ruling::GiveUp(gone)));
}

#[test]
fn a_row_ends_with_anything_else() {
    let mut row = Streak::new(2);
    assert!(!row.is_enough() && !row.see(true) && !row.see(false) && !row.see(true) && row.see(true));
    assert_eq!((row.length(), row.is_enough()), (2, true));
    assert!(row.see(true), "more than enough");
    assert!(!row.see(false) && row.length() == 0);
    let mut endless = Streak::new(u32::MAX);
    assert!((0..1000).all(|_| !endless.see(true)));
}

#[test]
fn a_budget_counts_trials_and_the_waits_around_them() {
    let one = trial(&[]);
    let mut budget = Budget::new("search.timeout", 10.0, 1.5);
    (0..3).for_each(|_| budget.spend(&one));
    assert_eq!((budget.used_up(), budget.used_share()), (None, 0.75), "3 x 2.5 s");
    let mut drained = one.clone();
    drained.spec.drain_s = 0.1;
    let mut other = budget;
    other.spend(&one);
    assert_eq!(other.used_up(), Some(GivenUp::TooLong { key: "search.timeout", most_s: 10.0 }));
    budget.spend_s(2.3);
    assert_eq!(budget.used_up(), None);
    let mut waited = Budget::new("test_timeout", 2.69, 1.5);
    waited.spend(&one);
    assert_eq!(waited.used_up(), None);
    let mut waited = Budget::new("test_timeout", 2.69, 1.5);
    waited.spend(&drained);
    assert!(waited.used_up().is_some(), "the wait for late frames counts");
    let mut few = Budget::new("search.timeout", 10.0, 0.0).with_trials(2);
    few.spend(&trial(&[Rule::Stalled]));
    assert_eq!(few.used_up(), None);
    few.spend(&one);
    assert_eq!(few.used_up(), Some(GivenUp::TooManyTrials { most: 2 }));
    let mut backwards = one;
    backwards.real_duration_s = -5.0;
    let mut budget = Budget::new("search.timeout", 1.0, 1.0);
    budget.spend(&backwards);
    assert!(budget.used_up().is_some(), "a clock that steps gives no time back");
}

#[test]
fn what_a_tester_cannot_offer_is_asked_for_less() {
    let next = |offered: f64| within_tester(Fps::from_raw(1e6), Fps::from_raw(offered), 0.01).get();
    assert_eq!([next(8e5), next(999_999.0), next(0.0), next(2e6)], [744_000.0, 929_999.0, 990_000.0, 990_000.0]);
}

#[test]
fn a_trial_with_somebody_away_says_nothing_against_a_throughput() {
    // A second at 1 Mpps: 900,000 frames in slices that count, at this load.
    let by_slices = |offered: f64, clean_s: f64, lost: u64| {
        let mut trial = trial(&[]);
        let offered = Fps::from_raw(offered);
        trial.evidence =
            Some(SliceEvidence { offered: 900_000, offered_fps: offered, clean_s, lost, ..Default::default() });
        trial
    };
    let said = |offered, clean_s, lost| Said::of(&by_slices(offered, clean_s, lost), true);
    assert_eq!(said(1e6, 0.9, 0), Said::Lost(0.0));
    assert_eq!(said(1e6, 0.9, 9), Said::Lost(1e-5));
    assert_eq!(said(1e6, 0.09, 9), Said::Nothing, "a tenth of it has to count");
    assert_eq!([said(0.951e6, 0.9, 0), said(0.949e6, 0.9, 0)], [Said::Lost(0.0), Said::Short]);
    assert_eq!(said(0.8e6, 0.9, 9), Said::Lost(1e-5), "it fails at less, too");
    let mut none = by_slices(1e6, 0.9, 0);
    none.evidence = None;
    assert_eq!(Said::of(&none, true), Said::Nothing);
    (none.directions[0].sent, none.directions[0].received, none.directions[0].lost) = (1000, 990, 10);
    assert_eq!(Said::of(&none, false), Said::Lost(none.loss_ratio()), "as a whole every loss counts");
    assert!(none.loss_ratio() > 0.0);
    // It is tried so often, and not more often than other trials.
    let often = |max_repeats| {
        let mut confirmation = Confirmation::new(max_repeats, None, false);
        (0..9).take_while(|_| matches!(confirmation.rule(&trial(&[])), Ruling::Counts) && confirmation.again()).count()
    };
    assert_eq!(often(20) as u32, UNCLEAR_CONFIRMATIONS - 1);
}

#[test]
fn a_throughput_is_lowered_so_often() {
    let mut lowering = Lowering::new(Fps::from_raw(1000.0));
    assert!(!lowering.is_lowered());
    lowering.after_loss(0.01);
    assert_eq!((lowering.load().map(Fps::get), lowering.is_lowered()), (Some(990.0), true));
    lowering.after_shortfall();
    assert_eq!(lowering.load().map(Fps::get), Some(891.0));
    let more = std::iter::from_fn(|| {
        lowering.after_loss(0.01);
        lowering.load()
    });
    assert_eq!(more.count() as u32, STEPS_DOWN - 2);
}

#[test]
fn a_score_that_says_nothing_is_made_again() {
    let mut attempts = ScoreAttempts::default();
    assert_eq!((attempts.attempt(), attempts.rule(None, true)), (1, Ruling::Counts));
    let three = |beyond| {
        let mut attempts = ScoreAttempts::default();
        [1, 2, 3].map(|n| {
            assert_eq!(attempts.attempt(), n);
            attempts.rule(Some("late"), beyond)
        })
    };
    let [first, second, third] = three(false);
    assert_eq!([first, second], [Ruling::Repeat, Ruling::Repeat]);
    assert_eq!(third, Ruling::GiveUp(GivenUp::Unscored { last: "late".to_owned() }));
    let beyond = Ruling::BeyondTester { most_offered: Fps::ZERO, disturbed: false };
    assert_eq!(three(true), [Ruling::Repeat, Ruling::Repeat, beyond]);
}

#[test]
fn each_reason_is_one_sentence_with_a_remedy() {
    let (load, last) = (Fps::from_raw(1e6), "the tester was interrupted".to_owned());
    let all = [
        GivenUp::Invalid { trials: 11, load, last: last.clone() },
        GivenUp::Disturbed,
        GivenUp::NotOffered { load, duration_s: 60.0, last: last.clone() },
        GivenUp::Elsewhere,
        GivenUp::Unplaced { trials: 11, last: last.clone() },
        GivenUp::Unconfirmed { trials: 20, duration_s: 120.0 },
        GivenUp::TooManyTrials { most: 100 },
        GivenUp::TooLong { key: "search.timeout", most_s: 7200.0 },
        GivenUp::NoTraffic { low: Fps::from_raw(1e4) },
        GivenUp::Silent { trials: 1 },
        GivenUp::Silent { trials: 3 },
        GivenUp::Gone { first: 4, last: 9 },
        GivenUp::GoneAfterSearch { trials: 5, duration_s: 120.0, last: 23 },
        GivenUp::Unscored { last },
    ];
    let sentences: Vec<String> = all.iter().map(GivenUp::to_string).collect();
    insta::assert_snapshot!(sentences.join("\n"));
}
