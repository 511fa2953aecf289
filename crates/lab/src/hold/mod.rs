//! The process that holds a lab: the first one in its process, mount and network namespaces. When it ends, however that
//! happens, the kernel ends every process in them and removes what they made.

mod far;
mod held;
mod observe;
mod perform;
mod programs;
mod serve;
mod setup;
mod told;

use std::{fs, os::unix::net::UnixListener, path::Path, time::Instant};

use failure::{Exit, Failure, Stop};

use crate::{
    build::Build,
    protocol::{Progress, Spec},
    topology::TESTER,
};

pub use crate::hidden::DIR;
use held::{millis, Held};
pub use observe::Observed;
pub use perform::one_step;
pub use programs::{Output, Programs, GUEST_SAYS};
pub use told::tell;

/// The socket in it, for clients inside the lab.
pub const SOCKET: &str = "/run/lab/control.sock";

/// Brings a lab up, answers on `listener` until it is told to end, and ends. Progress goes to standard output, a line of
/// JSON each, until the lab is up.
///
/// # Errors
///
/// What could not be brought up. The caller ends the process, and with it everything that was started.
pub fn run(spec: Spec, listener: UnixListener, stop: &Stop) -> Result<Exit, Failure> {
    let started = Instant::now();
    let logs = spec.logs.clone();
    let ended = match spec.on.clone() {
        Some(on) => far::run(&spec, &on, listener, stop),
        None => hold(spec, listener, started, stop),
    };
    if let Some(to) = logs {
        keep_logs(&to);
    }
    // Told last: the process that started it ends the lab then.
    if let Err(Failure { text, exit }) = &ended {
        let _ = tell(&Progress::Failed { text: text.clone(), exit: *exit });
    }
    ended
}

fn hold(spec: Spec, listener: UnixListener, started: Instant, stop: &Stop) -> Result<Exit, Failure> {
    match bring_up(spec, started, stop) {
        Ok(mut held) => {
            let inside = UnixListener::bind(SOCKET).map_err(|e| Failure::machine(format!("{SOCKET}: {e}")))?;
            tell(&Progress::Up(Box::new(held.status())))?;
            serve::until_down(&mut held, &[listener, inside], stop);
            held.programs.quit();
            Ok(Exit::Passed)
        }
        Err(failure) => Err(failure),
    }
}

/// Copies the logs out of the lab. What cannot be copied is gone with it.
fn keep_logs(to: &Path) {
    let Ok(entries) = fs::read_dir(DIR) else { return };
    for path in entries.flatten().map(|entry| entry.path()) {
        if let (Some(name), Some("log")) = (path.file_name(), path.extension().and_then(|end| end.to_str())) {
            let _ = fs::create_dir_all(to).and_then(|()| fs::copy(&path, to.join(name)));
        }
    }
}

fn bring_up(spec: Spec, started: Instant, stop: &Stop) -> Result<Held, Failure> {
    setup::private(Path::new(DIR))?;
    let Spec { topology, options, cpus, linerate, .. } = spec.clone();
    let build = Build::new(topology, options, &cpus, &linerate, DIR)?;
    let mut programs = Programs::new(DIR);
    for (number, step) in build.steps.iter().enumerate() {
        if spec.fail_at == Some(number) {
            return Err(Failure::machine(format!("step {number} was made to fail")));
        }
        if stop.requested() {
            return Err(Failure::stopped("stopped before the lab was up"));
        }
        let what = one_step(step, &mut programs, stop)?;
        if let Some(what) = what {
            tell(&Progress::Done { what, at_ms: millis(started.elapsed()) })?;
        }
    }
    let versions = setup::versions(&build);
    let exec = format!("linerate lab exec --lab {} {TESTER}", spec.name);
    Ok(Held { spec, build, programs, started, up: Instant::now(), versions, exec })
}
