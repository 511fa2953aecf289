//! Guests as virtual machines: QEMU, with the documents' virtio settings, an image made on the spot, and control over
//! virtio-serial.

use std::time::Duration;

use super::{
    context::{await_file, Context, Part},
    inside, kernel,
};
use crate::{
    counters::{Place, Source},
    line::CommandLine,
    step::{Program, Question, Step, Want},
    topology::{End, Guest},
    vm::{qemu, Definition, GuestSpec, Joined, MachinePort},
};

/// How long QEMU may take to make its sockets, and a guest to boot and start its application. Emulated guests share few CPUs.
const START: Duration = Duration::from_secs(20);
const BOOT: Duration = Duration::from_secs(120);

/// Virtual CPUs of a guest: one for control, one that polls for each queue, further ones if they were asked for.
pub(super) fn vcpus(context: &Context<'_>) -> u32 {
    context.options.vcpus.unwrap_or(1 + context.options.queues)
}

/// All machines of a lab: its guests, and those that stand in for this machine's kernel.
pub(super) fn definitions(context: &Context<'_>) -> Vec<Definition> {
    let Context { topology, options, cpus, .. } = context;
    let machine =
        |name: &str, accelerator: &'static str, spec: GuestSpec, polls: bool, ports: Vec<MachinePort>| Definition {
            name: name.to_owned(),
            accelerator,
            spec,
            disk: None,
            mib: options.guest_mib,
            hugepages: accelerator == "kvm" && options.hugepages,
            vcpus: vcpus(context),
            // A kernel that stands in for this machine's forwards on one CPU, whatever polls.
            pins: (0..vcpus(context)).map(|vcpu| (vcpu, cpus.control)).collect(),
            emulator_cpu: cpus.control,
            ports,
            kernel_line: kernel_line(context, polls),
            files: context.file(name),
        };
    let guests = options.guests.accelerator().into_iter().flat_map(|accelerator| {
        topology.guest.iter().map(move |guest| {
            let polls = !guest.application.needs_a_machine();
            let ports = [0, 1].map(|port| MachinePort {
                joined: Joined::VhostUser(context.socket(&End::new(&guest.name, port))),
                mac: mac(context, guest, port),
                queues: options.queues,
                ring: options.ring,
            });
            let definition = machine(&guest.name, accelerator, inside::spec(context, guest), polls, ports.into());
            Definition { pins: pins(context, guest), disk: guest.disk.clone(), ..definition }
        })
    });
    let kernels = options.kernels.accelerator().into_iter().flat_map(|accelerator| {
        topology.kernel.iter().map(move |node| {
            let ports = [0, 1].map(|port| {
                let tester = topology.peer(&End::new(&node.name, port)).map_or(port, |end| end.port);
                MachinePort {
                    joined: Joined::Tap(kernel::tester_interface(tester)),
                    mac: kernel::node_mac(port),
                    queues: 1,
                    ring: options.ring,
                }
            });
            let spec = inside::kernel_spec(node, &kernel::testers(topology, node));
            machine(&node.name, accelerator, spec, false, ports.into())
        })
    });
    guests.chain(kernels).collect()
}

/// All machines are started. QEMU waits for the switch before it lets a guest boot.
pub(super) fn start(context: &Context<'_>, machines: &[Definition]) -> Part {
    let mut part = Part::default();
    for machine in machines {
        let name = &machine.name;
        let file = |end: &str| context.file(&format!("{name}.{end}"));
        if machine.disk.is_none() {
            part.steps.extend(image(context, machine, &file));
        }
        let line = qemu::command(machine);
        let program = Program {
            name: name.to_owned(),
            line,
            cpus: boot_cpus(context, machine),
            wants_input: false,
            quits_by: None,
        };
        part.steps.push(Step::Start(program));
        if machine.disk.is_some() {
            // Nobody in it counts for us.
            continue;
        }
        let ends = (0..2).map(|port| End::new(name, port).into()).collect();
        part.counters.push(Source { node: name.to_owned(), place: Place::Guest { socket: file("ctl") }, ends });
    }
    for machine in machines {
        // Made before it waits for the switch, in the order of its flags: the last one it needs no switch for.
        let socket = context.file(&format!("{}.qmp", machine.name));
        let what = format!("{}: its control socket", machine.name);
        part.steps.push(await_file(&what, "-S", socket, START, &machine.name));
    }
    for guest in context.topology.guest.iter().filter(|_| context.options.guests.accelerator().is_some()) {
        let socket = context.socket(&End::new(&guest.name, 0));
        let what = format!("{}: its socket", guest.name);
        part.steps.push(await_file(&what, "-S", socket, START, &guest.name));
    }
    part
}

/// The image of a machine, made on the spot.
fn image(context: &Context<'_>, machine: &Definition, file: &dyn Fn(&str) -> String) -> [Step; 2] {
    let spec = serde_json::to_string(&machine.spec).unwrap_or_default();
    let image = CommandLine(vec![context.linerate.to_owned()]).with(["lab", "guest", "image", "--spec"]);
    let files = [file("json"), "--kernel".into(), file("kernel"), "--initrd".into(), file("cpio")];
    [Step::Write { path: file("json"), text: spec }, Step::Run(image.with(files))]
}

/// A machine has booted and its application runs.
pub(super) fn up(context: &Context<'_>, machine: &Definition) -> Question {
    Question {
        what: format!("{}: has booted, its application runs", machine.name),
        line: CommandLine(vec![context.linerate.to_owned()])
            .with(["lab", "guest", "check"])
            .with([machine.file("ctl")]),
        want: Want::Success,
        within: BOOT,
        remedy: String::new(),
        logs: vec![machine.name.clone()],
        only_while_measured: false,
        again: Vec::new(),
    }
}

/// Where a machine boots. An emulated one takes all CPUs of the lab, the tester's too, since nothing is measured yet: on two CPUs
/// two guests are up in half the time. It is pinned after that.
fn boot_cpus(context: &Context<'_>, machine: &Definition) -> Vec<u32> {
    match machine.accelerator {
        "tcg" => context.cpus.all(),
        _ => vec![machine.emulator_cpu],
    }
}

/// Each machine has booted and its application runs.
pub(super) fn booted(context: &Context<'_>, machines: &[Definition]) -> Part {
    let mut part = Part::default();
    // Of a disk of the user's the switch says that its driver is there.
    for machine in machines.iter().filter(|machine| machine.disk.is_none()) {
        let up = up(context, machine);
        part.steps.push(Step::Await(up.clone()));
        part.checks.push(up);
    }
    part
}

/// The threads of each machine are on their CPUs.
pub(super) fn pinned(context: &Context<'_>, machines: &[Definition]) -> Part {
    let mut part = Part::default();
    for machine in machines {
        let Definition { name, pins, emulator_cpu, .. } = machine;
        let of_guest = |command: &str| {
            let line = CommandLine(vec![context.linerate.to_owned()]).with(["lab", "guest", command]);
            line.with([machine.file("qmp")])
        };
        let question = |what: &str, line: CommandLine, want: Want| Question {
            what: format!("{name}: {what}"),
            line,
            want,
            within: BOOT,
            remedy: String::new(),
            logs: vec![name.clone()],
            only_while_measured: false,
            again: Vec::new(),
        };
        let words = pins.iter().map(|(vcpu, cpu)| format!("{vcpu}:{cpu}"));
        part.steps
            .push(Step::Run(of_guest("pin").with(words).with(["--emulator".to_owned(), emulator_cpu.to_string()])));
        let holds = pins.iter().map(|(vcpu, cpu)| format!("vCPU {vcpu} on {cpu};")).collect();
        let pinned = question("its virtual CPUs are on the CPUs asked for", of_guest("vcpus"), Want::Holds(holds));
        part.steps.push(Step::Await(pinned.clone()));
        part.checks.push(pinned);
    }
    part
}

/// The CPU of each virtual CPU.
fn pins(context: &Context<'_>, guest: &Guest) -> Vec<(u32, u32)> {
    let polling = context.polling(guest).into_iter().cycle().take(context.options.queues as usize);
    let others = std::iter::repeat(context.cpus.control);
    (0..vcpus(context)).zip(others.clone().take(1).chain(polling).chain(others)).collect()
}

/// Locally administered: `02:4c:52`, the guest, the port.
fn mac(context: &Context<'_>, guest: &Guest, port: u32) -> String {
    let place = context.topology.guest.iter().position(|other| other.name == guest.name).unwrap_or(0);
    format!("02:4c:52:01:{place:02x}:{port:02x}")
}

/// The guest's boot line. Where a program polls: the documents' settings for its CPUs, and hugepages for it. A kernel that
/// forwards does so on all CPUs.
fn kernel_line(context: &Context<'_>, polls: bool) -> String {
    let line = "console=ttyS0 quiet loglevel=3 panic=-1 rdinit=/init nowatchdog";
    if !polls {
        return line.to_owned();
    }
    let polling = match context.options.queues {
        1 => "1".to_owned(),
        queues => format!("1-{queues}"),
    };
    format!(
        "{line} default_hugepagesz=2M hugepages={} isolcpus={polling} nohz_full={polling} rcu_nocbs={polling}",
        inside::hugepages(context.options.guest_mib)
    )
}
