//! Rings: files of a crate that import each other.
//!
//! An arrow goes from file A to file B if the non-test code of A uses an item that B defines. Re-exports are followed to
//! the definition; a `pub use` or a `mod` declaration alone is not an arrow. Fields and methods are not followed: whoever
//! has a value has its type from somewhere.

mod attributes;
mod model;
mod read;
mod resolve;
#[cfg(test)]
mod tests;
mod tokens;
mod variables;

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    path::{Path, PathBuf},
};

pub use read::Sources;

/// The names that one file uses of another.
pub type Arrows = BTreeMap<(PathBuf, PathBuf), BTreeSet<String>>;

/// Files that import each other, directly or through others of them.
#[derive(Debug, PartialEq, Eq)]
pub struct Ring {
    /// The files, in order of their paths.
    pub files: Vec<PathBuf>,
    /// The arrows between these files.
    pub arrows: Arrows,
}

impl fmt::Display for Ring {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{} files import each other in a ring:", self.files.len())?;
        for ((from, to), names) in &self.arrows {
            let names: Vec<_> = names.iter().map(String::as_str).collect();
            writeln!(f, "  {} -> {}: {}", from.display(), to.display(), names.join(", "))?;
        }
        write!(f, "  To mend it, move the item that both files use to a file below both.")
    }
}

/// All arrows between the files of the crate whose root file is `root`. Errors name a file that cannot be read.
pub fn arrows(sources: &Sources, root: &Path) -> Result<Arrows, String> {
    let krate = read::read(sources, root)?;
    let resolver = resolve::Resolver::new(&krate);
    let mut arrows = Arrows::new();
    for reference in &krate.references {
        let from = krate.modules[reference.module].file;
        for (to, name) in resolver.definitions(reference).into_iter().filter(|(to, _)| *to != from) {
            let ends = (krate.files[from].clone(), krate.files[to].clone());
            arrows.entry(ends).or_default().insert(name);
        }
    }
    Ok(arrows)
}

/// The rings among `arrows`, largest first.
pub fn rings(arrows: &Arrows) -> Vec<Ring> {
    let mut next: BTreeMap<&Path, Vec<&Path>> = BTreeMap::new();
    for (from, to) in arrows.keys() {
        next.entry(from).or_default().push(to);
    }
    let reached: BTreeMap<&Path, BTreeSet<&Path>> = next.keys().map(|file| (*file, reach(&next, file))).collect();
    let leads = |from: &Path, to: &Path| reached.get(from).is_some_and(|files| files.contains(to));
    let mut rings = Vec::new();
    let mut done = BTreeSet::new();
    for file in next.keys().filter(|file| leads(file, file)) {
        if done.contains(file) {
            continue;
        }
        let files: BTreeSet<&Path> = reached[file].iter().copied().filter(|other| leads(other, file)).collect();
        done.extend(files.iter().copied());
        let inside =
            |(ends, _): &(&(PathBuf, PathBuf), _)| files.contains(ends.0.as_path()) && files.contains(ends.1.as_path());
        let arrows = arrows.iter().filter(inside).map(|(ends, names)| (ends.clone(), names.clone())).collect();
        rings.push(Ring { files: files.into_iter().map(Path::to_owned).collect(), arrows });
    }
    rings.sort_by_key(|ring| std::cmp::Reverse(ring.files.len()));
    rings
}

/// The files that `from` leads to.
fn reach<'a>(next: &BTreeMap<&'a Path, Vec<&'a Path>>, from: &Path) -> BTreeSet<&'a Path> {
    let mut reached = BTreeSet::new();
    let mut waiting: Vec<&Path> = next.get(from).cloned().unwrap_or_default();
    while let Some(file) = waiting.pop() {
        if reached.insert(file) {
            waiting.extend(next.get(file).into_iter().flatten());
        }
    }
    reached
}
