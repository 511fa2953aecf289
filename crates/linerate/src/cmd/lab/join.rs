//! Measuring a lab: the command goes on inside it, where its sockets and interfaces are.

use std::{ffi::OsString, path::PathBuf};

use failure::{Exit, Failure, Stop};
use lab::{
    client::{self, INSIDE},
    hidden,
    hold::SOCKET,
    protocol::{Answer, Ask, Status},
    start::spec_of,
    topology,
    within::run_within,
};

use rig::lab_plan::ForPlan;

use super::{guests, start::bring_up};
use crate::{
    cli::{EvidenceArg, MachineArgs, PortArgs, TrafficArgs},
    out,
};

/// Fills in the ports of a lab, if `--lab` is given: the process is replaced by one inside it first. `plan` is what is
/// measured, for a lab that is brought up for this run. The exit code if such a run is over.
///
/// # Errors
///
/// No such lab, or one that does not come up.
pub fn join(
    ports: &mut PortArgs,
    traffic: &mut TrafficArgs,
    machine: &mut MachineArgs,
    evidence: Option<&mut Option<EvidenceArg>>,
    plan: &dyn Fn() -> Result<Option<ForPlan>, Failure>,
) -> Result<Option<Exit>, Failure> {
    let Some(name) = ports.lab.lab.clone() else { return Ok(None) };
    if std::env::var_os(INSIDE).is_some() {
        let Answer::Status(status) = client::ask_inside(&Ask::Status)? else {
            return Err(Failure::failed("the lab gave another answer than its status"));
        };
        client::check_running(&status)?;
        let open = evidence.filter(|evidence| evidence.is_none() && status.cpus.takes_turns());
        if let Some(evidence) = open {
            // In a slice only one of those that take turns has had its turn.
            *evidence = Some(EvidenceArg::WholeTrial);
            out::note(
                "linerate: polling threads of this lab take turns on a CPU, so a search goes by whole trials \
                 (--evidence whole-trial)",
            );
        }
        fill(*status, ports, traffic, machine);
        return Ok(None);
    }
    let arguments: Vec<OsString> = std::env::args_os().skip(1).collect();
    if name.is_some() || !client::running().is_empty() {
        let status = client::status(&client::named(name.as_deref())?)?;
        return Err(client::enter(&status, &arguments));
    }
    let none = || {
        Failure::machine(
            "--lab: no lab is up, and the plan names no topology: bring one up with linerate lab up TOPOLOGY",
        )
    };
    let plan = plan()?.ok_or_else(none)?;
    let needed = plan.needs.topology.as_deref().ok_or_else(none)?;
    let known = topology::needed(needed).ok_or_else(|| {
        let all: Vec<_> = topology::names().collect();
        Failure::usage(format!(
            "--lab: the plan needs {needed}, which no lab builds yet (these are: {})",
            all.join(", ")
        ))
    })?;
    let topology = topology::load(known)?;
    hidden::check_command(arguments.iter().map(OsString::as_os_str))?;
    let options = guests::chosen(&topology, &plan)?;
    let spec = spec_of(known.to_owned(), topology, options)?;
    let stop = Stop::on_signals()?;
    let mut up = bring_up(&spec, true, &stop)?;
    let exit = run_within(&up.status, arguments, &stop);
    up.down();
    exit.map(Some)
}

fn fill(status: Status, ports: &mut PortArgs, traffic: &mut TrafficArgs, machine: &mut MachineArgs) {
    ports.ports = status.tester.ports;
    ports.lab.inside = Some(PathBuf::from(SOCKET));
    // The CPUs of a lab on another host are that host's, all but the tester's.
    let own = if status.on.is_none() { Some(status.cpus.tester) } else { status.options.tester_cpu };
    if traffic.dst_mac.is_empty() {
        traffic.dst_mac = status.tester.dst_mac;
    }
    machine.tester_cpu = machine.tester_cpu.or(own);
}
