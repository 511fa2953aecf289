//! Where the host put the cores, and answers found there.

use serde::{Deserialize, Serialize};
use units::Fps;

use super::outcome::Outcome;

/// A class of places the hypervisor puts the cores in use.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Placement {
    /// Class number, in order of first sight.
    pub class: u32,
    /// Median core-to-core latency of its trials, one way, ns.
    pub core_to_core_ns: f64,
}

/// How long a cache line took between the cores of tester and device, one way, before and after each trial of a frame size.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct CoreToCore {
    /// Median, ns.
    pub median_ns: f64,
    /// The shortest, ns.
    pub min_ns: f64,
    /// The longest, ns.
    pub max_ns: f64,
}

/// An answer in another placement.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct PlacementAnswer {
    /// The placement.
    pub placement: Placement,
    /// How far the search came there.
    pub outcome: Outcome,
    /// Highest load that met the goal there.
    pub throughput_fps: Option<Fps>,
    /// Lowest load that did not.
    pub upper_bound_fps: Option<Fps>,
    /// Valid trials made there.
    pub trials: u32,
}
