//! The tests of a plan, and the table of each: durations, steps and repetitions, by default those of its standard.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use units::{Load, Ratio};

use super::limits::percent;
pub use crate::schema::found::ResetEvent;
use crate::schema::text;

/// `[frame_loss]`
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct FrameLossPlan {
    /// Step of the load, as a share of the highest (RFC 2544 §26.3: 10 % at most).
    #[serde(with = "text::ratio")]
    pub step: Ratio,
    /// Sending time of each trial (§24).
    #[serde(with = "text::span")]
    pub duration: Duration,
}

/// `[back_to_back]`
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct BackToBackPlan {
    /// Longest burst tried, as its sending time (RFC 9004 §6.2: as high as 30 s).
    #[serde(with = "text::span")]
    pub limit: Duration,
    /// Smallest step of the burst length, frames (RFC 9004 §7).
    pub step: u32,
    /// Searches averaged: N of RFC 9004 §6.3; RFC 2544 §26.4 asks for 50.
    pub repetitions: u32,
    /// Loss verification: how often a burst that lost frames is tried again; 0: the plain binary search.
    pub retries: u32,
    /// A burst that lost more frames than this is not tried again (z); absent: no limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry_max_lost: Option<u64>,
}

/// `[recovery]`
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RecoveryPlan {
    /// Overload, as a multiple of the throughput in percent (RFC 2544 §26.5: 110 %).
    pub overload_percent: f64,
    /// How long it lasts (§26.5: at least 60 s).
    #[serde(with = "text::span")]
    pub overload: Duration,
    /// How long half of it is then sent.
    #[serde(with = "text::span")]
    pub watch: Duration,
    /// Trials averaged.
    pub repetitions: u32,
}

/// `[reset]`
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ResetPlan {
    /// What is reset, for the label.
    pub event: ResetEvent,
    /// The program and its arguments that cause it. Nothing else is run.
    pub command: Vec<String>,
    /// When it is started, from the first frame (RFC 6201 §4: 15 s at least).
    #[serde(with = "text::span")]
    pub at: Duration,
    /// Sending time of the trial.
    #[serde(with = "text::span")]
    pub duration: Duration,
    /// The command is ended after so long.
    #[serde(with = "text::span")]
    pub command_timeout: Duration,
    /// Trials averaged (RFC 6201 §1.4: several).
    pub repetitions: u32,
}

/// `[bursty]`
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct BurstyPlan {
    /// Frames of a burst (RFC 2544 §21: 16, 64, 256, 1024).
    pub burst_sizes: Vec<u32>,
    /// Relative width of the mean load at which the search for the smallest interval stops.
    #[serde(with = "text::ratio")]
    pub precision: Ratio,
    /// Sending time of each trial (§24).
    #[serde(with = "text::span")]
    pub duration: Duration,
}

/// `[forwarding_rate]`
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ForwardingRatePlan {
    /// Step of the intended load from the throughput to the highest, as a share of the highest.
    #[serde(with = "text::ratio")]
    pub step: Ratio,
    /// Sending time of each trial (RFC 2889 §5.6.2: 30 s, 1 to 300 s).
    #[serde(with = "text::span")]
    pub duration: Duration,
}

/// `[latency_profile]`
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct LatencyProfilePlan {
    /// The load that stands for none, per direction.
    #[serde(with = "text::load")]
    pub idle: Load,
    /// Loads in percent of the throughput, beside the idle one.
    pub loads_percent: Vec<f64>,
    /// Sending time of each trial (RFC 2544 §26.2: at least 120 s).
    #[serde(with = "text::span")]
    pub duration: Duration,
    /// Trials at 100 % of the throughput (§26.2: at least 20); the other loads are measured once.
    pub repetitions: u32,
}

/// `[pdv]`
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct PdvPlan {
    /// Load in percent of the throughput.
    pub load_percent: f64,
    /// Sending time.
    #[serde(with = "text::span")]
    pub duration: Duration,
    /// Length of a window.
    #[serde(with = "text::span")]
    pub window: Duration,
}

/// `[soak]`
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SoakPlan {
    /// Load in percent of the throughput; not looked at with `load`.
    pub load_percent: f64,
    /// Load per direction.
    #[serde(with = "text::opt_load", skip_serializing_if = "Option::is_none")]
    pub load: Option<Load>,
    /// Sending time of all segments together.
    #[serde(with = "text::span")]
    pub duration: Duration,
    /// Sending time of a segment: what is kept when the run is stopped.
    #[serde(with = "text::span")]
    pub segment: Duration,
    /// Length of a window.
    #[serde(with = "text::span")]
    pub window: Duration,
    /// Loss ratio that still passes.
    #[serde(with = "text::ratio")]
    pub loss_budget: Ratio,
}

impl Default for FrameLossPlan {
    fn default() -> Self {
        Self { step: percent(10.0), duration: Duration::from_secs(60) }
    }
}

impl Default for BackToBackPlan {
    fn default() -> Self {
        Self { limit: Duration::from_secs(2), step: 1, repetitions: 50, retries: 0, retry_max_lost: None }
    }
}

impl Default for RecoveryPlan {
    fn default() -> Self {
        let (overload, watch) = (Duration::from_secs(60), Duration::from_secs(30));
        Self { overload_percent: 110.0, overload, watch, repetitions: 5 }
    }
}

impl Default for ResetPlan {
    fn default() -> Self {
        Self {
            event: ResetEvent::Process,
            command: Vec::new(),
            // RFC 6201 §4: traffic flows for at least 15 s before.
            at: Duration::from_secs(15),
            duration: Duration::from_secs(60),
            command_timeout: Duration::from_secs(30),
            // RFC 6201 §1.4: several trials, and their average.
            repetitions: 3,
        }
    }
}

impl Default for BurstyPlan {
    fn default() -> Self {
        let duration = Duration::from_secs(60);
        Self { burst_sizes: vec![16, 64, 256, 1024], precision: percent(1.0), duration }
    }
}

impl Default for ForwardingRatePlan {
    fn default() -> Self {
        Self { step: percent(5.0), duration: Duration::from_secs(30) }
    }
}

impl Default for LatencyProfilePlan {
    fn default() -> Self {
        Self {
            idle: Load::Frames(units::Fps::from_raw(1000.0)),
            loads_percent: vec![10.0, 50.0, 90.0, 100.0],
            duration: Duration::from_secs(120),
            repetitions: 20,
        }
    }
}

impl Default for PdvPlan {
    fn default() -> Self {
        Self { load_percent: 100.0, duration: Duration::from_secs(120), window: Duration::from_secs(1) }
    }
}

impl Default for SoakPlan {
    fn default() -> Self {
        Self {
            load_percent: 90.0,
            load: None,
            duration: Duration::from_secs(3600),
            segment: Duration::from_secs(300),
            window: Duration::from_secs(10),
            loss_budget: Ratio::ZERO,
        }
    }
}
