//! What the views of counters show.

use std::time::Duration;

use dataplane::{runtime::Runtime, Snapshot};
use dpdk::Port;

use crate::run_info::RunInfo;

/// The counters at two moments, and what they were counted on.
pub(crate) struct Counters<'a> {
    /// What runs, and where.
    pub info: &'a RunInfo,
    /// The ports.
    pub ports: &'a [Port],
    /// Ticks a second of the lcores' clock.
    pub hz: u64,
    /// Time since the start.
    pub elapsed: Duration,
    /// The earlier counters, by lcore; empty for the start.
    pub earlier: Vec<Snapshot>,
    /// The counters now, by lcore.
    pub now: Vec<Snapshot>,
    /// Seconds between the two; never 0.
    pub seconds: f64,
}

impl Counters<'_> {
    /// What the lcores did between the two moments.
    pub(crate) fn runtime(&self) -> Runtime {
        Runtime::between(&self.earlier, &self.now, self.hz)
    }
}
