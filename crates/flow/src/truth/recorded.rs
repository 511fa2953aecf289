use crate::{Addresses, Key, Record, Way};

/// Memory of one record kept, in bytes.
pub const RECORD_BYTES: usize = size_of::<Seen>();

/// What a logger said, record by record: kept up to a limit, in any order.
///
/// A biflow record counts as two flows, one each way.
#[derive(Debug, Clone)]
pub struct Recorded {
    pub(super) seen: Vec<Seen>,
    limit: usize,
    /// Records above the limit.
    pub(super) beyond: u64,
    /// Records of keys that are not of this test, and their packets.
    pub(super) foreign: (u64, u64),
    packets: u64,
}

/// One record, one way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Seen {
    /// Its flow; all that are numbered too high to have been sent share the highest number.
    pub flow: u32,
    pub first: u64,
    pub last: u64,
    pub packets: u64,
    pub bytes: u64,
}

impl Recorded {
    /// Room for so many records, of [`RECORD_BYTES`] each, taken as they come.
    pub fn new(limit: usize) -> Self {
        Self { seen: Vec::new(), limit, beyond: 0, foreign: (0, 0), packets: 0 }
    }

    /// Takes a record; `find` as [`Expected::find`](super::Expected::find).
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
        self.seen.push(Seen { flow, first, last, packets: way.packets, bytes: way.bytes });
    }

    /// Records of this test kept so far.
    pub fn records(&self) -> u64 {
        self.seen.len() as u64
    }

    /// Their packets, copies and inventions included.
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
