//! The latency trial at the throughput found.

use failure::Failure;
use measure::{
    plan::Method,
    result::Outcome,
    search::Answer,
    trial::{Purpose, TrialRecord, TrialSpec},
    validity::beyond_tester,
};
use units::Fps;

use crate::{
    controller::Controller,
    testbed::{links_down, Testbed},
    throughput::SearchPlace,
};

/// Loads below the throughput found that the longer latency trial may fall back to, each a precision lower.
const MAX_STEPS_DOWN: u32 = 8;
/// A throughput that only the tester limits is lowered by this when so many latency trials fell short of it.
const TESTER_STEP: f64 = 0.9;
const MAX_SHORT: u32 = 6;
/// A trial of an answer in another placement, or none, is tried again this often.
const PLACEMENT_TRIES: u32 = 20;
/// Trials in which nothing came back say that the device is gone, not what it forwards: so many end it.
const MAX_SILENT: u32 = 5;

impl<T: Testbed> Controller<'_, T> {
    /// The latency trial at the throughput, in its placement. A throughput that does not stand for the longer trial
    /// is lowered by the precision and tried again, and the notes say so.
    pub(crate) fn confirm(
        &mut self,
        answer: &mut Answer,
        at: &SearchPlace,
        most: Option<Fps>,
        notes: &mut Vec<String>,
    ) -> Result<Option<TrialRecord>, Failure> {
        let Some(found) = answer.throughput else { return Ok(None) };
        let plan = self.plan.clone();
        // A goal's lower bound may lose frames in some of its trials: one more says nothing against it.
        let goals = plan.search.method == Method::Mlrsearch;
        let (tolerated, precision) = (plan.search.tolerated_loss, plan.search.precision.get());
        let duration_s = plan.latency.duration.as_secs_f64();
        let tries = plan.trust.max_repeats.max(PLACEMENT_TRIES);
        let waits_s = (plan.trust.residual + plan.trust.settle).as_secs_f64();
        let (most_s, mut spent_s) = (plan.time_of_a_test().as_secs_f64(), 0.0);
        let mut load = found;
        for step in 0..=MAX_STEPS_DOWN {
            let spec = TrialSpec::steady(at.size, load, duration_s, Purpose::AtThroughput);
            let spec = TrialSpec { passing_loss: (!goals).then_some(tolerated), ..spec };
            let (mut valid, mut short, mut silent) = (None, 0, 0);
            for attempt in 1..=tries {
                if spent_s >= most_s {
                    notes.push(format!("no latency: not measured within test_timeout = {most_s} s"));
                    if step > 0 && !goals && answer.outcome != Outcome::TesterLimited {
                        // A trial lost frames at what the search found, and none has passed below it.
                        (answer.outcome, answer.throughput) = (Outcome::Inconclusive, None);
                    }
                    return Ok(None);
                }
                let mut line = self.line("latency", at.size, at.index);
                line.load = Some(load);
                let Some(trial) = self.one(spec, attempt, most, line, Some(0.0))? else { return Ok(None) };
                spent_s += trial.real_duration_s.max(0.0) + waits_s;
                if trial.loss_ratio() > 0.0 && !links_down(&self.testbed).is_empty() {
                    // What the search found stands; this trial says nothing of it.
                    answer.outcome = Outcome::Interrupted;
                    return Ok(None);
                }
                // With one core there is nothing to probe, and one place to be.
                let seen = &trial.interference;
                let unprobed = seen.core_to_core_before_ns.is_none() && seen.core_to_core_after_ns.is_none();
                let here = unprobed || answer.placement.is_none() || seen.placement == answer.placement;
                if trial.valid() && here {
                    if trial.directions.iter().any(|d| d.received > 0) {
                        valid = Some(trial);
                        break;
                    }
                    silent += 1;
                    if silent >= MAX_SILENT {
                        notes.push(format!(
                            "the device fell silent after the search: nothing came back in {silent} trials of \
                             {duration_s} s, the last number {}; see whether it still runs",
                            trial.number
                        ));
                        answer.outcome = Outcome::Inconclusive;
                        return Ok(None);
                    }
                }
                short += u32::from(beyond_tester(&trial));
                if answer.outcome == Outcome::TesterLimited && short >= MAX_SHORT {
                    break;
                }
            }
            if !goals && valid.is_none() && short >= MAX_SHORT && answer.outcome == Outcome::TesterLimited {
                // "At least" less than was claimed: the tester holds it for a moment, and not for this long.
                load = Fps::from_raw(load.get() * TESTER_STEP);
                continue;
            }
            let Some(trial) = valid else {
                notes.push(format!(
                    "no latency: {tries} trials of {duration_s} s at the throughput were all invalid or in another \
                     placement of the cores"
                ));
                return Ok(None);
            };
            if goals || trial.loss_ratio() <= tolerated.get() {
                if step > 0 && answer.outcome == Outcome::TesterLimited {
                    notes.push(format!(
                        "lowered from {found}: the tester does not offer that for {duration_s} s without a break"
                    ));
                } else if step > 0 {
                    notes.push(format!(
                        "lowered from {found}: trials of {duration_s} s, longer than the search's, lost frames above"
                    ));
                }
                answer.throughput = Some(load);
                return Ok(Some(trial));
            }
            answer.upper_bound = Some(load);
            if answer.outcome != Outcome::Found {
                answer.outcome = Outcome::Found;
            }
            load = Fps::from_raw(load.get() * (1.0 - precision));
        }
        if answer.outcome == Outcome::TesterLimited {
            notes.push(format!("no latency: the tester offers neither {found} nor half of it for {duration_s} s"));
            return Ok(None);
        }
        notes.push(format!(
            "trials of {duration_s} s lost frames at {found} and at {MAX_STEPS_DOWN} loads below it, where shorter ones \
             of the search did not"
        ));
        answer.outcome = Outcome::Inconclusive;
        answer.throughput = None;
        Ok(None)
    }
}
