//! A forwarding table in two copies: lcores read one while the other is changed.

use std::{fmt, sync::Arc};

use crate::{
    fib::{FibError, FibMaker, Lookup4, Lookup6, Small},
    Prefix,
};

/// Routes to add or replace (`Some`) and to remove (`None`).
pub(super) type Changes = Vec<(Prefix, Option<u32>)>;

/// Most routes of a family in Rust's own memory; with more the maker's tables are used.
pub const SMALL: usize = 4096;

/// A table of one family.
pub(super) trait Table: fmt::Debug + Send + Sync {
    fn make(maker: &dyn FibMaker, routes: usize) -> Result<Arc<Self>, FibError>;
    fn change(&mut self, changes: &[(Prefix, Option<u32>)]) -> Result<(), FibError>;
    const FAMILY: &'static str;
}

impl Table for dyn Lookup4 {
    fn make(maker: &dyn FibMaker, routes: usize) -> Result<Arc<Self>, FibError> {
        maker.make4(routes)
    }
    fn change(&mut self, changes: &[(Prefix, Option<u32>)]) -> Result<(), FibError> {
        self.update(changes)
    }
    const FAMILY: &'static str = "IPv4";
}

impl Table for dyn Lookup6 {
    fn make(maker: &dyn FibMaker, routes: usize) -> Result<Arc<Self>, FibError> {
        maker.make6(routes)
    }
    fn change(&mut self, changes: &[(Prefix, Option<u32>)]) -> Result<(), FibError> {
        self.update(changes)
    }
    const FAMILY: &'static str = "IPv6";
}

/// Which memory a table is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FibMemory {
    /// Rust's own: at most some thousand routes.
    Small,
    /// The maker's.
    Large,
}

/// The copy that lcores read and, once there was a change, the other one.
///
/// A set of routes that never changes needs one table: the other is made at the first change.
#[derive(Debug)]
pub(super) struct Pair<T: Table + ?Sized> {
    live: Arc<T>,
    spare: Option<Arc<T>>,
    /// What the spare has not seen yet.
    journal: Changes,
    capacity: usize,
    memory: FibMemory,
}

/// A changed table, not yet live.
#[derive(Debug)]
pub(super) struct Prepared<T: Table + ?Sized> {
    table: Arc<T>,
    capacity: usize,
    memory: FibMemory,
    /// Made anew, rather than the spare.
    fresh: bool,
    changes: Changes,
}

impl<T: Table + ?Sized> Pair<T> {
    /// Empty.
    pub(super) fn new() -> Result<Self, FibError> {
        let memory = FibMemory::Small;
        Ok(Self { live: T::make(&Small, SMALL)?, spare: None, journal: Vec::new(), capacity: SMALL, memory })
    }

    /// The copy that lcores read.
    pub(super) fn live(&self) -> &Arc<T> {
        &self.live
    }

    /// Which memory the table is in, and how many routes it was made for.
    pub(super) fn memory(&self) -> (FibMemory, usize) {
        (self.memory, self.capacity)
    }

    /// Makes the changes in a copy without readers. `count` is the number of routes after them, `all` what these
    /// are, and `free` waits until a table has no readers and returns whether that happened. After an error everything is as
    /// it was. The same holds when the prepared changes are discarded.
    pub(super) fn prepare<I: Iterator<Item = (Prefix, Option<u32>)>>(
        &mut self,
        changes: Changes,
        (count, all): (usize, impl FnOnce() -> I),
        maker: &dyn FibMaker,
        free: &mut dyn FnMut(&mut Arc<T>) -> bool,
    ) -> Result<Prepared<T>, FibError> {
        let large = self.memory == FibMemory::Large || count > SMALL;
        let (memory, maker): (_, &dyn FibMaker) =
            if large { (FibMemory::Large, maker) } else { (FibMemory::Small, &Small) };
        let outgrown = memory != self.memory || count > self.capacity;
        // Room to grow; of a large table only a quarter, since that is hundreds of megabytes.
        let capacity = if outgrown { (count + (count / 4).max(count.min(SMALL))).max(1024) } else { self.capacity };
        // Taken out: whatever goes wrong with it, it is not there any more.
        if let Some(mut table) = self.spare.take().filter(|_| !outgrown) {
            if free(&mut table) {
                if let Some(unread) = Arc::get_mut(&mut table) {
                    unread.change(&self.journal)?;
                    unread.change(&changes)?;
                    return Ok(Prepared { table, capacity, memory, fresh: false, changes });
                }
            }
        }
        let mut table = T::make(maker, capacity)?;
        let shared = || FibError { family: T::FAMILY, why: "a new table is in use already".to_owned() };
        let all: Changes = all().collect();
        Arc::get_mut(&mut table).ok_or_else(shared)?.change(&all)?;
        Ok(Prepared { table, capacity, memory, fresh: true, changes })
    }

    /// Makes what was prepared the live copy.
    pub(super) fn commit(&mut self, prepared: Prepared<T>) {
        let before = std::mem::replace(&mut self.live, prepared.table);
        // A table made anew because the set grew leaves nothing worth keeping; one made because there was no spare has
        // the old one as its spare.
        let same = prepared.memory == self.memory && prepared.capacity == self.capacity;
        self.spare = (same || !prepared.fresh).then_some(before);
        self.journal = prepared.changes;
        (self.memory, self.capacity) = (prepared.memory, prepared.capacity);
    }
}
