//! Guests as virtual machines: QEMU, with the documents' virtio settings, an image made on the spot, and control over
//! virtio-serial.

use std::time::Duration;

use super::{
    context::{await_file, Context, Part},
    inside,
};
use crate::{
    counters::{Place, Source},
    line::CommandLine,
    step::{Program, Question, Step, Want},
    topology::{End, Guest},
    vm::{qmp, PORT},
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

/// All guests are started. QEMU waits for the switch before it lets a guest boot.
pub(super) fn start(context: &Context<'_>, accelerator: &str) -> Part {
    let mut part = Part::default();
    for guest in &context.topology.guest {
        let name = &guest.name;
        let file = |end: &str| context.file(&format!("{name}.{end}"));
        let spec = serde_json::to_string(&inside::spec(context, guest)).unwrap_or_default();
        part.steps.push(Step::Write { path: file("json"), text: spec });
        let image = CommandLine(vec![context.linerate.to_owned()]).with(["lab", "guest", "image", "--spec"]);
        part.steps.push(Step::Run(image.with([
            file("json"),
            "--kernel".into(),
            file("kernel"),
            "--initrd".into(),
            file("cpio"),
        ])));
        let line = qemu(context, guest, accelerator);
        part.steps.push(Step::Start(Program { name: name.clone(), line, cpus: Vec::new(), wants_input: false, quits_by: None }));
        let ends = (0..2).map(|port| End::new(name, port).into()).collect();
        part.counters.push(Source { node: name.clone(), place: Place::Guest { socket: file("ctl") }, ends });
    }
    for guest in &context.topology.guest {
        let socket = context.socket(&End::new(&guest.name, 0));
        part.steps.push(await_file(&format!("{}: its socket", guest.name), "-S", socket, START, log_of(context, guest)));
    }
    part
}

/// Each guest has booted and its application runs; its virtual CPUs are pinned.
pub(super) fn booted(context: &Context<'_>) -> Part {
    let mut part = Part::default();
    if context.options.guests.accelerator().is_none() {
        return part;
    }
    for guest in &context.topology.guest {
        let name = &guest.name;
        let of_guest = |command: &str| {
            let line = CommandLine(vec![context.linerate.to_owned()]).with(["lab", "guest", command]);
            line.with([context.file(&format!("{name}.{}", if command == "check" { "ctl" } else { "qmp" }))])
        };
        let question = |what: &str, line: CommandLine, want: Want| Question {
            what: format!("{name}: {what}"),
            line,
            want,
            within: BOOT,
            remedy: log_of(context, guest),
            only_while_measured: false,
        };
        let up = question("has booted, its application runs", of_guest("check"), Want::Success);
        part.steps.push(Step::Await(up.clone()));
        part.checks.push(up);
        let pins = pins(context, guest);
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

fn log_of(context: &Context<'_>, guest: &Guest) -> String {
    format!("see {} (its console)", context.file(&format!("{}.log", guest.name)))
}

fn qemu(context: &Context<'_>, guest: &Guest, accelerator: &str) -> CommandLine {
    let Context { options, .. } = context;
    let name = &guest.name;
    let file = |end: &str| context.file(&format!("{name}.{end}"));
    let (mib, queues, ring) = (options.guest_mib, options.queues, options.ring);
    let cpu = if accelerator == "kvm" { "host,migratable=off" } else { "max" };
    // The switch maps the guest's memory: hugepages where they decide the rate.
    let huge = if accelerator == "kvm" && options.hugepages { ",hugetlb=on,hugetlbsize=2M,prealloc=on" } else { "" };
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
    for port in 0..2 {
        let socket = context.socket(&End::new(name, port));
        let many = if queues > 1 { ",mq=on" } else { "" };
        // An interrupt for each ring and two more. Emulated, QEMU 7.2 crashes on them: its kernel part has none then.
        let vectors = if accelerator == "tcg" { 0 } else { 2 * queues + 2 };
        line = line.with([
            "-chardev".to_owned(),
            format!("socket,id=c{port},path={socket},server=on"),
            "-netdev".into(),
            format!("vhost-user,id=n{port},chardev=c{port},queues={queues}"),
            "-device".into(),
            format!(
                "virtio-net-pci,id={},netdev=n{port},addr={:x},mac={},disable-legacy=on,romfile=,rx_queue_size={ring},\
                 tx_queue_size={ring}{many},vectors={vectors},{VIRTIO}",
                qmp::device(port),
                FIRST_SLOT + port,
                mac(context, guest, port)
            ),
        ]);
    }
    line.with([
        "-kernel".to_owned(),
        file("kernel"),
        "-initrd".into(),
        file("cpio"),
        "-append".into(),
        kernel_line(context),
    ])
}

/// Locally administered: `02:4c:52`, the guest, the port.
fn mac(context: &Context<'_>, guest: &Guest, port: u32) -> String {
    let place = context.topology.guest.iter().position(|other| other.name == guest.name).unwrap_or(0);
    format!("02:4c:52:01:{place:02x}:{port:02x}")
}

/// The guest's boot line: the documents' settings for polling CPUs.
fn kernel_line(context: &Context<'_>) -> String {
    let polling = match context.options.queues {
        1 => "1".to_owned(),
        queues => format!("1-{queues}"),
    };
    format!(
        "console=ttyS0 quiet loglevel=3 panic=-1 rdinit=/init default_hugepagesz=2M hugepages={} isolcpus={polling} \
         nohz_full={polling} rcu_nocbs={polling} nowatchdog",
        inside::hugepages(context.options.guest_mib)
    )
}
