//! `dpdk-testpmd` as a DUT.

use std::path::{Path, PathBuf};
use std::time::Duration;

use tempfile::TempDir;

use super::{unique, Netns, Process, DUT_CPU};

/// What testpmd does with a frame that came in on one of its two ports: it leaves by the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Forward {
    /// Unchanged.
    Io,
    /// With testpmd's own MAC addresses.
    Mac,
    /// With its MAC addresses swapped.
    MacSwap,
    /// It is counted and freed.
    RxOnly,
}

/// Where its memory comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Memory {
    /// 128 MiB of hugepages, in memory files (so no file stays in /dev/hugepages).
    Huge,
    /// 256 MiB of ordinary pages: no root needed.
    NoHuge,
}

/// How to start testpmd.
#[derive(Debug)]
pub struct TestpmdSetup<'a> {
    /// DPDK devargs of its ports; `@` stands for the directory its sockets go to.
    pub vdevs: &'a [&'a str],
    pub forward: Forward,
    pub memory: Memory,
    /// The CPU it runs on.
    pub cpu: usize,
    /// A namespace, for ports on kernel interfaces.
    pub netns: Option<&'a Netns>,
}

/// A running testpmd; ended when dropped.
#[derive(Debug)]
pub struct Testpmd {
    process: Process,
    dir: TempDir,
    asked: u32,
}

/// testpmd's counters of one port since its start or the last `clear_counters`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PortCounters {
    pub rx_packets: u64,
    pub rx_missed: u64,
    pub rx_errors: u64,
    pub rx_nombuf: u64,
    pub tx_packets: u64,
    pub tx_errors: u64,
    pub rx_bytes: u64,
    pub tx_bytes: u64,
}

impl Testpmd {
    /// Serves two memif sockets: the tester connects to `socket(0)` and `socket(1)` as the client.
    pub fn memif(memory: Memory) -> Self {
        let port = |n| format!("net_memif{n},role=server,id=0,socket=@/{n}.sock,socket-abstract=no");
        Self::two_ports(&port, memory)
    }

    /// Serves two vhost-user sockets: the tester connects with `virtio:` ports.
    pub fn vhost_server(memory: Memory) -> Self {
        Self::two_ports(&|n| format!("net_vhost{n},iface=@/{n}.sock,queues=1"), memory)
    }

    /// Connects, again and again, to two vhost-user sockets that the tester serves (`virtio:SOCKET,server=1`).
    pub fn vhost_client(memory: Memory) -> Self {
        Self::two_ports(&|n| format!("net_vhost{n},iface=@/{n}.sock,queues=1,client=1"), memory)
    }

    fn two_ports(port: &dyn Fn(usize) -> String, memory: Memory) -> Self {
        let (a, b) = (port(0), port(1));
        Self::start(&TestpmdSetup { vdevs: &[&a, &b], forward: Forward::Io, memory, cpu: DUT_CPU, netns: None })
    }

    /// Starts testpmd and waits until it forwards.
    #[track_caller]
    pub fn start(setup: &TestpmdSetup<'_>) -> Self {
        let dir = tempfile::Builder::new().prefix("lrpmd").tempdir().expect("a temporary directory");
        // Both lcores on one CPU: the main one only waits for commands.
        let mut argv = words("stdbuf -oL dpdk-testpmd --no-pci --no-telemetry");
        argv.extend([
            "--lcores".to_owned(),
            format!("0@{0},1@{0}", setup.cpu),
            "--file-prefix".to_owned(),
            unique("lr"),
        ]);
        argv.extend(words(match setup.memory {
            Memory::Huge => "-m 128 --single-file-segments --in-memory",
            Memory::NoHuge => "-m 256 --no-huge --no-shconf",
        }));
        for vdev in setup.vdevs {
            argv.extend(["--vdev".to_owned(), vdev.replace('@', &dir.path().display().to_string())]);
        }
        let mode = match setup.forward {
            Forward::Io => "io",
            Forward::Mac => "mac",
            Forward::MacSwap => "macswap",
            Forward::RxOnly => "rxonly",
        };
        argv.extend(words("-- -i --auto-start --total-num-mbufs=16384 --forward-mode"));
        argv.push(mode.to_owned());
        let env = [("RUNTIME_DIRECTORY", dir.path())];
        let process = Process::spawn(&argv, setup.netns, &env, &dir.path().join("testpmd.log"));
        let mut dut = Self { process, dir, asked: 0 };
        dut.process.wait_output("prompt", Duration::from_secs(15), |text| text.contains("testpmd> "));
        let log = dut.process.output();
        assert!(
            !log.contains("probe failed") && !log.contains("Fail to start port"),
            "testpmd: {}",
            dut.process.tail()
        );
        dut
    }

    /// The path of its socket `n`.
    pub fn socket(&self, n: usize) -> PathBuf {
        self.dir.path().join(format!("{n}.sock"))
    }

    /// The directory of its sockets and its log.
    pub fn dir(&self) -> &Path {
        self.dir.path()
    }

    /// The process, to freeze or end it.
    pub fn process(&mut self) -> &mut Process {
        &mut self.process
    }

    /// Gives it a command and returns what it printed.
    #[track_caller]
    pub fn command(&mut self, line: &str) -> String {
        // testpmd echoes a line when it comes to it, so an echoed second line ends the first one's answer.
        self.asked += 1;
        let mark = format!("end_of_answer_{}_", self.asked);
        let before = self.process.output().len();
        self.process.say(line);
        self.process.say(&mark);
        self.process.wait_output(line, Duration::from_secs(5), |text| {
            text.get(before..).is_some_and(|new| new.contains(&mark))
        });
        let text = self.process.output();
        let new = text.get(before..).unwrap_or_default();
        new.split(&mark).next().unwrap_or_default().to_owned()
    }

    /// Its counters, port by port.
    #[track_caller]
    pub fn counters(&mut self) -> Vec<PortCounters> {
        parse_counters(&self.command("show port stats all"))
    }

    /// Sets its counters to zero.
    pub fn clear_counters(&mut self) {
        self.command("clear port stats all");
    }
}

impl Drop for Testpmd {
    fn drop(&mut self) {
        if self.process.alive() {
            // SIGTERM while it forwards makes 22.11 print and then wait for the ports: `quit` is quicker.
            self.process.say("quit");
            self.process.wait_end(Duration::from_secs(2));
        }
    }
}

/// Reads the blocks of `show port stats all`.
pub fn parse_counters(text: &str) -> Vec<PortCounters> {
    let block = |text: &str| {
        let count = |name: &str| -> u64 {
            let value = text.split(&format!("{name}:")).nth(1).and_then(|t| t.split_whitespace().next());
            value.and_then(|v| v.parse().ok()).unwrap_or_else(|| panic!("no {name} in {text}"))
        };
        PortCounters {
            rx_packets: count("RX-packets"),
            rx_missed: count("RX-missed"),
            rx_errors: count("RX-errors"),
            rx_nombuf: count("RX-nombuf"),
            tx_packets: count("TX-packets"),
            tx_errors: count("TX-errors"),
            rx_bytes: count("RX-bytes"),
            tx_bytes: count("TX-bytes"),
        }
    };
    text.split("NIC statistics for port").skip(1).map(block).collect()
}

fn words(text: &str) -> Vec<String> {
    text.split(' ').map(str::to_owned).collect()
}
