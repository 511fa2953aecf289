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
    topology::{End, Guest, Kernel, Topology},
    vm::{qmp, GuestSpec, PORT},
};

/// How long QEMU may take to make its sockets, and a guest to boot and start its application. Emulated guests share few CPUs.
const START: Duration = Duration::from_secs(20);
const BOOT: Duration = Duration::from_secs(120);

/// The place of a guest's first port on its PCI bus.
const FIRST_SLOT: u32 = 3;

/// Offloads off and buffers unmerged, as in both documents: frames pass as they came.
const VIRTIO: &str = "mrg_rxbuf=off,csum=off,gso=off,guest_csum=off,guest_tso4=off,guest_tso6=off,guest_ecn=off,guest_ufo=off,\
                      host_tso4=off,host_tso6=off,host_ecn=off,host_ufo=off";

/// The PCI address of a guest's port, as the guest sees it.
pub(super) fn pci_address(port: u32) -> String {
    format!("0000:00:{:02x}.0", FIRST_SLOT + port)
}

/// Virtual CPUs of a guest: one for control, one that polls for each queue.
pub(super) fn vcpus(context: &Context<'_>) -> u32 {
    1 + context.options.queues
}

/// A virtual machine before it is a command line.
struct Machine<'a> {
    name: &'a str,
    accelerator: &'a str,
    spec: GuestSpec,
    /// Its two ports: what QEMU joins each to (`-netdev`, with `-chardev` before it), and the port's address.
    ports: [(Vec<String>, String); 2],
    /// Whether a program polls its ports, rather than its kernel forwarding.
    polls: bool,
    /// Where each virtual CPU is to run; none: anywhere.
    pins: Vec<(u32, u32)>,
}

/// All machines of a lab: its guests, and those that stand in for this machine's kernel.
fn machines<'a>(context: &Context<'a>) -> Vec<Machine<'a>> {
    let Context { topology, options, .. } = context;
    let guests = options.guests.accelerator().into_iter().flat_map(|accelerator| {
        topology.guest.iter().map(move |guest| Machine {
            name: &guest.name,
            accelerator,
            spec: inside::spec(context, guest),
            ports: [0, 1].map(|port| (vhost_user(context, guest, port), mac(context, guest, port))),
            polls: !guest.application.needs_a_machine(),
            pins: pins(context, guest),
        })
    });
    let kernels = options.kernels.accelerator().into_iter().flat_map(|accelerator| {
        topology.kernel.iter().map(move |node| Machine {
            name: &node.name,
            accelerator,
            spec: inside::kernel_spec(node, &kernel::testers(topology, node)),
            ports: [0, 1].map(|port| (tap(topology, node, port), kernel::node_mac(port))),
            polls: false,
            pins: Vec::new(),
        })
    });
    guests.chain(kernels).collect()
}

/// All machines are started. QEMU waits for the switch before it lets a guest boot.
pub(super) fn start(context: &Context<'_>) -> Part {
    let mut part = Part::default();
    let machines = machines(context);
    for machine in &machines {
        let name = machine.name;
        let file = |end: &str| context.file(&format!("{name}.{end}"));
        let spec = serde_json::to_string(&machine.spec).unwrap_or_default();
        part.steps.push(Step::Write { path: file("json"), text: spec });
        let image = CommandLine(vec![context.linerate.to_owned()]).with(["lab", "guest", "image", "--spec"]);
        part.steps.push(Step::Run(image.with([
            file("json"),
            "--kernel".into(),
            file("kernel"),
            "--initrd".into(),
            file("cpio"),
        ])));
        let line = qemu(context, machine);
        let program = Program { name: name.to_owned(), line, cpus: Vec::new(), wants_input: false, quits_by: None };
        part.steps.push(Step::Start(program));
        let ends = (0..2).map(|port| End::new(name, port).into()).collect();
        part.counters.push(Source { node: name.to_owned(), place: Place::Guest { socket: file("ctl") }, ends });
    }
    for machine in &machines {
        // Made before it waits for the switch, in the order of its flags: the last one it needs no switch for.
        let socket = context.file(&format!("{}.qmp", machine.name));
        let what = format!("{}: its control socket", machine.name);
        part.steps.push(await_file(&what, "-S", socket, START, log_of(context, machine.name)));
    }
    for guest in context.topology.guest.iter().filter(|_| context.options.guests.accelerator().is_some()) {
        let socket = context.socket(&End::new(&guest.name, 0));
        let what = format!("{}: its socket", guest.name);
        part.steps.push(await_file(&what, "-S", socket, START, log_of(context, &guest.name)));
    }
    part
}

/// Each machine has booted and its application runs; its virtual CPUs are pinned.
pub(super) fn booted(context: &Context<'_>) -> Part {
    let mut part = Part::default();
    for machine in machines(context) {
        let Machine { name, pins, .. } = &machine;
        let of_guest = |command: &str| {
            let line = CommandLine(vec![context.linerate.to_owned()]).with(["lab", "guest", command]);
            line.with([context.file(&format!("{name}.{}", if command == "check" { "ctl" } else { "qmp" }))])
        };
        let question = |what: &str, line: CommandLine, want: Want| Question {
            what: format!("{name}: {what}"),
            line,
            want,
            within: BOOT,
            remedy: log_of(context, name),
            only_while_measured: false,
        };
        let up = question("has booted, its application runs", of_guest("check"), Want::Success);
        part.steps.push(Step::Await(up.clone()));
        part.checks.push(up);
        if pins.is_empty() {
            continue;
        }
        let words = pins.iter().map(|(vcpu, cpu)| format!("{vcpu}:{cpu}"));
        part.steps.push(Step::Run(of_guest("pin").with(words)));
        let holds = pins.iter().map(|(vcpu, cpu)| format!("vCPU {vcpu} on {cpu};")).collect();
        let pinned = question("its virtual CPUs are on the CPUs asked for", of_guest("vcpus"), Want::Holds(holds));
        part.steps.push(Step::Await(pinned.clone()));
        part.checks.push(pinned);
    }
    part
}

/// The CPU of each virtual CPU.
fn pins(context: &Context<'_>, guest: &Guest) -> Vec<(u32, u32)> {
    let polling = context.cpus.guests.get(&guest.name).copied().unwrap_or(context.cpus.control);
    (0..vcpus(context)).map(|vcpu| (vcpu, if vcpu == 0 { context.cpus.control } else { polling })).collect()
}

fn log_of(context: &Context<'_>, name: &str) -> String {
    format!("see {} (its console; --logs DIR keeps it)", context.file(&format!("{name}.log")))
}

/// A port that a switch takes: QEMU serves the socket, and waits for the switch.
fn vhost_user(context: &Context<'_>, guest: &Guest, port: u32) -> Vec<String> {
    let (socket, queues) = (context.socket(&End::new(&guest.name, port)), context.options.queues);
    vec![
        "-chardev".to_owned(),
        format!("socket,id=c{port},path={socket},server=on"),
        "-netdev".into(),
        format!("vhost-user,id=n{port},chardev=c{port},queues={queues}"),
    ]
}

/// A port that is joined to an interface of the lab.
fn tap(topology: &Topology, node: &Kernel, port: u32) -> Vec<String> {
    let tester = topology.peer(&End::new(&node.name, port)).map_or(port, |end| end.port);
    let interface = kernel::tester_interface(tester);
    vec!["-netdev".to_owned(), format!("tap,id=n{port},ifname={interface},script=no,downscript=no")]
}

fn qemu(context: &Context<'_>, machine: &Machine<'_>) -> CommandLine {
    let Context { options, .. } = context;
    let Machine { name, accelerator, .. } = machine;
    let file = |end: &str| context.file(&format!("{name}.{end}"));
    let (mib, queues, ring) = (options.guest_mib, options.queues, options.ring);
    let cpu = if *accelerator == "kvm" { "host,migratable=off" } else { "max" };
    // The switch maps the guest's memory: hugepages where they decide the rate.
    let huge = if *accelerator == "kvm" && options.hugepages { ",hugetlb=on,hugetlbsize=2M,prealloc=on" } else { "" };
    let mut line = CommandLine::words(
        "qemu-system-x86_64 -nodefaults -no-user-config -nographic -no-reboot -sandbox on -serial stdio",
    )
    .with([
        "-name".to_owned(),
        format!("guest={name},debug-threads=on"),
        "-machine".into(),
        format!("q35,accel={accelerator},mem-merge=off,dump-guest-core=off"),
        "-cpu".into(),
        cpu.into(),
        "-smp".into(),
        vcpus(context).to_string(),
        "-m".into(),
        format!("{mib}M"),
        "-object".into(),
        format!("memory-backend-memfd,id=m0,size={mib}M,share=on{huge}"),
        "-numa".into(),
        "node,memdev=m0".into(),
        "-chardev".into(),
        format!("socket,id=ctl,path={},server=on,wait=off", file("ctl")),
        "-device".into(),
        "virtio-serial-pci,addr=2,disable-legacy=on".into(),
        "-device".into(),
        format!("virtserialport,chardev=ctl,name={PORT}"),
        "-qmp".into(),
        format!("unix:{},server=on,wait=off", file("qmp")),
    ]);
    for (port, (joined, mac)) in (0..).zip(&machine.ports) {
        let many = if queues > 1 { ",mq=on" } else { "" };
        // An interrupt for each ring and two more. Emulated, QEMU 7.2 crashes on them: its kernel part has none then.
        let vectors = if *accelerator == "tcg" { 0 } else { 2 * queues + 2 };
        // QEMU takes longer rings to the guest only where another process has them.
        let tx_ring = if joined.iter().any(|word| word.starts_with("vhost-user")) { ring } else { ring.min(256) };
        line = line.with(joined.iter().cloned()).with([
            "-device".to_owned(),
            format!(
                "virtio-net-pci,id={},netdev=n{port},addr={:x},mac={mac},disable-legacy=on,romfile=,rx_queue_size={ring},\
                 tx_queue_size={tx_ring}{many},vectors={vectors},{VIRTIO}",
                qmp::device(port),
                FIRST_SLOT + port,
            ),
        ]);
    }
    line.with([
        "-kernel".to_owned(),
        file("kernel"),
        "-initrd".into(),
        file("cpio"),
        "-append".into(),
        kernel_line(context, machine.polls),
    ])
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
