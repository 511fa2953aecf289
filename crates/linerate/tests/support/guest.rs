//! A guest of QEMU that this program is the first process of, with NICs of the test's choice.

use std::{
    fs,
    io::{BufRead, BufReader, Write},
    os::unix::net::UnixStream,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use lab::{
    line::CommandLine,
    protocol::{Answer, Ask},
    vm::{self, GuestSpec},
};

use super::{tester::linerate, Netns, Process};

/// How long an emulated guest may take to boot, and a command in it.
const BOOT: Duration = Duration::from_secs(120);
const COMMAND: Duration = Duration::from_secs(60);

/// What a guest is made of.
#[derive(Default)]
pub struct Parts<'a> {
    /// QEMU's machine.
    pub machine: &'a str,
    /// The kind of its NICs, as QEMU has it.
    pub nic: &'a str,
    /// What each NIC hangs on, as `-netdev` has it without an id; at PCI slots from 3 on.
    pub netdevs: &'a [&'a str],
    /// Modules of its kernel that it loads besides those of virtio and for userspace drivers.
    pub modules: &'a [&'a str],
    /// Programs of this machine that it has.
    pub programs: &'a [&'a str],
    /// Its hugepages of 2 MiB.
    pub hugepages: u32,
    /// Its memory, MiB.
    pub mib: u32,
    /// The namespace that QEMU runs in.
    pub netns: Option<&'a Netns>,
    /// Its CPUs; 0 for two.
    pub cpus: u32,
    /// Words of its boot line, after those that every guest has.
    pub words: &'a str,
    /// A disk that outlives it: a raw file, `/dev/vda` in it.
    pub disk: Option<&'a Path>,
}

/// A guest that runs.
pub struct Guest {
    qemu: Process,
    dir: tempfile::TempDir,
}

impl Guest {
    /// Boots a guest and waits until it answers.
    ///
    /// # Panics
    /// If it does not boot.
    pub fn boot(parts: &Parts<'_>) -> Self {
        let Parts { machine, nic, netdevs, programs, hugepages, mib, netns, cpus, words, disk, modules } = parts;
        let dir = tempfile::tempdir().unwrap();
        let file = |name: &str| dir.path().join(name).to_str().unwrap().to_owned();
        let usual = ["virtio_pci", "virtio_console", "virtio_net", "virtio_blk", "uio", "uio_pci_generic"];
        let modules: Vec<String> = usual.iter().chain(*modules).map(|&module| module.to_owned()).collect();
        let spec = GuestSpec {
            name: "nic".into(),
            modules,
            programs: programs.iter().map(|program| (*program).to_owned()).collect(),
            ..GuestSpec::default()
        };
        fs::write(file("spec"), serde_json::to_string(&spec).unwrap()).unwrap();
        let (spec, initrd, kernel) = (file("spec"), file("initrd"), file("kernel"));
        let made = ["lab", "guest", "image", "--spec", &spec, "--initrd", &initrd, "--kernel", &kernel];
        let made = linerate(&made);
        assert_eq!(made.code, 0, "{}", made.stderr);
        let append = format!(
            "console=ttyS0 quiet loglevel=3 panic=-1 rdinit=/init default_hugepagesz=2M hugepages={hugepages} {words}"
        );
        let argv = "qemu-system-x86_64 -nodefaults -no-user-config -nographic -no-reboot -serial stdio \
                     -cpu max -device virtio-serial-pci,addr=2,disable-legacy=on -device \
                     virtserialport,chardev=ctl,name=linerate";
        let mut argv: Vec<String> = argv.split_whitespace().map(str::to_owned).collect();
        argv.extend(["-smp".into(), if *cpus == 0 { 2 } else { *cpus }.to_string()]);
        if let Some(disk) = disk {
            let drive = format!("file={},if=none,id=disk,format=raw", disk.display());
            argv.extend(["-drive".into(), drive, "-device".into(), "virtio-blk-pci,drive=disk".into()]);
        }
        argv.extend(["-machine".into(), format!("{machine},accel=tcg"), "-m".into(), format!("{mib}M")]);
        argv.extend(["-chardev".into(), format!("socket,id=ctl,path={},server=on,wait=off", file("ctl"))]);
        argv.extend(["-qmp".into(), format!("unix:{},server=on,wait=off", file("qmp"))]);
        for (port, netdev) in netdevs.iter().enumerate() {
            let slot = 3 + port;
            argv.extend(["-netdev".into(), format!("{netdev},id=n{port}")]);
            argv.extend([
                "-device".into(),
                format!("{nic},id=port{port},netdev=n{port},addr={slot},mac=02:4c:52:00:00:0{port},romfile="),
            ]);
        }
        argv.extend(["-kernel".into(), kernel, "-initrd".into(), initrd, "-append".into(), append]);
        let qemu = Process::spawn(&argv, *netns, &[], &dir.path().join("console"));
        let mut guest = Self { qemu, dir };
        let until = Instant::now() + BOOT;
        while vm::ask(&guest.file("ctl"), &Ask::Check, Duration::from_secs(1)).is_err() {
            assert!(guest.qemu.alive() && Instant::now() < until, "{nic}: {}", guest.qemu.tail());
        }
        guest
    }

    /// Pulls a device out while the guest runs.
    ///
    /// # Panics
    /// If QEMU refuses.
    pub fn pull(&self, device: &str) {
        let socket = UnixStream::connect(self.file("qmp")).unwrap();
        let mut lines = BufReader::new(socket.try_clone().unwrap()).lines().map_while(Result::ok);
        let mut ask = |text: &str| {
            (&socket).write_all(text.as_bytes()).unwrap();
            lines.find(|line| line.contains("return") || line.contains("error")).unwrap_or_default()
        };
        for text in [
            r#"{"execute":"qmp_capabilities"}"#.to_owned(),
            format!(r#"{{"execute":"device_del","arguments":{{"id":"{device}"}}}}"#),
        ] {
            let answer = ask(&text);
            assert!(answer.contains("return"), "{text}: {answer}");
        }
    }

    /// A file of the guest here.
    pub fn file(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// Runs a command of several words: whether it succeeded, and what it printed on both outputs.
    ///
    /// # Panics
    /// If the guest does not answer.
    pub fn run_words(&self, words: &[&str]) -> (bool, String) {
        let line = CommandLine(words.iter().map(|word| (*word).to_owned()).collect());
        match vm::ask(&self.file("ctl"), &Ask::Run { node: "nic".into(), line }, COMMAND).unwrap() {
            Answer::Ran { succeeded, printed, errors } => (succeeded, printed + &errors),
            other => panic!("{words:?}: {other:?}"),
        }
    }

    /// The same of a command without blanks in its words.
    pub fn run(&self, line: &str) -> (bool, String) {
        self.run_words(&line.split_whitespace().collect::<Vec<_>>())
    }

    /// A command that has to succeed.
    #[track_caller]
    pub fn does(&self, line: &str) -> String {
        let (succeeded, printed) = self.run(line);
        assert!(succeeded, "{line}: {printed}");
        printed
    }

    /// A script that has to succeed.
    #[track_caller]
    pub fn script(&self, text: &str) -> String {
        let (succeeded, printed) = self.run_words(&["sh", "-ec", text]);
        assert!(succeeded, "{text}: {printed}");
        printed
    }
}
