//! Export: records of ended flows to IPFIX collectors and files.
//!
//! One thread pulls records from their sources, and every sink has a bounded queue and a thread of its own. A sink that
//! is down or slow fills its queue; further records are counted as dropped for that sink alone. A sink never makes a
//! source or another sink wait.

mod connection;
mod counters;
mod delivery;
mod event;
mod exporter;
mod json_file;
mod jsonl;
mod output;
mod pace;
mod queue;
mod resolve;
mod sink;
mod spec;
mod tcp;
mod udp;

pub use event::{Change, ExportEvent, Log};
pub use exporter::{Exporter, Records, SinkStats};
pub use spec::{ExportSpec, FileSpec, SinkError, SinkSpec, TcpSpec, TlsSinkSpec, Transport, UdpSpec};
