//! Delays of a simulated trial.

use std::collections::BTreeMap;

use crate::{
    metrics::{latency, Distribution},
    trial::LatencySummary,
};

/// Parts that the waiting frames of a trial are told apart in.
const PARTS: u64 = 64;
/// A second in the ticks of the distribution.
const NS: f64 = 1e9;

/// What frames wait for.
pub(super) struct Waits {
    /// Delay of a frame that does not wait.
    pub base_ns: u64,
    /// Frames/s.
    pub load: f64,
    /// Frames/s forwarded.
    pub capacity: f64,
    /// Frames the DUT holds.
    pub queue: u64,
    /// Most frames that a burst leaves waiting; none when they come evenly.
    pub burst: Option<f64>,
    /// Seconds of sending.
    pub time_s: f64,
    /// Stalls of the DUT.
    pub stalls: u64,
    /// Frames that came back.
    pub received: u64,
}

/// One-way delays: how many frames took so many nanoseconds.
#[derive(Debug, Default, Clone)]
pub(super) struct Delays(BTreeMap<u64, u64>);

impl Delays {
    /// Adds frames: the base, and on top the time in the queue.
    ///
    /// Below the capacity the share of the load waits, with the exponential tail of a single server fed at random (mean
    /// wait of M/D/1). Above it the queue fills evenly and then stays full; so it does in each burst. A stall leaves a
    /// full queue behind. No frame waits longer than a full queue takes. IPDV is not modelled.
    pub fn add(&mut self, waits: &Waits) {
        if waits.base_ns == 0 {
            return;
        }
        let full_ns = waits.queue as f64 / waits.capacity.max(1.0) * NS;
        let mut left = waits.received;
        // `frames` of those left, their waits at `PARTS` quantiles.
        let mut spread = |frames: f64, wait: &dyn Fn(f64) -> f64| {
            let frames = (frames.max(0.0) as u64).min(left);
            left -= frames;
            for i in 0..PARTS {
                let count = frames * (i + 1) / PARTS - frames * i / PARTS;
                let ns = wait((i as f64 + 0.5) / PARTS as f64).min(full_ns);
                if count > 0 {
                    *self.0.entry(waits.base_ns + ns.round() as u64).or_default() += count;
                }
            }
        };
        let evenly = |share: f64| share * full_ns;
        spread(waits.stalls as f64 * waits.queue as f64, &evenly);
        let load = waits.load / waits.capacity.max(1.0);
        if let Some(burst) = waits.burst {
            spread(f64::INFINITY, &|share| share * burst / waits.capacity.max(1.0) * NS);
        } else if load >= 1.0 {
            let filling = waits.queue as f64 / (waits.load - waits.capacity).max(1e-9);
            spread(waits.load * filling.min(waits.time_s), &evenly);
            spread(f64::INFINITY, &|_| full_ns);
        } else {
            let mean_ns = NS / (2.0 * waits.capacity.max(1.0) * (1.0 - load));
            spread(waits.received as f64 * load, &|share| -mean_ns * (1.0 - share).ln());
            spread(f64::INFINITY, &|_| 0.0);
        }
    }

    /// Adds the frames of another.
    pub fn merge(&mut self, other: &Self) {
        for (&ns, count) in &other.0 {
            *self.0.entry(ns).or_default() += count;
        }
    }

    /// The figures; `None` without frames.
    pub fn summary(self) -> Option<LatencySummary> {
        let sum = self.0.iter().map(|(&ns, &count)| u128::from(ns) * u128::from(count)).sum();
        let (min, max) = (*self.0.first_key_value()?.0, *self.0.last_key_value()?.0);
        let bins = self.0.into_iter().map(|(ns, count)| (ns, ns, count)).collect();
        latency(&Distribution { bins, min, max, sum }, NS as u64, None)
    }
}
