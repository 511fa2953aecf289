//! `linerate flowlog`: the flow logger, and the words for one that runs.

mod config;
mod ending;
mod serving;
mod sinks;

use std::io::{stdout, IsTerminal};

use config::{Config, Settings};
use dpdk::{Eal, Mempool, PortSpec, Tsc};
use flow::Source;
use serving::Serving;

use super::forward::{
    client,
    desk::{Desk, Site},
    run::{poll, sockets, Opening},
};
use crate::{
    cli::{
        flowlog::{Control, FlowlogArgs},
        forward,
    },
    cmd::score,
    out,
};
use failure::{Exit, Failure, Stop};
use rig::device::{port_mac, LogSpec, Logger};

/// Runs the command.
pub fn run(args: &FlowlogArgs) -> Result<Exit, Failure> {
    if let Some(control) = &args.control {
        return ask(control);
    }
    let config = Config::read(args)?;
    if args.print_config {
        out::print(&config.to_toml()?);
        return Ok(Exit::Passed);
    }
    let facts = rig::facts::read();
    let settings = config.check(&facts.cpus_allowed)?;
    let stop = Stop::on_signals()?;
    let specs = specs(&settings.config.ports, settings.config.once)?;
    let spec = settings.spec();
    let tables_mib = spec.tables_mib(settings.cpus.len());
    let _claims = rig::Claim::all(&specs)?;
    let eal = rig::start_forward_eal(&settings.machine(), tables_mib, &settings.cpus, &specs)?;
    let mut pools = Vec::new();
    let logged = log(&settings, &specs, &spec, eal, &stop, &mut pools);
    match logged {
        Err(_) if stop.requested() && pools.is_empty() => return Ok(Exit::Passed),
        logged => logged?,
    }
    if args.check_pools {
        let missing: usize = pools.iter().map(|pool| pool.capacity() - pool.avail().min(pool.capacity())).sum();
        if missing > 0 {
            return Err(Failure::failed(format!("{missing} frame buffers did not come back to their pools")));
        }
    }
    Ok(Exit::Passed)
}

/// Asks or ends a logger that runs: it answers as any data plane does.
fn ask(control: &Control) -> Result<Exit, Failure> {
    client::run(&match control {
        Control::Show { what, json, interval, target } => forward::Control::Show {
            what: (*what).into(),
            json: *json,
            interval: interval.clone(),
            limit: usize::MAX,
            target: target.clone(),
        },
        Control::Stop { target } => forward::Control::Stop { target: target.clone() },
        Control::Score(args) => return score::run(args),
    })
}

/// The ports.
fn specs(ports: &[String], once: bool) -> Result<Vec<PortSpec>, Failure> {
    let specs = ports.iter().map(|text| Ok(text.parse()?)).collect::<Result<Vec<PortSpec>, Failure>>()?;
    if once && !specs.iter().any(reads) {
        return Err(Failure::usage("--once: none of the ports reads a file; pcap:FILE or pcap:rx=FILE,tx=FILE does"));
    }
    Ok(specs)
}

/// Whether the port reads a capture.
fn reads(spec: &PortSpec) -> bool {
    matches!(spec, PortSpec::Pcap { rx: Some(_), .. })
}

fn log(
    settings: &Settings,
    specs: &[PortSpec],
    spec: &LogSpec,
    eal: &'static Eal,
    stop: &Stop,
    pools: &mut Vec<Mempool>,
) -> Result<(), Failure> {
    let config = &settings.config;
    let mtu = vec![config.mtu; specs.len()];
    let opening = Opening {
        descriptors: config.descriptors,
        rx_queues: config.rx_queues,
        lcores: settings.cpus.len(),
        mtu: &mtu,
        once: config.once,
    };
    let ports = opening.open(eal, specs, stop, pools)?;
    for (name, port) in config.ports.iter().zip(&ports) {
        if let Some(why) = port.fallback() {
            out::note(&format!("port {name}: {why}"));
        }
    }
    if settings.splits_conversations() && ports.iter().any(|port| !port.rss().symmetric) {
        out::note(
            "several receive queues with directions joined: not every device says that it sends both ways of a \
             conversation to the same queue, and where one does not each is a flow then",
        );
    }
    let Logger { mut loops, ports, logged, ended } = Logger::new(eal, spec, ports, &config.ports, &settings.polled)?;
    logged.look(&ports, &[]);
    let name = Some(config.name.as_str()).filter(|name| !name.is_empty());
    let (server, asked) = control::Server::start("flowlog", name)?;
    let name = server.path().file_stem().map_or_else(String::new, |stem| stem.to_string_lossy().into_owned());
    let serving = Serving::start(settings, &name, &logged, ended)?;
    out::note(&format!(
        "{name}: logging flows {}; {}{}; Ctrl-C ends it",
        paths(&config.ports, config.reflect),
        serving.describe(),
        server.path().display()
    ));
    let live = !config.quiet && stdout().is_terminal();
    let site = Site {
        function: "flow logger".into(),
        title: format!("flowlog {name}"),
        macs: ports.iter().enumerate().map(|(n, port)| port_mac(port, n)).collect(),
        sockets: sockets(specs),
        cpus: settings.cpus.clone(),
        polled: settings.polled.clone(),
        mtu,
        duration: settings.duration,
        once: config.once.then(|| specs.iter().filter(|s| reads(s)).count()),
        live,
    };
    let controls = loops.iter().map(dataplane::Forwarder::control).collect();
    let seen = std::sync::Arc::clone(&logged);
    let each_second = Box::new(move |ports: &[_], lcores: &[_]| {
        seen.look(ports, lcores).iter().for_each(|line| out::note(line));
        if live {
            ending::table_text(&seen.totals())
        } else {
            String::new()
        }
    });
    let mut desk = Desk::new(None, ports, site, controls, asked, Tsc::new(eal), each_second);
    let polled = poll(eal, &mut loops, &mut desk, stop);
    // However that ended, what was counted is not lost.
    logged.look(&desk.ports, &desk.snapshots());
    for (name, port) in config.ports.iter().zip(&desk.ports) {
        if let Some(trouble) = port.progress().and_then(|progress| progress.trouble()) {
            out::note(&format!("port {name}: {trouble}"));
        }
    }
    // More than the paces of UDP collectors let through in time would be dropped for certain.
    logged.hasten(ending::LAST_EXPORT).iter().for_each(|line| out::note(line));
    let whole = ending::flush(&mut loops, &logged);
    let down = logged.waited_for();
    if !down.is_empty() {
        let most = ending::LAST_EXPORT.as_secs();
        out::note(&format!("waiting up to {most} s for {}; a second signal gives up", down.join(", ")));
    }
    let sinks = logged.finish_export(ending::LAST_EXPORT);
    drop((serving, server));
    out::print(&format!(
        "{}{}{}",
        desk.last_words(false)?,
        ending::table_text(&logged.totals()),
        ending::export_text(&sinks, whole)
    ));
    polled
}

/// Between which ports frames pass.
fn paths(ports: &[String], reflect: bool) -> String {
    let path = |pair: &[String]| match pair {
        [a, b] => format!("between {a} and {b}"),
        [a, ..] if reflect => format!("reflected by {a}"),
        [a, ..] => format!("received by {a}"),
        [] => String::new(),
    };
    ports.chunks(2).map(path).collect::<Vec<_>>().join(", ")
}
