//! Results that an earlier version stored are still read.
#![allow(clippy::unwrap_used)]

use measure::{
    result::{RunResult, Verdict, SCHEMA, SCHEMA_1},
    schema::{
        device::DeviceRecord,
        standing::Standing,
        sweep::{SweepResult, SWEEP_SCHEMA, SWEEP_SCHEMA_1},
    },
    standing, upgrade,
};

const STORED: &str = include_str!("data/result-1.json");

fn stored(verdict: &str) -> RunResult {
    serde_json::from_str(&STORED.replace("\"verdict\": \"passed\"", &format!("\"verdict\": \"{verdict}\""))).unwrap()
}

#[test]
fn a_result_of_schema_1_is_read_and_upgraded() {
    let mut result = stored("passed");
    assert_eq!((result.schema.as_str(), result.standing), (SCHEMA_1, Standing::Completed));
    upgrade::run(&mut result);
    assert_eq!((result.schema.as_str(), result.standing), (SCHEMA, Standing::Completed));
    let text = "simulated sim:capacity=2M,queue=256,latency=10000ns,seed=1".to_owned();
    assert_eq!(result.device.describe(), text);
    assert_eq!(result.device, DeviceRecord::Unknown { text });
    assert_eq!(standing::describe(&result), "completed; no criterion was set; the figure is a limit of the device");
    assert_eq!(result.effective_plan["trust"]["placements"], "separate");
    let again: RunResult = serde_json::from_str(&serde_json::to_string(&result).unwrap()).unwrap();
    assert_eq!(again, result);
}

#[test]
fn every_verdict_has_a_standing() {
    let standings = ["passed", "failed", "inconclusive", "stopped"].map(|verdict| {
        let mut result = stored(verdict);
        upgrade::run(&mut result);
        (result.standing, result.standing.verdict())
    });
    assert_eq!(
        standings,
        [
            (Standing::Completed, Verdict::Passed),
            (Standing::CriterionMissed, Verdict::Failed),
            (Standing::NotTrustworthy, Verdict::Inconclusive),
            (Standing::Stopped, Verdict::Stopped),
        ]
    );
}

#[test]
fn passed_never_stands_over_figures_of_the_tester() {
    let limited = STORED.replace("\"outcome\": \"found\"", "\"outcome\": \"tester_limited\"");
    let mut result: RunResult = serde_json::from_str(&limited).unwrap();
    upgrade::run(&mut result);
    assert_eq!(result.standing, Standing::NotDeviceLimit);
    assert_eq!(standing::describe(&result), "completed; no criterion was set; the figure is not a limit of the device");
}

#[test]
fn a_run_without_a_figure_keeps_its_standing() {
    let mut result = stored("failed");
    result.sizes.clear();
    upgrade::run(&mut result);
    assert_eq!(result.standing, Standing::CriterionMissed);
}

#[test]
fn figures_of_a_run_that_did_not_end_are_not_described() {
    for standing in [Standing::Stopped, Standing::Interrupted] {
        let result = RunResult { standing, ..stored("passed") };
        assert_eq!(standing::describe(&result), standing.describe());
    }
}

#[test]
fn old_words_for_placements_are_replaced() {
    for (old, new) in [("apart", "separate"), ("together", "combined"), ("combined", "combined")] {
        let mut result = stored("passed");
        result.effective_plan["trust"]["placements"] = old.into();
        upgrade::run(&mut result);
        assert_eq!(result.effective_plan["trust"]["placements"], new);
    }
}

/// A sweep of one point with this result.
fn sweep_of(point: &str, verdict: &str) -> SweepResult {
    let text = format!(
        r#"{{ "schema": "{SWEEP_SCHEMA_1}", "linerate_version": "0.1.0", "plan_name": "p", "started_at": "", "elapsed_s": 1,
              "effective_plan": {{}}, "keys": ["cores"], "planned": 1, "verdict": "{verdict}",
              "points": [{{ "values": {{ "cores": 1 }}, "result": {point} }}] }}"#
    );
    serde_json::from_str(&text).unwrap()
}

#[test]
fn a_sweep_of_schema_1_is_upgraded_with_its_points() {
    let limited = STORED.replace("\"outcome\": \"found\"", "\"outcome\": \"tester_limited\"");
    for (point, verdict, standing) in [
        (STORED, "passed", Standing::Completed),
        (&limited, "passed", Standing::NotDeviceLimit),
        (&limited, "stopped", Standing::Stopped),
    ] {
        let mut sweep = sweep_of(point, verdict);
        upgrade::sweep(&mut sweep);
        assert_eq!((sweep.schema.as_str(), sweep.standing), (SWEEP_SCHEMA, standing));
        assert_eq!(sweep.points[0].result.schema, SCHEMA);
    }
}
