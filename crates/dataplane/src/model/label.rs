//! Entries of the label table, as they are configured.

use super::path::Path;

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
