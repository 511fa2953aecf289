//! What runs inside a virtual machine.

use super::{
    context::{Context, Part},
    guest, role,
};
use crate::{
    counters::{Place, Source},
    line::CommandLine,
    step::{Program, Step},
    topology::{Application, End, Guest, Kernel, KernelRole},
    vm::{pci_address, GuestSpec, GUEST_DIR, INIT},
};

/// Modules for every guest, and those for programs that poll a port themselves.
const MODULES: [&str; 2] = ["virtio_pci", "virtio_console"];
const POLLING: [&str; 2] = ["uio", "uio_pci_generic"];

/// Programs to look around with (`linerate lab exec`).
const LOOKING: [&str; 5] = ["cat", "dmesg", "ls", "sh", "tail"];

/// MiB of hugepages of a guest: most of what its image leaves.
const IMAGE_MIB: u32 = 512;
const MOST_HUGE_MIB: u32 = 1024;

/// Hugepages of 2 MiB of a guest with this much memory.
pub(super) fn hugepages(guest_mib: u32) -> u32 {
    guest_mib.saturating_sub(IMAGE_MIB).min(MOST_HUGE_MIB) / 2
}

/// What a guest is told.
pub(super) fn spec(context: &Context<'_>, guest: &Guest) -> GuestSpec {
    let mut spec = basis(&guest.name);
    let Part { steps, checks, counters } = match guest.application {
        Application::KernelBridge => kernel(&guest.name, KernelRole::Bridge, &[], &mut spec),
        Application::OvsKernel => kernel(&guest.name, KernelRole::Ovs, &[], &mut spec),
        _ => polling(context, guest, &mut spec),
    };
    GuestSpec { steps, checks, counters, ..spec }
}

/// What every guest has.
fn basis(name: &str) -> GuestSpec {
    GuestSpec {
        name: name.to_owned(),
        modules: MODULES.map(str::to_owned).into(),
        programs: LOOKING.map(str::to_owned).into(),
        ..GuestSpec::default()
    }
}

fn program(name: &str, line: CommandLine, quits_by: Option<&str>) -> Step {
    let wants_input = quits_by.is_some();
    let quits_by = quits_by.map(str::to_owned);
    Step::Start(Program { name: name.to_owned(), line, cpus: Vec::new(), wants_input, quits_by })
}

/// A program that takes the ports from the guest's kernel.
fn polling(context: &Context<'_>, guest: &Guest, spec: &mut GuestSpec) -> Part {
    spec.modules.extend(POLLING.map(str::to_owned));
    let ports: Vec<String> = (0..2).map(pci_address).collect();
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
            let cpus = polling.iter().map(u32::to_string).collect::<Vec<_>>().join(",");
            let mut line = guest::own_command(INIT, guest, &cpus).with(["--memory-mib", "128"]);
            for port in &ports {
                line = line.with(["--port", port]);
            }
            (line, Place::Linerate { socket: format!("{GUEST_DIR}/linerate/{name}.sock") }, None)
        }
    };
    let ends = (0..2).map(|port| End::new(name, port).into()).collect();
    let counters = vec![Source { node: name.clone(), place, ends }];
    Part { steps: vec![Step::Run(bind), program(name, line, quits_by)], checks: Vec::new(), counters }
}

/// The kernel of a guest between its ports. It names them in the order of the bus.
pub(super) fn kernel(name: &str, role: KernelRole, testers: &[(u32, String)], spec: &mut GuestSpec) -> Part {
    spec.modules.push("virtio_net".to_owned());
    spec.modules.extend(role::modules(role).iter().map(|name| (*name).to_owned()));
    spec.programs.extend(role::programs(role).iter().map(|name| (*name).to_owned()));
    let place = role::Place::Guest { name };
    let mut steps =
        vec![Step::Run(place.exec("sysctl -qw net.ipv6.conf.all.disable_ipv6=1 net.ipv6.conf.default.disable_ipv6=1"))];
    for port in 0..2 {
        // As the other kernels of a lab have them: their counters are read by this name.
        steps.push(Step::Run(place.ip(&format!("link set eth{port} name d{port}"))));
        steps.push(Step::Run(place.ip(&format!("link set d{port} up"))));
    }
    steps.extend(role::steps(&place, role, testers));
    let ends = (0..2).map(|port| End::new(name, port).into()).collect();
    let counters =
        vec![Source { node: name.to_owned(), place: Place::Kernel { line: place.ip("-s -j link show") }, ends }];
    Part { steps, checks: role::checks(&place, role), counters }
}

/// What the guest is told that stands in for this machine's kernel.
pub(super) fn kernel_spec(node: &Kernel, testers: &[(u32, String)]) -> GuestSpec {
    let mut spec = basis(&node.name);
    let Part { steps, checks, counters } = kernel(&node.name, node.role, testers, &mut spec);
    GuestSpec { steps, checks, counters, ..spec }
}
