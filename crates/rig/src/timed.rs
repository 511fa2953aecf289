//! A worker run between two looks at both clocks.

use packet::{Clock, ClockPair};
use traffic::{
    control::Control,
    worker::{Receives, Sends, Worker, WorkerCounters},
};
use units::Nanos;

/// Runs the worker, timing the clock against CLOCK_MONOTONIC: counters, and drift in ppm (positive: TSC too slow).
pub fn timed<S: Sends, R: Receives>(
    worker: &mut Worker<S, R>,
    clock: &impl Clock,
    control: &Control,
) -> (WorkerCounters, f64) {
    let begun = ClockPair::monotonic(clock);
    control.start_at(clock.now() + clock.hz() / 10_000);
    let counters = worker.run(clock, control);
    let ended = ClockPair::monotonic(clock);
    let real = (ended.time - begun.time).as_secs_f64();
    let ticked = Nanos::from_ticks(ended.ticks.saturating_sub(begun.ticks), clock.hz()).seconds();
    (counters, if ticked > 0.0 { (real / ticked - 1.0) * 1e6 } else { 0.0 })
}
