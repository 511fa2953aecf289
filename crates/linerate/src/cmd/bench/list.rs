//! `linerate bench --list`: the plans, and what each needs from the testbed.

use std::{fs, path::Path};

use campaign::{plans, requirements};
use failure::{Exit, Failure};
use measure::plan::library;

use crate::out;

/// Folder of plans besides the embedded ones.
const FOLDER: &str = "plans";

/// Prints the embedded plans, then the other plans in `./plans/`.
pub fn print() -> Result<Exit, Failure> {
    for name in library::names() {
        out::print(&entry(name)?);
    }
    for path in found(Path::new(FOLDER)) {
        match entry(&path) {
            Ok(entry) => out::print(&entry),
            Err(e) => out::print(&format!("{path}\n    cannot be read: {e}")),
        }
    }
    let names: Vec<&str> = latency::plans::PLANS.iter().map(|plan| plan.name).collect();
    out::print(&format!("  linerate latency has plans of its own (--plan there): {}", names.join(", ")));
    Ok(Exit::Passed)
}

/// The plan files of a folder in order, without the embedded ones.
fn found(folder: &Path) -> Vec<String> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let path = |entry: fs::DirEntry| {
        let path = entry.path();
        let stem = path.file_stem()?.to_str()?.to_owned();
        let plan = path.extension().is_some_and(|e| e == "toml") && library::names().all(|name| name != stem);
        plan.then(|| path.to_str().map(str::to_owned)).flatten()
    };
    let mut paths: Vec<String> = entries.filter_map(Result::ok).filter_map(path).collect();
    paths.sort();
    paths
}

fn entry(name: &str) -> Result<String, Failure> {
    let (plan, more) = match plans::suite(name)? {
        Some(set) => {
            let needs = if set.base.needs.is_empty() {
                "what its runs need".to_owned()
            } else {
                requirements::describe(&set.base)
            };
            (set.base, format!("    needs {needs}\n    runs  {}", set.runs.join(", ")))
        }
        None => {
            let plan = plans::load(name)?;
            let mut more = format!("    needs {}", requirements::describe(&plan));
            if !plan.sweep.is_empty() {
                let axes: Vec<_> = plan.sweep.axes.iter().map(ToString::to_string).collect();
                more.push_str(&format!("\n    sweep {}", axes.join("; ")));
            }
            (plan, more)
        }
    };
    Ok(format!("{name:<18} {} ({})\n{more}", plan.description, plan.source))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plans_of_a_folder_are_found() {
        let dir = tempfile::tempdir().unwrap();
        for name in ["b.toml", "a.toml", "ci.toml", "notes.txt"] {
            fs::write(dir.path().join(name), "").unwrap();
        }
        let names: Vec<_> = found(dir.path()).iter().map(|p| p.rsplit_once('/').unwrap().1.to_owned()).collect();
        assert_eq!(names, ["a.toml", "b.toml"], "ci is embedded");
        assert!(found(Path::new("/nowhere")).is_empty());
    }
}
