//! Whether a device under test forwards at all.

use std::time::Duration;

use failure::{Failure, Stop};
use measure::{
    plan::Trust,
    trial::{Purpose, TrialSpec},
};
use units::Fps;

use crate::{
    request::{TrialEnd, TrialRequest},
    rig::Rig,
    streams::Streams,
};

/// Load of the frames sent, frames/s.
const LOAD_FPS: f64 = 1_000.0;
/// For so long, seconds.
const SENT_S: f64 = 0.02;
/// Wait for the last of them.
const RESIDUAL: Duration = Duration::from_millis(50);

impl Rig {
    /// Sends twenty frames in 20 ms each way and tells whether one came back from every way that was sent; `None` when a
    /// signal came. One port of a switch may be ready before the other. It is not a trial: numbers of trials do not change.
    ///
    /// # Errors
    ///
    /// When the rig fails.
    pub fn device_answers(&mut self, streams: &Streams, stop: &Stop) -> Result<Option<bool>, Failure> {
        let frames = streams.specs[0].frame_size;
        let spec = TrialSpec::steady(frames, Fps::from_raw(LOAD_FPS), SENT_S, Purpose::Warmup);
        let trust = Trust { residual: RESIDUAL, ..Trust::default() };
        let end = self.run(
            streams,
            &TrialRequest { spec, attempt: 1, trust: &trust, selftest_max: None },
            stop,
            &mut |_| {},
        )?;
        // Frames of it that come late must not be of the epoch of the first trial.
        self.number -= 1;
        self.epoch_base = self.epoch_base.wrapping_add(1);
        Ok(match end {
            TrialEnd::Stopped(_) => None,
            TrialEnd::Done(done) => {
                let ways = &done.record.directions;
                Some(ways.iter().any(|way| way.sent > 0) && ways.iter().all(|way| way.sent == 0 || way.received > 0))
            }
        })
    }
}
