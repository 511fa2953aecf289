//! One capture, read as fast as it goes by several flow loggers, each run as a whole.

use std::{
    fs::{self, File},
    io::BufWriter,
    net::UdpSocket,
    path::Path,
    process::Command,
    time::{Duration, Instant},
};

use packet::pcap;
use tempfile::TempDir;

use crate::contest::{bound, five_tuple, frame, shuffle, CPU, LINERATE};

const FRAMES: u32 = 20_000_000;
const LOGGERS: [&str; 3] = ["softflowd", "nfpcapd", "linerate flowlog"];

/// Prints, for few flows and many, how long each takes and how that compares.
pub fn compare(rounds: usize) {
    for (name, flows) in [("10k", 10_000), ("1M", 1_000_000)] {
        println!("\n20M frames of 64 bytes, {name} flows in random order, a capture in memory; the median run");
        println!("{:<18} {:>8} {:>8} {:>8} {:>8} {:>9}", "", "s", "of it", "Mpps", "Mpps", "flows out");
        println!("{:<18} {:>8} {:>8} {:>8} {:>8} {:>9}", "", "", "start", "", "- start", "");
        let dir = tempfile::Builder::new().prefix("lrbench").tempdir_in("/dev/shm").expect("/dev/shm is there");
        write(&dir.path().join("all.pcap"), FRAMES, flows);
        write(&dir.path().join("one.pcap"), 1, 1);
        let mut times = [const { Vec::new() }; LOGGERS.len()];
        for _ in 0..rounds {
            for (logger, times) in LOGGERS.iter().zip(&mut times) {
                let (start, one) = run(logger, &dir, "one.pcap", flows);
                let (whole, found) = run(logger, &dir, "all.pcap", flows);
                assert_eq!((one, found), (1, u64::from(flows)), "flows out of {logger}");
                times.push((whole, start));
            }
        }
        let mut peers = Vec::new();
        for (logger, times) in LOGGERS.iter().zip(&mut times) {
            times.sort_by_key(|(whole, _)| *whole);
            let (whole, _) = times[times.len() / 2];
            times.sort_by_key(|(_, start)| *start);
            let (_, start) = times[times.len() / 2];
            let mpps = |time: Duration| f64::from(FRAMES) / time.as_secs_f64() / 1e6;
            let rates = (mpps(whole), mpps(whole.saturating_sub(start).max(Duration::from_micros(1))));
            let compared = |(peer, theirs): &(&str, (f64, f64))| {
                format!("  {:.1} ({:.1}) of {peer}", rates.0 / theirs.0, rates.1 / theirs.1)
            };
            let ratios: String = peers.iter().map(compared).collect();
            println!(
                "{logger:<18} {:>8.3} {:>8.3} {:>8.2} {:>8.2} {flows:>9}{ratios}",
                whole.as_secs_f64(),
                start.as_secs_f64(),
                rates.0,
                rates.1
            );
            peers.push((*logger, rates));
        }
    }
}

/// A capture in which each flow comes at least once, a microsecond between frames.
fn write(path: &Path, frames: u32, flows: u32) {
    let mut order: Vec<u32> = (0..flows).collect();
    let mut seed = 1u64;
    order.extend((flows..frames).map(|_| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (((seed >> 32) * u64::from(flows)) >> 32) as u32
    }));
    shuffle(&mut order);
    let mut file = pcap::Writer::new(BufWriter::new(File::create(path).unwrap())).unwrap();
    for (n, flow) in (0..).zip(order) {
        let (src, dst, port) = five_tuple(flow, 16);
        let time = Duration::from_secs(1_700_000_000) + Duration::from_micros(n);
        file.write(time, &frame(src, dst, port)).unwrap();
    }
}

/// How long the logger takes for a capture, from its start to its end, and how many flows it says it has put out.
fn run(logger: &str, dir: &TempDir, capture: &str, flows: u32) -> (Duration, u64) {
    let path = |name: &str| dir.path().join(name).display().to_string();
    let capture = path(capture);
    // It takes what is exported, and drops it.
    let collector = UdpSocket::bind("127.0.0.1:0").unwrap();
    let port = collector.local_addr().unwrap().port();
    let room = (2 * flows).max(16_384).to_string();
    let mut command;
    match logger {
        "softflowd" => {
            command = bound("softflowd");
            command.args(["-r", &capture, "-v", "10", "-m", &room, "-n", &format!("127.0.0.1:{port}")]);
            // With its control socket at an absolute path, 1.1.0 waits on that for ever, having read nothing.
            command.args(["-p", &path("softflowd.pid"), "-c", "none"]);
        }
        "nfpcapd" => {
            let _ = fs::remove_dir_all(path("nf"));
            fs::create_dir(path("nf")).unwrap();
            command = bound("nfpcapd");
            command.args(["-r", &capture, "-B", &room, "-w", &path("nf")]);
        }
        _ => {
            command = bound(LINERATE);
            command.args(["flowlog", "--port", &format!("pcap:{capture}"), "--once", "--quiet"]);
            // As fast as it can, as the others.
            command.args(["--listen", "off", "--cpus", CPU]);
            command.args(["--ipfix", &format!("udp://127.0.0.1:{port},rate=unlimited")]);
            command.args([
                "--flows",
                &flows.max(1_000).to_string(),
                "--name",
                &format!("bench-{}", std::process::id()),
            ]);
            command.args(["--memory", "hugepages", "--memory-mib", "640"]);
        }
    }
    let log = File::create(path("log")).unwrap();
    command.stdout(log.try_clone().unwrap()).stderr(log);
    let begun = Instant::now();
    let status = command.status().unwrap_or_else(|e| panic!("{logger}: {e} (scripts/setup.sh --bench)"));
    let time = begun.elapsed();
    let said = fs::read_to_string(path("log")).unwrap();
    assert!(status.success(), "{logger}: {status}\n{said}");
    let number = |text: &str, before: &str| -> Option<u64> {
        text.split_once(before)?.1.split([' ', ',', '\n']).next()?.parse().ok()
    };
    let found = match logger {
        "softflowd" => number(&said, "Flows exported: "),
        "nfpcapd" => {
            let dump = Command::new("nfdump").args(["-I", "-R", &path("nf")]).output().expect("nfdump runs");
            number(&String::from_utf8_lossy(&dump.stdout), "\nFlows: ")
        }
        _ => said.split_once(" exported, 0 dropped").and_then(|(text, _)| text.rsplit(' ').next()?.parse().ok()),
    };
    (time, found.unwrap_or_else(|| panic!("{logger} does not say how many flows:\n{said}")))
}
