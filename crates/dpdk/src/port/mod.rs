//! Ports: an ethdev that is made, configured, started, and taken away again.

mod capture;
mod config;
mod converted;
mod eth;
mod handle;
mod kernel;
mod once;
mod open;
mod pcap;
mod piped;
mod queue;
mod rings;
mod rss;
mod socket;
mod started;
mod stats;
mod vdev;
mod wire;

pub use capture::Progress;
pub use config::{FrameMark, PortConfig};
pub use eth::AF_XDP_MOST_MTU;
pub use handle::{PeerWatch, Port};
pub use kernel::{end_promiscuous, is_promiscuous};
pub use queue::{RxQueue, TxQueue};
pub use rss::Rss;
pub use stats::{Link, PortStats};
pub use wire::Wire;
