//! What the routing functions read: one snapshot of everything the control side has decided.
//!
//! Made by [`router`](crate::router), read by `l3`, `mpls` and `vxlan` through a [`Reader`](crate::Reader). The FIB maps
//! a destination to the number of a next hop: an index into [`Tables::adjacencies`], or, with [`GROUP`] set, into
//! [`Tables::groups`].

mod adjacency;
mod interface;
mod labels;
mod numbers;
mod overlay;
mod routing;
mod seeded;
mod tunnel;

pub use adjacency::{Adjacency, Group, Next, Tag, ADJ_LOCAL, ADJ_MARTIAN, ADJ_NO_ROUTE, GROUP};
pub use interface::{Interface, MacFilter, PortTable, NO_INTERFACE};
pub(crate) use labels::{Action, Entry, FIRST_LABEL};
pub use labels::{Labels, Stack};
pub(crate) use overlay::{Access, Domain, Role, Tunnel, NOWHERE, TUNNEL};
pub use overlay::{Endpoint, Overlay};
pub use routing::{Probe, Tables};
pub(crate) use tunnel::{Template, ETHERNET, I_FLAG, TUNNEL_TTL, UDP_VXLAN};
