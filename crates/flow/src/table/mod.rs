//! The flow table. One worker (an lcore) counts, ages and ends flows; any thread can read at the same time.
//!
//! A slot is one cache line (IPv6: two). An index of small tags leads to the slot. Each lookup costs at most two index
//! lines and a slot line, in every state of the table. The hash is keyed and strongly universal, so that an attacker
//! cannot choose colliding flows. Colliding flows would only cost room.
//!
//! ```
//! use std::time::Duration;
//! use flow::table::{table, Heap, NoPrefetch, TableSpec, Timebase};
//!
//! let spec = TableSpec { idle: Duration::from_secs(15), ..TableSpec::new(1024) };
//! let memory = Heap::new(spec.words());
//! let (mut worker, reader, mut ended) = table(&spec, memory, Timebase::now(0, 1_000_000_000), 4096)?;
//! worker.count4(&[], 0, 0, &NoPrefetch);
//! worker.age(1_000, 256);
//! reader.scan(0, reader.places(), &mut |place, flow| println!("{place}: {flow:?}"));
//! while !worker.flush(4096) {
//!     while let Some(record) = ended.pop() {
//!         println!("{record:?}");
//!     }
//! }
//! # Ok::<(), flow::table::TableError>(())
//! ```

mod counts;
mod detail_table;
mod ended;
mod flows;
mod hash;
mod heap;
mod index;
mod prefetch;
mod reader;
mod slot;
mod spec;
mod sweep;
mod sync;
#[cfg(test)]
mod tests;
mod time;
mod worker;

use std::{ops::Deref, sync::Arc};

pub use counts::Counts;
use detail_table::DetailTable;
pub use ended::EndedReader;
use flows::{Common, Flows};
pub use heap::Heap;
pub use prefetch::{NoPrefetch, Prefetch};
pub use reader::Reader;
use reader::{Counters, Shared};
use slot::{Family, V4, V6};
pub use spec::{TableError, TableFull, TableSpec};
use sweep::Sweep;
pub use sync::AtomicU64;
pub use time::Timebase;
pub use worker::Worker;

/// Places looked at each second for flows that have ended: 256 of them take 0.3 to 4 us (docs/performance.md), so that this is
/// less than a hundredth of an lcore.
const PLACES_PER_S: f64 = 524_288.0;

/// An empty table in `memory`, of which it takes the first [`TableSpec::words`], best at a multiple of 64 bytes. `ended`
/// records of ended flows can wait to be taken; more are dropped and counted.
///
/// # Errors
///
/// A [`TableError`] for a spec out of bounds, too little memory, or a system without random numbers.
pub fn table<M>(
    spec: &TableSpec,
    memory: M,
    timebase: Timebase,
    ended: usize,
) -> Result<(Worker<M>, Reader<M>, EndedReader), TableError>
where
    M: Deref<Target = [AtomicU64]> + Send + Sync,
{
    spec.check()?;
    let (words4, words6) = spec.words_each();
    if memory.len() < words4 + words6 {
        return Err(TableError::Memory { need: words4 + words6, got: memory.len() });
    }
    // A flush goes on bucket by bucket, and needs room for one.
    let ended = ended.max(2 * index::LANES);
    let (to4, v4) = rtrb::RingBuffer::new(ended);
    let (to6, v6) = rtrb::RingBuffer::new(ended);
    let slots = [words4 / V4::STRIDE, words6 / V6::STRIDE];
    let details = |slots| spec.details.then(|| DetailTable::new(slots, spec.biflow, ended)).unzip();
    let [(details4, lines4), (details6, lines6)] = slots.map(details);
    let (flows4, flows6) = (Flows::new(spec.buckets().0, to4, details4)?, Flows::new(spec.buckets().1, to6, details6)?);
    let spill = words4 / V4::STRIDE + words6 / V6::STRIDE;
    let bytes = 8 * (words4 + words6 + spill) + flows4.own_memory() + flows6.own_memory();
    let shared = Arc::new(Shared {
        memory,
        words4,
        words6,
        spill4: heap::untouched(words4 / V4::STRIDE),
        spill6: heap::untouched(words6 / V6::STRIDE),
        counters: Counters::default(),
        walls: AtomicU64::new(timebase.walls().0),
        capacity: (spec.flows + spec.flows6) as u64,
        bytes: bytes as u64,
    });
    let (table4, table6) = shared.tables();
    table4.words.iter().chain(table6.words).for_each(|word| word.store(0, sync::Ordering::Relaxed));
    let ticks = |seconds: f64| (seconds * timebase.hz() as f64) as u64;
    let common = Common {
        full: spec.full,
        biflow: spec.biflow,
        idle: ticks(spec.idle.as_secs_f64()),
        active: ticks(spec.active.as_secs_f64()),
        linger: ticks(1.0),
        has_steps: false,
        overtaking: ticks(0.003),
        walls: timebase.walls(),
        counts: Counts::default(),
        changed: false,
    };
    let buckets = (flows4.buckets() + flows6.buckets()) as u32;
    let round = ticks(round_s(spec.flows + spec.flows6, spec.idle.as_secs_f64()));
    let sweep = Sweep::new(buckets, round);
    let reader = Reader { shared: shared.clone(), timebase };
    let worker = Worker { shared, v4: flows4, v6: flows6, common, sweep, flushed: 0, latest: 0 };
    Ok((worker, reader, EndedReader { v4, v6, details4: lines4, details6: lines6, timebase }))
}

/// Seconds of one round over `places` places in search of ended flows: one second while the round costs the packet path
/// next to nothing, longer for larger tables, and at most a quarter of the idle timeout.
fn round_s(places: usize, idle_s: f64) -> f64 {
    (places as f64 / PLACES_PER_S).min(idle_s / 4.0).max(1.0)
}
