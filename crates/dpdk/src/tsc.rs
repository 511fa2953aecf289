use dpdk_sys as sys;
use packet::Clock;

use crate::Eal;

/// The processor's time stamp counter.
#[derive(Debug, Clone, Copy)]
pub struct Tsc {
    hz: u64,
}

impl Tsc {
    /// The counter, with the frequency DPDK measured at start.
    pub fn new(_eal: &'static Eal) -> Self {
        // SAFETY: the EAL ran, which calibrated the counter; this reads a variable.
        let hz = unsafe { sys::lr_tsc_hz() };
        Self { hz: hz.max(1) }
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
