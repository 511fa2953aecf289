//! The latency trial at the throughput found.

use failure::Failure;
use measure::{
    attempts::{Budget, Confirmation, GivenUp, Lowering, Ruling, Said, STEPS_DOWN},
    plan::Method,
    result::Outcome,
    search::Answer,
    trial::{Purpose, TrialRecord, TrialSpec},
};
use units::Fps;

use crate::{controller::Controller, testbed::Testbed, throughput::SearchPlace};

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
        let max_repeats = plan.trust.max_repeats;
        let waits_s = (plan.trust.residual + plan.trust.settle).as_secs_f64();
        let mut budget = Budget::new("test_timeout", plan.time_of_a_test().as_secs_f64(), waits_s);
        let mut lowering = Lowering::new(found);
        while let Some(load) = lowering.load() {
            let spec = TrialSpec::steady(at.size, load, duration_s, Purpose::AtThroughput);
            let by_slices = self.by_slices();
            let spec = TrialSpec { passing_loss: (!goals).then_some(tolerated), by_slices, ..spec };
            let tester_limited = answer.outcome == Outcome::TesterLimited;
            let mut attempts = Confirmation::new(max_repeats, answer.placement, tester_limited);
            // Of trials that say nothing for or against the load the one that lost least.
            let mut kept: Option<TrialRecord> = None;
            let valid = loop {
                if let Some(why) = budget.used_up() {
                    notes.push(format!("no latency: {why}"));
                    if lowering.is_lowered() && !goals && answer.outcome != Outcome::TesterLimited {
                        // A trial lost frames at what the search found, and none has passed below it.
                        answer.outcome = Outcome::Inconclusive;
                        answer.lower(None, precision);
                    }
                    return Ok(None);
                }
                let mut line = self.line("latency", at.size, at.index);
                line.load = Some(load);
                let attempt = attempts.attempt();
                let Some(trial) = self.one(spec, attempt, most, line, Some(0.0))? else { return Ok(None) };
                budget.spend(&trial);
                if self.testbed.is_last(&trial) {
                    // The answer of the search stands. This trial does not describe the device: a link or a part was down.
                    answer.outcome = Outcome::Interrupted;
                    return Ok(None);
                }
                match attempts.rule(&trial) {
                    Ruling::Counts => match Said::of(&trial, by_slices) {
                        Said::Lost(_) => break Some(trial),
                        said => {
                            let again = attempts.again();
                            if kept.as_ref().is_none_or(|kept| trial.loss_ratio() < kept.loss_ratio()) {
                                kept = Some(trial);
                            }
                            match again {
                                true => {}
                                // The tester is the limit, and not at this load for so long.
                                false if tester_limited && said == Said::Short => break None,
                                false => break kept,
                            }
                        }
                    },
                    Ruling::Repeat => {}
                    Ruling::BeyondTester { .. } => break None,
                    Ruling::GiveUp(why) => {
                        if matches!(why, GivenUp::GoneAfterSearch { .. }) {
                            answer.outcome = Outcome::Inconclusive;
                        }
                        notes.push(why.to_string());
                        return Ok(None);
                    }
                }
            };
            let Some(trial) = valid else {
                if goals {
                    notes.push(GivenUp::Unconfirmed { trials: attempts.attempt() - 1, duration_s }.to_string());
                    return Ok(None);
                }
                // "At least" less than was claimed: the tester holds it for a moment, and not for this long.
                lowering.after_shortfall();
                continue;
            };
            let loss = match Said::of(&trial, by_slices) {
                Said::Lost(loss) => loss,
                // It says nothing against the load. Its delays are what they are.
                Said::Short | Said::Nothing => {
                    notes.push(format!(
                        "the delays hold absences: too little of {} trials at {load} was offered while nobody was away",
                        attempts.attempt() - 1
                    ));
                    0.0
                }
            };
            if goals || loss <= tolerated.get() {
                if lowering.is_lowered() && answer.outcome == Outcome::TesterLimited {
                    notes.push(format!(
                        "lowered from {found}: the tester does not offer that for {duration_s} s without a break"
                    ));
                } else if lowering.is_lowered() {
                    notes.push(format!(
                        "lowered from {found}: trials of {duration_s} s, longer than the search's, lost frames above"
                    ));
                }
                if lowering.is_lowered() {
                    answer.lower(Some(load), precision);
                }
                return Ok(Some(trial));
            }
            answer.upper_bound = Some(load);
            if answer.outcome != Outcome::Found {
                answer.outcome = Outcome::Found;
            }
            lowering.after_loss(precision);
        }
        if answer.outcome == Outcome::TesterLimited {
            notes.push(format!("no latency: the tester offers neither {found} nor half of it for {duration_s} s"));
            return Ok(None);
        }
        notes.push(format!(
            "trials of {duration_s} s lost frames at {found} and at {STEPS_DOWN} loads below it, where shorter ones \
             of the search did not"
        ));
        answer.outcome = Outcome::Inconclusive;
        answer.lower(None, precision);
        Ok(None)
    }
}
