//! Reading the clock at every node in some polls only, and what the others cost.
//!
//! A reading costs as much as the work on two frames in a burst of 64, so nodes are timed in one poll of several. The
//! time of busy polls in between is known as a whole; it is shared out among the nodes as the timed polls of the same
//! stretch were, so that the sum stays exact and each node's share is a sample's.

use crate::node::NodeStats;

/// Who is timed, and what is still to be shared out.
#[derive(Debug)]
pub(crate) struct Sampling {
    /// Nodes are timed once every `every` polls; 0: never.
    every: u32,
    polls: u32,
    /// The poll under way is not timed, though others are.
    passed: bool,
    /// Ticks of busy polls that were not timed, not shared out yet.
    pending: u64,
    /// Each node's own ticks when time was last shared out.
    seen: Vec<u64>,
    /// What each node was given, beside its own.
    given: Vec<u64>,
}

impl Sampling {
    /// Times nodes in one poll of `every`, at least each; in none when `timed` is off.
    pub(crate) fn new(timed: bool, every: u32) -> Self {
        let every = if timed { every.max(1) } else { 0 };
        Self { every, polls: 0, passed: false, pending: 0, seen: Vec::new(), given: Vec::new() }
    }

    /// Whether the next poll is timed.
    #[inline]
    pub(crate) fn next(&mut self) -> bool {
        if self.every <= 1 {
            return self.every == 1;
        }
        self.polls = if self.polls + 1 < self.every { self.polls + 1 } else { 0 };
        self.passed = self.polls != 0;
        !self.passed
    }

    /// A poll outside the count: timed whenever nodes are.
    pub(crate) fn outside(&mut self) -> bool {
        self.passed = false;
        self.every > 0
    }

    /// Takes the rest of a busy poll, if it was passed over.
    #[inline]
    pub(crate) fn takes(&mut self, ticks: u64) -> bool {
        if self.passed {
            self.pending += ticks;
        }
        self.passed
    }

    /// Ticks not shared out yet.
    pub(crate) fn pending(&self) -> u64 {
        self.pending
    }

    /// Shares out what is pending among these nodes; returns what is left over, for the loop's own row.
    pub(crate) fn share(&mut self, nodes: &[NodeStats]) -> u64 {
        self.seen.resize(nodes.len(), 0);
        self.given.resize(nodes.len(), 0);
        let pending = std::mem::take(&mut self.pending);
        let moved: Vec<u64> = nodes.iter().zip(&self.seen).map(|(n, seen)| n.clocks.saturating_sub(*seen)).collect();
        let all: u64 = moved.iter().sum();
        let mut left = pending;
        for ((given, moved), (seen, node)) in self.given.iter_mut().zip(moved).zip(self.seen.iter_mut().zip(nodes)) {
            let share = u128::from(pending) * u128::from(moved) / u128::from(all.max(1));
            let share = u64::try_from(share).unwrap_or(0).min(left);
            *given += share;
            left -= share;
            *seen = node.clocks;
        }
        left
    }

    /// Adds to each node what it was given.
    pub(crate) fn complete(&self, nodes: &mut [NodeStats]) {
        nodes.iter_mut().zip(&self.given).for_each(|(node, given)| node.clocks += given);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(clocks: u64) -> NodeStats {
        NodeStats { clocks, ..NodeStats::new("n") }
    }

    #[test]
    fn one_poll_of_several_is_timed() {
        let timed = |every, on| {
            let mut s = Sampling::new(on, every);
            (0..6).map(|_| s.next()).collect::<Vec<_>>()
        };
        assert_eq!(timed(3, true), [false, false, true, false, false, true]);
        assert_eq!(timed(1, true), [true; 6]);
        assert_eq!(timed(0, true), [true; 6]);
        assert_eq!(timed(4, false), [false; 6]);
    }

    #[test]
    fn what_was_passed_over_goes_where_the_sample_went_and_nothing_is_lost() {
        let mut s = Sampling::new(true, 2);
        assert!(!s.next() && s.takes(100));
        assert!(s.next() && !s.takes(7));
        assert_eq!(s.pending(), 100);
        // 30 and 10 were timed: 75 and 25 of what was not.
        assert_eq!(s.share(&[node(30), node(10)]), 0);
        let mut nodes = [node(30), node(10)];
        s.complete(&mut nodes);
        assert_eq!(nodes.map(|n| n.clocks), [105, 35]);
        // Nothing was timed since: it is the loop's.
        assert!(!s.next() && s.takes(9));
        assert_eq!((s.share(&[node(30), node(10)]), s.pending()), (9, 0));
        // Only the stretch since counts.
        assert!(s.next() && !s.next() && s.takes(10));
        assert_eq!(s.share(&[node(30), node(13)]), 0);
        let mut nodes = [node(30), node(13)];
        s.complete(&mut nodes);
        assert_eq!(nodes.map(|n| n.clocks), [105, 48]);
    }
}
