//! Clients of a logger: nine that watch its largest flows, and one that sends garbage and never reads.

use std::{
    io::{BufRead, BufReader, ErrorKind, Write},
    net::{Shutdown, SocketAddr, TcpStream},
    process::{Child, Command, Stdio},
    sync::{
        atomic::{AtomicBool, AtomicU64, Ordering},
        Arc,
    },
    thread::{sleep, spawn, JoinHandle},
    time::Duration,
};

const SUBSCRIBERS: usize = 9;

/// The clients, while they run.
pub struct Readers {
    streams: Vec<TcpStream>,
    threads: Vec<JoinHandle<()>>,
    ending: Arc<AtomicBool>,
    pages: Arc<AtomicU64>,
    garbage: Arc<AtomicU64>,
}

impl Readers {
    /// Connects them all.
    pub fn start(address: SocketAddr) -> Self {
        let ending = Arc::new(AtomicBool::new(false));
        let (pages, garbage) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
        let (mut streams, mut threads) = (Vec::new(), Vec::new());
        for _ in 0..SUBSCRIBERS {
            let mut stream = TcpStream::connect(address).expect("it listens");
            stream.write_all(b"{\"id\":1,\"ask\":\"subscribe\",\"every_s\":1,\"top\":100}\n").unwrap();
            streams.push(stream.try_clone().unwrap());
            let pages = Arc::clone(&pages);
            threads.push(spawn(move || {
                leave_the_lcore();
                for line in BufReader::new(stream).lines().map_while(Result::ok) {
                    pages.fetch_add(u64::from(line.contains("\"page\"")), Ordering::Relaxed);
                }
            }));
        }
        let (sent, over) = (Arc::clone(&garbage), Arc::clone(&ending));
        threads.push(spawn(move || {
            leave_the_lcore();
            hostile(address, &sent, &over);
        }));
        Self { streams, threads, ending, pages, garbage }
    }

    /// Ends them; what they got.
    pub fn end(self) -> String {
        self.ending.store(true, Ordering::Relaxed);
        for stream in &self.streams {
            let _ = stream.shutdown(Shutdown::Both);
        }
        for thread in self.threads {
            thread.join().expect("a client ends");
        }
        let (pages, garbage) = (self.pages.load(Ordering::Relaxed), self.garbage.load(Ordering::Relaxed));
        assert!(pages > 0, "no client was given a page");
        format!("clients were given {pages} pages of 100 flows; {} MB of garbage were sent", garbage / 1_000_000)
    }
}

/// Keeps the CPUs beside the lcore busy with sums that wait for everybody else: a core whose neighbour computes is not the
/// core whose neighbour rests, and with this it computes in every turn.
pub struct Busy(Vec<Child>);

impl Busy {
    /// Starts one a CPU.
    pub fn start() -> Self {
        let sums = |cpu: &str| {
            let mut sums = Command::new("chrt");
            sums.args(["--idle", "0", "taskset", "--cpu-list", cpu, "md5sum", "/dev/zero"]).stdout(Stdio::null());
            sums.spawn().expect("chrt, taskset and md5sum are in every Debian")
        };
        let cpus = std::thread::available_parallelism().map_or(1, usize::from);
        let cpus = (0..cpus).map(|cpu| cpu.to_string());
        Self(cpus.filter(|cpu| cpu != crate::contest::CPU).map(|cpu| sums(&cpu)).collect())
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        for sums in &mut self.0 {
            let _ = sums.kill();
            let _ = sums.wait();
        }
    }
}

/// Sends garbage, as much as is taken, over a new connection when one is closed; reads nothing.
fn hostile(address: SocketAddr, sent: &AtomicU64, over: &AtomicBool) {
    let mut seed = 1u64;
    let mut garbage = vec![0; 65_536];
    while !over.load(Ordering::Relaxed) {
        let Ok(mut stream) = TcpStream::connect(address) else {
            sleep(Duration::from_millis(10));
            continue;
        };
        let _ = stream.set_write_timeout(Some(Duration::from_millis(100)));
        while !over.load(Ordering::Relaxed) {
            for byte in &mut garbage {
                // Knuth's MMIX.
                seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                *byte = (seed >> 56) as u8;
            }
            match stream.write(&garbage) {
                Ok(n) => _ = sent.fetch_add(n as u64, Ordering::Relaxed),
                Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {}
                Err(_) => break,
            }
        }
    }
}

/// The CPU of the packet path is not for clients.
fn leave_the_lcore() {
    if let Ok(mut cpus) = rustix::thread::sched_getaffinity(None) {
        cpus.unset(crate::contest::CPU.parse().expect("a number"));
        if cpus.count() > 0 {
            let _ = rustix::thread::sched_setaffinity(None, &cpus);
        }
    }
}
