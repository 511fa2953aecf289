//! What came back of a replayed capture.

use std::sync::Arc;

use packet::{Buffer, Burst, Clock, Rx};
use units::FCS_BYTES;

use super::Known;
use crate::worker::{take_in, Receives};

/// One receive queue: all its frames are counted, and the foreign ones among them.
pub struct Tally<R: Rx> {
    rx: R,
    burst: Burst<R::Buf>,
    frames: u64,
    bytes: u64,
    known: Arc<Known>,
    foreign: u64,
}

impl<R: Rx> Tally<R> {
    /// Counts what this queue receives.
    pub fn new(rx: R, known: Arc<Known>) -> Self {
        Self { rx, burst: Burst::new(), frames: 0, bytes: 0, known, foreign: 0 }
    }

    /// Frames since the start that are not in the capture. They are among those received.
    pub fn foreign(&self) -> u64 {
        self.foreign
    }

    /// Bytes received since the start, each frame with its FCS.
    pub fn bytes(&self) -> u64 {
        self.bytes + self.frames * u64::from(FCS_BYTES)
    }
}

impl<R: Rx> Receives for Tally<R> {
    fn begin(&mut self, _start: u64) {
        (self.frames, self.bytes, self.foreign) = (0, 0, 0);
    }

    #[inline]
    fn poll(&mut self, _clock: &impl Clock) -> bool {
        let Self { rx, burst, frames, bytes, known, foreign } = self;
        take_in(rx, burst, |came| {
            *frames += came.len() as u64;
            *bytes += came.iter().map(|frame| frame.len() as u64).sum::<u64>();
            *foreign += came.iter().filter(|frame| !known.has(frame.data())).count() as u64;
        })
    }

    fn received(&self) -> u64 {
        self.frames
    }
}
