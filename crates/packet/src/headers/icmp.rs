//! The first eight bytes of an ICMP (RFC 792) or ICMPv6 (RFC 4443) message.

use super::write_front;

/// Length in bytes.
pub const LEN: usize = 8;
/// Where the checksum stands.
pub const CHECKSUM: usize = 2;

/// Types of ICMP messages.
pub mod v4 {
    /// Echo reply.
    pub const ECHO_REPLY: u8 = 0;
    /// Destination unreachable.
    pub const UNREACHABLE: u8 = 3;
    /// Source quench.
    pub const SOURCE_QUENCH: u8 = 4;
    /// Redirect.
    pub const REDIRECT: u8 = 5;
    /// Echo request.
    pub const ECHO_REQUEST: u8 = 8;
    /// Time exceeded.
    pub const TIME_EXCEEDED: u8 = 11;
    /// Parameter problem.
    pub const PARAMETER_PROBLEM: u8 = 12;
    /// Address mask reply: the last of the classic types.
    pub const MASK_REPLY: u8 = 18;
}

/// Types of ICMPv6 messages.
pub mod v6 {
    /// Destination unreachable.
    pub const UNREACHABLE: u8 = 1;
    /// Packet too big.
    pub const TOO_BIG: u8 = 2;
    /// Time exceeded.
    pub const TIME_EXCEEDED: u8 = 3;
    /// The first type that is not an error.
    pub const ECHO_REQUEST: u8 = 128;
    /// Echo reply.
    pub const ECHO_REPLY: u8 = 129;
    /// Router solicitation (RFC 4861).
    pub const ROUTER_SOLICITATION: u8 = 133;
    /// Router advertisement (RFC 4861).
    pub const ROUTER_ADVERTISEMENT: u8 = 134;
    /// Neighbour solicitation (RFC 4861).
    pub const NEIGHBOUR_SOLICITATION: u8 = 135;
    /// Neighbour advertisement (RFC 4861).
    pub const NEIGHBOUR_ADVERTISEMENT: u8 = 136;
    /// Redirect (RFC 4861).
    pub const REDIRECT: u8 = 137;
}

/// Type, code, checksum and the four bytes that each type has its own use for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Icmp {
    /// Type, of [`v4`] or [`v6`].
    pub kind: u8,
    /// Code.
    pub code: u8,
    /// Checksum as on the wire.
    pub checksum: u16,
    /// Identifier and sequence number, MTU, flags, or zero.
    pub rest: u32,
}

impl Icmp {
    /// Takes a header off the front.
    pub fn parse(bytes: &[u8]) -> Option<(Self, &[u8])> {
        let (&[kind, code, c0, c1, r0, r1, r2, r3], body) = bytes.split_first_chunk::<LEN>()?;
        let rest = u32::from_be_bytes([r0, r1, r2, r3]);
        Some((Self { kind, code, checksum: u16::from_be_bytes([c0, c1]), rest }, body))
    }

    /// Writes the header to the front.
    #[must_use]
    pub fn write(self, to: &mut [u8]) -> bool {
        let ([c0, c1], [r0, r1, r2, r3]) = (self.checksum.to_be_bytes(), self.rest.to_be_bytes());
        write_front(to, [self.kind, self.code, c0, c1, r0, r1, r2, r3])
    }
}
