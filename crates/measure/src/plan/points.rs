//! The plan of one point of a sweep.

use units::{FrameSize, Frames};

use super::{document::Plan, sweep::SweepPlan};
use crate::schema::sweep::{Point, SweepKey};

impl Point {
    /// Makes a plan that of this point: with its values and without a sweep.
    pub fn apply(&self, plan: &mut Plan) {
        plan.sweep = SweepPlan::default();
        plan.name.push_str(&format!(":{}", self.name()));
        for &(key, value) in &self.0 {
            match key {
                SweepKey::Flows => plan.traffic.flows = value,
                SweepKey::FrameSizes => {
                    plan.frame_sizes = FrameSize::new(value as u32).map(Frames::from).into_iter().collect()
                }
                SweepKey::Routes => plan.dut.routes = Some(value),
                SweepKey::Cores => plan.dut.cores = Some(value),
                SweepKey::Queues => plan.dut.queues = Some(value),
            }
        }
    }

    /// The plan of this point.
    pub(super) fn at(&self, plan: &Plan) -> Plan {
        let mut at = plan.clone();
        self.apply(&mut at);
        at
    }
}
