//! From a frame to the key of its flow.
//!
//! - Ethernet II with up to four VLAN tags (0x8100, 0x88a8, 0x9100); PPPoE; MPLS; VXLAN, GTP-U, GRE and IP in IP; IPv4 and
//!   IPv6. Anything else is [`Decoded::NotIp`].
//! - Below MPLS, the first nibble distinguishes IPv4 and IPv6. Any other value is an Ethernet pseudowire, with or without a
//!   control word (RFC 4385), if it contains IP. MPLS has no addresses: with [`Layer::Outer`] it is not IP.
//! - Nested tunnels are decoded [`TUNNELS`] deep. A decoded tunnel without IP is not IP.
//! - The flow of a fragment after the first has no ports. At most eight IPv6 extension headers are skipped.
//! - A frame may end before its packet (snapped in a capture) or after it (padding). Missing ports, type and code, and flags
//!   are zero. If a frame ends within the IPv6 extension headers, the protocol is that of the first missing header. If a
//!   frame ends within the header of its tunnel, the outer packet is the key.
//! - [`Decoded::Malformed`] has an IP EtherType but is not IP: too short for the fixed header, another version, or an IPv4
//!   header length below 20 or above the total length. A total length of zero goes to the end of the frame.
//!
//! Both directions of a biflow (RFC 5103) have one key, with the lower address (then port) as the source;
//! [`crate::Facts::reversed`] marks the frames that go the other way. ICMP has no ports to order by: type and code stay the
//! destination port, and those of an answer are turned into those of its request (echo, timestamp, information and mask of
//! RFC 792 and 950, and echo of RFC 4443), so that both are one flow.

mod decoded;
mod decoder;
mod ip;
mod link;
mod seen;
mod spec;
#[cfg(test)]
mod tests;
mod tunnel;

pub use decoded::{Decoded, NotIp, Packet4, Packet6};
pub use decoder::Decoder;
pub(crate) use link::{MPLS_MULTICAST, OLD_QINQ, PPPOE_SESSION, PPP_MPLS};
pub use spec::{DecodeSpec, Layer, GTPU_PORT, TUNNELS, VXLAN_PORT};
