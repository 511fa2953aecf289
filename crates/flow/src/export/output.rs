//! What a sink writes to.

use std::io;

use crate::Record;

/// Why a sink went down, for the log.
pub(super) type Trouble = io::Error;

/// What a sink writes to. A call may wait for a second at most. After an error, `open` is called next.
pub(super) trait Output: Send {
    /// Opens, or opens again.
    fn open(&mut self) -> Result<(), Trouble>;

    /// Sends from the front of `records`; returns how many were sent, or will be counted soon. Zero: nothing can be sent
    /// now, and the same records are given again.
    fn send(&mut self, records: &[Record]) -> Result<usize, Trouble>;

    /// Called from time to time, also when there is nothing to send.
    fn tick(&mut self) -> Result<(), Trouble>;

    /// Whether records of earlier calls are still to be sent.
    fn has_pending(&self) -> bool {
        false
    }

    /// The last call, if it is open.
    fn close(&mut self);
}
