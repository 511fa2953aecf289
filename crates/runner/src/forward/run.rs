//! A data plane from its ports' opening to its final report.

use control::Server;
use dataplane::PortInfo;
use dpdk::{Port, Tsc};
use failure::{Failure, Stop};
use rig::{
    device::{port_mac, DataPlane},
    Claim, PollingCpus,
};

use super::spec::ForwardSpec;
use crate::{
    output::Output,
    poll::poll,
    pools::check_all_returned,
    ports::{are_sockets, note_fallbacks, note_long_frames, note_unspread, LongFrames, PortOptions},
    run_info::RunInfo,
    supervisor::{Parts, Supervisor},
};

/// Runs the data plane until it is stopped or its time is up.
///
/// # Errors
///
/// (usage) for tables that do not fit the ports; (machine) for what DPDK or a port lacks.
pub fn run(spec: ForwardSpec, output: Output, stop: &Stop) -> Result<(), Failure> {
    let Output { note, draw, mut report } = output;
    let ForwardSpec { names, ports: port_specs, cpus, rx_queues, polled, mtu, plane: plane_spec, options } = spec;
    let _claims = Claim::all(&port_specs)?;
    let polling = PollingCpus::register(&cpus);
    polling.warnings().iter().for_each(|line| note(line));
    let eal = rig::start_forward_eal(&options.machine, 0, &cpus, &port_specs)?;
    let mut pools = Vec::new();
    let port_options =
        PortOptions { descriptors: options.machine.descriptors, rx_queues, lcores: cpus.len(), mtu: &mtu, once: false };
    let ports = match port_options.open(eal, &port_specs, stop, &mut pools) {
        Err(_) if stop.requested() => return Ok(()),
        ports => ports?,
    };
    let info = |(n, port): (usize, &Port)| PortInfo { mac: port_mac(port, n), mtu: mtu[n] };
    let infos: Vec<PortInfo> = ports.iter().enumerate().map(info).collect();
    note_fallbacks(&names, &ports, &note);
    note_unspread(&port_specs, &ports, rx_queues, &note);
    note_long_frames(&port_specs, &ports, LongFrames::Lost, &note);
    let dut = DataPlane::new(eal, &plane_spec, ports, &infos, &polled)?;
    pools.push(dut.own.clone());
    let (server, requests) = Server::start("forward", options.name.as_deref())?;
    let kind = plane_spec.plane.kind;
    note(&format!(
        "forwarding {} between {}; {}; Ctrl-C ends it",
        plane_spec.options.describe(kind.name()),
        names.join(" and "),
        server.path().display()
    ));
    let controls = dut.controls();
    let DataPlane { plane, mut forwarders, ports, .. } = dut;
    let info = RunInfo {
        function: kind.to_string(),
        title: format!("forward {kind}"),
        macs: infos.iter().map(|i| i.mac).collect(),
        sockets: are_sockets(&port_specs),
        cpus,
        polled,
        mtu,
        duration: options.duration,
        once: false,
    };
    let mut supervisor = Supervisor::new(Parts {
        plane: Some(plane),
        ports,
        info,
        controls,
        requests,
        clock: Tsc::new(eal),
        each_second: Box::new(|_, _| String::new()),
        draw,
    });
    poll(eal, &mut forwarders, &mut supervisor, stop)?;
    // No client may ask for tables and counters that are about to go.
    drop(server);
    report(&supervisor.final_report(options.json)?);
    drop((forwarders, supervisor));
    if options.check_pools {
        check_all_returned(&pools)?;
    }
    Ok(())
}
