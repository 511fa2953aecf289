//! `[needs]`: what the testbed of the plan's document has.

use serde::{Deserialize, Serialize};

/// `[needs]`: what the testbed of the plan's document has beside what the other sections say. Nothing here changes a
/// run: it is listed, a lab that is brought up for the plan has it, and what a testbed is seen or not known to lack stands
/// in the result.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Needs {
    /// The way through the device, as the ONP report writes it: `PHY-VM-VM-PHY`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub topology: Option<String>,
    /// Ports of the tester.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ports: Option<u32>,
    /// Virtual machines in the device.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub vms: Option<u32>,
    /// Receive queues of each port of the device.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queues: Option<u32>,
    /// Forwarding cores of the device; more than one number: the plan is run once with each.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub cores: Vec<u32>,
}

impl Needs {
    /// Whether nothing is needed.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// How often a frame passes the switch of the topology (ONP report §5.2); `None` where there is none or it is not
    /// known.
    pub fn switching_operations(&self) -> Option<u32> {
        match self.topology.as_deref()? {
            "PHY-OVS-PHY" => Some(1),
            "PHY-VM-PHY" => Some(2),
            "PHY-VM-VM-PHY" => Some(3),
            _ => None,
        }
    }

    /// Forwarding cores that are threads of the topology's switch: those of flow loggers are the loggers' own.
    pub fn switch_threads(&self) -> &[u32] {
        match self.topology.as_deref() {
            Some("12 x PHY-LOGGER") => &[],
            _ => &self.cores,
        }
    }

    /// Whether the topology has more than the device's ports: a switch, virtual machines, other programs.
    pub fn more_than_ports(&self) -> bool {
        self.topology.as_deref().is_some_and(|t| t != "PHY-PHY")
    }

    /// Each need in words.
    pub fn words(&self) -> Vec<String> {
        let plural = |n: u32, one: &str| format!("{n} {one}{}", if n == 1 { "" } else { "s" });
        let mut words: Vec<String> = self.topology.iter().map(|t| format!("topology {t}")).collect();
        words.extend(self.vms.map(|n| plural(n, "VM")));
        words.extend(self.queues.map(|n| format!("{} a port", plural(n, "receive queue"))));
        let cores: Vec<String> = self.cores.iter().map(u32::to_string).collect();
        match self.cores.as_slice() {
            [] => {}
            [n] => words.push(format!("{} of the device", plural(*n, "core"))),
            _ => words.push(format!("{} cores of the device, a run each", cores.join(", "))),
        }
        words
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn needs_read_as_written() {
        let needs: Needs = toml::from_str("topology = 'PHY-VM-VM-PHY'\nvms = 2\ncores = [2, 4]").unwrap();
        assert_eq!(needs.words(), ["topology PHY-VM-VM-PHY", "2 VMs", "2, 4 cores of the device, a run each"]);
        assert_eq!((needs.switching_operations(), needs.more_than_ports()), (Some(3), true));
        let queues: Needs = toml::from_str("topology = '12 x PHY-LOGGER'\nqueues = 2\ncores = [12]").unwrap();
        assert_eq!(queues.words()[1..], ["2 receive queues a port", "12 cores of the device"]);
        assert_eq!((queues.switch_threads(), needs.switch_threads()), (&[][..], &[2, 4][..]));
        let one = Needs { vms: Some(1), cores: vec![1], ..Needs::default() };
        assert_eq!(one.words(), ["1 VM", "1 core of the device"]);
        assert!(Needs::default().is_empty() && !one.more_than_ports());
        assert!(toml::from_str::<Needs>("colour = 'red'").is_err());
    }
}
