//! Flow programs: which flow each frame belongs to, so that afterwards it is known exactly what was sent of each.
//!
//! A program is a function of the frame's number and nothing else. The frames that a port took are the first of it in
//! order, so their count alone gives the frames of each flow ([`Tally`]), without a log. When they left is kept at
//! marks, evenly spread and bounded in number ([`Departures`]).

mod departures;
mod keys;
mod program;
mod spec;
mod tally;
mod zipf;

pub use departures::{Departures, Left};
pub use keys::{Keys, Tuple};
pub use program::Program;
pub(crate) use program::{Column, COLUMNS};
pub use spec::{FlowSpec, FlowSpecError, MOST_FLOWS};
pub use tally::{Share, Tally};
