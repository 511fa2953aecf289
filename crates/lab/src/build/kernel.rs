//! The kernel of this machine as a bridge or a router, in a network namespace of its own between two veth pairs.
//!
//! ```text
//!   the lab's namespace       the node's namespace
//!        t0 ---------------------- d0 \
//!                                      bridge br0, or routes
//!        t1 ---------------------- d1 /
//! ```

use std::time::Duration;

use super::context::{run, Context, Part};
use crate::{
    counters::{Place, Source},
    line::CommandLine,
    step::{Question, Step, Want},
    topology::{End, Kernel, KernelRole, Topology, TESTER},
};

/// How long the kernel may take to see a carrier: until then it drops frames.
const CARRIER: Duration = Duration::from_secs(10);

/// Offloads would merge frames and leave checksums empty: the node must see what was sent.
const OFFLOADS: &str = "tso off gso off gro off tx off rx off";

/// The tester's interface behind its port.
pub(super) fn tester_interface(port: u32) -> String {
    format!("t{port}")
}

/// Locally administered addresses: `02:4c:52` and the end of the link.
fn tester_mac(port: u32) -> String {
    format!("02:4c:52:00:00:0{port}")
}

fn node_mac(port: u32) -> String {
    format!("02:4c:52:00:01:0{port}")
}

/// Where the tester's frames into this port of a kernel node go: to a router's own address. `None` for a bridge.
pub(super) fn next_mac(topology: &Topology, end: &End) -> Option<String> {
    let router = topology.kernel.iter().any(|node| node.name == end.node && node.role == KernelRole::Router);
    router.then(|| node_mac(end.port))
}

/// All kernel nodes.
pub(super) fn nodes(context: &Context<'_>) -> Part {
    let mut part = Part::default();
    for node in &context.topology.kernel {
        part.steps.extend(steps(context.topology, node));
        let ns = &node.name;
        for port in 0..2 {
            part.steps.push(Step::Await(carrier(
                &format!("ip -n {ns} link show dev d{port}"),
                &format!("{ns}: carrier of d{port}"),
            )));
        }
        let line = CommandLine::words(&format!("ip -n {ns} -s -j link show"));
        let ends = (0..2).map(|port| End::new(ns, port).into()).collect();
        part.counters.push(Source { node: ns.clone(), place: Place::Kernel { line }, ends });
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

fn steps(topology: &Topology, node: &Kernel) -> Vec<Step> {
    let ns = &node.name;
    let mut steps = vec![run(&format!("ip netns add {ns}"))];
    steps.push(inside(ns, "sysctl -qw net.ipv6.conf.all.disable_ipv6=1 net.ipv6.conf.default.disable_ipv6=1"));
    steps.push(run("sysctl -qw net.ipv6.conf.all.disable_ipv6=1 net.ipv6.conf.default.disable_ipv6=1"));
    for port in 0..2 {
        let Some(tester) = topology.peer(&End::new(ns, port)).map(|end| end.port) else { continue };
        let (name, mac, own) = (tester_interface(tester), tester_mac(tester), node_mac(port));
        steps.push(run(&format!(
            "ip link add {name} address {mac} type veth peer name d{port} address {own} netns {ns}"
        )));
        steps.push(run(&format!("ethtool -K {name} {OFFLOADS}")));
        steps.push(inside(ns, &format!("ethtool -K d{port} {OFFLOADS}")));
        steps.push(run(&format!("ip link set {name} up")));
        steps.push(run(&format!("ip -n {ns} link set d{port} up")));
    }
    match node.role {
        KernelRole::Bridge => {
            let text = "link add br0 type bridge stp_state 0 mcast_snooping 0;link set d0 master br0;link set d1 master br0;link set br0 up";
            steps.extend(text.split(';').map(|line| run(&format!("ip -n {ns} {line}"))));
        }
        KernelRole::Router => {
            steps.push(inside(
                ns,
                "sysctl -qw net.ipv4.ip_forward=1 net.ipv4.conf.all.rp_filter=0 net.ipv4.conf.all.send_redirects=0 \
                 net.ipv4.conf.d0.rp_filter=0 net.ipv4.conf.d1.rp_filter=0 net.ipv4.conf.d0.send_redirects=0 \
                 net.ipv4.conf.d1.send_redirects=0",
            ));
            for port in 0..2 {
                let tester = topology.peer(&End::new(ns, port)).map_or(port, |end| end.port);
                let (mac, net) = (tester_mac(tester), 18 + tester);
                steps.push(run(&format!("ip -n {ns} addr add 10.255.{port}.1/30 dev d{port}")));
                steps
                    .push(run(&format!("ip -n {ns} neigh add 10.255.{port}.2 lladdr {mac} dev d{port} nud permanent")));
                steps.push(run(&format!("ip -n {ns} route add 198.{net}.0.0/16 via 10.255.{port}.2")));
            }
        }
    }
    steps
}

fn carrier(line: &str, what: &str) -> Question {
    Question {
        what: what.to_owned(),
        line: CommandLine::words(line),
        want: Want::Holds(vec!["state UP".to_owned()]),
        within: CARRIER,
        remedy: "the kernel did not report the link of a veth pair as up".to_owned(),
        only_while_measured: false,
    }
}

fn inside(ns: &str, line: &str) -> Step {
    run(&format!("ip netns exec {ns} {line}"))
}
