//! `linerate forward`: the reference data plane between ports, and the words for one that runs.

pub mod client;
pub mod config;
pub mod desk;
mod lists;
pub mod run;
mod show;
pub mod text;
mod view;

use std::{
    io::{stdout, IsTerminal},
    time::Duration,
};

use config::Config;
use dataplane::{Control, PortInfo};
use desk::{Desk, Site};
use dpdk::{Port, PortSpec, Tsc};
use run::{poll, sockets, Opening};

use crate::{cli::forward::ForwardArgs, out};
use failure::{Exit, Failure, Stop};
use rig::device::{port_mac, DataPlane, DataPlaneSpec, LoopOptions, NODE_SAMPLE};

/// Runs the command.
pub fn run(args: &ForwardArgs) -> Result<Exit, Failure> {
    if let Some(control) = &args.control {
        return client::run(control);
    }
    let config = Config::read(args)?;
    if args.print_config {
        out::print(&config.to_toml()?);
        return Ok(Exit::Passed);
    }
    let facts = rig::facts::read();
    let settings = config.check(args, &facts.cpus_allowed)?;
    let stop = Stop::on_signals()?;
    let specs = settings.ports.iter().map(|t| Ok(t.parse::<PortSpec>()?)).collect::<Result<Vec<_>, Failure>>()?;
    let _claims = rig::Claim::all(&specs)?;
    let eal = rig::start_forward_eal(&args.machine.options(), 0, &settings.cpus, &specs)?;
    let mut pools = Vec::new();
    let opening = Opening {
        descriptors: args.machine.descriptors,
        rx_queues: settings.rx_queues,
        lcores: settings.cpus.len(),
        mtu: &settings.mtu,
        once: false,
    };
    let ports = match opening.open(eal, &specs, &stop, &mut pools) {
        Err(_) if stop.requested() => return Ok(Exit::Passed),
        ports => ports?,
    };
    let info = |(n, port): (usize, &Port)| PortInfo { mac: port_mac(port, n), mtu: settings.mtu[n] };
    let infos: Vec<PortInfo> = ports.iter().enumerate().map(info).collect();
    for (name, port) in settings.ports.iter().zip(&ports) {
        if let Some(why) = port.fallback() {
            out::note(&format!("port {name}: {why}"));
        }
    }
    let spec = DataPlaneSpec {
        plane: settings.plane.clone(),
        options: LoopOptions {
            impair: settings.impair.clone(),
            settings: dataplane::Settings {
                tx_policy: settings.tx,
                node_clocks: !args.no_clocks,
                node_sample: NODE_SAMPLE,
                ..dataplane::Settings::default()
            },
        },
    };
    let dut = DataPlane::new(eal, &spec, ports, &infos, &settings.polled)?;
    pools.push(dut.own.clone());
    let (server, asked) = control::Server::start("forward", args.name.as_deref())?;
    out::note(&format!(
        "forwarding {} between {}; {}; Ctrl-C ends it",
        spec.options.describe(spec.plane.kind.name()),
        settings.ports.join(" and "),
        server.path().display()
    ));
    let live = !args.quiet && !args.json && stdout().is_terminal();
    let controls = dut.controls();
    let DataPlane { plane, mut forwarders, ports, .. } = dut;
    let site = Site {
        function: settings.plane.kind.to_string(),
        title: format!("forward {}", settings.plane.kind),
        macs: infos.iter().map(|i| i.mac).collect(),
        sockets: sockets(&specs),
        cpus: settings.cpus,
        polled: settings.polled,
        mtu: settings.mtu,
        duration: settings.duration,
        once: None,
        live,
    };
    let each_second = Box::new(|_: &[_], _: &[_]| String::new());
    let mut desk = Desk::new(Some(plane), ports, site, controls, asked, Tsc::new(eal), each_second);
    poll(eal, &mut forwarders, &mut desk, &stop)?;
    // Nobody is told of tables and counters that are about to go.
    drop(server);
    out::print(&desk.last_words(args.json)?);
    drop((forwarders, desk));
    if args.check_pools {
        // The ports are closed, so nothing may be out.
        let missing: usize = pools.iter().map(|pool| pool.capacity() - pool.avail().min(pool.capacity())).sum();
        if missing > 0 {
            return Err(Failure::failed(format!("{missing} frame buffers did not come back to their pools")));
        }
    }
    Ok(Exit::Passed)
}

/// The counters of a loop now, or nothing when its lcore does not answer.
fn snapshot(control: &Control) -> Option<dataplane::Snapshot> {
    control.snapshot(Duration::from_secs(1)).ok()
}
