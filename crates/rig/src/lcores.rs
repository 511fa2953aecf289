//! The polling lcores of a rig, and what ends their loops.

use std::sync::atomic::{AtomicBool, Ordering};

/// The tester's polling core.
pub const TESTER_LCORE: u32 = 1;
/// The built-in device's lcore. Without a built-in device, the lcore that the core-to-core probe answers from.
pub const OTHER_LCORE: u32 = 2;

/// Polling gaps of a lcore that a trial remembers with their times.
pub const GAPS_LOGGED: usize = 32_768;

/// Sets a flag when dropped, also by a panic: a loop on another lcore then ends.
pub struct SetOnDrop<'a>(pub &'a AtomicBool);

impl Drop for SetOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Release);
    }
}
