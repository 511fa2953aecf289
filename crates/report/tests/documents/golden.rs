//! Whole documents as snapshots, and what holds for all of them.

use std::path::PathBuf;

use insta::assert_snapshot;
use measure::{
    power::Power,
    result::{FindingLevel, HostFinding, Outcome, RunResult, SizeResult, Standing, Warning, WarningKind},
    timeline::{Absence, Party, Slice, Timeline, TrialTimeline},
    trial::{Purpose, Rule},
};
use report::{csv, run, selftest, svg, trial_line, Audience, Detail, Style, Topic};

use crate::fixtures::*;

const WIDE: Style = Style { colour: false, unicode: true, width: 120 };
const NARROW: Style = Style { colour: false, unicode: false, width: 80 };

#[test]
fn one_way_over_ten_gig() {
    let files = [PathBuf::from("out/run.json"), PathBuf::from("out/run.svg")];
    assert_snapshot!(text(&ten_gig(), Detail::Short, &WIDE, &files));
    assert_snapshot!("one_way_over_ten_gig_verbose", text(&ten_gig(), Detail::Verbose, &WIDE, &files));
}

#[test]
fn one_way_over_ten_gig_in_80_columns_of_ascii() {
    let (short, verbose) = (short(&ten_gig(), &NARROW), verbose(&ten_gig(), &NARROW));
    assert!(short.is_ascii() && verbose.is_ascii());
    assert_snapshot!(short);
    assert_snapshot!("one_way_over_ten_gig_in_80_columns_of_ascii_verbose", verbose);
}

#[test]
fn both_ways_over_ten_gig() {
    assert_snapshot!(short(&both_ways(), &WIDE));
    assert_snapshot!("both_ways_over_ten_gig_verbose", verbose(&both_ways(), &WIDE));
}

#[test]
fn a_link_far_above_the_dut() {
    let mut r = both_ways();
    r.link_bps = link("100G");
    assert_snapshot!(short(&r, &Style::PIPE));
}

#[test]
fn goals_of_an_mlrsearch() {
    let r = mlrsearch();
    assert_snapshot!(short(&r, &WIDE));
    assert_snapshot!("goals_of_an_mlrsearch_verbose", verbose(&r, &WIDE));
    assert!(page(&r).contains("| PDR "));
    assert!(!topics(&ten_gig()).contains(&Topic::Goals));
}

#[test]
fn csv_of_goals_has_a_line_each() {
    let mut r = mlrsearch();
    r.sizes.push(nothing(256, measure::result::Outcome::NoTraffic));
    assert_snapshot!(csv::sizes(&r));
}

#[test]
fn outcomes_without_a_figure() {
    assert_snapshot!(short(&every_outcome(), &WIDE));
    assert_snapshot!("outcomes_without_a_figure_verbose", verbose(&every_outcome(), &WIDE));
}

#[test]
fn a_discarded_trial() {
    assert_snapshot!(short(&invalid_trial(), &Style::PIPE));
    assert_snapshot!("a_discarded_trial_verbose", verbose(&invalid_trial(), &Style::PIPE));
    assert_snapshot!("a_discarded_trial_markdown", page(&invalid_trial()));
}

#[test]
fn markdown_of_a_run() {
    assert_snapshot!(page(&ten_gig()));
}

#[test]
fn markdown_without_figures() {
    assert_snapshot!(page(&every_outcome()));
}

/// The part of a text from one line to the next empty one, or to its end.
fn part<'a>(text: &'a str, title: &str) -> &'a str {
    let from = text.find(title).unwrap_or_else(|| panic!("{title}: {text}"));
    text[from..].split("\n\n## ").next().unwrap().split("\n\nTrust").next().unwrap()
}

#[test]
fn power_of_the_machine() {
    let size = with_power(result(vec![found(64, 12.3e6, 1)]));
    assert_snapshot!(part(&verbose(&size, &NARROW), "Power of this machine"));
    assert_snapshot!("power_of_the_machine_markdown", part(&page(&size), "Power of this machine"));
    assert!(!short(&size, &WIDE).contains("Power"), "it is a detail");
    let single = with_power(invalid_trial());
    assert_snapshot!("power_of_a_trial", part(&verbose(&single, &NARROW), "Power of this machine"));
    let csv = csv::trials(&single);
    assert_eq!(csv.lines().next().unwrap().split(',').count(), csv.lines().nth(1).unwrap().split(',').count());
    assert_snapshot!("power_of_a_trial_csv", csv);
    // A machine that has thermometers only.
    let mut hot = with_power(result(vec![found(64, 12.3e6, 1)]));
    hot.host.idle_power = None;
    for power in hot.trials.iter_mut().filter_map(|trial| trial.power.as_mut()) {
        *power = Power { temperatures_celsius: power.temperatures_celsius.clone(), ..Power::default() };
    }
    assert_snapshot!("power_of_thermometers", part(&verbose(&hot, &NARROW), "Power of this machine"));
    assert!(!verbose(&ten_gig(), &WIDE).contains("Power"), "a machine without sensors has no such section");
}

#[test]
fn csv_of_a_run() {
    assert_snapshot!(csv::sizes(&every_outcome()));
    assert_snapshot!("csv_of_the_trials", csv::trials(&invalid_trial()));
}

#[test]
fn selftest_table() {
    assert_snapshot!(selftest::render(&ten_gig().selftest, link("10G"), &Style::PIPE));
}

#[test]
fn trial_lines() {
    let bounds = (Some(fps(8.1e6)), Some(fps(14.2e6)));
    let clean = trial(12, 64, 12.3e6, Purpose::Search, 0);
    let lossy = violated(trial(13, 64, 12.3e6, Purpose::Search, 12_300), Rule::Interrupted, "why");
    let lines = [
        trial_line::render(&clean, bounds, &Style::PIPE),
        trial_line::render(&violated(lossy, Rule::Moved, "why"), bounds, &Style::PIPE),
        trial_line::render(&violated(clean, Rule::Clock, "why"), (None, None), &Style::PIPE),
    ];
    assert_snapshot!(lines.join("\n"), @r"
    #12 64 B 12.30 Mpps 1 s  lost 0  [8.100 M .. 14.20 Mpps]  valid
    #13 64 B 12.30 Mpps 1 s  lost 12,300 (0.1 %)  [8.100 M .. 14.20 Mpps]  invalid: interrupted, cores moved
    #12 64 B 12.30 Mpps 1 s  lost 0  valid, latency withheld
    ");
}

/// What the sections that a short text shows are about.
fn topics(r: &RunResult) -> Vec<Topic> {
    let document = run::document(r, []);
    document.sections().iter().filter(|s| s.is_for(Audience::SHORT)).map(report::Section::topic).collect()
}

#[test]
fn every_document_has_one_order() {
    let document = run::document(&ten_gig(), []);
    let all: Vec<Topic> = document.sections().iter().map(report::Section::topic).collect();
    use Topic::*;
    assert_eq!(topics(&ten_gig()), [Setting, Throughput, Delay, Picture, Trust, Standing]);
    assert_eq!(topics(&mlrsearch()), [Setting, Goals, Delay, Trust, Standing]);
    let place = |topic| all.iter().position(|t| *t == topic).unwrap();
    for (text, marks) in [
        (verbose(&ten_gig(), &WIDE), ["Throughput\n", "One-way delay", "Throughput against", "Trust", "completed"]),
        (page(&ten_gig()), ["## Throughput\n", "## One-way delay", "## Throughput against", "## Trust", "<details>"]),
    ] {
        let at: Vec<usize> =
            marks.iter().map(|mark| text.find(mark).unwrap_or_else(|| panic!("{mark}: {text}"))).collect();
        assert!(at.is_sorted(), "{at:?}");
    }
    assert!(place(Trust) < place(Standing) && place(Standing) < place(Trials));
}

/// Seven sizes, some of them without a figure.
fn seven(figures: usize, directions: u32) -> RunResult {
    let why =
        "sent 1,000,000 frames from wire:a, links up, 0 came back stamped and 12 unstamped at wire:b: the DUT has no \
               route to 198.19.0.0/16; ";
    let sizes = measure_sizes().into_iter().enumerate().map(|(i, bytes)| match i < figures {
        true => found(bytes, 1e6 + f64::from(bytes), directions),
        false => {
            SizeResult { diagnosis: Some(format!("{} {}", why.repeat(3), i)), ..nothing(bytes, Outcome::NoTraffic) }
        }
    });
    let mut r = RunResult { directions, link_bps: link("10G"), ..result(sizes.collect()) };
    r.warnings.extend(r.warnings.clone());
    r.trials = every_outcome().trials;
    r.dut = format!("simulated sim:{}seed=3", "latency=30000ns,".repeat(12));
    r.plan_name = "a-plan-with-a-long-name".repeat(3);
    for kind in
        [WarningKind::Clock, WarningKind::Foreign, WarningKind::Host, WarningKind::CpuShared, WarningKind::Needs]
    {
        r.warnings.push(Warning { kind, text: "long ".repeat(40) });
    }
    r
}

/// Files whose names take more than a line.
fn many_files() -> [PathBuf; 3] {
    ["json", "md", "csv"].map(|kind| PathBuf::from(format!("{}/run.{kind}", "results-of-a-long-campaign".repeat(4))))
}

fn measure_sizes() -> Vec<u32> {
    units::FrameSize::RFC2544.iter().map(|s| s.bytes()).collect()
}

#[test]
fn a_run_of_seven_sizes_has_forty_lines_at_most() {
    for width in [80, 100, 120] {
        for directions in [1, 2] {
            for figures in 0..=7 {
                let style = Style { width, ..WIDE };
                let text = text(&seven(figures, directions), Detail::Short, &style, &many_files());
                let lines = text.lines().count();
                assert!(lines <= 40, "{lines} lines, {figures} figures, {width} columns:\n{text}");
            }
        }
    }
    assert_snapshot!(text(&seven(6, 2), Detail::Short, &NARROW, &many_files()));
}

#[test]
fn a_standing_says_whose_limits_the_figures_are() {
    let line = |r: &RunResult| {
        let text = short(r, &WIDE);
        text.lines().last().unwrap().to_owned()
    };
    let mut limited = ten_gig();
    limited.sizes.iter_mut().for_each(|s| s.outcome = Outcome::TesterLimited);
    let mut missed = every_outcome();
    missed.standing = Standing::CriterionMissed;
    let mut stopped = every_outcome();
    stopped.standing = Standing::Stopped;
    let mut soak = tests();
    soak.tests.retain(|t| t.test == measure::plan::Test::Soak);
    let one = result(vec![found(64, 1e6, 1)]);
    let lines = [limited, ten_gig(), every_outcome(), missed, stopped, soak, mlrsearch(), one, invalid_trial()];
    assert_snapshot!(lines.iter().map(line).collect::<Vec<_>>().join("\n"));
    for r in lines {
        for text in [short(&r, &WIDE), verbose(&r, &WIDE), page(&r)] {
            assert!(!text.contains("passed"), "{text}");
        }
    }
}

#[test]
fn a_name_of_the_device_is_in_every_document() {
    let named = RunResult { dut_name: Some("edge router 7".into()), ..ten_gig() };
    let svg = report::svg::render(&named).unwrap();
    let csv = csv::figures(&run::document(&named, []));
    for text in [short(&named, &WIDE), verbose(&named, &WIDE), page(&named), svg, csv] {
        assert!(text.contains("edge router 7"), "{text}");
    }
}

#[test]
fn settings_of_the_host_that_were_wrong_stand_in_every_text() {
    let mut r = ten_gig();
    assert!(![short(&r, &WIDE), verbose(&r, &WIDE), page(&r)].iter().any(|text| text.contains("host audit")));
    let finding = |id: &str, level| HostFinding {
        id: id.into(),
        level,
        place: "/proc/x".into(),
        got: "1".into(),
        want: "0".into(),
    };
    use FindingLevel::{Bad, Warn};
    let all = [("a.bad", Bad), ("b.one", Warn), ("b.one", Warn), ("c.two", Warn), ("d.three", Warn)];
    r.host.findings = Some(all.map(|(id, level)| finding(id, level)).to_vec());
    assert!(short(&r, &WIDE).contains("1 bad, 3 may matter: a.bad, b.one, c.two, ... (linerate host audit)"));
    for text in [verbose(&r, &WIDE), page(&r)] {
        assert!(text.contains("a.bad, b.one, c.two, d.three (linerate host audit)"), "{text}");
    }
    r.host.findings = Some(vec![finding("b.one", Warn)]);
    assert!(short(&r, &WIDE).contains("1 may matter: b.one (linerate host audit)"));
    r.host.findings = Some(vec![finding("a.bad", Bad)]);
    assert!(short(&r, &WIDE).contains("1 bad: a.bad (linerate host audit)"));
    r.host.findings = Some(Vec::new());
    assert!(!verbose(&r, &WIDE).contains("host audit"), "nothing was open");
}

#[test]
fn a_standard_is_not_met_where_there_is_no_figure() {
    let mut r = result(vec![nothing(64, Outcome::Inconclusive)]);
    r.sizes[0].latency_standard = None;
    for text in [verbose(&r, &WIDE), page(&r), csv::sizes(&r)] {
        assert!(!text.contains("conditional"), "{text}");
    }
}

#[test]
fn colours_add_nothing_but_colours() {
    let shown = |r: &RunResult, style: &Style| short(r, style) + &verbose(r, style);
    for r in [ten_gig(), both_ways(), every_outcome(), invalid_trial()] {
        let coloured = shown(&r, &Style { colour: true, ..WIDE });
        let mut plain = String::new();
        let mut rest = coloured.as_str();
        while let Some((before, after)) = rest.split_once('\u{1b}') {
            plain.push_str(before);
            rest = after.split_once('m').unwrap().1;
        }
        plain.push_str(rest);
        let trimmed: Vec<&str> = plain.lines().map(str::trim_end).collect();
        let bare = shown(&r, &WIDE);
        assert_eq!(trimmed, bare.lines().map(str::trim_end).collect::<Vec<_>>());
        assert!(coloured.contains("\u{1b}[1m") && !bare.contains('\u{1b}'));
    }
}

#[test]
fn no_line_is_wider_than_the_terminal() {
    for width in [40, 60, 80, 100, 120] {
        for r in [ten_gig(), both_ways(), every_outcome(), invalid_trial()] {
            let text = short(&r, &Style { width, ..WIDE }) + &verbose(&r, &Style { width, ..WIDE });
            for line in text.lines() {
                assert!(line.chars().count() <= width, "{width}: {line}");
            }
        }
    }
}

#[test]
fn an_outcome_that_is_no_answer_shows_no_rate() {
    let text = verbose(&every_outcome(), &WIDE);
    let row = |size: &str| text.lines().find(|l| l.trim_start().starts_with(size)).unwrap().to_owned();
    assert!(row("64 ").contains(">= 12,300,000") && row("64 ").contains("tester-limited"));
    for size in ["256 ", "512 ", "1024 ", "1280 "] {
        assert!(!row(size).trim_start()[size.len()..].contains(|c: char| c.is_ascii_digit()), "{}", row(size));
    }
}

#[test]
fn the_picture_has_the_trial_over_time_that_the_result_keeps() {
    let busy = Slice { sent: u32::MAX, received: 80, min_delay_ns: 2_500, ..Slice::default() };
    let away = |from_s, to_s| Absence { who: Party::Device, from_s, to_s };
    let absences = vec![away(-1e300, 1e300), away(0.001, 0.002), away(0.02, 0.01)];
    let kept = |directions: usize| {
        let timeline =
            Timeline { slice_s: 1e-4, directions: vec![vec![busy; 300]; directions], absences: absences.clone() };
        let run = RunResult { timeline: Some(TrialTimeline { trial: 1, timeline }), ..ten_gig() };
        svg::render(&run).unwrap()
    };
    let (none, one, nine) = (svg::render(&ten_gig()).unwrap(), kept(1), kept(9));
    let panels = |svg: &str| svg.matches("Trial over time").count();
    assert_eq!((panels(&none), panels(&one), panels(&nine), panels(&kept(0))), (0, 1, 2, 0));
    assert!(one.contains("64 B at 14.00 Mpps, trial 1"));
}
