//! Units, frame sizes and the arithmetic of line rates.
//!
//! The bottom of the house: everything else counts in these types, so that a frame size with its FCS can never
//! be mistaken for one without, nor a layer-1 bit rate for a layer-2 one. [`rate`] owns the arithmetic
//! (`shared` methods §8): -4 for the FCS, +20 on the wire.
#![forbid(unsafe_code)]

pub mod derived;
mod error;
mod fps;
mod frame;
mod frames;
mod imix;
mod link;
mod load;
mod nanos;
pub mod rate;
mod ratio;
mod rng;
mod si;

pub use error::UnitError;
pub use fps::Fps;
pub use frame::{FrameSize, FCS_BYTES, WIRE_OVERHEAD_BYTES};
pub use frames::Frames;
pub use imix::Imix;
pub use link::LinkSpeed;
pub use load::Load;
pub use nanos::{parse_duration, parse_duration_or_zero, Nanos};
pub use ratio::Ratio;
pub use rng::SplitMix64;
pub use si::{parse_si, si, si_column, si_parts, si_short};
