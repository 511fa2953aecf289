//! From a frame to the key of its flow.
//!
//! - Ethernet II with up to three VLAN tags (0x8100, 0x88a8); MPLS; VXLAN; IPv4 and IPv6. All else is [`Decoded::NotIp`].
//! - Below MPLS the first nibble tells IPv4 and IPv6. Any other is an Ethernet pseudowire, without a control word (RFC 4385)
//!   or with one, if IP is found in it. MPLS has no addresses of its own: with [`Layer::Outer`] it is not IP.
//! - Tunnels in tunnels are followed [`TUNNELS`] deep. A tunnel that is looked into and carries no IP is not IP.
//! - The flow of a fragment behind the first has no ports. IPv6 extension headers are passed by, at most eight.
//! - A frame may end before its packet does (a capture's snapped frame) or go on behind it (padding). What is missing is
//!   zero: ports, type and code, flags. Cut within the extension headers of IPv6, the protocol is that of the first header
//!   not there; cut before its VXLAN header ends, the packet is the outer one.
//! - [`Decoded::Malformed`] is what says it is IP and is not: too short for the fixed header, another version, an IPv4 header
//!   length below 20 or above the total length.
//!
//! Both directions of a biflow (RFC 5103) have one key, with the lower address (then port) as the source;
//! [`Packet4::reversed`] marks the frames that go the other way. ICMP has no ports to order by: type and code stay the destination port, and those of
//! an answer are turned into those of its request (echo, timestamp, information and mask of RFC 792 and 950, and echo
//! of RFC 4443), so that both are one flow.

mod decoded;
mod decoder;
mod ip;
mod link;
mod seen;
mod spec;
#[cfg(test)]
mod tests;

pub use decoded::{Decoded, Packet4, Packet6};
pub use decoder::Decoder;
pub use spec::{DecodeSpec, Layer, TUNNELS, VXLAN_PORT};
