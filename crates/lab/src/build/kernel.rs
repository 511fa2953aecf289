//! The kernel of this machine as a bridge or a router, in a network namespace of its own between two veth pairs.
//!
//! ```text
//!   the lab's namespace       the node's namespace
//!        t0 ---------------------- d0 \
//!                                      bridge br0, or routes
//!        t1 ---------------------- d1 /
//! ```

use std::time::Duration;

use super::{
    context::{run, Context, Part},
    role,
};
use crate::{
    counters::{Place, Source},
    line::CommandLine,
    step::{Question, Step, Want},
    topology::{End, Kernel, KernelRole, Topology, TESTER},
};

/// How long the kernel may take to see a carrier: until then it drops frames.
const CARRIER: Duration = Duration::from_secs(30);

/// Offloads would merge frames and leave checksums empty: the node must see what was sent.
const OFFLOADS: &str = "tso off gso off gro off tx off rx off";

/// The tester's interface behind its port.
pub(super) fn tester_interface(port: u32) -> String {
    format!("t{port}")
}

/// Locally administered addresses: `02:4c:52` and the end of the link.
pub(super) fn tester_mac(port: u32) -> String {
    format!("02:4c:52:00:00:0{port}")
}

pub(super) fn node_mac(port: u32) -> String {
    format!("02:4c:52:00:01:0{port}")
}

/// Where the tester's frames into this port of a kernel node go: to a router's own address. `None` for a bridge.
pub(super) fn next_mac(topology: &Topology, end: &End) -> Option<String> {
    let router = topology.kernel.iter().any(|node| node.name == end.node && node.role == KernelRole::Router);
    router.then(|| node_mac(end.port))
}

/// The tester's ports behind the two ports of a node, with their addresses.
pub(super) fn testers(topology: &Topology, node: &Kernel) -> Vec<(u32, String)> {
    let of = |port| topology.peer(&End::new(&node.name, port)).map_or(port, |end| end.port);
    [0, 1].map(of).map(|port| (port, tester_mac(port))).into()
}

/// The interfaces of kernels in virtual machines: QEMU joins the other ends.
pub(super) fn taps(context: &Context<'_>) -> Part {
    let mut part = Part::default();
    if context.options.kernels.accelerator().is_none() || context.topology.kernel.is_empty() {
        return part;
    }
    part.steps.push(run("sysctl -qw net.ipv6.conf.all.disable_ipv6=1 net.ipv6.conf.default.disable_ipv6=1"));
    for port in 0..2 {
        let (name, mac) = (tester_interface(port), tester_mac(port));
        part.steps.push(run(&format!("ip tuntap add {name} mode tap")));
        part.steps.push(run(&format!("ip link set {name} address {mac} up")));
    }
    part
}

/// All kernel nodes on this machine, and what the tester waits for.
pub(super) fn nodes(context: &Context<'_>) -> Part {
    let mut part = Part::default();
    if context.options.kernels.accelerator().is_none() {
        for node in &context.topology.kernel {
            on_this_machine(context, node, &mut part);
        }
    }
    if !context.topology.kernel.is_empty() {
        for port in 0..2 {
            let name = tester_interface(port);
            part.steps.push(Step::Await(carrier(
                &format!("ip link show dev {name}"),
                &format!("{TESTER}: carrier of {name}"),
            )));
        }
    }
    part
}

fn on_this_machine(context: &Context<'_>, node: &Kernel, part: &mut Part) {
    let (topology, ns) = (context.topology, &node.name);
    let place = role::Place::Namespace { name: ns, dir: context.dir };
    let no_ipv6 = "sysctl -qw net.ipv6.conf.all.disable_ipv6=1 net.ipv6.conf.default.disable_ipv6=1";
    if node.role == KernelRole::Ovs {
        part.steps.push(run("modprobe openvswitch"));
    }
    part.steps.extend([run(&format!("ip netns add {ns}")), Step::Run(place.exec(no_ipv6)), run(no_ipv6)]);
    let testers = testers(topology, node);
    for (port, (tester, mac)) in testers.iter().enumerate() {
        let (name, own) = (tester_interface(*tester), node_mac(u32::try_from(port).unwrap_or(0)));
        let veth = format!("ip link add {name} address {mac} type veth peer name d{port} address {own} netns {ns}");
        part.steps.extend([
            run(&veth),
            run(&format!("ethtool -K {name} {OFFLOADS}")),
            Step::Run(place.exec(&format!("ethtool -K d{port} {OFFLOADS}"))),
            run(&format!("ip link set {name} up")),
            Step::Run(place.ip(&format!("link set d{port} up"))),
        ]);
    }
    part.steps.extend(role::steps(&place, node.role, &testers));
    for port in 0..2 {
        let line = place.ip(&format!("link show dev d{port}")).to_string();
        part.steps.push(Step::Await(carrier(&line, &format!("{ns}: carrier of d{port}"))));
    }
    let checks = role::checks(&place, node.role);
    part.steps.extend(checks.iter().cloned().map(Step::Await));
    part.checks.extend(checks);
    let ends = (0..2).map(|port| End::new(ns, port).into()).collect();
    part.counters.push(Source { node: ns.clone(), place: Place::Kernel { line: place.ip("-s -j link show") }, ends });
}

fn carrier(line: &str, what: &str) -> Question {
    Question {
        what: what.to_owned(),
        line: CommandLine::words(line),
        want: Want::Holds(vec!["state UP".to_owned()]),
        within: CARRIER,
        remedy: "the kernel did not report the link of a veth pair as up".to_owned(),
        logs: Vec::new(),
        only_while_measured: false,
        again: Vec::new(),
    }
}
