//! Results of earlier schemas, brought to the present one.

use crate::{
    schema::{
        device::DeviceRecord,
        result::{RunResult, SCHEMA, SCHEMA_1},
        sweep::{SweepResult, SWEEP_SCHEMA},
    },
    standing,
};

/// Brings a result that was read to [`SCHEMA`]. Of schema 1 it decides how the run stands, and keeps the words for the
/// device.
pub fn run(result: &mut RunResult) {
    if result.schema != SCHEMA_1 {
        return;
    }
    result.schema = SCHEMA.to_owned();
    result.device = DeviceRecord::Unknown { text: result.dut.clone() };
    spell(&mut result.effective_plan);
    let figures = !result.sizes.is_empty() || !result.tests.is_empty();
    let decided = standing::of_run(&result.sizes, &result.tests, false);
    // A run that ended well by its verdict did; one that failed may have been interrupted after its last figure.
    if figures && decided.is_good() == result.standing.is_good() {
        result.standing = decided;
    }
}

/// Brings a sweep that was read, and each of its points, to [`SWEEP_SCHEMA`].
pub fn sweep(result: &mut SweepResult) {
    result.points.iter_mut().for_each(|point| run(&mut point.result));
    if result.schema != SWEEP_SCHEMA {
        result.schema = SWEEP_SCHEMA.to_owned();
        let decided = standing::of_several(result.points.iter().map(|point| point.result.standing));
        if let Some(decided) = decided.filter(|decided| decided.is_good() == result.standing.is_good()) {
            result.standing = decided;
        }
    }
}

/// Words of a stored plan that are spelled differently now.
fn spell(plan: &mut serde_json::Value) {
    if let Some(placements) = plan.pointer_mut("/trust/placements") {
        match placements.as_str() {
            Some("apart") => *placements = "separate".into(),
            Some("together") => *placements = "combined".into(),
            _ => {}
        }
    }
}
