//! Open vSwitch with DPDK: a private database and directory, vhost-user ports in client mode, flows by OpenFlow.

use std::time::Duration;

use super::{
    context::{await_file, port_name, Context, Part},
    ovs_commands::{add_port, appctl, ofctl, threads, vsctl, PORTS},
    tunnel,
};
use crate::{
    counters::{Counted, Place, Source},
    cpus,
    line::CommandLine,
    memory,
    options::LabOptions,
    step::{Program, Question, Step, Want},
    topology::{End, Spread, Switch},
};

/// Debian's `ovs-vswitchd` built with DPDK; the one on the PATH may be the other build.
pub const VSWITCHD: &str = "/usr/lib/openvswitch-switch-dpdk/ovs-vswitchd-dpdk";
const SCHEMA: &str = "/usr/share/openvswitch/vswitch.ovsschema";

/// How long its database and its DPDK may take to start on a busy machine.
const DATABASE: Duration = Duration::from_secs(30);
const START: Duration = Duration::from_secs(30);
/// How long the driver of an emulated guest may take to make its rings, and that of a disk of the user's.
const DRIVER: Duration = Duration::from_secs(60);
const DISK: Duration = Duration::from_secs(300);

/// Idle flows stay this long, ms: the two-VM document, 5.1.
const MAX_IDLE_MS: u32 = 50_000;

/// How long a polling thread that shares its CPU sleeps when it finds nothing, microseconds. Measured on two CPUs, one guest,
/// 200 kpps offered: 62 % came through without it, all with it.
const SHARED_SLEEP_US: u32 = 20;

/// The daemons, up to their DPDK.
pub(super) fn daemons(context: &Context<'_>) -> Part {
    let Context { topology, cpus: layout, options, .. } = context;
    if topology.switch.is_empty() {
        return Part::default();
    }
    let file = |name: &str| context.file(name);
    let mib = memory::switch_mib(options);
    // Open vSwitch adds --in-memory itself, unless it has --legacy-mem, which --no-huge comes with.
    let ordinary = if options.hugepages { String::new() } else { format!(" --no-huge --legacy-mem -m {mib}") };
    let mut settings = vec!["other_config:dpdk-init=true".to_owned()];
    if options.hugepages {
        settings.extend(["mem", "limit"].map(|what| format!("other_config:dpdk-socket-{what}={mib}")));
    }
    settings.extend([
        format!("other_config:dpdk-lcore-mask={}", cpus::mask(&[layout.control])),
        format!("other_config:pmd-cpu-mask={}", cpus::mask(&layout.pmds)),
        format!("other_config:max-idle={MAX_IDLE_MS}"),
        // One value with blanks in it.
        format!(
            "other_config:dpdk-extra=\"{} --no-telemetry --file-prefix=lab-{}{ordinary}\"",
            pci(options),
            topology.name
        ),
    ]);
    if !options.emc {
        settings.push("other_config:emc-insert-inv-prob=0".to_owned());
    }
    if layout.pmds.iter().any(|cpu| layout.shared.contains(cpu)) {
        // A thread that found nothing sleeps, so that another one can have the CPU. Versions before 3.1 ignore the setting.
        settings.push(format!("other_config:pmd-maxsleep={SHARED_SLEEP_US}"));
    }
    if options.smc {
        settings.push("other_config:smc-enable=true".to_owned());
    }
    let start = |name: &str, line: CommandLine| {
        let (name, cpus) = (name.to_owned(), vec![layout.control]);
        Step::Start(Program { name, line, cpus, wants_input: false, quits_by: None })
    };
    let database = CommandLine::words("ovsdb-server").with([
        file("conf.db"),
        format!("--remote=punix:{}", file("db.sock")),
        format!("--unixctl={}", file("ovsdb.ctl")),
        format!("--pidfile={}", file("ovsdb.pid")),
    ]);
    let vswitchd = CommandLine(vec![VSWITCHD.to_owned()]).with([
        format!("unix:{}", file("db.sock")),
        format!("--unixctl={}", file("vswitchd.ctl")),
        format!("--pidfile={}", file("vswitchd.pid")),
    ]);
    let steps = vec![
        Step::Run(CommandLine::words("ovsdb-tool create").with([file("conf.db"), SCHEMA.to_owned()])),
        start("ovsdb", database),
        await_file("ovsdb: its socket", "-S", file("db.sock"), DATABASE, "ovsdb"),
        Step::Run(vsctl(context, "--no-wait init -- set Open_vSwitch .").with(settings)),
        start("vswitchd", vswitchd),
        Step::Await(dpdk_is_up(context)),
    ];
    Part { steps: steps.into_iter().chain(pool(context)).collect(), ..Part::default() }
}

/// Makes the pool of buffers before a guest connects. Open vSwitch makes it for the first port that needs one, which is a guest's
/// that has just connected, and tries sizes that do not fit: it then takes all of its memory for a moment, and the rings of the
/// guest's next port find none. A port that goes again at once leaves its pool to the next one of the same MTU. Where DPDK lacks
/// this driver, the switch says so in its log, and goes on.
fn pool(context: &Context<'_>) -> [Step; 2] {
    let add = "add-br pool -- set Bridge pool datapath_type=netdev fail-mode=secure -- add-port pool pool0 -- set Interface pool0 \
               type=dpdk options:dpdk-devargs=net_null0,no-rx=1";
    [Step::Run(vsctl(context, add)), Step::Run(vsctl(context, "del-br pool"))]
}

/// Which NICs a program of DPDK may look at.
pub(super) fn pci(options: &LabOptions) -> String {
    match options.phy.as_slice() {
        [] => "--no-pci".to_owned(),
        nics => nics.iter().map(|nic| format!("-a {nic}")).collect::<Vec<_>>().join(" "),
    }
}

/// The switch's DPDK is up.
fn dpdk_is_up(context: &Context<'_>) -> Question {
    Question {
        what: "vswitchd: DPDK is up".to_owned(),
        line: vsctl(context, "--no-wait get Open_vSwitch . dpdk_initialized"),
        want: Want::Prints("true".to_owned()),
        within: START,
        remedy: format!("Open vSwitch takes {} MiB of memory", memory::switch_mib(context.options)),
        logs: vec!["vswitchd".to_owned()],
        only_while_measured: false,
        again: Vec::new(),
    }
}

/// Bridges, ports and flows; after the sockets of the guests are there, since a port that finds none looks again only after a
/// second.
pub(super) fn ports(context: &Context<'_>) -> Part {
    let mut part = Part::default();
    for switch in &context.topology.switch {
        one_bridge(context, switch, &mut part);
    }
    part
}

fn one_bridge(context: &Context<'_>, switch: &Switch, part: &mut Part) {
    let bridge = &switch.name;
    let ends = ends_of(context, bridge);
    let mut add =
        vsctl(context, &format!("add-br {bridge} -- set Bridge {bridge} datapath_type=netdev fail-mode=secure"));
    let mut own = Vec::new();
    let mut tunnels = Vec::new();
    for (end, peer) in &ends {
        match switch.tunnel_at(end.port) {
            Some(tunnel) => tunnels.push((tunnel, *end, *peer)),
            None => {
                add = add_port(context, add, bridge, end, peer);
                own.push((*end, *peer));
            }
        }
    }
    part.steps.push(Step::Run(add));
    part.steps.push(management(context, bridge));
    if !own.is_empty() {
        counted(context, bridge, bridge, &own, part);
    }
    for (tunnel, end, peer) in tunnels {
        let under = tunnel::underlay(switch, tunnel);
        part.steps.push(tunnel::add(context, switch, tunnel, peer));
        part.steps.push(management(context, &under));
        counted(context, bridge, &under, &[(end, peer)], part);
    }
    part.steps.extend(tunnel::addresses(context, switch));
    part.checks.extend(tunnel::checks(context, switch));
    part.steps.extend(flows(context, switch));
}

/// Ports of a switch's node, in this bridge: accepted before anything else, and counted.
fn counted(context: &Context<'_>, node: &str, bridge: &str, ends: &[(&End, &End)], part: &mut Part) {
    let names: Vec<String> = ends.iter().map(|(_, peer)| port_name(peer)).collect();
    let numbers: Vec<u32> = ends.iter().map(|(end, _)| end.port).collect();
    let accepted = accepted(context, bridge, &names, &numbers);
    part.steps.push(Step::Await(accepted.clone()));
    part.checks.push(accepted);
    let place = Place::OpenFlow { line: ofctl(context, bridge, "dump-ports") };
    let ends = ends.iter().map(|(end, peer)| Counted { end: (*end).clone(), name: port_name(peer) }).collect();
    part.counters.push(Source { node: node.to_owned(), place, ends });
}

/// A bridge's OpenFlow socket is there.
fn management(context: &Context<'_>, bridge: &str) -> Step {
    let file = context.file(&format!("{bridge}.mgmt"));
    await_file(&format!("{bridge}: its OpenFlow socket"), "-S", file, PORTS, "vswitchd")
}

/// The flows of a bridge, both ways.
fn flows(context: &Context<'_>, switch: &Switch) -> Vec<Step> {
    let pairs = switch.flows.iter().flat_map(|&[a, b]| [(a, b), (b, a)]);
    let one = |(from, to): (u32, u32)| {
        let flow = format!("in_port={from},actions=output:{to}");
        Step::Run(ofctl(context, &switch.name, "add-flow").with([flow]))
    };
    let mut steps: Vec<Step> = pairs.map(one).collect();
    if !switch.spread.is_empty() {
        let path = context.file(&format!("{}.flows", switch.name));
        let text = switch.spread.iter().flat_map(spread).collect::<Vec<_>>().join("\n");
        steps.push(Step::Write { path: path.clone(), text });
        steps.push(Step::Run(ofctl(context, &switch.name, "add-flows").with([path])));
    }
    steps
}

/// The flows of a port that is spread over others: the low bits of the source port choose. What has none takes the first.
fn spread(spread: &Spread) -> Vec<String> {
    let Spread { port, over } = spread;
    let mask = spread.buckets() - 1;
    let mut flows: Vec<String> = over.iter().map(|from| format!("in_port={from},actions=output:{port}")).collect();
    flows.extend(over.first().map(|to| format!("priority=10,in_port={port},actions=output:{to}")));
    for (bucket, to) in (0..=mask).zip(over.iter().cycle()) {
        for (protocol, field) in [("udp", "udp"), ("tcp", "tcp"), ("udp6", "udp"), ("tcp6", "tcp")] {
            flows.push(format!(
                "priority=20,{protocol},in_port={port},{field}_src={bucket:#x}/{mask:#x},actions=output:{to}"
            ));
        }
    }
    flows
}

/// What a switch has lost that was started again: its database still has the ports, but flows are in the switch only.
pub(super) fn flows_again(context: &Context<'_>) -> Part {
    let mut steps = vec![Step::Await(dpdk_is_up(context))];
    for switch in &context.topology.switch {
        let show = ofctl(context, &switch.name, "show");
        let ports = context.topology.ports_of(&switch.name).len();
        steps.push(Step::Await(Question {
            what: format!("{}: its ports are back", switch.name),
            line: show,
            // With the bridge's own.
            want: Want::Times(ports + 1, "addr:".to_owned()),
            within: START,
            remedy: String::new(),
            logs: vec!["vswitchd".to_owned()],
            only_while_measured: false,
            again: Vec::new(),
        }));
        steps.extend(tunnel::addresses(context, switch));
        steps.extend(flows(context, switch));
        let guests = vhost_names(context, switch, false);
        if !guests.is_empty() {
            steps.push(Step::Await(awaited(context, &switch.name, &guests)));
        }
    }
    Part { steps, ..Part::default() }
}

/// The ports of one guest are connected; `None` if no switch has them.
pub(super) fn guest_connected(context: &Context<'_>, guest: &str) -> Option<Question> {
    let ports = context.topology.ports_of(guest);
    let switch = context.topology.peer(ports.first()?).and_then(|peer| context.topology.switch_named(&peer.node))?;
    let names: Vec<String> = ports.into_iter().map(port_name).collect();
    Some(awaited(context, &switch.name, &names))
}

/// The guests' ends are connected; the tester's are only while it measures.
pub(super) fn connected(context: &Context<'_>) -> Part {
    let mut part = Part::default();
    for switch in &context.topology.switch {
        let ends = ends_of(context, &switch.name);
        let (guests, phys) = (vhost_names(context, switch, false), vhost_names(context, switch, true));
        if !guests.is_empty() {
            part.steps.push(Step::Await(awaited(context, &switch.name, &guests)));
            part.checks.push(rings(context, &switch.name, &guests));
        }
        if !phys.is_empty() {
            part.checks.push(Question { only_while_measured: true, ..rings(context, &switch.name, &phys) });
        }
        part.checks.push(Question { only_while_measured: true, ..queue_map(context, &switch.name, &ends) });
    }
    part
}

/// The names of a switch's vhost-user ports: the tester's, or the guests'.
fn vhost_names(context: &Context<'_>, switch: &Switch, tester: bool) -> Vec<String> {
    let of = |(_, peer): &(&End, &End)| peer.is_tester() == tester && context.nic(peer).is_none();
    ends_of(context, &switch.name).into_iter().filter(of).map(|(_, peer)| port_name(peer)).collect()
}

/// Ports of a switch, asked about until they are connected, each time behind a change of the database. A switch writes down what a
/// port is like when it is told that something changed; when a guest connects meanwhile, what it wrote stays wrong until something
/// else changes.
fn awaited(context: &Context<'_>, bridge: &str, names: &[String]) -> Question {
    let question = rings(context, bridge, names);
    let words: Vec<String> = question.line.0.iter().map(|word| crate::line::quoted(word)).collect();
    let tool = words.iter().take(3).cloned().collect::<Vec<_>>().join(" ");
    let port = names.first().map_or("", String::as_str);
    // Another value each time, or nothing changes.
    let script = format!("{tool} set Interface {port} external_ids:asked=$(date +%N) && {}", words.join(" "));
    // A machine's driver may take its time.
    let again = match context.options.guests.accelerator() {
        Some(_) => Vec::new(),
        None => connect_again(context, bridge, names),
    };
    Question { line: CommandLine::words("sh -c").with([script]), again, ..question }
}

/// Ports go and come, so that their guests connect anew. A switch that was started again makes its pool of buffers when its first
/// guest has connected (see `pool`). If another guest connects at that moment, the switch has no memory for its rings and refuses
/// it. Neither side tries again.
fn connect_again(context: &Context<'_>, bridge: &str, names: &[String]) -> Vec<CommandLine> {
    let gone = names.iter().map(|name| format!("del-port {bridge} {name}")).collect::<Vec<_>>().join(" -- ");
    let ends = ends_of(context, bridge).into_iter().filter(|(_, peer)| names.contains(&port_name(peer)));
    let add = ends.fold(vsctl(context, "init"), |add, (end, peer)| add_port(context, add, bridge, end, peer));
    vec![vsctl(context, &gone), add]
}

/// The commands that say what the polling threads have done: their cycles, and the rest.
pub(super) fn thread_counters(context: &Context<'_>) -> Option<[CommandLine; 2]> {
    let ask = |what: &str| appctl(context, &format!("dpif-netdev/{what}"));
    (!context.topology.switch.is_empty()).then(|| [ask("pmd-stats-show"), ask("pmd-perf-show -nh")])
}

/// The ports of a bridge, and what each is joined to.
fn ends_of<'a>(context: &Context<'a>, bridge: &str) -> Vec<(&'a End, &'a End)> {
    let ends = context.topology.ports_of(bridge).into_iter();
    ends.filter_map(|end| Some((end, context.topology.peer(end)?))).collect()
}

/// Every interface without an error, with the number that was asked for.
fn accepted(context: &Context<'_>, bridge: &str, names: &[String], numbers: &[u32]) -> Question {
    let line = vsctl(context, "--columns=ofport,name,error list Interface").with(names.iter().cloned());
    // A row in this order, without blanks, holds no other one: port 10 is not port 1.
    let rows = names.iter().zip(numbers).map(|(name, number)| format!("ofport:{number}name:{name}error:[]")).collect();
    Question {
        what: format!("{bridge}: ports without an error, with the numbers asked for"),
        line,
        want: Want::Holds(rows),
        within: PORTS,
        remedy: String::new(),
        logs: vec!["vswitchd".to_owned()],
        only_while_measured: false,
        again: Vec::new(),
    }
}

/// The vhost-user ports are connected, with the rings that were asked for.
fn rings(context: &Context<'_>, bridge: &str, names: &[String]) -> Question {
    let rings = context.options.queues * 2;
    let line = vsctl(context, "--columns=name,status list Interface").with(names.iter().cloned());
    let listed = names.join(", ");
    Question {
        what: format!("{bridge}: {listed} connected, {rings} rings of {} each, virtio 1", context.options.ring),
        line,
        want: Want::Rings { ports: names.to_vec(), rings, size: context.options.ring },
        within: match context.options.guests.accelerator() {
            Some(_) if context.topology.guest.iter().any(|guest| guest.disk.is_some()) => DISK,
            Some(_) => DRIVER,
            None => PORTS,
        },
        remedy: "the other side did not connect with these rings".to_owned(),
        logs: context.guests_behind(bridge, names).chain(["vswitchd".to_owned()]).collect(),
        only_while_measured: false,
        again: Vec::new(),
    }
}

/// Each queue of each port is polled by the thread that was asked for, and by no other.
fn queue_map(context: &Context<'_>, bridge: &str, ends: &[(&End, &End)]) -> Question {
    let line = appctl(context, "dpif-netdev/pmd-rxq-show");
    let queues = |(end, peer): &(&End, &End)| {
        let name = port_name(peer);
        threads(context, end).into_iter().map(move |(queue, cpu)| (name.clone(), queue, cpu)).collect::<Vec<_>>()
    };
    Question {
        what: format!("{bridge}: every queue is polled by the thread asked for, isolated"),
        line,
        want: Want::Queues(ends.iter().flat_map(queues).collect()),
        within: PORTS,
        remedy: "a CPU of the switch is not usable, or a queue is missing: see linerate lab show NAME --script"
            .to_owned(),
        logs: vec!["vswitchd".to_owned()],
        only_while_measured: false,
        again: Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{cpus::CpuLayout, topology};

    #[test]
    fn a_port_is_accepted_with_its_own_number_and_without_an_error() {
        let (topology, options) = (topology::load("phy-vm-phy").unwrap(), LabOptions::default());
        let cpus = CpuLayout::choose(&topology, &options, &[0, 1]).unwrap();
        let context =
            Context { topology: &topology, options: &options, cpus: &cpus, linerate: "linerate", dir: "/run/lab" };
        let row = |name: &str, number: &str, error: &str| {
            format!("ofport              : {number}\nname                : {name}\nerror               : {error}\n")
        };
        let want = accepted(&context, "br0", &["phy0".to_owned(), "phy1".to_owned()], &[1, 2]).want;
        let met = |rows: [String; 2]| want.is_met(true, &rows.join("\n"));
        assert!(met([row("phy0", "1", "[]"), row("phy1", "2", "[]")]));
        assert!(met([row("\"phy1\"", "2", "[]"), row("phy0", "1", "[]")]), "in any order");
        assert!(!met([row("phy0", "10", "[]"), row("phy1", "2", "[]")]), "port 10 is not port 1");
        assert!(!met([row("phy0", "2", "[]"), row("phy1", "1", "[]")]), "of the other port");
        assert!(!met([row("phy0", "1", "\"no such device\""), row("phy1", "2", "[]")]));
        assert!(!met([row("phy10", "1", "[]"), row("phy1", "2", "[]")]));
    }

    #[test]
    fn every_thread_that_can_has_a_queue() {
        let polling = |name: &str, queues: u32, pmds: u32| -> Vec<u32> {
            let topology = topology::load(name).unwrap();
            let options = LabOptions { queues, pmds, ..LabOptions::default() };
            let all: Vec<u32> = (0..pmds + 16).collect();
            let cpus = CpuLayout::choose(&topology, &options, &all).unwrap();
            let context =
                Context { topology: &topology, options: &options, cpus: &cpus, linerate: "linerate", dir: "/run/lab" };
            let ends = topology.switch.iter().flat_map(|switch| topology.ports_of(&switch.name));
            ends.flat_map(|end| threads(&context, end)).map(|(_, cpu)| cpu - cpus.pmds[0]).collect()
        };
        // The documents' layouts, and those below them.
        assert_eq!(polling("phy-vm-vm-phy", 1, 2), [0, 1, 0, 1, 0, 1]);
        assert_eq!(polling("phy-vm-vm-phy", 2, 4), [0, 2, 1, 3, 0, 2, 1, 3, 0, 2, 1, 3]);
        // More threads than that.
        assert_eq!(polling("phy-vm-vm-phy", 1, 4), [0, 1, 2, 3, 0, 1]);
        assert_eq!(polling("phy-vm-phy", 2, 6), [0, 1, 2, 3, 4, 5, 0, 1]);
        for pmds in 3..20 {
            let mut used = polling("flow-loggers-12", 1, pmds);
            used.sort_unstable();
            used.dedup();
            assert_eq!(used.len(), pmds as usize);
        }
    }
}
