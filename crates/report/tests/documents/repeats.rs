//! Several runs of a plan: one table, notes on what is clear, and a CSV.

use measure::{
    answer::IntervalAnswer,
    repeat::{sizes, RepeatResult, REPEAT_SCHEMA},
    result::{CoreToCore, Outcome, RunResult, SizeResult, Standing},
};
use report::{json, layout::compare_repeats, markdown, repeat, terminal, Detail, Document, Style};

use crate::fixtures::*;

const SIZES: [u32; 7] = [64, 128, 256, 512, 1024, 1280, 1518];

/// An answer with an interval of one percent around it.
fn around(bytes: u32, rate: f64) -> SizeResult {
    let [lower_fps, upper_fps, point_fps] = [0.995, 1.005, 1.0].map(|share| Some(fps(rate * share)));
    let interval = IntervalAnswer {
        lower_fps,
        upper_fps,
        point_fps,
        standing: None,
        confidence: Some(0.95),
        clean_seconds: 1.0,
        passes: 3,
        aside_share: 0.01,
        as_measured: None,
    };
    SizeResult { answer: Some(interval), ..found(bytes, rate, 1) }
}

fn of_runs(runs: Vec<RunResult>, planned: usize) -> RepeatResult {
    RepeatResult {
        schema: REPEAT_SCHEMA.to_owned(),
        linerate_version: "0.1.0".to_owned(),
        plan_name: "rfc2544 (quick)".to_owned(),
        started_at: "2026-11-22T20:58:35Z".to_owned(),
        elapsed_s: 580.0,
        effective_plan: serde_json::json!({}),
        planned,
        sizes: sizes(&runs),
        runs,
        standing: Standing::Completed,
    }
}

/// Ten runs at seven sizes: a slow first one, a device that falls, outliers, and searches without an answer.
fn ten() -> RepeatResult {
    let run = |i: usize| {
        let wobble = [0.0, 1.0, -1.0, 2.0, 0.5, -0.5, 1.5, -1.5, -2.0, 0.2][i] * 1e3;
        let of = |(at, bytes): (usize, u32)| match (at, i) {
            (0, 0) => around(bytes, 4e6),
            (1, _) => around(bytes, 5e6 - i as f64 * 1e5),
            (2, 3 | 7) => around(bytes, 1e6),
            (3, 2 | 5) => nothing(bytes, Outcome::Inconclusive),
            (4, _) => SizeResult { outcome: Outcome::TesterLimited, ..around(bytes, 3e6 + wobble) },
            (5, 1..=8) => SizeResult { outcome: Outcome::AtMaximum, answer: None, ..around(bytes, 961_538.46) },
            (5, _) => nothing(bytes, Outcome::Interrupted),
            (6, _) => nothing(bytes, Outcome::BelowMinimum),
            _ => around(bytes, 5e6 + wobble),
        };
        result(SIZES.into_iter().enumerate().map(of).collect())
    };
    of_runs((0..10).map(run).collect(), 12)
}

fn document(repeat: &RepeatResult) -> Document {
    Document::of(vec![repeat::sheet(repeat), repeat::standing(repeat)])
}

#[test]
fn ten_runs_are_one_table_of_at_most_forty_lines() {
    let repeat = ten();
    let text = terminal::render(&document(&repeat), Detail::Short, &Style::PIPE, &[]);
    assert!(text.lines().count() <= 40, "{text}");
    insta::assert_snapshot!(text);
    insta::assert_snapshot!("repeats_markdown", markdown::render(&document(&repeat)));
    insta::assert_snapshot!("repeats_csv", repeat::csv(&repeat));
    assert!(repeat::line(&repeat.runs[0]).starts_with("64 B 4.000 Mpps, 128 B 5.000 Mpps, "));
}

#[test]
fn what_is_written_reads_back() {
    let repeat = ten();
    let text = json::repeat(&repeat).unwrap();
    let read: RepeatResult = serde_json::from_str(&text).unwrap();
    assert_eq!((read.sizes, read.runs.len()), (repeat.sizes, 10));
    let page = include_str!("../../../../docs/results-schema.md");
    let value = serde_json::to_value(ten()).unwrap();
    let (outer, size) = (value.as_object().unwrap(), &value["sizes"][0]);
    let remark = value["sizes"][2]["remarks"][0].as_object().unwrap();
    let of_size = size.as_object().unwrap().keys().chain(size["figures"].as_object().unwrap().keys());
    for name in outer.keys().chain(of_size).chain(remark.keys()) {
        assert!(page.contains(&format!("| `{name}` |")), "docs/results-schema.md does not describe `{name}`");
    }
}

#[test]
fn new_runs_compare_with_old_ones() {
    let (new, mut old) = (ten(), ten());
    for run in &mut old.runs {
        run.sizes.iter_mut().filter(|s| s.frame_size_bytes == size(512)).for_each(|s| {
            *s = around(512, 4.9e6 + s.throughput_fps.map_or(0.0, |fps| fps.get() - 5e6));
        });
    }
    old.sizes = sizes(&old.runs);
    let sheet = compare_repeats(&new, &old).unwrap();
    insta::assert_snapshot!(
        "repeats_compared",
        terminal::render(&Document::of(vec![sheet]), Detail::Short, &Style::PIPE, &[])
    );
    old.runs[0].plan_name = "other".to_owned();
    assert_eq!(compare_repeats(&new, &old).unwrap_err().len(), 1);
    old.runs.clear();
    assert_eq!(compare_repeats(&new, &old).unwrap_err().len(), 1);
}

/// Six runs, of which three found the cores far apart.
fn of_two_placements() -> RepeatResult {
    let run = |i: usize| {
        let (rate, ns) =
            [(15e6, 25.0), (10e6, 190.0), (15.1e6, 22.0), (10.02e6, 170.0), (15.05e6, 29.0), (10e6, 180.0)][i];
        let core_to_core = Some(CoreToCore { median_ns: ns, min_ns: ns, max_ns: ns });
        result(vec![SizeResult { placement: None, core_to_core, ..around(64, rate) }])
    };
    of_runs((0..6).map(run).collect(), 6)
}

#[test]
fn runs_of_two_placements_are_told_apart() {
    let repeat = of_two_placements();
    let short = |sheet| terminal::render(&Document::of(vec![sheet]), Detail::Short, &Style::PIPE, &[]);
    insta::assert_snapshot!("repeats_of_two_placements", short(repeat::sheet(&repeat)));
    let group = serde_json::to_value(&repeat).unwrap()["sizes"][0]["placements"][0].clone();
    let page = include_str!("../../../../docs/results-schema.md");
    for name in group.as_object().unwrap().keys() {
        assert!(page.contains(&format!("| `{name}` |")), "docs/results-schema.md does not describe `{name}`");
    }
    // Runs of one placement against runs of the other.
    let only = |wanted: usize| {
        let runs = repeat.runs.iter().enumerate().filter(|(i, _)| i % 2 == wanted).map(|(_, run)| run.clone());
        of_runs(runs.collect(), 3)
    };
    insta::assert_snapshot!(compare_repeats(&only(0), &only(1)).unwrap_err().join("\n"));
    assert!(compare_repeats(&only(0), &only(0)).is_ok());
    let [near, far] = [0, 1].map(|i| repeat.runs[i].clone());
    insta::assert_snapshot!(report::layout::compare(&near, &far).unwrap_err().join("\n"));
}

#[test]
fn hostile_figures_break_nothing() {
    let mut repeat = of_runs(vec![hostile(), result(Vec::new())], 2);
    repeat.plan_name = "evil\u{1b}[2J\n# plan".to_owned();
    repeat.sizes.extend(ten().sizes);
    let text = terminal::render(&document(&repeat), Detail::Short, &Style::PIPE, &[]);
    assert!(!text.contains('\u{1b}') && !markdown::render(&document(&repeat)).contains("\n# plan"), "{text}");
    let none = RepeatResult { runs: Vec::new(), sizes: Vec::new(), ..repeat };
    assert!(terminal::render(&document(&none), Detail::Short, &Style::PIPE, &[]).contains("0 runs"));
}

/// Black strokes two wide, as "M x y L x y" of upright ones: (from, to).
fn uprights(svg: &str) -> Vec<(f64, f64)> {
    let points = |line: &str| -> Option<Vec<f64>> {
        let list = line.split_once("points=\"")?.1.split_once('"')?.0;
        list.split([' ', ',']).filter(|part| !part.is_empty()).map(|part| part.parse().ok()).collect()
    };
    let strokes = svg.lines().filter(|line| line.starts_with("<polyline") && line.contains("stroke-width=\"2\""));
    strokes
        .filter_map(points)
        .filter(|at| at.len() == 4 && at[0] == at[2] && at[1] != at[3])
        .map(|at| (at[1], at[3]))
        .collect()
}

#[test]
fn pictures_show_the_interval_of_each_answer() {
    let wide = |bytes: u32, rate: f64, upper: f64| {
        let size = around(bytes, rate);
        let answer = IntervalAnswer { lower_fps: Some(fps(rate)), upper_fps: Some(fps(upper)), ..size.answer.unwrap() };
        SizeResult { answer: Some(answer), ..size }
    };
    let limited = SizeResult { outcome: Outcome::TesterLimited, ..around(256, 1e6) };
    let mut measured = result(vec![wide(64, 1e6, 1.4e6), wide(128, 1e6, 1e6), limited, wide(512, 0.5e6, 9e6)]);
    measured.link_bps = None;

    let text = short(&measured, &Style { unicode: true, ..Style::PIPE });
    let open = |start: &str| {
        let row = text.lines().find(|line| line.trim_start().starts_with(start) && line.contains('█'));
        row.unwrap_or_else(|| panic!("{start}: {text}")).matches('░').count()
    };
    assert!(open("64 ") > 5 && open("128 ") == 0 && open("256 ") == 0 && open("512 ") > open("64 "), "{text}");
    assert!(text.contains("░ up to the upper end of its interval"), "{text}");

    let svg = report::svg::render(&measured).unwrap();
    // The legend's, and those of the three answers: nothing is claimed where the tester set the limit.
    let strokes = uprights(&svg);
    assert_eq!(strokes.len(), 3, "a flat interval has caps only: {strokes:?}");
    let of_64 = strokes[1];
    // The bar of 64 B ends where its interval begins, and the scale holds the upper end.
    assert!((of_64.0 - of_64.1) > 50.0 && of_64.1 >= 96.0, "{strokes:?}");
    assert!(svg.contains("its interval"));

    measured.sizes.retain(|size| size.outcome == Outcome::TesterLimited);
    assert!(!report::svg::render(&measured).unwrap().contains("its interval"));
}
