//! Deadlines from durations.

use std::time::{Duration, Instant};

/// Longest duration that [`within`] adds.
const LONGEST: Duration = Duration::from_secs(86_400);

/// The instant `time` from now. A duration of more than one day counts as one day, so that the sum cannot overflow.
pub fn within(time: Duration) -> Instant {
    Instant::now() + time.min(LONGEST)
}
