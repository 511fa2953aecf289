//! Where in the tree a device sits.

use serde::{Deserialize, Serialize};

use super::{express::PortType, hop::Hop};
use crate::Fact;

/// What a device is plugged into.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Attachment {
    /// A root port: nothing else shares its link.
    RootPort,
    /// This many switches: devices on other ports share the link above.
    Switches(u32),
    /// A bridge to or from conventional PCI.
    PciBridge,
    /// The root complex itself: there is no slot. Devices that a virtual machine emulates are often here.
    RootComplex,
    /// Not known.
    Unknown,
}

/// An attachment, and how it is known.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attached {
    /// To what.
    pub to: Attachment,
    /// Whether the configuration space could not be read, and the number of bridges was counted instead: one is a root
    /// port, and each switch has two more.
    pub inferred: bool,
}

/// Where a root port is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RootPlace {
    /// In the processor.
    Processor,
    /// In the chipset: its devices share the chipset's link to the processor. Of a system on one chip, the chipset is
    /// inside it.
    Chipset,
    /// In the hypervisor: speeds and widths are made up.
    Emulated,
}

/// To what the first hop is attached. `hops` goes from the device to the root.
pub(super) fn attached(hops: &[Hop]) -> Attached {
    let above = hops.get(1..).unwrap_or_default();
    let Some(parent) = above.first() else { return Attached { to: Attachment::RootComplex, inferred: false } };
    // A bridge without the capability is a conventional one.
    let types: Option<Vec<Option<PortType>>> = above
        .iter()
        .map(|hop| match &hop.express {
            Fact::Known(express) => Some(Some(express.port_type)),
            Fact::Absent => Some(None),
            Fact::Unreadable(_) => None,
        })
        .collect();
    let Some(types) = types else { return by_shape(above) };
    let conventional =
        |kind: &Option<PortType>| matches!(kind, None | Some(PortType::BridgeToPci | PortType::BridgeFromPci));
    let switches = types.iter().filter(|kind| **kind == Some(PortType::SwitchUpstream)).count() as u32;
    let to = if !parent.is_bridge() {
        Attachment::Unknown
    } else if types.iter().any(conventional) {
        Attachment::PciBridge
    } else if switches > 0 {
        Attachment::Switches(switches)
    } else if types.first() == Some(&Some(PortType::RootPort)) {
        Attachment::RootPort
    } else {
        Attachment::Unknown
    };
    Attached { to, inferred: false }
}

fn by_shape(above: &[Hop]) -> Attached {
    // Only of PCI Express devices does the kernel show a link, be it unknown.
    let to = if !above.iter().all(Hop::is_bridge) {
        Attachment::Unknown
    } else if above.iter().any(|hop| hop.max_link == Fact::Absent) {
        Attachment::PciBridge
    } else {
        match above.len() {
            1 => Attachment::RootPort,
            len if len % 2 == 1 => Attachment::Switches((len as u32 - 1) / 2),
            _ => Attachment::Unknown,
        }
    };
    Attached { to, inferred: true }
}

/// Where a root port is, by vendor and address; `None` where these do not tell.
///
/// Intel's chipsets have their root ports at devices 1b to 1d of bus 0 (for example the datasheets of the 500 and 600
/// series); all other root ports of Intel are the processor's. AMD's chipsets are switches: its root ports are the
/// processor's.
pub(super) fn root_place(root: &Hop) -> Option<RootPlace> {
    let (vendor, _) = root.id.as_known()?.split_once(':')?;
    let (_, bus_and_device) = root.address.split_once(':')?;
    match vendor {
        "8086" => {
            let chipset = ["00:1b.", "00:1c.", "00:1d."].iter().any(|at| bus_and_device.starts_with(at));
            Some(if chipset { RootPlace::Chipset } else { RootPlace::Processor })
        }
        "1022" => Some(RootPlace::Processor),
        // Red Hat (QEMU) and VMware.
        "1b36" | "15ad" => Some(RootPlace::Emulated),
        _ => None,
    }
}
