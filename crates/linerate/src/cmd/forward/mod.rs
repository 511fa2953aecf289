//! `linerate forward`: the reference data plane between ports, and the words for one that runs.

mod client;
mod config;
mod desk;
mod lists;
mod show;
mod text;

use std::{
    io::{stdout, IsTerminal},
    sync::atomic::{AtomicBool, Ordering},
    time::{Duration, Instant},
};

use config::{Config, Settings};
use dataplane::{Control, PortInfo};
use desk::Desk;
use dpdk::{Eal, Mempool, Port, PortConfig, PortSpec, Tsc};

use crate::{
    cli::forward::ForwardArgs,
    control,
    engine::{self, port_mac, DataPlane, DutSpec},
    failure::{Exit, Failure},
    out,
    stop::Stop,
};

/// Without a frame for this long, the loops rest.
const LULL: Duration = Duration::from_millis(300);
/// While a port over a socket has no peer they rest this often, frames or not: a peer that knocks and is not let in hangs
/// up and knocks again, which DPDK's memif server does not survive.
const LONELY: Duration = Duration::from_millis(60);
/// How long a rest is.
const REST: Duration = Duration::from_millis(2);

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
    let facts = engine::facts::read();
    let settings = config.check(args, &facts.cpus_allowed)?;
    let stop = Stop::on_signals()?;
    let specs = settings.ports.iter().map(|t| Ok(t.parse::<PortSpec>()?)).collect::<Result<Vec<_>, Failure>>()?;
    let eal = engine::start_forward_eal(&args.machine, &settings.cpus, &specs)?;
    let mut pools = Vec::new();
    let ports = match open(eal, &specs, &settings, args, &stop, &mut pools) {
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
    let spec = DutSpec {
        plane: settings.plane.clone(),
        impair: settings.impair.clone(),
        settings: dataplane::Settings {
            tx_policy: settings.tx,
            node_clocks: !args.no_clocks,
            node_sample: engine::NODE_SAMPLE,
            ..dataplane::Settings::default()
        },
    };
    let dut = DataPlane::new(eal, &spec, ports, &infos, &settings.polled)?;
    pools.push(dut.own.clone());
    let (server, asked) = control::Server::start(args.name.as_deref())?;
    out::note(&format!(
        "forwarding {} between {}; {}; Ctrl-C ends it",
        spec.describe(),
        settings.ports.join(" and "),
        server.path().display()
    ));
    let live = !args.quiet && !args.json && stdout().is_terminal();
    let controls = dut.controls();
    let DataPlane { plane, mut forwarders, ports, .. } = dut;
    let macs = infos.iter().map(|i| i.mac).collect();
    let sockets =
        specs.iter().map(|s| matches!(s, PortSpec::Memif { .. } | PortSpec::Vhost { .. } | PortSpec::Virtio { .. }));
    let sockets = sockets.collect();
    let mut desk = Desk::new(plane, ports, macs, sockets, settings, controls, asked, Tsc::new(eal), live);
    while !desk.over(&stop) {
        // While frames come, peers may not take their memory away (see `Parked`). In every lull polling stops for a
        // moment, and who came or went meanwhile is let in or out.
        let parked = eal.park_interrupts();
        let lull = AtomicBool::new(false);
        eal.scope(|s| -> Result<(), Failure> {
            // However this ends, the loops must, or the scope would wait for ever.
            let _loops_end = Set(&lull);
            let mut jobs = Vec::new();
            for (forwarder, lcore) in forwarders.iter_mut().zip(1..) {
                let lull = &lull;
                jobs.push(s.launch(lcore, move || forwarder.run_and_rest(lull))?);
            }
            let (mut seen, mut since) = (desk.received(), Instant::now());
            let begun = Instant::now();
            while !desk.over(&stop) && since.elapsed() < LULL && !(begun.elapsed() > LONELY && desk.is_lonely()) {
                desk.serve(Duration::from_millis(20));
                let now = desk.received();
                if now != seen {
                    (seen, since) = (now, Instant::now());
                }
            }
            lull.store(true, Ordering::Relaxed);
            for job in jobs {
                job.join()?;
            }
            Ok(())
        })?;
        drop(parked);
        std::thread::sleep(REST);
        // Over a virtio server, asking for the link is what takes a waiting peer in.
        desk.ask_links();
    }
    // What waited for its time, or for a neighbour, leaves now or is counted.
    eal.scope(|s| -> Result<(), Failure> {
        for (forwarder, lcore) in forwarders.iter_mut().zip(1..) {
            s.launch(lcore, move || forwarder.finish())?;
        }
        Ok(())
    })?;
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

/// Sets a flag when dropped.
struct Set<'a>(&'a AtomicBool);

impl Drop for Set<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Release);
    }
}

fn open(
    eal: &'static Eal,
    specs: &[PortSpec],
    settings: &Settings,
    args: &ForwardArgs,
    stop: &Stop,
    pools: &mut Vec<Mempool>,
) -> Result<Vec<Port>, Failure> {
    let d = args.machine.descriptors;
    let lcores = settings.cpus.len() as u32;
    let mut open = |(spec, &mtu): (&PortSpec, &u16)| {
        let rings = u32::from(settings.rx_queues) + lcores;
        let count = ((2 * rings * d + 8192).next_power_of_two() - 1).max(16383);
        let pool = Mempool::new(eal, "ports", count, (mtu + 14 + 8).max(2048), 512)?;
        pools.push(pool.clone());
        let mut config = PortConfig::new(&pool);
        (config.rx_desc, config.tx_desc) = (d as u16, d as u16);
        (config.rx_queues, config.tx_queues) = (settings.rx_queues, lcores as u16);
        config.mtu = mtu.max(1500);
        // A DUT waits for its tester as long as it takes; Ctrl-C ends that too.
        config.peer_timeout = Duration::from_secs(24 * 3600);
        config.cancel = Some(stop.shared());
        Ok(Port::open(eal, spec, &config)?)
    };
    specs.iter().zip(&settings.mtu).map(&mut open).collect()
}

/// The counters of a loop now, or nothing when its lcore does not answer.
fn snapshot(control: &Control) -> Option<dataplane::Snapshot> {
    control.snapshot(Duration::from_secs(1)).ok()
}
