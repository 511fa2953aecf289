//! Frames through a whole function of any kind: nothing panics, every frame is accounted for, the pool is full at the end.
//!
//! The input is a kind, a port, and frames, each behind its length in two bytes. What libFuzzer mutates gets good frames
//! mixed in and, every other time, right checksums, so that it comes past them.
#![no_main]
#![allow(dead_code)]

#[path = "../../crates/dataplane/tests/soak/dice.rs"]
mod dice;
#[path = "../../crates/dataplane/tests/soak/frames.rs"]
mod frames;
#[path = "../../crates/dataplane/tests/soak/plans.rs"]
mod plans;
#[path = "../../crates/dataplane/tests/soak/repair.rs"]
mod repair;

use std::time::Duration;

use dataplane::{fib::Small, spec::FunctionKind, Forwarder, Input, Plane, PortInfo, Settings};
use dice::Dice;
use libfuzzer_sys::{fuzz_mutator, fuzz_target, fuzzer_mutate};
use packet::{
    heap::{HeapPool, HeapWire},
    Burst, FakeClock, Rx, Tx,
};

const PORTS: usize = 3;
const HZ: u64 = 1_000_000;
const ROOM: usize = 2048;

/// Kind and port, and the frames.
fn take_apart(data: &[u8]) -> Option<(FunctionKind, usize, Vec<&[u8]>)> {
    let (&[kind, port], mut rest) = data.split_first_chunk()?;
    let mut list = Vec::new();
    while let Some((len, bytes)) = rest.split_first_chunk() {
        let (frame, more) = bytes.split_at(bytes.len().min(usize::from(u16::from_be_bytes(*len)) % ROOM));
        list.push(frame);
        rest = more;
    }
    Some((FunctionKind::ALL[usize::from(kind) % 8], usize::from(port) % PORTS, list))
}

fuzz_target!(|data: &[u8]| {
    let Some((kind, port, list)) = take_apart(data) else { return };
    let spec = plans::spec(kind, &mut Dice::new(data[0].into()));
    let infos: Vec<_> =
        [1500, 1500, 600].iter().zip(0..).map(|(&mtu, p)| PortInfo { mac: frames::port_mac(p), mtu }).collect();
    let mut plane = Plane::new(&spec, &infos, Box::new(Small)).unwrap();
    let (pool, clock) = (HeapPool::new(300, ROOM), FakeClock::new(HZ));
    let (mut ends, near): (Vec<_>, Vec<_>) = (0..PORTS).map(|_| HeapWire::pair(100)).unzip();
    let inputs =
        near.iter().enumerate().map(|(port, queue)| Input { port, queue_id: 0, queue: queue.clone() }).collect();
    let function = plane.function(pool.clone(), HZ, 0);
    let mut forwarder = Forwarder::new(function, inputs, near, clock.clone(), Settings::default());
    for (time, burst) in (1..).zip(list.chunks(16)) {
        ends[port].tx(&mut burst.iter().filter_map(|bytes| pool.frame(bytes)).collect());
        forwarder.poll_once();
        clock.advance(HZ / 3);
        plane.tick(Duration::from_secs(time));
        ends.iter_mut().for_each(|end| _ = end.rx(&mut Burst::new()));
    }
    let last = forwarder.finish();
    assert_eq!((last.balance(), last.held), (Ok(()), 0));
    ends.iter_mut().for_each(|end| while end.rx(&mut Burst::new()) > 0 {});
    assert_eq!(pool.in_use(), 0);
});

fuzz_mutator!(|data: &mut [u8], size: usize, max_size: usize, seed: u32| {
    let mut dice = Dice::new(seed.into());
    if size < 2 || dice.one_in(4) {
        // A good frame more, or instead.
        let keep = if dice.one_in(4) { size.min(2) } else { size };
        let frame = frames::frame(&mut dice, usize::from(data.get(1).map_or(0, |port| port % 3)), 2);
        let mut bytes = data[..keep].to_vec();
        bytes.resize(keep.max(2), dice.byte());
        bytes.extend((frame.len() as u16).to_be_bytes());
        bytes.extend(frame);
        let n = bytes.len().min(max_size).min(data.len());
        data[..n].copy_from_slice(&bytes[..n]);
        return n;
    }
    let n = fuzzer_mutate(data, size, max_size);
    if dice.one_in(2) && n > 2 {
        let mut at = 2;
        while at + 2 <= n {
            let len = usize::from(u16::from_be_bytes([data[at], data[at + 1]])) % ROOM;
            let end = (at + 2 + len).min(n);
            repair::repair(&mut data[at + 2..end]);
            at = end;
        }
    }
    n
});
