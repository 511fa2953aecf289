//! What a label depends on besides the plan.

use std::time::Duration;

use units::Imix;

/// What a label depends on besides the plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LabelFacts {
    /// The ports are software: a cable in the process, or shared memory to another process or guest.
    pub software_ports: bool,
    /// The shortest wait behind the learning frames before a trial (RFC 2544 §23 b); nothing when none were sent. Routing
    /// updates (§23 a) never are.
    pub learning_wait: Option<Duration>,
    /// The frames were of a mix of sizes.
    pub mix: Option<Imix>,
    /// Trials repeated because they were invalid.
    pub repeated: u32,
    /// The cores were seen in more than one placement.
    pub several_placements: bool,
    /// The device under test is a simulation: nothing was measured.
    pub simulated: bool,
}
