//! What is configured, learned and reported: plain data and its text forms, below the tables and the functions.

mod entry;
mod event;
mod label;
mod op;
mod overlay;
mod path;
mod port;
mod prefix;
mod text;

pub use entry::{Address, BridgeEntry, Fdb, Neighbour, Route};
pub use event::{Event, Events};
pub use label::{LabelAction, LabelRoute};
pub(crate) use op::Refusal;
pub use op::{Item, Key, Op, OpError, OpErrorKind};
pub use overlay::{Network, OverlayConfig, Remote, StaticEntry};
pub use path::{Hop, Link, Path, MAX_PUSH};
pub use port::PortInfo;
pub use prefix::Prefix;
