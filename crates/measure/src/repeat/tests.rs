//! Figures of several runs, with what is known of them.

use super::*;
use crate::{result::CoreToCore, standing::tests::size};

fn numbered(figures: &[f64]) -> Vec<(usize, f64)> {
    (1..).zip(figures.iter().copied()).collect()
}

fn kinds(figures: &[f64]) -> Vec<(RemarkKind, Vec<usize>)> {
    remarks(&numbered(figures)).into_iter().map(|r| (r.kind, r.runs)).collect()
}

#[test]
fn figures_are_summarised() {
    let found = summary(&numbered(&[9.0, 10.0, 12.0, 11.0])).unwrap();
    assert_eq!((found.median_fps.get(), found.min_fps.get(), found.max_fps.get()), (10.5, 9.0, 12.0));
    assert_eq!(found.mean_fps.get(), 10.5);
    assert!((found.relative_stddev - (5.0f64 / 3.0).sqrt() / 10.5).abs() < 1e-12);
    // Student's t of three degrees of freedom.
    let error = found.mean_error_fps.unwrap().get();
    assert!((error - 3.182 * (5.0f64 / 12.0).sqrt()).abs() < 1e-9, "{error}");
    let one = summary(&numbered(&[7.0])).unwrap();
    assert_eq!((one.median_fps.get(), one.mean_error_fps, one.relative_stddev), (7.0, None, 0.0));
    assert_eq!(summary(&[]), None);
}

#[test]
fn pairs_of_intervals_overlap_where_they_touch() {
    assert_eq!(pairs(&[]), (0, 0));
    assert_eq!(pairs(&[(1.0, 2.0)]), (0, 0));
    assert_eq!(pairs(&[(1.0, 2.0), (2.0, 3.0), (2.5, 4.0)]), (3, 2));
    // Nothing failed: the device does at least so much.
    assert_eq!(pairs(&[(5.0, f64::INFINITY), (7.0, 8.0), (1.0, 2.0)]), (3, 1));
}

#[test]
fn a_run_far_away_is_named() {
    use RemarkKind::{FirstRun, Outliers};
    assert_eq!(kinds(&[100.0, 100.1, 99.9, 100.0, 100.2, 99.8]), vec![]);
    assert_eq!(kinds(&[60.0, 100.1, 99.9, 100.0, 100.2, 99.8]), vec![(FirstRun, vec![1])]);
    assert_eq!(kinds(&[100.0, 100.1, 60.0, 100.0, 140.0, 99.9]), vec![(Outliers, vec![3, 5])]);
    assert_eq!(kinds(&[60.0, 100.0, 100.0]), vec![], "three tell no outlier");
    assert_eq!(kinds(&[100.0, 100.0, 100.0, 100.0, 100.5]), vec![], "half a percent is worth no remark");
    let far = remarks(&numbered(&[100.0, 100.1, 60.0, 100.0, 150.0, 99.9]));
    assert!((far[0].change - 0.5).abs() < 0.01, "the largest: {far:?}");
}

#[test]
fn a_drift_is_named_where_chance_does_not_explain_it() {
    let falling: Vec<f64> = (0..12).map(|i| 100.0 - f64::from(i)).collect();
    let [drift] = remarks(&numbered(&falling)).try_into().unwrap();
    assert_eq!((drift.kind, drift.runs), (RemarkKind::Drift, vec![]));
    assert!((drift.change + 11.0 / 94.5).abs() < 1e-9, "{}", drift.change);
    assert_eq!(kinds(&falling[..7]), vec![], "seven tell no drift");
    let tiny: Vec<f64> = (0..12).map(|i| 100.0 - f64::from(i) * 0.01).collect();
    assert_eq!(kinds(&tiny), vec![]);
    // 2000 sequences of independent figures: about two may look like a drift.
    let mut rng = units::SplitMix64::new(7);
    let by_chance = (0..2000).filter(|_| {
        let figures: Vec<f64> = (0..12).map(|_| 100.0 + (rng.bits() % 4096) as f64 / 1024.0).collect();
        !kinds(&figures).is_empty()
    });
    assert!(by_chance.count() <= 8);
}

/// A run with an answer of 1 % around a rate, found with this way from core to core.
fn run(rate: f64, ns: Option<f64>) -> SizeResult {
    let [lower_fps, upper_fps, point_fps] = [0.995, 1.005, 1.0].map(|share| Some(Fps::from_raw(rate * share)));
    let answer = IntervalAnswer {
        lower_fps,
        upper_fps,
        point_fps,
        standing: None,
        confidence: None,
        clean_seconds: 1.0,
        passes: 3,
        aside_share: 0.0,
        as_measured: None,
    };
    let core_to_core = ns.map(|ns| CoreToCore { median_ns: ns, min_ns: ns, max_ns: ns });
    SizeResult { answer: Some(answer), core_to_core, ..size(Outcome::Found) }
}

fn placements_of(runs: &[SizeResult]) -> Vec<RepeatedPlacement> {
    placements(&(1..).zip(runs).collect::<Vec<_>>())
}

#[test]
fn runs_of_two_placements_are_told_apart() {
    let runs = [
        run(15e6, Some(25.0)),
        run(10e6, Some(190.0)),
        run(15.1e6, Some(22.0)),
        run(13e6, None),
        run(10.9e6, Some(170.0)),
        run(17e6, Some(29.0)),
    ];
    let [near, far] = placements_of(&runs).try_into().unwrap();
    assert_eq!((near.min_ns, near.max_ns, near.runs), (22.0, 29.0, vec![1, 3, 6]));
    assert_eq!((near.figures.median_fps.get(), near.pairs, near.overlapping), (15.1e6, 3, 1));
    assert_eq!((far.min_ns, far.max_ns, far.runs), (170.0, 190.0, vec![2, 5]));
    assert_eq!((far.figures.median_fps.get(), far.pairs, far.overlapping), (10.45e6, 1, 0));
    // One placement explains nothing.
    assert_eq!(placements_of(&runs[..1]), vec![]);
    assert_eq!(placements_of(&[run(1.0, Some(60.0)), run(2.0, Some(149.0))]), vec![]);
    assert_eq!(placements_of(&[]), vec![]);
}
