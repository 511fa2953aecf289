//! Tests of the flow table on a virtual clock.

#![cfg_attr(feature = "loom", allow(dead_code, unused_imports))]

#[cfg(not(feature = "loom"))]
mod details;
#[cfg(feature = "loom")]
mod loom;
#[cfg(not(feature = "loom"))]
mod model;
#[cfg(not(feature = "loom"))]
mod readers;
#[cfg(not(feature = "loom"))]
mod rules;
#[cfg(not(feature = "loom"))]
mod spread;
#[cfg(not(feature = "loom"))]
mod steps;

use std::time::Duration;

use super::*;
use crate::{
    decode::{Packet4, Packet6},
    EndReason, Facts, Key, Key4, Key6, PackedFacts, Record,
};

const FIN: u16 = 1;
const SYN: u16 = 2;
const RST: u16 = 4;
const ACK: u16 = 16;
/// Ticks a second.
const HZ: u64 = 1000;

type Parts = (Worker<Heap>, Reader<Heap>, EndedReader);

/// Room for 1,024 flows, idle for 8 s, active for 30 s; time starts at zero.
fn small(full: TableFull, biflow: bool, ended: usize) -> Parts {
    let (idle, active) = (Duration::from_secs(8), Duration::from_secs(30));
    let spec = TableSpec { idle, active, full, biflow, ..TableSpec::new(1024) };
    table(&spec, Heap::new(spec.words()), Timebase::new(0, 0, HZ), ended).unwrap()
}

/// Flow `i`, which tells its bytes a packet.
fn four(i: u32) -> Packet4 {
    let key = Key4([u64::from(i) << 32 | u64::from(!i), 0x0400_0050_0600_0000, 0]);
    let facts = Facts { frame_bytes: 64 + i % 1000, ip_bytes: 46 + i % 1000, tcp_flags: ACK, ..Facts::default() };
    Packet4 { key, facts: facts.into() }
}

fn six(i: u32) -> Packet6 {
    let key =
        Key6([0x2001_0db8_0000_0000, i.into(), 0x2001_0db8_0000_0001, (!i).into(), 0x0400_0050_1100_0000, 0x8000_0009]);
    let facts = Facts { frame_bytes: 64 + i % 1000, ip_bytes: 50 + i % 1000, tos: 8, ..Facts::default() };
    Packet6 { key, facts: facts.into() }
}

/// Packets with other facts.
trait Changed: Sized {
    fn facts(&mut self) -> &mut PackedFacts;

    fn with(mut self, change: impl FnOnce(&mut Facts)) -> Self {
        let mut facts = Facts::from(*self.facts());
        change(&mut facts);
        *self.facts() = facts.into();
        self
    }
}

impl Changed for Packet4 {
    fn facts(&mut self) -> &mut PackedFacts {
        &mut self.facts
    }
}

impl Changed for Packet6 {
    fn facts(&mut self) -> &mut PackedFacts {
        &mut self.facts
    }
}

/// Bytes of the frame, and whether it goes back.
fn seen(facts: PackedFacts) -> (u32, bool) {
    let Facts { frame_bytes, reversed, .. } = facts.into();
    (frame_bytes, reversed)
}

fn flows(reader: &Reader<Heap>) -> Vec<Record> {
    let mut flows = Vec::new();
    reader.scan(0, u64::MAX, &mut |_, flow| flows.push(*flow));
    flows
}

fn records(ended: &mut EndedReader) -> Vec<Record> {
    std::iter::from_fn(|| ended.pop()).collect()
}

/// Counts packets of a capture, each with its tick, in this order.
fn captured(worker: &mut Worker<Heap>, packets: &[Packet4], ticks: &[u64]) {
    ticks.iter().for_each(|&tick| worker.follow(tick));
    worker.count4_at(packets, ticks, 0, &NoPrefetch);
}

/// Lets a whole round of ageing happen at one moment.
fn age(worker: &mut Worker<Heap>, now: u64) {
    worker.sweep = Sweep::new(worker.buckets(), 1);
    worker.sweep.due(0);
    assert!(worker.age(now, usize::MAX) > 0);
}
