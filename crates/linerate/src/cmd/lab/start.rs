//! Starting a lab.

use std::io::{self, IsTerminal};

use failure::{Failure, Stop};
use lab::{
    client::{self, Up},
    cpus::allowed_cpus,
    hold,
    needs::Machine,
    protocol::Spec,
    topology, Build,
};

use crate::out;

/// What a lab is started with, if this machine can run it.
///
/// # Errors
///
/// (usage) for a name or a choice that cannot be; (machine) for what is missing.
pub fn spec_of(name: String, topology: topology::Topology, options: lab::LabOptions) -> Result<Spec, Failure> {
    client::check_name(&name)?;
    if client::running().contains(&name) {
        return Err(client::is_up(&name));
    }
    let cpus = allowed_cpus();
    let program = std::env::current_exe().map_err(|e| Failure::machine(format!("where this program is: {e}")))?;
    let linerate = program.to_string_lossy().into_owned();
    // What cannot be built is said before anything is started.
    let build = Build::new(topology.clone(), options.clone(), &cpus, &linerate, hold::DIR)?;
    if let Some(need) = Machine::read().needs(&build.topology, &options).into_iter().find(|need| !need.met) {
        return Err(Failure::machine(format!("topology {}: needs {}: {}", topology.name, need.what, need.remedy)));
    }
    Ok(Spec { name, topology, options, cpus, linerate, logs: None })
}

/// Starts a lab and waits until it is up; each step is a line on a terminal.
///
/// # Errors
///
/// What did not come up.
pub fn bring_up(spec: &Spec, bound: bool, stop: &Stop) -> Result<Up, Failure> {
    let watched = io::stderr().is_terminal();
    client::start(spec, bound)?.wait(stop, &mut |what, at_ms| {
        if watched {
            out::note(&format!("{:>6.2} s  {what}", at_ms as f64 / 1e3));
        }
    })
}
