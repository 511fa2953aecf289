//! A trial that sends a capture instead of streams.

use std::sync::Arc;

use dpdk::{Mempool, PoolHandle, RxQueue, TxQueue};
use measure::{
    shape::{ReplayCounts, LATE_DEPARTURE_NS},
    trial::DirectionCounts,
};
use packet::capture::Capture;
use traffic::{
    replay::{Known, Replay, Tally, Timeline, Timing},
    worker::{Receives, Worker},
};
use units::Nanos;

use failure::Failure;

use crate::{record, tester_port::TesterPort};

/// A capture, and how it is to be sent. Each loaded port sends it.
pub struct Replayable {
    /// The capture.
    pub capture: Arc<Capture>,
    /// When its frames are due.
    pub timing: Timing,
    /// Over all passes.
    pub frames: u64,
}

/// A worker for that.
pub type ReplayWorker<'a> = Worker<Replay<&'a mut TxQueue, PoolHandle>, Tally<&'a mut RxQueue>>;

impl Replayable {
    /// The tester's tasks: the capture out of so many ports, a tally at every port.
    pub fn worker<'a>(
        &self,
        ends: &'a mut [TesterPort],
        directions: usize,
        frames: &Mempool,
        hz: u64,
        threshold: u64,
    ) -> Result<ReplayWorker<'a>, Failure> {
        let late_after = (u128::from(LATE_DEPARTURE_NS) * u128::from(hz) / 1_000_000_000) as u64;
        let known = Arc::new(Known::new(&self.capture));
        let (mut txs, mut rxs) = (Vec::new(), Vec::new());
        for (i, end) in ends.iter_mut().enumerate() {
            if i < directions {
                let timeline = Timeline::new(self.capture.times(), self.timing, hz).map_err(Failure::usage)?;
                let (capture, pool) = (Arc::clone(&self.capture), frames.handle());
                txs.push(Replay::new(&mut end.tx, pool, capture, timeline, self.frames, late_after));
            }
            rxs.push(Tally::new(&mut end.rx, Arc::clone(&known)));
        }
        Ok(Worker::new(txs, rxs, threshold))
    }
}

/// The counts of each direction; the names of its ports are left open.
pub fn directions(worker: ReplayWorker<'_>, hz: u64) -> Vec<DirectionCounts> {
    let Worker { tx, rx, .. } = worker;
    let direction = |(i, task): (usize, Replay<&mut TxQueue, PoolHandle>)| {
        let (counters, sent, tally) = (task.counters(), task.replayed().clone(), rx.get(1 - i)?);
        task.into_parts().0.tx_done_cleanup();
        let came = tally.received();
        let lateness = &sent.lateness;
        let ns = |ticks: u64| Nanos::from_ticks(ticks, hz).0;
        Some(DirectionCounts {
            received: came.min(counters.sent),
            lost: counters.sent.saturating_sub(came),
            received_bytes: tally.bytes(),
            foreign: tally.foreign(),
            replay: Some(ReplayCounts {
                sent_bytes: sent.bytes,
                extra: came.saturating_sub(counters.sent),
                late_departures: sent.late,
                lateness_mean_ns: lateness.mean().unwrap_or(0.0) * 1e9 / hz.max(1) as f64,
                lateness_p99_ns: ns(lateness.percentile(99_000)),
                lateness_max_ns: ns(lateness.max().unwrap_or(0)),
            }),
            ..record::sent(&counters, hz)
        })
    };
    tx.into_iter().enumerate().filter_map(direction).collect()
}
