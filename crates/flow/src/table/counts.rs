//! What a table counts.

/// What a table has counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    /// Flows in it now.
    pub flows: u64,
    /// Flows begun.
    pub created: u64,
    /// Records made, by [`crate::EndReason`]: idle, active, end of flow, forced, lack of resources.
    pub ended: [u64; 5],
    /// Packets of flows that found no place ([`TableFull::DropNew`](super::TableFull)).
    pub refused_packets: u64,
    /// Their bytes, without FCS.
    pub refused_bytes: u64,
    /// Flows evicted for others ([`TableFull::Evict`](super::TableFull)).
    pub evicted: u64,
    /// Records lost because nobody took them in time. They are among `ended`.
    pub dropped_records: u64,
}

impl Counts {
    pub(super) const WORDS: usize = 11;

    pub(super) fn words(&self) -> [u64; Self::WORDS] {
        let [idle, active, end, forced, lack] = self.ended;
        let Self { flows, created, refused_packets, refused_bytes, evicted, dropped_records, .. } = *self;
        [flows, created, idle, active, end, forced, lack, refused_packets, refused_bytes, evicted, dropped_records]
    }

    pub(super) fn from_words(words: [u64; Self::WORDS]) -> Self {
        let [flows, created, idle, active, end, forced, lack, refused_packets, refused_bytes, evicted, dropped] = words;
        let ended = [idle, active, end, forced, lack];
        Self { flows, created, ended, refused_packets, refused_bytes, evicted, dropped_records: dropped }
    }
}
