//! `linerate flowlog` between an endless capture and a null port.

use std::{
    fs,
    io::{BufRead, BufReader, Write},
    net::{SocketAddr, TcpStream},
    process::Command,
    time::{Duration, Instant},
};

use rustix::process::{kill_process, Pid, Signal};
use serde_json::Value;

use crate::contest::{bound, free_hugepages, middle_rate, Killed, Load, Socket, CPU, LINERATE, TIME};

/// What a run showed.
pub struct Seen {
    /// Frames a second that left.
    pub fps: f64,
    /// Clocks of the lcore for each.
    pub clocks: f64,
    /// Flows in the table, those it has room for, and its bytes.
    pub flows: f64,
    pub capacity: f64,
    pub memory: f64,
}

/// The least that a table has room for.
const LEAST: u32 = 1024;

/// How long it may take to its end: sixteen million flows are given back.
const GRACE: Duration = Duration::from_secs(60);

/// A logger that runs. When dropped it is asked to end, and takes its socket with it.
pub struct Logger {
    process: Killed,
    log: tempfile::NamedTempFile,
    name: String,
    address: SocketAddr,
    flows: u32,
}

/// What the logger does with the load when nobody reads it.
pub fn rate(load: &Load) -> Seen {
    Logger::start(load).seen()
}

impl Logger {
    /// Starts it. The table has room for the flows of the load, and no more than its own reserve.
    pub fn start(load: &Load) -> Self {
        let name = format!("bench-{}", std::process::id());
        let port = format!("pcap:{}", load.file("frames.pcap").display());
        let mut command = bound(LINERATE);
        command.args(["flowlog", "--port", &port, "--port", "null,no-rx=1", "--cpus", CPU, "--quiet"]);
        command.args(["--name", &name, "--listen", "127.0.0.1:0", "--flows", &load.flows.max(LEAST).to_string()]);
        // Small buffers: those of four million frames have to fit.
        command.args(["--mtu", "576", "--memory"]);
        command.args(match load.flows {
            flows if flows > 1 << 22 => ["no-hugepages", "--memory-mib", "14336"],
            // A million frames of the capture are a gigabyte of buffers.
            flows if flows > 1 << 17 && flows <= 1 << 20 && free_hugepages() >= 1450 => {
                ["hugepages", "--memory-mib", "2800"]
            }
            _ if load.is_large() => ["no-hugepages", "--memory-mib", "6144"],
            _ => ["hugepages", "--memory-mib", "640"],
        });
        let log = tempfile::NamedTempFile::new().unwrap();
        command.stdout(log.reopen().unwrap()).stderr(log.reopen().unwrap());
        let mut process = Killed(command.spawn().expect("linerate runs"));
        let end = Instant::now() + Duration::from_secs(120);
        let said = || fs::read_to_string(log.path()).unwrap_or_default();
        let address = loop {
            if let (text, true) = (said(), said().contains("Ctrl-C ends it")) {
                let place = text.split_once("flows at ").and_then(|(_, rest)| rest.split(';').next()?.parse().ok());
                break place.unwrap_or_else(|| panic!("no address in {text}"));
            }
            assert!(matches!(process.0.try_wait(), Ok(None)), "flowlog has ended:\n{}", said());
            assert!(Instant::now() < end, "flowlog does not start:\n{}", said());
            std::thread::sleep(Duration::from_millis(100));
        };
        Self { process, log, name, address, flows: load.flows }
    }

    /// Where clients read.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Waits until every flow is in the table.
    pub fn fill(&self) {
        let end = Instant::now() + Duration::from_secs(60);
        while self.totals()["table"]["flows"].as_u64() < Some(u64::from(self.flows)) {
            assert!(Instant::now() < end, "not all flows are in the table: {}", self.totals());
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    /// Clocks a packet in the next moments.
    pub fn clocks(&self) -> f64 {
        std::thread::sleep(2 * TIME + TIME / 4);
        let runtime = self.runtime();
        runtime["total"]["cycles_per_frame"].as_f64().unwrap_or_else(|| panic!("no clocks in {runtime:#}"))
    }

    fn runtime(&self) -> Value {
        let shown = self.ask(&["show", "runtime", "--json", "--interval", &format!("{}s", TIME.as_secs())]);
        serde_json::from_slice(&shown.stdout).unwrap_or_else(|e| panic!("{e}: {}", self.said()))
    }

    /// Measures it, once every flow is in the table, and ends it.
    pub fn seen(self) -> Seen {
        self.fill();
        std::thread::sleep(TIME);
        let mut socket = Socket::of(&self.name).unwrap_or_else(|| panic!("no socket: {}", self.said()));
        let fps = middle_rate(|| socket.sent());
        let runtime = self.runtime();
        let table = self.totals()["table"].take();
        assert_eq!(table["refused_packets"], 0, "{table}");
        let number = |v: &Value| v.as_f64().unwrap_or_else(|| panic!("{v} in {runtime:#}"));
        let total = |key: &str| number(&runtime["total"][key]);
        assert!(total("tx_fps") > 0.999 * total("rx_fps"), "{runtime:#}");
        Seen {
            fps,
            clocks: total("cycles_per_frame"),
            flows: number(&table["flows"]),
            capacity: number(&table["capacity"]),
            memory: number(&table["memory_bytes"]),
        }
    }

    fn ask(&self, words: &[&str]) -> std::process::Output {
        Command::new(LINERATE).arg("flowlog").args(words).args(["--name", &self.name]).output().unwrap()
    }

    fn said(&self) -> String {
        fs::read_to_string(self.log.path()).unwrap_or_default()
    }

    fn totals(&self) -> Value {
        let mut reader = BufReader::new(TcpStream::connect(self.address).expect("it listens"));
        reader.get_mut().write_all(b"{\"id\":1,\"ask\":\"totals\"}\n").unwrap();
        let mut line = String::new();
        // The first line is its greeting.
        for _ in 0..2 {
            line.clear();
            reader.read_line(&mut line).unwrap();
        }
        let mut answer: Value = serde_json::from_str(&line).unwrap_or_else(|e| panic!("{line}: {e}"));
        answer["totals"].take()
    }
}

impl Drop for Logger {
    fn drop(&mut self) {
        let pid = i32::try_from(self.process.0.id()).ok().and_then(Pid::from_raw);
        let asked = pid.is_some_and(|pid| kill_process(pid, Signal::TERM).is_ok());
        let end = Instant::now() + GRACE;
        while asked && matches!(self.process.0.try_wait(), Ok(None)) && Instant::now() < end {
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}
