//! What the benchmarks of data planes share: the frames, DPDK's own programs as peers, and rounds of each in turn.

// Each benchmark compiles its own copy and uses a part of it.
#![allow(dead_code)]

use std::{
    collections::BTreeMap,
    fmt::Write as _,
    fs::{self, File},
    io::{BufRead, BufReader, BufWriter, Write},
    net::Ipv4Addr,
    os::unix::net::UnixStream,
    path::{Path, PathBuf},
    process::{Child, ChildStdin, Command, Stdio},
    sync::OnceLock,
    time::{Duration, Instant},
};

use packet::pcap;
use serde_json::Value;
use tempfile::TempDir;

/// Measured for twice as long, after as long to warm up.
pub const TIME: Duration = Duration::from_secs(1);
pub const LINERATE: &str = env!("CARGO_BIN_EXE_linerate");
/// What `net_pcap` gives its first port.
pub const ROUTER_MAC: [u8; 6] = [2, b'p', b'c', b'a', b'p', 0];
const NEXT_MAC: &str = "02:00:00:00:00:02";
/// Where the forwarding lcore runs.
pub const CPU: &str = "1";
/// What l3fwd's LPM table holds.
pub const LPM_ROUTES: u32 = 1024;
/// What its exact-match table holds without crowding.
pub const EM_FLOWS: u32 = 1 << 20;

/// Runs each in turn, again and again, and prints Mpps, cycles a frame, and ratios to every peer. A ratio is the median of
/// those of the rounds, since the machine's own speed changes from minute to minute.
pub fn compare(contenders: &[&str], rounds: usize, mut run: impl FnMut(&str) -> f64) {
    let mut rates: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
    for round in 1..=rounds {
        for &name in contenders {
            rates.entry(name).or_default().push(run(name));
        }
        eprintln!("round {round} of {rounds}");
    }
    let hz = clock_hz();
    println!("{:<20} {:>7} {:>7} {:>7} {:>7}", "Mpps", "min", "median", "max", "cycles");
    let is_peer = |name: &str| name.starts_with("testpmd") || name.starts_with("l3fwd");
    for (i, &name) in contenders.iter().enumerate() {
        let own = &rates[name];
        let peers = contenders[..i].iter().filter(|peer| is_peer(peer) && !is_peer(name));
        let ratios = peers.fold(String::new(), |mut text, peer| {
            let of = own.iter().zip(&rates[peer]).map(|(own, peer)| own / peer).collect();
            let _ = write!(text, "  {} of {peer}", ratio(of));
            text
        });
        let shown = if is_peer(name) { name.to_owned() } else { format!("linerate {name}") };
        let mut own = own.clone();
        own.sort_by(f64::total_cmp);
        let [least, median, most] = [0, own.len() / 2, own.len() - 1].map(|i| own[i]);
        let [l, m, x] = [least, median, most].map(|rate| rate / 1e6);
        println!("{shown:<20} {l:>7.1} {m:>7.1} {x:>7.1} {:>7.1}{ratios}", hz / median);
    }
}

/// The median of the ratios of several rounds, and where it lies with 95 %, by order statistics; of fewer than six rounds
/// the least and the greatest.
fn ratio(mut of: Vec<f64>) -> String {
    of.sort_by(f64::total_cmp);
    // The chance that fewer than k of n rounds lie below the median, for both sides.
    let tails = |k: usize| {
        let n = of.len() as f64;
        let mut term = 0.5f64.powf(n);
        (0..k).fold(0.0, |sum, i| {
            let sum = sum + term;
            term *= (n - i as f64) / (i as f64 + 1.0);
            sum
        }) * 2.0
    };
    let inside = (1..=of.len() / 2).rev().find(|&k| tails(k) <= 0.05);
    let cut = inside.map_or(0, |k| k - 1);
    let share = if inside.is_some() { "95 %: " } else { "" };
    format!("{:.2} ({share}{:.2} to {:.2})", of[of.len() / 2], of[cut], of[of.len() - 1 - cut])
}

/// The frames, and the routes in each program's own words.
pub struct Load {
    dir: TempDir,
    pub flows: u32,
    pub routes: u32,
}

impl Load {
    /// Frame `f` goes to route `f % routes`, to another host in there each time round.
    pub fn new(flows: u32, routes: u32) -> Self {
        Self::ordered(&(0..flows).collect::<Vec<_>>(), routes)
    }

    /// The same frames in random order, the same one each time.
    pub fn shuffled(flows: u32, routes: u32) -> Self {
        let mut order: Vec<u32> = (0..flows).collect();
        shuffle(&mut order);
        Self::ordered(&order, routes)
    }

    fn ordered(order: &[u32], routes: u32) -> Self {
        let flows = order.len() as u32;
        let dir = tempfile::tempdir().unwrap();
        let create = |name: &str| BufWriter::new(File::create(dir.path().join(name)).unwrap());
        let mut frames = pcap::Writer::new(create("frames.pcap")).unwrap();
        let mut em = create("em.cfg");
        for &flow in order {
            let (src, dst, port) = five_tuple(flow, routes);
            frames.write(Duration::from_secs(1), &frame(src, dst, port)).unwrap();
            if flows <= EM_FLOWS {
                writeln!(em, "R{dst} {src} 9 {port} 0x11 1").unwrap();
            }
        }
        let (mut lpm, mut ops) = (create("lpm.cfg"), create("routes"));
        for route in 0..routes {
            let (prefix, len) = prefix(route);
            writeln!(ops, "route add {prefix}/{len} port 1 mac {NEXT_MAC}").unwrap();
            if routes <= LPM_ROUTES {
                writeln!(lpm, "R{prefix}/{len} 1").unwrap();
            }
        }
        // It wants IPv6 rules as well.
        fs::write(dir.path().join("lpm6.cfg"), "R2001:200:0:1::/64 1\n").unwrap();
        fs::write(dir.path().join("em6.cfg"), "R2001:200::1 2001:200::2 9 9 0x11 1\n").unwrap();
        Self { dir, flows, routes }
    }

    pub fn file(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// Arguments of the EAL: the two ports, and memory for the frames of the capture, in huge pages if they are few.
    fn eal(&self, prefix: &str) -> Vec<String> {
        let memory: &[&str] =
            if self.is_large() { &["--no-huge", "-m", "6144"] } else { &["--in-memory", "-m", "640"] };
        let mut args: Vec<String> = memory.iter().map(ToString::to_string).collect();
        let capture = self.file("frames.pcap");
        args.extend([format!("--file-prefix={prefix}"), "--no-pci".into()]);
        args.push(format!("--vdev=net_pcap0,rx_pcap={},infinite_rx=1", capture.display()));
        args.push("--vdev=net_null0,no-rx=1".into());
        args
    }

    /// Whether the peers' mbufs, of 2.4 KB each, do not fit a gigabyte of huge pages; then nobody uses any.
    pub fn is_large(&self) -> bool {
        self.flows > 1 << 17
    }

    fn mbufs(&self) -> String {
        (self.flows + 16_384).to_string()
    }
}

/// Fisher and Yates, with a fixed seed.
pub fn shuffle(order: &mut [u32]) {
    let mut seed = 1u64;
    for i in (1..order.len()).rev() {
        // Knuth's MMIX; its high bits are the good ones.
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        order.swap(i, (((seed >> 32) * (i as u64 + 1)) >> 32) as usize);
    }
}

/// Route `i`: a /24 of its own from 16.0.0.0 on, of which every 33rd is cut down to a /25 to /32.
fn prefix(i: u32) -> (Ipv4Addr, u8) {
    let len = if i % 33 == 32 { 25 + (i / 33 % 8) as u8 } else { 24 };
    (Ipv4Addr::from((16 << 24) + (i << 8)), len)
}

pub fn five_tuple(flow: u32, routes: u32) -> (Ipv4Addr, Ipv4Addr, u16) {
    // Neighbouring frames go to routes far apart.
    let route = (u64::from(flow) * 7919 % u64::from(routes)) as u32;
    let (network, len) = prefix(route);
    let host = if len == 24 { 1 + flow / routes % 254 } else { 0 };
    let dst = Ipv4Addr::from(u32::from(network) + host);
    (Ipv4Addr::from((10 << 24) + flow), dst, 1024 + (flow % 50_000) as u16)
}

/// 60 bytes, 64 with the FCS: right checksum of the header, none of UDP.
pub fn frame(src: Ipv4Addr, dst: Ipv4Addr, port: u16) -> [u8; 60] {
    let mut f = [0; 60];
    f[..6].copy_from_slice(&ROUTER_MAC);
    f[6..14].copy_from_slice(&[2, 0, 0, 0, 0, 1, 8, 0]);
    f[14..24].copy_from_slice(&[0x45, 0, 0, 46, 0, 0, 0, 0, 64, 17]);
    f[26..30].copy_from_slice(&src.octets());
    f[30..34].copy_from_slice(&dst.octets());
    let sum: u32 = f[14..34].chunks(2).map(|w| u32::from(u16::from_be_bytes([w[0], w[1]]))).sum();
    let sum = (sum & 0xffff) + (sum >> 16);
    f[24..26].copy_from_slice(&(!((sum & 0xffff) + (sum >> 16)) as u16).to_be_bytes());
    f[34..36].copy_from_slice(&port.to_be_bytes());
    f[36..40].copy_from_slice(&[0, 9, 0, 26]);
    f
}

/// A process that is killed when this is dropped, if it has not ended.
pub struct Killed(pub Child);

impl Drop for Killed {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A program that ends when this one does, however that comes.
pub fn bound(program: &str) -> Command {
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", "KILL", "--", program]);
    command
}

pub fn testpmd(load: &Load, mode: &str) -> f64 {
    let prefix = format!("lrbench{}", std::process::id());
    let mut command = bound("dpdk-testpmd");
    command.args(load.eal(&prefix)).args([&format!("--lcores=0@0,1@{CPU}"), "--"]);
    command.args(["--nb-cores=1", "--burst=64", "--txd=2048", "--no-mlockall", "-i", "--auto-start"]);
    command.args([format!("--total-num-mbufs={}", load.mbufs()), format!("--forward-mode={mode}")]);
    rate_of(command, &prefix)
}

/// `lpm` or `em`, with ` static` behind it for the program linked as ours is.
pub fn l3fwd(load: &Load, lookup: &str) -> f64 {
    let (lookup, kind) = lookup.split_once(' ').map_or((lookup, ""), |(lookup, _)| (lookup, "-static"));
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    let program = PROGRAM.get_or_init(|| match std::env::var_os("L3FWD") {
        Some(path) => path.into(),
        None => {
            let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/l3fwd.sh");
            let built = Command::new(script).stderr(Stdio::inherit()).output().expect("scripts/l3fwd.sh runs");
            assert!(built.status.success(), "scripts/l3fwd.sh failed; or give the program's path in L3FWD");
            String::from_utf8(built.stdout).unwrap().trim().into()
        }
    });
    let prefix = format!("lrbench{}", std::process::id());
    let rules = |version: &str, suffix: &str| {
        format!("--rule_ipv{version}={}", load.file(&format!("{lookup}{suffix}.cfg")).display())
    };
    let mut command = bound(&format!("{}{kind}", program.display()));
    // Frames of software ports carry no type: it finds that out itself, as it does with many NICs.
    command.args(load.eal(&prefix)).args([&format!("--lcores=1@{CPU}"), "--", "-p", "0x3", "-P", "--parse-ptype"]);
    // It polls both ports, as the others do.
    command.args([&format!("--lookup={lookup}"), "--config=(0,0,1),(1,0,1)", &rules("4", ""), &rules("6", "6")]);
    command.args(["--eth-dest=1,02:00:00:00:00:02"]).env("L3FWD_MBUFS", load.mbufs());
    rate_of(command, &prefix)
}

/// A program of DPDK's, which tells its counters through its telemetry socket. Ends when dropped.
struct Peer {
    child: Child,
    telemetry: Option<(Child, ChildStdin, BufReader<std::process::ChildStdout>)>,
}

impl Drop for Peer {
    fn drop(&mut self) {
        if let Some((mut child, stdin, _)) = self.telemetry.take() {
            drop(stdin);
            let _ = child.wait();
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = fs::remove_dir_all(format!("/var/run/dpdk/lrbench{}", std::process::id()));
    }
}

/// Frames a second that the program sends from its second port.
fn rate_of(mut command: Command, prefix: &str) -> f64 {
    let name = command.get_args().nth(3).unwrap_or_default().to_string_lossy().into_owned();
    let log = tempfile::NamedTempFile::new().unwrap();
    let (out, err) = (log.reopen().unwrap(), log.reopen().unwrap());
    // Standard input stays open: at its end testpmd stops.
    let child = command.stdin(Stdio::piped()).stdout(out).stderr(err).spawn();
    let child = child.unwrap_or_else(|e| panic!("{name}: {e} (scripts/setup.sh --test)"));
    let mut peer = Peer { child, telemetry: None };
    let said = || fs::read_to_string(log.path()).unwrap_or_default();
    let end = Instant::now() + Duration::from_secs(60);
    // A large capture takes seconds to load. Counters are asked for only when frames go.
    while peer.sent(prefix) == 0 {
        assert!(matches!(peer.child.try_wait(), Ok(None)), "{name} has ended:\n{}", said());
        assert!(Instant::now() < end, "{name} sends nothing:\n{}", said());
        std::thread::sleep(Duration::from_millis(100));
    }
    std::thread::sleep(TIME);
    middle_rate(|| peer.sent(prefix))
}

/// The middle one of the rates of eight windows of a quarter of a second, by a counter of frames that is asked for
/// without starting a program: of all programs the same, since this machine takes milliseconds away at a time.
pub fn middle_rate(mut sent: impl FnMut() -> u64) -> f64 {
    let mut rates: Vec<f64> = (0..8)
        .map(|_| {
            let (before, start) = (sent(), Instant::now());
            std::thread::sleep(TIME / 4);
            (sent() - before) as f64 / start.elapsed().as_secs_f64()
        })
        .collect();
    rates.sort_by(f64::total_cmp);
    rates[4]
}

/// Hugepages of 2 MiB that nobody has.
pub fn free_hugepages() -> u64 {
    let path = "/sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages";
    fs::read_to_string(path).ok().and_then(|text| text.trim().parse().ok()).unwrap_or(0)
}

/// A running `linerate forward` or `flowlog`, asked over its socket.
pub struct Socket(BufReader<UnixStream>);

impl Socket {
    /// Waits up to a minute for the one of this name.
    pub fn of(name: &str) -> Option<Self> {
        let directory = std::env::var("XDG_RUNTIME_DIR").unwrap_or_else(|_| "/run".into());
        let path = format!("{directory}/linerate/{name}.sock");
        let end = Instant::now() + Duration::from_secs(60);
        while Instant::now() < end {
            if let Ok(stream) = UnixStream::connect(&path) {
                return Some(Self(BufReader::new(stream)));
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        None
    }

    /// Frames that its second port has sent.
    pub fn sent(&mut self) -> u64 {
        self.ports()[1]["tx_frames"].as_u64().expect("a count of frames")
    }

    fn ports(&mut self) -> Value {
        self.0.get_mut().write_all(b"{\"show\":{\"what\":\"ports\",\"json\":true}}\n").expect("a question");
        let mut line = String::new();
        self.0.read_line(&mut line).expect("an answer");
        serde_json::from_str::<Value>(&line).expect("JSON")["ok"].take()
    }
}

impl Peer {
    /// What its second port has sent; 0 while it is not up yet.
    fn sent(&mut self, prefix: &str) -> u64 {
        if self.telemetry.is_none() {
            let mut client = Command::new("dpdk-telemetry.py");
            client.args(["-f", prefix]).env("PYTHONUNBUFFERED", "1").stderr(Stdio::null());
            let mut client = client.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("dpdk-telemetry.py");
            let (stdin, stdout) = (client.stdin.take().unwrap(), client.stdout.take().unwrap());
            self.telemetry = Some((client, stdin, BufReader::new(stdout)));
        }
        let answer = self.ask("/ethdev/stats,1");
        if answer.is_none() {
            // Nobody listens yet; the client has ended.
            if let Some((mut client, stdin, _)) = self.telemetry.take() {
                drop(stdin);
                let _ = client.wait();
            }
        }
        answer.and_then(|a| a["/ethdev/stats"]["opackets"].as_u64()).unwrap_or(0)
    }

    fn ask(&mut self, what: &str) -> Option<Value> {
        let (_, stdin, stdout) = self.telemetry.as_mut()?;
        writeln!(stdin, "{what}").ok()?;
        let mut line = String::new();
        // What comes first tells the version.
        while !line.contains("/ethdev/stats") {
            line.clear();
            if stdout.read_line(&mut line).ok()? == 0 {
                return None;
            }
        }
        serde_json::from_str(&line).ok()
    }
}

/// Ticks a second of this machine's clock, as a result has it.
pub fn clock_hz() -> f64 {
    let args = ["trial", "--load", "1kpps", "--duration", "50ms", "--residual", "10ms", "--json", "-", "-q"];
    let output = Command::new(LINERATE).args(args).output().expect("linerate runs");
    let result: Value = serde_json::from_slice(&output.stdout).expect("a result");
    result["host"]["tsc_hz"].as_f64().unwrap()
}
