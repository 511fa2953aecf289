//! The short sections of a plan: `[latency]`, `[link]`, `[dut]`.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use units::LinkSpeed;

use crate::schema::text;

/// `[latency]`
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct LatencyPlan {
    /// Whether to run the trial.
    pub enabled: bool,
    /// Its sending time (RFC 2544 §26.2: at least 120 s).
    #[serde(with = "text::span")]
    pub duration: Duration,
}

impl Default for LatencyPlan {
    fn default() -> Self {
        Self { enabled: true, duration: Duration::from_secs(120) }
    }
}

/// `[link]`
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct LinkPlan {
    /// Speed for percentages and as the highest load, such as `"10G"`.
    #[serde(with = "text::opt_link", skip_serializing_if = "Option::is_none")]
    pub speed: Option<LinkSpeed>,
}

/// `[dut]`: which built-in data plane the plan is for. Runs over outside ports do not look at it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct DutPlan {
    /// Its function, such as `"mpls"`; absent: `l3`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub function: Option<String>,
    /// What impairs it; absent: nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub impair: Option<String>,
    /// Host routes behind each port that frames are sent to; the flows' destinations are spread over them, whatever
    /// device there is. Absent: the benchmark's four, and one destination.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub routes: Option<u64>,
    /// Cores that it has, which only a sweep's command can give it; absent: as it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cores: Option<u64>,
    /// Receive queues of each of its ports, as `cores`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queues: Option<u64>,
}
