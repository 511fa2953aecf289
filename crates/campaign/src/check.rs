//! `linerate check`: what this machine can measure, seen in about ten seconds.
//!
//! A quarter of the time the cores are listened to alone, then both cores of the trials at once. The rest is trials over
//! software cables through the built-in device that does nothing: rounds of rising loads, each with trials at all that the
//! tester can send. Rounds are spread over the time, so that what differs between them shows.

use std::{
    collections::BTreeSet,
    time::{Duration, Instant, SystemTime},
};

use failure::{Failure, Stop};
use host::{rt_throttle_share, ProcessTimes, Roots};
use measure::{
    check::{self, CheckResult, CheckTrials, MachineState, OtherThread, CHECK_SCHEMA},
    plan::{Placements, Plan},
    trial::{Purpose, TrialSpec},
};
use rig::{device::DeviceOptions, Device, MachineOptions};
use units::{Fps, FrameSize, Frames};

use crate::{
    display::Display,
    rig_testbed::RigTestbed,
    testbed::{Measurement, Testbed},
};

/// Shares of the time: for cores alone, and for both at once.
const ALONE: f64 = 0.25;
const TOGETHER: f64 = 0.15;
/// Rounds of loads that are to fit in the rest.
const ROUNDS: f64 = 3.0;
/// Trials of a round at full load.
const FULL: usize = 2;
/// Full load, frames/s: above what any core can do, so the pacer always has frames due.
const UNBOUNDED: f64 = 1e9;
/// How far above what came through at full load a load is tried.
const BEYOND: f64 = 1.3;
/// Shortest and longest trial, and what else a trial takes, seconds.
const TRIAL_S: (f64, f64) = (0.02, 0.5);
const OVERHEAD_S: f64 = 0.08;
/// One run of the self-test.
const SELFTEST: Duration = Duration::from_millis(50);
/// Legal durations.
const SHORTEST: Duration = Duration::from_secs(1);
const LONGEST: Duration = Duration::from_secs(600);
/// Loads of a round, frames/s: those that are worth a trial.
const LOADS: [f64; 11] = [1e6, 2e6, 5e6, 10e6, 15e6, 20e6, 25e6, 30e6, 40e6, 50e6, 70e6];
/// Threads of others that are named.
const NAMED: usize = 8;

/// What to check.
#[derive(Debug, Clone)]
pub struct CheckOptions {
    /// CPUs; none: all allowed. The last is the tester's in the trials, the one before it the device's.
    pub cpus: Vec<u32>,
    /// How long.
    pub duration: Duration,
    /// Memory and rings.
    pub machine: MachineOptions,
}

/// Checks the machine. Stopped by a signal, it says what was found so far.
///
/// # Errors
///
/// (usage) for CPUs that this process may not use, and for a duration that is not 1 s to 10 min; (machine) for what DPDK
/// lacks.
pub fn run(options: &CheckOptions, stop: &Stop, display: &dyn Display) -> Result<CheckResult, Failure> {
    if !(SHORTEST..=LONGEST).contains(&options.duration) {
        return Err(Failure::usage(format!("--duration {:?}: must be 1s to 10min", options.duration)));
    }
    let started_at = humantime::format_rfc3339_seconds(SystemTime::now()).to_string();
    let begun = Instant::now();
    let cpus = cpus(&rig::facts::read().cpus_allowed, &options.cpus)?;
    let roots = Roots::default();
    let others_before = ProcessTimes::read(&roots, std::process::id());
    let mut check = Check::new(&cpus, options, stop)?;
    let mut result = CheckResult {
        schema: CHECK_SCHEMA.to_owned(),
        linerate_version: env!("CARGO_PKG_VERSION").to_owned(),
        started_at,
        duration_s: options.duration.as_secs_f64(),
        host: check.testbed.facts().host,
        cpus: cpus.clone(),
        ..CheckResult::default()
    };
    check.cores(&mut result, display)?;
    if cpus.len() > 1 {
        result.trials = check.trials(display)?;
    }
    let seconds = begun.elapsed().as_secs_f64();
    let ran = others_before.until(&ProcessTimes::read(&roots, std::process::id()), &cpus);
    result.state = MachineState {
        hugepages: check.testbed.rig.eal.memory_kind() == dpdk::MemoryKind::Huge,
        real_time: check.testbed.rig.is_real_time(),
        rt_throttle_share: rt_throttle_share(&roots),
        cores_moved: check.testbed.rig.classifier.classes() > 1,
        others: ran
            .into_iter()
            .take(NAMED)
            .map(|r| OtherThread {
                pid: r.pid,
                name: r.name,
                cpu: r.cpu,
                share: (r.seconds / seconds).clamp(0.0, 1.0),
                kernel: r.kernel,
            })
            .collect(),
    };
    result.elapsed_s = begun.elapsed().as_secs_f64();
    check::judge(&mut result, stop.requested());
    Ok(result)
}

/// The CPUs to check, in the order asked for.
fn cpus(allowed: &[u32], asked: &[u32]) -> Result<Vec<u32>, Failure> {
    if asked.is_empty() {
        return Ok(allowed.to_vec());
    }
    let mut seen = BTreeSet::new();
    for cpu in asked {
        if !allowed.contains(cpu) {
            let list = allowed.iter().map(u32::to_string).collect::<Vec<_>>().join(",");
            return Err(Failure::usage(format!("--cpus {cpu}: this process may use CPUs {list}")));
        }
        if !seen.insert(cpu) {
            return Err(Failure::usage(format!("--cpus: CPU {cpu} is named twice: name each CPU once")));
        }
    }
    Ok(asked.to_vec())
}

/// The highest load worth a trial: what the tester did alone, or a little more than what came through at full load. A self-test
/// that was disturbed finds too little.
fn highest(trials: &CheckTrials) -> f64 {
    let came = trials.full_load.iter().map(|full| full.fps.get() * BEYOND);
    came.fold(trials.tester_max_fps.unwrap_or_default().get(), f64::max)
}

/// A rig over software cables, and the time that is left.
struct Check<'a> {
    testbed: RigTestbed,
    frames: Frames,
    cpus: &'a [u32],
    stop: &'a Stop,
    duration: Duration,
    end: Instant,
}

impl<'a> Check<'a> {
    fn new(cpus: &'a [u32], options: &CheckOptions, stop: &'a Stop) -> Result<Self, Failure> {
        let frames = Frames::Size(FrameSize::MIN);
        let mut plan = Plan { frame_sizes: vec![frames], ..Plan::default() }.quick();
        plan.trust.placements = Placements::Separate;
        // With one CPU there is no device: its ports are never used.
        let null = || "null".to_owned();
        let device = match cpus {
            [_] => DeviceOptions { ports: vec![null(), null()], ..DeviceOptions::default() },
            _ => DeviceOptions { dut: Some(null()), ..DeviceOptions::default() },
        };
        let mut machine = options.machine.clone();
        let mut last = cpus.iter().rev().copied();
        (machine.tester_cpu, machine.dut_cpu) = (last.next(), last.next());
        let device = Device::parse(&device, &plan)?;
        let testbed = RigTestbed::new(plan.validate()?, &device, &machine, stop)?;
        let end = Instant::now() + options.duration;
        Ok(Self { testbed, frames, cpus, stop, duration: options.duration, end })
    }

    /// Listens to each core alone, then to both of the trials.
    fn cores(&self, result: &mut CheckResult, display: &dyn Display) -> Result<(), Failure> {
        let each = self.duration.mul_f64(ALONE) / self.cpus.len().max(1) as u32;
        for &cpu in self.cpus {
            if self.stop.requested() {
                return Ok(());
            }
            display.note(&format!("check: polling on CPU {cpu}"));
            result.cores.extend(self.testbed.rig.noise_alone(cpu, each, self.stop)?);
        }
        if self.cpus.len() > 1 && !self.stop.requested() {
            display.note("check: polling on both cores");
            result.together = self.testbed.rig.noise_together(self.duration.mul_f64(TOGETHER), self.stop)?;
        }
        Ok(())
    }

    /// Rounds of trials until the time is up; at least one. `None` when stopped before any.
    fn trials(&mut self, display: &dyn Display) -> Result<Option<CheckTrials>, Failure> {
        if self.stop.requested() {
            return Ok(None);
        }
        let most = self.testbed.prepare(self.frames, SELFTEST)?;
        let mut trials = CheckTrials {
            tester_cpu: self.testbed.rig.cpus.tester,
            device_cpu: self.testbed.rig.cpus.other,
            frame_size_bytes: Some(self.frames),
            tester_max_fps: most,
            ..CheckTrials::default()
        };
        let left = self.end.saturating_duration_since(Instant::now()).as_secs_f64();
        let trial_s = (left / (ROUNDS * (LOADS.len() + FULL) as f64) - OVERHEAD_S).clamp(TRIAL_S.0, TRIAL_S.1);
        let mut round = 0;
        while round == 0 || Instant::now() < self.end {
            for step in (0..FULL).map(|_| None).chain(LOADS.into_iter().map(Some)) {
                if self.stop.requested() || (round > 0 && Instant::now() >= self.end) {
                    return Ok(Some(trials));
                }
                match step {
                    None => {
                        display.note("check: full load");
                        self.trial(Fps::from_raw(UNBOUNDED), trial_s, true, &mut trials)?;
                    }
                    Some(load) if load <= highest(&trials) => {
                        let load = Fps::from_raw(load);
                        display.note(&format!("check: {load}"));
                        self.trial(load, trial_s, false, &mut trials)?;
                    }
                    Some(_) => {}
                }
            }
            round += 1;
        }
        Ok(Some(trials))
    }

    fn trial(&mut self, load: Fps, duration_s: f64, is_full: bool, trials: &mut CheckTrials) -> Result<(), Failure> {
        let spec = TrialSpec { by_slices: true, ..TrialSpec::steady(self.frames, load, duration_s, Purpose::Single) };
        let request = Measurement { spec, attempt: 1, selftest_max: None };
        let Some(record) = self.testbed.measure(&request, &mut |_| ())? else { return Ok(()) };
        if is_full {
            trials.full_load.extend(check::full_load(&self.testbed.timeline, duration_s));
        } else if let Some(evidence) = &record.evidence {
            check::load(&mut trials.loads, load, evidence);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use failure::Exit;

    use super::*;

    #[test]
    fn cpus_are_those_asked_for_or_all() {
        assert_eq!(cpus(&[0, 1, 5], &[]).unwrap(), [0, 1, 5]);
        assert_eq!(cpus(&[0, 1, 5], &[5, 0]).unwrap(), [5, 0]);
        let wrong = [cpus(&[0, 1], &[0, 7]).unwrap_err(), cpus(&[0, 1], &[1, 1]).unwrap_err()];
        assert!(wrong.iter().all(|e| e.exit == Exit::Usage), "{wrong:?}");
        insta::assert_snapshot!(wrong.map(|e| e.text).join("\n"), @r"
        --cpus 7: this process may use CPUs 0,1
        --cpus: CPU 1 is named twice: name each CPU once
        ");
    }
}
