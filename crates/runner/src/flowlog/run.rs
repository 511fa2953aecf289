//! A flow logger from its ports' opening to its final report.

use std::sync::Arc;

use control::Server;
use dpdk::{Eal, Mempool, Port, PortSpec, Progress, Tsc};
use failure::{Failure, Stop};
use flow::Source;
use rig::{
    device::{port_mac, Logger},
    Claim, PollingCpus,
};

use super::{
    ending,
    mtu::{mtus, note_shorter},
    serving::{self, Serving},
    spec::reads_capture,
    spec::FlowlogSpec,
};
use crate::{
    output::{Note, Output},
    poll::poll,
    pools::check_all_returned,
    ports::{are_sockets, note_fallbacks, note_long_frames, note_unspread, LongFrames, PortOptions},
    run_info::RunInfo,
    supervisor::{Parts, Supervisor},
};

/// Runs the logger until it is stopped, its time is up or its captures are read.
///
/// # Errors
///
/// (machine) for what DPDK or a port lacks, and for an address that is taken.
pub fn run(spec: &FlowlogSpec, output: Output, stop: &Stop) -> Result<(), Failure> {
    let tables_mib = spec.logger().tables_mib(spec.cpus.len());
    let _claims = Claim::all(&spec.ports)?;
    let polling = PollingCpus::register(&spec.cpus);
    polling.warnings().iter().for_each(|line| (output.note)(line));
    let eal = rig::start_forward_eal(&spec.machine(), tables_mib, &spec.cpus, &spec.ports)?;
    let mut pools = Vec::new();
    match log(spec, output, eal, stop, &mut pools) {
        Err(_) if stop.requested() && pools.is_empty() => return Ok(()),
        logged => logged?,
    }
    if spec.check_pools {
        check_all_returned(&pools)?;
    }
    Ok(())
}

fn log(
    spec: &FlowlogSpec,
    output: Output,
    eal: &'static Eal,
    stop: &Stop,
    pools: &mut Vec<Mempool>,
) -> Result<(), Failure> {
    let Output { note, draw, mut report } = output;
    let config = &spec.config;
    // What is refused is refused before an interface is touched.
    let name = Some(config.name.as_str()).filter(|name| !name.is_empty());
    let (server, requests) = Server::start("flowlog", name)?;
    let name = server.path().file_stem().map_or_else(String::new, |stem| stem.to_string_lossy().into_owned());
    serving::check_addresses(spec)?;
    if !config.once && spec.ports.iter().any(reads_capture) {
        note("a capture is read again and again, each time as new frames: --once reads it once");
    }
    let mtu = mtus(config.mtu, &spec.ports);
    let port_options = PortOptions {
        descriptors: config.descriptors,
        rx_queues: config.rx_queues,
        lcores: spec.cpus.len(),
        mtu: &mtu,
        once: config.once,
    };
    let ports = port_options.open(eal, &spec.ports, stop, pools)?;
    note_fallbacks(&config.ports, &ports, &note);
    note_unspread(&spec.ports, &ports, config.rx_queues, &note);
    note_long_frames(&spec.ports, &ports, LongFrames::Counted, &note);
    note_taken(spec, &ports, &note);
    note_shorter(&spec.ports, &ports, &mtu, config.mtu.is_some(), &note);
    if spec.may_split_biflows() && ports.iter().any(|port| !port.rss().symmetric) {
        note(
            "several receive queues with --biflow on: not every device reports that both directions of a conversation \
             reach the same queue. Where they do not, each direction is recorded as a flow",
        );
    }
    if spec.are_ways_apart() {
        note(
            "each record has one direction, since many collectors read no more of a biflow (RFC 5103); --biflow on joins \
             both, for collectors that do",
        );
    }
    let interfaces = spec.interfaces();
    let Logger { mut loops, ports, logged, ended } =
        Logger::new(eal, &spec.logger(), ports, &config.ports, interfaces, &spec.polled)?;
    logged.look(&ports, &[]);
    let serving = Serving::start(spec, &name, &logged, ended, &note)?;
    note(&format!(
        "{name}: logging flows {}; {}{}; Ctrl-C ends it",
        paths(&config.ports, |port| spec.egress(port)),
        serving.describe(),
        server.path().display()
    ));
    let info = RunInfo {
        function: "flow logger".into(),
        title: format!("flowlog {name}"),
        macs: ports.iter().enumerate().map(|(n, port)| port_mac(port, n)).collect(),
        sockets: are_sockets(&spec.ports),
        cpus: spec.cpus.clone(),
        polled: spec.polled.clone(),
        mtu,
        duration: spec.duration,
        once: config.once,
    };
    let controls = loops.iter().map(dataplane::Forwarder::control).collect();
    let (seen, tell, watched) = (Arc::clone(&logged), Arc::clone(&note), draw.is_some());
    let each_second = Box::new(move |ports: &[_], lcores: &[_]| {
        seen.look(ports, lcores).iter().for_each(|line| tell(line));
        if watched {
            ending::table_totals(&seen.totals())
        } else {
            String::new()
        }
    });
    let clock = Tsc::new(eal);
    let mut supervisor =
        Supervisor::new(Parts { plane: None, ports, info, controls, requests, clock, each_second, draw });
    let polled = poll(eal, &mut loops, &mut supervisor, stop);
    // What was counted is reported however polling ended.
    logged.look(supervisor.ports(), &supervisor.snapshots());
    let progress = |(name, port): (&String, &Port)| Some((name.clone(), Arc::clone(port.progress()?)));
    let captures: Vec<_> = config.ports.iter().zip(supervisor.ports()).filter_map(progress).collect();
    for (name, what) in captures.iter().filter_map(|(name, capture)| Some((name, capture.left_out()?))) {
        note(&format!("port {name}: {what}"));
    }
    // At their usual pace, UDP collectors would not get all records in time.
    logged.hasten(ending::LAST_EXPORT).iter().for_each(|event| note(&event.to_string()));
    let whole = ending::flush(&mut loops, &logged);
    let late = ending::waited_for(&logged);
    if !late.is_empty() {
        let most = ending::LAST_EXPORT.as_secs();
        note(&format!("waiting up to {most} s for {}; a second signal gives up", late.join(", ")));
    }
    let sinks = logged.finish_export(ending::LAST_EXPORT);
    drop((serving, server));
    report(&format!(
        "{}{}{}",
        supervisor.final_report(false)?,
        ending::table_totals(&logged.totals()),
        ending::export_totals(&sinks, whole)
    ));
    polled?;
    // What was read before counts, and has been reported.
    let broke_off = |(name, capture): &(String, Arc<Progress>)| Some(format!("port {name}: {}", capture.broke_off()?));
    let broke_off: Vec<_> = captures.iter().filter_map(broke_off).collect();
    if !broke_off.is_empty() {
        return Err(Failure::failed(broke_off.join("; ")));
    }
    // A live logger goes on without a collector, and says so. Who reads a capture once wants its records.
    let lost = sinks.iter().filter(|sink| config.once && sink.totals.dropped > 0);
    let lost: Vec<_> =
        lost.map(|s| format!("{}: {} of {} records lost", s.name, s.totals.dropped, s.totals.records)).collect();
    if lost.is_empty() {
        Ok(())
    } else {
        Err(Failure::failed(lost.join("; ")))
    }
}

/// Between which ports frames pass.
fn paths(ports: &[String], egress: impl Fn(usize) -> Option<usize>) -> String {
    let path = |(n, port): (usize, &String)| match egress(n) {
        None => Some(format!("received by {port}")),
        Some(to) if to == n => Some(format!("reflected by {port}")),
        Some(to) => ports.get(to).filter(|_| n < to).map(|to| format!("between {port} and {to}")),
    };
    ports.iter().enumerate().filter_map(path).collect::<Vec<_>>().join(", ")
}

/// Says of which interfaces the kernel gets no frames any more, although only their frames are wanted.
fn note_taken(spec: &FlowlogSpec, ports: &[Port], note: &Note) {
    for (n, (port, of)) in ports.iter().zip(&spec.ports).enumerate() {
        let PortSpec::Eth { iface, .. } = of else { continue };
        if port.driver() == "net_af_xdp" && spec.egress(n).is_none() {
            note(&taken(port.name(), iface));
        }
    }
}

fn taken(port: &str, iface: &str) -> String {
    format!(
        "port {port}: AF_XDP takes each frame from the kernel: this host receives nothing by {iface} while the logger runs. To \
         listen only: --port eth:{iface},driver=af_packet"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_of_ports_are_told() {
        let ports = ["a", "b", "c"].map(str::to_owned);
        let by = |reflect| move |port| dataplane::flowlog::egress(port, 3, reflect);
        assert_eq!(paths(&ports, by(false)), "between a and b, received by c");
        assert_eq!(paths(&ports, by(true)), "between a and b, reflected by c");
        assert_eq!(paths(&ports, |_| None), "received by a, received by b, received by c");
    }

    #[test]
    fn an_interface_that_is_taken_is_told_with_what_leaves_it() {
        insta::assert_snapshot!(taken("eth:eth0", "eth0"), @"port eth:eth0: AF_XDP takes each frame from the kernel: this host receives nothing by eth0 while the logger runs. To listen only: --port eth:eth0,driver=af_packet");
    }
}
