use crate::{protocol::Totals, Record};

/// Where the flows are read from, by many readers at once, while they are counted. Nothing here makes the packet path wait.
pub trait Source: Send + Sync {
    /// Everything counted so far.
    fn totals(&self) -> Totals;

    /// Places a flow can be in, over all tables: `0..places()`.
    fn places(&self) -> u64;

    /// Shows the flows in places `from..to`, each as it is at one instant.
    fn scan(&self, from: u64, to: u64, visit: &mut dyn FnMut(u64, &Record));
}
