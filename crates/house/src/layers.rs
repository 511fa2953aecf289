//! Arrows between crates: which of our crates each of them may depend on, and who may know clap.

use std::collections::BTreeMap;

/// One line is one crate and the crates of ours that it may depend on; `*` is all of the lines above. Nothing points up:
/// a crate stands below all that it depends on. Test dependencies are free.
pub const TABLE: &str = "
units:
failure: units
dpdk-sys:
house:
packet: units
host: units
latency: host packet units
net: failure units
control: failure
measure: failure units
traffic: packet units
flow: failure net packet units
dataplane: flow packet units
lab: control failure host units
guest: failure host lab units
dpdk: dpdk-sys failure host packet units
report: host latency measure units
rig: control dataplane dpdk failure flow host lab latency measure net packet traffic units
campaign: control dataplane dpdk failure flow host lab latency measure net packet report rig traffic units
runner: control dataplane dpdk failure flow host measure net packet report rig traffic units
display: failure flow runner
linerate: *
";

/// The only crate that knows clap: libraries take plain types.
pub const CLAP_USER: &str = "linerate";

/// What crates depend on: the name of each, and the names of its `[dependencies]`.
pub type Dependencies = BTreeMap<String, Vec<String>>;

/// The packages in a manifest's `[dependencies]`, or in all its tables of dependencies if `all`.
pub fn dependencies(manifest: &str, all: bool) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    // Whether the present table is one of dependencies, or of one dependency.
    let (mut many, mut one) = (false, false);
    for line in manifest.lines().map(str::trim) {
        if let Some(header) = line.strip_prefix('[') {
            let header = header.split(']').next().unwrap_or(header);
            many = is_table(header, all);
            let parent = header.rsplit_once('.');
            one = !many && parent.is_some_and(|(table, _)| is_table(table, all));
            if let (true, Some((_, name))) = (one, parent) {
                names.push(name.to_owned());
            }
            continue;
        }
        let Some((key, value)) = line.split_once('=').filter(|_| many || one) else { continue };
        // `name.workspace = true`.
        let key = key.trim().split('.').next().unwrap_or(key);
        let is_name = !key.is_empty() && key.chars().all(|c| c.is_alphanumeric() || matches!(c, '-' | '_'));
        if many && is_name {
            names.push(renamed(value).unwrap_or(key).to_owned());
        } else if let (true, "package", Some(name)) = (one, key, names.last_mut()) {
            *name = value.trim().trim_matches('"').to_owned();
        }
    }
    names.sort();
    names.dedup();
    names
}

/// Whether a table's header is one of dependencies, for all targets or for some.
fn is_table(header: &str, all: bool) -> bool {
    let kind = if header.starts_with("target.") { header.rsplit('.').next().unwrap_or(header) } else { header };
    kind == "dependencies" || all && matches!(kind, "dev-dependencies" | "build-dependencies")
}

/// The package of `{ package = "name", ... }`.
fn renamed(value: &str) -> Option<&str> {
    let (_, after) = value.split_once("package")?;
    after.trim_start().strip_prefix('=')?.split('"').nth(1)
}

/// The dependencies between our crates that `table` does not allow, and the errors of `table` itself.
pub fn forbidden(table: &str, crates: &Dependencies) -> Vec<String> {
    let mut allowed: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    let mut findings = Vec::new();
    for line in table.lines().filter(|line| !line.is_empty()) {
        let (name, below) = line.split_once(':').unwrap_or((line, ""));
        let mut below: Vec<&str> = below.split_whitespace().collect();
        if below == ["*"] {
            below = allowed.keys().copied().collect();
        }
        for up in below.iter().filter(|other| !allowed.contains_key(*other)) {
            findings
                .push(format!("the table of crates/house/src/layers.rs: {name} stands above {up}, which it may use"));
        }
        allowed.insert(name, below);
    }
    for (name, dependencies) in crates {
        let Some(below) = allowed.get(name.as_str()) else {
            findings.push(format!("crates/{name}: not in the table of crates/house/src/layers.rs: add a line for it"));
            continue;
        };
        let ours = dependencies.iter().filter(|other| crates.contains_key(*other));
        for other in ours.filter(|other| !below.contains(&other.as_str())) {
            findings.push(format!(
                "crates/{name}/Cargo.toml: {name} may not depend on {other}: move what both need to a crate below both, \
                 or change the table of crates/house/src/layers.rs and say why"
            ));
        }
    }
    findings
}

/// The crates other than [`CLAP_USER`] that depend on clap, in any table of their manifests.
pub fn clap_users(crates: &Dependencies) -> Vec<String> {
    crates
        .iter()
        .filter(|(name, all)| *name != CLAP_USER && all.iter().any(|d| d == "clap" || d.starts_with("clap_")))
        .map(|(name, _)| format!("crates/{name}/Cargo.toml: only {CLAP_USER} may depend on clap: pass plain types"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn crates(arrows: &[(&str, &[&str])]) -> Dependencies {
        let owned = |names: &[&str]| names.iter().map(|n| (*n).to_owned()).collect();
        arrows.iter().map(|(name, dependencies)| ((*name).to_owned(), owned(dependencies))).collect()
    }

    #[test]
    fn an_arrow_that_the_table_does_not_have_is_found() {
        let tree = crates(&[("units", &[]), ("packet", &["units", "serde"]), ("linerate", &["units", "packet"])]);
        assert_eq!(forbidden(TABLE, &tree), [""; 0]);
        let tree = crates(&[("units", &["packet"]), ("packet", &["units"])]);
        assert_eq!(forbidden(TABLE, &tree).len(), 1);
        // Neighbours do not know each other.
        let tree = crates(&[("measure", &["traffic"]), ("traffic", &[])]);
        assert_eq!(forbidden(TABLE, &tree).len(), 1);
    }

    #[test]
    fn a_crate_without_a_line_is_found() {
        assert_eq!(forbidden(TABLE, &crates(&[("attic", &[])])).len(), 1);
    }

    #[test]
    fn a_table_that_points_up_is_found() {
        assert_eq!(forbidden("a: b\nb:\n", &crates(&[])).len(), 1);
        assert_eq!(forbidden("b:\na: b\nc: *\n", &crates(&[("a", &[]), ("b", &[]), ("c", &["a"])])), [""; 0]);
    }

    #[test]
    fn dependencies_are_read_from_all_forms_of_a_manifest() {
        let manifest = "
            [package]
            name = \"this\"
            [dependencies]
            # A comment = no dependency.
            units = { workspace = true }
            measure.workspace = true
            serde = { version = \"1\", features = [
                \"derive=x\",
            ] }
            other = { package = \"clap\", version = \"4\" }
            [dependencies.packet]
            path = \"../packet\"
            [dependencies.short]
            package = \"report\"
            [target.'cfg(unix)'.dependencies]
            host = { workspace = true }
            [lints.rust]
            missing_docs = \"warn\"
            [dev-dependencies]
            clap_builder = \"4\"
        ";
        let mut expected = vec!["clap", "host", "measure", "packet", "report", "serde", "units"];
        assert_eq!(dependencies(manifest, false), expected);
        expected.insert(1, "clap_builder");
        assert_eq!(dependencies(manifest, true), expected);
    }

    #[test]
    fn a_library_that_knows_clap_is_found() {
        let tree = crates(&[("linerate", &["clap"]), ("rig", &["serde"]), ("report", &["clap_builder"])]);
        let users = clap_users(&tree);
        assert!(users.len() == 1 && users[0].starts_with("crates/report/"), "{users:?}");
    }
}
