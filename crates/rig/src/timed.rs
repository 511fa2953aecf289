//! Runs a worker between two readings of both clocks.

use std::time::Instant;

use packet::Clock;
use traffic::{
    control::Control,
    worker::{Receives, Sends, Worker, WorkerCounters},
};
use units::Nanos;

/// Runs the worker and compares the TSC with CLOCK_MONOTONIC. Returns the counters, and the drift in ppm (positive: the TSC
/// is too slow).
pub fn timed<S: Sends, R: Receives>(
    worker: &mut Worker<S, R>,
    clock: &dpdk::Tsc,
    control: &Control,
) -> (WorkerCounters, f64) {
    let begun = both_clocks(clock);
    control.start_at(clock.now() + clock.hz() / 10_000);
    let counters = worker.run(clock, control);
    let ended = both_clocks(clock);
    let real = (ended.0 - begun.0).as_secs_f64();
    let ticked = Nanos::from_ticks(ended.1.saturating_sub(begun.1), clock.hz()).seconds();
    (counters, if ticked > 0.0 { (real / ticked - 1.0) * 1e6 } else { 0.0 })
}

/// The time by both clocks: the fastest of five readings. Otherwise, an interrupt between the two would look like drift in a
/// trial of a few microseconds.
fn both_clocks(clock: &dpdk::Tsc) -> (Instant, u64) {
    let read = || {
        let before = clock.now();
        let time = Instant::now();
        let after = clock.now();
        (after.saturating_sub(before), (time, before + after.saturating_sub(before) / 2))
    };
    (0..4).map(|_| read()).fold(read(), |best, next| if next.0 < best.0 { next } else { best }).1
}
