//! What is asked of the rig in one trial, and what comes back.

use measure::{
    plan::Trust,
    trial::{TrialRecord, TrialSpec},
};
use traffic::checker::Sample;
use units::Fps;

use crate::streams::SentFlows;

/// A trial to be run.
pub struct TrialRequest<'a> {
    /// What is asked.
    pub spec: TrialSpec,
    /// Which try at it this is, from 1.
    pub attempt: u32,
    /// The rules by which it counts.
    pub trust: &'a Trust,
    /// The self-test's maximum for this frame size.
    pub selftest_max: Option<Fps>,
}

/// How a trial ended.
pub enum TrialEnd {
    /// Run to its end; judged.
    Done(Box<Finished>),
    /// A signal cut it short: what was counted until then, which is no evidence.
    Stopped(Box<Finished>),
}

/// A finished trial.
pub struct Finished {
    /// The record.
    pub record: TrialRecord,
    /// Unexpected frames seen at each receiving port.
    pub samples: Vec<Vec<Sample>>,
    /// Of a flow program: what was sent.
    pub sent_flows: Option<SentFlows>,
}
