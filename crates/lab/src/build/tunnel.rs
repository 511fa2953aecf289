//! VXLAN tunnel end points in Open vSwitch: the port of the tester is in a bridge of its own, which has the address that
//! tunnelled frames are sent to, and the switch has a tunnel port in its place (ONP 2.1 report, 13).
//!
//! ```text
//!   tester:0 --- phy0 - br0_u1 (2.2.2.1/24)  ~ tunnel ~  port 1 of br0
//! ```

use super::{
    context::{run, Context},
    kernel::tester_mac,
    ovs_commands::{add_port, appctl, ofctl, vsctl, PORTS},
};
use crate::{
    step::{Question, Step, Want},
    topology::{End, Switch, Topology, Tunnel},
};

/// How long a neighbour stays, seconds: the default of 15 minutes is shorter than a long trial.
const NEIGHBOUR_S: u32 = 3600;

/// The bridge under a tunnel: no node can have its name, since names have no `_`.
pub(super) fn underlay(switch: &Switch, tunnel: &Tunnel) -> String {
    format!("{}_u{}", switch.name, tunnel.port)
}

/// Where the tester's frames to this end of a cable go: to a tunnel's own address. `None` if it is not a tunnel's.
pub(super) fn next_mac(topology: &Topology, end: &End) -> Option<String> {
    topology.switch_named(&end.node)?.tunnel_at(end.port).map(mac)
}

fn mac(tunnel: &Tunnel) -> String {
    format!("02:4c:52:00:02:{:02x}", tunnel.port)
}

/// The command that adds a tunnel and the bridge under it.
pub(super) fn add(context: &Context<'_>, switch: &Switch, tunnel: &Tunnel, peer: &End) -> Step {
    let Tunnel { port, vni, local, remote } = tunnel;
    let (bridge, under) = (&switch.name, underlay(switch, tunnel));
    let line = vsctl(
        context,
        &format!(
            "add-br {under} -- set Bridge {under} datapath_type=netdev fail-mode=secure other_config:hwaddr=\"{}\"",
            mac(tunnel)
        ),
    );
    let line = add_port(context, line, &under, &End::new(bridge, *port), peer).with(
        format!(
            "-- add-port {bridge} vxlan{port} -- set Interface vxlan{port} type=vxlan options:key={vni} \
             options:local_ip={local} options:remote_ip={remote} ofport_request={port}"
        )
        .split(' '),
    );
    Step::Run(line)
}

/// What the kernel and the switch are told of all tunnels of a switch; lost when the switch is started again.
pub(super) fn addresses(context: &Context<'_>, switch: &Switch) -> Vec<Step> {
    let mut steps = Vec::new();
    for tunnel in &switch.tunnel {
        let Tunnel { port, local, remote, .. } = tunnel;
        let under = underlay(switch, tunnel);
        let peer = context.topology.peer(&End::new(&switch.name, *port));
        let neighbour = tester_mac(peer.map_or(0, |peer| peer.port));
        // Tunnelled frames and nothing else: what the kernel sends by itself would be counted on the way.
        for flow in [format!("in_port={port},actions=LOCAL"), format!("udp,in_port=LOCAL,actions=output:{port}")] {
            steps.push(Step::Run(ofctl(context, &under, "add-flow").with([flow])));
        }
        steps.extend([
            run(&format!("ip addr replace {local}/24 dev {under}")),
            run(&format!("ip link set {under} up")),
            Step::Await(route(context, tunnel, &under)),
            Step::Run(appctl(context, &format!("tnl/arp/set {under} {remote} {neighbour}"))),
            Step::Run(appctl(context, &format!("tnl/neigh/aging {NEIGHBOUR_S}"))),
        ]);
    }
    steps
}

/// What shows that the tunnels are there.
pub(super) fn checks(context: &Context<'_>, switch: &Switch) -> Vec<Question> {
    let one = |tunnel: &Tunnel| {
        let under = underlay(switch, tunnel);
        let neighbour = Question {
            what: format!("{under}: the tunnel's other end is known"),
            line: appctl(context, "tnl/arp/show"),
            want: Want::Holds(vec![tunnel.remote.to_string()]),
            ..route(context, tunnel, &under)
        };
        [route(context, tunnel, &under), neighbour]
    };
    switch.tunnel.iter().flat_map(one).collect()
}

fn route(context: &Context<'_>, tunnel: &Tunnel, under: &str) -> Question {
    let [a, b, c, _] = tunnel.local.octets();
    Question {
        what: format!("{under}: the switch has the route of the tunnel"),
        line: appctl(context, "ovs/route/show"),
        want: Want::Holds(vec![format!("{a}.{b}.{c}.0/24dev{under}")]),
        within: PORTS,
        remedy: format!("look at ip addr show dev {under}"),
        logs: vec!["vswitchd".to_owned()],
        only_while_measured: false,
        again: Vec::new(),
    }
}
