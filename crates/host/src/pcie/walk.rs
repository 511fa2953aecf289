//! The path from a network card up to the root of its PCI Express tree.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::{
    attached::{attached, root_place, Attached, Attachment, RootPlace},
    hop::Hop,
    link::Link,
};
use crate::Roots;

const DEVICES: &str = "/sys/bus/pci/devices";

/// Most hops that are read: a bus number has 8 bits, real trees are less than 10 deep.
const MOST_HOPS: usize = 32;

/// The path.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PciePath {
    /// From the device to the root port; none for a device that is not here.
    hops: Vec<Hop>,
}

/// Whether the link of a device is what its two ends could have. `None` where that is not known.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Fit {
    /// The link is slower or narrower than the device could have.
    pub below_device: Option<bool>,
    /// The link is slower or narrower than the slot could have.
    pub below_slot: Option<bool>,
    /// The link is slower or narrower than both could have: a bad contact, or power saving.
    pub below_both: Option<bool>,
    /// What both could have.
    pub possible: Option<Link>,
}

impl PciePath {
    /// Reads the path of the device at this address, `0000:05:00.0`; `None` if the address is not one or there is no such
    /// device.
    pub fn read(roots: &Roots, address: &str) -> Option<Self> {
        if !is_address(address) {
            return None;
        }
        let mut at = PathBuf::new();
        let mut places: Vec<(PathBuf, String)> = Vec::new();
        for part in &roots.follow(format!("{DEVICES}/{address}"))? {
            at.push(part);
            match part.to_str() {
                // A host bridge: the tree begins anew below it.
                Some(name) if is_host_bridge(name) => places.clear(),
                Some(name) if is_address(name) => places.push((at.clone(), name.to_owned())),
                _ => {}
            }
        }
        if places.last().is_none_or(|(_, name)| name != address) {
            return None;
        }
        let hops = places.iter().rev().take(MOST_HOPS).map(|(dir, name)| Hop::read(roots, dir, name));
        Some(Self { hops: hops.collect() })
    }

    /// The path of a device that is not here.
    pub(super) fn nowhere() -> Self {
        Self { hops: Vec::new() }
    }

    /// All hops, from the device to the root port.
    pub fn hops(&self) -> &[Hop] {
        &self.hops
    }

    /// The device.
    pub fn device(&self) -> Option<&Hop> {
        self.hops.first()
    }

    /// The port that the device is plugged into; `None` if it is in the root complex.
    pub fn slot(&self) -> Option<&Hop> {
        self.hops.get(1)
    }

    /// The hop whose link limits the path; `None` if no link is known.
    ///
    /// Both ends of a link say the same. An end that cannot do more is chosen, the one nearest to the device first. Without
    /// one it is the hop nearest to the root, as in the kernel's message "limited by 5.0 GT/s PCIe x4 link at 0000:00:1c.4".
    pub fn narrowest(&self) -> Option<&Hop> {
        let rate = |link: &Link| link.raw_bits_per_s();
        let links = || self.hops.iter().filter_map(|hop| Some((hop, hop.current_link.as_known().map(rate)?)));
        let least = links().map(|(_, rate)| rate).reduce(f64::min)?;
        let narrow = || links().filter(|(_, rate)| *rate <= least).map(|(hop, _)| hop);
        let at_its_most = |hop: &&Hop| hop.max_link.as_known().is_some_and(|max| rate(max) <= least);
        narrow().find(at_its_most).or_else(|| narrow().next_back())
    }

    /// Whether the link of the device is what its two ends could have.
    pub fn fit(&self) -> Fit {
        let current = self.device().and_then(|hop| hop.current_link.as_known()).copied();
        let max = |hop: Option<&Hop>| hop.and_then(|hop| hop.max_link.as_known()).copied();
        let (device, slot) = (max(self.device()), max(self.slot()));
        let possible = device.zip(slot).map(|(device, slot)| device.within(slot));
        let below = |other: Option<Link>| current.zip(other).map(|(current, other)| current.is_below(other));
        Fit { below_device: below(device), below_slot: below(slot), below_both: below(possible), possible }
    }

    /// What the device is plugged into.
    pub fn attached(&self) -> Attached {
        attached(&self.hops)
    }

    /// Where the root port is; `None` if there is none, or if its vendor and address do not tell.
    pub fn root_place(&self) -> Option<RootPlace> {
        match self.attached().to {
            Attachment::RootPort | Attachment::Switches(_) => root_place(self.hops.last()?),
            Attachment::PciBridge | Attachment::RootComplex | Attachment::Unknown => None,
        }
    }

    /// Whether this is a root port of the processor itself.
    pub fn is_processor_port(&self) -> bool {
        matches!(&self.hops[..], [port] if port.is_bridge() && root_place(port) == Some(RootPlace::Processor))
    }

    /// Largest payload on the path, bytes: the least of the hops that say it. `None` if the device does not say it.
    pub fn mps(&self) -> Option<u32> {
        let mps = |hop: &Hop| Some(hop.express.as_known()?.mps);
        let device = mps(self.device()?)?;
        self.hops.iter().filter_map(mps).min().map(|least| least.min(device))
    }

    /// Largest read that the device requests, bytes.
    pub fn mrrs(&self) -> Option<u32> {
        Some(self.device()?.express.as_known()?.mrrs)
    }

    /// Largest payload that all hops support, bytes; `None` unless all say it.
    pub fn mps_supported(&self) -> Option<u32> {
        let all: Option<Vec<u32>> = self.hops.iter().map(|hop| Some(hop.express.as_known()?.mps_supported)).collect();
        all?.into_iter().min()
    }
}

/// Whether this is an address: domain, bus, device and function, as in `0000:05:00.0`.
fn is_address(name: &str) -> bool {
    let parts: Vec<&str> = name.split([':', '.']).collect();
    let hex = |text: &str, lens: std::ops::RangeInclusive<usize>| {
        lens.contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_hexdigit())
    };
    let [domain, bus, device, function] = parts[..] else { return false };
    hex(domain, 4..=8)
        && hex(bus, 2..=2)
        && hex(device, 2..=2)
        && matches!(function.as_bytes(), [b'0'..=b'7'])
        && name.bytes().rev().nth(1) == Some(b'.')
}

/// Whether this is the directory of a host bridge, `pci0000:00`.
fn is_host_bridge(name: &str) -> bool {
    name.strip_prefix("pci").is_some_and(|rest| rest.contains(':'))
}

#[cfg(test)]
mod tests;
