//! Back-to-back frames (RFC 9004, which updates RFC 2544 §26.4): the longest burst at the minimum gap that loses nothing,
//! by the searches of TST009 over its length, and the buffer time that follows from it.

use units::{Fps, Frames};

use super::{
    setting::{NoProcedure, Setting},
    steps::{self, Want},
};
use crate::{
    bisection::middle,
    plan::BackToBackPlan,
    result::Outcome,
    schema::{
        found::{BackToBack, Found, Spread},
        outcome::TestOutcome,
    },
    search::{self, Gave, LossVerification, Strategy},
    shape::LoadShape,
    trial::{Purpose, TrialRecord, TrialSpec},
};

/// Bursts that take longer to send need a longer idle time behind them, seconds (RFC 9004 §6.2).
const LONG_BURST_S: f64 = 2.0;
/// Longest that a burst is waited for beyond the usual, seconds: twice the longest that RFC 9004 §6.2 asks for.
const LONGEST_DRAIN_S: f64 = 60.0;

impl BackToBack {
    fn sum_up(&mut self) {
        let bursts: Vec<f64> = self.bursts.iter().map(|&b| b as f64).collect();
        self.frames = Spread::of(&bursts);
        let Some(mean) = self.frames.map(|f| f.mean) else { return };
        let (max, throughput) = (self.rate_fps.get(), self.throughput_fps.get());
        let implied = mean / max;
        let corrected = implied - implied * (throughput / max);
        self.implied_buffer_s = Some(implied);
        self.corrected_buffer_s = Some(corrected);
        self.corrected_buffer_frames = Some(corrected * max);
        self.actual_buffer_s = Some(corrected * max / throughput);
    }
}

#[derive(Debug)]
pub(super) struct Steps {
    plan: BackToBackPlan,
    size: Frames,
    /// Over burst lengths: its loads are frames.
    search: LossVerification,
    /// Frames of the burst asked for last.
    asked: u64,
    found: BackToBack,
}

impl Steps {
    pub(super) fn new(plan: BackToBackPlan, setting: &Setting) -> Result<Self, NoProcedure> {
        let throughput_fps = setting.overloadable("RFC 9004 §6.1: ")?;
        let limit_frames = ((setting.max.get() * plan.limit.as_secs_f64()) as u64).max(1);
        let step_frames = u64::from(plan.step).min(limit_frames);
        let found = BackToBack {
            rate_fps: setting.max,
            throughput_fps,
            step_frames,
            limit_frames: limit_frames / step_frames * step_frames,
            ..BackToBack::default()
        };
        Ok(Self { size: setting.frame_size, search: Self::search(&plan, &found), plan, asked: 0, found })
    }

    fn search(plan: &BackToBackPlan, found: &BackToBack) -> LossVerification {
        let count = found.limit_frames / found.step_frames;
        LossVerification::over(found.step_frames as f64, count, plan.retries, plan.retry_max_lost)
    }

    /// Seconds to wait behind a burst beyond the usual, so that the next one finds the buffer empty: as long as the
    /// throughput takes for all of it, less the time in which it comes (RFC 9004 §6.2, the second of three components).
    fn drain_s(&mut self, frames: u64, burst_s: f64) -> f64 {
        let behind = frames as f64 / self.found.throughput_fps.get() - burst_s;
        let needed = if burst_s > LONG_BURST_S { behind.max(burst_s) } else { behind.max(0.0) };
        let drain_s = needed.min(LONGEST_DRAIN_S);
        self.found.drain_cut |= needed > LONGEST_DRAIN_S;
        self.found.longest_drain_s = self.found.longest_drain_s.max(drain_s);
        drain_s
    }

    fn next_burst(&mut self, outcome: Outcome) -> Option<Want> {
        let longest = self.search.best().map_or(0, |load| load.get() as u64);
        self.found.bursts.push(longest);
        self.found.sum_up();
        self.search = Self::search(&self.plan, &self.found);
        let limit_s = self.found.limit_frames as f64 / self.found.rate_fps.get();
        let limit = format!("{} frames ({limit_s:.6} s)", self.found.limit_frames);
        if outcome == Outcome::AtMaximum {
            let reason =
                format!("even the longest burst of {limit} lost nothing: repeat with a higher back_to_back.limit");
            return Some(Want::end(TestOutcome::AtMaximum, reason));
        }
        if outcome == Outcome::TesterLimited {
            let reason = format!(
                "the tester sends bursts of {} frames without a break, and no longer ones",
                self.found.limit_frames
            );
            return Some(Want::end(TestOutcome::TesterLimited, reason));
        }
        if (self.found.bursts.len() as u32) < self.plan.repetitions {
            return None;
        }
        let none = self.found.bursts.iter().filter(|&&b| b == 0).count();
        Some(if self.found.mean_near_limit() {
            let reason =
                format!("near the longest burst of {limit}: repeat with a higher back_to_back.limit (RFC 9004 §6.2)");
            Want::end(TestOutcome::AtMaximum, reason)
        } else if none == self.found.bursts.len() {
            let reason = format!("even bursts of {} frames lost some", self.found.step_frames);
            Want::end(TestOutcome::BelowMinimum, reason)
        } else if none > 0 {
            Want::end(TestOutcome::Done, format!("in {none} searches even the shortest burst lost frames"))
        } else {
            Want::End(TestOutcome::Done, None)
        })
    }
}

impl steps::Steps for Steps {
    fn next(&mut self) -> Want {
        loop {
            match self.search.next() {
                search::Want::Load(length, purpose) | search::Want::Trial(length, _, purpose) => {
                    let (frames, rate) = (length.get().round() as u64, self.found.rate_fps);
                    self.asked = frames;
                    let duration_s = frames as f64 / rate.get();
                    let shape = LoadShape::Burst { frames };
                    let purpose = if purpose == Purpose::Verification { purpose } else { Purpose::Test };
                    let drain_s = self.drain_s(frames, duration_s);
                    let spec = TrialSpec::steady(self.size, rate, duration_s, purpose);
                    return Want::Trial(TrialSpec { shape, drain_s, ..spec });
                }
                search::Want::End(outcome) => {
                    if let Some(end) = self.next_burst(outcome) {
                        return end;
                    }
                }
            }
        }
    }

    fn verdict(&mut self, trial: &TrialRecord) {
        let LoadShape::Burst { frames } = trial.spec.shape else { return };
        let received: u64 = trial.directions.iter().map(|d| d.received).sum();
        self.search.verdict(Fps::from_raw(frames as f64), received > 0 && trial.lost() == 0, &Gave::whole(trial));
    }

    /// A tester that is away for a moment cannot send long bursts, and may send shorter ones.
    fn beyond(&mut self, _most: Fps) -> bool {
        let (step, best) = (self.found.step_frames, self.search.best().map_or(0.0, |b| b.get()));
        // Half way back to the longest that passed.
        let shorter = middle(best, (self.asked as f64).max(best)) as u64 / step * step;
        if shorter == 0 {
            return false;
        }
        self.found.limit_frames = self.found.limit_frames.min(shorter);
        self.search.cap(Fps::from_raw(shorter as f64));
        true
    }

    fn found(&self) -> Found {
        Found::BackToBack(self.found.clone())
    }

    fn expected(&self) -> u32 {
        let steps = (self.found.limit_frames / self.found.step_frames) as f64;
        self.plan.repetitions * (steps.log2().ceil() as u32 + 1)
    }
}
