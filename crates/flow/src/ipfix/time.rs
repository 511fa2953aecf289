//! NTP timestamps.

/// Seconds from 1900, where NTP counts from, to 1970.
const NTP_EPOCH: u64 = 2_208_988_800;
const NS: u64 = 1_000_000_000;

/// Nanoseconds since the Unix epoch as `dateTimeNanoseconds`: an NTP timestamp (RFC 7011 6.1.10).
///
/// The seconds have 32 bits and wrap in 2036.
#[allow(clippy::cast_possible_truncation)]
pub fn to_ntp(unix_ns: u64) -> u64 {
    let seconds = (unix_ns / NS).wrapping_add(NTP_EPOCH) as u32;
    // Rounded up: readers that cut off and readers that round then both have the nanosecond.
    let fraction = ((unix_ns % NS) << 32).div_ceil(NS);
    u64::from(seconds) << 32 | fraction
}

/// An NTP timestamp as nanoseconds since the Unix epoch, rounded. Seconds before 1970 count as after 2036; correct until
/// 2106.
pub fn from_ntp(ntp: u64) -> u64 {
    let mut seconds = ntp >> 32;
    if seconds < NTP_EPOCH {
        seconds += 1 << 32;
    }
    // Below NS * 2^32 + 2^31: no overflow, and at most one second up.
    let fraction = ((ntp & 0xffff_ffff) * NS + (1 << 31)) >> 32;
    (seconds - NTP_EPOCH) * NS + fraction
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_epoch_and_the_next_era() {
        assert_eq!(to_ntp(0), NTP_EPOCH << 32);
        assert_eq!(to_ntp(NS / 2), NTP_EPOCH << 32 | 1 << 31);
        // RFC 5905 figure 4: the era ends on 7 February 2036, 06:28:16 UTC.
        assert_eq!(to_ntp(2_085_978_496 * NS), 0);
        for ns in [0, 1, 999_999_999, 1_700_000_000_123_456_789, 2_085_978_496 * NS, 4_000_000_000 * NS + 7] {
            assert_eq!(from_ntp(to_ntp(ns)), ns);
        }
    }

    #[test]
    fn readers_that_cut_off_have_the_nanosecond_too() {
        for ns in (0..NS).step_by(999_983).chain([1, NS - 1]) {
            assert_eq!(((to_ntp(ns) & 0xffff_ffff) * NS) >> 32, ns);
        }
    }
}
