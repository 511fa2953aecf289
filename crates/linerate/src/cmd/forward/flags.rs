//! The flags of `forward` over its configuration file.

use std::{fmt, str::FromStr};

use failure::Failure;
use packet::MacAddr;
use rig::host_plan::read_data_plane;
use runner::{
    config::read_toml,
    forward::{Config, ForwardOptions},
};

use crate::cli::{forward::ForwardArgs, groups::RealtimeArg};

/// The file, if one is given, with the flags over it.
///
/// # Errors
///
/// (usage) for a file or a flag that cannot be read, and when neither names a function.
pub fn config(args: &ForwardArgs) -> Result<Config, Failure> {
    let mut config = match &args.config {
        Some(path) => read_toml(path, &[])?,
        None => Config::default(),
    };
    if let Some(text) = &args.function {
        config.function.kind = text.parse().map_err(Failure::usage)?;
    } else if args.config.is_none() {
        return Err(Failure::usage(
            "forward: give a function (null, l2, l2:macswap, bridge, l3, mpls or vxlan), --config FILE, or a request to a \
             data plane that runs (show, route, load, ...: see --help)",
        ));
    }
    config.ports.extend_from_slice(&args.ports);
    args.queues.over(&mut config.cpus, &mut config.rx_queues, &mut config.queue_map, &mut config.tx);
    if let (true, Some(file)) = (config.cpus.is_empty(), &args.machine.core_plan) {
        config.cpus = read_data_plane(file)?;
    }
    if !args.mtu.is_empty() {
        config.mtu.clone_from(&args.mtu);
    }
    if let Some(impair) = &args.impair {
        config.impair.clone_from(impair);
    }
    let f = &mut config.function;
    add("--address", &args.addresses, &mut f.addresses)?;
    add("--route", &args.routes, &mut f.routes)?;
    add("--neighbour", &args.neighbours, &mut f.neighbours)?;
    add("--label", &args.labels, &mut f.labels)?;
    add("--network", &args.networks, &mut f.networks)?;
    add("--remote", &args.remotes, &mut f.remotes)?;
    add("--fdb", &args.fdb, &mut f.fdb)?;
    config.fill_benchmark_tables(stations(&args.stations)?)?;
    Ok(config)
}

/// What only flags say.
///
/// # Errors
///
/// (usage) for CPUs of a tester, which `forward` does not have, and for a duration that is not one.
pub fn options(args: &ForwardArgs) -> Result<ForwardOptions, Failure> {
    for (flag, cpu) in [("--tester-cpu", args.machine.tester_cpu), ("--dut-cpu", args.machine.dut_cpu)] {
        if let Some(cpu) = cpu {
            return Err(Failure::usage(format!("{flag} {cpu}: forward has no tester: give --cpus {cpu}")));
        }
    }
    if let Some(pid) = args.machine.dut_pid.first() {
        return Err(Failure::usage(format!("--dut-pid {pid}: forward has no tester: leave it out")));
    }
    if args.machine.require_audit {
        return Err(Failure::usage("--require-audit: forward measures nothing: see linerate host audit"));
    }
    if args.machine.realtime == RealtimeArg::On {
        return Err(Failure::usage(
            "--realtime on: only trials use real-time priority: forward polls without end, and would take its CPUs from \
             the rest of the machine",
        ));
    }
    Ok(ForwardOptions {
        machine: args.machine.options()?,
        no_clocks: args.no_clocks,
        name: args.name.clone(),
        duration: args.duration.as_deref().map(units::parse_duration).transpose()?,
        json: args.json,
        check_pools: args.check_pools,
    })
}

/// Adds the texts of a flag to a list.
fn add<T: FromStr<Err: fmt::Display>>(flag: &str, texts: &[String], list: &mut Vec<T>) -> Result<(), Failure> {
    for text in texts {
        list.push(text.parse().map_err(|e| Failure::usage(format!("{flag}: {e}")))?);
    }
    Ok(())
}

fn stations(texts: &[String]) -> Result<Option<[MacAddr; 2]>, Failure> {
    let mac = |text: &String| text.parse().map_err(|e| Failure::usage(format!("--stations: {e}")));
    match texts {
        [] => Ok(None),
        [a, b] => Ok(Some([mac(a)?, mac(b)?])),
        _ => Err(Failure::usage("--stations: must be two MAC addresses, of the stations behind ports 0 and 1")),
    }
}
