//! What servers read flows and totals from.

use crate::{protocol::Totals, Record};

/// Flows and totals for many readers at once, while they are counted. Readers never block the packet path.
pub trait Source: Send + Sync {
    /// Everything counted so far.
    fn totals(&self) -> Totals;

    /// Number of places for flows, over all tables: `0..places()`.
    fn places(&self) -> u64;

    /// Calls `visit` with each flow in places `from..to`. Each record is consistent: it is read at one instant.
    fn scan(&self, from: u64, to: u64, visit: &mut dyn FnMut(u64, &Record));
}
