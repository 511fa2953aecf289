//! Rounds of the address tests of a bridge (RFC 2889 §5.7, §5.8), and what they showed.

use serde::{Deserialize, Serialize};
use units::Fps;

/// A round to be run.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Round {
    /// Addresses offered.
    pub addresses: u64,
    /// Rate at which they are offered, frames/s.
    pub learning_fps: Fps,
}

/// What was counted in a round, frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct RoundCounts {
    /// Learning frames that left.
    pub learned: u64,
    /// Test frames that left.
    pub tested: u64,
    /// Test frames that came to the learning port.
    pub forwarded: u64,
    /// Test frames that came to the monitoring port: the bridge did not know where to send them.
    pub flooded: u64,
    /// Test frames that came back to the test port.
    pub returned: u64,
}

/// How a round ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RoundVerdict {
    /// Every address was known.
    Held,
    /// Frames were flooded or did not come.
    Overflowed,
    /// The tester did not send what it should, or was away: no evidence.
    Invalid,
}

/// A round that was run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RoundRecord {
    /// What was asked.
    pub round: Round,
    /// What was counted.
    pub counts: RoundCounts,
    /// What it says.
    pub verdict: RoundVerdict,
    /// Why it is invalid, in words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}

/// What was found.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Addresses {
    /// Addresses of the largest round that was held; of a rate, of all rounds.
    pub addresses: Option<u64>,
    /// Rate of the fastest round that was held.
    pub learning_fps: Option<Fps>,
    /// Addresses of the smallest round that was not held, of a capacity.
    pub overflow_addresses: Option<u64>,
    /// Rate of the slowest round that was not held, of a rate.
    pub overflow_fps: Option<Fps>,
    /// Every round, in order.
    pub rounds: Vec<RoundRecord>,
}
