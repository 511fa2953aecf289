//! The topologies built into the program, by name, and those in files.

use std::{fs, path::Path};

use failure::Failure;

use super::Topology;

/// Every topology: its name and its text.
const TOPOLOGIES: &[(&str, &str)] = &[
    ("phy-phy", include_str!("../../../../labs/phy-phy.toml")),
    ("phy-ovs-phy", include_str!("../../../../labs/phy-ovs-phy.toml")),
    ("phy-vm-phy", include_str!("../../../../labs/phy-vm-phy.toml")),
    ("phy-vm-vm-phy", include_str!("../../../../labs/phy-vm-vm-phy.toml")),
    ("vxlan", include_str!("../../../../labs/vxlan.toml")),
    ("vxlan-forward", include_str!("../../../../labs/vxlan-forward.toml")),
    ("onp-40g-scenario-1", include_str!("../../../../labs/onp-40g-scenario-1.toml")),
    ("onp-40g-scenario-2", include_str!("../../../../labs/onp-40g-scenario-2.toml")),
    ("onp-40g-scenario-3", include_str!("../../../../labs/onp-40g-scenario-3.toml")),
    ("flow-loggers-12", include_str!("../../../../labs/flow-loggers-12.toml")),
    ("ovs-kernel", include_str!("../../../../labs/ovs-kernel.toml")),
    ("kernel-bridge", include_str!("../../../../labs/kernel-bridge.toml")),
    ("kernel-router", include_str!("../../../../labs/kernel-router.toml")),
];

/// What plans call a topology in `[needs]`, and the topologies here: the first of a name is brought up for a plan.
const NEEDED_BY: &[(&str, &str)] = &[
    ("PHY-PHY", "phy-phy"),
    ("PHY-OVS-PHY", "phy-ovs-phy"),
    ("PHY-VM-PHY", "phy-vm-phy"),
    ("PHY-VM-VM-PHY", "phy-vm-vm-phy"),
    ("PHY-VM-VM-PHY", "onp-40g-scenario-3"),
    ("PHY-OVS-PHY", "ovs-kernel"),
    ("PHY-OVS-VM-OVS-PHY", "vxlan"),
    ("PHY-VTEP-VTEP-PHY", "vxlan-forward"),
    ("4 x PHY-VM", "onp-40g-scenario-1"),
    ("2 x PHY-VM, PHY-VM-VM-PHY", "onp-40g-scenario-2"),
    ("12 x PHY-LOGGER", "flow-loggers-12"),
];

/// Largest topology file read.
const MAX_BYTES: u64 = 1 << 20;

/// The topology that plans call by this name in `[needs]`.
pub fn needed(by_plans: &str) -> Option<&'static str> {
    NEEDED_BY.iter().find(|(plans, _)| *plans == by_plans).map(|(_, name)| *name)
}

/// Whether a topology is what plans call so.
pub fn is_needed(by_plans: &str, topology: &str) -> bool {
    NEEDED_BY.contains(&(by_plans, topology))
}

/// The names of the built-in topologies.
pub fn names() -> impl Iterator<Item = &'static str> {
    TOPOLOGIES.iter().map(|(name, _)| *name)
}

/// A topology by its name or its file, checked.
///
/// # Errors
///
/// (usage) in one line: an unknown name, a file that cannot be read, or what is wrong in it.
pub fn load(name: &str) -> Result<Topology, Failure> {
    let at = |why: String| Failure::usage(format!("topology {name}: {why}"));
    let text = match TOPOLOGIES.iter().find(|(known, _)| *known == name) {
        Some((_, text)) => (*text).to_owned(),
        None => read(name).map_err(at)?,
    };
    let topology: Topology = toml::from_str(&text).map_err(|e| at(toml_line(&e, &text)))?;
    topology.check().map_err(at)?;
    Ok(topology)
}

fn read(name: &str) -> Result<String, String> {
    let path = Path::new(name);
    if !path.exists() {
        let known: Vec<_> = names().collect();
        return Err(format!("no such file, nor a built-in topology (these are: {})", known.join(", ")));
    }
    match fs::metadata(path) {
        Ok(meta) if meta.is_file() && meta.len() <= MAX_BYTES => {}
        Ok(_) => return Err("must be a regular file of at most 1 MiB".to_owned()),
        Err(e) => return Err(failure::unreadable(&e)),
    }
    fs::read_to_string(path).map_err(|e| failure::unreadable(&e))
}

/// An error of TOML in one line, with the line of the file.
fn toml_line(error: &toml::de::Error, text: &str) -> String {
    let line = error.span().and_then(|span| text.get(..span.start)).map(|before| before.matches('\n').count() + 1);
    let message = error.message().replace('\n', " ");
    line.map_or_else(|| message.clone(), |line| format!("line {line}: {message}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_topology_is_sound_and_named_as_listed() {
        for name in names() {
            assert_eq!(load(name).unwrap().name, name);
        }
        for (_, name) in NEEDED_BY {
            assert!(names().any(|known| known == *name), "{name}");
        }
    }

    #[test]
    fn the_plan_of_a_topology_needs_it() {
        for name in names() {
            let Some(plan) = load(name).unwrap().plan else { continue };
            let path = format!("{}/../../plans/{plan}.toml", env!("CARGO_MANIFEST_DIR"));
            let plan: toml::Table = toml::from_str(&fs::read_to_string(path).unwrap()).unwrap();
            let needs = plan["needs"]["topology"].as_str().unwrap();
            assert!(is_needed(needs, name), "{name}: its plan needs {needs}");
        }
        assert_eq!((needed("PHY-VM-VM-PHY"), needed("PHY-OVS-PHY")), (Some("phy-vm-vm-phy"), Some("phy-ovs-phy")));
        assert!(!is_needed("PHY-PHY", "vxlan") && needed("x").is_none());
    }

    #[test]
    fn a_file_is_read_and_what_is_wrong_in_it_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("own.toml");
        let file = path.to_str().unwrap();
        let text = TOPOLOGIES[2].1;
        fs::write(&path, text).unwrap();
        assert_eq!(load(file).unwrap(), load("phy-vm-phy").unwrap());
        let third = text.replacen("\"] }", "\", \"x:1\"] }", 1);
        assert_ne!(third, text);
        let wrong = [third, text.replace("ends", "end"), text.replace("br0:4", "br9:4"), "x".to_owned(), String::new()];
        for text in wrong {
            fs::write(&path, &text).unwrap();
            let refused = load(file).unwrap_err();
            assert_eq!((refused.exit, refused.text.lines().count()), (failure::Exit::Usage, 1), "{text}");
        }
        // Of the largest size, and one byte more.
        let comment = |bytes: usize| format!("{text}#{}", "x".repeat(bytes - text.len() - 1));
        fs::write(&path, comment(MAX_BYTES as usize)).unwrap();
        load(file).unwrap();
        fs::write(&path, comment(MAX_BYTES as usize + 1)).unwrap();
        assert!(load(file).unwrap_err().text.contains("1 MiB"));
        assert_eq!(load("phy-phy-phy").unwrap_err().exit, failure::Exit::Usage);
        assert_eq!(load(dir.path().to_str().unwrap()).unwrap_err().exit, failure::Exit::Usage);
    }
}
