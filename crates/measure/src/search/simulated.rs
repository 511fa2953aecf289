//! Quick searches by slices of simulated devices with every kind of noise: the interval holds the truth.

use units::FrameSize;

use super::{for_config, Answer, SearchConfig};
use crate::{
    plan::{EvidenceBy, Method, Plan},
    result::Outcome,
    sim::SimSetup,
};

const CAPACITY: f64 = 3.33e6;

/// What disturbs the device and the tester.
const NOISE: [&str; 8] = [
    "queue=64",
    "queue=100k",
    "drift=-1%/min",
    "stalls=0.05/s:2000",
    "stalls=1/s:500",
    "inversion=1M-2M:0.1%",
    "accidents=5%:50",
    "tester-stalls=50%",
];

/// The answer of a quick search at 64 bytes over 10 Gbit/s, and the seconds of its trials.
fn search(text: &str, method: Method, evidence: EvidenceBy) -> (Answer, f64) {
    let mut plan = Plan::default();
    plan.search.method = method;
    let plan = plan.quick().validate().unwrap();
    let link = Some("10G".parse().unwrap());
    let mut config = SearchConfig::for_size(&plan, FrameSize::MIN, link, None).unwrap();
    config.by_slices = evidence == EvidenceBy::Slices;
    let mut device = text.parse::<SimSetup>().unwrap().start();
    let (answer, trials) = device.drive(&mut for_config(config), 2000);
    (answer.expect("searches end"), trials.iter().map(|trial| trial.spec.duration_s).sum())
}

struct Row {
    answers: u32,
    held: u32,
    miss: f64,
    widths: Vec<f64>,
    seconds: f64,
}

fn row(noise: &str, method: Method, evidence: EvidenceBy, seeds: u32) -> Row {
    let mut row = Row { answers: 0, held: 0, miss: 0.0, widths: Vec::new(), seconds: 0.0 };
    for seed in 1..=seeds {
        let text = format!("sim:capacity={CAPACITY},{noise},seed={seed}");
        let (answer, seconds) = search(&text, method, evidence);
        row.seconds += seconds / f64::from(seeds);
        let (Some(lower), Some(upper)) = (answer.throughput, answer.upper_bound) else { continue };
        if answer.outcome != Outcome::Found {
            continue;
        }
        let (lower, upper) = (lower.get() / CAPACITY, upper.get() / CAPACITY);
        let miss = (lower - 1.0).max(1.0 - upper).max(0.0);
        row.answers += 1;
        row.held += u32::from(miss == 0.0);
        row.miss = row.miss.max(miss);
        row.widths.push(upper - lower);
    }
    row.widths.sort_by(f64::total_cmp);
    row
}

#[test]
fn the_interval_holds_the_truth_in_no_more_time_than_by_whole_trials() {
    for noise in NOISE {
        let by_slices = row(noise, Method::Rfc2544, EvidenceBy::Slices, 25);
        assert_eq!((by_slices.answers, by_slices.held), (25, 25), "{noise}: off by {}", by_slices.miss);
        assert!(by_slices.widths[12] <= 0.003, "{noise}: {:?}", by_slices.widths);
        let whole = row(noise, Method::Rfc2544, EvidenceBy::WholeTrial, 25);
        assert!(by_slices.seconds <= whole.seconds, "{noise}: {} s, {} s", by_slices.seconds, whole.seconds);
    }
}

#[test]
fn a_large_queue_hides_no_excess_from_any_method() {
    for method in [Method::Tst009, Method::Mlrsearch] {
        let row = row("queue=100k", method, EvidenceBy::Slices, 5);
        assert_eq!((row.answers, row.held), (5, 5), "{method:?}: off by {}", row.miss);
    }
    let whole = row("queue=100k", Method::Tst009, EvidenceBy::WholeTrial, 5);
    assert_eq!((whole.answers, whole.held), (5, 0), "the rules of whole trials know no buffer");
}

#[test]
fn accidents_at_a_line_rate_that_is_not_whole_keep_no_search_from_its_end() {
    let line_rate = 14_880_952.38;
    let ended = |noise: &str, seed: u32| {
        let text = format!("sim:capacity=50M,{noise},seed={seed}");
        let (answer, seconds) = search(&text, Method::Rfc2544, EvidenceBy::Slices);
        let found = answer.interval.unwrap();
        let [lower, upper] = [found.lower_fps, found.upper_fps].map(|fps| fps.map(|fps| fps.get() - line_rate));
        match answer.outcome {
            Outcome::AtMaximum => assert!(lower > Some(-2.0) && lower <= Some(0.0) && upper.is_none(), "{answer:?}"),
            other => {
                assert!(other == Outcome::Found && lower < upper && upper < Some(1.0), "{noise} {seed}: {answer:?}")
            }
        }
        assert!(seconds < 15.0, "{noise} {seed}: {seconds} s");
        u32::from(answer.outcome == Outcome::AtMaximum)
    };
    assert_eq!((1..=50).map(|seed| ended("accidents=2%:50", seed)).sum::<u32>(), 50);
    let often = (1..=50).map(|seed| ended("accidents=20%:50", seed)).sum::<u32>();
    assert!((35..50).contains(&often), "{often}");
}
