//! The control side of the routing functions: what the operator configured and what was learned, compiled to
//! [`Tables`](crate::tables::Tables).

mod path;

pub use path::{Hop, Link, Path};
