//! Latency as applications see it: messages over sockets, raw frames over any port, and every method of this machine beside each
//! other.

mod compare;
mod frames;
mod sockets;
mod sockperf;

use latency::plans::LatencyPlan;
use report::latency::Published;

pub use compare::compare;
pub use frames::{raw, RawAsk};
pub use sockets::{measure, serve, OpenAsk, SocketAsk};
pub use sockperf::{against_sockperf, measured_by_sockperf};

/// What a plan publishes, as reports have it.
pub fn published(plan: &LatencyPlan) -> Published {
    Published { source: plan.source.to_owned(), percentiles: plan.published.to_vec() }
}
