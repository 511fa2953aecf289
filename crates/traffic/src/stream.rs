//! What the frames of a stream look like and which of their fields vary from frame to frame.

use std::fmt;

use packet::frame::{FrameError, HeaderSpec};
use units::Frames;

use crate::Mask;

/// Bytes from a frame's start that may vary; the stamp aside.
pub const VARIABLE_BYTES: usize = 128;

/// One stream: the headers of its frames, their size, and what varies.
///
/// Frame `n` of a stream depends on `n`, the spec and nothing else: the same spec sends the same frames.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StreamSpec {
    /// The headers, before fields vary.
    pub headers: HeaderSpec,
    /// Frame size, FCS included, or the mix that frames follow by their number.
    pub frame_size: Frames,
    /// Fields that vary, each by its own rule.
    pub fields: Vec<FieldSpec>,
    /// When given, that many distinct 5-tuples: flow `n` mod `flows` counts SrcPort up from the headers' port to
    /// 65535, and SrcIp up by one each time the ports are used up. Not with fields SrcPort or SrcIp. Without a
    /// transport header SrcIp alone counts up, by one each flow.
    pub flows: Option<u64>,
    /// Seed of the random fields.
    pub seed: u64,
}

impl StreamSpec {
    /// Frames that are all alike.
    pub fn constant(headers: HeaderSpec, frame_size: impl Into<Frames>) -> Self {
        Self { headers, frame_size: frame_size.into(), fields: Vec::new(), flows: None, seed: 0 }
    }
}

/// One header field and how its value is chosen for each frame.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldSpec {
    /// Which field.
    pub field: Field,
    /// Which values.
    pub values: Values,
}

/// A header field that may vary.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Field {
    /// Source MAC, 48 bits.
    SrcMac,
    /// Destination MAC, 48 bits.
    DstMac,
    /// Source address: 32 bits, or the low 64 bits of an IPv6 address.
    SrcIp,
    /// Destination address: 32 bits, or the low 64 bits of an IPv6 address.
    DstIp,
    /// Source port; not without a transport header.
    SrcPort,
    /// Destination port; not without a transport header.
    DstPort,
    /// Identifier of a VLAN tag, counted from the outermost at 0; 0 to 4094.
    VlanId(usize),
    /// Label of an MPLS entry, counted from the top at 0; 20 bits.
    MplsLabel(usize),
    /// Any bytes that are not a length, a type, a checksum or the stamp.
    Raw {
        /// Bytes from the frame's start; within [`VARIABLE_BYTES`].
        offset: usize,
        /// 1, 2 or 4 bytes.
        width: usize,
    },
}

impl fmt::Display for Field {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::SrcMac => f.write_str("source MAC"),
            Self::DstMac => f.write_str("destination MAC"),
            Self::SrcIp => f.write_str("source address"),
            Self::DstIp => f.write_str("destination address"),
            Self::SrcPort => f.write_str("source port"),
            Self::DstPort => f.write_str("destination port"),
            Self::VlanId(i) => write!(f, "VLAN id {i}"),
            Self::MplsLabel(i) => write!(f, "MPLS label {i}"),
            Self::Raw { offset, width } => write!(f, "raw field of {width} bytes at offset {offset}"),
        }
    }
}

/// How a field's value is chosen for frame `n`. Values are numbers in network order: 10.0.0.1 is 0x0a000001.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Values {
    /// `start + (n mod count) * step`.
    Increment {
        /// First value; `None` for the one in the headers.
        start: Option<u128>,
        /// Number of distinct values.
        count: u64,
        /// Distance between them.
        step: u64,
    },
    /// Drawn evenly from `start..start + count`.
    Random {
        /// Least value; `None` for the one in the headers.
        start: Option<u128>,
        /// Number of values.
        count: u64,
    },
    /// Random where the mask says so. The mask covers the low bits of the field; a longer mask must begin with zeros.
    Masked(Mask),
    /// These in turn. IPv6 addresses must share their upper 64 bits.
    List(Vec<u128>),
    /// A value of its own for each flow of [`StreamSpec::flows`], spread evenly over `start..start + count`; with more flows
    /// than values, the same for every `count`th flow. The number of 5-tuples stays that of the flows.
    OfFlow {
        /// Least value.
        start: u128,
        /// Number of values.
        count: u64,
    },
}

/// A stream that cannot be sent.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StreamError {
    /// The headers are wrong, or the frame too small for them.
    #[error(transparent)]
    Frame(#[from] FrameError),
    /// The field is not in the headers.
    #[error("{field}: not in the headers {headers}")]
    Absent {
        /// The field asked to vary.
        field: Field,
        /// The headers there are.
        headers: String,
    },
    /// A port, but the frames have no transport header.
    #[error("{field}: there is no transport header behind {headers}")]
    NoTransport {
        /// The field asked to vary.
        field: Field,
        /// The headers there are.
        headers: String,
    },
    /// A value or a number of values that the field cannot hold.
    #[error("{field}: {what}; must be {legal}")]
    Values {
        /// The field asked to vary.
        field: Field,
        /// What is wrong.
        what: String,
        /// What is legal.
        legal: String,
    },
    /// Two fields share bytes.
    #[error("{first} and {second} share bytes of the frame: vary one of them")]
    Overlap {
        /// One field.
        first: Field,
        /// The other.
        second: Field,
    },
    /// A raw field where the frame must stay as it is.
    #[error("{field}: {what}")]
    Raw {
        /// The field asked to vary.
        field: Field,
        /// Why it may not.
        what: &'static str,
    },
    /// A number of flows that SrcPort and SrcIp cannot make.
    #[error("flows {asked}: must be 1 to {most} from this source {from}")]
    Flows {
        /// Asked for.
        asked: u64,
        /// The most there are.
        most: u64,
        /// What the flows differ in.
        from: &'static str,
    },
}

impl StreamError {
    pub(crate) fn values(field: Field, what: impl Into<String>, legal: impl Into<String>) -> Self {
        Self::Values { field, what: what.into(), legal: legal.into() }
    }
}
