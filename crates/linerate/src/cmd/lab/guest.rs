//! `linerate lab guest`: one virtual machine of a lab.

use std::{fs, path::Path, time::Duration};

use failure::{Exit, Failure};
use lab::{
    protocol::{Answer, Ask},
    view,
    vm::{self, qmp, GuestSpec},
};

use crate::{cli::lab::GuestCommand, out};

/// How long a guest may take to check itself: it may be emulated.
const CHECK: Duration = Duration::from_secs(5);

/// Runs the command.
///
/// # Errors
///
/// What is missing, or does not answer.
pub fn run(command: &GuestCommand) -> Result<Exit, Failure> {
    match command {
        GuestCommand::Image { spec, initrd, kernel } => guest::image::make(&read(spec)?, initrd, kernel)?,
        GuestCommand::Check { socket } => {
            let Answer::Checked(all) = vm::ask(socket, &Ask::Check, CHECK)? else {
                return Err(Failure::machine(format!("{}: another answer than checks", socket.display())));
            };
            out::print(&view::checked(&all));
            return Ok(if all.iter().all(|check| check.met) { Exit::Passed } else { Exit::Failed });
        }
        GuestCommand::Pin { socket, emulator, pins } => {
            let mut machine = qmp::Machine::connect(socket)?;
            let threads = machine.vcpu_threads()?;
            for pin in pins {
                let wrong =
                    || Failure::usage(format!("{pin:?}: must be VCPU:CPU, with a VCPU below {}", threads.len()));
                let (vcpu, cpu) = pin.split_once(':').ok_or_else(wrong)?;
                let number = |text: &str| text.parse::<u32>().map_err(|_| wrong());
                let thread = threads.get(number(vcpu)? as usize).ok_or_else(wrong)?;
                qmp::pin(*thread, &[number(cpu)?])?;
            }
            if let Some(cpu) = emulator {
                machine.pin_emulator(*cpu)?;
            }
        }
        GuestCommand::Reset { socket } => qmp::Machine::connect(socket)?.reset()?,
        GuestCommand::Link { socket, port, state } => qmp::Machine::connect(socket)?.set_link(*port, state == "up")?,
        GuestCommand::Vcpus { socket } => {
            let threads = qmp::Machine::connect(socket)?.vcpu_threads()?;
            for (n, thread) in threads.into_iter().enumerate() {
                let cpus: Vec<String> = qmp::cpus_of(thread)?.iter().map(u32::to_string).collect();
                out::print(&format!("vCPU {n} on {};", cpus.join(",")));
            }
        }
    }
    Ok(Exit::Passed)
}

fn read(path: &Path) -> Result<GuestSpec, Failure> {
    let fail = |why: String| Failure::usage(format!("{}: {why}", path.display()));
    let text = fs::read_to_string(path).map_err(|e| fail(failure::unreadable(&e)))?;
    serde_json::from_str(&text).map_err(|e| fail(format!("not what a guest is told: {e}")))
}
