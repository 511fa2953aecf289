//! Counters of the bridge.

/// What a bridge counts beside drops.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct BridgeCounters {
    /// Stations not known before, or forgotten since.
    pub learned: u64,
    /// Times that a station was heard at another port than before.
    pub moved: u64,
    /// Frames to a group address, or to a station not known: sent to every other port.
    pub flooded: u64,
    /// Times that a station was not learned for want of room in the [`Fdb`](crate::fdb::Fdb); frames from it one after another in a
    /// burst count once.
    pub fdb_full: u64,
    /// Copies of flooded frames that were not made for want of a buffer.
    pub copies_missing: u64,
}
