//! What each node costs: calls, vectors and clocks, as the runtime table of a vector data plane shows them.

use packet::Clock;

/// Counters of one node. A call handles one burst, its vectors are the frames in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct NodeStats {
    /// The node's name, fixed.
    pub name: &'static str,
    /// Bursts handled.
    pub calls: u64,
    /// Frames handled.
    pub vectors: u64,
    /// Ticks of the clock spent; zero when nodes are not timed.
    pub clocks: u64,
}

impl NodeStats {
    /// A node that has done nothing yet.
    pub const fn new(name: &'static str) -> Self {
        Self { name, calls: 0, vectors: 0, clocks: 0 }
    }

    /// Frames a call; zero before the first call.
    pub fn vectors_per_call(&self) -> f64 {
        self.vectors as f64 / self.calls.max(1) as f64
    }

    /// Ticks a frame; zero before the first frame.
    pub fn clocks_per_vector(&self) -> f64 {
        self.clocks as f64 / self.vectors.max(1) as f64
    }

    /// What was counted after `earlier` was taken.
    pub fn since(&self, earlier: &Self) -> Self {
        Self {
            name: self.name,
            calls: self.calls.saturating_sub(earlier.calls),
            vectors: self.vectors.saturating_sub(earlier.vectors),
            clocks: self.clocks.saturating_sub(earlier.clocks),
        }
    }
}

/// The timer of one poll, handed from node to node: the clock is read once where a node ends, and the next node starts at
/// that reading.
#[derive(Debug)]
pub struct NodeTimer<'a, C> {
    clock: &'a C,
    last: u64,
    timed: bool,
}

impl<'a, C: Clock> NodeTimer<'a, C> {
    /// Starts at `now`, a reading just taken. Untimed, calls and vectors are counted and the clock is never read.
    #[inline]
    pub fn start(clock: &'a C, now: u64, timed: bool) -> Self {
        Self { clock, last: now, timed }
    }

    /// Reads the clock. For times that must not be early, such as the arrival of a frame that is delayed.
    #[inline]
    pub fn read_clock(&self) -> u64 {
        self.clock.now()
    }

    /// The latest reading, in ticks: at most one node old, or one poll where nodes are not timed. Good enough for a token
    /// bucket, or to age an entry.
    #[inline]
    pub fn now(&self) -> u64 {
        self.last
    }

    /// When this node began: the last reading where nodes are timed, otherwise a reading of its own. For the time at which a
    /// burst was received: a poll receives several, and while one of them is sent, the answer to it may arrive.
    #[inline]
    pub fn began(&self) -> u64 {
        if self.timed {
            self.last
        } else {
            self.clock.now()
        }
    }

    /// Ends a node: adds its burst of `vectors` frames and the time since the last reading to its counters.
    #[inline]
    pub fn end_node(&mut self, node: &mut NodeStats, vectors: usize) {
        node.calls += 1;
        node.vectors += vectors as u64;
        self.charge(node);
    }

    /// Adds the time since the last reading to a node without a call or vectors: one that had nothing to do, or goes on.
    #[inline]
    pub fn charge(&mut self, node: &mut NodeStats) {
        if self.timed {
            let now = self.clock.now();
            node.clocks += now.saturating_sub(self.last);
            self.last = now;
        }
    }
}

#[cfg(test)]
mod tests {
    use packet::FakeClock;

    use super::*;

    #[test]
    fn nodes_share_readings() {
        let clock = FakeClock::new(1_000);
        let (mut a, mut b) = (NodeStats::new("a"), NodeStats::new("b"));
        let mut timer = NodeTimer::start(&clock, clock.now(), true);
        clock.advance(100);
        timer.end_node(&mut a, 10);
        clock.advance(50);
        timer.end_node(&mut b, 4);
        clock.advance(7);
        timer.charge(&mut b);
        clock.advance(9);
        assert_eq!((timer.now(), timer.began()), (157, 157));
        assert_eq!(a, NodeStats { name: "a", calls: 1, vectors: 10, clocks: 100 });
        assert_eq!(b, NodeStats { name: "b", calls: 1, vectors: 4, clocks: 57 });
        assert_eq!((a.clocks_per_vector(), b.vectors_per_call()), (10.0, 4.0));
    }

    #[test]
    fn untimed_nodes_still_count() {
        let clock = FakeClock::new(1_000);
        let mut node = NodeStats::new("a");
        let mut timer = NodeTimer::start(&clock, 0, false);
        clock.advance(100);
        timer.end_node(&mut node, 3);
        assert_eq!(node, NodeStats { name: "a", calls: 1, vectors: 3, clocks: 0 });
        assert_eq!((timer.now(), timer.began()), (0, 100));
    }
}
