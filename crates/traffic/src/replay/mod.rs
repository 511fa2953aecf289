//! A capture sent again, byte for byte: [`Timeline`] says when each frame is due, [`Replay`] sends it, [`Tally`] counts
//! what comes back. The frames carry no stamp, so nothing is known of one by one; [`Known`] tells which are foreign.

mod known;
mod tally;
mod task;
#[cfg(test)]
mod tests;
mod timeline;

pub use known::Known;
pub use tally::Tally;
pub use task::{Replay, Replayed};
pub use timeline::{Timeline, TimelineError, Timing};
