//! Cost of filling and of checking a frame at 64 bytes on heap buffers, all in cache: the code, not the memory.
//!
//! Prints the best of many rounds, since everything else on the machine can only make a round slower. The cycles
//! are those of a 2.6 GHz core.

use std::{hint::black_box, time::Instant};

use packet::{
    frame::{HeaderSpec, IpSpec, L4Spec},
    heap::{HeapBuf, HeapPool},
    Buffer, MacAddr,
};
use traffic::{
    checker::{Checker, Grid},
    generator::Generator,
    pacer::Pacer,
    stream::{Field, FieldSpec, StreamSpec, Values},
};
use units::{Fps, FrameSize};

const ROUNDS: usize = 300;
const BURSTS: usize = 500;

fn best_ns(frames: usize, mut burst: impl FnMut()) -> f64 {
    let round = |burst: &mut dyn FnMut()| {
        let start = Instant::now();
        (0..BURSTS).for_each(|_| burst());
        start.elapsed().as_nanos() as f64 / (BURSTS * frames) as f64
    };
    (0..ROUNDS).map(|_| round(&mut burst)).fold(f64::MAX, f64::min)
}

fn show(what: &str, ns: f64) {
    println!("{what:<44} {ns:6.2} ns {:6.1} cycles {:6.1} Mpps", ns * 2.6, 1e3 / ns);
}

fn spec(fields: Vec<FieldSpec>, flows: Option<u64>) -> StreamSpec {
    let headers = HeaderSpec {
        dst_mac: MacAddr([2, 0, 0, 0, 0, 2]),
        src_mac: MacAddr([2, 0, 0, 0, 0, 1]),
        vlans: vec![],
        mpls: vec![],
        ip: IpSpec::V4 { src: [198, 18, 1, 2].into(), dst: [198, 19, 1, 2].into(), ttl: 64, dscp: 0 },
        l4: L4Spec::Udp { src: 1024, dst: 7 },
    };
    StreamSpec { headers, frame_size: FrameSize::MIN.into(), fields, flows, seed: 1 }
}

#[allow(clippy::unwrap_used)] // The specs are written here.
fn fill(what: &str, spec: &StreamSpec, prefilled: bool, burst: usize) {
    let pool = HeapPool::new(64, 2048);
    let mut generator = Generator::new(spec, 0, 1, prefilled).unwrap();
    let mut frames: Vec<HeapBuf> = (0..burst).filter_map(|_| pool.frame(generator.template())).collect();
    let mut departure = 1 << 40;
    let ns = best_ns(burst, || {
        departure += 1000;
        // In memory, where a worker has it.
        black_box(&mut generator).fill(black_box(&mut frames), departure);
    });
    show(&format!("fill  {what}, burst {burst}"), ns);
}

#[allow(clippy::unwrap_used)] // The specs are written here.
fn check(what: &str, burst: usize, skip_every: usize, grid: Option<Grid>) {
    let pool = HeapPool::new(8192, 64);
    let generator = Generator::new(&spec(vec![], None), 0, 1, true).unwrap();
    let mut frames: Vec<HeapBuf> = (0..burst).filter_map(|_| pool.frame(generator.template())).collect();
    let mut checker = Checker::new(1, &[0], &[], generator.frame_len());
    if let Some(grid) = grid {
        checker = checker.with_slices(grid);
        checker.begin(1 << 40);
    }
    let (mut sequence, mut now) = (0u32, 1u64 << 40);
    let stamp = packet::stamp::Stamper::new(1, 0);
    let ns = best_ns(burst, || {
        now += 3000;
        for (i, frame) in frames.iter_mut().enumerate() {
            sequence = sequence.wrapping_add(1 + u32::from(skip_every > 0 && i % skip_every.max(1) == 0));
            let departure = now - 20_000 + 40 * i as u64;
            if let Some(tail) = frame.data_mut().last_chunk_mut() {
                *tail = stamp.to_bytes(sequence.wrapping_sub(1), departure);
            }
        }
        checker.check(black_box(&frames), now);
    });
    let writing = best_ns(burst, || {
        now += 3000;
        for (i, frame) in frames.iter_mut().enumerate() {
            sequence = sequence.wrapping_add(1 + u32::from(skip_every > 0 && i % skip_every.max(1) == 0));
            let departure = now - 20_000 + 40 * i as u64;
            if let Some(tail) = frame.data_mut().last_chunk_mut() {
                *tail = stamp.to_bytes(sequence.wrapping_sub(1), departure);
            }
        }
        black_box(&frames);
    });
    show(&format!("check {what}, burst {burst}"), ns - writing);
}

/// A poll of the pacer, when this many frames are due at each.
fn due(what: &str, mut pacer: Pacer, step: u64) {
    let mut now = 1 << 40;
    pacer.start(now);
    let ns = best_ns(64, || {
        for _ in 0..64 {
            now += step;
            black_box(pacer.due(black_box(now), 64));
        }
    });
    show(&format!("due   {what}, a poll"), ns);
}

#[allow(clippy::unwrap_used)] // The specs are written here.
fn main() {
    const HZ: u64 = 2_600_000_000;
    let steady = || Pacer::new(Fps::from_raw(10e6), HZ, HZ * 3600, Pacer::default_catch_up(HZ));
    due("steady, one frame in eight polls", steady(), 32);
    due("steady, one frame", steady(), 260);
    due("steady, sixteen frames", steady(), 4160);
    let field = |field, values| FieldSpec { field, values };
    let random = |count| Values::Random { start: None, count };
    let increment = |count| Values::Increment { start: None, count, step: 1 };
    let mask: traffic::Mask = "0000101000000000XXXX000000000001".parse().unwrap();
    let tuple = vec![
        field(Field::SrcIp, random(200)),
        field(Field::DstIp, random(200)),
        field(Field::SrcPort, random(1000)),
        field(Field::DstPort, increment(100)),
    ];
    for burst in [64, 32, 4, 1] {
        fill("constant", &spec(vec![], None), true, burst);
        fill("1000 flows", &spec(vec![], Some(1000)), true, burst);
        fill("1M flows", &spec(vec![], Some(1_000_000)), true, burst);
        fill("masked dst ip", &spec(vec![field(Field::DstIp, Values::Masked(mask))], None), true, burst);
        fill("5-tuple: 3 random, 1 increment", &spec(tuple.clone(), None), true, burst);
        let mix = units::Imix::SIMPLE.parse::<units::Imix>().unwrap();
        fill("IMIX 7:4:1", &StreamSpec { frame_size: mix.into(), ..spec(vec![], None) }, true, burst);
        fill("1M flows, not prefilled", &spec(vec![], Some(1_000_000)), false, burst);
    }
    for burst in [64, 32, 4] {
        // 0.1 ms each.
        let grid = Some(Grid { width: 260_000, count: 65_536 });
        check("in sequence", burst, 0, None);
        check("in sequence, slices", burst, 0, grid);
        check("one in 16 lost", burst, 16, None);
        check("one in 16 lost, slices", burst, 16, grid);
    }
}
