//! The result of decoding a frame.

use crate::packed::{Key4, Key6};

/// The result of decoding a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decoded {
    /// IPv4.
    Ip4(Packet4),
    /// IPv6.
    Ip6(Packet6),
    /// Not IP, or IP inside something that is not decoded.
    NotIp,
    /// Marked as IP, but not readable as IP.
    Malformed,
}

/// What is counted of an IPv4 packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Packet4 {
    /// Its flow.
    pub key: Key4,
    /// Bytes of the frame, without FCS.
    pub bytes: u32,
    /// Type of service.
    pub tos: u8,
    /// TCP flags (RFC 9293 3.1, the low eight); zero for all but TCP.
    pub tcp_flags: u8,
    /// Whether it goes from the destination of the key to the source; only with biflows.
    pub reversed: bool,
}

/// What is counted of an IPv6 packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Packet6 {
    /// Its flow.
    pub key: Key6,
    /// Bytes of the frame, without FCS.
    pub bytes: u32,
    /// Traffic class.
    pub tos: u8,
    /// As in [`Packet4::tcp_flags`].
    pub tcp_flags: u8,
    /// As in [`Packet4::reversed`].
    pub reversed: bool,
}
