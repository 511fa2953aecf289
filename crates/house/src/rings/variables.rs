//! The variables of a function, which may have the names of imported functions.

use std::collections::HashSet;

use syn::visit::{self, Visit};

/// The names of a function's variables.
#[derive(Default)]
pub(super) struct Variables(pub HashSet<String>);

impl<'ast> Visit<'ast> for Variables {
    fn visit_pat_ident(&mut self, pattern: &'ast syn::PatIdent) {
        let name = pattern.ident.to_string();
        if !is_constant(&name) {
            self.0.insert(name);
        }
        visit::visit_pat_ident(self, pattern);
    }
}

/// Whether a name is written as those of constants, types and variants are.
pub(super) fn is_constant(name: &str) -> bool {
    name.starts_with(|c: char| c.is_uppercase())
}
