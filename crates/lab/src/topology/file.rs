//! A topology as its file has it.

use std::net::Ipv4Addr;

use serde::{Deserialize, Serialize};

use super::End;

/// Nodes and links. The tester is always there and is not listed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Topology {
    /// Its name.
    pub name: String,
    /// One line: what it is.
    pub description: String,
    /// Where it comes from: a document and its section.
    #[serde(default)]
    pub source: String,
    /// The plan that measures it, where another one would not do or be another document's.
    #[serde(default)]
    pub plan: Option<String>,
    /// Virtual switches.
    #[serde(default)]
    pub switch: Vec<Switch>,
    /// Virtual machines, or processes in their place.
    #[serde(default)]
    pub guest: Vec<Guest>,
    /// The kernel of this machine, in network namespaces of their own.
    #[serde(default)]
    pub kernel: Vec<Kernel>,
    /// Cables.
    pub link: Vec<Link>,
}

/// A virtual switch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Switch {
    /// Its name; of its bridge, too.
    pub name: String,
    /// What switches.
    #[serde(default)]
    pub kind: SwitchKind,
    /// Pairs of its ports: what comes in by one leaves by the other.
    #[serde(default, deserialize_with = "pairs")]
    pub flows: Vec<[u32; 2]>,
    /// Ports whose frames are spread over others.
    #[serde(default)]
    pub spread: Vec<Spread>,
    /// Ports that are tunnel end points.
    #[serde(default)]
    pub tunnel: Vec<Tunnel>,
}

/// A port of a switch as a VXLAN tunnel end point (RFC 7348): frames from the tester are taken out of their tunnel there, and
/// frames to it put into one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tunnel {
    /// The port.
    pub port: u32,
    /// VXLAN network identifier.
    pub vni: u32,
    /// The address of the switch, in a network of 24 bits.
    pub local: Ipv4Addr,
    /// The address of the other end: of the tester.
    pub remote: Ipv4Addr,
}

/// What comes in by one port leaves by one of several, chosen by its UDP or TCP source port; what comes in by any of these
/// leaves by the one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Spread {
    /// The one.
    pub port: u32,
    /// The several.
    pub over: Vec<u32>,
}

impl Switch {
    /// The tunnel at a port.
    pub fn tunnel_at(&self, port: u32) -> Option<&Tunnel> {
        self.tunnel.iter().find(|tunnel| tunnel.port == port)
    }
}

impl Spread {
    /// The low bits of the source port that choose, as a number of values: each of the several has as many as another, or one
    /// more. Consecutive source ports go to consecutive ports.
    pub fn buckets(&self) -> u32 {
        let ways = u32::try_from(self.over.len()).unwrap_or(u32::MAX).max(1);
        if ways.is_power_of_two() {
            ways
        } else {
            ways.saturating_mul(8).checked_next_power_of_two().unwrap_or(ways)
        }
    }
}

/// What switches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SwitchKind {
    /// Open vSwitch with the DPDK datapath.
    #[default]
    OvsDpdk,
}

/// A guest with two ports: what comes in by one leaves by the other.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Guest {
    /// Its name.
    pub name: String,
    /// What runs in it.
    #[serde(default)]
    pub application: Application,
    /// A bootable disk of the user's, in place of the image that is made on the spot: it is not written to, and nothing in it is
    /// asked or started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disk: Option<String>,
}

/// What a guest runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Application {
    /// dpdk-testpmd that writes its own MAC addresses (the ONP report's `mac_retry`).
    #[default]
    TestpmdMac,
    /// dpdk-testpmd that changes nothing.
    TestpmdIo,
    /// dpdk-testpmd that swaps MAC addresses.
    TestpmdMacswap,
    /// `linerate forward l2`: changes nothing.
    L2,
    /// `linerate forward l2:macswap`.
    L2Macswap,
    /// `linerate forward l3`: routes between the benchmark's networks, 198.18.0.0/16 behind port 0 and 198.19.0.0/16 behind
    /// port 1 (the two-VM document's Routing).
    L3,
    /// `linerate forward vxlan`: a tunnel end point, inside at port 0, its tunnel at port 1.
    Vxlan,
    /// The other end of that tunnel: its tunnel at port 0, inside at port 1.
    VxlanFar,
    /// `linerate flowlog`: logs the flows and sends every frame on.
    Flowlog,
    /// The bridge of the guest's kernel: virtual machines only.
    KernelBridge,
    /// Open vSwitch in the guest's kernel, without DPDK: virtual machines only.
    OvsKernel,
}

impl Application {
    /// All of them.
    pub const ALL: [Self; 11] = [
        Self::TestpmdMac,
        Self::TestpmdIo,
        Self::TestpmdMacswap,
        Self::L2,
        Self::L2Macswap,
        Self::L3,
        Self::Vxlan,
        Self::VxlanFar,
        Self::Flowlog,
        Self::KernelBridge,
        Self::OvsKernel,
    ];

    /// As topologies and flags write it.
    pub fn name(self) -> &'static str {
        match self {
            Self::TestpmdMac => "testpmd-mac",
            Self::TestpmdIo => "testpmd-io",
            Self::TestpmdMacswap => "testpmd-macswap",
            Self::L2 => "l2",
            Self::L2Macswap => "l2-macswap",
            Self::L3 => "l3",
            Self::Vxlan => "vxlan",
            Self::VxlanFar => "vxlan-far",
            Self::Flowlog => "flowlog",
            Self::KernelBridge => "kernel-bridge",
            Self::OvsKernel => "ovs-kernel",
        }
    }

    /// The application of this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|application| application.name() == name)
    }

    /// The forwarding mode of dpdk-testpmd; `None` if Linerate forwards.
    pub fn testpmd_mode(self) -> Option<&'static str> {
        match self {
            Self::TestpmdMac => Some("mac"),
            Self::TestpmdIo => Some("io"),
            Self::TestpmdMacswap => Some("macswap"),
            _ => None,
        }
    }

    /// Whether it is a kernel that forwards: a process has none of its own.
    pub fn needs_a_machine(self) -> bool {
        matches!(self, Self::KernelBridge | Self::OvsKernel)
    }

    /// The command of Linerate, with its function; `None` if something else forwards.
    pub fn linerate_command(self) -> Option<&'static str> {
        match self {
            Self::TestpmdMac | Self::TestpmdIo | Self::TestpmdMacswap | Self::KernelBridge | Self::OvsKernel => None,
            Self::L2 => Some("forward l2"),
            Self::L2Macswap => Some("forward l2:macswap"),
            Self::L3 => Some("forward l3"),
            Self::Vxlan | Self::VxlanFar => Some("forward vxlan"),
            Self::Flowlog => Some("flowlog"),
        }
    }
}

/// The kernel of this machine between two of its ports.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Kernel {
    /// Its name.
    pub name: String,
    /// How it forwards.
    pub role: KernelRole,
}

/// How the kernel forwards.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum KernelRole {
    /// A bridge.
    Bridge,
    /// A router between the benchmark's networks, 198.18.0.0/16 behind port 0 and 198.19.0.0/16 behind port 1 (RFC 2544,
    /// appendix C.2.2).
    Router,
    /// Open vSwitch with the kernel's datapath, without DPDK ("native").
    Ovs,
}

/// A cable between two ports.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Link {
    /// Its two ends.
    #[serde(deserialize_with = "two_ends")]
    pub ends: [End; 2],
}

/// Neither fewer nor more: an array would be read up to its length.
fn two_ends<'de, D: serde::Deserializer<'de>>(from: D) -> Result<[End; 2], D::Error> {
    let ends = Vec::<End>::deserialize(from)?;
    let names: Vec<String> = ends.iter().map(ToString::to_string).collect();
    <[End; 2]>::try_from(ends).map_err(|_| {
        serde::de::Error::custom(format!("a link has two ends, and [{}] has {}", names.join(", "), names.len()))
    })
}

impl Topology {
    /// The names of all nodes, the tester's first.
    pub fn nodes(&self) -> Vec<&str> {
        let mut names = vec![super::TESTER];
        names.extend(self.switch.iter().map(|s| s.name.as_str()));
        names.extend(self.guest.iter().map(|g| g.name.as_str()));
        names.extend(self.kernel.iter().map(|k| k.name.as_str()));
        names
    }

    /// The switch of this name.
    pub fn switch_named(&self, name: &str) -> Option<&Switch> {
        self.switch.iter().find(|switch| switch.name == name)
    }

    /// The first guest that is joined to the tester itself.
    pub fn guest_at_tester(&self) -> Option<&Guest> {
        let at_tester =
            |guest: &&Guest| self.ports_of(&guest.name).iter().any(|&end| self.peer(end).is_some_and(End::is_tester));
        self.guest.iter().find(at_tester)
    }

    /// What the other end of this end's cable is.
    pub fn peer(&self, end: &End) -> Option<&End> {
        self.link.iter().find_map(|Link { ends: [a, b] }| match end {
            _ if a == end => Some(b),
            _ if b == end => Some(a),
            _ => None,
        })
    }

    /// The ports of a node that have a cable, in order.
    pub fn ports_of(&self, node: &str) -> Vec<&End> {
        let mut ends: Vec<&End> = self.link.iter().flat_map(|link| &link.ends).filter(|end| end.node == node).collect();
        ends.sort();
        ends
    }
}
/// Pairs, and nothing behind the second port: a list of fixed length would leave it out.
fn pairs<'de, D: serde::Deserializer<'de>>(from: D) -> Result<Vec<[u32; 2]>, D::Error> {
    let lists: Vec<Vec<u32>> = serde::Deserialize::deserialize(from)?;
    let pair = |list: Vec<u32>| {
        list.try_into().map_err(|list: Vec<u32>| {
            serde::de::Error::custom(format!("a flow has two ports, in and out, and {list:?} has {}", list.len()))
        })
    };
    lists.into_iter().map(pair).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topology;

    #[test]
    fn each_application_is_found_by_its_name_and_is_one_kind_of_program() {
        for application in Application::ALL {
            assert_eq!(Application::named(application.name()), Some(application));
            // testpmd, Linerate, or a kernel.
            let kinds = [
                application.testpmd_mode().is_some(),
                application.linerate_command().is_some(),
                application.needs_a_machine(),
            ];
            assert_eq!(kinds.iter().filter(|is| **is).count(), 1, "{application:?}");
        }
        assert_eq!((Application::named("vpp"), Application::named("")), (None, None));
        let modes = [Application::TestpmdMac, Application::TestpmdIo, Application::TestpmdMacswap];
        assert_eq!(modes.map(Application::testpmd_mode), [Some("mac"), Some("io"), Some("macswap")]);
        let ours = [Application::L2, Application::L2Macswap, Application::L3, Application::Vxlan, Application::Flowlog];
        let commands = ["forward l2", "forward l2:macswap", "forward l3", "forward vxlan", "flowlog"].map(Some);
        assert_eq!(ours.map(Application::linerate_command), commands);
        assert_eq!(Application::VxlanFar.linerate_command(), Some("forward vxlan"));
    }

    #[test]
    fn a_tunnel_is_found_by_its_port() {
        let vxlan = topology::load("vxlan").unwrap();
        let switch = vxlan.switch.iter().find(|switch| !switch.tunnel.is_empty()).unwrap();
        for tunnel in &switch.tunnel {
            assert_eq!(switch.tunnel_at(tunnel.port), Some(tunnel));
        }
        assert_eq!(switch.tunnel_at(60), None);
    }

    #[test]
    fn a_guest_at_the_tester_is_told_from_one_behind_a_switch() {
        let guest = |name: &str| topology::load(name).unwrap().guest_at_tester().map(|guest| guest.name.clone());
        assert_eq!(guest("phy-vm-phy"), None);
        let alone = topology::load("phy-phy").unwrap();
        assert_eq!(guest("phy-phy").as_ref(), Some(&alone.guest[0].name));
    }
}
