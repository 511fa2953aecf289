//! One trial: its request and its result.

use measure::{
    plan::Trust,
    timeline::Timeline,
    trial::{TrialRecord, TrialSpec},
};
use traffic::checker::Sample;
use units::Fps;

use crate::streams::SentFlows;

/// A trial to run.
pub struct TrialRequest<'a> {
    /// Load, frame size, duration and shape.
    pub spec: TrialSpec,
    /// Number of the attempt, from 1.
    pub attempt: u32,
    /// The validity rules.
    pub trust: &'a Trust,
    /// The self-test's maximum for this frame size, per direction.
    pub selftest_max: Option<Fps>,
}

/// How a trial ended.
pub enum TrialEnd {
    /// It ran to its end, and was judged.
    Done(Box<Finished>),
    /// A signal ended it: what was counted until then, which proves nothing.
    Stopped(Box<Finished>),
}

/// A finished trial.
pub struct Finished {
    /// The record.
    pub record: TrialRecord,
    /// Unexpected frames seen at each receiving port.
    pub samples: Vec<Vec<Sample>>,
    /// The trial over time; empty of a replay, and of a trial with windows.
    pub timeline: Timeline,
    /// What was sent of a flow program.
    pub sent_flows: Option<SentFlows>,
}
