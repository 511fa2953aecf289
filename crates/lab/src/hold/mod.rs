//! The process that holds a lab: the first one in its process, mount and network namespaces. When it ends, however that
//! happens, the kernel ends every process in them and removes what they made.

mod held;
mod programs;
mod serve;
mod setup;

use std::{
    io::{self, Write},
    os::unix::net::UnixListener,
    path::Path,
    time::{Duration, Instant},
};

use failure::{Exit, Failure, Stop};

use crate::{
    build::Build,
    protocol::{Progress, Spec},
    step::{Program, Question, Step},
};

pub use held::DIR;
use held::{millis, Held};
use programs::Programs;

/// The socket in it, for clients inside the lab.
pub const SOCKET: &str = "/run/lab/control.sock";

/// How often a question is asked until it is answered right.
const AGAIN: Duration = Duration::from_millis(20);

/// Brings a lab up, answers on `listener` until it is told to end, and ends. Progress goes to standard output, a line of
/// JSON each, until the lab is up.
///
/// # Errors
///
/// What could not be brought up. The caller ends the process, and with it everything that was started.
pub fn run(spec: Spec, listener: UnixListener, stop: &Stop) -> Result<Exit, Failure> {
    let started = Instant::now();
    match bring_up(spec, started, stop) {
        Ok(mut held) => {
            let inside = UnixListener::bind(SOCKET).map_err(|e| Failure::machine(format!("{SOCKET}: {e}")))?;
            tell(&Progress::Up(Box::new(held.status())));
            serve::until_down(&mut held, &[listener, inside], stop);
            held.programs.quit();
            Ok(Exit::Passed)
        }
        Err(failure) => {
            tell(&Progress::Failed { text: failure.text.clone(), exit: failure.exit });
            Err(failure)
        }
    }
}

fn bring_up(spec: Spec, started: Instant, stop: &Stop) -> Result<Held, Failure> {
    setup::private(Path::new(DIR))?;
    let Spec { topology, options, cpus, linerate, .. } = spec.clone();
    let build = Build::new(topology, options, &cpus, &linerate, DIR)?;
    let mut programs = Programs::new(DIR);
    for step in &build.steps {
        if stop.requested() {
            return Err(Failure::stopped("stopped before the lab was up"));
        }
        let what = one_step(step, &mut programs, stop)?;
        if let Some(what) = what {
            tell(&Progress::Done { what, at_ms: millis(started.elapsed()) });
        }
    }
    let versions = setup::versions(&build);
    Ok(Held { spec, build, programs, started, up: Instant::now(), versions })
}

/// Runs a step. What it was in words, where a user wants to read it.
fn one_step(step: &Step, programs: &mut Programs, stop: &Stop) -> Result<Option<String>, Failure> {
    match step {
        Step::Run(line) => {
            let out = programs.output(line)?;
            match out.succeeded {
                true => Ok(None),
                false => Err(Failure::machine(format!("{line}: {}", out.last_line()))),
            }
        }
        Step::Start(Program { name, .. }) => {
            let Step::Start(program) = step else { return Ok(None) };
            programs.start(program)?;
            Ok(Some(format!("{name} started")))
        }
        Step::Await(question) => {
            wait_for(question, programs, stop)?;
            Ok(Some(question.what.clone()))
        }
    }
}

fn wait_for(question: &Question, programs: &mut Programs, stop: &Stop) -> Result<(), Failure> {
    let until = Instant::now() + question.within;
    loop {
        let out = programs.output(&question.line)?;
        if question.want.is_met(out.succeeded, &out.printed) {
            return Ok(());
        }
        if let Some(dead) = programs.dead() {
            return Err(Failure::machine(format!("{dead} before this held: {}", question.what)));
        }
        if stop.requested() {
            return Err(Failure::stopped("stopped before the lab was up"));
        }
        if Instant::now() >= until {
            return Err(Failure::machine(format!(
                "not within {} s: {}; {} answers: {}; {}",
                question.within.as_secs(),
                question.what,
                question.line,
                out.last_line(),
                question.remedy
            )));
        }
        std::thread::sleep(AGAIN);
    }
}

/// A line for who started the lab; nobody may read it any more.
fn tell(progress: &Progress) {
    if let Ok(line) = serde_json::to_string(progress) {
        let mut out = io::stdout().lock();
        let _ = writeln!(out, "{line}").and_then(|()| out.flush());
    }
}
