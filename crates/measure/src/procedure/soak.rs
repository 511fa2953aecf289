//! A load for hours in segments, the loss held against a budget, and how delay and rate drift.

use units::{Fps, Frames, Ratio};

use super::{
    setting::Setting,
    steps::{self, Want},
};
use crate::{
    plan::SoakPlan,
    schema::{
        found::{Found, Segment, Soak, Trend},
        outcome::TestOutcome,
    },
    trial::{Purpose, TrialRecord, TrialSpec},
};

#[derive(Debug)]
pub(super) struct Steps {
    size: Frames,
    segment_s: f64,
    window_s: f64,
    /// `(seconds of sending, value)` of each window.
    delays: Vec<(f64, f64)>,
    rates: Vec<(f64, f64)>,
    found: Soak,
}

impl Steps {
    pub(super) fn new(plan: &SoakPlan, setting: &Setting) -> Result<Self, String> {
        let load_fps = match plan.load {
            Some(load) => {
                load.resolve(setting.frame_size, setting.link()).map_err(|e| format!("soak.load: {}", e.legal))?
            }
            None => Fps::from_raw(setting.known()?.fps.get() * plan.load_percent / 100.0),
        };
        if load_fps.get() > setting.max.get() * 1.000_001 {
            return Err(format!("soak.load of {load_fps} is above the highest load, {}", setting.max));
        }
        let asked_s = plan.duration.as_secs_f64();
        Ok(Self {
            size: setting.frame_size,
            segment_s: plan.segment.as_secs_f64(),
            window_s: plan.window.as_secs_f64(),
            delays: Vec::new(),
            rates: Vec::new(),
            found: Soak { load_fps, asked_s, budget: plan.loss_budget, ..Soak::default() },
        })
    }

    fn add_windows(&mut self, trial: &TrialRecord) {
        let begun = self.found.sent_s;
        let Some(first) = trial.directions.first() else { return };
        for (i, window) in first.windows.iter().enumerate() {
            let all = trial.directions.iter().filter_map(|d| d.windows.get(i));
            let (received, delay) = all.fold((0, 0), |(n, d), w| (n + w.received, d.max(w.p50_ns)));
            let (at, length) = (begun + (window.from_s + window.to_s) / 2.0, window.to_s - window.from_s);
            // The last window of a trial may hold only the frames that were still under way.
            if window.to_s > trial.spec.duration_s * 1.000_001 || length <= 0.0 {
                continue;
            }
            self.rates.push((at, received as f64 / length));
            if received > 0 {
                self.delays.push((at, delay as f64));
            }
        }
    }
}

impl steps::Steps for Steps {
    fn next(&mut self) -> Want {
        let left = self.found.asked_s - self.found.sent_s;
        if left > self.found.asked_s * 1e-6 {
            let spec = TrialSpec::steady(self.size, self.found.load_fps, left.min(self.segment_s), Purpose::Test);
            return Want::Trial(TrialSpec { window_s: Some(self.window_s.min(spec.duration_s)), ..spec });
        }
        let (lost, budget) = (self.found.loss_ratio, self.found.budget);
        if lost <= budget.get() {
            return Want::End(TestOutcome::Done, None);
        }
        let ratio = Ratio::of(self.found.lost, self.found.intended);
        Want::end(
            TestOutcome::Failed,
            format!("{} frames were lost ({ratio}), the budget is {budget}", self.found.lost),
        )
    }

    fn verdict(&mut self, trial: &TrialRecord) {
        let latency = |of: fn(&crate::trial::LatencySummary) -> u64| {
            trial.directions.iter().filter_map(|d| d.latency.as_ref()).map(of).max()
        };
        self.found.segments.push(Segment {
            trial: trial.number,
            from_s: self.found.sent_s,
            lost: trial.lost(),
            forwarding_fps: trial.forwarding_rate(),
            p50_ns: latency(|l| l.p50_ns),
            p99_9_ns: latency(|l| l.p99_9_ns),
            max_ns: latency(|l| l.max_ns),
        });
        self.add_windows(trial);
        let f = &mut self.found;
        f.sent_s += trial.spec.duration_s;
        f.intended += trial.directions.iter().map(|d| d.intended).sum::<u64>();
        f.lost += trial.lost();
        f.loss_ratio = f.lost as f64 / f.intended.max(1) as f64;
        f.delay_ns = Trend::of(&self.delays);
        f.rate_fps = Trend::of(&self.rates);
    }

    /// A device that dies and comes back is what a soak is for.
    fn patience(&self) -> u32 {
        u32::MAX
    }

    fn found(&self) -> Found {
        Found::Soak(self.found.clone())
    }

    fn expected(&self) -> u32 {
        (self.found.asked_s / self.segment_s).ceil() as u32
    }
}
