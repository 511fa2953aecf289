//! The first process of a guest: mounts, modules, the steps that it was told, answers until it is told to end.

mod port;
mod start;

use std::{fs, io::Write};

use failure::{Failure, Stop};
use lab::{
    client::HOLD_COMMAND,
    hold::{one_step, Observed, Programs, GUEST_SAYS},
    protocol::{Answer, Ask},
    vm::{Answered, Asked, GuestSpec, GUEST_DIR, INIT},
};
use nix::sys::reboot::{reboot, RebootMode};

use crate::image::SPEC;
use port::Port;

/// Lines of a log that are printed when a guest fails.
const LAST_LINES: usize = 20;

/// Whether this process is the first one of a guest.
pub fn is_first_process() -> bool {
    let mut words = std::env::args_os();
    let (name, first) = (words.next(), words.next());
    // A lab in a guest has a first process of its own.
    std::process::id() == 1 && name.is_some_and(|name| name == INIT) && first.is_none_or(|word| word != HOLD_COMMAND)
}

/// Runs a guest to its end and switches it off.
pub fn run() {
    if let Err(failure) = guest() {
        logs();
        // The last line of the console is what the lab shows.
        let mut out = std::io::stderr().lock();
        let _ = writeln!(out, "{GUEST_SAYS}{failure}").and_then(|()| out.flush());
    }
    rustix::fs::sync();
    // Does not return where it succeeds; where it does not, the end of the first process ends the guest, too.
    let _ = reboot(RebootMode::RB_POWER_OFF);
}

/// Prints the ends of the programs' logs: they are gone with the guest.
fn logs() {
    let Ok(entries) = fs::read_dir(GUEST_DIR) else { return };
    for path in
        entries.flatten().map(|entry| entry.path()).filter(|path| path.extension().is_some_and(|end| end == "log"))
    {
        let text = String::from_utf8_lossy(&fs::read(&path).unwrap_or_default()).into_owned();
        let lines: Vec<&str> = text.lines().collect();
        println!("{}:", path.display());
        lines.iter().skip(lines.len().saturating_sub(LAST_LINES)).for_each(|line| println!("  {line}"));
    }
}

fn guest() -> Result<(), Failure> {
    start::file_systems()?;
    let text = fs::read(SPEC).map_err(|e| Failure::failed(format!("{SPEC}: {e}")))?;
    let spec: GuestSpec = serde_json::from_slice(&text).map_err(|e| Failure::failed(format!("{SPEC}: {e}")))?;
    start::modules()?;
    start::all_cpus();
    fs::create_dir_all(GUEST_DIR).map_err(|e| Failure::failed(format!("{GUEST_DIR}: {e}")))?;
    let mut port = Port::open()?;
    let mut programs = Programs::new(GUEST_DIR);
    let stop = Stop::on_signals()?;
    for step in &spec.steps {
        let done = one_step(step, &mut programs, &stop)?;
        if let Some(done) = done {
            println!("{GUEST_SAYS}{done}");
        }
    }
    println!("{GUEST_SAYS}{} is up", spec.name);
    let exec = format!("linerate lab exec {}", spec.name);
    loop {
        let line = port.line(|| programs.dead().map_or(Ok(()), |dead| Err(Failure::failed(dead))))?;
        // What is not a question is what was left of one that nobody waits for.
        let Ok(Asked { id, ask }) = serde_json::from_slice(&line) else { continue };
        let mut observed = Observed {
            programs: &mut programs,
            counters: &spec.counters,
            checks: &spec.checks,
            shared: false,
            exec: &exec,
        };
        let answer = match ask {
            Ask::Counters => Answer::Counters(observed.counters()),
            Ask::Check => Answer::Checked(observed.check(false)),
            Ask::CheckConnected => Answer::Checked(observed.check(true)),
            Ask::Versions => Answer::Versions(start::versions(&spec)),
            Ask::Down => Answer::Ending(std::process::id()),
            Ask::Run { ref line, .. } => observed.run(line),
            Ask::Threads => Answer::Refused("a guest has no threads of a lab's switch".to_owned()),
            Ask::Fault { .. } => Answer::Refused("faults are the lab's".to_owned()),
            Ask::Status => Answer::Refused("a guest has no status of a lab".to_owned()),
        };
        let mut text = serde_json::to_vec(&Answered { id, answer }).map_err(Failure::failed)?;
        text.push(b'\n');
        port.answer(&text)?;
        if ask == Ask::Down {
            programs.quit();
            break;
        }
    }
    Ok(())
}
