//! Whole runs of one plan, one after the other, each in a process of its own, and how far they agree.

use std::time::{Instant, SystemTime};

use failure::{Exit, Failure, Stop};
use measure::{
    attempts::Streak,
    plan::{Test, ValidPlan},
    repeat::{self, RepeatResult, REPEAT_SCHEMA},
    result::RunResult,
    standing,
};
use rig::Device;

use crate::{job::Job, process::Launcher, suite::worst_exit, sweep::standing_of};

/// How many runs may be asked for.
const RUNS: std::ops::RangeInclusive<u32> = 2..=1000;
/// Runs that keep their trials: a thousand with all of theirs would not fit in memory.
const WITH_TRIALS: usize = 100;
/// So many runs without a result in a row end all: the next would have none either.
const FAILURES: u32 = 3;

/// Shows the runs as they are made.
pub trait RepeatView {
    /// Run `number` of `of`, counted from 1, begins.
    fn begins(&mut self, number: u32, of: u32);
    /// It has a result.
    fn measured(&mut self, number: u32, of: u32, result: &RunResult);
    /// It was not measured to its end.
    fn failed(&mut self, failure: &Failure);
}

/// What came of it.
pub struct Repeated {
    /// The worst exit code of the runs.
    pub exit: Exit,
    /// The runs made; `None` when none has a result.
    pub result: Option<RepeatResult>,
}

/// How many runs these are. Refuses another number of runs, and a plan that cannot be repeated.
///
/// # Errors
///
/// (usage) with what is legal.
pub fn check(plan: &ValidPlan, runs: i64) -> Result<u32, Failure> {
    let Some(number) = u32::try_from(runs).ok().filter(|number| RUNS.contains(number)) else {
        let (least, most) = (RUNS.start(), RUNS.end());
        return Err(Failure::usage(format!("--repeat {runs}: must be {least} to {most} runs")));
    };
    if !plan.sweep.is_empty() {
        return Err(Failure::usage(
            "--repeat: a sweep is not repeated: leave out --sweep, or repeat one of its points (--flows, --frame-sizes)",
        ));
    }
    if !plan.runs(Test::Throughput) {
        return Err(Failure::usage(format!(
            "--repeat: plan {}: has no search for the throughput, whose figures are compared: add --tests throughput",
            plan.name
        )));
    }
    Ok(number)
}

/// Makes the runs. A signal ends the present one, and keeps what was measured.
///
/// # Errors
///
/// As [`check`].
pub fn run(
    (plan, device): (&ValidPlan, &Device),
    job: &Job,
    runs: i64,
    launcher: &Launcher,
    stop: &Stop,
    view: &mut dyn RepeatView,
) -> Result<Repeated, Failure> {
    let runs = check(plan, runs)?;
    let begun = (Instant::now(), SystemTime::now());
    let (mut exit, mut made, mut failures) = (Exit::Passed, Vec::new(), Streak::new(FAILURES));
    for number in 1..=runs {
        view.begins(number, runs);
        let answer = launcher.run(&numbered(job, device, number), stop);
        exit = worst_exit(exit, answer.exit());
        let hopeless = failures.see(answer.result.is_none());
        if let Some(result) = answer.result {
            view.measured(number, runs, &result);
            let trials = if made.len() < WITH_TRIALS { result.trials } else { Vec::new() };
            let timeline = result.timeline.filter(|_| made.is_empty());
            made.push(RunResult { trials, timeline, ..result });
        }
        if let Some(failure) = answer.failure {
            view.failed(&failure);
        }
        if stop.requested() {
            exit = Exit::Stopped;
        }
        if matches!(exit, Exit::Stopped | Exit::Usage | Exit::Machine) || hopeless {
            // What is wrong with the command or the machine is wrong for the next run, too.
            break;
        }
    }
    let result = RepeatResult {
        schema: REPEAT_SCHEMA.to_owned(),
        linerate_version: env!("CARGO_PKG_VERSION").to_owned(),
        plan_name: plan.name.clone(),
        started_at: humantime::format_rfc3339_seconds(begun.1).to_string(),
        elapsed_s: begun.0.elapsed().as_secs_f64(),
        effective_plan: plan.to_json(),
        planned: runs as usize,
        sizes: repeat::sizes(&made),
        standing: standing_of(exit, standing::of_several(made.iter().map(|run| run.standing))),
        runs: made,
    };
    Ok(Repeated { exit, result: Some(result).filter(|r| !r.runs.is_empty()) })
}

/// The job of one run.
fn numbered(job: &Job, device: &Device, number: u32) -> Job {
    let mut job = job.clone();
    if let Some(dut) = device.in_run(number) {
        job.device.dut = Some(dut);
    }
    job
}

#[cfg(test)]
mod tests {
    use measure::plan::Plan;

    use super::*;
    use crate::process::tests::{job, launcher};

    struct NoView;

    impl RepeatView for NoView {
        fn begins(&mut self, _: u32, _: u32) {}
        fn measured(&mut self, _: u32, _: u32, _: &RunResult) {}
        fn failed(&mut self, _: &Failure) {}
    }

    fn plan(toml: &str) -> ValidPlan {
        Plan::from_toml(toml).unwrap().validate().unwrap()
    }

    #[test]
    fn runs_without_a_result_leave_none() {
        let job = job();
        let (plan, device) = job.check().unwrap();
        for (stopped, exit) in [(false, Exit::Failed), (true, Exit::Stopped)] {
            let (stop, launcher) = (Stop::simulated(stopped), launcher("/bin/false"));
            let repeated = run((&plan, &device), &job, 1000, &launcher, &stop, &mut NoView).unwrap();
            assert!(repeated.exit == exit && repeated.result.is_none(), "{:?}", repeated.exit);
        }
    }

    #[test]
    fn each_run_of_a_simulated_device_has_a_seed() {
        let job = job();
        let (_, device) = job.check().unwrap();
        let seed = |number| {
            let job = numbered(&job, &device, number);
            let Ok((_, Device::Simulated(setup))) = job.check() else { unreachable!("a simulated device stays one") };
            setup.seed
        };
        assert_eq!((seed(1), seed(3)), (1, 3));
    }

    #[test]
    fn what_cannot_be_repeated_is_refused() {
        let refused = [
            ("", 1),
            ("", 1001),
            ("", 0),
            ("[sweep]\nflows = [1, 2]", 3),
            ("throughput = '1Mpps'\ntests = ['frame-loss']", 3),
        ]
        .map(|(toml, runs)| check(&plan(toml), runs).unwrap_err());
        assert!(refused.iter().all(|e| e.exit == Exit::Usage && !e.text.contains('\n')), "{refused:?}");
        insta::assert_snapshot!(refused.map(|e| e.text).join("\n"), @r"
        --repeat 1: must be 2 to 1000 runs
        --repeat 1001: must be 2 to 1000 runs
        --repeat 0: must be 2 to 1000 runs
        --repeat: a sweep is not repeated: leave out --sweep, or repeat one of its points (--flows, --frame-sizes)
        --repeat: plan rfc2544: has no search for the throughput, whose figures are compared: add --tests throughput
        ");
        assert_eq!(check(&plan(""), 2), Ok(2));
    }
}
