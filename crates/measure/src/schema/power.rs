//! Power and temperature of the machine over a trial.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// What the machine that Linerate runs on took over a time. What its sensors do not tell is `None` or left out, never 0.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Power {
    /// The time, seconds: of a trial from just before sending to the end of sending, with a few ms around it.
    pub measured_s: f64,
    /// Mean power of all processors, watts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub package_watts: Option<f64>,
    /// Mean power of their memory, watts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dram_watts: Option<f64>,
    /// Power of the whole machine, watts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub system_watts: Option<f64>,
    /// Power at other sensors of the board, watts, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub sensor_watts: BTreeMap<String, f64>,
    /// The highest temperatures seen, degrees Celsius, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub temperatures_celsius: BTreeMap<String, f64>,
    /// Thermal throttle events of all cores and processors.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub throttle_events: Option<u64>,
    /// Of a trial: energy for each frame that came back, millijoules.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub frame_millijoules: Option<f64>,
    /// Of a trial: the same without what the machine takes when no frames are sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub frame_above_idle_millijoules: Option<f64>,
}

impl Power {
    /// The hottest place.
    pub fn hottest(&self) -> Option<(&str, f64)> {
        let all = self.temperatures_celsius.iter().map(|(name, celsius)| (name.as_str(), *celsius));
        all.max_by(|a, b| a.1.total_cmp(&b.1))
    }
}
