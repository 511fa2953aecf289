//! The label table.

use packet::headers::mpls::MAX_LABEL;

use crate::model::{LabelAction, LabelRoute, Path, MAX_PUSH};

/// The first label that is not reserved (RFC 3032 2.1).
pub(crate) const FIRST_LABEL: u32 = 16;
/// Implicit null: as an outgoing label, pop; never in a frame (RFC 3032 2.1).
const IMPLICIT_NULL: u32 = 3;

/// Labels to push: the bytes of the label stack entries as they stand in the frame, TTL and EXP zero, no bottom bit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stack {
    /// Label stack entries, top first; the first `len` count.
    pub entries: [[u8; 4]; MAX_PUSH],
    /// How many.
    pub len: u8,
}

/// The label table that lcores read.
#[derive(Debug, Clone, Default)]
pub struct Labels {
    /// Stacks that adjacencies push, by index ([`Adjacency::push`](super::adjacency::Adjacency::push) less one).
    pub stacks: Vec<Stack>,
    /// By label, as far as the largest in use: one load finds the whole entry.
    entries: Box<[Entry]>,
}

impl Labels {
    /// Compiles the table. `resolve` gives the next hop number of a path (an adjacency or a group), in which the labels
    /// to push are already an adjacency's own; `stacks` are those. Of routes with the same label the last one stands;
    /// reserved labels and numbers of more than 20 bits are passed over.
    pub fn new(routes: &[LabelRoute], stacks: Vec<Stack>, resolve: &mut dyn FnMut(&Path) -> u32) -> Self {
        let legal = || routes.iter().filter(|route| (FIRST_LABEL..=MAX_LABEL).contains(&route.label));
        let size = legal().map(|route| route.label as usize + 1).max().unwrap_or(0);
        let mut entries = vec![Entry::default(); size].into_boxed_slice();
        for route in legal() {
            let entry = match &route.action {
                LabelAction::Swap { out: IMPLICIT_NULL, path } | LabelAction::Pop { path } => {
                    Entry::new(Action::Pop, 0, resolve(path))
                }
                LabelAction::Swap { out, .. } if *out > MAX_LABEL => continue,
                LabelAction::Swap { out, path } => Entry::new(Action::Swap, *out, resolve(path)),
                LabelAction::Lookup => Entry::new(Action::Lookup, 0, 0),
                LabelAction::Drop => Entry::new(Action::Drop, 0, 0),
            };
            if let Some(slot) = entries.get_mut(route.label as usize) {
                *slot = entry;
            }
        }
        Self { stacks, entries }
    }

    /// The entry of a label; an empty one when there is none.
    #[inline(always)]
    pub(crate) fn entry(&self, label: u32) -> Entry {
        self.entries.get(label as usize).copied().unwrap_or_default()
    }

    /// The labels that an adjacency with this `push` pushes, top first.
    pub(crate) fn pushed(&self, push: u16) -> Option<&[[u8; 4]]> {
        match usize::from(push).checked_sub(1) {
            Some(index) => self.stacks.get(index).and_then(|stack| stack.entries.get(..usize::from(stack.len))),
            None => Some(&[]),
        }
    }
}

/// The action of an entry, in its lowest bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Action {
    None,
    Swap,
    Pop,
    Lookup,
    Drop,
}

/// One label's entry in one word: the next hop number, the outgoing label where it stands in a label stack entry, and
/// the action. Zero means that there is no entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Entry(u64);

impl Entry {
    /// The bits of the outgoing label.
    const OUT: u64 = 0xffff_f000;

    fn new(action: Action, out: u32, hop: u32) -> Self {
        Self(u64::from(hop) << 32 | u64::from(out << 12) | action as u64)
    }

    #[inline(always)]
    pub(crate) fn action(self) -> Action {
        match self.0 & 7 {
            1 => Action::Swap,
            2 => Action::Pop,
            3 => Action::Lookup,
            4 => Action::Drop,
            _ => Action::None,
        }
    }

    /// The next hop number.
    #[inline(always)]
    pub(crate) fn hop(self) -> u32 {
        (self.0 >> 32) as u32
    }

    /// The label stack entry that takes the place of `word`: the outgoing label, EXP and bottom bit kept, `ttl`.
    #[inline(always)]
    pub(crate) fn swapped(self, word: u32, ttl: u8) -> u32 {
        (self.0 & Self::OUT) as u32 | word & 0xf00 | u32::from(ttl)
    }

    /// Bits that are not zero when two entries differ in more than their outgoing label.
    #[inline(always)]
    pub(crate) fn differs(self, other: Self) -> u64 {
        (self.0 ^ other.0) & !Self::OUT
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{model::Hop, tables::adjacency::GROUP};

    fn route(label: u32, action: LabelAction) -> LabelRoute {
        LabelRoute { label, action }
    }

    #[test]
    fn entries_say_what_the_routes_say() {
        let path = |weight| Path { hop: Hop::Drop, labels: Vec::new(), weight };
        let routes = [
            route(16, LabelAction::Swap { out: 9, path: path(1) }),
            route(16, LabelAction::Swap { out: MAX_LABEL, path: path(2) }),
            route(17, LabelAction::Swap { out: IMPLICIT_NULL, path: path(3) }),
            route(18, LabelAction::Pop { path: path(4) }),
            route(19, LabelAction::Lookup),
            route(20, LabelAction::Drop),
            route(15, LabelAction::Drop),
            route(21, LabelAction::Swap { out: MAX_LABEL + 1, path: path(5) }),
            route(MAX_LABEL + 1, LabelAction::Drop),
        ];
        let mut hop = |path: &Path| GROUP | u32::from(path.weight);
        let labels = Labels::new(&routes, Vec::new(), &mut hop);
        let want = [
            (0, Action::None, 0),
            (15, Action::None, 0),
            (16, Action::Swap, 2),
            (17, Action::Pop, 3),
            (18, Action::Pop, 4),
            (19, Action::Lookup, 0),
            (20, Action::Drop, 0),
            (21, Action::None, 0),
            (MAX_LABEL, Action::None, 0),
        ];
        for (label, action, hop) in want {
            let entry = labels.entry(label);
            assert_eq!((entry.action(), entry.hop() & 0xff), (action, hop), "{label}");
        }
        assert_eq!(labels.entry(16).swapped(0x1234_5f40, 7), 0xffff_ff07);
        assert_eq!(labels.entry(16).hop(), GROUP | 2);
        assert_eq!(labels.entries.len(), 22);
        assert_eq!(Labels::default().entry(0), Entry::default());
    }

    #[test]
    fn stacks_are_counted_from_one() {
        let stack = Stack { entries: [[1; 4], [2; 4], [0; 4], [0; 4]], len: 2 };
        let broken = Stack { len: 5, ..stack };
        let labels = Labels::new(&[], vec![stack, broken], &mut |_| 0);
        assert_eq!(labels.pushed(0), Some(&[][..]));
        assert_eq!(labels.pushed(1), Some(&[[1; 4], [2; 4]][..]));
        assert_eq!((labels.pushed(2), labels.pushed(3)), (None, None));
    }
}
