//! `linerate forward` against testpmd and DPDK's own l3fwd, on the same two ports and frames, one lcore.
//!
//! `cargo bench -p linerate --bench forward -- [peers] [l3] [flows] [routes]`; without a name, only `peers` runs.
//! 64-byte IPv4/UDP frames come out of an endless capture (`net_pcap`, which costs some 29 cycles a frame by itself and
//! more for many flows) and go to a null port. Rounds of each program in turn, since these machines are shared; compare
//! within a run. l3fwd is built by `scripts/l3fwd.sh`, or given in L3FWD (and as L3FWD-static); its tables end at 1,024
//! routes.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod contest;

use std::{
    fs::{self, File},
    io::BufWriter,
    process::Command,
    time::Duration,
};

use contest::{bound, five_tuple, frame, Killed, Load, Socket, CPU, LINERATE, LPM_ROUTES, TIME};
use packet::pcap;
use serde_json::Value;

const ROUNDS: usize = 7;
const SWEEP_ROUNDS: usize = 3;
fn main() {
    let args: Vec<String> = std::env::args().collect();
    if !args.iter().any(|a| a == "--bench") {
        return; // `cargo test --benches` only wants to know that it builds
    }
    let asked = |mode: &str| args.iter().any(|a| a == mode);
    if asked("peers") || !["l3", "flows", "routes"].into_iter().any(asked) {
        let load = Load::new(1024, 16);
        let contenders = [
            "testpmd io",
            "testpmd mac",
            "l3fwd lpm",
            "l3fwd lpm static",
            "l3fwd em",
            "null",
            "l2",
            "l2:macswap",
            "bridge",
            "l3",
            "l3 no clocks",
            "mpls swap",
            "vxlan encap",
            "vxlan decap",
        ];
        println!("\n64-byte frames, 1k flows, 16 routes, one lcore");
        compare(&load, &contenders, ROUNDS);
    }
    if asked("l3") {
        for (name, routes) in [("16", 16), ("1k", 1000), ("1M", 1_000_000)] {
            // More than a thousand or so l3fwd does not hold.
            let few = routes.min(1000);
            println!("\n64-byte frames, 1k flows, {name} routes, l3fwd {few}, one lcore");
            let [few, all] = [few, routes].map(|routes| Load::new(1024, routes));
            contest::compare(&["l3fwd lpm", "l3fwd lpm static", "l3"], ROUNDS, |name| {
                match name.strip_prefix("l3fwd ") {
                    Some(lookup) => contest::l3fwd(&few, lookup),
                    None => linerate(&all, "l3"),
                }
            });
        }
    }
    if asked("flows") {
        for (name, flows) in [("1", 1), ("1k", 1024), ("64k", 1 << 16), ("1M", 1 << 20)] {
            println!("\n64-byte frames, {name} flows, 16 routes, one lcore");
            compare(&Load::new(flows, 16), &["testpmd io", "l3fwd lpm", "l3fwd em", "null", "l3"], SWEEP_ROUNDS);
        }
    }
    if asked("routes") {
        for (name, routes) in [("1", 1), ("1k", 1000), ("100k", 100_000), ("1M", 1_000_000)] {
            println!("\n64-byte frames, 64k flows, {name} routes, one lcore");
            let contenders: &[&str] = if routes <= LPM_ROUTES { &["l3fwd lpm", "null", "l3"] } else { &["null", "l3"] };
            compare(&Load::new(1 << 16, routes), contenders, SWEEP_ROUNDS);
        }
    }
}

/// Runs each in turn and prints how they compare.
fn compare(load: &Load, contenders: &[&str], rounds: usize) {
    write_tunnelled(load);
    contest::compare(contenders, rounds, |name| match name.split_once(' ') {
        Some(("testpmd", mode)) => contest::testpmd(load, mode),
        Some(("l3fwd", lookup)) => contest::l3fwd(load, lookup),
        _ => linerate(load, name),
    });
}

/// The frames of the load with a label, and in a tunnel.
fn write_tunnelled(load: &Load) {
    let create = |name: &str| pcap::Writer::new(BufWriter::new(File::create(load.file(name)).unwrap())).unwrap();
    let (mut labelled, mut tunnelled) = (create("mpls.pcap"), create("vxlan.pcap"));
    for flow in 0..load.flows {
        let (src, dst, port) = five_tuple(flow, load.routes);
        let frame = frame(src, dst, port);
        labelled.write(Duration::from_secs(1), &mpls(&frame)).unwrap();
        tunnelled.write(Duration::from_secs(1), &vxlan(&frame, port)).unwrap();
    }
}

/// The frame with label 16 in front, as long as before.
fn mpls(frame: &[u8; 60]) -> [u8; 60] {
    let mut f = *frame;
    f[12..18].copy_from_slice(&[0x88, 0x47, 0, 1, 0, 0]);
    f[16..18].copy_from_slice(&[1, 64]);
    f[18..].copy_from_slice(&frame[14..56]);
    f
}

/// The frame in a VXLAN tunnel to 198.19.0.2, network 10.
fn vxlan(frame: &[u8; 60], entropy: u16) -> Vec<u8> {
    let mut f = vec![0; 50];
    f[..14].copy_from_slice(&frame[..14]);
    f[14..24].copy_from_slice(&[0x45, 0, 0, 96, 0, 0, 0, 0, 64, 17]);
    f[26..34].copy_from_slice(&[198, 19, 0, 1, 198, 19, 0, 2]);
    let sum: u32 = f[14..34].chunks(2).map(|w| u32::from(u16::from_be_bytes([w[0], w[1]]))).sum();
    let sum = (sum & 0xffff) + (sum >> 16);
    f[24..26].copy_from_slice(&(!((sum & 0xffff) + (sum >> 16)) as u16).to_be_bytes());
    f[34..36].copy_from_slice(&(0xc000 | entropy).to_be_bytes());
    f[36..42].copy_from_slice(&[0x12, 0xb5, 0, 76, 0, 0]);
    f[42] = 8;
    f[48] = 10;
    f.extend_from_slice(frame);
    // The station it goes to is behind the access port, the one it is from behind the tunnel.
    f[50..56].copy_from_slice(&[2, 0, 0, 0, 0, 7]);
    f
}

/// Frames a second that leave `linerate forward`. The one place that knows how it is called.
fn linerate(load: &Load, what: &str) -> f64 {
    let name = format!("bench-{}", std::process::id());
    let (function, capture, tables): (&str, &str, &[&str]) = match what {
        "mpls swap" => ("mpls", "mpls.pcap", &["--label", "16 swap 17 port 1 mac 02:00:00:00:00:02"]),
        "vxlan encap" => (
            "vxlan",
            "frames.pcap",
            &[
                "--address=1 198.19.0.1/16",
                "--network=10 local 198.19.0.1 access 0",
                "--remote=10 198.19.0.2",
                "--neighbour=1 198.19.0.2 02:00:00:00:00:02",
                "--fdb=10 02:70:63:61:70:00 198.19.0.2",
            ],
        ),
        "vxlan decap" => (
            "vxlan",
            "vxlan.pcap",
            &["--address=0 198.19.0.2/16", "--network=10 local 198.19.0.2 access 1", "--remote=10 198.19.0.1"],
        ),
        // The rest comes by `load`.
        "l3" | "l3 no clocks" => ("l3", "frames.pcap", &["--route", "0.0.0.0/0 drop"]),
        function => (function, "frames.pcap", &[]),
    };
    let port = format!("pcap:{}", load.file(capture).display());
    let mut command = bound(LINERATE);
    command.args(["forward", function, "--port", &port, "--port", "null,no-rx=1", "--cpus", CPU, "--quiet"]);
    command.args(["--name", &name]).args(tables);
    if what.ends_with("no clocks") {
        command.arg("--no-clocks");
    }
    // A million routes take 700 hugepages, or ordinary pages.
    let mib = if load.routes > LPM_ROUTES { "1400" } else { "640" };
    command.args(if load.is_large() || load.routes > LPM_ROUTES && contest::free_hugepages() < 700 {
        ["--memory", "no-hugepages", "--memory-mib", "6144"]
    } else {
        ["--memory", "hugepages", "--memory-mib", mib]
    });
    let log = tempfile::NamedTempFile::new().unwrap();
    command.stdout(log.reopen().unwrap()).stderr(log.reopen().unwrap());
    let mut process = Killed(command.spawn().expect("linerate runs"));
    let said = || fs::read_to_string(log.path()).unwrap_or_default();
    let ask =
        |words: &[&str]| Command::new(LINERATE).arg("forward").args(words).args(["--name", &name]).output().unwrap();
    let mut socket = Socket::of(&name).unwrap_or_else(|| panic!("{what} does not answer:\n{}", said()));
    if function == "l3" {
        let loaded = ask(&["load", &load.file("routes").display().to_string()]);
        assert!(loaded.status.success(), "{}", String::from_utf8_lossy(&loaded.stderr));
        if load.routes > LPM_ROUTES {
            eprintln!("{}", String::from_utf8_lossy(&loaded.stderr).trim());
        }
    }
    std::thread::sleep(TIME);
    let rate = contest::middle_rate(|| socket.sent());
    let shown = ask(&["show", "runtime", "--json", "--interval", &format!("{}s", TIME.as_secs())]);
    assert!(matches!(process.0.try_wait(), Ok(None)), "{what} has ended:\n{}", said());
    let runtime: Value = serde_json::from_slice(&shown.stdout).expect("a runtime table");
    let total = |key: &str| runtime["total"][key].as_f64().unwrap();
    assert!(total("tx_fps") > 0.999 * total("rx_fps"), "{what}: {runtime:#}");
    assert!(ask(&["stop"]).status.success());
    let _ = process.0.wait();
    rate
}
