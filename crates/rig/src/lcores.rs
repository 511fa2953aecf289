//! The polling lcores of a rig, and how they are told to end.

use std::sync::atomic::{AtomicBool, Ordering};

/// The tester's polling core.
pub const TESTER_LCORE: u32 = 1;
/// The built-in device's lcore. Without a built-in device, the lcore that the core-to-core probe answers from.
pub const OTHER_LCORE: u32 = 2;

/// Sets a flag when it is dropped, also when a panic unwinds: a loop on another lcore then ends.
pub struct SetOnDrop<'a>(pub &'a AtomicBool);

impl Drop for SetOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Release);
    }
}
