//! What a topology must be before anything is started.

use std::{collections::BTreeSet, net::Ipv4Addr};

use super::{
    end::{is_name, NODE_RULE},
    End, Switch, Topology, Tunnel, TESTER,
};

/// Most nodes, and most links: a machine that runs more is not one machine.
const MAX_NODES: usize = 32;
const MAX_LINKS: usize = 64;

/// Highest VXLAN network identifier (RFC 7348, 5).
const MAX_VNI: u32 = (1 << 24) - 1;

/// Names of what a lab has besides its nodes: logs, programs and namespaces are named after nodes.
const RESERVED: [&str; 5] = ["ovsdb", "vswitchd", "control", "linerate", "lab"];

impl Topology {
    /// Checks that the topology can be built, and that frames sent by each port of the tester come back by another.
    ///
    /// # Errors
    ///
    /// One sentence: which entry, what is wrong, what is legal.
    pub fn check(&self) -> Result<(), String> {
        self.check_texts()?;
        let nodes = self.nodes();
        if nodes.len() > MAX_NODES || self.link.len() > MAX_LINKS {
            return Err(format!("must have at most {MAX_NODES} nodes and {MAX_LINKS} links"));
        }
        let mut seen = BTreeSet::new();
        for name in &nodes {
            if !is_name(name) {
                return Err(format!("node {name:?}: a name must be {NODE_RULE}"));
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
        self.check_port_names()?;
        self.check_flows()?;
        self.check_tunnels()?;
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
            passed.extend(self.path(port)?.into_iter().flat_map(|passage| passage.ports).map(|port| port.end));
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

    /// A bridge has a port of its own name: no port of a switch may have it as well.
    fn check_port_names(&self) -> Result<(), String> {
        let tunnels = self.switch.iter().flat_map(|s| s.tunnel.iter().map(|tunnel| format!("vxlan{}", tunnel.port)));
        let ports: BTreeSet<String> =
            self.link.iter().flat_map(|link| &link.ends).map(End::port_name).chain(tunnels).collect();
        match self.switch.iter().find(|switch| ports.contains(&switch.name)) {
            None => Ok(()),
            Some(Switch { name, .. }) => {
                Err(format!("switch {name:?}: a port of a switch in this lab has this name: choose another"))
            }
        }
    }

    fn check_flows(&self) -> Result<(), String> {
        for switch in &self.switch {
            let name = &switch.name;
            let ports: BTreeSet<u32> = self.ports_of(name).iter().map(|end| end.port).collect();
            if ports.is_empty() {
                return Err(format!(
                    "switch {name}: it has no link, so no frame comes to it: link it, or leave it out"
                ));
            }
            if ports.contains(&0) {
                return Err(format!("link {name}:0: ports of a switch are numbered from 1"));
            }
            let mut used = BTreeSet::new();
            if let Some(spread) = switch.spread.iter().find(|spread| spread.over.len() < 2) {
                return Err(format!("switch {name}: port {} must be spread over two ports at least", spread.port));
            }
            let spread = switch.spread.iter().flat_map(|spread| spread.over.iter().chain([&spread.port]));
            for port in switch.flows.iter().flatten().chain(spread) {
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

    fn check_tunnels(&self) -> Result<(), String> {
        let mut networks = BTreeSet::new();
        for (switch, tunnel) in self.switch.iter().flat_map(|s| s.tunnel.iter().map(move |tunnel| (&s.name, tunnel))) {
            let Tunnel { port, vni, local, remote } = tunnel;
            let refuse = |why: &str| Err(format!("switch {switch}: tunnel at port {port}: {why}"));
            let network = |address: &Ipv4Addr| u32::from(*address) >> 8;
            if !self.peer(&End::new(switch, *port)).is_some_and(End::is_tester) {
                return refuse("must be at a port that is joined to the tester");
            }
            if *vni > MAX_VNI {
                return refuse(&format!("vni {vni} must be 0 to {MAX_VNI}"));
            }
            let usable = |address: &Ipv4Addr| (1..224).contains(&address.octets()[0]) && !address.is_loopback();
            if network(local) != network(remote) || local == remote || !usable(local) {
                return refuse("local and remote must be two addresses of one network of 24 bits");
            }
            if !networks.insert(network(local)) {
                return refuse("another tunnel has this network, or this port");
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
        let way = |port| chain.path(port).unwrap().iter().map(ToString::to_string).collect::<Vec<_>>();
        let there = ["tester:0", "br0:1", "br0:3", "vm1:0", "vm1:1", "br0:4", "br0:2", "tester:1"];
        assert_eq!(way(0), there);
        assert_eq!(way(1), there.into_iter().rev().collect::<Vec<_>>());
    }

    /// Three ways: two guests side by side, and two in a chain.
    const SPREAD: &str = r#"
name = "own"
description = "two guests beside a chain of two"
switch = [{ name = "br0", flows = [[8, 9]], spread = [{ port = 1, over = [3, 5, 7] }, { port = 2, over = [4, 6, 10] }] }]
guest = [{ name = "vm1" }, { name = "vm2" }, { name = "vm3" }, { name = "vm4" }]
link = [
    { ends = ["tester:0", "br0:1"] },
    { ends = ["tester:1", "br0:2"] },
    { ends = ["vm1:0", "br0:3"] },
    { ends = ["vm1:1", "br0:4"] },
    { ends = ["vm2:0", "br0:5"] },
    { ends = ["vm2:1", "br0:6"] },
    { ends = ["vm3:0", "br0:7"] },
    { ends = ["vm3:1", "br0:8"] },
    { ends = ["vm4:0", "br0:9"] },
    { ends = ["vm4:1", "br0:10"] },
]
"#;

    #[test]
    fn a_shorter_way_waits_where_it_joins_the_others() {
        let spread: Topology = toml::from_str(SPREAD).unwrap();
        spread.check().unwrap();
        let way = |port| spread.path(port).unwrap().iter().map(ToString::to_string).collect::<Vec<_>>();
        let there = [
            "tester:0",
            "br0:1",
            "br0:3+br0:5+br0:7",
            "vm1:0+vm2:0+vm3:0",
            "vm1:1+vm2:1+vm3:1",
            "br0:4+br0:6+br0:8",
            "br0:4+br0:6+br0:9",
            "br0:4+br0:6+vm4:0",
            "br0:4+br0:6+vm4:1",
            "br0:4+br0:6+br0:10",
            "br0:2",
            "tester:1",
        ];
        assert_eq!(way(0), there);
        let back = way(1);
        assert_eq!((back.len(), back[2].as_str(), back[9].as_str()), (12, "br0:4+br0:6+br0:10", "br0:3+br0:5+br0:7"));
        let buckets = |ways: u32| super::super::Spread { port: 1, over: (0..ways).collect() }.buckets();
        assert_eq!([1, 2, 3, 4, 12].map(buckets), [1, 2, 32, 4, 128]);
    }

    #[test]
    fn ways_that_do_not_join_are_refused() {
        for (from, to) in [
            ("over = [3, 5, 7]", "over = [3]"),
            ("over = [3, 5, 7]", "over = [3, 5, 11]"),
            ("over = [3, 5, 7]", "over = [3, 5, 9]"),
            ("over = [4, 6, 10]", "over = [4, 10]"),
            ("{ port = 2, over = [4, 6, 10] }", "{ port = 7, over = [4, 6, 10] }"),
            ("flows = [[8, 9]]", "flows = [[8, 10]]"),
            ("{ port = 1, over = [3, 5, 7] }", "{ port = 1, over = [3, 5, 7], by = 2 }"),
        ] {
            let text = SPREAD.replacen(from, to, 1);
            assert_ne!(text, SPREAD, "{from}");
            let topology = toml::from_str::<Topology>(&text).map_err(|e| e.message().to_owned());
            assert!(topology.and_then(|topology| topology.check()).is_err(), "{to}");
        }
        // A way back to where it came from.
        let back =
            SPREAD.replace("over = [3, 5, 7]", "over = [3, 4, 5, 6, 7]").replace("over = [4, 6, 10]", "over = [9, 8]");
        assert!(toml::from_str::<Topology>(&back).unwrap().check().is_err());
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
            ("[1, 3], [4, 2]", "[1, 3], [4, 2, 1]"),
            ("switch = [", "switch = [{ name = \"br9\" }, "),
        ];
        let lines: Vec<String> = wrong.iter().map(|(from, to)| refused(from, to)).collect();
        insta::assert_snapshot!(lines.join("\n"));
    }

    #[test]
    fn a_switch_has_not_the_name_of_a_port() {
        for name in ["phy0", "phy1", "vm1p0", "vm1p1"] {
            let own: Topology = toml::from_str(&CHAIN.replace("br0", name)).unwrap();
            assert!(own.check().is_err_and(|why| why.contains(name)), "{name}");
        }
        let other: Topology = toml::from_str(&CHAIN.replace("br0", "phy2")).unwrap();
        other.check().unwrap();
    }

    #[test]
    fn the_largest_topology_has_32_nodes_and_64_links() {
        // Further nodes and links are wrong in other ways, too: too many are told first.
        let said = |guests: usize, links: usize| {
            let guests: String = (0..guests).map(|n| format!(", {{ name = \"g{n}\" }}")).collect();
            let links = "    { ends = [\"vm1:0\", \"br0:3\"] },\n".repeat(links);
            let text = CHAIN.replace("{ name = \"vm1\" }", &format!("{{ name = \"vm1\" }}{guests}"));
            let text = text.replace("link = [\n", &format!("link = [\n{links}"));
            toml::from_str::<Topology>(&text).unwrap().check().err().is_some_and(|why| why.contains("at most 32 nodes"))
        };
        // The chain has 3 nodes and 4 links.
        assert_eq!([said(0, 0), said(29, 0), said(0, 60), said(29, 60)], [false; 4]);
        assert_eq!([said(30, 0), said(0, 61)], [true; 2]);
    }

    #[test]
    fn a_port_is_spread_over_two_others_at_least() {
        // One is none: the answer is about it, and not about what else is wrong then.
        for (over, wrong) in [("[]", true), ("[3]", true), ("[3, 5, 7]", false)] {
            let text = SPREAD.replacen("[3, 5, 7]", over, 1);
            let topology: Topology = toml::from_str(&text).unwrap();
            let said = topology.check().err().unwrap_or_default();
            assert_eq!(said.contains("two ports at least"), wrong, "{over}: {said}");
        }
        let two: Topology = toml::from_str(&SPREAD.replacen("[3, 5, 7]", "[3, 5]", 1)).unwrap();
        assert!(!two.check().err().unwrap_or_default().contains("at least"), "two are enough");
    }

    #[test]
    fn a_network_of_a_tunnel_has_24_bits() {
        assert_eq!(tunnel(0xff_ffff, "2.2.2.1", "2.2.2.2"), Ok(()));
        assert!(tunnel(0x100_0000, "2.2.2.1", "2.2.2.2").unwrap_err().contains("vni 16777216"));
    }

    #[test]
    fn the_ends_of_a_tunnel_are_two_usable_addresses_of_one_network() {
        for (local, remote) in
            [("2.2.2.1", "2.2.3.2"), ("2.2.2.1", "2.2.2.1"), ("127.0.0.1", "127.0.0.2"), ("224.0.0.1", "224.0.0.2")]
        {
            assert!(tunnel(1, local, remote).is_err_and(|why| why.contains("two addresses")), "{local} {remote}");
        }
        assert_eq!(tunnel(1, "223.255.255.1", "223.255.255.254"), Ok(()));
    }

    fn tunnel(vni: u32, local: &str, remote: &str) -> Result<(), String> {
        let text = format!(
            "[[1, 3], [4, 2]], tunnel = [{{ port = 1, vni = {vni}, local = \"{local}\", remote = \"{remote}\" }}]"
        );
        toml::from_str::<Topology>(&CHAIN.replace("[[1, 3], [4, 2]]", &text)).unwrap().check()
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
