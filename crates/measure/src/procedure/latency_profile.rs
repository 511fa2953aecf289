//! Latency by load (RFC 2544 §26.2 and beyond): the whole distribution at an almost idle load and at shares of the
//! throughput, and at all of it the delay in the minute of the tagged frame, repeated.

use units::{Fps, Frames};

use super::{
    setting::Setting,
    steps::{self, Want},
};
use crate::{
    plan::LatencyProfilePlan,
    schema::{
        found::{Found, LatencyPoint, LatencyProfile, Spread},
        outcome::TestOutcome,
    },
    trial::{LatencySummary, Purpose, TrialRecord, TrialSpec},
};

/// When the tagged frame is sent (RFC 2544 §26.2), seconds.
const TAG_S: f64 = 60.0;

impl LatencyPoint {
    /// Takes a trial; `averaged` counts those that told their delays.
    fn add(&mut self, trial: &TrialRecord, averaged: &mut u32) {
        self.trials.push(trial.number);
        self.loss_ratio = self.loss_ratio.max(trial.loss_ratio());
        let all: Vec<&LatencySummary> = trial.directions.iter().filter_map(|d| d.latency.as_ref()).collect();
        if all.is_empty() {
            return;
        }
        let most = |old: Option<u64>, of: fn(&LatencySummary) -> u64| old.max(all.iter().map(|l| of(l)).max());
        let mean = all.iter().map(|l| l.avg_ns).sum::<f64>() / all.len() as f64;
        let seen = f64::from(*averaged);
        self.avg_ns = Some(self.avg_ns.map_or(mean, |old| (old * seen + mean) / (seen + 1.0)));
        *averaged += 1;
        let least = all.iter().map(|l| l.min_ns).min();
        self.min_ns = [self.min_ns, least].into_iter().flatten().min();
        self.p50_ns = most(self.p50_ns, |l| l.p50_ns);
        self.p99_ns = most(self.p99_ns, |l| l.p99_ns);
        self.p99_9_ns = most(self.p99_9_ns, |l| l.p99_9_ns);
        self.max_ns = most(self.max_ns, |l| l.max_ns);
    }
}

#[derive(Debug)]
pub(super) struct Steps {
    size: Frames,
    duration_s: f64,
    repetitions: u32,
    /// The load looked at.
    at: usize,
    tagged: Vec<f64>,
    /// Trials there that told their delays.
    averaged: u32,
    /// Loads that the tester could not offer.
    limited: bool,
    found: LatencyProfile,
}

impl Steps {
    pub(super) fn new(plan: &LatencyProfilePlan, setting: &Setting) -> Result<Self, String> {
        let throughput_fps = setting.known()?.fps;
        let share = |percent: f64| LatencyPoint {
            percent: Some(percent),
            load_fps: Fps::from_raw(throughput_fps.get() * percent / 100.0),
            ..LatencyPoint::default()
        };
        let mut points: Vec<LatencyPoint> = plan.loads_percent.iter().copied().map(share).collect();
        let link = setting.link();
        let idle =
            plan.idle.resolve(setting.frame_size, link).map_err(|e| format!("latency_profile.idle: {}", e.legal))?;
        // An idle load above the others would be none.
        let least = points.iter().map(|p| p.load_fps.get()).fold(f64::INFINITY, f64::min);
        if idle.get() < least {
            points.push(LatencyPoint { load_fps: idle, ..LatencyPoint::default() });
        }
        points.sort_by(|a, b| a.load_fps.get().total_cmp(&b.load_fps.get()));
        let duration_s = plan.duration.as_secs_f64();
        let tagged_at_s = if duration_s > TAG_S { TAG_S } else { duration_s / 2.0 };
        Ok(Self {
            size: setting.frame_size,
            duration_s,
            repetitions: plan.repetitions,
            at: 0,
            tagged: Vec::new(),
            averaged: 0,
            limited: false,
            found: LatencyProfile { throughput_fps, points, tagged_at_s, tagged_ns: None },
        })
    }

    fn wanted(&self, point: &LatencyPoint) -> u32 {
        if point.percent == Some(100.0) {
            self.repetitions
        } else {
            1
        }
    }
}

/// The median delay of the window that holds a moment; the largest of all directions.
fn median_at(trial: &TrialRecord, at_s: f64) -> Option<f64> {
    let windows = trial.directions.iter().flat_map(|d| &d.windows);
    windows.filter(|w| w.from_s <= at_s && at_s < w.to_s && w.received > 0).map(|w| w.p50_ns as f64).reduce(f64::max)
}

impl steps::Steps for Steps {
    fn next(&mut self) -> Want {
        let Some(point) = self.found.points.get(self.at) else {
            if self.found.points.is_empty() {
                return Want::end(TestOutcome::TesterLimited, "the tester could offer none of the loads");
            }
            let lossy = self.found.points.iter().filter(|p| p.loss_ratio > 0.0).count();
            let reason = (lossy > 0).then(|| format!("frames were lost at {lossy} of the loads"));
            let outcome = if self.limited { TestOutcome::TesterLimited } else { TestOutcome::Done };
            return Want::End(outcome, reason);
        };
        // Windows of a second, and no fewer than ten.
        let window_s = Some((self.duration_s / 10.0).min(1.0));
        let spec = TrialSpec::steady(self.size, point.load_fps, self.duration_s, Purpose::Test);
        Want::Trial(TrialSpec { window_s, ..spec })
    }

    fn verdict(&mut self, trial: &TrialRecord) {
        let (repetitions, tag) = (self.repetitions, self.found.tagged_at_s);
        let Some(point) = self.found.points.get_mut(self.at) else { return };
        point.add(trial, &mut self.averaged);
        let full = point.percent == Some(100.0);
        if full {
            self.tagged.extend(median_at(trial, tag));
            self.found.tagged_ns = Spread::of(&self.tagged);
        }
        if point.trials.len() as u32 >= if full { repetitions } else { 1 } {
            self.at += 1;
            self.averaged = 0;
        }
    }

    fn beyond(&mut self, _most: Fps) -> bool {
        self.limited = true;
        self.found.points.truncate(self.at + 1);
        // What was measured there before stays.
        if self.found.points.last().is_some_and(|p| p.trials.is_empty()) {
            self.found.points.pop();
        }
        self.at = self.found.points.len();
        true
    }

    fn found(&self) -> Found {
        let mut found = self.found.clone();
        found.points.retain(|p| !p.trials.is_empty());
        Found::LatencyProfile(found)
    }

    fn expected(&self) -> u32 {
        self.found.points.iter().map(|p| self.wanted(p)).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trials_without_delays_do_not_weigh_in_the_mean() {
        let spec = TrialSpec::steady(units::FrameSize::MIN, Fps::from_raw(1e6), 1.0, Purpose::Test);
        let (mut point, mut averaged) = (LatencyPoint::default(), 0);
        for delay in [Some(100.0), None, None, Some(300.0)] {
            let mut trial = crate::sim::SimDut::new(2e6, 1).run(&spec);
            let told = trial.directions[0].latency.take().unwrap();
            trial.directions[0].latency = delay.map(|avg_ns| LatencySummary { avg_ns, ..told });
            point.add(&trial, &mut averaged);
        }
        assert_eq!((point.avg_ns, point.trials.len()), (Some(200.0), 4));
    }
}
