//! The workspace on disk: its crates and their files.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

/// The folder of the workspace.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// A crate of the workspace.
#[derive(Debug, Clone)]
pub struct Crate {
    /// The name of its package, which is that of its folder.
    pub name: String,
    /// Its `Cargo.toml`.
    pub manifest: String,
    /// The paths of its root files under `src`: `lib.rs`, `main.rs`, and those of `src/bin`.
    pub roots: Vec<PathBuf>,
    /// Its Rust files under `src`.
    pub src: Vec<File>,
    /// Its other Rust files: tests, benches, the build script.
    pub others: Vec<File>,
}

/// A text file.
#[derive(Debug, Clone)]
pub struct File {
    /// Its path from the folder of the workspace.
    pub path: PathBuf,
    /// What is in it.
    pub text: String,
}

/// The crates under `crates/`, by name. Errors name the path that cannot be read.
pub fn crates(root: &Path) -> Result<Vec<Crate>, String> {
    let mut crates = Vec::new();
    for folder in entries(&root.join("crates"))?.into_iter().filter(|path| path.join("Cargo.toml").is_file()) {
        let name = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let (src, others): (Vec<File>, Vec<File>) =
            files(root, &folder, "rs")?.into_iter().partition(|f| root.join(&f.path).starts_with(folder.join("src")));
        let roots = src.iter().map(|f| f.path.clone()).filter(|path| is_root(path)).collect();
        crates.push(Crate { name, manifest: read(&folder.join("Cargo.toml"))?, roots, src, others });
    }
    Ok(crates)
}

fn is_root(path: &Path) -> bool {
    let parent = path.parent().unwrap_or(Path::new(""));
    parent.ends_with("src") && (path.ends_with("lib.rs") || path.ends_with("main.rs")) || parent.ends_with("src/bin")
}

/// The files with this extension under `folder`, at any depth, by path. Errors name the path that cannot be read.
pub fn files(root: &Path, folder: &Path, extension: &str) -> Result<Vec<File>, String> {
    let mut found = Vec::new();
    for path in entries(folder)? {
        if path.is_dir() {
            found.extend(files(root, &path, extension)?);
        } else if path.extension().is_some_and(|e| e == extension) {
            let text = read(&path)?;
            found.push(File { path: path.strip_prefix(root).unwrap_or(&path).to_owned(), text });
        }
    }
    Ok(found)
}

/// A file by its path from the folder of the workspace. Errors name it.
pub fn file(root: &Path, path: &str) -> Result<File, String> {
    Ok(File { path: path.into(), text: read(&root.join(path))? })
}

fn read(path: &Path) -> Result<String, String> {
    fs::read_to_string(path).map_err(|e| format!("{}: {e}", path.display()))
}

fn entries(folder: &Path) -> Result<Vec<PathBuf>, String> {
    let list = || fs::read_dir(folder)?.map(|entry| Ok(entry?.path())).collect::<io::Result<Vec<_>>>();
    let mut paths = list().map_err(|e| format!("{}: {e}", folder.display()))?;
    paths.sort();
    Ok(paths)
}
