//! Frames, buffers, headers, checksums and stamps.
//!
//! The traits [`Buffer`], [`Rx`], [`Tx`] and [`Alloc`] are what the packet path is written against: DPDK mbufs
//! implement them in `dpdk`, [`heap::HeapBuf`] implements them here, so every stage above runs in a plain test.
#![forbid(unsafe_code)]

mod buffer;
pub mod capture;
pub mod checksum;
pub mod clock;
pub mod frame;
mod gaps;
pub mod headers;
pub mod heap;
mod io;
mod mac;
pub mod pcap;
pub mod stamp;

pub use buffer::{Buffer, Burst, Captured, BURST};
pub use clock::{since_1970, Clock, ClockPair, FakeClock};
pub use gaps::{Absence, GapMeter, Gaps};
pub use io::{Alloc, Rx, Tx};
pub use mac::{MacAddr, MacAddrError};
