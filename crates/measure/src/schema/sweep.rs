//! What a sweep varies, and what it found: the result of each of its points. `docs/results-schema.md` describes it.

use std::{collections::BTreeMap, fmt};

use serde::{Deserialize, Serialize};

use super::{result::RunResult, standing::Standing};

/// Name of this version of the schema.
pub const SWEEP_SCHEMA: &str = "linerate-sweep/2";
/// The version before, of [results of schema 1](super::result::SCHEMA_1).
pub const SWEEP_SCHEMA_1: &str = "linerate-sweep/1";

/// A whole sweep.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SweepResult {
    /// [`SWEEP_SCHEMA`].
    pub schema: String,
    /// Version of the program.
    pub linerate_version: String,
    /// Name of the plan.
    pub plan_name: String,
    /// RFC 3339, UTC.
    pub started_at: String,
    /// Wall seconds of the whole sweep.
    pub elapsed_s: f64,
    /// The effective plan with its `[sweep]` and every default, as TOML would hold it.
    pub effective_plan: serde_json::Value,
    /// The keys that were varied, in order.
    pub keys: Vec<SweepKey>,
    /// Points asked for; fewer were measured when it was stopped.
    pub planned: usize,
    /// The points measured, in order.
    pub points: Vec<SweepPoint>,
    /// How it stands: as its points together.
    #[serde(alias = "verdict")]
    pub standing: Standing,
}

/// One point of a sweep.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SweepPoint {
    /// What the keys were.
    pub values: BTreeMap<SweepKey, u64>,
    /// What was measured there.
    pub result: RunResult,
}

impl SweepPoint {
    /// The values of these keys, in their order; of a key that the point has not, nothing.
    pub fn values_of(&self, keys: &[SweepKey]) -> Vec<Option<u64>> {
        keys.iter().map(|key| self.values.get(key).copied()).collect()
    }

    /// Those values with their keys.
    pub fn point(&self, keys: &[SweepKey]) -> Point {
        Point(keys.iter().filter_map(|key| Some((*key, *self.values.get(key)?))).collect())
    }
}

/// What a sweep can vary.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SweepKey {
    /// Forwarding cores of the device.
    Cores,
    /// Receive queues of each of its ports.
    Queues,
    /// Routes behind each port that frames are sent to.
    Routes,
    /// Distinct 5-tuples per direction.
    Flows,
    /// Frame size in bytes, FCS included.
    FrameSizes,
}

impl SweepKey {
    /// Every key.
    pub const ALL: [Self; 5] = [Self::Cores, Self::Queues, Self::Routes, Self::Flows, Self::FrameSizes];

    /// As a plan has it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Cores => "cores",
            Self::Queues => "queues",
            Self::Routes => "routes",
            Self::Flows => "flows",
            Self::FrameSizes => "frame_sizes",
        }
    }
}

impl fmt::Display for SweepKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// One combination of values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Point(pub Vec<(SweepKey, u64)>);

impl Point {
    /// As part of names: `cores-2.flows-1000`.
    pub fn name(&self) -> String {
        self.0.iter().map(|(key, value)| format!("{key}-{value}")).collect::<Vec<_>>().join(".")
    }

    /// The values by key, as a result has them.
    pub fn values(&self) -> BTreeMap<SweepKey, u64> {
        self.0.iter().copied().collect()
    }

    /// A text with `{cores}` and the like replaced by this point's values.
    pub fn fill(&self, text: &str) -> String {
        self.0.iter().fold(text.to_owned(), |text, (key, value)| {
            // `frame-sizes` as on the command line, too.
            let names = [key.name().to_owned(), key.name().replace('_', "-")];
            names.iter().fold(text, |text, name| text.replace(&format!("{{{name}}}"), &value.to_string()))
        })
    }
}

impl fmt::Display for Point {
    /// `cores 2, flows 1000`
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let values: Vec<_> = self.0.iter().map(|(key, value)| format!("{key} {value}")).collect();
        f.write_str(&values.join(", "))
    }
}
