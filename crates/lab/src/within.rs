//! This program once more, inside a lab.

use std::{ffi::OsString, os::unix::process::ExitStatusExt};

use failure::{Exit, Failure, Stop};

use crate::{client, protocol::Status};

/// Runs Linerate with these arguments inside the lab and waits for its end. A signal to this process goes to that one.
///
/// # Errors
///
/// It cannot be started.
pub fn run_within(status: &Status, arguments: Vec<OsString>, stop: &Stop) -> Result<Exit, Failure> {
    let mut child = client::command_in(status, &arguments, true)?
        .spawn()
        .map_err(|e| Failure::machine(format!("cannot run nsenter (Debian package util-linux): {e}")))?;
    let pid = i32::try_from(child.id()).ok().and_then(rustix::process::Pid::from_raw);
    let mut told = false;
    let ended = loop {
        match child.try_wait() {
            Ok(Some(ended)) => break ended,
            Ok(None) => std::thread::sleep(std::time::Duration::from_millis(20)),
            Err(e) => return Err(Failure::failed(format!("the run in the lab: {e}"))),
        }
        if let (true, false, Some(pid)) = (stop.requested(), told, pid) {
            // A Ctrl-C has reached it too: a second signal within a second is the same one.
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
            told = true;
        }
    };
    match ended.code() {
        Some(code) => Ok(exit_of(code)),
        None => Err(Failure::failed(format!("the run in the lab was ended by signal {}", ended.signal().unwrap_or(0)))),
    }
}

fn exit_of(code: i32) -> Exit {
    let all = [Exit::Passed, Exit::Failed, Exit::Usage, Exit::Untrusted, Exit::Machine, Exit::Stopped];
    all.into_iter().find(|exit| *exit as i32 == code).unwrap_or(Exit::Failed)
}
