//! The legal ranges of a plan's values, and the checks that hold a value against its range.

use std::{fmt, time::Duration};

use units::Ratio;

use super::error::PlanError;
use crate::schema::text::span_text;

/// What a check of a plan says.
pub(super) type Check = Result<(), PlanError>;

/// Most distinct 5-tuples per direction.
pub(super) const MAX_FLOWS: u64 = 1 << 24;
/// Most routes behind a port of the built-in device: its host routes and their addresses lie in half of 10.0.0.0/8.
pub(super) const MAX_ROUTES: u64 = 1 << 20;
/// Most addresses that an address test may offer.
pub(super) const MOST_ADDRESSES: u64 = 1 << 24;
/// Longest time of any key.
const MAX_SPAN: Duration = Duration::from_secs(30 * 86_400);

pub(super) fn within<T: PartialOrd + fmt::Display>(key: &str, value: T, low: T, high: T) -> Check {
    // What is no number lies in no range.
    if !(&low..=&high).contains(&&value) {
        return Err(PlanError::value(key, value, format!("must be {low} to {high}")));
    }
    Ok(())
}

pub(super) fn between(key: &str, value: Ratio, low: f64, high: f64) -> Check {
    if value.get() < low || value.get() > high {
        let legal = format!("must be {}% to {}%", low * 100.0, high * 100.0);
        return Err(PlanError::value(key, value, legal));
    }
    Ok(())
}

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
