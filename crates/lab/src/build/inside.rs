//! What runs inside a virtual machine.

use std::time::Duration;

use super::{
    context::{Context, Part},
    guest, machine,
};
use crate::{
    counters::{Place, Source},
    line::CommandLine,
    step::{Program, Question, Step, Want},
    topology::{Application, End, Guest},
    vm::{GuestSpec, INIT},
};

/// Where a guest's files are.
pub(super) const DIR: &str = "/run/lab";

/// Modules for every guest, and those for programs that poll a port themselves.
const MODULES: [&str; 2] = ["virtio_pci", "virtio_console"];
const POLLING: [&str; 2] = ["uio", "uio_pci_generic"];

/// MiB of hugepages of a guest: most of what its image leaves.
const IMAGE_MIB: u32 = 512;
const MOST_HUGE_MIB: u32 = 1024;

/// How long a step in an emulated guest may take.
const STEP: Duration = Duration::from_secs(60);

/// Hugepages of 2 MiB of a guest with this much memory.
pub(super) fn hugepages(guest_mib: u32) -> u32 {
    guest_mib.saturating_sub(IMAGE_MIB).min(MOST_HUGE_MIB) / 2
}

/// What a guest is told.
pub(super) fn spec(context: &Context<'_>, guest: &Guest) -> GuestSpec {
    let mut spec = GuestSpec { name: guest.name.clone(), ..GuestSpec::default() };
    spec.modules.extend(MODULES.map(str::to_owned));
    let Part { steps, checks, counters } = match guest.application {
        Application::KernelBridge => bridge(guest, &mut spec),
        Application::OvsKernel => open_vswitch(guest, &mut spec),
        _ => polling(context, guest, &mut spec),
    };
    GuestSpec { steps, checks, counters, ..spec }
}

fn program(name: &str, line: CommandLine, quits_by: Option<&str>) -> Step {
    let wants_input = quits_by.is_some();
    let quits_by = quits_by.map(str::to_owned);
    Step::Start(Program { name: name.to_owned(), line, cpus: Vec::new(), wants_input, quits_by })
}

/// A program that takes the ports from the guest's kernel.
fn polling(context: &Context<'_>, guest: &Guest, spec: &mut GuestSpec) -> Part {
    spec.modules.extend(POLLING.map(str::to_owned));
    let ports: Vec<String> = (0..2).map(machine::pci_address).collect();
    let bind = CommandLine::words(&format!("{INIT} ports --bind uio_pci_generic")).with(ports.iter().cloned());
    let polling: Vec<u32> = (1..=context.options.queues).collect();
    let name = &guest.name;
    let (line, place, quits_by) = match guest.application.testpmd_mode() {
        Some(mode) => {
            spec.programs.extend(["dpdk-testpmd".to_owned(), "stdbuf".to_owned()]);
            // Drivers are loaded when they are looked for, so that `ldd` does not know them.
            for library in ["bus_pci", "bus_vdev", "mempool_ring", "net_virtio"] {
                spec.libraries.push(format!("dpdk/pmds-*/librte_{library}.so"));
            }
            spec.libraries.push("coreutils/libstdbuf.so".to_owned());
            (guest::testpmd_on_pci(context, &ports, mode), Place::Testpmd { program: name.clone() }, Some("quit"))
        }
        None => {
            let function = guest.application.linerate_function().unwrap_or("l2");
            let cpus = polling.iter().map(u32::to_string).collect::<Vec<_>>().join(",");
            let mut line = CommandLine::words(&format!("{INIT} forward {function} --quiet --name {name} --cpus {cpus}"));
            line = line.with(["--memory-mib", "128"]);
            for port in &ports {
                line = line.with(["--port", port]);
            }
            (line, Place::Linerate { socket: format!("{DIR}/linerate/{name}.sock") }, None)
        }
    };
    let ends = (0..2).map(|port| End::new(name, port).into()).collect();
    let counters = vec![Source { node: name.clone(), place, ends }];
    Part { steps: vec![Step::Run(bind), program(name, line, quits_by)], checks: Vec::new(), counters }
}

/// The guest's kernel names its ports in the order of the bus.
fn interfaces(guest: &Guest, spec: &mut GuestSpec) -> Part {
    spec.modules.push("virtio_net".to_owned());
    spec.programs.extend(["ip", "sysctl"].map(str::to_owned));
    let mut steps = vec![Step::Run(CommandLine::words(
        "sysctl -qw net.ipv6.conf.all.disable_ipv6=1 net.ipv6.conf.default.disable_ipv6=1",
    ))];
    for port in 0..2 {
        // As the other kernels of a lab have them: their counters are read by this name.
        steps.push(Step::Run(CommandLine::words(&format!("ip link set eth{port} name d{port}"))));
        steps.push(Step::Run(CommandLine::words(&format!("ip link set d{port} up"))));
    }
    let line = CommandLine::words("ip -s -j link show");
    let ends = (0..2).map(|port| End::new(&guest.name, port).into()).collect();
    let counters = vec![Source { node: guest.name.clone(), place: Place::Kernel { line }, ends }];
    Part { steps, checks: Vec::new(), counters }
}

fn bridge(guest: &Guest, spec: &mut GuestSpec) -> Part {
    let mut part = interfaces(guest, spec);
    spec.modules.push("bridge".to_owned());
    let text = "link add br0 type bridge stp_state 0 mcast_snooping 0;link set d0 master br0;link set d1 master br0;link set br0 up";
    part.steps.extend(text.split(';').map(|line| Step::Run(CommandLine::words(&format!("ip {line}")))));
    part.checks.push(Question {
        what: format!("{}: its bridge forwards on both ports", guest.name),
        line: CommandLine::words("ip -d link show master br0"),
        want: Want::Times(2, "state forwarding".to_owned()),
        within: STEP,
        remedy: "the bridge waits for the carrier of its ports".to_owned(),
        only_while_measured: false,
    });
    part
}

/// Open vSwitch without DPDK: its datapath is the guest's kernel.
fn open_vswitch(guest: &Guest, spec: &mut GuestSpec) -> Part {
    let mut part = interfaces(guest, spec);
    spec.modules.push("openvswitch".to_owned());
    spec.programs.extend(["ovsdb-server", "ovsdb-tool", "ovs-vsctl", "ovs-ofctl", "ovs-appctl", "ovs-dpctl", "test"].map(str::to_owned));
    spec.programs.extend([KERNEL_VSWITCHD, "/usr/share/openvswitch/vswitch.ovsschema"].map(str::to_owned));
    let vsctl = |arguments: &str| CommandLine::words(&format!("ovs-vsctl --db=unix:{DIR}/db.sock --timeout=60 {arguments}"));
    let run = |line: CommandLine| Step::Run(line);
    part.steps.extend([
        run(CommandLine::words(&format!("ovsdb-tool create {DIR}/conf.db /usr/share/openvswitch/vswitch.ovsschema"))),
        program("ovsdb", CommandLine::words(&format!("ovsdb-server {DIR}/conf.db --remote=punix:{DIR}/db.sock --unixctl={DIR}/ovsdb.ctl")), None),
        Step::Await(Question {
            what: "ovsdb: its socket".to_owned(),
            line: CommandLine::words(&format!("test -S {DIR}/db.sock")),
            want: Want::Success,
            within: STEP,
            remedy: "see the console".to_owned(),
            only_while_measured: false,
        }),
        run(vsctl("--no-wait init")),
        program("vswitchd", CommandLine::words(&format!("{KERNEL_VSWITCHD} unix:{DIR}/db.sock --unixctl={DIR}/vswitchd.ctl")), None),
        run(vsctl(
            "add-br br0 -- set Bridge br0 fail-mode=secure -- add-port br0 d0 -- set Interface d0 ofport_request=1 -- add-port br0 \
             d1 -- set Interface d1 ofport_request=2",
        )),
        run(CommandLine::words(&format!("ovs-ofctl add-flow unix:{DIR}/br0.mgmt in_port=1,actions=output:2"))),
        run(CommandLine::words(&format!("ovs-ofctl add-flow unix:{DIR}/br0.mgmt in_port=2,actions=output:1"))),
    ]);
    part.checks.push(Question {
        what: format!("{}: its switch has both ports in the kernel's datapath", guest.name),
        line: CommandLine::words(&format!("ovs-appctl -t {DIR}/vswitchd.ctl dpif/show")),
        want: Want::Holds(vec!["system@".to_owned(), "d01/".to_owned(), "d12/".to_owned()]),
        within: STEP,
        remedy: "see the console".to_owned(),
        only_while_measured: false,
    });
    part
}

/// Debian's `ovs-vswitchd` built without DPDK.
const KERNEL_VSWITCHD: &str = "/usr/lib/openvswitch-switch/ovs-vswitchd";
