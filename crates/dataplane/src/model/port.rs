//! Ports, as the control side sees them.

use packet::MacAddr;

/// What a router must know of a port.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct PortInfo {
    /// Its MAC address.
    pub mac: MacAddr,
    /// The largest IP packet it sends, in bytes.
    pub mtu: u16,
}

impl Default for PortInfo {
    fn default() -> Self {
        Self { mac: MacAddr::default(), mtu: 1500 }
    }
}
