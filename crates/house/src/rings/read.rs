//! Reads a crate: follows `mod` declarations from its root file and collects names and used paths.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    path::{Path as FilePath, PathBuf},
};

use syn::{
    parse::Parser,
    visit::{self, Visit},
    Item, Meta, Stmt, UseTree, Visibility,
};

use super::{
    attributes::{attributes, for_tests, path_attribute},
    model::{Binding, Crate, Glob, Kind, Module, Path, Reference, What},
    tokens,
    variables::{is_constant, Variables},
};

/// The files of a crate's `src`, by path, and their text.
pub type Sources = BTreeMap<PathBuf, String>;

/// Reads the crate whose root file is `root`. Errors name a file that cannot be parsed or is missing.
pub(super) fn read(sources: &Sources, root: &FilePath) -> Result<Crate, String> {
    let mut reader = Reader { sources, krate: Crate::default(), module: 0, waiting: Vec::new(), locals: Vec::new() };
    let folder = root.parent().unwrap_or(FilePath::new("")).to_owned();
    let krate = &mut reader.krate;
    krate.modules.push(Module { parent: None, file: 0, block: false, names: HashMap::new(), globs: Vec::new() });
    reader.waiting.push(Waiting { module: 0, places: vec![(root.to_owned(), folder)] });
    while let Some(next) = reader.waiting.pop() {
        reader.file(next)?;
    }
    Ok(reader.krate)
}

/// A module whose file is not read yet.
struct Waiting {
    module: usize,
    /// Where the file may be, and the folder of the modules within it.
    places: Vec<(PathBuf, PathBuf)>,
}

struct Reader<'a> {
    sources: &'a Sources,
    krate: Crate,
    /// The module or block that is read.
    module: usize,
    waiting: Vec<Waiting>,
    /// Names of variables, one set for each function around the present place.
    locals: Vec<HashSet<String>>,
}

impl Reader<'_> {
    fn file(&mut self, next: Waiting) -> Result<(), String> {
        let place = next.places.iter().find(|(path, _)| self.sources.contains_key(path));
        let Some((path, folder)) = place else {
            let places: Vec<_> = next.places.iter().map(|(path, _)| path.display().to_string()).collect();
            return Err(format!("{}: no such file for a `mod` declaration", places.join(" or ")));
        };
        let file = syn::parse_file(&self.sources[path]).map_err(|e| format!("{}: {e}", path.display()))?;
        self.krate.modules[next.module].file = self.krate.files.len();
        self.krate.files.push(path.clone());
        self.module = next.module;
        self.items(&file.items.iter().collect::<Vec<_>>(), Some(folder));
        Ok(())
    }

    /// Declares the items of a module or block, then reads their code. `folder` is where its modules have their files; a
    /// block has none.
    fn items(&mut self, items: &[&Item], folder: Option<&FilePath>) {
        let mut inline = Vec::new();
        for item in items.iter().filter(|item| !for_tests(attributes(item))) {
            if let (Item::Mod(module), Some(folder)) = (item, folder) {
                let name = module.ident.to_string();
                if name == "tests" {
                    continue;
                }
                let index = self.child(false);
                self.bind(&name, What::Module(index), &module.vis);
                if module.content.is_some() {
                    inline.push((index, module, folder.join(&name)));
                } else {
                    let places = match path_attribute(module) {
                        Some(path) => {
                            let here = &self.krate.files[self.krate.modules[self.module].file];
                            let path = here.parent().unwrap_or(FilePath::new("")).join(path);
                            let folder = path.parent().unwrap_or(FilePath::new("")).to_owned();
                            vec![(path, folder)]
                        }
                        None => {
                            let within = folder.join(&name);
                            vec![
                                (folder.join(format!("{name}.rs")), within.clone()),
                                (within.join("mod.rs"), within.clone()),
                            ]
                        }
                    };
                    self.waiting.push(Waiting { module: index, places });
                }
            } else {
                self.declare(item);
            }
        }
        for item in items {
            self.visit_item(item);
        }
        for (index, module, folder) in inline {
            let outer = std::mem::replace(&mut self.module, index);
            let items: Vec<_> = module.content.iter().flat_map(|(_, items)| items).collect();
            self.items(&items, Some(&folder));
            self.module = outer;
        }
    }

    /// A new module or block within the present one.
    fn child(&mut self, block: bool) -> usize {
        let file = self.krate.modules[self.module].file;
        let parent = Some(self.module);
        self.krate.modules.push(Module { parent, file, block, names: HashMap::new(), globs: Vec::new() });
        self.krate.modules.len() - 1
    }

    fn declare(&mut self, item: &Item) {
        let own = || What::Item { variants: Vec::new() };
        match item {
            Item::Const(i) => self.bind(&i.ident.to_string(), own(), &i.vis),
            Item::Static(i) => self.bind(&i.ident.to_string(), own(), &i.vis),
            Item::Fn(i) => self.bind(&i.sig.ident.to_string(), own(), &i.vis),
            Item::Struct(i) => self.bind(&i.ident.to_string(), own(), &i.vis),
            Item::Union(i) => self.bind(&i.ident.to_string(), own(), &i.vis),
            Item::Type(i) => self.bind(&i.ident.to_string(), own(), &i.vis),
            Item::Trait(i) => self.bind(&i.ident.to_string(), own(), &i.vis),
            Item::TraitAlias(i) => self.bind(&i.ident.to_string(), own(), &i.vis),
            Item::Enum(i) => {
                let variants = i.variants.iter().map(|v| v.ident.to_string()).collect();
                self.bind(&i.ident.to_string(), What::Item { variants }, &i.vis);
            }
            Item::ExternCrate(i) => {
                let name = i.rename.as_ref().map_or(&i.ident, |(_, name)| name);
                self.bind(&name.to_string(), What::Outside, &i.vis);
            }
            Item::Macro(i) => {
                if let Some(name) = &i.ident {
                    let file = self.krate.modules[self.module].file;
                    self.krate.macros.entry(name.to_string()).or_default().push(file);
                    self.bind(&name.to_string(), own(), &Visibility::Inherited);
                }
            }
            Item::Use(i) => self.import(&i.tree, &mut Vec::new(), i.leading_colon.is_some(), &i.vis),
            _ => {}
        }
    }

    fn import(&mut self, tree: &UseTree, prefix: &mut Path, outside: bool, vis: &Visibility) {
        let (written, name) = match tree {
            UseTree::Path(tree) => {
                prefix.push(tree.ident.to_string());
                self.import(&tree.tree, prefix, outside, vis);
                prefix.pop();
                return;
            }
            UseTree::Group(tree) => {
                for part in &tree.items {
                    self.import(part, prefix, outside, vis);
                }
                return;
            }
            UseTree::Glob(_) => {
                if !outside {
                    let visible_in = self.visible_in(vis);
                    self.krate.modules[self.module].globs.push(Glob { path: prefix.clone(), visible_in });
                }
                return;
            }
            UseTree::Name(tree) => (tree.ident.to_string(), tree.ident.to_string()),
            UseTree::Rename(tree) => (tree.ident.to_string(), tree.rename.to_string()),
        };
        let mut path = prefix.clone();
        let mut name = name;
        if written == "self" && !path.is_empty() {
            if name == "self" {
                name = path.last().cloned().unwrap_or_default();
            }
        } else {
            path.push(written);
        }
        if outside {
            self.bind(&name, What::Outside, vis);
            return;
        }
        // A re-export uses nothing by itself.
        if matches!(vis, Visibility::Inherited) {
            self.krate.references.push(Reference { module: self.module, path: path.clone(), kind: Kind::Path });
        }
        self.bind(&name, What::Import(path), vis);
    }

    fn bind(&mut self, name: &str, what: What, vis: &Visibility) {
        let visible_in = self.visible_in(vis);
        let names = &mut self.krate.modules[self.module].names;
        names.entry(name.to_owned()).or_default().push(Binding { what, visible_in });
    }

    fn visible_in(&self, vis: &Visibility) -> usize {
        match vis {
            Visibility::Public(_) => 0,
            Visibility::Inherited => self.module,
            Visibility::Restricted(r) if r.path.is_ident("super") => self.krate.parent(self.module),
            Visibility::Restricted(r) if r.path.is_ident("self") => self.module,
            Visibility::Restricted(_) => 0,
        }
    }

    fn refer(&mut self, path: Path, kind: Kind) {
        if path.first().is_some_and(|first| first != "Self") {
            self.krate.references.push(Reference { module: self.module, path, kind });
        }
    }

    fn is_local(&self, name: &str) -> bool {
        self.locals.iter().any(|names| names.contains(name))
    }

    fn scan(&mut self, found: Vec<tokens::Found>, serde: bool) {
        for token in found {
            if token.text {
                if serde {
                    self.refer(token.path, Kind::Serde);
                }
            } else if token.path.len() > 1 || token.called || !self.is_local(&token.path[0]) {
                self.refer(token.path, Kind::Path);
            }
        }
    }

    /// Reads a function with the names of its variables, which may be those of imports.
    fn function(&mut self, variables: Variables, read: impl FnOnce(&mut Self)) {
        self.locals.push(variables.0);
        read(self);
        self.locals.pop();
    }
}

impl<'ast> Visit<'ast> for Reader<'_> {
    fn visit_item(&mut self, item: &'ast Item) {
        // Modules and imports are read by `items`.
        if !for_tests(attributes(item)) && !matches!(item, Item::Mod(_) | Item::Use(_)) {
            visit::visit_item(self, item);
        }
    }

    fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
        let mut variables = Variables::default();
        variables.visit_item_fn(item);
        self.function(variables, |reader| visit::visit_item_fn(reader, item));
    }

    fn visit_impl_item(&mut self, item: &'ast syn::ImplItem) {
        if let syn::ImplItem::Fn(function) = item {
            let mut variables = Variables::default();
            variables.visit_impl_item_fn(function);
            if !for_tests(&function.attrs) {
                self.function(variables, |reader| visit::visit_impl_item(reader, item));
            }
        } else if !matches!(item, syn::ImplItem::Const(constant) if for_tests(&constant.attrs)) {
            visit::visit_impl_item(self, item);
        }
    }

    fn visit_trait_item_fn(&mut self, item: &'ast syn::TraitItemFn) {
        let mut variables = Variables::default();
        variables.visit_trait_item_fn(item);
        if !for_tests(&item.attrs) {
            self.function(variables, |reader| visit::visit_trait_item_fn(reader, item));
        }
    }

    fn visit_block(&mut self, block: &'ast syn::Block) {
        let items = block.stmts.iter().filter_map(|s| if let Stmt::Item(item) = s { Some(item) } else { None });
        let items: Vec<_> = items.collect();
        if items.is_empty() {
            visit::visit_block(self, block);
            return;
        }
        let index = self.child(true);
        let outer = std::mem::replace(&mut self.module, index);
        self.items(&items, None);
        for statement in block.stmts.iter().filter(|s| !matches!(s, Stmt::Item(_))) {
            self.visit_stmt(statement);
        }
        self.module = outer;
    }

    fn visit_local(&mut self, local: &'ast syn::Local) {
        if !for_tests(&local.attrs) {
            visit::visit_local(self, local);
        }
    }

    fn visit_stmt_macro(&mut self, statement: &'ast syn::StmtMacro) {
        if !for_tests(&statement.attrs) {
            visit::visit_stmt_macro(self, statement);
        }
    }

    fn visit_field(&mut self, field: &'ast syn::Field) {
        if !for_tests(&field.attrs) {
            visit::visit_field(self, field);
        }
    }

    fn visit_field_value(&mut self, value: &'ast syn::FieldValue) {
        if !for_tests(&value.attrs) {
            visit::visit_field_value(self, value);
        }
    }

    fn visit_variant(&mut self, variant: &'ast syn::Variant) {
        if !for_tests(&variant.attrs) {
            visit::visit_variant(self, variant);
        }
    }

    fn visit_arm(&mut self, arm: &'ast syn::Arm) {
        if !for_tests(&arm.attrs) {
            visit::visit_arm(self, arm);
        }
    }

    fn visit_expr_call(&mut self, call: &'ast syn::ExprCall) {
        // A variable and a function may have one name: `let limit = limit(text)` calls the function.
        if let syn::Expr::Path(function) = &*call.func {
            self.visit_path(&function.path);
        }
        visit::visit_expr_call(self, call);
    }

    fn visit_expr_path(&mut self, expression: &'ast syn::ExprPath) {
        let variable = expression.path.get_ident().is_some_and(|name| self.is_local(&name.to_string()));
        if !variable {
            visit::visit_expr_path(self, expression);
        }
    }

    fn visit_pat_ident(&mut self, pattern: &'ast syn::PatIdent) {
        // A constant without a path looks like a variable.
        let name = pattern.ident.to_string();
        if is_constant(&name) {
            self.refer(vec![name], Kind::Path);
        }
        visit::visit_pat_ident(self, pattern);
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        if path.leading_colon.is_none() {
            self.refer(path.segments.iter().map(|s| s.ident.to_string()).collect(), Kind::Path);
        }
        visit::visit_path(self, path);
    }

    fn visit_visibility(&mut self, _: &'ast Visibility) {}

    fn visit_macro(&mut self, called: &'ast syn::Macro) {
        self.refer(called.path.segments.iter().map(|s| s.ident.to_string()).collect(), Kind::Macro);
        let found = tokens::paths.parse2(called.tokens.clone()).unwrap_or_default();
        self.scan(found, false);
    }

    fn visit_attribute(&mut self, attribute: &'ast syn::Attribute) {
        let path = attribute.path();
        if path.is_ident("doc") || path.is_ident("cfg") {
            return;
        }
        match &attribute.meta {
            Meta::Path(_) => {}
            Meta::List(list) => {
                let found = tokens::paths.parse2(list.tokens.clone()).unwrap_or_default();
                self.scan(found, path.is_ident("serde"));
            }
            Meta::NameValue(pair) => self.visit_expr(&pair.value),
        }
    }
}
