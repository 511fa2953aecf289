//! The tests of a frame size beside its search.

use failure::Failure;
use measure::{
    label::{self, LabelFacts},
    plan::Test,
    procedure::{for_test, Ask, Findings, Found, Known, NoProcedure, Procedure, Setting, TestOutcome},
    result::TestResult,
    search::SearchConfig,
    trial::{TrialRecord, TrialSpec},
};
use report::progress::Line;
use units::Fps;

use crate::{
    command::EventCommand,
    controller::{Attempts, Controller},
    testbed::Testbed,
};

/// What the trials of a test have in common.
struct TestTrial {
    most: Option<Fps>,
    test: Test,
    index: usize,
}

impl<T: Testbed> Controller<'_, T> {
    /// Every test of this frame size in turn, by the throughput found or given.
    pub(crate) fn procedures(
        &mut self,
        config: &SearchConfig,
        index: usize,
        most: Option<Fps>,
        known: Option<Known>,
    ) -> Result<(), Failure> {
        let line_rate = self.testbed.facts().link.map(|link| link.line_rate(config.frame_size));
        let known = match self.plan.throughput {
            Some(load) => Some(given(load.resolve(config.frame_size, self.testbed.facts().link)?, config)?),
            None => known,
        };
        let setting = Setting::new(&self.plan, config, line_rate, known);
        let tests: Vec<Test> = self.plan.procedures().collect();
        for test in tests {
            if self.testbed.stopped() {
                break;
            }
            if let Some(load) = self.plan.soak.as_ref().and_then(|t| t.load).filter(|_| test == Test::Soak) {
                at_most("soak.load", load.resolve(config.frame_size, self.testbed.facts().link)?, config)?;
            }
            let findings = match for_test(test, &self.plan, &setting) {
                Err(no) => not_run(no),
                Ok(procedure) => self.procedure(procedure, &setting, &TestTrial { most, test, index })?,
            };
            let result = self.answer(test, &setting, findings);
            self.keep_line(&result);
            let gone = result.outcome == TestOutcome::Interrupted && !self.testbed.stopped();
            let reason = result.reason.clone();
            self.tests.push(result);
            if gone {
                return Err(Failure::failed(reason.unwrap_or_default()));
            }
        }
        Ok(())
    }

    /// Runs a procedure to its end, or until a signal comes or a link goes down.
    fn procedure(
        &mut self,
        mut procedure: Procedure,
        setting: &Setting,
        around: &TestTrial,
    ) -> Result<Findings, Failure> {
        let mut attempts = Attempts::default();
        let mut commands: Vec<(u32, String)> = Vec::new();
        let mut gone = None;
        loop {
            let (spec, at_s) = match procedure.wanted() {
                Ask::Done => break,
                Ask::Run(spec) => (spec, None),
                Ask::Event { spec, at_s } => (spec, Some(at_s)),
            };
            let mut line = self.line(around.test.name(), setting.frame_size, around.index);
            line.load = Some(spec.load_fps);
            line.left_s = Some(f64::from(procedure.trials_left()) * (spec.duration_s + setting.overhead_s));
            let attempt = attempts.next(&spec);
            let mut event = at_s.and_then(|at_s| Some((at_s, self.event()?)));
            if at_s.is_some() {
                self.testbed.cause_event();
            }
            let asked = event.is_some();
            let trial = self.trial_with(around, spec, attempt, &line, event.as_mut());
            let ended = event.and_then(|(_, command)| command.end());
            let Some(trial) = trial? else { break };
            procedure.report(&trial);
            match ended {
                Some((well, how)) => {
                    if !well {
                        procedure.event_failed(trial.number, &how);
                    }
                    commands.push((trial.number, how));
                }
                // The trial ended before its time; an invalid one is repeated anyway.
                None if asked && trial.valid() => procedure.event_failed(trial.number, "not started"),
                None => {}
            }
            // A link that the event took down may come back; one that is down after any other trial is gone.
            if at_s.is_none() && self.testbed.is_last(&trial) {
                gone = self.testbed.gone();
                break;
            }
        }
        let mut findings = procedure.so_far();
        if let Some(reason) = gone {
            (findings.outcome, findings.reason) = (TestOutcome::Interrupted, Some(reason));
        }
        if let Found::Reset(reset) = &mut findings.found {
            for trial in &mut reset.trials {
                trial.command =
                    commands.iter().find(|(number, _)| *number == trial.trial).map(|(_, text)| text.clone());
            }
        }
        Ok(findings)
    }

    fn trial_with(
        &mut self,
        around: &TestTrial,
        spec: TrialSpec,
        attempt: u32,
        line: &Line,
        mut event: Option<&mut (f64, EventCommand)>,
    ) -> Result<Option<TrialRecord>, Failure> {
        let display = self.display;
        let mut line = line.clone();
        let left = line.left_s.unwrap_or(0.0);
        self.measure(spec, attempt, around.most, &mut |elapsed| {
            line.left_s = Some((left - elapsed).max(0.0));
            display.show(&line);
            if let Some((_, command)) = event.as_deref_mut().filter(|(at_s, _)| elapsed >= *at_s) {
                command.start();
            }
        })
    }

    /// The command that causes the event, where the plan gives one and there is a device for it.
    fn event(&self) -> Option<EventCommand> {
        if self.testbed.facts().labels.simulated {
            return None;
        }
        let table = self.plan.reset.as_ref().filter(|t| !t.command.is_empty())?;
        Some(EventCommand::new(&table.command, table.command_timeout))
    }

    fn answer(&self, test: Test, setting: &Setting, findings: Findings) -> TestResult {
        let facts = LabelFacts { repeated: findings.invalid_trials, ..self.testbed.facts().labels };
        let (standard, compliance) = label::procedure(test, &self.plan, setting, &findings.found, &facts);
        TestResult {
            test,
            frame_size_bytes: setting.frame_size,
            outcome: findings.outcome,
            reason: findings.reason,
            standard,
            compliance,
            trials: findings.trials,
            invalid_trials: findings.invalid_trials,
            found: findings.found,
        }
    }

    fn keep_line(&self, result: &TestResult) {
        let (size, trials) = (result.frame_size_bytes, result.trials.len());
        self.display.keep(&format!("{:>7}  {:<15}  {trials} trials", size.with_unit("B"), result.test.name()));
    }
}

/// A load that a plan gives has to be one that can be sent.
fn at_most(key: &str, fps: Fps, config: &SearchConfig) -> Result<(), Failure> {
    if fps.get() <= config.upper.get() * 1.000_001 {
        return Ok(());
    }
    let what = if config.upper_is_tester { "what the tester can do" } else { "the highest load" };
    Err(Failure::usage(format!(
        "{key} = {fps}: must be at most {what}, {} at {}",
        config.upper,
        config.frame_size.with_unit("bytes")
    )))
}

/// The throughput that a plan gives.
fn given(fps: Fps, config: &SearchConfig) -> Result<Known, Failure> {
    at_most("throughput", fps, config)?;
    let at_maximum = fps >= config.upper;
    Ok(Known { fps, at_maximum, tester_limited: at_maximum && config.upper_is_tester, placement: None })
}

fn not_run(no: NoProcedure) -> Findings {
    Findings {
        outcome: no.outcome,
        reason: Some(no.reason),
        trials: Vec::new(),
        invalid_trials: 0,
        found: Found::Nothing,
    }
}
