//! NICs on a PCI bus: the drivers of DPDK for QEMU's NICs, in a guest that this program is the first process of. Two NICs hang
//! on one hub, so that what one sends the other receives.

// Fixtures report by panicking.
#![allow(clippy::panic, clippy::unwrap_used)]

use std::{
    fs,
    time::{Duration, Instant},
};

use lab::{
    line::CommandLine,
    protocol::{Answer, Ask},
    vm::{self, GuestSpec, INIT},
};
use serde_json::Value;

use crate::support::{require, tester::linerate, Needs, Process};

/// Where QEMU puts the two NICs.
const NICS: [&str; 2] = ["0000:00:03.0", "0000:00:04.0"];

/// Frames that teach the network where the tester is, before a trial, each way.
const LEARNING_FRAMES: u64 = 8;

/// How long an emulated guest may take to boot, and a command in it.
const BOOT: Duration = Duration::from_secs(120);
const COMMAND: Duration = Duration::from_secs(60);

/// A guest with NICs of one kind on hubs.
struct Guest {
    qemu: Process,
    dir: tempfile::TempDir,
}

impl Guest {
    /// Two NICs on one hub.
    fn boot(nic: &str) -> Self {
        Self::with(nic, &[0, 0], &["cat", "ip"], 200, 1100)
    }

    /// A NIC on each of these hubs, at slots from 3 on; these programs, hugepages of 2 MiB, and MiB of memory.
    fn with(nic: &str, hubs: &[u32], programs: &[&str], hugepages: u32, mib: u32) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let file = |name: &str| dir.path().join(name).to_str().unwrap().to_owned();
        let modules = ["virtio_pci", "virtio_console", "virtio_net", "uio", "uio_pci_generic"].map(str::to_owned);
        let spec = GuestSpec {
            name: "nic".into(),
            modules: modules.into(),
            programs: programs.iter().map(|program| (*program).to_owned()).collect(),
            ..GuestSpec::default()
        };
        fs::write(file("spec"), serde_json::to_string(&spec).unwrap()).unwrap();
        let made = linerate(&[
            "lab",
            "guest",
            "image",
            "--spec",
            &file("spec"),
            "--initrd",
            &file("initrd"),
            "--kernel",
            &file("kernel"),
        ]);
        assert_eq!(made.code, 0, "{}", made.stderr);
        let append =
            format!("console=ttyS0 quiet loglevel=3 panic=-1 rdinit=/init default_hugepagesz=2M hugepages={hugepages}");
        let mut argv: Vec<String> = "qemu-system-x86_64 -nodefaults -no-user-config -nographic -no-reboot -serial stdio -machine \
                                     q35,accel=tcg -cpu max -smp 2 -device virtio-serial-pci,addr=2,disable-legacy=on -device \
                                     virtserialport,chardev=ctl,name=linerate"
            .split_whitespace()
            .map(str::to_owned)
            .collect();
        argv.extend(["-m".into(), format!("{mib}M")]);
        argv.extend(["-chardev".into(), format!("socket,id=ctl,path={},server=on,wait=off", file("ctl"))]);
        argv.extend(["-qmp".into(), format!("unix:{},server=on,wait=off", file("qmp"))]);
        for (port, hub) in hubs.iter().enumerate() {
            let slot = 3 + port;
            argv.extend(["-netdev".into(), format!("hubport,id=n{port},hubid={hub}")]);
            argv.extend([
                "-device".into(),
                format!("{nic},id=port{port},netdev=n{port},addr={slot},mac=02:4c:52:00:00:0{port},romfile="),
            ]);
        }
        argv.extend(["-kernel".into(), file("kernel"), "-initrd".into(), file("initrd"), "-append".into(), append]);
        let qemu = Process::spawn(&argv, None, &[], &dir.path().join("console"));
        let mut guest = Self { qemu, dir };
        let until = Instant::now() + BOOT;
        while vm::ask(&guest.file("ctl"), &Ask::Check, Duration::from_secs(1)).is_err() {
            assert!(guest.qemu.alive() && Instant::now() < until, "{nic}: {}", guest.qemu.tail());
        }
        guest
    }

    fn file(&self, name: &str) -> std::path::PathBuf {
        self.dir.path().join(name)
    }

    /// Runs a command: whether it succeeded, and what it printed on both outputs.
    fn run(&self, line: &str) -> (bool, String) {
        let ask = Ask::Run { node: "nic".into(), line: CommandLine::words(line) };
        match vm::ask(&self.file("ctl"), &ask, COMMAND).unwrap() {
            Answer::Ran { succeeded, printed, errors } => (succeeded, printed + &errors),
            other => panic!("{line}: {other:?}"),
        }
    }

    #[track_caller]
    fn does(&self, line: &str) -> String {
        let (succeeded, printed) = self.run(line);
        assert!(succeeded, "{line}: {printed}");
        printed
    }
}

#[test]
fn every_nic_of_qemu_carries_frames_and_counts_them() {
    require(&[Needs::Machines]);
    for nic in ["e1000", "e1000e", "vmxnet3", "virtio-net-pci,disable-legacy=on,vectors=0"] {
        let guest = Guest::boot(nic);
        let [a, b] = NICS;
        let listed = guest.does(&format!("{INIT} ports"));
        assert!(
            listed.contains(a) && listed.contains(&format!("linerate ports --bind uio_pci_generic {b}")),
            "{listed}"
        );
        // A NIC that the kernel has, or nobody, is refused with the command that binds it.
        let (taken, said) = guest.run(&format!("{INIT} trial --port {a} --port {b} --load 1kpps"));
        assert!(!taken && said.contains("linerate ports --bind"), "{nic}: {said}");
        guest.does(&format!("{INIT} ports --bind uio_pci_generic {a} {b}"));
        let listed = guest.does(&format!("{INIT} ports --json"));
        let listed: Value = serde_json::from_str(&listed).unwrap();
        assert!(
            listed.as_array().unwrap().iter().all(|nic| nic["driver"] == "uio_pci_generic" && nic["free"] == true),
            "{listed}"
        );
        // Without hugepages nothing knows where frames are.
        let (done, said) = guest.run(&format!("{INIT} trial --port {a} --port {b} --load 1kpps --memory no-hugepages"));
        assert!(!done && said.contains("hugepages"), "{nic}: {said}");
        let trial = "trial --load 500pps --frame-size 128 --duration 1s --memory-mib 128 --json /run/result -q";
        let (_, said) = guest.run(&format!("{INIT} {trial} --port {a} --port {b}"));
        let result = guest.does("cat /run/result");
        let result: Value = serde_json::from_str(&result).unwrap_or_else(|e| panic!("{nic}: {e}: {said}{result}"));
        let direction = &result["trials"][0]["directions"][0];
        let sent = direction["sent"].as_u64().unwrap();
        assert!(sent > 0, "{nic}: {direction}");
        assert_eq!(direction["received"], sent, "{nic}: {direction}");
        // A NIC may count a frame of before the trial a little later, as an emulated one does on a busy machine.
        for count in ["port_tx", "port_rx"] {
            let counted = direction[count].as_u64().unwrap_or(sent);
            let beside = direction["foreign"].as_u64().unwrap() + LEARNING_FRAMES;
            assert!((sent..=sent + beside).contains(&counted), "{nic}: {count}: {counted} of {sent}: {direction}");
        }
        // And back: virtio's own driver takes it again, the others have none in this kernel.
        let back = guest.does(&format!("{INIT} ports --give-back {a} {b}"));
        assert!(
            back.contains(if nic.starts_with("virtio") { "virtio-pci has it" } else { "no driver" }),
            "{nic}: {back}"
        );
    }
}

/// The driver of each NIC of the guest, in the order of the bus.
fn drivers(guest: &Guest) -> Vec<String> {
    let listed: Value = serde_json::from_str(&guest.does(&format!("{INIT} ports --json"))).unwrap();
    listed.as_array().unwrap().iter().map(|nic| nic["driver"].as_str().unwrap_or("none").to_owned()).collect()
}

#[test]
fn a_lab_takes_nics_and_they_come_back_also_after_a_crash() {
    require(&[Needs::Machines]);
    // The tester's two NICs, each on a hub with one of the device's.
    let programs = ["cat", "sh", "ip", "setpriv", "setsid", "unshare", "nsenter", "kill"];
    let guest = Guest::with("virtio-net-pci,disable-legacy=on,vectors=0", &[0, 1, 0, 1], &programs, 300, 1400);
    let of_kernel = vec!["virtio-pci".to_owned(); 4];
    let of_lab = vec!["uio_pci_generic".to_owned(); 4];
    assert_eq!(drivers(&guest), of_kernel);
    let nics = "--phy 0000:00:05.0,0000:00:06.0 --tester-ports 0000:00:03.0,0000:00:04.0";
    let up = format!("{INIT} lab up phy-phy --application l2 {nics} --name nics");
    guest.does(&up);
    assert_eq!(drivers(&guest), of_lab);
    let trial = "trial --lab nics --load 500pps --frame-size 128 --duration 1s --memory-mib 128 --json /result -q";
    let (_, said) = guest.run(&format!("{INIT} {trial}"));
    let result = guest.does("cat /result");
    let result: Value = serde_json::from_str(&result).unwrap_or_else(|e| panic!("{e}: {said}{result}"));
    let hops = result["trials"][0]["directions"][0]["hops"].as_array().unwrap();
    let at: Vec<&str> = hops.iter().map(|hop| hop["at"].as_str().unwrap()).collect();
    assert_eq!(at, ["tester:0", "fwd:0", "fwd:1", "tester:1"]);
    assert!(hops.iter().all(|hop| hop["frames"].as_u64() > Some(0)), "{hops:?}");
    let down = guest.does(&format!("{INIT} lab down nics"));
    assert_eq!(down.matches("given back").count(), 4, "{down}");
    assert_eq!(drivers(&guest), of_kernel);
    // Its holder is killed: nobody is left to give anything back, until the next lab is brought up, or somebody asks for it.
    let killed = |up: &str| {
        let said = guest.does(up);
        let status: Value = serde_json::from_str(&guest.does(&format!("{INIT} lab status --json"))).unwrap();
        guest.does(&format!("kill -9 {}", status[0]["holder"]));
        assert_eq!(drivers(&guest), of_lab);
        said.matches("given back").count()
    };
    assert_eq!(killed(&up), 0);
    assert_eq!(killed(&up), 4, "the second took them anew");
    let mended = guest.does(&format!("{INIT} lab down --all"));
    assert_eq!(mended.matches("given back").count(), 4, "{mended}");
    assert_eq!(drivers(&guest), of_kernel);
    assert!(!guest.does(&format!("{INIT} lab down --all")).contains("given back"));
    // One that does not come up gives back what it took: somebody uses the last of its NICs.
    guest.does("ip link set eth3 up");
    let (up, said) = guest.run(&up);
    assert!(!up && said.contains("eth3"), "{said}");
    assert_eq!(drivers(&guest), of_kernel);
}
