//! Reset (RFC 2544 §26.6, RFC 6201): an event is caused while frames flow at the throughput of the smallest frames, and
//! the reset time told from the frames lost and from the gap in their arrival.

use units::Frames;

use super::{
    setting::Setting,
    steps::{self, Want},
};
use crate::{
    plan::ResetPlan,
    schema::{
        found::{Found, Reset, ResetTrial, Spread},
        outcome::TestOutcome,
    },
    trial::{Purpose, TrialRecord, TrialSpec},
};

#[derive(Debug)]
pub(super) struct Steps {
    spec: TrialSpec,
    repetitions: u32,
    found: Reset,
}

impl Steps {
    pub(super) fn new(plan: ResetPlan, setting: &Setting) -> Result<Self, String> {
        let load_fps = setting.known()?.fps;
        let size: Frames = setting.frame_size;
        let spec = TrialSpec::steady(size, load_fps, plan.duration.as_secs_f64(), Purpose::Test);
        let found = Reset { event: plan.event, at_s: plan.at.as_secs_f64(), load_fps, ..Reset::default() };
        Ok(Self { spec, repetitions: plan.repetitions, found })
    }
}

impl steps::Steps for Steps {
    fn next(&mut self) -> Want {
        let trials = &self.found.trials;
        if (trials.len() as u32) < self.repetitions {
            return Want::Event(self.spec, self.found.at_s);
        }
        let gone = trials.iter().filter(|t| !t.recovered).count();
        if gone > 0 {
            let left = self.spec.duration_s - self.found.at_s;
            let reason = format!(
                "in {gone} of {} trials nothing came back in the {left} s after the event: give reset.duration more",
                trials.len()
            );
            Want::end(TestOutcome::Failed, reason)
        } else if trials.iter().all(|t| t.lost == 0) {
            Want::end(TestOutcome::Done, "no frame was lost: the event did not stop the device from forwarding")
        } else {
            Want::End(TestOutcome::Done, None)
        }
    }

    fn verdict(&mut self, trial: &TrialRecord) {
        // RFC 6201, 1.3: lost frames over the offered rate. What a dead peer's ring refused is lost as well.
        let lost_time = |d: &crate::trial::DirectionCounts| d.loss_ratio() * trial.real_duration_s;
        let outages: Vec<_> = trial.directions.iter().filter_map(|d| d.outage).collect();
        // Frames that were lost at the very end are an outage that nobody saw the end of.
        let recovered = trial.directions.iter().all(|d| d.received > 0 && d.outage.is_none_or(|o| o.to_s.is_some()));
        self.found.trials.push(ResetTrial {
            trial: trial.number,
            lost: trial.lost(),
            lost_in_outage: outages.iter().map(|o| o.lost).sum(),
            by_loss_s: trial.directions.iter().map(lost_time).fold(0.0, f64::max),
            by_timestamps_s: outages.iter().filter_map(|o| Some(o.to_s? - o.from_s)).reduce(f64::max),
            recovered,
            command: None,
        });
        let seen = self.found.trials.iter().filter(|t| t.recovered);
        let by_loss: Vec<f64> = seen.clone().map(|t| t.by_loss_s).collect();
        let by_timestamps: Vec<f64> = seen.filter_map(|t| t.by_timestamps_s).collect();
        self.found.by_loss_s = Spread::of(&by_loss);
        self.found.by_timestamps_s = Spread::of(&by_timestamps);
    }

    fn patience(&self) -> u32 {
        1
    }

    fn found(&self) -> Found {
        Found::Reset(self.found.clone())
    }

    fn expected(&self) -> u32 {
        self.repetitions
    }
}
