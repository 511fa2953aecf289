//! What the tester can do without a device: it sends, receives and checks every frame on one lcore, over a looped cable.

use std::time::Duration;

use measure::{
    result::SelfTestPoint,
    trial::{Purpose, TrialSpec},
};
use packet::Clock;
use traffic::control::{Control, Timing};
use units::{Fps, Nanos};

use failure::Failure;

use crate::{
    lcores::TESTER_LCORE, rig::Rig, streams::Streams, tester_port::drain, timed::timed, worker::tester_worker,
};

/// Above what any core can do: the pacer always has frames due.
const UNBOUNDED: f64 = 1e9;
const RUNS: u32 = 3;
/// Wait for the last frames.
const RESIDUAL: Duration = Duration::from_millis(10);

impl Rig {
    /// The most frames per second and direction for these streams: the best of three runs of `duration`, because an
    /// interruption can only slow a run down.
    ///
    /// # Errors
    ///
    /// (usage) for streams that cannot be sent; (failed) when the lcore fails.
    pub fn selftest(&mut self, streams: &Streams, duration: Duration) -> Result<SelfTestPoint, Failure> {
        self.open_loopback()?;
        let hz = self.clock.hz();
        let size = streams.specs[0].frame_size;
        let stretch = duration + RESIDUAL;
        let scheduling = self.realtime.scheduling(stretch);
        let mut best = 0.0f64;
        for _ in 0..RUNS {
            self.number += 1;
            std::thread::sleep(self.realtime.rest());
            let spec = TrialSpec::steady(size, Fps::from_raw(UNBOUNDED), duration.as_secs_f64(), Purpose::SelfTest);
            let timing = Timing { residual: self.ticks(RESIDUAL), settle: 0 };
            let control = Control::new(timing, streams.directions);
            let ticks = self.ticks(duration);
            let epoch = (self.number as u8).wrapping_add(self.epoch_base);
            drain(&mut self.loopback);
            let Self { loopback, frames, eal, clock, .. } = self;
            let mut worker = tester_worker(loopback, streams, frames, &spec, epoch, hz, ticks, hz)?;
            let (w, c, k) = (&mut worker, &control, &*clock);
            let (counters, _) = eal.scope_as(scheduling, |s| s.launch(TESTER_LCORE, move || timed(w, k, c))?.join())?;
            self.realtime.ended(scheduling, stretch);
            // The pacer still sends what was due when the time was up.
            let ended = control.ended().unwrap_or(counters.left);
            let took = Nanos::from_ticks(ended.saturating_sub(counters.started), hz).seconds();
            let received: u64 = worker.rx.iter().map(|r| r.checker().received()).sum();
            best = best.max(received as f64 / took.max(duration.as_secs_f64()));
        }
        let directions = streams.directions as f64;
        Ok(SelfTestPoint {
            frame_size_bytes: size,
            max_fps: Fps::from_raw(best / directions),
            cycles_per_frame: if best > 0.0 { hz as f64 / best } else { 0.0 },
        })
    }
}
