//! The frame-loss curve (RFC 2544 §26.3): from the highest rate down in equal steps, until two trials in a row lose
//! nothing.

use units::{Fps, Frames};

use super::{
    setting::Setting,
    steps::{self, Want},
};
use crate::{
    attempts::{Streak, LOADS_IN_A_ROW},
    plan::FrameLossPlan,
    schema::{
        found::{Found, FrameLoss, LossPoint, NoPoint},
        outcome::TestOutcome,
    },
    trial::{Purpose, TrialRecord, TrialSpec},
};

#[derive(Debug)]
pub(super) struct Steps {
    size: Frames,
    step: f64,
    duration_s: f64,
    max: Fps,
    /// Steps below the theoretical rate.
    at: u32,
    lossless_run: u32,
    /// Loads in a row without a valid trial.
    without: Streak,
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
            without: Streak::new(LOADS_IN_A_ROW),
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

    fn percent(&self, load: Fps) -> f64 {
        load.get() / self.found.theoretical_fps.get() * 100.0
    }

    /// The loads without a figure, in words.
    fn unsettled(&self) -> Option<String> {
        let missing = &self.found.without_figure;
        let last = missing.last()?;
        let loads: Vec<String> = missing.iter().map(|p| format!("{:.2}", p.percent)).collect();
        let rest = match (self.without.is_enough(), self.found.points.len()) {
            (true, _) => format!("; loads below were not tried after {LOADS_IN_A_ROW} in a row"),
            (false, 0) => String::new(),
            (false, n) => format!("; {n} other loads have one"),
        };
        Some(format!("no figure at {} % of the highest rate: {}{rest}", loads.join(", "), last.reason))
    }

    /// The loads without received frames although frames came back at a higher load: the device was away. One sentence.
    fn silent(&self) -> Option<String> {
        let heard = self.found.points.iter().skip_while(|p| p.forwarding_fps <= Fps::ZERO);
        let silent = heard.filter(|p| p.forwarding_fps <= Fps::ZERO).map(|p| format!("{:.2}", p.percent));
        let loads: Vec<String> = silent.collect();
        (!loads.is_empty()).then(|| {
            format!(
                "nothing came back at {} % of the highest rate, but frames came back at higher rates: the device was away, \
                 and the loss there does not describe the device at that load",
                loads.join(", ")
            )
        })
    }

    fn end(&self) -> Want {
        if let Some(reason) = self.unsettled() {
            return Want::end(TestOutcome::Inconclusive, reason);
        }
        let points = &self.found.points;
        if points.is_empty() {
            return Want::end(TestOutcome::TesterLimited, "the tester could offer none of the loads");
        }
        if points.iter().all(|p| p.forwarding_fps <= Fps::ZERO) {
            return Want::end(TestOutcome::NoTraffic, "nothing came back at any load");
        }
        if let Some(reason) = self.silent() {
            return Want::end(TestOutcome::Inconclusive, reason);
        }
        if self.lossless_run < 2 && points.iter().all(|p| p.loss_ratio > 0.0) {
            return Want::End(TestOutcome::Done, Some("frames were lost at every load".to_owned()));
        }
        let reason = (self.lossless_run < 2).then(|| "no two trials in a row without loss".to_owned());
        Want::End(TestOutcome::Done, reason)
    }
}

impl steps::Steps for Steps {
    fn next(&mut self) -> Want {
        let over = self.lossless_run >= 2 || self.without.is_enough();
        while let Some(share) = self.share(self.at).filter(|_| !over) {
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
        let load_fps = trial.offered_load();
        self.found.points.push(LossPoint {
            load_fps,
            percent: self.percent(load_fps),
            loss_ratio: trial.loss_ratio(),
            forwarding_fps: trial.forwarding_rate(),
            trial: trial.number,
        });
        self.lossless_run = if trial.lost() == 0 { self.lossless_run + 1 } else { 0 };
        self.without.see(false);
        self.at += 1;
    }

    /// The other loads have their figures all the same; two without loss have to be next to each other.
    fn without(&mut self, why: &str) -> bool {
        if let Some(load_fps) = self.share(self.at).map(|share| self.load(share)) {
            let (percent, reason) = (self.percent(load_fps), why.to_owned());
            self.found.without_figure.push(NoPoint { load_fps, percent, reason });
        }
        self.lossless_run = 0;
        self.without.see(true);
        self.at += 1;
        true
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
