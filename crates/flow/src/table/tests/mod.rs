#![cfg_attr(feature = "loom", allow(dead_code, unused_imports))]

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

use std::time::Duration;

use super::*;
use crate::{
    decode::{Packet4, Packet6},
    EndReason, Key, Key4, Key6, Record,
};

const FIN: u8 = 1;
const SYN: u8 = 2;
const RST: u8 = 4;
const ACK: u8 = 16;
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
    Packet4 { key, bytes: 64 + i % 1000, tos: 0, tcp_flags: ACK, reversed: false }
}

fn six(i: u32) -> Packet6 {
    let key = Key6([0x2001_0db8_0000_0000, i.into(), 0x2001_0db8_0000_0001, (!i).into(), 0x0400_0050_1100_0000, 9]);
    Packet6 { key, bytes: 64 + i % 1000, tos: 8, tcp_flags: 0, reversed: false }
}

fn flows(reader: &Reader<Heap>) -> Vec<Record> {
    let mut flows = Vec::new();
    reader.scan(0, u64::MAX, &mut |_, flow| flows.push(*flow));
    flows
}

fn records(ended: &mut EndedReader) -> Vec<Record> {
    std::iter::from_fn(|| ended.pop()).collect()
}

/// Lets a whole round of ageing happen at one moment.
fn age(worker: &mut Worker<Heap>, now: u64) {
    worker.sweep = Sweep::new(worker.buckets(), 1);
    worker.sweep.due(0);
    assert!(worker.age(now, usize::MAX) > 0);
}
