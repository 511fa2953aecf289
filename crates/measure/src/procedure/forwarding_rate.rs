//! Forwarding rates (RFC 2285 §3.6, RFC 2889 §5.6): at the maximum offered load, and the highest on the way from the
//! throughput up to it.

use units::{Fps, Frames};

use super::{
    setting::Setting,
    steps::{self, Want},
};
use crate::{
    plan::ForwardingRatePlan,
    schema::{
        found::{ForwardingPoint, ForwardingRate, Found},
        outcome::TestOutcome,
    },
    trial::{Purpose, TrialRecord, TrialSpec},
};

#[derive(Debug)]
pub(super) struct Steps {
    size: Frames,
    duration_s: f64,
    /// The intended load wanted now; `None` when the maximum offered load has been tried.
    iload: Option<Fps>,
    limited: bool,
    found: ForwardingRate,
}

impl Steps {
    pub(super) fn new(plan: &ForwardingRatePlan, setting: &Setting) -> Result<Self, String> {
        let throughput_fps = Fps::from_raw(setting.known()?.fps.get().min(setting.max.get()));
        let found = ForwardingRate {
            throughput_fps,
            mol_fps: setting.max,
            step_fps: Fps::from_raw(setting.max.get() * plan.step.get()),
            ..ForwardingRate::default()
        };
        let duration_s = plan.duration.as_secs_f64();
        Ok(Self { size: setting.frame_size, duration_s, iload: Some(throughput_fps), limited: false, found })
    }
}

impl steps::Steps for Steps {
    fn next(&mut self) -> Want {
        match self.iload {
            Some(load) => Want::Trial(TrialSpec::steady(self.size, load, self.duration_s, Purpose::Test)),
            None if self.found.points.is_empty() => {
                Want::end(TestOutcome::TesterLimited, "the tester could not even offer the throughput")
            }
            None if self.limited => Want::end(
                TestOutcome::TesterLimited,
                format!("the tester offers no more than {}: that is the maximum offered load", self.found.mol_fps),
            ),
            None => Want::End(TestOutcome::Done, None),
        }
    }

    fn verdict(&mut self, trial: &TrialRecord) {
        let (iload_fps, fr_fps) = (trial.spec.load_fps, trial.forwarding_rate());
        let point = ForwardingPoint { iload_fps, oload_fps: trial.offered_rate(), fr_fps, trial: trial.number };
        self.found.points.push(point);
        if self.found.mfr_fps.is_none_or(|most| fr_fps > most) {
            (self.found.mfr_fps, self.found.mfr_iload_fps) = (Some(fr_fps), Some(iload_fps));
        }
        let mol = self.found.mol_fps;
        if iload_fps >= mol {
            self.found.frmol_fps = Some(fr_fps);
            self.iload = None;
        } else {
            self.iload = Some(Fps::from_raw((iload_fps.get() + self.found.step_fps.get()).min(mol.get())));
        }
    }

    /// What the tester can do is the maximum offered load: the last that it offered.
    fn beyond(&mut self, _most: Fps) -> bool {
        self.limited = true;
        self.iload = None;
        if let Some(last) = self.found.points.last() {
            (self.found.mol_fps, self.found.frmol_fps) = (last.iload_fps, Some(last.fr_fps));
        }
        true
    }

    fn found(&self) -> Found {
        Found::ForwardingRate(self.found.clone())
    }

    fn expected(&self) -> u32 {
        let f = &self.found;
        ((f.mol_fps.get() - f.throughput_fps.get()) / f.step_fps.get()).ceil() as u32 + 1
    }
}
