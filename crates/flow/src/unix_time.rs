//! The time of day, as the system clock has it.

use std::time::{Duration, SystemTime};

/// Time since 1970-01-01 00:00 UTC; zero when the system clock is before it.
pub(crate) fn since_1970() -> Duration {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default()
}

/// Seconds since 1970, as a field of 32 bits holds them until 2106.
pub(crate) fn unix_s() -> u32 {
    #[allow(clippy::cast_possible_truncation)]
    let seconds = since_1970().as_secs() as u32;
    seconds
}
