//! The core-to-core probe, and the kernel's counters of both lcores.

use std::time::Duration;

use failure::Failure;
use host::{CoreToCoreProbe, CpuSnapshot, Roots};

use crate::{
    lcores::{OTHER_LCORE, TESTER_LCORE},
    rig::Rig,
};

/// How long a probe may take when a core does not answer.
pub(crate) const PROBE_LIMIT: Duration = Duration::from_millis(100);

impl Rig {
    /// Nanoseconds that a cache line takes between the two cores in use; `None` on one core.
    pub(crate) fn probe_cores(&self) -> Result<Option<f64>, Failure> {
        if self.cpus.other.is_none() {
            return Ok(None);
        }
        // The fastest of three: an interrupt can only slow a probe down.
        let mut best: Option<f64> = None;
        for _ in 0..3 {
            let probe = CoreToCoreProbe::new();
            let ns = self.eal.scope_as(self.realtime.scheduling(PROBE_LIMIT), |s| -> Result<_, Failure> {
                let pong = s.launch(OTHER_LCORE, || probe.pong(PROBE_LIMIT))?;
                let ping = s.launch(TESTER_LCORE, || probe.ping(PROBE_LIMIT))?;
                let ns = ping.join()?;
                pong.join()?;
                Ok(ns)
            })?;
            best = match (best, ns) {
                (Some(a), Some(b)) => Some(a.min(b)),
                (a, b) => a.or(b),
            };
        }
        Ok(best)
    }

    pub(crate) fn kernel_counters(&self) -> [CpuSnapshot; 2] {
        let roots = Roots::default();
        let cpus = [Some(self.cpus.tester), self.cpus.other];
        [0, 1].map(|i| CpuSnapshot::read(&roots, cpus[i], self.tids[i]))
    }

    pub(crate) fn kernel_since(&self, before: &[CpuSnapshot; 2]) -> [CpuSnapshot; 2] {
        let after = self.kernel_counters();
        [0, 1].map(|i| before[i].until(&after[i]))
    }
}
