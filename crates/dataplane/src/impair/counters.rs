//! Counters of the impairments.

/// What was done to frames, exactly. Frames lost and policed are counted as drops, too.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ImpairCounters {
    /// Dropped by the policer.
    pub policed: u64,
    /// Lost on purpose.
    pub lost: u64,
    /// Copies made: frames out beyond frames in.
    pub duplicated: u64,
    /// Copies that should have been made, for which there was no buffer or no room.
    pub not_duplicated: u64,
    /// Frames that left behind a later one (RFC 4737 type-P-reordered), by reordering or by jitter; copies not
    /// counted.
    pub reordered: u64,
    /// Frames given a delay; copies share their frame's.
    pub delayed: u64,
}

impl ImpairCounters {
    /// By name.
    pub(super) fn named(&self) -> [(&'static str, u64); 6] {
        [
            ("impair-policed", self.policed),
            ("impair-lost", self.lost),
            ("impair-duplicated", self.duplicated),
            ("impair-not-duplicated", self.not_duplicated),
            ("impair-reordered", self.reordered),
            ("impair-delayed", self.delayed),
        ]
    }
}
