//! What the read server, its client and the metrics share: streams that end in time, bounded lines, threads that stop.

mod acceptor;
mod lines;
mod stop;
mod stream;

use std::time::{Duration, Instant};

pub(crate) use acceptor::{Acceptor, Beyond, Guest, Room};
pub(crate) use lines::{Line, Lines};
pub(crate) use stop::{lock, Stop};
pub(crate) use stream::{timed_out, Stream};

/// So long from now; a day stands for anything longer.
pub(crate) fn within(time: Duration) -> Instant {
    Instant::now() + time.min(Duration::from_secs(86_400))
}
