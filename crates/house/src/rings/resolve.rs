//! Finds the file in which a used item is defined: through imports, re-exports and globs.

use std::{cell::RefCell, collections::HashSet};

use super::model::{Crate, Kind, Path, Reference, What};

/// What a path leads to.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Target {
    Module(usize),
    /// An item: the file that defines it, its name, and its variants if it is an enum.
    Item {
        file: usize,
        name: String,
        variants: Vec<String>,
    },
}

/// Finds definitions in one crate.
pub(super) struct Resolver<'a> {
    krate: &'a Crate,
    /// Imports that are being followed, against imports that lead to themselves.
    open: RefCell<HashSet<(usize, Path)>>,
}

impl<'a> Resolver<'a> {
    pub fn new(krate: &'a Crate) -> Self {
        Self { krate, open: RefCell::default() }
    }

    /// The files and names of the items that `reference` uses. A module itself does not count, only what is used of it.
    pub fn definitions(&self, reference: &Reference) -> Vec<(usize, String)> {
        let found = self.path(reference.module, &reference.path);
        let name = reference.path.last().cloned().unwrap_or_default();
        let mut definitions: Vec<_> = found
            .iter()
            .flatten()
            .filter_map(|target| match target {
                Target::Item { file, name, .. } => Some((*file, name.clone())),
                Target::Module(module) if reference.kind == Kind::Serde => {
                    Some((self.krate.modules[*module].file, name.clone()))
                }
                Target::Module(_) => None,
            })
            .collect();
        if reference.kind == Kind::Macro && definitions.is_empty() {
            let files = self.krate.macros.get(&name).into_iter().flatten();
            definitions.extend(files.map(|file| (*file, name.clone())));
        }
        definitions
    }

    /// What `path`, written in `module`, leads to. `None`: a name that the crate does not know. Empty: another crate's.
    fn path(&self, module: usize, path: &[String]) -> Option<Vec<Target>> {
        let key = (module, path.to_vec());
        if !self.open.borrow_mut().insert(key.clone()) {
            return None;
        }
        let found = self.follow(module, path);
        self.open.borrow_mut().remove(&key);
        found
    }

    fn follow(&self, module: usize, path: &[String]) -> Option<Vec<Target>> {
        let (first, rest) = path.split_first()?;
        let mut found = match first.as_str() {
            "crate" => vec![Target::Module(0)],
            "self" => vec![Target::Module(self.krate.named(module))],
            "super" => vec![Target::Module(self.krate.parent(module))],
            name => self.lexical(module, name)?,
        };
        for segment in rest {
            // Variants, associated functions and types stand where the item does.
            if !found.iter().any(|target| matches!(target, Target::Module(_))) {
                break;
            }
            let mut next = Vec::new();
            for target in &found {
                match target {
                    Target::Module(at) if segment == "super" => next.push(Target::Module(self.krate.parent(*at))),
                    Target::Module(at) => next.extend(self.within(*at, segment, module)),
                    Target::Item { .. } => {}
                }
            }
            found = next;
        }
        Some(found)
    }

    /// A name without a path: of the block, of the blocks around it, of the module.
    fn lexical(&self, mut module: usize, name: &str) -> Option<Vec<Target>> {
        loop {
            if let Some(found) = self.known(module, name, module) {
                return Some(found);
            }
            let at = &self.krate.modules[module];
            module = at.parent.filter(|_| at.block)?;
        }
    }

    /// `name` in `module` as `from` sees it. A name that is not found there comes from another crate's glob, or a macro of
    /// that file made it.
    fn within(&self, module: usize, name: &str, from: usize) -> Vec<Target> {
        if let Some(found) = self.known(module, name, from) {
            return found;
        }
        if let Some(files) = self.krate.macros.get(name) {
            return files.iter().map(|file| item(*file, name, &[])).collect();
        }
        let at = &self.krate.modules[module];
        let foreign = at.globs.iter().any(|glob| self.path(module, &glob.path).is_none());
        if foreign {
            Vec::new()
        } else {
            vec![item(at.file, name, &[])]
        }
    }

    fn known(&self, module: usize, name: &str, from: usize) -> Option<Vec<Target>> {
        let at = &self.krate.modules[module];
        let named = at.names.get(name).into_iter().flatten();
        let mut found: Option<Vec<Target>> = None;
        for binding in named.filter(|binding| self.krate.within(from, binding.visible_in)) {
            let targets = match &binding.what {
                What::Module(index) => vec![Target::Module(*index)],
                What::Item { variants } => vec![item(at.file, name, variants)],
                // An import of another crate leads nowhere here.
                What::Import(path) => self.path(module, path).unwrap_or_default(),
                What::Outside => Vec::new(),
            };
            found.get_or_insert_default().extend(targets);
        }
        if found.is_some() {
            return found;
        }
        at.globs.iter().filter(|glob| self.krate.within(from, glob.visible_in)).find_map(|glob| {
            let found: Vec<Target> =
                self.path(module, &glob.path)?.iter().flat_map(|t| self.of_glob(t, name, module)).collect();
            (!found.is_empty()).then_some(found)
        })
    }

    /// `name` as `use target::*` in `module` brings it into scope.
    fn of_glob(&self, target: &Target, name: &str, module: usize) -> Vec<Target> {
        match target {
            Target::Module(at) => self.known(*at, name, module).unwrap_or_default(),
            Target::Item { file, name: of, variants } if variants.iter().any(|v| v == name) => {
                vec![item(*file, of, &[])]
            }
            Target::Item { .. } => Vec::new(),
        }
    }
}

fn item(file: usize, name: &str, variants: &[String]) -> Target {
    Target::Item { file, name: name.to_owned(), variants: variants.to_vec() }
}
