//! Labs with virtual machines: each boots a real kernel under QEMU, emulated where KVM does not run.

// Fixtures report by panicking.
#![allow(clippy::panic, clippy::unwrap_used)]

use std::{
    fs,
    process::{Command, Stdio},
    time::Duration,
};

use lab::{
    options::GuestKind,
    topology,
    vm::{libvirt, Definition},
    Build, LabOptions,
};
use serde_json::Value;

use crate::support::{
    self, exclusive,
    labs::{does, EndOfLabs},
    require,
    tester::{ended, linerate, BINARY},
    wait_until, Needs,
};

const ALL: [Needs; 5] = [Needs::Root, Needs::Hugepages(160), Needs::OvsDpdk, Needs::Network, Needs::Machines];

/// Sends a few frames through a lab and returns the frames of each hop of the first direction.
fn hops(name: &str) -> (Value, Vec<(String, u64)>) {
    let trial = linerate(&["trial", "--lab", name, "--load", "1kpps", "--duration", "500ms", "--json", "-", "-q"]);
    // An emulated guest beside other tests may lose frames, and the tester may be late.
    assert!(matches!(trial.code, 0 | 3), "{}{}", trial.stdout, trial.stderr);
    let result = trial.json();
    let hops = result["trials"][0]["directions"][0]["hops"].as_array().cloned().unwrap_or_default();
    let one = |hop: &Value| {
        let frames = hop["frames"].as_u64().unwrap_or_else(|| panic!("unknown: {hop}"));
        (hop["at"].as_str().unwrap_or_default().to_owned(), frames)
    };
    let hops = hops.iter().map(one).collect();
    (result, hops)
}

#[test]
fn guests_boot_forward_and_count_to_the_frame() {
    let _alone = exclusive();
    let _end = EndOfLabs;
    require(&ALL);
    // The program in the guest, the passages of a frame, and what shows in the guest that it is what was asked.
    let labs: [(&[&str], usize, &[&str], &str); 5] = [
        (&["phy-vm-phy", "--guests", "vm"], 8, &["cat", "/run/lab/vm1.log"], "testpmd>"),
        (&["phy-vm-vm-phy", "--guests", "vm", "--application", "l2"], 12, &["/init", "ports"], "uio_pci_generic"),
        (&["phy-vm-phy", "--application", "kernel-bridge"], 8, &["ip", "link", "show", "master", "br0"], "d1"),
        (&["ovs-kernel"], 4, &["ovs-appctl", "-t", "/run/lab/vswitchd.ctl", "dpif/show"], "system@ovs-system"),
        (&["kernel-router", "--kernel-in", "vm"], 4, &["ip", "route"], "198.19.0.0/16 via"),
    ];
    for (flags, passages, command, shows) in labs {
        let name = support::unique("lab");
        does(&[&["lab", "up"], flags, &["--name", &name]].concat());
        let (result, hops) = hops(&name);
        assert_eq!(hops.len(), passages, "{flags:?}: {hops:?}");
        let direction = &result["trials"][0]["directions"][0];
        assert_eq!(hops[0].1, direction["sent"], "{flags:?}: {hops:?}");
        assert_eq!(hops.last().map(|hop| hop.1), direction["received"].as_u64(), "{flags:?}: {hops:?}");
        assert!(hops.windows(2).all(|pair| pair[0].1 >= pair[1].1), "{flags:?}: {hops:?}");
        assert!(hops.last().is_some_and(|hop| hop.1 > 0), "{flags:?}: nothing came through: {hops:?}");
        let versions = result["lab"]["versions"].to_string();
        assert!(versions.contains("QEMU") && versions.contains("Linux"), "{versions}");
        let node = if hops.len() > 4 { "vm1" } else { "dut" };
        let looked = does(&[&["lab", "exec", "--lab", &name, node], command].concat());
        assert!(looked.stdout.contains(shows), "{flags:?}: {}", looked.stdout);
        assert_eq!(linerate(&["lab", "exec", "--lab", &name, node, "cat", "/nothing"]).code, 1);
        does(&["lab", "check", &name]);
        does(&["lab", "down", &name]);
    }
    assert_eq!(linerate(&["lab", "up", "phy-vm-phy", "--guests", "process", "--application", "ovs-kernel"]).code, 2);
}

#[test]
fn a_guest_that_does_not_come_up_says_why() {
    let _alone = exclusive();
    let _end = EndOfLabs;
    require(&ALL);
    let logs = tempfile::tempdir().unwrap();
    let name = support::unique("lab");
    let flags = ["phy-vm-phy", "--name", &name, "--guests", "vm", "--logs", logs.path().to_str().unwrap()];
    let mut up = Command::new(BINARY);
    let up =
        up.args([&["lab", "up"][..], &flags].concat()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut qemu = None;
    wait_until("its virtual machine", Duration::from_secs(30), || {
        let all = support::run(&["ps", "-eo", "pid,args"]);
        let line = all.lines().find(|line| line.contains("qemu-system") && line.contains("/run/lab/vm1.ctl"));
        qemu = line.and_then(|line| line.split_whitespace().next()?.parse::<u32>().ok());
        // It has said something: the log that is kept has to have it.
        let said = |id: u32| std::fs::read_to_string(format!("/proc/{id}/root/run/lab/vm1.log")).unwrap_or_default();
        qemu.is_some_and(|id| said(id).contains("QEMU waiting"))
    });
    support::send_signal(qemu.unwrap(), "KILL");
    let up = ended(&up.wait_with_output().unwrap());
    assert_eq!(up.code, 4, "{}{}", up.stdout, up.stderr);
    let said = up.stderr.lines().last().unwrap_or_default();
    assert!(said.contains("vm1 has ended"), "{}", up.stderr);
    let console = std::fs::read_to_string(logs.path().join("vm1.log")).unwrap();
    assert!(console.contains("QEMU"), "{console}");
    assert_eq!(linerate(&["lab", "check", &name]).code, 4, "nothing is up");
}

#[test]
fn a_machine_as_xml_of_libvirt_is_valid() {
    require(&[Needs::Machines]);
    let dir = tempfile::tempdir().unwrap();
    for (topology, guests, kernels, queues) in [
        ("phy-vm-vm-phy", GuestKind::Kvm, GuestKind::Process, 2),
        ("phy-vm-phy", GuestKind::Tcg, GuestKind::Process, 1),
        ("ovs-kernel", GuestKind::Process, GuestKind::Kvm, 1),
    ] {
        let options = LabOptions { guests, kernels, queues, ..LabOptions::default() };
        let build =
            Build::new(topology::load(topology).unwrap(), options, &[0, 1, 2, 3], "linerate", "/run/lab").unwrap();
        assert!(!build.machines.is_empty(), "{topology}");
        let own = build.machines[..1].iter().cloned().map(|m| Definition { disk: Some("/disk.qcow2".into()), ..m });
        let own: Vec<Definition> = own.collect();
        for machine in build.machines.iter().chain(&own) {
            let file = dir.path().join("machine.xml");
            std::fs::write(&file, libvirt::xml(machine).unwrap()).unwrap();
            let valid = Command::new("virt-xml-validate").arg(&file).arg("domain").output().unwrap();
            let said = [valid.stdout, valid.stderr].map(|text| String::from_utf8_lossy(&text).into_owned()).concat();
            assert!(valid.status.success(), "{topology} {}: {said}", machine.name);
        }
    }
    // And as a user has it; a guest that is a process has none.
    let shown = does(&["lab", "show", "phy-vm-phy", "--guests", "tcg", "--libvirt", "vm1"]);
    assert!(shown.stdout.contains("<name>vm1</name>") && shown.stdout.contains("mode=\"server\""), "{}", shown.stdout);
    assert_eq!(linerate(&["lab", "show", "phy-vm-phy", "--guests", "process", "--libvirt", "vm1"]).code, 2);
    assert_eq!(linerate(&["lab", "show", "phy-vm-phy", "--guests", "tcg", "--libvirt", "vm9"]).code, 2);
}

#[test]
fn a_disk_of_the_users_boots_in_place_of_the_image() {
    let _alone = exclusive();
    let _end = EndOfLabs;
    require(&ALL);
    require(&[Needs::BootableDisks]);
    // A disk that boots by itself: GRUB, the kernel and the image that a lab would have made, with a bridge in it.
    let dir = tempfile::tempdir().unwrap();
    let file = |name: &str| dir.path().join(name).to_str().unwrap().to_owned();
    let options = LabOptions {
        guests: GuestKind::Tcg,
        application: Some(topology::Application::KernelBridge),
        ..LabOptions::default()
    };
    let build = Build::new(topology::load("phy-vm-phy").unwrap(), options, &[0, 1], BINARY, "/run/lab").unwrap();
    let machine = &build.machines[0];
    fs::create_dir_all(dir.path().join("disk/boot/grub")).unwrap();
    fs::write(file("spec"), serde_json::to_string(&machine.spec).unwrap()).unwrap();
    let (kernel, initrd) = (file("kernel"), file("disk/initrd"));
    does(&["lab", "guest", "image", "--spec", &file("spec"), "--initrd", &initrd, "--kernel", &kernel]);
    fs::copy(&kernel, file("disk/kernel")).unwrap();
    let menu = format!("set timeout=0\nmenuentry x {{ linux /kernel {}; initrd /initrd; }}\n", machine.kernel_line);
    fs::write(file("disk/boot/grub/grub.cfg"), menu).unwrap();
    support::run(&["grub-mkrescue", "-o", &file("disk.iso"), &file("disk")]);
    let before = fs::read(file("disk.iso")).unwrap();

    let name = support::unique("lab");
    let disk = format!("vm1={}", file("disk.iso"));
    does(&["lab", "up", "phy-vm-phy", "--guests", "tcg", "--disk", &disk, "--name", &name]);
    // Its driver has made the rings; when its bridge forwards nobody tells.
    let mut hops = Vec::new();
    wait_until("frames through the disk's own application", Duration::from_secs(120), || {
        let trial = ["trial", "--lab", &name, "--load", "1kpps", "--duration", "300ms", "--json", "-", "-q"];
        let trial = linerate(&trial);
        assert!(matches!(trial.code, 0 | 3), "{}{}", trial.stdout, trial.stderr);
        hops = trial.json()["trials"][0]["directions"][0]["hops"].as_array().unwrap().clone();
        hops.last().unwrap()["frames"].as_u64() > Some(0)
    });
    let unknown: Vec<&str> = hops.iter().filter(|h| h["frames"].is_null()).map(|h| h["at"].as_str().unwrap()).collect();
    assert_eq!(unknown, ["vm1:0", "vm1:1"], "nobody in it counts: {hops:?}");
    does(&["lab", "check", &name]);
    does(&["lab", "down", &name]);
    assert!(fs::read(file("disk.iso")).unwrap() == before, "the disk is as it was");
    let up = |disk: &str, guests: &str| linerate(&["lab", "up", "phy-vm-phy", "--guests", guests, "--disk", disk]);
    for (disk, guests, code) in
        [("vm9=/dev/null", "tcg", 2), ("vm1=/no/such", "tcg", 2), (&disk, "process", 2), ("vm1", "tcg", 2)]
    {
        let refused = up(disk, guests);
        assert_eq!((refused.code, refused.stderr.lines().count()), (code, 1), "{disk}: {}", refused.stderr);
    }
}
