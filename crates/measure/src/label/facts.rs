//! What a label depends on besides the plan.

use std::time::Duration;

use units::Imix;

/// What a label depends on besides the plan.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct LabelFacts {
    /// The ports are software: a cable inside the process, or shared memory with another process or a guest.
    pub software_ports: bool,
    /// The shortest wait after the learning frames before a trial (RFC 2544 §23 b); `None`: no learning frames were sent.
    /// Routing updates (§23 a) are never sent.
    pub learning_wait: Option<Duration>,
    /// The mix of frame sizes, if any.
    pub mix: Option<Imix>,
    /// Trials repeated because they were invalid.
    pub repeated: u32,
    /// Share of the sending time that was set aside, of a figure by slices.
    pub aside_share: Option<f64>,
    /// Whether the cores were seen in more than one placement.
    pub several_placements: bool,
    /// Whether the device under test is a simulation: nothing was measured.
    pub simulated: bool,
}
