//! Devices that hold the tester's calls: a shaper of the kernel whose timers run on the tester's own CPU lets a call that sends
//! return when its frames are out. No load exceeds its rate then, and no frame is lost, as with a device that works all of the
//! time in these calls. A load a little lower tells them apart: work takes as long as before, and waiting ends.

use units::Fps;

use super::{CapacitySearch, Phase, Shown, REACHED};
use crate::{
    schema::{
        evidence::{Saturation, Settled, SliceEvidence},
        trial::{TrialRecord, TrialSpec},
    },
    search::{
        calls::{busy, cut_off, is_emptied, Calls, Waiting, ALWAYS, PROBE, SETTLED, WAITING},
        gave::DISTURBED,
        reason::Reason,
    },
};

/// Trials in a row in which the tester is always busy at a load below the rate.
const DOUBTS: u32 = 3;
/// The next load is so much lower then, as a share, or more.
const LOWER: f64 = 0.01;
/// Share of the width of an answer that its rate is to take: the rest is for the load just below.
const OF_WIDTH: f64 = 0.8;

/// What a trial says in which a device held the calls from end to end, and how far its rate may be off by what the tester missed.
fn kept_busy(e: &SliceEvidence, later: &Settled) -> (Shown, f64) {
    let [all, clean] = [later.all_fps, later.clean_fps].map(Fps::get);
    if !is_emptied(e, later) {
        return (Shown::Buffered(later.later_fps.get()), 0.0);
    }
    // A bucket that fills while the tester is away makes up for that, and the rate is that of all slices; without one it is that
    // of those that count.
    let (low, high) = (all.min(clean), all.max(clean));
    let fps = f64::midpoint(low, high);
    let error_fps = Fps::from_raw(cut_off(fps, e.offered));
    let busy = Saturation { fps: Fps::from_raw(fps), error_fps, seconds: e.clean_s * SETTLED, stretches: 1 };
    (Shown::Busy(busy), (high - low) / 2.0)
}

impl CapacitySearch {
    /// After a load that passed, and that the tester did not offer in full: whether a lower one is looked at first.
    pub(super) fn probes(&mut self, offered: f64) -> bool {
        let looks = self.calls == Calls::Unknown && self.config.is_in_calls(Fps::from_raw(offered));
        if looks {
            self.calls = Calls::Probed { at_top: self.phase == Phase::Top, offered };
            self.phase = Phase::Probe;
        }
        looks
    }

    /// The load that tells whether the device waits.
    pub(super) fn probe_load(&self) -> f64 {
        match self.calls {
            Calls::Probed { offered, .. } => offered * PROBE,
            _ => self.expected,
        }
    }

    /// What the lower load shows.
    pub(super) fn probed(&mut self, shown: Shown, trial: &TrialRecord) {
        let Calls::Probed { at_top, offered: most } = self.calls else { return };
        let load = trial.spec.load_fps.get();
        (self.calls, self.phase) = match (shown, busy(trial)) {
            (Shown::Passed(offered), Some(busy)) if busy < WAITING => {
                self.expected = most;
                // What was offered while it held the calls is its rate, and no load that passed.
                self.passed.clear();
                let short = (1.0 - offered / load).max(0.0);
                (Calls::Holds(Waiting { load, busy, short, ..Waiting::default() }), Phase::Above)
            }
            _ => (Calls::Works, if at_top { Phase::Top } else { Phase::Above }),
        };
    }

    /// A trial that passed, looked at again where the device holds the calls: at a load that the tester could not offer since it
    /// never had time, the device was kept busy. Just below its rate the tester has time, or the device only worked.
    pub(super) fn look_for_holding(
        &mut self,
        shown: Shown,
        spec: &TrialSpec,
        trial: &TrialRecord,
        e: &SliceEvidence,
    ) -> Shown {
        let (Calls::Holds(mut waiting), Shown::Passed(offered), Some(busy)) = (self.calls, shown, busy(trial)) else {
            return shown;
        };
        let reached = offered >= spec.load_fps.get() * REACHED;
        if let Some(later) = e.settled.filter(|_| self.phase == Phase::Above && !reached && busy >= ALWAYS) {
            self.drain.see_held(e);
            let (shown, apart) = kept_busy(e, &later);
            if matches!(shown, Shown::Busy(_)) {
                (waiting.apart, waiting.trials) = (waiting.apart + apart, waiting.trials + 1);
                self.calls = Calls::Holds(waiting);
            }
            return shown;
        }
        if self.phase == Phase::Below {
            return self.doubt(shown, offered, busy);
        }
        shown
    }

    /// Frames offered a second and direction. Where the kernel sets a load that is lower than asked for, what a bucket of tokens let
    /// through at first does not count; and where the tester was away for much of the time, so that a bucket fills again and
    /// again, only what was offered in all of it.
    pub(super) fn lasting(&mut self, e: &SliceEvidence, load: f64) -> f64 {
        let offered = e.offered_fps.get();
        let Some(later) = e.settled.filter(|_| self.config.kernel_pair.is_some() && offered < load * REACHED) else {
            return offered;
        };
        let settled = offered.min(later.clean_fps.get());
        self.most_offered = self.most_offered.max(settled);
        let disturbed = e.aside_s > DISTURBED * (e.aside_s + e.clean_s);
        match disturbed && !self.is_held() {
            true => settled.min(later.all_fps.get()),
            false => settled,
        }
    }

    /// Whether it waits in them: then a load far above its rate empties its bucket of tokens at once.
    pub(super) fn is_held(&self) -> bool {
        matches!(self.calls, Calls::Holds(_))
    }

    /// The relative width that more passes can narrow: of a device that holds the calls that of its rate. What the tester does not
    /// offer of a load stays open, and what it missed of the device.
    pub(super) fn open_width(&self) -> Option<f64> {
        match (self.calls, self.rate()) {
            (Calls::Holds(waiting), Some(rate)) => Some(2.0 * (rate.half - waiting.open()) / rate.mean / OF_WIDTH),
            _ => self.interval().relative_width(),
        }
    }

    /// How far the rate may be from the mean of what the trials say, however many there are.
    pub(super) fn open(&self) -> f64 {
        match self.calls {
            Calls::Holds(waiting) => waiting.open(),
            _ => 0.0,
        }
    }

    /// A load just below the rate at which the tester was always busy: it is above the rate, or the device only works after all.
    fn doubt(&mut self, shown: Shown, offered: f64, busy: f64) -> Shown {
        let Calls::Holds(waiting) = &mut self.calls else { return shown };
        if busy < ALWAYS {
            waiting.doubts = 0;
            return shown;
        }
        waiting.doubts += 1;
        if waiting.doubts < DOUBTS {
            self.below = (self.below * 4.0).clamp(LOWER, 1.0 - PROBE);
            return Shown::Buffered(offered);
        }
        self.calls = Calls::Works;
        self.begin_at_top();
        // The highest load is tried next, and this trial was at another one.
        Shown::Unclear
    }

    /// By how much the device may do more than what was seen while it held the calls, as a share.
    pub(super) fn unseen(&self) -> f64 {
        match self.calls {
            Calls::Holds(waiting) => waiting.short,
            _ => 0.0,
        }
    }

    /// What to say of that.
    pub(super) fn holding(&self) -> Option<Reason> {
        match self.calls {
            Calls::Holds(waiting) => waiting.reason(),
            _ => None,
        }
    }
}
