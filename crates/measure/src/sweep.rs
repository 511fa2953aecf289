//! What a sweep found: the result of each of its points. `docs/results-schema.md` describes it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{
    plan::{Point, SweepKey},
    result::{RunResult, Verdict},
};

/// Name of this version of the schema.
pub const SWEEP_SCHEMA: &str = "linerate-sweep/1";

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
    /// How it ended: the worst of its points.
    pub verdict: Verdict,
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
