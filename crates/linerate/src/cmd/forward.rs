//! `linerate forward`: the reference data plane between ports, for another tester.

use std::{
    sync::atomic::{AtomicBool, Ordering},
    time::{Duration, Instant},
};

use dataplane::{l3::Route, spec::FunctionSpec, Snapshot};
use dpdk::{Eal, Mempool, Port, PortConfig, PortSpec};
use packet::MacAddr;
use serde_json::json;

use crate::{
    cli::ForwardArgs,
    engine::{self, Builtin, CpuPlan, DutSpec, TESTER_LCORE},
    failure::{Exit, Failure},
    out,
    stop::Stop,
};

/// Without a frame for this long, the loop rests a millisecond.
const LULL: Duration = Duration::from_millis(300);

/// Jumbo frames are for a plan to ask for; a DUT takes what comes up to the usual.
const MAX_FRAME: usize = 2048;

/// Runs the command.
pub fn run(args: &ForwardArgs) -> Result<Exit, Failure> {
    let mut spec = DutSpec::parse(Some(&args.function), args.impair.as_deref())?;
    if let FunctionSpec::L3(config) = &mut spec.function {
        config.routes = args.routes.iter().map(|text| route(text)).collect::<Result<_, _>>()?;
    } else if !args.routes.is_empty() {
        return Err(Failure::usage(format!("--route: {} has no routes; they are for l3", args.function)));
    }
    let neighbours = neighbours(&args.neighbours)?;
    if args.ports.len() < 2 {
        return Err(Failure::usage("--port was given once: a data plane forwards between two or more ports"));
    }
    let duration = args.duration.as_deref().map(units::parse_duration).transpose()?;
    let specs = args.ports.iter().map(|t| Ok(t.parse::<PortSpec>()?)).collect::<Result<Vec<_>, Failure>>()?;
    let stop = Stop::on_signals()?;
    let facts = engine::facts::read();
    let cpus = CpuPlan::choose(&facts.cpus_allowed, args.machine.dut_cpu.or(args.machine.tester_cpu), None, false)?;
    let eal = engine::start_eal(&args.machine, CpuPlan { other: None, ..cpus }, &specs)?;
    let ports = match open(eal, &specs, args, &stop) {
        Err(_) if stop.requested() => return Ok(Exit::Passed),
        ports => ports?,
    };
    let macs: Vec<MacAddr> = ports.iter().enumerate().map(|(i, p)| mac(p, i)).collect();
    let mut dut = Builtin::new(eal, &spec, ports, &macs, neighbours)?;
    let control = dut.forwarder.control();
    out::note(&format!("forwarding {} between {}; Ctrl-C ends it", spec.describe(), args.ports.join(" and ")));
    let begun = Instant::now();
    let over = || stop.requested() || duration.is_some_and(|d| begun.elapsed() >= d);
    let mut last = Snapshot::default();
    while !over() {
        // While frames come, peers may not take their memory away (see `Parked`). In every lull polling stops for a
        // moment, and who came or went meanwhile is let in or out.
        let parked = eal.park_interrupts();
        let lull = AtomicBool::new(false);
        last = eal.scope(|s| -> Result<Snapshot, Failure> {
            let job = s.launch(TESTER_LCORE, || dut.forwarder.run(&lull))?;
            let (mut seen, mut since) = (last.received(), Instant::now());
            while !over() && since.elapsed() < LULL {
                std::thread::sleep(Duration::from_millis(20));
                let now = control.snapshot(Duration::from_secs(1)).map_or(seen, |s| s.received());
                if now != seen {
                    (seen, since) = (now, Instant::now());
                }
            }
            lull.store(true, Ordering::Relaxed);
            Ok(job.join()?)
        })?;
        drop(parked);
        std::thread::sleep(Duration::from_millis(1));
        // Over a virtio server, asking for the link is what takes a waiting peer in.
        dut.ask_links();
    }
    let text = if args.json { counters_json(&last, &args.ports)? } else { counters_text(&last, &args.ports) };
    out::print(&text);
    Ok(Exit::Passed)
}

fn open(eal: &'static Eal, specs: &[PortSpec], args: &ForwardArgs, stop: &Stop) -> Result<Vec<Port>, Failure> {
    let d = args.machine.descriptors;
    let open = |spec: &PortSpec| {
        let pool = Mempool::new(eal, "ports", (4 * d + 8192).next_power_of_two() - 1, MAX_FRAME as u16, 512)?;
        let mut config = PortConfig::new(&pool);
        (config.rx_desc, config.tx_desc) = (d as u16, d as u16);
        // A DUT waits for its tester as long as it takes; Ctrl-C ends that too.
        config.peer_timeout = Duration::from_secs(24 * 3600);
        config.cancel = Some(stop.shared());
        Ok(Port::open(eal, spec, &config)?)
    };
    specs.iter().map(open).collect()
}

/// The port's own address, or one made up where it has none.
fn mac(port: &Port, n: usize) -> MacAddr {
    match port.mac() {
        [0, 0, 0, 0, 0, 0] => MacAddr([0x02, b'L', b'R', 0, 1, n as u8]),
        own => MacAddr(own),
    }
}

fn neighbours(texts: &[String]) -> Result<[MacAddr; 2], Failure> {
    match texts {
        [] => Ok([0, 1].map(|n| MacAddr([0x02, b'L', b'R', 0, 0, n]))),
        [a, b] => Ok([a.parse().map_err(Failure::usage)?, b.parse().map_err(Failure::usage)?]),
        _ => Err(Failure::usage("--neighbour: must be two MAC addresses, of the stations behind ports 0 and 1")),
    }
}

fn route(text: &str) -> Result<Route, Failure> {
    let err = |why: String| {
        Failure::usage(format!(
            "--route {text:?}: {why}; must be PREFIX,PORT,MAC like 198.19.0.0/16,1,02:00:00:00:00:02"
        ))
    };
    let [prefix, port, mac] = text.split(',').collect::<Vec<_>>()[..] else {
        return Err(err("has not three parts".into()));
    };
    Ok(Route {
        prefix: prefix.parse().map_err(|e| err(format!("{e}")))?,
        port: port.trim().parse().map_err(|_| err(format!("{port:?} is no port number")))?,
        dst_mac: mac.parse().map_err(|e| err(format!("{e}")))?,
        src_mac: None,
    })
}

fn counters_text(s: &Snapshot, ports: &[String]) -> String {
    let mut text = format!("{:<40} {:>16} {:>16}\n", "port", "rx frames", "tx frames");
    for (i, name) in ports.iter().enumerate() {
        let rx: u64 = s.rx.iter().filter(|r| r.port == i).map(|r| r.frames).sum();
        text += &format!("{name:<40} {rx:>16} {:>16}\n", s.tx.get(i).copied().unwrap_or(0));
    }
    let drops: Vec<_> = s.drops.iter().filter(|d| d.1 > 0).collect();
    if !drops.is_empty() {
        text += &format!("\n{:<40} {:>16}\n", "drop reason", "frames");
        for (reason, n) in drops {
            text += &format!("{:<40} {n:>16}\n", reason.name());
        }
    }
    for (name, n) in s.counters.iter().filter(|c| c.1 > 0) {
        text += &format!("{name:<40} {n:>16}\n");
    }
    text +=
        &format!("\n{:<20} {:>14} {:>16} {:>14} {:>14}\n", "node", "calls", "vectors", "clocks/vector", "vectors/call");
    for node in &s.nodes {
        let per = |a: u64, b: u64| if b == 0 { 0.0 } else { a as f64 / b as f64 };
        text += &format!(
            "{:<20} {:>14} {:>16} {:>14.1} {:>14.2}\n",
            node.name,
            node.calls,
            node.vectors,
            per(node.clocks, node.vectors),
            per(node.vectors, node.calls)
        );
    }
    text
}

fn counters_json(s: &Snapshot, ports: &[String]) -> Result<String, Failure> {
    let port = |(i, name): (usize, &String)| {
        let rx: u64 = s.rx.iter().filter(|r| r.port == i).map(|r| r.frames).sum();
        json!({ "port": name, "rx_frames": rx, "tx_frames": s.tx.get(i).copied().unwrap_or(0) })
    };
    let node = |n: &dataplane::node::NodeStats| json!({ "node": n.name, "calls": n.calls, "vectors": n.vectors, "clocks": n.clocks });
    let drops: serde_json::Map<_, _> =
        s.drops.iter().filter(|d| d.1 > 0).map(|(r, n)| (r.name().to_owned(), n.into())).collect();
    let counters: serde_json::Map<_, _> =
        s.counters.iter().map(|(name, n)| ((*name).to_owned(), (*n).into())).collect();
    let value = json!({
        "ports": ports.iter().enumerate().map(port).collect::<Vec<_>>(),
        "drops": drops,
        "counters": counters,
        "nodes": s.nodes.iter().map(node).collect::<Vec<_>>(),
        "held": s.held,
        "busy_polls": s.busy_polls,
        "idle_polls": s.idle_polls,
    });
    serde_json::to_string_pretty(&value).map_err(Failure::failed)
}

#[cfg(test)]
mod tests {
    use dataplane::l3::L3Config;

    use super::*;

    #[test]
    fn routes_read_as_documented() {
        let r = route("198.19.0.0/16,1,02:00:00:00:00:02").unwrap();
        assert_eq!((r.prefix.to_string(), r.port), ("198.19.0.0/16".to_owned(), 1));
        for bad in [
            "",
            "198.19.0.0/16",
            "198.19.0.0/16,x,02:00:00:00:00:02",
            "1.2.3.4/33,0,02:00:00:00:00:02",
            "0.0.0.0/0,0,zz",
        ] {
            assert!(route(bad).unwrap_err().text.contains("must be PREFIX,PORT,MAC"), "{bad}");
        }
    }

    #[test]
    fn benchmark_routes_are_used_without_any() {
        assert!(L3Config::benchmark(neighbours(&[]).unwrap()).validate(2).is_ok());
        assert!(neighbours(&["02:00:00:00:00:01".into()]).is_err());
    }
}
