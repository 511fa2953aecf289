//! What is known of a crate: its modules, the names in each, and the paths that its code uses.

use std::{collections::HashMap, path::PathBuf};

/// The segments of a path as written: `crate`, `self` and `super` are segments like others.
pub(super) type Path = Vec<String>;

/// What a name stands for in a module.
pub(super) enum What {
    /// A module of the crate, by its index.
    Module(usize),
    /// An item that is defined here. The variants are those of an enum.
    Item { variants: Vec<String> },
    /// A `use` declaration.
    Import(Path),
    /// Something of another crate.
    Outside,
}

/// A name in a module.
pub(super) struct Binding {
    pub what: What,
    /// The module that sees the name, with all modules within it.
    pub visible_in: usize,
}

/// `use path::*`.
pub(super) struct Glob {
    pub path: Path,
    pub visible_in: usize,
}

/// A module, or a block of code that has items or imports of its own.
pub(super) struct Module {
    pub parent: Option<usize>,
    /// Index in [`Crate::files`].
    pub file: usize,
    /// A block: its names hide those around it, and `self` and `super` are those of the module around it.
    pub block: bool,
    pub names: HashMap<String, Vec<Binding>>,
    pub globs: Vec<Glob>,
}

/// How a path was written.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// A path in code or in a `use` declaration.
    Path,
    /// The name of a macro that is called.
    Macro,
    /// A path in a string of a serde attribute, which may name a module with functions.
    Serde,
}

/// A path that non-test code uses.
pub(super) struct Reference {
    pub module: usize,
    pub path: Path,
    pub kind: Kind,
}

/// One crate, from its root file.
#[derive(Default)]
pub(super) struct Crate {
    pub files: Vec<PathBuf>,
    /// The first is the root.
    pub modules: Vec<Module>,
    pub references: Vec<Reference>,
    /// Names of `macro_rules!` and the files that define them: such names need no import.
    pub macros: HashMap<String, Vec<usize>>,
}

impl Crate {
    /// The module itself, or the module around a block.
    pub fn named(&self, mut module: usize) -> usize {
        while let (true, Some(parent)) = (self.modules[module].block, self.modules[module].parent) {
            module = parent;
        }
        module
    }

    /// The module around `module`, as `super` names it; the root's is the root.
    pub fn parent(&self, module: usize) -> usize {
        self.modules[self.named(module)].parent.map_or(0, |parent| self.named(parent))
    }

    /// Whether `inner` is `outer` or stands within it.
    pub fn within(&self, inner: usize, outer: usize) -> bool {
        let mut at = Some(inner);
        while let Some(module) = at {
            if module == outer {
                return true;
            }
            at = self.modules[module].parent;
        }
        false
    }
}
