//! The frame-loss curve (RFC 2544 §26.3): from the highest rate down in equal steps, until two trials in a row lose
//! nothing.

use serde::{Deserialize, Serialize};
use units::{Fps, Frames};

use super::{
    guard::{self, Want},
    Found, Setting, TestOutcome,
};
use crate::{
    plan::FrameLossPlan,
    trial::{Purpose, TrialRecord, TrialSpec},
};

/// The loss at each load of the curve.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct FrameLoss {
    /// The rate that percentages are of: the line rate, or the highest load where that is not known.
    pub theoretical_fps: Fps,
    /// From the highest load down.
    pub points: Vec<LossPoint>,
    /// Loads of the curve that the tester cannot offer.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_offered_fps: Vec<Fps>,
}

/// The loss at one load.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct LossPoint {
    /// Intended load.
    pub load_fps: Fps,
    /// The same in percent of the theoretical rate.
    pub percent: f64,
    /// Frames lost or refused over frames due.
    pub loss_ratio: f64,
    /// Frames/s that came back.
    pub forwarding_fps: Fps,
    /// Number of the trial.
    pub trial: u32,
}

#[derive(Debug)]
pub(super) struct Steps {
    size: Frames,
    step: f64,
    duration_s: f64,
    max: Fps,
    /// Steps below the theoretical rate.
    at: u32,
    lossless_run: u32,
    found: FrameLoss,
}

impl Steps {
    pub(super) fn new(plan: FrameLossPlan, setting: &Setting) -> Self {
        let theoretical_fps = setting.line_rate.unwrap_or(setting.max);
        Self {
            size: setting.frame_size,
            step: plan.step.get(),
            duration_s: plan.duration.as_secs_f64(),
            max: setting.max,
            at: 0,
            lossless_run: 0,
            found: FrameLoss { theoretical_fps, ..FrameLoss::default() },
        }
    }

    /// Share of the theoretical rate so many steps below it; `None` when none is left.
    fn share(&self, at: u32) -> Option<f64> {
        let share = 1.0 - f64::from(at) * self.step;
        (share > self.step * 1e-6).then_some(share)
    }

    fn load(&self, share: f64) -> Fps {
        Fps::from_raw(self.found.theoretical_fps.get() * share)
    }

    fn end(&self) -> Want {
        let points = &self.found.points;
        if points.is_empty() {
            return Want::end(TestOutcome::TesterLimited, "the tester could offer none of the loads");
        }
        if points.iter().all(|p| p.forwarding_fps <= Fps::ZERO) {
            return Want::end(TestOutcome::NoTraffic, "nothing came back at any load");
        }
        if self.lossless_run < 2 && points.iter().all(|p| p.loss_ratio > 0.0) {
            return Want::End(TestOutcome::Done, Some("frames were lost at every load".to_owned()));
        }
        let reason = (self.lossless_run < 2).then(|| "no two trials in a row without loss".to_owned());
        Want::End(TestOutcome::Done, reason)
    }
}

impl guard::Steps for Steps {
    fn next(&mut self) -> Want {
        while let Some(share) = self.share(self.at).filter(|_| self.lossless_run < 2) {
            let load = self.load(share);
            // A rounding above the highest load is none.
            if load.get() <= self.max.get() * 1.000_001 {
                return Want::Trial(TrialSpec::steady(self.size, load, self.duration_s, Purpose::Test));
            }
            self.found.not_offered_fps.push(load);
            self.at += 1;
        }
        self.end()
    }

    fn verdict(&mut self, trial: &TrialRecord) {
        let load_fps = trial.spec.load_fps;
        self.found.points.push(LossPoint {
            load_fps,
            percent: load_fps.get() / self.found.theoretical_fps.get() * 100.0,
            loss_ratio: trial.loss_ratio(),
            forwarding_fps: trial.forwarding_rate(),
            trial: trial.number,
        });
        self.lossless_run = if trial.lost() == 0 { self.lossless_run + 1 } else { 0 };
        self.at += 1;
    }

    fn beyond(&mut self, _most: Fps) -> bool {
        if let Some(share) = self.share(self.at) {
            self.found.not_offered_fps.push(self.load(share));
        }
        self.at += 1;
        true
    }

    /// A device may forward nothing under overload and something below: every load is tried.
    fn patience(&self) -> u32 {
        u32::MAX
    }

    fn found(&self) -> Found {
        Found::FrameLoss(self.found.clone())
    }

    fn expected(&self) -> u32 {
        (1.0 / self.step).round() as u32
    }
}
