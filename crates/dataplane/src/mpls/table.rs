use crate::router::Path;

/// Most labels one path pushes.
pub const MAX_PUSH: usize = 4;

/// Labels to push: the bytes of the label stack entries as they stand in the frame, TTL and EXP zero, no bottom bit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stack {
    /// Label stack entries, top first; the first `len` count.
    pub entries: [[u8; 4]; MAX_PUSH],
    /// How many.
    pub len: u8,
}

/// What is done with a label.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LabelAction {
    /// `swap OUT PATH`: another label, and on. OUT may be `implicit-null` (3), which pops.
    Swap {
        /// The outgoing label.
        out: u32,
        /// Where to.
        path: Path,
    },
    /// `pop PATH`: the label goes, and what is below is forwarded unseen (penultimate hop popping).
    Pop {
        /// Where to.
        path: Path,
    },
    /// `lookup`: the label goes, and what is below is looked up: the next label, or the IP destination.
    Lookup,
    /// `drop`.
    Drop,
}

/// One entry of the label table, written `LABEL ACTION`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LabelRoute {
    /// The incoming label, 16 to 1048575; 0 and 2 (explicit null) are always there.
    pub label: u32,
    /// What is done with it.
    pub action: LabelAction,
}

/// The label table that lcores read.
#[derive(Debug, Clone, Default)]
pub struct Labels {
    /// Stacks that adjacencies push, by index ([`Adjacency::push`](crate::tables::Adjacency::push) less one).
    pub stacks: Vec<Stack>,
}

impl Labels {
    /// Compiles the table. `resolve` gives the next hop number of a path (an adjacency or a group), in which the labels
    /// to push are already an adjacency's own; `stacks` are those.
    pub fn new(_routes: &[LabelRoute], stacks: Vec<Stack>, _resolve: &mut dyn FnMut(&Path) -> u32) -> Self {
        Self { stacks }
    }
}
