//! System recovery (RFC 2544 §26.5): an overload, then half of it, and the time until the last frame is lost. The text
//! subtracts the two moments the wrong way round; this is the time from A to B.

use units::{Fps, Frames};

use super::{
    setting::{NoProcedure, Setting},
    steps::{self, Want},
};
use crate::{
    plan::RecoveryPlan,
    schema::{
        found::{Found, Recovery, RecoveryTrial, Spread},
        outcome::TestOutcome,
    },
    shape::LoadShape,
    trial::{Purpose, TrialRecord, TrialSpec},
};

/// A last loss within this share of the watched time before its end is loss that has not ended.
const TAIL: f64 = 0.02;

#[derive(Debug)]
pub(super) struct Steps {
    plan: RecoveryPlan,
    size: Frames,
    found: Recovery,
    /// A record lost frames and does not say which was the last.
    untold: bool,
}

impl Steps {
    pub(super) fn new(plan: RecoveryPlan, setting: &Setting) -> Result<Self, NoProcedure> {
        let throughput_fps = setting.overloadable("")?;
        let overload = (throughput_fps.get() * plan.overload_percent / 100.0).min(setting.max.get());
        let found = Recovery {
            throughput_fps,
            overload_fps: Fps::from_raw(overload),
            after_fps: Fps::from_raw(overload / 2.0),
            ..Recovery::default()
        };
        Ok(Self { plan, size: setting.frame_size, found, untold: false })
    }

    fn end(&self) -> Want {
        let trials = &self.found.trials;
        let never = trials.iter().filter(|t| t.recovery_s.is_none()).count();
        if self.untold {
            Want::end(TestOutcome::Inconclusive, "the tester does not tell which frame was lost last")
        } else if never > 0 {
            let (all, watch) = (trials.len(), self.plan.watch.as_secs_f64());
            let reason = format!(
                "in {never} of {all} trials frames were lost to the end of the {watch} s at {}: it did not recover",
                self.found.after_fps
            );
            Want::end(TestOutcome::Failed, reason)
        } else if trials.iter().all(|t| t.lost == 0) {
            Want::end(TestOutcome::Done, "the overload lost no frame: there was nothing to recover from")
        } else {
            Want::End(TestOutcome::Done, None)
        }
    }
}

impl steps::Steps for Steps {
    fn next(&mut self) -> Want {
        if self.untold || self.found.trials.len() as u32 >= self.plan.repetitions {
            return self.end();
        }
        let step_s = self.plan.overload.as_secs_f64();
        let duration_s = step_s + self.plan.watch.as_secs_f64();
        let shape = LoadShape::Step { step_s, then_fps: self.found.after_fps };
        let spec = TrialSpec::steady(self.size, self.found.overload_fps, duration_s, Purpose::Test);
        Want::Trial(TrialSpec { shape, ..spec })
    }

    fn verdict(&mut self, trial: &TrialRecord) {
        let (a, watch) = (self.plan.overload.as_secs_f64(), self.plan.watch.as_secs_f64());
        // A refused frame is lost, too, and left before those behind it.
        self.untold |= trial.directions.iter().any(|d| d.lost > 0 && d.last_lost.is_none());
        let b = trial.directions.iter().filter_map(|d| d.last_lost).map(|l| l.departed_s).fold(0.0, f64::max);
        let ended = b < a + watch * (1.0 - TAIL);
        let recovery_s = ended.then(|| (b - a).max(0.0));
        self.found.trials.push(RecoveryTrial { trial: trial.number, recovery_s, lost: trial.lost() });
        let times: Vec<f64> = self.found.trials.iter().filter_map(|t| t.recovery_s).collect();
        self.found.recovery_s = Spread::of(&times);
    }

    fn found(&self) -> Found {
        Found::Recovery(self.found.clone())
    }

    fn expected(&self) -> u32 {
        self.plan.repetitions
    }
}
