//! Latency of applications and of raw frames, as documents, and in the layouts of other programs.

mod compared;
mod layouts;
mod parts;
mod raw;
mod sockets;

pub use compared::{document as compared, of_raw, of_sockets, Named};
pub use layouts::{clocks, exanic, full_log, sockperf};
pub use raw::{document as raw, name_in, Published};
pub use sockets::{document as sockets, method as socket_method};
