//! What a topology must be before anything is started.

use std::collections::BTreeSet;

use super::{end::is_name, End, Topology, TESTER};

/// Most nodes, and most links: a machine that runs more is not one machine.
const MAX_NODES: usize = 32;
const MAX_LINKS: usize = 64;

/// Names of what a lab has besides its nodes: logs, programs and namespaces are named after nodes.
const RESERVED: [&str; 5] = ["ovsdb", "vswitchd", "control", "linerate", "lab"];

impl Topology {
    /// Checks that the topology can be built, and that frames sent by each port of the tester come back by another.
    ///
    /// # Errors
    ///
    /// One sentence: which entry, what is wrong, what is legal.
    pub fn check(&self) -> Result<(), String> {
        let nodes = self.nodes();
        if nodes.len() > MAX_NODES || self.link.len() > MAX_LINKS {
            return Err(format!("must have at most {MAX_NODES} nodes and {MAX_LINKS} links"));
        }
        let mut seen = BTreeSet::new();
        for name in &nodes {
            if !is_name(name) {
                return Err(format!(
                    "node {name:?}: a name must be 1 to 10 lowercase letters, digits or `-`, a letter first"
                ));
            }
            if RESERVED.contains(name) {
                return Err(format!("node {name:?}: a lab uses this name itself: choose another"));
            }
            if !seen.insert(name) {
                let why = if *name == TESTER { "is Linerate itself and not listed" } else { "is listed twice" };
                return Err(format!("node {name:?}: {why}"));
            }
        }
        self.check_links(&nodes)?;
        self.check_flows()?;
        self.check_two_ports()?;
        match self.ports_of(TESTER).as_slice() {
            [a, b] if (a.port, b.port) == (0, 1) => self.check_ways(),
            _ => Err(format!("{TESTER}: must have the ports 0 and 1, each with one link")),
        }
    }

    /// Every port is on the way between the tester's ports: what is not goes round in a loop, or does nothing.
    fn check_ways(&self) -> Result<(), String> {
        let mut passed = BTreeSet::new();
        for port in [0, 1] {
            passed.extend(self.path(port)?.into_iter().map(|passage| passage.end));
        }
        match self.link.iter().flat_map(|link| &link.ends).find(|end| !passed.contains(end)) {
            None => Ok(()),
            Some(end) => {
                Err(format!("{end}: is not on a way between the ports of the {TESTER}: a loop, or a part apart"))
            }
        }
    }

    fn check_links(&self, nodes: &[&str]) -> Result<(), String> {
        let mut used: BTreeSet<&End> = BTreeSet::new();
        for end in self.link.iter().flat_map(|link| &link.ends) {
            if !nodes.contains(&end.node.as_str()) {
                return Err(format!("link {end}: {:?} is not a node; the nodes are {}", end.node, nodes.join(", ")));
            }
            if !used.insert(end) {
                return Err(format!("link {end}: this port has two links"));
            }
        }
        Ok(())
    }

    fn check_flows(&self) -> Result<(), String> {
        for switch in &self.switch {
            let name = &switch.name;
            let ports: BTreeSet<u32> = self.ports_of(name).iter().map(|end| end.port).collect();
            if ports.contains(&0) {
                return Err(format!("link {name}:0: ports of a switch are numbered from 1"));
            }
            let mut used = BTreeSet::new();
            for port in switch.flows.iter().flatten() {
                if !ports.contains(port) {
                    return Err(format!("switch {name}: a flow names port {port}, which has no link"));
                }
                if !used.insert(port) {
                    return Err(format!("switch {name}: port {port} is in two flows"));
                }
            }
        }
        Ok(())
    }

    fn check_two_ports(&self) -> Result<(), String> {
        let names = self.guest.iter().map(|g| &g.name).chain(self.kernel.iter().map(|k| &k.name));
        for name in names {
            match self.ports_of(name).as_slice() {
                [a, b] if (a.port, b.port) == (0, 1) => {}
                _ => return Err(format!("node {name:?}: must have the ports 0 and 1, each with one link")),
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CHAIN: &str = r#"
name = "own"
description = "one guest behind a switch"
switch = [{ name = "br0", flows = [[1, 3], [4, 2]] }]
guest = [{ name = "vm1" }]
link = [
    { ends = ["tester:0", "br0:1"] },
    { ends = ["tester:1", "br0:2"] },
    { ends = ["vm1:0", "br0:3"] },
    { ends = ["br0:4", "vm1:1"] },
]
"#;

    fn refused(from: &str, to: &str) -> String {
        let text = CHAIN.replacen(from, to, 1);
        assert_ne!(text, CHAIN, "{from}");
        match toml::from_str::<Topology>(&text) {
            Ok(topology) => topology.check().expect_err(to),
            Err(e) => e.message().to_owned(),
        }
    }

    #[test]
    fn a_chain_is_followed_both_ways() {
        let chain: Topology = toml::from_str(CHAIN).unwrap();
        chain.check().unwrap();
        let way = |port| chain.path(port).unwrap().iter().map(|p| p.end.to_string()).collect::<Vec<_>>();
        let there = ["tester:0", "br0:1", "br0:3", "vm1:0", "vm1:1", "br0:4", "br0:2", "tester:1"];
        assert_eq!(way(0), there);
        assert_eq!(way(1), there.into_iter().rev().collect::<Vec<_>>());
    }

    #[test]
    fn what_cannot_be_built_is_refused_by_name() {
        let wrong = [
            ("\"br0:1\"", "\"br1:1\""),
            ("\"br0:1\"", "\"br0:2\""),
            ("\"br0:1\"", "\"br0:0\""),
            ("[1, 3], [4, 2]", "[1, 3], [4, 5]"),
            ("[1, 3], [4, 2]", "[1, 3], [1, 2]"),
            ("[1, 3], [4, 2]", "[1, 2]"),
            ("[1, 3], [4, 2]", "[1, 3]"),
            ("\"vm1:1\"", "\"vm1:2\""),
            ("name = \"vm1\"", "name = \"vm2\""),
            ("name = \"vm1\"", "name = \"br0\""),
            ("name = \"vm1\"", "name = \"tester\""),
            ("name = \"vm1\"", "name = \"VM\""),
            ("name = \"vm1\"", "name = \"ovsdb\""),
            ("\"tester:1\"", "\"tester:2\""),
            ("flows", "flow"),
        ];
        let lines: Vec<String> = wrong.iter().map(|(from, to)| refused(from, to)).collect();
        insta::assert_snapshot!(lines.join("\n"));
    }

    #[test]
    fn a_loop_is_found() {
        // A cable between two ports of a switch is a detour.
        let text = CHAIN
            .replace("[[1, 3], [4, 2]]", "[[1, 3], [4, 5], [6, 2]]")
            .replace("link = [", "link = [{ ends = [\"br0:5\", \"br0:6\"] },");
        let detour: Topology = toml::from_str(&text).unwrap();
        detour.check().unwrap();
        assert_eq!(detour.path(0).unwrap().len(), 10);
        // Joined to each other by cable and by flow, they are a loop.
        let looped: Topology = toml::from_str(&text.replace("[4, 5], [6, 2]", "[5, 6], [4, 2]")).unwrap();
        insta::assert_snapshot!(looped.check().unwrap_err(), @"br0:5: is not on a way between the ports of the tester: a loop, or a part apart");
    }
}
