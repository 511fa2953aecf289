//! `linerate bench --list`: the plans at hand, and what each needs of the testbed.

use std::{fs, path::Path};

use measure::plan::{Direction, Plan};
use units::Load;

use crate::{
    cmd::plan::{load, EMBEDDED},
    failure::{Exit, Failure},
    out,
};

/// Where plans are looked for beside the embedded ones.
const FOLDER: &str = "plans";

/// Prints the embedded plans, then those of `plans/` here that are not embedded.
pub fn print() -> Result<Exit, Failure> {
    for (name, text) in EMBEDDED {
        out::print(&entry(name, &Plan::from_toml(text)?));
    }
    for path in found(Path::new(FOLDER)) {
        match load(&path) {
            Ok(plan) => out::print(&entry(&path, &plan)),
            Err(e) => out::print(&format!("{path}\n    cannot be read: {e}")),
        }
    }
    Ok(Exit::Passed)
}

/// The plan files of a folder, in order, without those that are embedded.
fn found(folder: &Path) -> Vec<String> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let path = |entry: fs::DirEntry| {
        let path = entry.path();
        let stem = path.file_stem()?.to_str()?.to_owned();
        let plan = path.extension().is_some_and(|e| e == "toml") && !EMBEDDED.iter().any(|(name, _)| *name == stem);
        plan.then(|| path.to_str().map(str::to_owned)).flatten()
    };
    let mut paths: Vec<String> = entries.filter_map(Result::ok).filter_map(path).collect();
    paths.sort();
    paths
}

fn entry(name: &str, plan: &Plan) -> String {
    format!("{name:<16} {} ({})\n    needs {}", plan.description, plan.source, needs(plan))
}

/// What a plan needs of the testbed, in words.
fn needs(plan: &Plan) -> String {
    let function = plan.dut.function.as_deref().unwrap_or("l3");
    let mut needs = vec![match plan.traffic.direction {
        Direction::OneWay => "two ports".to_owned(),
        Direction::BothWays => "two ports, loaded both ways".to_owned(),
    }];
    let longest = plan.frame_sizes.iter().map(|s| s.bytes()).max().unwrap_or(0);
    if longest > 1518 {
        needs.push(format!("links and a device that carry frames of {longest} bytes"));
    }
    let t = &plan.traffic;
    for (what, some) in [("VLAN tags", !t.vlan.is_empty()), ("MPLS labels", !t.mpls.is_empty())] {
        if some {
            needs.push(format!("a device that takes {what}"));
        }
    }
    match (plan.link.speed, plan.search.upper) {
        (Some(speed), _) => needs.push(format!("links of {speed}bit/s")),
        (None, Some(Load::LinePercent(_))) => needs.push("links whose speed is known (--link)".to_owned()),
        _ => {}
    }
    format!("{}; or no port, for the built-in {function}", needs.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn needs_are_those_of_the_plan() {
        let plan = |toml: &str| needs(&Plan::from_toml(toml).unwrap());
        assert_eq!(plan(""), "two ports; or no port, for the built-in l3");
        let all = "frame_sizes = [9018]\ntraffic.mpls = [16]\ntraffic.direction = 'both-ways'\nsearch.upper = '90%'\n\
                   dut.function = 'mpls'";
        assert_eq!(
            plan(all),
            "two ports, loaded both ways, links and a device that carry frames of 9018 bytes, a device that takes MPLS \
             labels, links whose speed is known (--link); or no port, for the built-in mpls"
        );
    }

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
