//! What was counted of a flow.

use serde::{Deserialize, Serialize};

use crate::{Details, Key};

/// What was counted of a flow that goes on or has ended.
///
/// For a biflow, `forward` is the direction of the first frame seen, from the key's source to its destination, and
/// `back` the other direction; otherwise `back` stays zero. Times are nanoseconds since the Unix epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    /// Which flow.
    #[serde(flatten)]
    pub key: Key,
    /// Ingress port of the first frame.
    pub ingress: u8,
    /// Type of service (IPv4) or traffic class (IPv6) of the first frame.
    pub tos: u8,
    /// From the source to the destination.
    pub forward: Way,
    /// From the destination to the source.
    pub back: Way,
    /// Time of the first frame, in ns since the Unix epoch.
    #[serde(rename = "first_unix_ns")]
    pub first: u64,
    /// Time of the last frame, in ns since the Unix epoch.
    #[serde(rename = "last_unix_ns")]
    pub last: u64,
    /// Why it was recorded; none while the flow goes on.
    pub end: Option<EndReason>,
    /// What was asked for besides; none while the flow goes on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub details: Option<Details>,
}

impl Record {
    /// The TCP flags of both directions.
    pub fn tcp_flags(&self) -> u16 {
        self.forward.tcp_flags | self.back.tcp_flags
    }

    /// Bytes of the frames of both directions.
    pub fn frame_bytes(&self) -> u64 {
        self.forward.frame_bytes.saturating_add(self.back.frame_bytes)
    }
}

/// What was counted in one direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Way {
    /// Frames.
    pub packets: u64,
    /// Bytes of the IP packets by their length fields: `octetDeltaCount` (IPFIX information element 1).
    pub ip_bytes: u64,
    /// Bytes of the frames on the wire with padding and without FCS: `layer2OctetDeltaCount` (352). Of more than 65,535
    /// bytes around one packet that many count.
    pub frame_bytes: u64,
    /// All TCP flags seen, or-ed (RFC 9293 3.1, and the bit 0x100 before them: AE, once NS).
    pub tcp_flags: u16,
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
