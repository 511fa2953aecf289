//! IPFIX (RFC 7011): encodes flow records as messages, also of NetFlow v9 (RFC 3954), and decodes them.
//!
//! [`Encoder`] makes the messages of one transport session, [`Decoder`] reads those of one (of IPFIX), and [`Collector`]
//! listens for exporters of any make. In the messages sent:
//!
//! - IPFIX has times twice, in milliseconds and in nanoseconds: nfcapd before 1.7.5 or so does not read the latter, and
//!   milliseconds alone would lose precision.
//! - NetFlow v9 has no bytes of frames, no reverse elements, and eight TCP flags; messages with flows of another day than the
//!   export's say that they were sent then.
mod clock;
mod collector;
mod counts;
mod decode;
pub mod element;
mod encode;
mod options;
mod plan;
mod port;
mod template;
mod time;
mod wire;

pub use collector::{Collector, CollectorSpec};
pub use counts::Counts;
pub use decode::{DecodeError, Decoder, Limits};
pub use encode::{EncodeSpec, Encoder, Message};
pub use options::Statistics;
pub use port::Port;
pub use time::{from_ntp, to_ntp};
pub use wire::Version;

/// The protocol version in every message of IPFIX (RFC 7011 3.1).
pub const VERSION: u16 = 10;
/// Bytes of a message header.
pub const HEADER: usize = 16;
/// Set ID of templates (RFC 7011 3.3.2).
const TEMPLATES: u16 = 2;
/// Set ID of options templates.
const OPTIONS_TEMPLATES: u16 = 3;
/// The first template ID, and the first set ID of data.
const FIRST_DATA: u16 = 256;
/// Length of a field that carries its own (RFC 7011 7).
const VARIABLE: u16 = 0xffff;

/// Reads `N` bytes at the front and moves on.
fn take<const N: usize>(bytes: &mut &[u8]) -> Option<[u8; N]> {
    let (front, rest) = bytes.split_first_chunk()?;
    *bytes = rest;
    Some(*front)
}

fn take16(bytes: &mut &[u8]) -> Option<u16> {
    take(bytes).map(u16::from_be_bytes)
}

fn take32(bytes: &mut &[u8]) -> Option<u32> {
    take(bytes).map(u32::from_be_bytes)
}
