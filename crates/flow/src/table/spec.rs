//! How large a flow table is, and when flows leave it.

use std::time::Duration;

use failure::Failure;
use serde::{Deserialize, Serialize};

use super::{
    index::LANES,
    slot::{Family, V4, V6},
};

/// What happens to a new flow when the table has no place for it. Written `drop-new` or `evict`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TableFull {
    /// The new flow is not recorded; its packets are counted as refused.
    DropNew,
    /// The new flow replaces one of the 32 flows in its two buckets: the one that was idle for longest.
    #[default]
    Evict,
}

/// How large a table is, and when flows leave it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableSpec {
    /// IPv4 flows, 2^10 to 2^24. The table has a quarter more places, so that every flow finds one.
    pub flows: usize,
    /// IPv6 flows, 0 to 2^24.
    pub flows6: usize,
    /// Idle timeout: a flow without frames for this time ends. 1 s to one day.
    pub idle: Duration,
    /// Active timeout: a flow that lasts this long is recorded, and its counts start again from zero. 1 s to one day.
    pub active: Duration,
    /// What happens to new flows when the table is full.
    pub full: TableFull,
    /// Whether a flow has both directions, a biflow (RFC 5103). TCP then ends it when both have sent FIN, otherwise when its
    /// own direction has.
    pub biflow: bool,
    /// Whether records have [`Details`](crate::Details): 64 bytes more a flow.
    pub details: bool,
}

/// Why a table cannot be made.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TableError {
    /// Too few or too many flows.
    #[error("a table for {got} {version} flows: must be {least} to 16777216 (2^24)")]
    Flows {
        /// The value given.
        got: usize,
        /// `IPv4` or `IPv6`.
        version: &'static str,
        /// The least legal value.
        least: usize,
    },
    /// A timeout out of bounds.
    #[error("{which} timeout of {got:?}: must be 1 s to 86400 s (one day)")]
    Timeout {
        /// `idle` or `active`.
        which: &'static str,
        /// The value given.
        got: Duration,
    },
    /// Too little memory was given.
    #[error("the flow table needs {need} words of 8 bytes, but got {got}")]
    Memory {
        /// Words needed.
        need: usize,
        /// Words given.
        got: usize,
    },
    /// The system gives no random numbers.
    #[error("the system gives no random numbers for the hash of the flow table: {0}")]
    Random(getrandom::Error),
}

impl From<TableError> for Failure {
    fn from(e: TableError) -> Self {
        match e {
            TableError::Random(_) => Self::machine(e),
            _ => Self::usage(e),
        }
    }
}

/// Most flows of one IP version.
const MOST: usize = 1 << 24;
const DAY: Duration = Duration::from_secs(86_400);

impl TableSpec {
    /// Room for `flows` of IPv4 and a quarter as many of IPv6; idle for 15 s, active for 60 s, evicting, with biflows.
    pub fn new(flows: usize) -> Self {
        let seconds = Duration::from_secs;
        Self {
            flows,
            flows6: flows / 4,
            idle: seconds(15),
            active: seconds(60),
            full: TableFull::Evict,
            biflow: true,
            details: false,
        }
    }

    /// Checks all values.
    ///
    /// # Errors
    ///
    /// The first value that is out of bounds.
    pub fn check(&self) -> Result<(), TableError> {
        for (got, version, least) in [(self.flows, "IPv4", 1 << 10), (self.flows6, "IPv6", 0)] {
            if !(least..=MOST).contains(&got) {
                return Err(TableError::Flows { got, version, least });
            }
        }
        for (got, which) in [(self.idle, "idle"), (self.active, "active")] {
            if !(Duration::from_secs(1)..=DAY).contains(&got) {
                return Err(TableError::Timeout { which, got });
            }
        }
        Ok(())
    }

    /// Words of 8 bytes that the slots take. The index, 2 bytes a place, is the worker's own.
    pub fn words(&self) -> usize {
        let (v4, v6) = self.words_each();
        v4.saturating_add(v6)
    }

    pub(crate) fn words_each(&self) -> (usize, usize) {
        let (v4, v6) = self.buckets();
        (v4.saturating_mul(LANES * V4::STRIDE), v6.saturating_mul(LANES * V6::STRIDE))
    }

    /// Buckets of IPv4 and of IPv6 flows.
    pub(crate) fn buckets(&self) -> (usize, usize) {
        let buckets = |flows: usize| flows.saturating_add(flows / 4).div_ceil(LANES);
        (buckets(self.flows), buckets(self.flows6))
    }
}

#[cfg(test)]
mod tests {
    use super::TableFull;

    #[test]
    fn the_text_forms_are_those_of_the_flag() {
        for (full, text) in [(TableFull::DropNew, "\"drop-new\""), (TableFull::Evict, "\"evict\"")] {
            assert_eq!(serde_json::to_string(&full).unwrap(), text);
            assert_eq!(serde_json::from_str::<TableFull>(text).unwrap(), full);
        }
        assert!(serde_json::from_str::<TableFull>("\"refuse\"").is_err());
    }
}
