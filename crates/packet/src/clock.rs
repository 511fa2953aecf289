use std::{cell::Cell, rc::Rc};

/// A monotonic tick counter read on the packet path: the TSC, or a fake one in tests.
pub trait Clock {
    /// Ticks since some fixed moment.
    fn now(&self) -> u64;
    /// Ticks per second; never zero.
    fn hz(&self) -> u64;
}

/// A clock that stands still until told to go on. Clones show the same time.
#[derive(Debug, Clone)]
pub struct FakeClock {
    ticks: Rc<Cell<u64>>,
    hz: u64,
}

impl FakeClock {
    /// A clock at tick zero that counts `hz` ticks a second.
    pub fn new(hz: u64) -> Self {
        Self { ticks: Rc::new(Cell::new(0)), hz: hz.max(1) }
    }

    /// Moves time forward.
    pub fn advance(&self, ticks: u64) {
        self.ticks.set(self.ticks.get() + ticks);
    }
}

impl Clock for FakeClock {
    fn now(&self) -> u64 {
        self.ticks.get()
    }
    fn hz(&self) -> u64 {
        self.hz
    }
}
