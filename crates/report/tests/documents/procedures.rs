//! The sections of the tests beside the throughput.

use insta::assert_snapshot;
use measure::{
    plan::Test,
    procedure::*,
    result::{RunResult, TestResult},
};
use report::{run, svg, Detail, Style, Topic};

use crate::fixtures::*;

#[test]
fn each_test_has_a_table_its_standard_and_its_departures() {
    let result = tests();
    assert_snapshot!(verbose(&result, &Style::PIPE));
    assert_snapshot!("tests_in_short", short(&result, &Style::PIPE));
    let page = page(&result);
    for section in run::document(&result, []).sections().iter().filter(|s| matches!(s.topic(), Topic::Test(_))) {
        assert!(page.contains(&format!("## {}\n", section.title())), "{page}");
    }
}

#[test]
fn six_tests_at_seven_sizes_have_forty_lines_at_most() {
    let one = tests();
    let mut seven = RunResult { sizes: Vec::new(), tests: Vec::new(), ..one.clone() };
    for size in units::FrameSize::RFC2544 {
        seven.sizes.push(found(size.bytes(), 1e6, 1));
        seven.tests.extend(one.tests.iter().cloned().map(|t| TestResult { frame_size_bytes: size.into(), ..t }));
    }
    // The tests of the plan `rfc2544-all`, and one more.
    seven.tests.retain(|t| !matches!(t.test, Test::Soak | Test::Pdv | Test::Reset) && !t.test.is_of_addresses());
    for width in [80, 100, 120] {
        let text = text(&seven, Detail::Short, &Style { width, ..Style::PIPE }, &["run.json".into()]);
        assert!(text.lines().count() <= 40, "{text}");
    }
    assert_snapshot!(short(&seven, &Style::PIPE));
    let whole = verbose(&seven, &Style::PIPE);
    assert!(whole.lines().count() > 100, "{whole}");
}

#[test]
fn a_burst_as_long_as_the_longest_tried_is_a_lower_bound() {
    let mut result = tests();
    let table = |result: &RunResult| short(result, &Style::PIPE);
    assert!(!table(&result).contains(">= 3,121"));
    for test in result.tests.iter_mut().filter(|t| t.test == Test::BackToBack) {
        test.outcome = TestOutcome::AtMaximum;
    }
    assert!(table(&result).contains(">= 3,121"));
}

#[test]
fn results_that_do_not_tell_how_far_the_standard_is_met_are_shown_without() {
    let mut result = ten_gig();
    let standards = |text: &str| {
        let lines = text.lines().filter(|line| line.starts_with("standard") || line.starts_with("departs"));
        lines.map(str::to_owned).collect::<Vec<_>>()
    };
    let before = standards(&verbose(&result, &Style::PIPE));
    assert_snapshot!("standards_met", before.join("\n"));
    result.sizes.iter_mut().for_each(|size| (size.compliance, size.latency_standard) = (None, None));
    let text = verbose(&result, &Style::PIPE);
    let after = standards(&text);
    assert!(after.len() < before.len(), "{text}");
    assert_snapshot!("standards_untold", after.join("\n"));
}

#[test]
fn the_loss_curve_is_drawn_and_every_figure_is_a_line() {
    let picture = svg::render(&tests()).unwrap();
    assert_snapshot!("words_of_a_loss_curve", words(&picture));
    let lines = csv_tests(&tests());
    assert!(lines.starts_with("frame_size_bytes,test,outcome,compliance,figure,value\n"), "{lines}");
    assert!(lines.contains("64,frame-loss,done,conditional,points.0.loss_ratio,0.328\n"), "{lines}");
    assert!(lines.contains("64,frame-loss,done,conditional,without_figure.0.reason,away\n"), "{lines}");
    assert!(lines.contains("64,back-to-back,done,conditional,frames.mean,3121.0\n"), "{lines}");
}

/// The words of a picture, a line each, without its figures.
fn words(picture: &str) -> String {
    let texts = picture.split("<text").skip(1).filter_map(|part| part.split_once('>')?.1.split_once('<'));
    let words = texts.map(|(text, _)| text.trim()).filter(|text| text.contains(char::is_alphabetic));
    words.collect::<Vec<_>>().join("\n")
}

/// The points of each line of a picture.
fn lines(picture: &str) -> Vec<Vec<(i32, i32)>> {
    let point = |text: &str| {
        let (x, y) = text.split_once(',').unwrap();
        (x.parse().unwrap(), y.parse().unwrap())
    };
    let line = |rest: &str| {
        let points = rest.split_once("points=\"").unwrap().1.split_once('"').unwrap().0;
        points.split_whitespace().map(point).collect()
    };
    picture.split("<polyline").skip(1).map(line).collect()
}

#[test]
fn a_loss_curve_has_a_gap_where_there_is_no_figure() {
    let mut result: RunResult = tests();
    result.tests.retain(|t| t.test == Test::FrameLoss);
    let Found::FrameLoss(curve) = &mut result.tests[0].found else { panic!("no curve") };
    let (point, missing) = (curve.points[0], curve.without_figure[0].clone());
    let lossy = |percent: f64| LossPoint { percent, loss_ratio: percent / 200.0, ..point };
    curve.points = [100.0, 90.0, 70.0, 60.0].map(lossy).to_vec();
    curve.without_figure = [80.0, 50.0].map(|percent| NoPoint { percent, ..missing.clone() }).to_vec();
    let picture = svg::render(&result).unwrap();
    let without_figures = words(&picture);
    assert_snapshot!("words_of_a_loss_curve_with_gaps", without_figures);
    let lines = lines(&picture);
    // The axis of loads goes from pixel 90 to 800.
    let x = |percent: i32| 90 + 710 * percent / 100;
    let xs: Vec<Vec<i32>> = lines.iter().map(|line| line.iter().map(|(x, _)| *x).collect()).collect();
    assert!(xs.contains(&vec![x(100), x(90)]) && xs.contains(&vec![x(70), x(60)]), "{xs:?}");
    let axis = lines.iter().flatten().filter(|(at, _)| *at == x(0)).map(|(_, y)| *y).max().unwrap();
    for (load, times) in [(80, 2), (50, 2), (70, 0), (60, 0)] {
        let crosses = |line: &&Vec<(i32, i32)>| {
            let [a, b] = line[..] else { return false };
            a.0 != b.0 && a.1 != b.1 && (a.0 + b.0, a.1 + b.1) == (2 * x(load), 2 * axis)
        };
        assert_eq!(lines.iter().filter(crosses).count(), times, "at {load} %: {lines:?}");
    }

    // A curve that has figures at no load is marked all the same; one that has them at all loads is as it always was.
    let Found::FrameLoss(curve) = &mut result.tests[0].found else { panic!("no curve") };
    curve.points.clear();
    assert_eq!(words(&svg::render(&result).unwrap()), without_figures);
    let Found::FrameLoss(curve) = &mut result.tests[0].found else { panic!("no curve") };
    (curve.points, curve.without_figure) = ([100.0, 90.0, 80.0].map(lossy).to_vec(), vec![]);
    let picture = svg::render(&result).unwrap();
    assert_snapshot!("words_of_a_whole_loss_curve", words(&picture));
    assert!(self::lines(&picture).iter().any(|line| line.len() == 3));
}

#[test]
fn names_of_mixes_stay_on_the_sheet() {
    let mut result: RunResult = tests();
    result.tests.retain(|t| t.test == Test::FrameLoss);
    result.tests[0].frame_size_bytes = "imix=58.33%x64:33.33%x570:8.34%x1518:seed=9223372036854775807".parse().unwrap();
    let picture = svg::render(&result).unwrap();
    let name = "IMIX (58.33%x64:33.33%x570...:seed=9223372036854775807)";
    let (before, _) = picture.split_once(name).unwrap();
    let tag = before.rsplit_once("<text x=\"").unwrap().1;
    let x: usize = tag.split('"').next().unwrap().parse().unwrap();
    // Characters of 16 pixels are 7 wide on average.
    assert!(x + 7 * name.len() <= 960 && x > 480, "{x}");
}

#[test]
fn names_from_outside_stay_text() {
    let mut result: RunResult = tests();
    for test in &mut result.tests {
        test.reason = Some("\u{1b}[31m<script>|`=1".to_owned());
        if let Found::Pdv(pdv) = &mut test.found {
            pdv.directions[0].from = "a\u{1b}|b\n".to_owned();
        }
    }
    assert!(!verbose(&result, &Style::PIPE).contains('\u{1b}'));
    assert!(!page(&result).contains("<script>"));
    assert!(!csv_tests(&result).contains('\u{1b}'));
}
