//! Bursty traffic (RFC 2544 §21): for each burst size the smallest interval between bursts at which nothing is lost.

use units::{Fps, Frames};

use super::{
    setting::Setting,
    steps::{self, Want},
};
use crate::{
    attempts::SILENT_LOADS,
    plan::BurstyPlan,
    result::Outcome,
    schema::{
        found::{BurstPoint, Bursty, Found},
        outcome::TestOutcome,
    },
    search::{self, Bisection, Gave, Strategy},
    shape::LoadShape,
    trial::{Purpose, TrialRecord, TrialSpec},
};

/// The lowest mean load tried, as a share of the rate back to back: an interval of ten thousand bursts.
const FLOOR: f64 = 1e-4;

#[derive(Debug)]
pub(super) struct Steps {
    plan: BurstyPlan,
    size: Frames,
    search: Bisection,
    /// Load that the last trial without a loss counts for: what was offered.
    passed: Option<Fps>,
    found: Bursty,
}

impl Steps {
    pub(super) fn new(plan: BurstyPlan, setting: &Setting) -> Self {
        let found = Bursty { burst_fps: setting.max, bursts: Vec::new() };
        let search = Self::search(&plan, setting.max);
        Self { size: setting.frame_size, search, passed: None, plan, found }
    }

    fn search(plan: &BurstyPlan, max: Fps) -> Bisection {
        Bisection::over(Fps::from_raw(max.get() * FLOOR), max, plan.precision.get())
    }

    /// Frames of the bursts looked at now.
    fn frames(&self) -> Option<u32> {
        self.plan.burst_sizes.get(self.found.bursts.len()).copied()
    }

    fn settle(&mut self, burst_frames: u32, outcome: Outcome) {
        let bounds = self.search.bounds();
        let load_fps = bounds.lower.map(|(load, _)| self.passed.take().unwrap_or(load));
        let max = self.found.burst_fps.get();
        let interval = |load: Fps| f64::from(burst_frames) * (1.0 / load.get() - 1.0 / max);
        let outcome = match outcome {
            Outcome::Found | Outcome::AtMaximum => TestOutcome::Done,
            Outcome::TesterLimited => TestOutcome::TesterLimited,
            Outcome::BelowMinimum => TestOutcome::BelowMinimum,
            _ => TestOutcome::Inconclusive,
        };
        self.found.bursts.push(BurstPoint {
            burst_frames,
            outcome,
            interval_s: load_fps.map(|load| interval(load).max(0.0)),
            load_fps,
            upper_bound_fps: bounds.upper,
        });
        self.passed = None;
        self.search = Self::search(&self.plan, self.found.burst_fps);
    }

    fn end(&self) -> Want {
        let all = &self.found.bursts;
        let sizes = |outcome: TestOutcome| -> Vec<String> {
            all.iter().filter(|b| b.outcome == outcome).map(|b| b.burst_frames.to_string()).collect()
        };
        let lost = sizes(TestOutcome::BelowMinimum);
        let limited = sizes(TestOutcome::TesterLimited);
        if lost.len() == all.len() {
            Want::end(TestOutcome::BelowMinimum, "bursts lost frames at every interval tried")
        } else if !lost.is_empty() {
            Want::end(TestOutcome::Done, format!("bursts of {} lost frames at every interval tried", lost.join(", ")))
        } else if !limited.is_empty() {
            let reason = format!("the tester set the shortest interval of bursts of {}", limited.join(", "));
            Want::end(TestOutcome::TesterLimited, reason)
        } else if all.iter().any(|b| b.outcome == TestOutcome::Inconclusive) {
            Want::end(TestOutcome::Inconclusive, "the tester could not offer some of the bursts at any interval")
        } else {
            Want::End(TestOutcome::Done, None)
        }
    }
}

impl steps::Steps for Steps {
    fn next(&mut self) -> Want {
        while let Some(frames) = self.frames() {
            match self.search.next() {
                search::Want::Load(load, _) | search::Want::Trial(load, _, _) => {
                    let shape = LoadShape::Bursts { frames, burst_fps: self.found.burst_fps };
                    let duration_s = self.plan.duration.as_secs_f64();
                    let spec = TrialSpec::steady(self.size, load, duration_s, Purpose::Test);
                    return Want::Trial(TrialSpec { shape, ..spec });
                }
                search::Want::End(outcome) => self.settle(frames, outcome),
            }
        }
        self.end()
    }

    fn verdict(&mut self, trial: &TrialRecord) {
        let received: u64 = trial.directions.iter().map(|d| d.received).sum();
        let passed = received > 0 && trial.lost() == 0;
        if passed {
            self.passed = Some(trial.offered_load());
        }
        self.search.verdict(trial.spec.load_fps, passed, &Gave::whole(trial));
    }

    fn beyond(&mut self, most: Fps) -> bool {
        self.search.cap(Fps::from_raw(most.get() * (1.0 - self.plan.precision.get())));
        true
    }

    /// The device may lose whole bursts above some load.
    fn patience(&self) -> u32 {
        SILENT_LOADS
    }

    fn found(&self) -> Found {
        Found::Bursty(self.found.clone())
    }

    fn expected(&self) -> u32 {
        self.plan.burst_sizes.len() as u32 * ((1.0 / self.plan.precision.get()).log2().ceil() as u32 + 2)
    }
}
