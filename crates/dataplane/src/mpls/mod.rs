//! MPLS: push, swap, pop (RFC 3031, RFC 3032, RFC 3443).

mod table;

pub use table::{LabelAction, LabelRoute, Labels, Stack, MAX_PUSH};
