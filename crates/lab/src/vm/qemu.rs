//! The command line of QEMU for a machine.

use super::{
    definition::{Definition, Joined, MachinePort, FIRST_SLOT, OFF},
    disk, qmp, PORT,
};
use crate::line::CommandLine;

/// The command that runs a machine. QEMU waits for the switch before the machine boots.
pub fn command(machine: &Definition) -> CommandLine {
    let Definition { name, accelerator, mib, vcpus, .. } = machine;
    let cpu = if *accelerator == "kvm" { "host,migratable=off" } else { "max" };
    let huge = if machine.hugepages { ",hugetlb=on,hugetlbsize=2M,prealloc=on" } else { "" };
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
        vcpus.to_string(),
        "-m".into(),
        format!("{mib}M"),
        "-object".into(),
        // Shared: the switch maps it.
        format!("memory-backend-memfd,id=m0,size={mib}M,share=on{huge}"),
        "-numa".into(),
        "node,memdev=m0".into(),
        "-chardev".into(),
        format!("socket,id=ctl,path={},server=on,wait=off", machine.file("ctl")),
        "-device".into(),
        "virtio-serial-pci,addr=2,disable-legacy=on".into(),
        "-device".into(),
        format!("virtserialport,chardev=ctl,name={PORT}"),
        "-qmp".into(),
        format!("unix:{},server=on,wait=off", machine.file("qmp")),
    ]);
    for (n, port) in (0..).zip(&machine.ports) {
        line = line.with(network(n, port)).with(["-device".to_owned(), device(machine, n, port)]);
    }
    if let Some(disk) = &machine.disk {
        // What the machine writes goes to a file that is gone with it.
        return line.with([
            "-drive".to_owned(),
            format!("file={},format={},if=none,id=disk,snapshot=on", disk.replace(',', ",,"), disk::format(disk)),
            "-device".into(),
            "virtio-blk-pci,drive=disk,bootindex=0".into(),
        ]);
    }
    line.with([
        "-kernel".to_owned(),
        machine.file("kernel"),
        "-initrd".into(),
        machine.file("cpio"),
        "-append".into(),
        machine.kernel_line.clone(),
    ])
}

fn network(n: u32, port: &MachinePort) -> Vec<String> {
    match &port.joined {
        Joined::VhostUser(socket) => vec![
            "-chardev".to_owned(),
            format!("socket,id=c{n},path={socket},server=on"),
            "-netdev".into(),
            format!("vhost-user,id=n{n},chardev=c{n},queues={}", port.queues),
        ],
        Joined::Tap(interface) => {
            vec!["-netdev".to_owned(), format!("tap,id=n{n},ifname={interface},script=no,downscript=no")]
        }
    }
}

fn device(machine: &Definition, n: u32, port: &MachinePort) -> String {
    let MachinePort { mac, queues, ring, .. } = port;
    let tx_ring = port.tx_ring();
    let many = if *queues > 1 { ",mq=on" } else { "" };
    // An interrupt for each ring and two more. Emulated, QEMU 7.2 crashes on them: its kernel part has none then.
    let vectors = if machine.accelerator == "tcg" { 0 } else { 2 * queues + 2 };
    let off: Vec<String> = OFF.iter().map(|name| format!("{name}=off")).collect();
    format!(
        "virtio-net-pci,id={},netdev=n{n},addr={:x},mac={mac},disable-legacy=on,romfile=,rx_queue_size={ring},\
         tx_queue_size={tx_ring}{many},vectors={vectors},{}",
        qmp::device(n),
        FIRST_SLOT + n,
        off.join(",")
    )
}
