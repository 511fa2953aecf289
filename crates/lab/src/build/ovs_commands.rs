//! Commands of Open vSwitch.

use std::time::Duration;

use super::context::{port_name, Context};
use crate::{line::CommandLine, memory::NIC_RING, topology::End};

/// How long its ports may take to be configured, and to find their sockets: it looks for them about once a second.
pub(super) const PORTS: Duration = Duration::from_secs(30);

/// Adds a port, a vhost-user socket or a NIC, to the command that makes a bridge. `end` is the switch's, `peer` what is joined to it.
pub(super) fn add_port(context: &Context<'_>, add: CommandLine, bridge: &str, end: &End, peer: &End) -> CommandLine {
    let name = port_name(peer);
    let (kind, own) = match context.nic(peer) {
        Some(nic) => {
            let queues = format!("options:n_rxq={}", context.options.queues);
            let rings = format!("options:n_rxq_desc={NIC_RING} options:n_txq_desc={NIC_RING}");
            let rings = rings.split(' ').map(str::to_owned);
            ("dpdk", [format!("options:dpdk-devargs={nic}"), queues].into_iter().chain(rings).collect())
        }
        None => ("dpdkvhostuserclient", vec![format!("options:vhost-server-path={}", context.socket(peer))]),
    };
    let add = add.with(format!("-- add-port {bridge} {name} -- set Interface {name} type={kind}").split(' ')).with(own);
    add.with([
        format!("ofport_request={}", end.port),
        format!("other_config:pmd-rxq-affinity={}", affinity(context, end)),
    ])
}

/// Which thread polls each queue of a port: even ports begin at the second thread, further queues two threads on, as in the
/// two-VM document, 4.1.4. Where that leaves threads without a queue, all queues of all switches take the threads in turn.
pub(super) fn threads(context: &Context<'_>, port: &End) -> Vec<(u32, u32)> {
    let (pmds, queues) = (&context.cpus.pmds, context.options.queues as usize);
    let ports = || context.topology.switch.iter().flat_map(|switch| context.topology.ports_of(&switch.name));
    let before = ports().position(|other| other == port).unwrap_or(0) * queues;
    let in_turn = pmds.len() > 2 * queues;
    let first = (port.port as usize + 1) % 2;
    let of = |queue: u32| {
        let queue_place = queue as usize;
        let place = if in_turn { before + queue_place } else { first + 2 * queue_place };
        pmds.get(place % pmds.len().max(1)).map(|cpu| (queue, *cpu))
    };
    (0..context.options.queues).filter_map(of).collect()
}

fn affinity(context: &Context<'_>, port: &End) -> String {
    threads(context, port).iter().map(|(queue, cpu)| format!("{queue}:{cpu}")).collect::<Vec<_>>().join(",")
}

pub(super) fn vsctl(context: &Context<'_>, arguments: &str) -> CommandLine {
    let to = format!("--db=unix:{}", context.file("db.sock"));
    CommandLine::words("ovs-vsctl").with([to, "--timeout=15".to_owned()]).with(arguments.split(' '))
}

pub(super) fn appctl(context: &Context<'_>, command: &str) -> CommandLine {
    CommandLine::words("ovs-appctl -t").with([context.file("vswitchd.ctl")]).with(command.split(' ').map(str::to_owned))
}

pub(super) fn ofctl(context: &Context<'_>, bridge: &str, command: &str) -> CommandLine {
    let to = format!("unix:{}", context.file(&format!("{bridge}.mgmt")));
    // A thousand flows, beside a dozen programs that poll on the switch's CPU.
    CommandLine::words("ovs-ofctl --timeout=60 -O OpenFlow14").with([command.to_owned(), to])
}
