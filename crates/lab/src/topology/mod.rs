//! What a lab is made of: nodes, their ports and the links between them, as data.
//!
//! Everything else is derived from a [`Topology`]: sockets, addresses, flow rules, CPUs, the script and the picture.

mod check;
mod end;
mod file;
mod library;
mod path;
mod text;

pub use end::{End, TESTER};
pub use file::{Application, Guest, Kernel, KernelRole, Link, Spread, Switch, SwitchKind, Topology, Tunnel};
pub use library::{is_needed, load, names, needed};
pub use path::{Passage, Passed, Way};
pub(crate) use text::{is_name, NAME_RULE};
