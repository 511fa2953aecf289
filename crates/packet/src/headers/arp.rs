//! ARP for IPv4 over Ethernet (RFC 826).

use std::net::Ipv4Addr;

use super::write_front;
use crate::MacAddr;

/// Length in bytes.
pub const LEN: usize = 28;
/// Opcode: who has this address?
pub const REQUEST: u16 = 1;
/// Opcode: I have.
pub const REPLY: u16 = 2;

/// An ARP packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Arp {
    /// [`REQUEST`], [`REPLY`] or another.
    pub op: u16,
    /// The sender's MAC address.
    pub sender_mac: MacAddr,
    /// The sender's address.
    pub sender: Ipv4Addr,
    /// The target's MAC address; means nothing in a request.
    pub target_mac: MacAddr,
    /// The target's address.
    pub target: Ipv4Addr,
}

impl Arp {
    /// Takes a packet off the front. `None` also when it is not about IPv4 over Ethernet.
    pub fn parse(bytes: &[u8]) -> Option<(Self, &[u8])> {
        let (&[0, 1, 8, 0, 6, 4, o0, o1, s0, s1, s2, s3, s4, s5, a, b, c, d, t0, t1, t2, t3, t4, t5, e, f, g, h], rest) =
            bytes.split_first_chunk::<LEN>()?
        else {
            return None;
        };
        let arp = Self {
            op: u16::from_be_bytes([o0, o1]),
            sender_mac: MacAddr([s0, s1, s2, s3, s4, s5]),
            sender: Ipv4Addr::new(a, b, c, d),
            target_mac: MacAddr([t0, t1, t2, t3, t4, t5]),
            target: Ipv4Addr::new(e, f, g, h),
        };
        Some((arp, rest))
    }

    /// Writes the packet to the front.
    #[must_use]
    pub fn write(self, to: &mut [u8]) -> bool {
        let ([o0, o1], [a, b, c, d], [e, f, g, h]) =
            (self.op.to_be_bytes(), self.sender.octets(), self.target.octets());
        let ([s0, s1, s2, s3, s4, s5], [t0, t1, t2, t3, t4, t5]) = (self.sender_mac.0, self.target_mac.0);
        write_front(
            to,
            [0, 1, 8, 0, 6, 4, o0, o1, s0, s1, s2, s3, s4, s5, a, b, c, d, t0, t1, t2, t3, t4, t5, e, f, g, h],
        )
    }
}
