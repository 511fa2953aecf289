//! What the tester can do without a device: it sends, receives and checks every frame on one lcore, over the software
//! cable and over a pair of ports of the kind in use.

use std::time::{Duration, Instant};

use measure::{
    result::{SelfTestKind, SelfTestPair, SelfTestPoint},
    trial::{Purpose, TrialSpec},
};
use packet::Clock;
use traffic::control::{Control, Timing};
use units::{Fps, Nanos};

use failure::{Failure, Stop};

use crate::{
    lcores::TESTER_LCORE,
    rig::Rig,
    streams::Streams,
    tester_port::{drain, TesterPort},
    timed::timed,
    worker::tester_worker,
};

/// Above what any core can do: the pacer always has frames due.
const UNBOUNDED: f64 = 1e9;
/// Passes that must agree.
const PASSES: usize = 3;
/// How well they must agree, relative.
const AGREE: f64 = 0.02;
/// Passes over one pair take at most so many times the duration of a pass, and at most [`LONGEST`].
const MOST: u32 = 10;
/// See [`MOST`].
const LONGEST: Duration = Duration::from_secs(2);
/// The shortest pass beside a pair.
const SHORTEST: Duration = Duration::from_millis(20);
/// Wait for the last frames.
const RESIDUAL: Duration = Duration::from_millis(10);

impl Rig {
    /// The most frames per second and direction for these streams, in passes of `duration`. `None` when a signal came.
    ///
    /// # Errors
    ///
    /// (usage) for streams that cannot be sent; (failed) when the lcore fails.
    pub fn selftest(
        &mut self,
        streams: &Streams,
        duration: Duration,
        stop: &Stop,
    ) -> Result<Option<SelfTestPoint>, Failure> {
        self.open_loopback()?;
        let (kind, fallback) = self.open_pair();
        let by_cable = kind == SelfTestKind::SoftwareCable;
        let mut cable = std::mem::take(&mut self.loopback);
        // Beside a pair only the fastest pass over the cable is told: the passes need not agree, and may be short.
        let short = if by_cable { duration } else { (duration / 5).max(SHORTEST).min(duration) };
        let over_cable = self.passes(&mut cable, streams, short, by_cable, stop);
        self.loopback = cable;
        let over_cable = over_cable?;
        if stop.requested() {
            return Ok(None);
        }
        let rates = match kind {
            SelfTestKind::SoftwareCable => over_cable.clone(),
            _ => {
                let mut pair = std::mem::take(&mut self.pair.ports);
                let rates = self.passes(&mut pair, streams, duration, true, stop);
                self.pair.ports = pair;
                rates?
            }
        };
        if stop.requested() {
            return Ok(None);
        }
        let directions = streams.directions as f64;
        let best = over_cable.iter().copied().fold(0.0, f64::max);
        let settled = settled(&rates);
        let fps = |rate: f64| Fps::from_raw(rate / directions);
        Ok(Some(SelfTestPoint {
            frame_size_bytes: streams.specs[0].frame_size,
            max_fps: fps(best),
            cycles_per_frame: if best > 0.0 { self.clock.hz() as f64 / best } else { 0.0 },
            pair: Some(SelfTestPair {
                kind,
                lower_fps: fps(settled.lower),
                upper_fps: fps(settled.upper),
                passes: rates.len() as u32,
                stable: settled.stable,
                fallback,
            }),
        }))
    }

    /// Frames per second, of all directions together, of passes over two joined ports: three, and more until three agree
    /// where they should; none after a signal.
    fn passes(
        &mut self,
        ports: &mut [TesterPort],
        streams: &Streams,
        duration: Duration,
        agree: bool,
        stop: &Stop,
    ) -> Result<Vec<f64>, Failure> {
        let (begun, limit) = (Instant::now(), (duration * MOST).min(LONGEST));
        let mut rates = Vec::new();
        let unsettled = |rates: &[f64]| agree && !settled(rates).stable && begun.elapsed() + duration < limit;
        let more = |rates: &[f64]| rates.len() < PASSES || unsettled(rates);
        while more(&rates) && !stop.requested() {
            rates.push(self.pass(ports, streams, duration)?);
        }
        Ok(rates)
    }

    fn pass(&mut self, ports: &mut [TesterPort], streams: &Streams, duration: Duration) -> Result<f64, Failure> {
        let hz = self.clock.hz();
        let size = streams.specs[0].frame_size;
        self.number += 1;
        std::thread::sleep(self.realtime.rest());
        let spec = TrialSpec::steady(size, Fps::from_raw(UNBOUNDED), duration.as_secs_f64(), Purpose::SelfTest);
        let timing = Timing { residual: self.ticks(RESIDUAL), settle: 0 };
        let control = Control::new(timing, streams.directions);
        let ticks = self.ticks(duration);
        let epoch = (self.number as u8).wrapping_add(self.epoch_base);
        let stretch = duration + RESIDUAL;
        let scheduling = self.realtime.scheduling(stretch);
        drain(ports);
        let Self { frames, eal, clock, .. } = self;
        let mut worker = tester_worker(ports, streams, frames, &spec, epoch, hz, ticks, hz)?;
        let (w, c, k) = (&mut worker, &control, &*clock);
        let (counters, _) = eal.scope_as(scheduling, |s| s.launch(TESTER_LCORE, move || timed(w, k, c))?.join())?;
        // The pacer still sends what was due when the time was up.
        let ended = control.ended().unwrap_or(counters.left);
        let took = Nanos::from_ticks(ended.saturating_sub(counters.started), hz).seconds();
        let received: u64 = worker.rx.iter().map(|r| r.checker().received()).sum();
        drop(worker);
        self.realtime.ended(scheduling, stretch);
        Ok(received as f64 / took.max(duration.as_secs_f64()))
    }
}

/// What passes say together.
struct Settled {
    lower: f64,
    upper: f64,
    stable: bool,
}

/// The range of the three fastest passes if they agree, because an interruption can only slow a pass down; otherwise the
/// range of all passes.
fn settled(rates: &[f64]) -> Settled {
    let mut rates = rates.to_vec();
    rates.sort_by(|a, b| b.total_cmp(a));
    let [upper, lowest] = [rates.first(), rates.last()].map(|rate| rate.copied().unwrap_or(0.0));
    match rates.get(PASSES - 1) {
        Some(&third) if upper > 0.0 && third >= upper * (1.0 - AGREE) => Settled { lower: third, upper, stable: true },
        _ => Settled { lower: lowest, upper, stable: false },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fastest_three_passes_count_once_they_agree() {
        let of = |rates: &[f64]| {
            let Settled { lower, upper, stable } = settled(rates);
            (lower, upper, stable)
        };
        assert_eq!(of(&[]), (0.0, 0.0, false));
        assert_eq!(of(&[0.0; 3]), (0.0, 0.0, false), "nothing came back");
        assert_eq!(of(&[100.0, 99.0]), (99.0, 100.0, false));
        assert_eq!(of(&[100.0, 40.0, 99.0]), (40.0, 100.0, false));
        assert_eq!(of(&[100.0, 40.0, 99.0, 98.5]), (98.5, 100.0, true));
    }
}
