use units::{Fps, FrameSize};

use super::SimDut;
use crate::trial::{Purpose, TrialRecord, TrialSpec};

/// System recovery (RFC 2544 §26.5), simulated: an overload, then at once half of it.
#[derive(Debug, Clone, PartialEq)]
pub struct SimRecovery {
    /// The overload.
    pub overload: TrialRecord,
    /// Frames sent and lost after the load was halved.
    pub sent_after: u64,
    /// Of those, lost.
    pub lost_after: u64,
    /// When the last frame lost was due, seconds after the load was halved; `None` when none was lost any more.
    pub last_lost_s: Option<f64>,
}

impl SimDut {
    /// Sends `overload` for `overload_s` and then half of it for `half_s` without a pause.
    ///
    /// The DUT loses every frame until it has recovered (the setup's `recovery`) and while it is dead; for good when
    /// half the overload is still too much for it.
    pub fn recovery(&mut self, size: FrameSize, overload: Fps, overload_s: f64, half_s: f64) -> SimRecovery {
        let spec = TrialSpec::steady(size, overload, overload_s, Purpose::Single);
        let first = self.run(&spec);
        let (start, half) = (self.now_s, overload.get() / 2.0);
        let capacity = self.setup.capacity(self.at, start, start + half_s);
        let overloaded = first.lost() > 0;
        // Spans after A in which frames are lost, from when to when, and which share.
        let mut spans = Vec::new();
        if half > capacity {
            spans.push((0.0, half_s, 1.0 - capacity / half));
        } else if overloaded {
            spans.push((0.0, self.setup.recovery_s.min(half_s), 1.0));
        }
        if let Some((dies, returns)) = self.setup.dead {
            spans.push(((dies - start).max(0.0), (returns - start).min(half_s), 1.0));
        }
        spans.retain(|(from, to, _)| from < to);
        self.now_s += half_s;
        let sent_after = (half * half_s).round() as u64;
        let lost: f64 = spans.iter().map(|(from, to, share)| (to - from) * half * share).sum();
        let lost_after = (lost.round() as u64).min(sent_after);
        // The last frame due before the end of the last span.
        let end = spans.iter().map(|s| s.1).fold(0.0, f64::max);
        let last_lost_s = (lost_after > 0).then(|| ((end * half).ceil() - 1.0).max(0.0) / half);
        SimRecovery { overload: first, sent_after, lost_after, last_lost_s }
    }
}
