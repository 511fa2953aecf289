//! `docs/results-schema.md` cannot rot: its example parses, and every field is in it.

use measure::{
    result::{MixFacts, RunResult, SCHEMA},
    shape::{LoadShape, ReplayCounts},
    timeline::{Absence, Party, Slice, Timeline, TrialTimeline},
    trial::DirectionCounts,
};
use serde_json::Value;

use crate::fixtures::*;

const PAGE: &str = include_str!("../../../../docs/results-schema.md");

fn example() -> &'static str {
    let (_, rest) = PAGE.split_once("## An example\n").unwrap();
    let (_, rest) = rest.split_once("```json\n").unwrap();
    rest.split_once("\n```").unwrap().0
}

#[test]
fn the_example_is_a_result() {
    let result: RunResult = serde_json::from_str(example()).unwrap();
    assert_eq!(result.schema, SCHEMA);
    let written: Value = serde_json::to_value(&result).unwrap();
    let read: Value = serde_json::from_str(example()).unwrap();
    assert_eq!(written, read, "the example holds a field that the schema does not, or lacks one");
    let [size] = result.sizes.as_slice() else { panic!("one size") };
    let counts = &size.at_throughput[0];
    assert_eq!(counts.sent, counts.received + counts.lost);
    assert!(result.trials.iter().any(|t| !t.valid()) && result.trials.iter().any(|t| t.valid()));
}

fn names(value: &Value, path: &str, found: &mut Vec<String>) {
    match value {
        Value::Object(map) => {
            for (key, inner) in map {
                // The plan, the extra host facts, the DUT's counters and sensors are maps with names of their own.
                let maps = ["extra", "effective_plan", "drops", "counters", "sensor_watts", "temperatures_celsius"];
                if !maps.contains(&key.as_str()) {
                    names(inner, key, found);
                }
                found.push(if path == "extra" { path.to_owned() } else { key.clone() });
            }
        }
        Value::Array(items) => items.iter().for_each(|i| names(i, path, found)),
        _ => {}
    }
}

#[test]
fn every_field_is_described() {
    let mut found = vec![];
    let away = Absence { who: Party::Tester, from_s: 0.0, to_s: 1e-3 };
    let mut mixed = ten_gig();
    mixed.mixes = MixFacts::of(&["imix=64-1518:seed=7", "imix=50%x64:50%x128"].map(|text| text.parse().unwrap()));
    let slice = Timeline { slice_s: 1e-3, directions: vec![vec![Slice::default()]], absences: vec![away] };
    mixed.timeline = Some(TrialTimeline { trial: 1, timeline: slice });
    let (shape, counts) = (
        LoadShape::Replay { frames: 1, capture_frames: 1, capture_bytes: 64, speed: None, max_gap_s: None },
        ReplayCounts::default(),
    );
    for r in [with_power(ten_gig()), every_outcome(), mlrsearch(), tests(), mixed] {
        names(&serde_json::to_value(r).unwrap(), "", &mut found);
    }
    for replay in [
        serde_json::to_value(shape),
        serde_json::to_value(DirectionCounts { replay: Some(counts), ..DirectionCounts::default() }),
    ] {
        names(&replay.unwrap(), "", &mut found);
    }
    assert!(found.len() > 100);
    for name in found {
        assert!(PAGE.contains(&format!("| `{name}` |")), "docs/results-schema.md does not describe `{name}`");
    }
}
