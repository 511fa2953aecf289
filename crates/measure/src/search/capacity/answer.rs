//! How a search by slices ends: what it has shown.

use units::{Fps, Ratio};

use super::{CapacitySearch, IN_CALLS_HALF, PASSES};
use crate::{
    schema::{
        answer::{AnswerStanding, AsMeasured, IntervalAnswer},
        outcome::Outcome,
    },
    search::{
        interval::{self, Mean, CONFIDENCE},
        reason::Reason,
        step::Answer,
    },
};

/// Frames a second that rounding of floats may come to.
const ROUNDING: f64 = 1e-3;

impl CapacitySearch {
    /// Ends with what was shown so far.
    pub(super) fn give_up(&mut self, why: impl Into<Reason>) {
        let found = self.interval();
        let outcome = match (found.lower_fps, found.upper_fps) {
            (Some(_), Some(_)) => Outcome::Found,
            _ => Outcome::Inconclusive,
        };
        self.end(outcome, [Some(why.into()), self.precision_missed()]);
    }

    /// What was asked and what was reached, where these differ.
    pub(super) fn precision_missed(&self) -> Option<Reason> {
        let (width, asked) = (self.interval().relative_width()?, self.config.precision);
        let reached = Ratio::new(width).ok()?;
        (width > asked.get()).then_some(Reason::Precision { asked, reached, passes: self.passes })
    }

    pub(super) fn degradation(&self) -> Option<Reason> {
        let (top, mean) = (self.at_top?.value, self.rate()?.mean);
        let (forwards, load) = (Fps::from_raw(top.round()), self.config.upper);
        let just_above = Fps::from_raw(mean.round());
        self.differs_at_top().map(|more| match more < 0.0 {
            true => Reason::Degrades { forwards, load, just_above },
            false => Reason::Slower { forwards, load, just_above },
        })
    }

    pub(super) fn end(&mut self, outcome: Outcome, reasons: [Option<Reason>; 2]) {
        self.pending = None;
        self.done = Some(self.answer(outcome, reasons));
    }

    /// What was shown so far.
    pub(super) fn interval(&self) -> IntervalAnswer {
        let rate = self.rate();
        let best = self.best();
        let (lower, upper) = match (rate, best) {
            // What a device forwards in overload is not its capacity where it degrades.
            (Some(_), Some(best)) if self.degrades() => (Some(best), self.lowest_failed(best)),
            (Some(Mean { mean, half }), Some(best)) if best > mean + half => (Some(best), self.lowest_failed(best)),
            // A load that passes within the interval of the rate does not move it: a rested device takes more for a while.
            (Some(Mean { mean, half }), Some(best)) => {
                // Where the rate is hardly known, the lowest load that passed says more; but not of a device that holds the calls,
                // whose bucket of tokens may have let it through.
                let least = self.passed.iter().map(|p| p.load).fold(best, f64::min);
                let least = if self.is_held() { 0.0 } else { least };
                let lower = best.min((mean - half).max(least));
                // The rate is what many slices say, a failure what one loss says. A load above it that passed says that the device
                // does more at times.
                let most = mean + half;
                let at_times = self.lowest_failed(best).filter(|_| self.passes_above()).unwrap_or(most);
                let failed = self.surely_failed(lower).unwrap_or(f64::INFINITY);
                (Some(lower), Some(failed.min(most.max(at_times))))
            }
            (Some(Mean { mean, half }), None) => (None, Some(mean + half)),
            (None, best) => (best, best.and_then(|best| self.lowest_failed(best))),
        };
        let upper = upper.map(|upper| upper * (1.0 + self.unseen()));
        let point = match (lower, upper, rate) {
            (Some(lower), Some(upper), Some(rate)) => Some(rate.mean.clamp(lower, upper)),
            (Some(lower), Some(upper), None) => Some((lower + upper) / 2.0),
            (lower, None, _) => lower,
            (None, Some(_), rate) => rate.map(|r| r.mean),
        };
        let raw = |fps: f64| Fps::from_raw(fps.round());
        let total = self.clean_s + self.aside_s;
        // Whole frames, outwards; what rounding of floats adds is not a frame.
        let lower_fps = lower.map(|fps| Fps::from_raw((fps + ROUNDING).floor()));
        let upper_fps = upper.map(|fps| Fps::from_raw((fps - ROUNDING).ceil()));
        IntervalAnswer {
            lower_fps,
            upper_fps,
            standing: Some(AnswerStanding::of(lower_fps, upper_fps, self.config.precision.get())),
            point_fps: point.map(raw),
            // Of fewer passes nothing says how much they differ, and with one end there is not an interval to be confident of.
            confidence: (self.passes >= PASSES && lower_fps.is_some() && upper_fps.is_some()).then_some(CONFIDENCE),
            clean_seconds: self.clean_s,
            passes: self.passes as u32,
            aside_share: if total > 0.0 { self.aside_s / total } else { 0.0 },
            as_measured: interval::mean(&self.measured).map(|m| AsMeasured {
                lower_fps: raw(m.mean - m.half),
                upper_fps: raw(m.mean + m.half),
                point_fps: raw(m.mean),
            }),
        }
    }

    pub(super) fn answer(&self, outcome: Outcome, reasons: [Option<Reason>; 2]) -> Answer {
        let mut found = self.interval();
        let in_calls = reasons.iter().flatten().any(|reason| matches!(reason, Reason::InCalls { .. }));
        if let Some(most) = self.offered_most().filter(|_| in_calls) {
            let raw = |fps: f64| Some(Fps::from_raw(fps.round()));
            let half = most.half.max(most.mean * IN_CALLS_HALF);
            // No load failed. What the tester's own part of each call hides is the device's, too.
            let upper = self.config.without_own_calls(most.mean.max(self.most_offered)).max(most.mean + half);
            let (lower_fps, upper_fps) = (raw(most.mean - half), raw(upper));
            let standing = Some(AnswerStanding::of(lower_fps, upper_fps, self.config.precision.get()));
            found = IntervalAnswer { lower_fps, upper_fps, point_fps: raw(most.mean), standing, ..found };
        }
        if outcome == Outcome::TesterLimited {
            // What failed above was not offered in full.
            found = IntervalAnswer { upper_fps: None, point_fps: found.lower_fps, confidence: None, ..found };
            found.standing = Some(AnswerStanding::of(found.lower_fps, None, self.config.precision.get()));
        }
        let holding = self.holding().filter(|_| !in_calls);
        let reasons =
            reasons.into_iter().chain([self.liveness.note(), self.pauses.note(), holding]).flatten().collect();
        let lower = found.lower_fps.map(Fps::get).unwrap_or_default();
        let best = self.passed.iter().rev().find(|pass| in_calls || (pass.load - lower).abs() <= 1.0);
        Answer {
            outcome,
            throughput: found.lower_fps,
            upper_bound: found.upper_fps,
            best_trial: best.map(|pass| pass.trial),
            trials: self.trials.clone(),
            invalid_trials: self.invalid,
            retries: Vec::new(),
            placement: None,
            reasons,
            goals: Vec::new(),
            interval: Some(found),
        }
    }
}
