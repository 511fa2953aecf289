//! Times given with flags.

use std::time::Duration;

use failure::Failure;
use units::{parse_duration, parse_duration_or_zero};

/// The time given with a flag.
pub fn time(flag: &str, text: &str) -> Result<Duration, Failure> {
    parse_duration(text).map_err(|e| Failure::usage(format!("{flag} {text:?}: {}", e.legal)))
}

/// The same, where zero is legal.
pub fn time_or_none(flag: &str, text: &str) -> Result<Duration, Failure> {
    parse_duration_or_zero(text).map_err(|e| Failure::usage(format!("{flag} {text:?}: {}", e.legal)))
}
