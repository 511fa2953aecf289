//! The tests of RFC 2889 §5.7 and §5.8, between three ports.

use std::time::{Duration, Instant};

use failure::{Failure, Stop};
use measure::{
    addresses::{AddressSearch, Addresses, End, RoundRecord, RoundVerdict},
    attempts::Budget,
    label::{self, LabelFacts},
    plan::{AddressesPlan, Test, ValidPlan},
    procedure::{Found, TestOutcome},
    result::{TestResult, Warning, WarningKind},
    standing,
};
use rig::{Device, MachineOptions};
use units::FrameSize;

use crate::{
    controller::Controller, display::Display, job_answer::JobAnswer, rig_testbed::RigTestbed, testbed::Testbed,
};

/// A device has to forget that much sooner than the plan waits; the built-in bridge does, whose clock has whole seconds.
const SOONER: Duration = Duration::from_secs(2);

/// Runs the plan's address tests, each at the smallest frame size.
pub(crate) fn run(
    plan: ValidPlan,
    device: &Device,
    machine: &MachineOptions,
    quick: bool,
    stop: &Stop,
    display: &dyn Display,
) -> Result<JobAnswer, Failure> {
    match device {
        Device::Ports(_) | Device::Plane { .. } | Device::FlowLog(_) => {}
        Device::Simulated(setup) => {
            return Err(Failure::usage(format!(
                "--dut {setup}: a simulated device learns no addresses: use --dut bridge, or three ports"
            )))
        }
    }
    let table = plan.addresses.clone().unwrap_or_default();
    let size = plan.smallest_size().unwrap_or(FrameSize::MIN);
    let tests = plan.tests.clone();
    let ageing = table.age.saturating_sub(SOONER).max(Duration::from_secs(1));
    let testbed = RigTestbed::with_third_port(plan.clone(), device, machine, Some(ageing), stop)?;
    let mut rounds = Rounds { controller: Controller::new(testbed, plan, display), table, size, capacity: None };
    let mut failure = None;
    for test in tests {
        match rounds.test(test) {
            Ok(result) => rounds.controller.tests.push(result),
            Err(e) => {
                failure = Some(e);
                break;
            }
        }
        if stop.requested() {
            break;
        }
    }
    let controller = rounds.controller;
    if controller.tests.is_empty() {
        return Ok(JobAnswer { result: None, failure });
    }
    let mut warnings = Vec::new();
    if stop.requested() {
        let text = "stopped before the end: what was measured until then is here".to_owned();
        warnings.push(Warning { kind: WarningKind::Stopped, text });
    }
    if quick {
        let text = "quick: few addresses and short waits; to publish use --plan NAME without --quick".to_owned();
        warnings.push(Warning { kind: WarningKind::ShortTrials, text });
    }
    let standing = standing::of_run(&[], &controller.tests, stop.requested());
    Ok(JobAnswer { result: Some(controller.result(Vec::new(), warnings, standing)), failure })
}

struct Rounds<'a> {
    controller: Controller<'a, RigTestbed>,
    table: AddressesPlan,
    size: FrameSize,
    /// What the capacity test found.
    capacity: Option<u64>,
}

impl Rounds<'_> {
    fn test(&mut self, test: Test) -> Result<TestResult, Failure> {
        let (goal, test_fps) = self.table.goal(test, self.size, self.controller.testbed.link(), self.capacity)?;
        let trust = self.controller.plan.trust.clone();
        let residual = trust.residual.max(Duration::from_millis(20));
        let mut search = AddressSearch::new(goal, trust.max_repeats)
            .ok_or_else(|| Failure::usage("addresses: no round is possible: the highest rate is below 1 frame/s"))?;
        let most = self.controller.plan.time_of_a_test();
        let mut budget = Budget::new("test_timeout", most.as_secs_f64(), 0.0);
        let mut late = None;
        while let Some(round) = search.wanted() {
            late = budget.used_up();
            if late.is_some() {
                break;
            }
            let since = Instant::now();
            let n = round.addresses as f64;
            let least = Duration::from_secs_f64((n / round.learning_fps.get() + n / test_fps.get()).min(1e9));
            self.check(round.addresses, least)?;
            self.controller.display.note(&format!(
                "{test}: {} addresses at {}, after {:?} of ageing",
                round.addresses, round.learning_fps, self.table.age
            ));
            // Until every address is forgotten; before the first round too: the device may know them from before.
            self.controller.testbed.pause(self.table.age);
            let begun = Instant::now();
            let RigTestbed { rig, stop, .. } = &mut self.controller.testbed;
            let counted = rig.address_round(&round, test_fps, self.size, residual, stop)?;
            let Some((counts, disturbed)) = counted else { break };
            self.check(round.addresses, begun.elapsed())?;
            search.report(RoundRecord::judge(round, counts, disturbed));
            budget.spend_s(since.elapsed().as_secs_f64());
        }
        let (found, ended) = (search.found(), search.ended());
        if test == Test::AddressCaching && ended.is_some() {
            self.capacity = found.addresses;
        }
        let late = late.map(|why| format!("{why}: {} rounds until then", found.rounds.len()));
        Ok(self.answer(test, found, ended, late))
    }

    /// That a round is over before the device forgets.
    fn check(&self, addresses: u64, takes: Duration) -> Result<(), Failure> {
        if takes + SOONER < self.table.age {
            return Ok(());
        }
        Err(Failure::usage(format!(
            "addresses.age = {:?}: a round of {addresses} addresses takes {takes:.1?}, and must be shorter by {SOONER:?}: the \
             device forgets meanwhile; raise addresses.age and the device's ageing time, or the rates",
            self.table.age
        )))
    }

    /// `late`: why it was ended before its end, when its time was up.
    fn answer(&self, test: Test, found: Addresses, ended: Option<End>, late: Option<String>) -> TestResult {
        let invalid = found.rounds.iter().filter(|r| r.verdict == RoundVerdict::Invalid).count() as u32;
        let facts = LabelFacts { repeated: invalid, ..self.controller.testbed.facts().labels };
        let (standard, compliance) = label::addresses(test, &self.controller.plan, &facts);
        let nothing = found.rounds.iter().all(|r| r.counts.forwarded == 0) && !found.rounds.is_empty();
        let (outcome, reason) = match ended {
            None if late.is_some() => (TestOutcome::Inconclusive, late),
            None => (TestOutcome::Interrupted, None),
            Some(_) if nothing => (
                TestOutcome::NoTraffic,
                Some(
                    "no test frame came back to the learning port: is it a bridge, and are all three ports in it?"
                        .into(),
                ),
            ),
            Some(End::Found) => (TestOutcome::Done, None),
            Some(End::AtMaximum) => (
                TestOutcome::AtMaximum,
                Some("even the most that was tried was held: raise addresses.most or addresses.most_rate".into()),
            ),
            Some(End::BelowMinimum) => (TestOutcome::BelowMinimum, None),
            Some(End::Inconclusive) => (TestOutcome::Inconclusive, found.rounds.last().and_then(|r| r.why.clone())),
        };
        TestResult {
            test,
            frame_size_bytes: self.size.into(),
            outcome,
            reason,
            standard,
            compliance,
            trials: Vec::new(),
            invalid_trials: invalid,
            found: Found::Addresses(found),
        }
    }
}
