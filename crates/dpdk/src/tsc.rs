//! The time stamp counter as a clock.

use std::{
    sync::OnceLock,
    time::{Duration, Instant},
};

use dpdk_sys as sys;
use packet::Clock;

use crate::Eal;

/// The processor's time stamp counter.
#[derive(Debug, Clone, Copy)]
pub struct Tsc {
    hz: u64,
}

impl Tsc {
    /// The counter, with its frequency timed against CLOCK_MONOTONIC once a process.
    ///
    /// DPDK's own figure is rounded to 10 MHz, which is off by up to 0.2 %: too coarse to pace and to time with.
    pub fn new(_eal: &'static Eal) -> Self {
        static HZ: OnceLock<u64> = OnceLock::new();
        Self { hz: *HZ.get_or_init(calibrate) }
    }

    /// The same counter, read in the order of the program.
    pub fn ordered(self) -> OrderedTsc {
        OrderedTsc { hz: self.hz }
    }

    /// A reading of both clocks as near to each other as can be had: the tightest of a few.
    fn both() -> (Instant, u64) {
        let clock = Self { hz: 1 };
        let read = || {
            let before = clock.now();
            let instant = Instant::now();
            let after = clock.now();
            (after.saturating_sub(before), instant, before / 2 + after / 2)
        };
        let tightest = (0..32).map(|_| read()).min_by_key(|r| r.0);
        let (_, instant, ticks) = tightest.unwrap_or_else(read);
        (instant, ticks)
    }

    /// Whether the counter runs at one rate in all power states, so that its differences are time.
    pub fn invariant() -> bool {
        if cfg!(not(target_arch = "x86_64")) {
            return true;
        }
        let text = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let flags = text.lines().find(|l| l.starts_with("flags")).unwrap_or_default();
        ["constant_tsc", "nonstop_tsc"].iter().all(|want| flags.split_whitespace().any(|flag| flag == *want))
    }
}

/// The time stamp counter for single events: a reading waits for all instructions before it, and those behind it wait for the
/// reading. It takes a little longer than [`Tsc`].
#[derive(Debug, Clone, Copy)]
pub struct OrderedTsc {
    hz: u64,
}

impl Clock for OrderedTsc {
    #[inline(always)]
    fn now(&self) -> u64 {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: reads a counter that user space may read on Linux; the fences are part of x86-64.
        return unsafe {
            std::arch::x86_64::_mm_lfence();
            let ticks = std::arch::x86_64::_rdtsc();
            std::arch::x86_64::_mm_lfence();
            ticks
        };
        #[cfg(not(target_arch = "x86_64"))]
        {
            std::sync::atomic::fence(std::sync::atomic::Ordering::SeqCst);
            Tsc { hz: self.hz }.now()
        }
    }

    #[inline(always)]
    fn hz(&self) -> u64 {
        self.hz
    }
}

/// Ticks a second, to a few parts per million; DPDK's figure when the machine's clocks make no sense.
fn calibrate() -> u64 {
    const SPAN: Duration = Duration::from_millis(50);
    let begun = Tsc::both();
    std::thread::sleep(SPAN);
    let ended = Tsc::both();
    let seconds = (ended.0 - begun.0).as_secs_f64();
    let hz = ended.1.saturating_sub(begun.1) as f64 / seconds;
    // SAFETY: the EAL ran, which set the variable this reads.
    let nominal = unsafe { sys::lr_tsc_hz() }.max(1);
    if (hz / nominal as f64 - 1.0).abs() < 0.05 {
        hz as u64
    } else {
        nominal
    }
}

impl Clock for Tsc {
    #[inline(always)]
    fn now(&self) -> u64 {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: reads a counter that user space may read on Linux.
        return unsafe { std::arch::x86_64::_rdtsc() };
        #[cfg(not(target_arch = "x86_64"))]
        // SAFETY: as above, through DPDK.
        return unsafe { sys::lr_tsc() };
    }

    #[inline(always)]
    fn hz(&self) -> u64 {
        self.hz
    }
}
