//! Starting a lab.

use std::{
    io::{self, IsTerminal},
    path::Path,
};

use failure::{Failure, Stop};
use host::{journal, PciDevice, Roots};
use lab::{
    client::{self, Up},
    cpus::allowed_cpus,
    hold,
    needs::Machine,
    nics,
    protocol::Spec,
    topology, Build, LabOptions,
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
    Ok(Spec { name, topology, options, cpus, linerate, logs: None, on: None })
}

/// Starts a lab and waits until it is up; each step is a line on a terminal.
///
/// # Errors
///
/// What did not come up.
pub fn bring_up(spec: &Spec, bound: bool, stop: &Stop) -> Result<Up, Failure> {
    let watched = io::stderr().is_terminal();
    bring_up_telling(spec, bound, stop, &mut |what, at_ms| {
        if watched {
            out::note(&format!("{:>6.2} s  {what}", at_ms as f64 / 1e3));
        }
    })
}

/// The same; `done` is called with each step and the milliseconds since the start.
///
/// # Errors
///
/// What did not come up.
pub fn bring_up_telling(spec: &Spec, bound: bool, stop: &Stop, done: &mut dyn FnMut(&str, u64)) -> Result<Up, Failure> {
    take_nics(spec)?;
    let up = client::start(spec, bound).and_then(|starting| starting.wait(stop, done));
    if up.is_err() {
        give_nics_back(&spec.name)?;
    }
    up
}

/// Takes the NICs of a lab from the kernel; first what a lab that was killed has left is mended, which may be one of them.
fn take_nics(spec: &Spec) -> Result<(), Failure> {
    let LabOptions { phy, tester_ports, .. } = &spec.options;
    if phy.is_empty() {
        return Ok(());
    }
    mend()?;
    let roots = Roots::default();
    // Of a lab on another host each host takes its own.
    let on_bus = |port: &&String| PciDevice::read(&roots, port).is_some() && !spec.options.tester_elsewhere;
    let phy = phy.iter().filter(|_| spec.on.is_none());
    let all: Vec<String> = phy.chain(tester_ports.iter().filter(on_bus)).cloned().collect();
    nics::take(&roots, Path::new(journal::DIR), &spec.name, &all)
}

/// Gives the NICs of a lab back that has ended, and says so.
///
/// # Errors
///
/// A NIC that could not be given back.
pub fn give_nics_back(lab: &str) -> Result<(), Failure> {
    let lines = nics::give_back(&Roots::default(), Path::new(journal::DIR), lab)?;
    lines.iter().for_each(|line| out::note(line));
    Ok(())
}

/// The same for all labs that ended without it.
///
/// # Errors
///
/// The first NIC that could not be given back.
pub fn mend() -> Result<(), Failure> {
    let running = client::running();
    let dead = nics::owners(Path::new(journal::DIR)).into_iter().filter(|lab| !running.contains(lab));
    dead.map(|lab| give_nics_back(&lab)).fold(Ok(()), Result::and)
}
