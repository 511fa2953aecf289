//! Applies the checks to this workspace.
#![allow(clippy::unwrap_used)]

use std::{
    io::{self, Write},
    path::Path,
};

use house::{
    files, layers,
    rings::{arrows, rings, Sources},
    size, words,
    workspace::{self, Crate, File},
};

fn crates() -> Vec<Crate> {
    workspace::crates(&workspace::root()).unwrap()
}

fn crate_named(name: &str) -> Crate {
    crates().into_iter().find(|krate| krate.name == name).unwrap()
}

/// Prints the findings, one a line, as the reason of the failure.
#[track_caller]
fn none(findings: &[String]) {
    assert!(findings.is_empty(), "{} findings:\n{}", findings.len(), findings.join("\n"));
}

#[test]
fn modules_do_not_import_each_other_in_rings() {
    let mut findings = Vec::new();
    for krate in crates() {
        let sources: Sources = krate.src.iter().map(|file| (file.path.clone(), file.text.clone())).collect();
        for root in &krate.roots {
            match arrows(&sources, root) {
                Ok(arrows) => findings.extend(rings(&arrows).iter().map(|ring| format!("{}: {ring}", krate.name))),
                Err(error) => findings.push(error),
            }
        }
    }
    none(&findings);
}

#[test]
fn crates_depend_on_what_the_table_allows() {
    let crates = crates();
    let dependencies = crates.iter().map(|k| (k.name.clone(), layers::dependencies(&k.manifest, false)));
    none(&layers::forbidden(layers::TABLE, &dependencies.collect()));
}

#[test]
fn only_the_binary_knows_clap() {
    let crates = crates();
    let dependencies = crates.iter().map(|k| (k.name.clone(), layers::dependencies(&k.manifest, true)));
    none(&layers::clap_users(&dependencies.collect()));
}

#[test]
fn the_binary_is_small() {
    let lines = size::production_lines(&crate_named("linerate").src);
    // Not `println!`, which shows nothing when a test passes.
    writeln!(io::stdout(), "crates/linerate/src: {lines} production lines of at most {}", size::MOST_LINES).unwrap();
    assert!(
        lines <= size::MOST_LINES,
        "crates/linerate/src has {lines} production lines; the limit is {}: move what is not command line, terminal or \
         glue to a library",
        size::MOST_LINES
    );
}

#[test]
fn files_are_short() {
    let crates = crates();
    none(&files::too_long(crates.iter().flat_map(|krate| krate.src.iter().chain(&krate.others))));
}

#[test]
fn files_begin_with_a_module_text() {
    let crates = crates();
    none(&files::without_module_text(crates.iter().flat_map(|krate| &krate.src)));
}

#[test]
fn unsafe_is_forbidden_outside_dpdk() {
    none(&crates().iter().flat_map(files::allows_unsafe).collect::<Vec<_>>());
}

#[test]
fn words_are_plain() {
    let root = workspace::root();
    let mut texts: Vec<File> = workspace::files(&root, &root.join("docs"), "md").unwrap();
    texts.push(workspace::file(&root, "README.md").unwrap());
    texts.extend(crates().into_iter().flat_map(|krate| krate.src.into_iter().chain(krate.others)));
    let phrases = words::phrases(words::LIST).unwrap();
    none(&texts.iter().flat_map(|file| words::find(file, &phrases)).collect::<Vec<_>>());
}

#[test]
fn every_crate_is_seen() {
    // A check that sees nothing finds nothing.
    for krate in crates() {
        assert!(!krate.roots.is_empty(), "{} has no root file", krate.name);
        assert!(krate.roots.iter().all(|root| root.starts_with(Path::new("crates"))));
    }
    assert!(crates().len() > 10);
    let binary = layers::dependencies(&crate_named(layers::CLAP_USER).manifest, false);
    assert!(["clap", "units"].iter().all(|name| binary.iter().any(|other| other == name)), "{binary:?}");
}
