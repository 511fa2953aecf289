//! Guests as processes: the guest's side of vhost-user (virtio-user), at full speed where no KVM is.

use std::time::Duration;

use super::{
    context::{await_file, Context, Part},
    ovs,
};
use crate::{
    counters::{Place, Source},
    line::CommandLine,
    options::LabOptions,
    step::{Program, Step},
    topology::{Application, End, Guest},
};

/// How long a guest may take to serve its first socket on a busy machine.
const START: Duration = Duration::from_secs(20);

/// MiB of memory of dpdk-testpmd.
const MEMORY_MIB: u32 = 128;

/// VXLAN network of a tunnel between two guests: the ONP report's, 13.
const VNI: u32 = 1000;

/// Flows that a logger keeps, and MiB of memory for its packets: twelve of them are on one machine.
const FLOWS: &str = "64k";
const LOGGER_MIB: u32 = 128;

/// All guests. Each serves the socket of its first port, and that of its second when the switch has taken the first.
pub(super) fn processes(context: &Context<'_>) -> Part {
    let mut part = Part::default();
    if context.options.guests.accelerator().is_some() {
        return part;
    }
    let guests = &context.topology.guest;
    for guest in guests {
        let name = guest.name.clone();
        let cpus = context.polling(guest);
        let ends = (0..2).map(|port| End::new(&guest.name, port).into()).collect();
        let (line, place, wants_input) = match guest.application.testpmd_mode() {
            Some(mode) => (testpmd(context, guest, mode), Place::Testpmd { program: name.clone() }, true),
            None => (linerate(context, guest), Place::Linerate { socket: control_socket(context, guest) }, false),
        };
        let quits_by = wants_input.then(|| "quit".to_owned());
        part.steps.push(Step::Start(Program { name, line, cpus, wants_input, quits_by }));
        part.counters.push(Source { node: guest.name.clone(), place, ends });
    }
    part.steps.extend(guests.iter().filter_map(|guest| served(context, guest)));
    part
}

/// A guest serves its first socket; `None` if the switch is not what takes it.
pub(super) fn served(context: &Context<'_>, guest: &Guest) -> Option<Step> {
    match joined(context, guest, 0) {
        Joined::Switch(socket) => {
            Some(await_file(&format!("{}: its socket", guest.name), "-S", socket, START, &guest.name))
        }
        _ => None,
    }
}

/// The ONP report's testpmd, with today's flags.
fn testpmd(context: &Context<'_>, guest: &Guest, mode: &str) -> CommandLine {
    let options = context.options;
    let cpus = context.polling(guest);
    let nics = if at_tester(context, guest) { ovs::pci(options) } else { "--no-pci".to_owned() };
    let mut line = CommandLine::words(&format!("stdbuf -oL dpdk-testpmd {nics} --no-telemetry --lcores")).with([
        // The main lcore only waits for commands: it shares a CPU.
        lcores(&cpus),
        format!("--file-prefix={}", guest.name),
    ]);
    line = line.with(memory(options.hugepages).split(' '));
    for port in 0..2 {
        let (queues, ring) = (options.queues, options.ring);
        let device = match joined(context, guest, port) {
            Joined::Switch(socket) => {
                format!("net_virtio_user{port},path={socket},server=1,queues={queues},queue_size={ring},mrg_rxbuf=0")
            }
            Joined::Tester(socket) => format!("eth_vhost{port},iface={socket},client=1,queues={queues}"),
            // Allowed above: the order of the bus is that of its ports.
            Joined::Nic(_) => continue,
        };
        line = line.with(["--vdev".to_owned(), device]);
    }
    on_cores(forwarding(line, options, mode), cpus.len())
}

/// The main lcore, and one that polls on each CPU.
fn lcores(polling: &[u32]) -> String {
    let all = polling.iter().take(1).chain(polling).enumerate();
    all.map(|(lcore, cpu)| format!("{lcore}@{cpu}")).collect::<Vec<_>>().join(",")
}

fn on_cores(line: CommandLine, cores: usize) -> CommandLine {
    match cores {
        1 => line,
        cores => line.with([format!("--nb-cores={cores}")]),
    }
}

/// The same in a virtual machine: ports are on its PCI bus, and its CPUs are its own.
pub(super) fn testpmd_on_pci(context: &Context<'_>, ports: &[String], mode: &str) -> CommandLine {
    let lcores: Vec<String> = (0..=context.options.queues).map(|vcpu| format!("{vcpu}@{vcpu}")).collect();
    let mut line =
        CommandLine::words("stdbuf -oL dpdk-testpmd --no-telemetry --in-memory --lcores").with([lcores.join(",")]);
    line = line.with(["-m".to_owned(), MEMORY_MIB.to_string()]);
    for port in ports {
        line = line.with(["-a", port]);
    }
    on_cores(forwarding(line, context.options, mode), context.options.queues as usize)
}

fn forwarding(line: CommandLine, options: &LabOptions, mode: &str) -> CommandLine {
    let (queues, ring) = (options.queues, options.ring);
    line.with(
        format!(
            "-- -i --auto-start --forward-mode={mode} --burst=64 --rxq={queues} --txq={queues} --rxd={ring} --txd={ring} \
             --total-num-mbufs={}",
            16_384 * queues
        )
        .split(' '),
    )
}

fn memory(hugepages: bool) -> String {
    match hugepages {
        true => format!("-m {MEMORY_MIB} --single-file-segments --in-memory"),
        false => format!("-m {} --no-huge --no-shconf", MEMORY_MIB * 2),
    }
}

fn linerate(context: &Context<'_>, guest: &Guest) -> CommandLine {
    let options = context.options;
    let cpus: Vec<String> = context.polling(guest).iter().map(u32::to_string).collect();
    let mut line = own_command(context.linerate, guest, &cpus.join(","));
    for port in 0..2 {
        let queues = if options.queues > 1 { format!(",queues={}", options.queues) } else { String::new() };
        let port = match joined(context, guest, port) {
            Joined::Switch(socket) => format!("virtio:{socket},server=1,queue_size={}{queues}", options.ring),
            Joined::Tester(socket) => format!("vhost:{socket},client=1{queues}"),
            Joined::Nic(nic) => nic,
        };
        line = line.with(["--port".to_owned(), port]);
    }
    if guest.application == Application::Flowlog {
        line = line.with(["--memory-mib".to_owned(), LOGGER_MIB.to_string()]);
    }
    if options.hugepages {
        line
    } else {
        line.with(["--memory", "no-hugepages"])
    }
}

/// Linerate in a guest, all but its ports and its memory.
pub(super) fn own_command(linerate: &str, guest: &Guest, cpus: &str) -> CommandLine {
    let command = guest.application.linerate_command().unwrap_or("forward l2");
    let line = CommandLine(vec![linerate.to_owned()]).with(command.split(' ').map(str::to_owned));
    let line = line.with(["--quiet", "--name", &guest.name, "--cpus", cpus]);
    line.with(settings(guest.application))
}

/// What a port of a process is joined to, by its socket.
enum Joined {
    /// A switch: the process serves the socket and is at the guest's end.
    Switch(String),
    /// The tester, which serves the socket and is at the guest's end: the process is at the switch's.
    Tester(String),
    /// The tester's own port, by a cable: the NIC at this end of it.
    Nic(String),
}

/// Whether a guest is joined to the tester itself.
fn at_tester(context: &Context<'_>, guest: &Guest) -> bool {
    (0..2).any(|port| !matches!(joined(context, guest, port), Joined::Switch(_)))
}

fn joined(context: &Context<'_>, guest: &Guest, port: u32) -> Joined {
    let end = End::new(&guest.name, port);
    match context.topology.peer(&end).filter(|peer| peer.is_tester()) {
        Some(tester) => match context.nic(tester) {
            Some(nic) => Joined::Nic(nic.to_owned()),
            None => Joined::Tester(context.socket(tester)),
        },
        None => Joined::Switch(context.socket(&end)),
    }
}

/// What an application is told. A router has the networks of RFC 2544, appendix C.2.2, each behind its port: the switch sends
/// frames on by port, so that the next address matters to nobody. The two ends of a tunnel know each other's address.
fn settings(application: Application) -> Vec<String> {
    let route = |port: u32| format!("198.{}.0.0/16 port {port} mac 02:4c:52:00:00:0{port}", 18 + port);
    let tunnel = |inside: u32| {
        let (outside, own, other) = (1 - inside, 1 + inside, 2 - inside);
        [
            ("--address", format!("{outside} 192.0.2.{own}/24")),
            ("--network", format!("{VNI} local 192.0.2.{own} access {inside}")),
            ("--remote", format!("{VNI} 192.0.2.{other}")),
        ]
    };
    let words: Vec<(&str, String)> = match application {
        Application::L3 => (0..2).map(|port| ("--route", route(port))).collect(),
        Application::Vxlan => tunnel(0).into(),
        Application::VxlanFar => tunnel(1).into(),
        // It is asked for its counters over its socket: nobody reads its flows from outside.
        Application::Flowlog => vec![("--listen", "off".to_owned()), ("--flows", FLOWS.to_owned())],
        _ => Vec::new(),
    };
    words.into_iter().flat_map(|(flag, value)| [flag.to_owned(), value]).collect()
}

fn control_socket(context: &Context<'_>, guest: &Guest) -> String {
    context.file(&format!("linerate/{}.sock", guest.name))
}
