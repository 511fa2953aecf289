//! Every order in which a reader may see what the worker writes: `scripts/test.sh loom`, a stage of `make test`.

use std::sync::Arc;

use super::{
    slot::{Slot, Slots, V4},
    sync::AtomicU64,
    time::Walls,
};
use crate::{facts::AROUND, Facts, PackedFacts};

const KEYS: [[u64; 3]; 2] = [[1 << 32 | 1, 1 << 48, 1], [2 << 32 | 2, 2 << 48, 2]];

fn facts(frame_bytes: u32) -> PackedFacts {
    // Half of them are around the packet.
    Facts { frame_bytes, ip_bytes: frame_bytes / 2, ..Facts::default() }.into()
}

/// Nothing, or one of the flows with as many packets as its ticks and bytes say.
fn check(table: &[AtomicU64]) {
    let slots = Slots { words: table, spill: &[] };
    let Some(raw) = Slot::<V4>::numbered(slots, 0).and_then(Slot::read) else { return };
    let flow = raw[0] & 0xff;
    let packets = raw[5] >> 32;
    assert_eq!((raw[0], raw[1], raw[2] & 0xffff_ffff), (flow << 32 | flow, flow << 48, flow), "{raw:?}");
    assert_eq!((raw[3], raw[4]), (10 * flow + 1, 10 * flow + packets), "{raw:?}");
    let half = 50 * flow * packets;
    assert_eq!(raw[6], half << AROUND | half, "{raw:?}");
}

fn model(preemptions: usize, work: fn(Slot<'_, V4>)) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(preemptions);
    model.check(move || {
        let table: Arc<[AtomicU64]> = (0..8).map(|_| AtomicU64::new(0)).collect();
        let slot = Slot::<V4>::numbered(Slots { words: &table, spill: &[] }, 0).unwrap();
        slot.fill(&KEYS[0], facts(100), 0, 11, true, Walls(0));
        let reader = loom::thread::spawn({
            let table = table.clone();
            move || check(&table)
        });
        work(slot);
        reader.join().unwrap();
        check(&table);
    });
}

#[test]
fn a_packet_is_counted_while_somebody_reads() {
    model(3, |slot| assert!(slot.count(facts(100), 12)));
}

#[test]
fn a_flow_gives_place_to_another_while_somebody_reads() {
    model(2, |slot| slot.fill(&KEYS[1], facts(200), 0, 21, true, Walls(0)));
}

#[test]
fn a_flow_is_cut_while_somebody_reads() {
    model(2, |slot| assert!(slot.cut(crate::EndReason::Idle, Walls(0)).is_some()));
}
