//! A job in a process of its own: DPDK starts once a process.
//!
//! The process is this program, asked by a hidden command to read a job from standard input and to answer on standard output,
//! both in JSON. It is a group of its own, so that Ctrl-C reaches it once, through us.

use std::{
    io::{self, Read, Write},
    os::unix::process::{CommandExt, ExitStatusExt},
    path::PathBuf,
    process::{Child, Command, ExitStatus, Stdio},
    thread,
    time::Duration,
};

use failure::{Failure, Stop};
use rustix::process::{kill_process, set_parent_process_death_signal, Pid, Signal};

use crate::{job::Job, job_answer::JobAnswer};

/// The hidden command that runs one job.
pub const JOB_COMMAND: &str = "run-job";
/// Largest job and answer read.
const MAX_BYTES: u64 = 1 << 30;
/// How often a child is looked at.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// Starts jobs in processes of this program.
#[derive(Debug, Clone)]
pub struct Launcher {
    program: PathBuf,
}

impl Launcher {
    /// Of the program that runs now.
    ///
    /// # Errors
    ///
    /// (failed) when the system does not tell which that is.
    pub fn new() -> Result<Self, Failure> {
        let program = std::env::current_exe().map_err(|e| Failure::failed(format!("this program's own path: {e}")))?;
        Ok(Self { program })
    }

    /// Runs a job to its end; a signal that comes is passed on.
    pub fn run(&self, job: &Job, stop: &Stop) -> JobAnswer {
        self.try_run(job, stop).unwrap_or_else(|e| JobAnswer {
            result: None,
            failure: Some(Failure::failed(format!("a process for the run: {e}"))),
        })
    }

    fn try_run(&self, job: &Job, stop: &Stop) -> io::Result<JobAnswer> {
        let text = serde_json::to_vec(job)?;
        let mut child = Command::new(&self.program)
            .arg(JOB_COMMAND)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .process_group(0)
            .spawn()?;
        let (stdin, stdout) = (child.stdin.take(), child.stdout.take());
        thread::scope(|s| {
            // A child that ends early breaks the pipe: its exit status says more than that.
            s.spawn(move || stdin.map(|mut to| to.write_all(&text)));
            let answer = s.spawn(move || {
                let mut bytes = Vec::new();
                stdout.map(|from| from.take(MAX_BYTES).read_to_end(&mut bytes)).transpose().map(|_| bytes)
            });
            let status = wait(&mut child, stop)?;
            let bytes = answer.join().unwrap_or_else(|_| Err(io::Error::other("its answer could not be read")))?;
            Ok(serde_json::from_slice(&bytes).unwrap_or_else(|_| JobAnswer {
                result: None,
                failure: Some(Failure::failed(format!("the process of the run gave no answer: {}", describe(status)))),
            }))
        })
    }
}

fn describe(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("it ended with exit code {code}"),
        (None, Some(signal)) => format!("it was ended by signal {signal}"),
        (None, None) => "it ended".to_owned(),
    }
}

/// Waits for a process of ours; a signal that comes is passed on once.
fn wait(child: &mut Child, stop: &Stop) -> io::Result<ExitStatus> {
    let mut told = false;
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(status);
        }
        if stop.requested() && !told {
            told = true;
            if let Some(pid) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) {
                // A process that has ended meanwhile is not an error.
                let _ = kill_process(pid, Signal::TERM);
            }
        }
        thread::sleep(POLL_INTERVAL);
    }
}

/// Reads the job of this process. The process then ends with the one that started it, whichever way that ends.
///
/// # Errors
///
/// (usage) for anything else than a job.
pub fn read_job(from: &mut impl Read) -> Result<Job, Failure> {
    let _ = set_parent_process_death_signal(Some(Signal::TERM));
    let mut bytes = Vec::new();
    let read = from.take(MAX_BYTES).read_to_end(&mut bytes);
    let refuse = |e: &dyn std::fmt::Display| {
        Failure::usage(format!("{JOB_COMMAND}: standard input must be a job in JSON, as linerate bench writes it: {e}"))
    };
    read.map_err(|e| refuse(&e))?;
    serde_json::from_slice(&bytes).map_err(|e| refuse(&e))
}

#[cfg(test)]
pub(crate) mod tests {
    use measure::plan::Plan;

    use super::*;

    /// Starts this program instead of ours.
    pub(crate) fn launcher(program: &str) -> Launcher {
        Launcher { program: program.into() }
    }

    pub(crate) fn job() -> Job {
        let mut plan = Plan::default();
        plan.frame_sizes.truncate(2);
        let device = rig::device::DeviceOptions { dut: Some("sim".into()), ..Default::default() };
        Job { plan, device, machine: rig::MachineOptions::default(), quick: true, quiet: true }
    }

    #[test]
    fn a_job_is_read_as_it_was_written() {
        let bytes = serde_json::to_vec(&job()).unwrap();
        assert_eq!(read_job(&mut bytes.as_slice()).unwrap(), job());
    }

    #[test]
    fn anything_else_is_refused() {
        for bad in ["", "{}", "[1]", "{\"plan\": 3}"] {
            assert_eq!(read_job(&mut bad.as_bytes()).unwrap_err().exit, failure::Exit::Usage, "{bad}");
        }
    }

    #[test]
    fn a_process_without_an_answer_is_a_failure() {
        for program in ["/bin/true", "/bin/false", "/nowhere/at-all"] {
            let answer = launcher(program).run(&job(), &Stop::simulated(false));
            assert!(answer.result.is_none() && answer.failure.is_some(), "{program}");
        }
    }
}
