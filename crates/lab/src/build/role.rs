//! What a kernel between two ports `d0` and `d1` is made to do, on this machine or in a guest.

use std::time::Duration;

use crate::{
    line::CommandLine,
    step::{Program, Question, Step, Want},
    topology::KernelRole,
    vm::GUEST_DIR,
};

/// Where a kernel's commands run.
pub(super) enum Place<'a> {
    /// In a network namespace of this machine, with files in the lab's directory.
    Namespace {
        /// Its name.
        name: &'a str,
        /// The lab's directory.
        dir: &'a str,
    },
    /// In the guest whose commands these are.
    Guest {
        /// Its name.
        name: &'a str,
    },
}

/// How long Open vSwitch may take to start in an emulated guest.
const START: Duration = Duration::from_secs(60);

/// Debian's `ovs-vswitchd` built without DPDK, and the form of its database.
const VSWITCHD: &str = "/usr/lib/openvswitch-switch/ovs-vswitchd";
const SCHEMA: &str = "/usr/share/openvswitch/vswitch.ovsschema";

impl Place<'_> {
    fn name(&self) -> &str {
        match self {
            Self::Namespace { name, .. } | Self::Guest { name } => name,
        }
    }

    fn file(&self, file: &str) -> String {
        match self {
            Self::Namespace { name, dir } => format!("{dir}/{name}-{file}"),
            Self::Guest { .. } => format!("{}/{file}", GUEST_DIR),
        }
    }

    /// An `ip` command.
    pub(super) fn ip(&self, text: &str) -> CommandLine {
        match self {
            Self::Namespace { name, .. } => CommandLine::words(&format!("ip -n {name} {text}")),
            Self::Guest { .. } => CommandLine::words(&format!("ip {text}")),
        }
    }

    /// Any other command that acts on the kernel's network.
    pub(super) fn exec(&self, text: &str) -> CommandLine {
        match self {
            Self::Namespace { name, .. } => CommandLine::words(&format!("ip netns exec {name} {text}")),
            Self::Guest { .. } => CommandLine::words(text),
        }
    }
}

/// Modules of the kernel that a role needs besides the ports' own.
pub(super) fn modules(role: KernelRole) -> &'static [&'static str] {
    match role {
        KernelRole::Bridge => &["bridge"],
        KernelRole::Router => &[],
        KernelRole::Ovs => &["openvswitch"],
    }
}

/// Programs that a role needs.
pub(super) fn programs(role: KernelRole) -> &'static [&'static str] {
    match role {
        KernelRole::Bridge => &["ip", "sysctl"],
        KernelRole::Router => &["ip", "sysctl"],
        KernelRole::Ovs => &[
            "ip",
            "sysctl",
            "test",
            "ovsdb-server",
            "ovsdb-tool",
            "ovs-vsctl",
            "ovs-ofctl",
            "ovs-appctl",
            VSWITCHD,
            SCHEMA,
        ],
    }
}

/// The steps that make a role. `testers` are the tester's ports behind `d0` and `d1`, with their addresses.
pub(super) fn steps(place: &Place<'_>, role: KernelRole, testers: &[(u32, String)]) -> Vec<Step> {
    match role {
        KernelRole::Bridge => bridge(place),
        KernelRole::Router => router(place, testers),
        KernelRole::Ovs => open_vswitch(place),
    }
}

fn bridge(place: &Place<'_>) -> Vec<Step> {
    let text = "link add br0 type bridge stp_state 0 mcast_snooping 0;link set d0 master br0;link set d1 master br0;link set br0 up";
    text.split(';').map(|line| Step::Run(place.ip(line))).collect()
}

/// The networks of RFC 2544, appendix C.2.2: 198.18.0.0/16 behind port 0 of the tester, 198.19.0.0/16 behind port 1.
fn router(place: &Place<'_>, testers: &[(u32, String)]) -> Vec<Step> {
    let mut steps = vec![Step::Run(place.exec(
        "sysctl -qw net.ipv4.ip_forward=1 net.ipv4.conf.all.rp_filter=0 net.ipv4.conf.all.send_redirects=0 \
         net.ipv4.conf.d0.rp_filter=0 net.ipv4.conf.d1.rp_filter=0 net.ipv4.conf.d0.send_redirects=0 \
         net.ipv4.conf.d1.send_redirects=0",
    ))];
    for (port, (tester, mac)) in testers.iter().enumerate() {
        let net = 18 + tester;
        steps.push(Step::Run(place.ip(&format!("addr add 10.255.{port}.1/30 dev d{port}"))));
        steps.push(Step::Run(place.ip(&format!("neigh add 10.255.{port}.2 lladdr {mac} dev d{port} nud permanent"))));
        steps.push(Step::Run(place.ip(&format!("route add 198.{net}.0.0/16 via 10.255.{port}.2"))));
    }
    steps
}

/// Open vSwitch with the kernel's datapath: the ONP report's native Open vSwitch.
fn open_vswitch(place: &Place<'_>) -> Vec<Step> {
    let file = |name: &str| place.file(name);
    let named = |name: &str| match place {
        Place::Namespace { name: node, .. } => format!("{node}-{name}"),
        Place::Guest { .. } => name.to_owned(),
    };
    let start = |name: &str, line: CommandLine| {
        Step::Start(Program { name: named(name), line, cpus: Vec::new(), wants_input: false, quits_by: None })
    };
    let vsctl = |arguments: &str| {
        Step::Run(CommandLine::words(&format!("ovs-vsctl --db=unix:{} --timeout=60 {arguments}", file("db.sock"))))
    };
    let mut steps = vec![
        Step::Run(CommandLine::words(&format!("ovsdb-tool create {} {SCHEMA}", file("conf.db")))),
        start(
            "ovsdb",
            place.exec(&format!(
                "ovsdb-server {} --remote=punix:{} --unixctl={}",
                file("conf.db"),
                file("db.sock"),
                file("ovsdb.ctl")
            )),
        ),
        Step::Await(Question {
            what: format!("{}: its database", place.name()),
            line: CommandLine::words(&format!("test -S {}", file("db.sock"))),
            want: Want::Success,
            within: START,
            remedy: String::new(),
            logs: vec![named("ovsdb")],
            only_while_measured: false,
            again: Vec::new(),
        }),
        // Open vSwitch 3.1 counts no CPUs in the first ten seconds of a kernel: it has no threads for new flows then, and
        // loses every frame later, too.
        Step::Await(Question {
            what: format!("{}: its kernel is old enough for Open vSwitch", place.name()),
            line: CommandLine::words("sh -c").with(["read up rest </proc/uptime; test ${up%.*} -ge 11"]),
            want: Want::Success,
            within: START,
            remedy: "see /proc/uptime".to_owned(),
            logs: Vec::new(),
            only_while_measured: false,
            again: Vec::new(),
        }),
        vsctl("--no-wait init"),
        start("vswitchd", place.exec(&format!("{VSWITCHD} unix:{} --unixctl={}", file("db.sock"), file("vswitchd.ctl")))),
        vsctl(
            "add-br br0 -- set Bridge br0 fail-mode=secure -- add-port br0 d0 -- set Interface d0 ofport_request=1 -- add-port br0 \
             d1 -- set Interface d1 ofport_request=2",
        ),
    ];
    for (from, to) in [(1, 2), (2, 1)] {
        // Its management socket is in its run-time directory, which is the lab's.
        let flow = format!("ovs-ofctl add-flow unix:{}/br0.mgmt in_port={from},actions=output:{to}", directory(place));
        steps.push(Step::Run(CommandLine::words(&flow)));
    }
    steps
}

fn directory<'a>(place: &'a Place<'_>) -> &'a str {
    match place {
        Place::Namespace { dir, .. } => dir,
        Place::Guest { .. } => GUEST_DIR,
    }
}

/// What shows that a role is there.
pub(super) fn checks(place: &Place<'_>, role: KernelRole) -> Vec<Question> {
    let question = |what: &str, line: CommandLine, want: Want, remedy: &str| Question {
        what: format!("{}: {what}", place.name()),
        line,
        want,
        within: START,
        remedy: remedy.to_owned(),
        logs: Vec::new(),
        only_while_measured: false,
        again: Vec::new(),
    };
    match role {
        KernelRole::Bridge => vec![question(
            "its bridge forwards on both ports",
            place.ip("-d link show master br0"),
            Want::Times(2, "state forwarding".to_owned()),
            "the bridge waits for the carrier of its ports",
        )],
        KernelRole::Router => vec![question(
            "it forwards packets",
            place.exec("sysctl net.ipv4.ip_forward"),
            Want::Prints("net.ipv4.ip_forward = 1".to_owned()),
            "another program has switched forwarding off",
        )],
        KernelRole::Ovs => vec![question(
            "both ports are in the kernel's datapath",
            CommandLine::words(&format!("ovs-appctl -t {} dpif/show", place.file("vswitchd.ctl"))),
            Want::Holds(vec!["system@".to_owned(), "d01/".to_owned(), "d12/".to_owned()]),
            "the kernel has no module openvswitch",
        )],
    }
}
