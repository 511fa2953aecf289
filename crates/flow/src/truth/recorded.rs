//! The records of a logger, up to a limit.

use crate::{Addresses, Key, Record, Way};

/// Memory of one record kept, in bytes.
pub const RECORD_BYTES: usize = size_of::<Seen>();

/// The records of a logger, in any order, up to a limit.
///
/// A biflow record counts as two flows, one for each direction.
#[derive(Debug, Clone)]
pub struct Recorded {
    pub(super) seen: Vec<Seen>,
    limit: usize,
    /// Records above the limit.
    pub(super) beyond: u64,
    /// Records with keys of other traffic, and their packets.
    pub(super) foreign: (u64, u64),
    packets: u64,
}

/// One direction of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Seen {
    /// The number of its flow. All flows that were never sent share the highest number.
    pub flow: u32,
    pub first: u64,
    pub last: u64,
    pub packets: u64,
    pub bytes: u64,
}

impl Recorded {
    /// Keeps at most this many records of [`RECORD_BYTES`] each. Memory grows with the records.
    pub fn new(limit: usize) -> Self {
        Self { seen: Vec::new(), limit, beyond: 0, foreign: (0, 0), packets: 0 }
    }

    /// Adds a record. `find` is [`Expected::find`](super::Expected::find).
    pub fn add(&mut self, record: &Record, find: impl Fn(&Key) -> Option<u64>) {
        self.one(&record.key, record.forward, record, &find);
        if record.back.packets > 0 {
            self.one(&turned(&record.key), record.back, record, &find);
        }
    }

    fn one(&mut self, key: &Key, way: Way, record: &Record, find: &impl Fn(&Key) -> Option<u64>) {
        let Some(flow) = find(key) else {
            self.foreign = (self.foreign.0 + 1, self.foreign.1.saturating_add(way.packets));
            return;
        };
        if self.seen.len() >= self.limit {
            self.beyond += 1;
            return;
        }
        self.packets = self.packets.saturating_add(way.packets);
        let flow = u32::try_from(flow).unwrap_or(u32::MAX);
        let (first, last) = (record.first.min(record.last), record.first.max(record.last));
        // Many exporters have only one of them; the score finds out which it is.
        let bytes = if way.frame_bytes > 0 { way.frame_bytes } else { way.ip_bytes };
        self.seen.push(Seen { flow, first, last, packets: way.packets, bytes });
    }

    /// Records of this test kept so far.
    pub fn records(&self) -> u64 {
        self.seen.len() as u64
    }

    /// Packets of these records, duplicates and flows never sent included.
    pub fn packets(&self) -> u64 {
        self.packets
    }

    /// Records of other traffic.
    pub fn foreign(&self) -> u64 {
        self.foreign.0
    }
}

/// The key of the other direction.
fn turned(key: &Key) -> Key {
    let addresses = match key.addresses {
        Addresses::V4 { src, dst } => Addresses::V4 { src: dst, dst: src },
        Addresses::V6 { src, dst } => Addresses::V6 { src: dst, dst: src },
    };
    Key { addresses, sport: key.dport, dport: key.sport, ..*key }
}
