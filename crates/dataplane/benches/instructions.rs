//! Instructions a frame of each function, counted by callgrind: `cargo bench -p dataplane --bench instructions`.
//!
//! What a busy machine cannot blur: the same compiler gives the same figure every time. Each case is run for two numbers of
//! bursts, and the difference is divided by the frames, so that nothing of the set-up is in it. Needs valgrind.
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::{hint::black_box, process::Command};

use dataplane::{
    fib::Small,
    node::NodeTimer,
    spec::{FunctionKind, PlaneSpec},
    Dispatch, Function, Outputs, Plane, PortInfo,
};
use packet::{
    heap::{HeapBuf, HeapPool},
    Buffer, Burst, Clock, FakeClock, MacAddr, BURST,
};

const BURSTS: usize = 4;
const FEW: usize = 500;
const MANY: usize = 1500;

const OWN: MacAddr = MacAddr([2, 0, 0, 0, 1, 0]);
const NEAR: [u8; 6] = [2, 0, 0, 0, 0, 7];
const CASES: [(&str, &str); 9] = [
    ("null", "frames passed"),
    ("l2:macswap", "MAC addresses swapped"),
    ("bridge", "known stations"),
    ("l3", "IPv4, one next hop"),
    ("l3-two", "IPv4, two next hops"),
    ("l3-six", "IPv6"),
    ("mpls", "label swap"),
    ("vxlan", "encapsulation, IPv4"),
    ("vxlan-in", "decapsulation, IPv4"),
];

fn main() {
    let args: Vec<String> = std::env::args().collect();
    if let [_, case, bursts] = args.as_slice() {
        if let Ok(bursts) = bursts.parse() {
            return run(case, bursts);
        }
    }
    if !args.iter().any(|a| a == "--bench") {
        return;
    }
    println!("{:<12} {:>14}  what", "function", "instructions");
    for (case, what) in CASES {
        let frames = (BURST * (MANY - FEW)) as f64;
        let of = |case: &str| (count(&args[0], case, MANY) - count(&args[0], case, FEW)) as f64 / frames;
        // Less what it takes to set the frames back.
        println!("{case:<12} {:>14.1}  {what}", of(case) - of(&format!("{case}+")));
    }
}

/// Instructions of a whole run, as callgrind says at its end.
fn count(program: &str, case: &str, bursts: usize) -> u64 {
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null", program, case, &bursts.to_string()])
        .output()
        .expect("valgrind (apt-get install valgrind)");
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{case}: {text}");
    let collected = text.lines().find_map(|line| line.split("Collected : ").nth(1));
    collected.and_then(|n| n.trim().parse().ok()).unwrap_or_else(|| panic!("{case}: {text}"))
}

fn ip4(dst: [u8; 4]) -> Vec<u8> {
    let mut packet = vec![0x45, 0, 0, 46, 0, 0, 0, 0, 64, 17, 0, 0, 198, 18, 1, 2];
    packet.extend(dst);
    let sum: u32 = packet.chunks(2).map(|w| u32::from(u16::from_be_bytes([w[0], w[1]]))).sum();
    let sum = (sum & 0xffff) + (sum >> 16);
    packet[10..12].copy_from_slice(&(!(sum as u16)).to_be_bytes());
    packet.resize(46, 0);
    packet
}

fn ether(kind: [u8; 2], packet: &[u8]) -> Vec<u8> {
    let mut frame = OWN.0.to_vec();
    frame.extend([2, 0, 0, 0, 0, 8]);
    frame.extend(kind);
    frame.extend(packet);
    frame
}

fn frame(case: &str, i: usize) -> Vec<u8> {
    let host = [198, 19, (i >> 8) as u8, i as u8];
    match case {
        "l3-two" => ether([8, 0], &ip4([198, 18 + (i & 1) as u8, 0, i as u8])),
        "l3-six" => {
            let mut packet = vec![0x60, 0, 0, 0, 0, 18, 17, 64, 0x20, 1, 0, 2, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 2];
            packet.extend([0x20, 1, 0, 2, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, i as u8]);
            packet.resize(58, 0);
            ether([0x86, 0xdd], &packet)
        }
        "mpls" => ether([0x88, 0x47], &[&[0, 1, 1, 64], &ip4(host)[..42]].concat()),
        "vxlan-in" => {
            let mut inner = ether([8, 0], &ip4(host));
            // The station behind the access port; the other is behind a tunnel.
            inner[..6].copy_from_slice(&NEAR);
            let mut packet = ip4([198, 19, 0, 1])[..20].to_vec();
            packet[12..16].copy_from_slice(&[198, 19, 0, 2]);
            packet[3] = (20 + 16 + inner.len()) as u8;
            packet[10..12].fill(0);
            let sum: u32 = packet.chunks(2).map(|w| u32::from(u16::from_be_bytes([w[0], w[1]]))).sum();
            packet[10..12].copy_from_slice(&(!(((sum & 0xffff) + (sum >> 16)) as u16)).to_be_bytes());
            packet.extend([0xc0, i as u8, 0x12, 0xb5, 0, (16 + inner.len()) as u8, 0, 0]);
            packet.extend([8, 0, 0, 0, 0, 0, 10, 0]);
            packet.extend(inner);
            ether([8, 0], &packet)
        }
        _ => ether([8, 0], &ip4(host)),
    }
}

/// Sends bursts through the function of a case; with `+` behind its name, only sets their frames back.
fn run(case: &str, bursts: usize) {
    let (case, idle) = case.strip_suffix('+').map_or((case, false), |case| (case, true));
    let kind: FunctionKind = case.split('-').next().unwrap().parse().unwrap();
    let ingress = usize::from(case == "vxlan-in");
    let mut spec = PlaneSpec::benchmark(kind, [1, 2].map(|n| MacAddr([2, 0, 0, 0, 0, n])));
    if kind == FunctionKind::Vxlan {
        spec.fdb.push(format!("10 {OWN} 198.19.0.2").parse().unwrap());
    }
    if kind == FunctionKind::Bridge {
        spec.fdb.push(format!("{OWN} 1").parse().unwrap());
    }
    let ports = [PortInfo { mac: OWN, mtu: 1500 }; 2];
    let plane = Plane::new(&spec, &ports, Box::new(Small)).unwrap();
    let clock = FakeClock::new(1_000_000_000);
    let mut function = plane.function(HeapPool::new(64, 256), clock.hz(), 0);
    let pool = HeapPool::new(BURSTS * BURST + 1, 256);
    let fresh: Vec<Vec<u8>> = (0..BURSTS * BURST).map(|i| frame(case, i)).collect();
    let mut all: Vec<Burst<HeapBuf>> =
        fresh.chunks(BURST).map(|frames| frames.iter().map(|f| pool.frame(f).unwrap()).collect()).collect();
    let mut out = Outputs::new(2);
    if case == "vxlan-in" {
        // The station behind the access port is heard once.
        let mut hello = frame("vxlan", 0);
        hello[6..12].copy_from_slice(&NEAR);
        let mut burst: Burst<HeapBuf> = pool.frame(&hello).into_iter().collect();
        function.process(0, &mut burst, &mut out, &mut NodeTimer::start(&clock, clock.now(), true));
        (0..2).for_each(|port| out.port(port).unwrap().clear());
    }
    for n in 0..bursts {
        let burst = &mut all[n % BURSTS];
        for (buf, bytes) in burst.iter_mut().zip(&fresh[n % BURSTS * BURST..]) {
            restore(buf, bytes);
        }
        let mut timer = NodeTimer::start(&clock, clock.now(), true);
        if idle {
            continue;
        }
        function.due();
        match black_box(function.process(ingress, burst, &mut out, &mut timer)) {
            Dispatch::All(_) => {}
            Dispatch::Split => (0..2).for_each(|port| burst.extend(out.port(port).unwrap().drain(..))),
        }
        assert_eq!(burst.len(), BURST, "{case} lost frames: {:?}", out.drops.counters());
    }
}

/// The frame as it came in.
fn restore(buf: &mut HeapBuf, bytes: &[u8]) {
    let more = buf.len() as isize - bytes.len() as isize;
    let fits = if more > 0 { buf.trim_front(more as usize) } else { buf.prepend(more.unsigned_abs()) };
    assert!(fits);
    buf.data_mut().copy_from_slice(bytes);
}
