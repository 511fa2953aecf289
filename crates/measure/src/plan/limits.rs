//! The legal ranges of a plan's values, and the checks that hold a value against its range.

use std::{fmt, ops::RangeInclusive, time::Duration};

use units::Ratio;

use super::error::PlanError;
use crate::schema::text::span_text;

/// What a check of a plan says.
pub(super) type Check = Result<(), PlanError>;

/// Distinct 5-tuples per direction.
pub(super) const FLOWS: RangeInclusive<u64> = 1..=1 << 24;
/// Differentiated services code point.
pub(super) const DSCP: RangeInclusive<u8> = 0..=63;
/// Hops.
pub(super) const TTL: RangeInclusive<u8> = 1..=255;
/// What TOML can write.
pub(super) const SEED: RangeInclusive<u64> = 0..=i64::MAX as u64;
/// VLAN ids that are not reserved (IEEE 802.1Q).
pub(super) const VLAN_ID: RangeInclusive<u16> = 1..=4094;
/// Labels that are not reserved (RFC 3032 §2.1).
pub(super) const MPLS_LABEL: RangeInclusive<u32> = 16..=(1 << 20) - 1;
/// Frame sizes in bytes, FCS included.
pub(super) const FRAME_BYTES: RangeInclusive<u64> = 64..=9216;
/// Forwarding cores, and receive queues of a port.
pub(super) const CORES: RangeInclusive<u64> = 1..=1024;
/// Routes behind a port of the built-in device: its host routes and their addresses lie in half of 10.0.0.0/8.
pub(super) const ROUTES: RangeInclusive<u64> = 1..=1 << 20;
/// Addresses that an address test may offer.
pub(super) const ADDRESSES: RangeInclusive<u64> = 1..=1 << 24;

/// Trials for one frame size.
pub(super) const TRIALS: RangeInclusive<u32> = 1..=10_000;
/// How often an invalid trial is repeated.
pub(super) const REPEATS: RangeInclusive<u32> = 0..=1000;
/// How often a lossy trial is verified.
pub(super) const RETRIES: RangeInclusive<u32> = 0..=100;
/// How often a test is repeated.
pub(super) const REPETITIONS: RangeInclusive<u32> = 1..=1000;
/// Step of a burst length, frames.
pub(super) const BURST_FRAMES: RangeInclusive<u32> = 1..=1_000_000;
/// Frames of a burst of bursty traffic.
pub(super) const BURST_SIZE: RangeInclusive<u32> = 2..=1_000_000;

/// A load in percent of the throughput.
pub(super) const LOAD_PERCENT: RangeInclusive<f64> = 0.01..=100.0;
/// An overload in percent of the throughput.
pub(super) const OVERLOAD_PERCENT: RangeInclusive<f64> = 101.0..=10_000.0;
/// Width of the bounds of a throughput search.
pub(super) const PRECISION: RangeInclusive<f64> = 0.00001..=0.5;
/// The same of the searches of other tests.
pub(super) const COARSE_PRECISION: RangeInclusive<f64> = 0.0001..=0.5;
/// What a trial may be off by and still count.
pub(super) const TOLERANCE: RangeInclusive<f64> = 0.0..=0.1;
/// Step of the frame-loss curve (RFC 2544 §26.3: at most 10 %).
pub(super) const LOSS_STEP: RangeInclusive<f64> = 0.001..=0.1;
/// Step of the forwarding rates.
pub(super) const RATE_STEP: RangeInclusive<f64> = 0.001..=0.5;
/// Loss ratio of a soak.
pub(super) const LOSS_BUDGET: RangeInclusive<f64> = 0.0..=0.999;

/// Shortest sending time of a trial, and shortest time that a command or a search is given.
pub(super) const SHORTEST_TRIAL: Duration = Duration::from_millis(10);
/// Shortest absence of a core that can make a trial invalid.
pub(super) const SHORTEST_GAP: Duration = Duration::from_micros(20);
/// Shortest wait for residual frames.
pub(super) const SHORTEST_RESIDUAL: Duration = Duration::from_millis(1);
/// Shortest ageing time of a bridge.
pub(super) const SHORTEST_AGE: Duration = Duration::from_secs(1);
/// Sending times of a burst (RFC 9004 §6.2: as high as 30 s).
pub(super) const SHORTEST_BURST: Duration = Duration::from_micros(10);
/// The longest.
pub(super) const LONGEST_BURST: Duration = Duration::from_secs(30);
/// Longest time of any key.
const MAX_SPAN: Duration = Duration::from_secs(30 * 86_400);

/// That a number is in its range. What is not a number is in none.
pub(super) fn within<T: PartialOrd + fmt::Display>(key: &str, value: T, range: RangeInclusive<T>) -> Check {
    if !range.contains(&value) {
        let legal = format!("must be {} to {}", range.start(), range.end());
        return Err(PlanError::value(key, value, legal));
    }
    Ok(())
}

/// That a ratio is in its range, which is told in percent.
pub(super) fn between(key: &str, value: Ratio, range: RangeInclusive<f64>) -> Check {
    if !range.contains(&value.get()) {
        let legal = format!("must be {}% to {}%", range.start() * 100.0, range.end() * 100.0);
        return Err(PlanError::value(key, value, legal));
    }
    Ok(())
}

/// Checks that a time is at least `low` and at most a month.
pub(super) fn span(key: &str, value: Duration, low: Duration) -> Check {
    if value < low || value > MAX_SPAN {
        return Err(PlanError::value(key, span_text(value), format!("must be {} to 30 days", span_text(low))));
    }
    Ok(())
}

/// A ratio from a literal percentage.
pub(super) fn percent(percent: f64) -> Ratio {
    Ratio::new(percent / 100.0).unwrap_or(Ratio::ZERO)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ends_of_a_range_are_legal() {
        let label = |value| within("traffic.mpls", value, MPLS_LABEL).is_ok();
        assert_eq!([15, 16, 0xf_ffff, 0x10_0000].map(label), [false, true, true, false]);
        let precision = |value| between("search.precision", Ratio::new(value).unwrap(), PRECISION).is_ok();
        assert_eq!([0.0, 0.00001, 0.5, 0.51].map(precision), [false, true, true, false]);
        let day = Duration::from_secs(24 * 60 * 60);
        let spans = [SHORTEST_TRIAL - Duration::from_nanos(1), SHORTEST_TRIAL, 30 * day, 30 * day + SHORTEST_GAP];
        assert_eq!(spans.map(|value| span("key", value, SHORTEST_TRIAL).is_ok()), [false, true, true, false]);
        assert_eq!(percent(50.0).get(), 0.5);
    }
}
