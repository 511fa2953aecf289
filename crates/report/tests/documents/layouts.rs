//! Results in the layouts of the source documents: fed with the documents' own packets/s, they print the documents' tables.

use measure::result::{FindingLevel, HostFinding, Outcome, Placement, RunResult, Warning, WarningKind};
use report::{
    layout::{compare, plan_against, sheet, Layout},
    sheet as sheets, Detail, Document, Section, Style,
};
use serde_json::json;

use crate::fixtures::*;

/// Table 3 of the two-VM document as CSV would hold it: size, then PPS, Mbps and % of Gen10 and of Gen9, improvement.
const TABLE_3: &str = "\
64,5837092,3922,7.85,5049933,3393,6.79,15.59
128,5333702,6315,12.63,4660117,5517,11.04,14.45
256,4629236,10221,20.44,4312267,9521,19.04,7.35
512,3893095,16569,33.14,3694233,15722,31.45,5.38
1024,2839343,23714,47.43,2689288,22460,44.92,5.58
1280,2547826,26497,52.99,2439059,25366,50.73,4.46
1518,2374471,29215,58.43,2307668,28393,56.79,2.89";

/// Table 7-5 of the ONP report: size, Mbps, packets/s, % of line rate.
const TABLE_7_5: &str = "\
64,7825,11644358,20
72,8560,11630128,21
128,13780,11638931,34
256,25653,11618095,64
512,40000,9398496,100
768,40000,6345178,100
1024,40000,4789272,100
1280,40000,3846154,100
1518,40000,3250975,100";

fn plain(sheet: &Section, style: &Style) -> String {
    let document = Document::of(vec![sheet.clone()]);
    format!("\n{}", report::terminal::render(&document, Detail::Verbose, style, &[]))
}

fn csv(sheet: &Section) -> String {
    sheets::csv(std::slice::from_ref(sheet))
}

fn rows(table: &str) -> Vec<Vec<&str>> {
    table.lines().map(|l| l.split(',').collect()).collect()
}

/// A run both ways whose packets/s are a column of a table.
fn run_of(table: &str, column: usize, speed: &str) -> RunResult {
    let size = |row: Vec<&str>| found(row[0].parse().unwrap(), row[column].parse::<f64>().unwrap() / 2.0, 2);
    RunResult { link_bps: link(speed), directions: 2, ..result(rows(table).into_iter().map(size).collect()) }
}

/// Fields of a CSV without its header; a figure's closing zeros do not count.
fn fields(sheet: &Section) -> Vec<Vec<String>> {
    csv(sheet).lines().skip(1).map(|l| l.split(',').map(str::to_owned).collect()).collect()
}

#[track_caller]
fn same(found: &[String], printed: &[&str]) {
    let number = |t: &str| t.parse::<f64>().unwrap();
    for (ours, theirs) in found.iter().zip(printed) {
        assert_eq!(number(ours), number(theirs), "{found:?} {printed:?}");
    }
}

#[test]
fn the_two_vm_document_s_table_with_its_improvements() {
    let (new, old) = (run_of(TABLE_3, 1, "25G"), run_of(TABLE_3, 4, "25G"));
    for (row, printed) in fields(&sheet(&[&new], Layout::Nfvi)).iter().zip(rows(TABLE_3)) {
        same(row, &printed[..4]);
    }
    let compared = compare(&new, &old).unwrap();
    for (row, printed) in fields(&compared).iter().zip(rows(TABLE_3)) {
        assert_eq!(row.len(), printed.len());
        same(row, &printed);
    }
    let text = plain(&compared, &Style::PIPE);
    insta::assert_snapshot!(text);
    assert!(sheets::markdown(std::slice::from_ref(&compared))
        .contains("| 64 | 5,837,092 | 3,922 | 7.85 | 5,049,933 | 3,393 | 6.79 | 15.59 |"));
}

#[test]
fn the_onp_report_s_table() {
    let mut run = run_of(TABLE_7_5, 2, "20G");
    run.effective_plan = json!({ "needs": { "topology": "PHY-VM-VM-PHY" } });
    let onp = sheet(&[&run], Layout::Onp);
    for (row, printed) in fields(&onp).iter().zip(rows(TABLE_7_5)) {
        same(row, &printed);
        let figures: Vec<f64> = row[4..8].iter().map(|f| f.parse().unwrap()).collect();
        assert!(figures[1] <= figures[0] && figures[0] <= figures[2], "average, minimum, maximum: {row:?}");
        assert_eq!(figures[3], row[2].parse::<f64>().unwrap() * 3.0, "three switching operations");
    }
    insta::assert_snapshot!(plain(&onp, &Style::PIPE));
}

#[test]
fn the_small_router_document_s_table_has_a_row_a_load_test() {
    let of = |plan: &str, bytes: u32, pps: f64, directions: u32, traffic: serde_json::Value| RunResult {
        plan_name: plan.into(),
        directions,
        link_bps: link("10G"),
        effective_plan: json!({ "traffic": traffic }),
        ..result(vec![found(bytes, pps / f64::from(directions), directions)])
    };
    let runs = [
        of("router-u1 (quick)", 1514, 809e3, 1, json!({ "flows": 1024, "mpls": [] })),
        of("router-u3", 64, 7.77e6, 1, json!({ "flows": 1, "mpls": [] })),
        of("router-b2", 64, 12.7e6, 2, json!({ "flows": 16384, "mpls": [] })),
        of("router-b4", 64, 6.79e6, 2, json!({ "flows": 16384, "mpls": [16] })),
    ];
    let router = sheet(&runs.iter().collect::<Vec<_>>(), Layout::Router);
    let names: Vec<_> = fields(&router).into_iter().map(|row| row[0].clone()).collect();
    let expected = [
        "U1: Unidirectional 1514b",
        "U3: Unidirectional 64b Single",
        "B2: Bidirectional 64b Multi",
        "B4: Bidirectional 64b MPLS",
    ];
    assert_eq!(names, expected);
    let text = plain(&router, &Style::PIPE);
    // Printed there: 9.77Gbps, 809kpps, 99.2 % (cut); 3.73Gbps, 7.77Mpps, 52.2 %; 6.08Gbps, 12.7Mpps, 42.7 %; 22.8 %.
    for figure in ["9.773 G", "809.0 k", "99.3", "3.730 G", "7.770 M", "52.2", "6.096 G", "42.7", "22.8"] {
        assert!(text.contains(figure), "{figure}: {text}");
    }
    assert!(csv(&router).contains("\nU3: Unidirectional 64b Single,3730000000,5221000000,7770000,52.2,"));
}

#[test]
fn the_flow_logger_s_rates() {
    let run = RunResult { directions: 2, link_bps: link("10G"), ..result(vec![found(64, 14.5e6, 2)]) };
    let text = plain(&sheet(&[&run], Layout::Flowlog), &Style::PIPE);
    // 29 MPPS, 97 % of full bandwidth.
    assert!(text.contains("29.00") && text.contains("14.50") && text.contains("97.4"), "{text}");
}

#[test]
fn what_a_result_cannot_fill_is_a_dash() {
    let run = every_outcome();
    for layout in Layout::ALL {
        let sheet = sheet(&[&run, &run], layout);
        let text = plain(&sheet, &Style { width: 120, ..Style::PIPE });
        assert!(text.contains(" -") && text.contains("inconclusive") && text.contains(">= "), "{layout}: {text}");
        assert_eq!(csv(&sheet).lines().count(), 1 + 2 * run.sizes.len());
        assert!(!csv(&sheet).contains(",-,"), "nothing is nothing in CSV");
    }
}

#[test]
fn results_that_do_not_compare_say_why() {
    let new = run_of(TABLE_3, 1, "25G");
    let old = || run_of(TABLE_3, 4, "25G");
    let why = |old: RunResult| compare(&new, &old).unwrap_err().join("; ");
    let mut why_not = vec![
        why(RunResult { plan_name: "ci".into(), ..old() }),
        why(RunResult { link_bps: link("10G"), ..old() }),
        why(RunResult { sizes: vec![], ..old() }),
    ];
    let mut fewer = old();
    fewer.sizes.pop();
    why_not.push(why(fewer));
    let mut virtually = old();
    virtually.warnings.push(Warning { kind: WarningKind::Simulated, text: String::new() });
    why_not.push(why(virtually.clone()));
    let mut emulated = old();
    emulated.warnings.push(Warning { kind: WarningKind::Emulated, text: String::new() });
    why_not.push(why(emulated));
    let plan =
        json!({ "search": { "precision": 0.01, "max_trials": 7 }, "traffic": { "flows": 9 }, "description": "x" });
    let text = why(RunResult { effective_plan: plan, ..old() });
    assert!(!text.contains("max_trials 7"), "{text}");
    why_not.push(text);

    // The same before anything is measured.
    let planned = |name: &str, sizes: &[u32], simulated| {
        let mut plan = old().effective_plan;
        plan["frame_sizes"] = json!(sizes);
        plan_against(name, &plan, simulated, &old()).join("; ")
    };
    let all: Vec<u32> = old().sizes.iter().map(|s| s.frame_size_bytes.largest().bytes()).collect();
    assert_eq!(planned("rfc2544-quick", &all, false), "");
    why_not.extend([planned("rfc2544-quick", &[64], false), planned("ci", &all, true)]);
    insta::assert_snapshot!(why_not.join("\n"));
}

#[test]
fn rows_that_do_not_compare_get_no_percentage() {
    let (new, mut old) = (run_of(TABLE_3, 1, "25G"), run_of(TABLE_3, 4, "25G"));
    old.sizes[0].placement = Some(Placement { class: 0, core_to_core_ns: 340.0 });
    old.sizes[1].outcome = Outcome::TesterLimited;
    old.sizes[2] = nothing(256, Outcome::Inconclusive);
    let (mut full, mut was) = (run_of("1518,1625487", 1, "10G"), run_of("1518,1625487", 1, "10G"));
    (full.sizes[0].outcome, was.sizes[0].outcome) = (Outcome::AtMaximum, Outcome::AtMaximum);
    insta::assert_snapshot!(compare(&full, &was).unwrap_err().join("\n"), @"1518 B: both are at line rate: the links, not the devices, set the figures");
    was.sizes[0].throughput_fps = Some(fps(650_194.8));
    was.sizes[0].outcome = Outcome::Found;
    assert_eq!(fields(&compare(&full, &was).unwrap())[0][7], "25");
    let sheet = compare(&new, &old).unwrap();
    let last: Vec<String> = fields(&sheet).into_iter().map(|row| row.last().unwrap().clone()).collect();
    assert_eq!(last, ["", "", "", "5.38", "5.58", "4.46", "2.89"]);
    let text = plain(&sheet, &Style::PIPE);
    insta::assert_snapshot!(text);
    for size in &mut old.sizes {
        size.outcome = Outcome::Inconclusive;
    }
    assert_eq!(compare(&new, &old).unwrap_err().len(), 7, "nothing left to compare");
}

#[test]
fn nothing_from_outside_breaks_a_sheet() {
    let (new, mut old) = (hostile(), hostile());
    for size in &mut old.sizes {
        size.throughput_fps = Some(fps(1.0));
    }
    let compared = compare(&new, &old).unwrap();
    for sheet in Layout::ALL.map(|l| sheet(&[&new, &old], l)).into_iter().chain([compared]) {
        for text in [plain(&sheet, &Style::PIPE), sheets::markdown(std::slice::from_ref(&sheet)), csv(&sheet)] {
            assert!(!text.chars().any(|c| c.is_control() && c != '\n'), "{text:?}");
        }
        assert!(!sheets::markdown(std::slice::from_ref(&sheet)).contains("<script"));
    }
}

#[test]
fn settings_of_the_host_that_only_one_run_had_wrong_are_named() {
    let with = |ids: &[&str]| {
        let mut r = result(vec![found(64, 12.3e6, 1)]);
        let finding = |id: &&str| HostFinding {
            id: (*id).to_owned(),
            level: FindingLevel::Warn,
            place: String::new(),
            got: "1".into(),
            want: String::new(),
        };
        r.host.findings = Some(ids.iter().map(finding).collect());
        plain(&compare(&r, &result_with(&r)).unwrap(), &Style::PIPE)
    };
    // The old run had these wrong.
    fn result_with(new: &RunResult) -> RunResult {
        let mut old = new.clone();
        for finding in old.host.findings.iter_mut().flatten() {
            if finding.id == "b.new" {
                finding.id = "c.old".to_owned();
            }
        }
        old
    }
    let text = with(&["a.both", "b.new"]);
    assert!(text.contains("found wrong in the new run only: b.new"), "{text}");
    assert!(text.contains("found wrong in the old run only: c.old"), "{text}");
    assert!(!with(&["a.both"]).contains("run only"));
}
