//! What the device under test was, as a result keeps it.

use serde::{Deserialize, Serialize};

/// The device under test. Its `kind` tag tells the variants apart.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum DeviceRecord {
    /// Whatever is behind the tester's ports.
    Ports {
        /// The ports in order, as named by the user.
        names: Vec<String>,
    },
    /// The built-in data plane.
    Plane {
        /// Its function, such as `l3`.
        function: String,
        /// What impairs it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        impairment: Option<String>,
        /// When it sends, unless at once.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tx_policy: Option<String>,
        /// Host routes besides those of the benchmark, behind all ports.
        #[serde(default)]
        routes: u64,
    },
    /// The built-in flow logger.
    FlowLog {
        /// What impairs it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        impairment: Option<String>,
        /// When it sends, unless at once.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tx_policy: Option<String>,
    },
    /// A simulation.
    Simulated {
        /// Its setup, as `--dut` takes it: `sim:capacity=2M,seed=1`.
        setup: String,
    },
    /// A result of schema 1, which has words only.
    Unknown {
        /// The words.
        text: String,
    },
}

impl Default for DeviceRecord {
    fn default() -> Self {
        Self::Unknown { text: String::new() }
    }
}

impl DeviceRecord {
    /// In words: `built-in l3 over wire`, `eth:t0 <-> eth:t1`.
    pub fn describe(&self) -> String {
        let built_in = |name: &str, impairment: &Option<String>, tx_policy: &Option<String>, routes: u64| {
            let impairment = impairment.as_ref().map_or_else(String::new, |i| format!(" with impair {i}"));
            let tx_policy = tx_policy.as_ref().map_or_else(String::new, |tx| format!(", transmit {tx}"));
            let routes = match routes {
                0 => String::new(),
                1 => ", 1 route".to_owned(),
                n => format!(", {n} routes"),
            };
            format!("built-in {name}{impairment}{tx_policy} over wire{routes}")
        };
        match self {
            Self::Ports { names } => names.join(" <-> "),
            Self::Plane { function, impairment, tx_policy, routes } => {
                built_in(function, impairment, tx_policy, *routes)
            }
            Self::FlowLog { impairment, tx_policy } => built_in("flowlog", impairment, tx_policy, 0),
            Self::Simulated { setup } => format!("simulated {setup}"),
            Self::Unknown { text } => text.clone(),
        }
    }

    /// What it is, in a sentence: `the built-in l3`, `a simulated device`.
    pub fn name(&self) -> String {
        match self {
            Self::Ports { .. } | Self::Unknown { .. } => "the device behind the ports".to_owned(),
            Self::Plane { function, .. } => format!("the built-in {function}"),
            Self::FlowLog { .. } => "the built-in flowlog".to_owned(),
            Self::Simulated { .. } => "a simulated device".to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_is_described_and_read_again() {
        let some = |text: &str| Some(text.to_owned());
        let all = [
            DeviceRecord::Ports { names: vec!["eth:t0".to_owned(), "eth:t1".to_owned()] },
            DeviceRecord::Plane { function: "l3".to_owned(), impairment: None, tx_policy: None, routes: 0 },
            DeviceRecord::Plane {
                function: "l2".to_owned(),
                impairment: some("loss=1%"),
                tx_policy: some("full"),
                routes: 64,
            },
            DeviceRecord::FlowLog { impairment: None, tx_policy: None },
            DeviceRecord::Simulated { setup: "sim:capacity=2M".to_owned() },
            DeviceRecord::Unknown { text: "built-in l3 over wire".to_owned() },
        ];
        for device in &all {
            let json = serde_json::to_string(device).unwrap();
            assert_eq!(serde_json::from_str::<DeviceRecord>(&json).unwrap(), *device, "{json}");
        }
        insta::assert_snapshot!(all.iter().map(DeviceRecord::describe).collect::<Vec<_>>().join("\n"), @r"
        eth:t0 <-> eth:t1
        built-in l3 over wire
        built-in l2 with impair loss=1%, transmit full over wire, 64 routes
        built-in flowlog over wire
        simulated sim:capacity=2M
        built-in l3 over wire
        ");
    }
}
