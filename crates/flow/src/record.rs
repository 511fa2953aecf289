//! What was counted of a flow.

use serde::{Deserialize, Serialize};

use crate::Key;

/// What was counted of a flow that goes on or has ended.
///
/// For a biflow, `forward` is the direction of the first frame seen, from the key's source to its destination, and
/// `back` the other direction; otherwise `back` stays zero. Bytes are those of the frames on the wire without FCS. Times are
/// nanoseconds since the Unix epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    /// Which flow.
    #[serde(flatten)]
    pub key: Key,
    /// Ingress port of the first frame.
    pub ingress: u8,
    /// Type of service (IPv4) or traffic class (IPv6) of the first frame.
    pub tos: u8,
    /// All TCP flags seen, both ways, or-ed (RFC 9293 3.1, the low eight).
    pub tcp_flags: u8,
    /// From the source to the destination.
    pub forward: Way,
    /// From the destination to the source.
    pub back: Way,
    /// Time of the first frame, in ns since the Unix epoch.
    pub first: u64,
    /// Time of the last frame, in ns since the Unix epoch.
    pub last: u64,
    /// Why it was recorded; none while the flow goes on.
    pub end: Option<EndReason>,
}

/// Frames and bytes in one direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Way {
    /// Frames.
    pub packets: u64,
    /// Bytes, without FCS.
    pub bytes: u64,
}

/// Why a flow was recorded: `flowEndReason` (IPFIX information element 136).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[repr(u8)]
pub enum EndReason {
    /// No frame for the idle timeout.
    Idle = 1,
    /// The flow lasted for the active timeout; its counts start again from zero.
    Active = 2,
    /// TCP ended it: both sides sent FIN, or one sent RST.
    EndOfFlow = 3,
    /// The logger ends.
    Forced = 4,
    /// Its place was given to another flow.
    LackOfResources = 5,
}
