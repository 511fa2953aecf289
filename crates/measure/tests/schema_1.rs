//! Results that an earlier version stored are still read.
#![allow(clippy::unwrap_used)]

use measure::{
    result::{RunResult, Verdict, SCHEMA, SCHEMA_1},
    schema::{device::DeviceRecord, standing::Standing},
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
