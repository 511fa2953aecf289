//! What a frame costs to decode: instructions, counted by callgrind (needs valgrind), and nanoseconds, the best of many
//! rounds: `cargo bench -p flow --bench decode`.
//!
//! The loop over the burst and putting the packet where a table would read it are counted in: some 15 instructions.
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::{hint::black_box, process::Command, time::Instant};

use flow::{
    decode::{DecodeSpec, Decoded, Decoder, Layer, Packet4, Packet6},
    Facts, Key4, Key6,
};

const BURST: usize = 32;
const FEW: usize = 500;
const MANY: usize = 1500;
const ROUNDS: usize = 200;
const CASES: [(&str, &str); 8] = [
    ("udp", "IPv4 UDP"),
    ("tcp", "IPv4 TCP"),
    ("mixed", "IPv4 TCP and UDP in turn"),
    ("vlan", "IPv4 UDP behind a tag"),
    ("six", "IPv6 UDP"),
    ("icmp", "ICMP echo"),
    ("mpls", "IPv4 UDP below a label"),
    ("vxlan", "IPv4 UDP in VXLAN, the inner one"),
];

/// What a table would be given.
struct Keys {
    four: [Packet4; BURST],
    six: [Packet6; BURST],
}

#[inline(never)]
fn burst(decoder: &Decoder, frames: &[Vec<u8>], keys: &mut Keys) -> (usize, usize) {
    let (mut four, mut six) = (0, 0);
    for frame in frames {
        match decoder.decode(frame, 1) {
            Decoded::Ip4(packet) => {
                keys.four[four % BURST] = packet;
                four += 1;
            }
            Decoded::Ip6(packet) => {
                keys.six[six % BURST] = packet;
                six += 1;
            }
            Decoded::NotIp(_) | Decoded::Malformed => {}
        }
    }
    (four, six)
}

fn frame(case: &str, i: u8) -> Vec<u8> {
    let i = i.wrapping_mul(91);
    let mut plain = vec![2; 12];
    plain.extend([8, 0, 0x45, 0, 0, 46, 0, 0, 0x40, 0, 64, 17, 1, 1, 10, i, 3, i, 10, 7, i, 9]);
    plain.extend([i, 1, 2, i, 0, 26, 0, 0]);
    plain.resize(60, 0);
    match case {
        "tcp" => plain[23] = 6,
        "mixed" if i & 32 == 0 => plain[23] = 6,
        "icmp" => (plain[23], plain[34]) = (1, 8),
        "vlan" => _ = plain.splice(12..12, [0x81, 0, 0, 7]),
        "mpls" => _ = plain.splice(12..14, [0x88, 0x47, 0, 1, 1, 64]),
        "six" => {
            plain.truncate(12);
            plain.extend([0x86, 0xdd, 0x60, 0, 0, 0, 0, 20, 17, 64]);
            plain.extend([0x20, 1, i, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, i]);
            plain.extend([0x20, 1, 3, i, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 9]);
            plain.extend([i, 1, 2, i, 0, 20, 0, 0]);
            plain.resize(74, 0);
        }
        "vxlan" => {
            let inner = plain.clone();
            plain.truncate(34);
            plain[17] = 110;
            plain.extend([i, 1, 0x12, 0xb5, 0, 76, 0, 0, 8, 0, 0, 0, 0, 0, 7, 0]);
            plain.extend(inner);
        }
        _ => {}
    }
    plain
}

/// Decodes as many bursts; with `+` behind the case, a flow has both directions (biflow). Best nanoseconds a frame.
fn run(case: &str, bursts: usize, rounds: usize) -> f64 {
    let (case, biflow) = case.strip_suffix('+').map_or((case, false), |case| (case, true));
    let frames: Vec<Vec<u8>> = (0..BURST as u8).map(|i| frame(case, i)).collect();
    let vxlan = if case == "vxlan" { Layer::Inner } else { Layer::Outer };
    let decoder = Decoder::new(DecodeSpec { biflow, vxlan, ..DecodeSpec::default() });
    let four = Packet4 { key: Key4::default(), facts: Facts::default().into() };
    let six = Packet6 { key: Key6::default(), facts: Facts::default().into() };
    let mut keys = Keys { four: [four; BURST], six: [six; BURST] };
    let mut best = f64::MAX;
    for _ in 0..rounds {
        let start = Instant::now();
        for _ in 0..bursts {
            let (four, six) = burst(black_box(&decoder), black_box(&frames), black_box(&mut keys));
            assert_eq!(four + six, BURST);
        }
        best = best.min(start.elapsed().as_nanos() as f64 / (bursts * BURST) as f64);
    }
    best
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

fn main() {
    let args: Vec<String> = std::env::args().collect();
    if let [_, case, bursts] = args.as_slice() {
        if let Ok(bursts) = bursts.parse() {
            run(case, bursts, 1);
            return;
        }
    }
    if !args.iter().any(|a| a == "--bench") {
        return;
    }
    println!("{:<8} {:>8} {:>8} {:>8} {:>8}  what", "", "uniflow", "biflow", "ns", "ns");
    for (case, what) in CASES {
        let frames = (BURST * (MANY - FEW)) as f64;
        let [uniflow, biflow] = [case.to_string(), format!("{case}+")].map(|case| {
            let instructions = (count(&args[0], &case, MANY) - count(&args[0], &case, FEW)) as f64 / frames;
            (instructions, run(&case, MANY, ROUNDS))
        });
        println!("{case:<8} {:>8.1} {:>8.1} {:>8.2} {:>8.2}  {what}", uniflow.0, biflow.0, uniflow.1, biflow.1);
    }
}
