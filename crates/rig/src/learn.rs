//! Learning frames (RFC 2544 §23 b).

use std::time::Duration;

use failure::Failure;
use measure::plan::Trust;
use packet::Clock;
use traffic::{generator::Generator, pacer::Pacer, worker::TxTask};
use units::Fps;

use crate::{rig::Rig, streams::Streams, tester_port::drain};

/// Learning frames sent by each port before a trial (RFC 2544 §23 b).
const LEARNING_FRAMES: usize = 8;
/// Wait behind the learning frames of every trial but a run's first, whose is up to the 2 s of RFC 2544 §23 b.
pub const LEARNING_WAIT: Duration = Duration::from_millis(2);

impl Rig {
    /// Sends learning frames both ways, so that a bridge knows both ends before it is loaded.
    pub(crate) fn send_learning_frames(&mut self, streams: &Streams, trust: &Trust) -> Result<(), Failure> {
        if self.built_in.is_some() {
            // The built-in functions have nothing to learn.
            self.learned = true;
            return Ok(());
        }
        for (end, spec) in self.ports.iter_mut().zip(&streams.specs) {
            let generator = Generator::new(spec, 0, 0, false).map_err(Failure::usage)?;
            let pacer = Pacer::new(Fps::ZERO, self.clock.hz(), 1, 0);
            TxTask::new(&mut end.tx, self.frames.handle(), generator, pacer).learn(LEARNING_FRAMES);
            end.tx.tx_done_cleanup();
        }
        let first = !std::mem::replace(&mut self.learned, true);
        std::thread::sleep(if first { trust.residual.min(Duration::from_secs(2)) } else { LEARNING_WAIT });
        drain(&mut self.ports);
        Ok(())
    }
}
