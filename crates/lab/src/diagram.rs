//! A topology as a picture of text.

use crate::topology::{End, Link, Spread, Topology, TESTER};

/// Width of a column of nodes, and of the cables between two.
const NODE: usize = 22;
const CABLE: usize = 10;

/// The picture: the tester at the left, switches and the kernel in the middle, guests at the right; a cable on each line, in
/// the order in which frames from the tester's port 0 pass.
pub fn render(topology: &Topology) -> String {
    let cables = cables(topology);
    let width = 3 * NODE + 2 * CABLE;
    let mut out = String::new();
    let mut shown: Vec<&str> = Vec::new();
    for [a, b] in cables {
        let (left, right) = (column(topology, &a.node), column(topology, &b.node));
        let mut line = vec![' '; width];
        let start = left * (NODE + CABLE) + NODE;
        let stop = right * (NODE + CABLE);
        (start..stop).for_each(|n| line[n] = '-');
        for (end, column, at_left) in [(a, left, true), (b, right, false)] {
            let name = if shown.contains(&end.node.as_str()) { String::new() } else { label(topology, &end.node) };
            shown.push(&end.node);
            let port = end.port.to_string();
            let text = if at_left {
                format!("{name:<w$}{port} ", w = NODE - port.len() - 1)
            } else {
                format!(" {port} {name}")
            };
            put(&mut line, column * (NODE + CABLE), &text);
        }
        out.push_str(line.into_iter().collect::<String>().trim_end());
        out.push('\n');
    }
    for switch in &topology.switch {
        let flows: Vec<String> = switch.flows.iter().map(|[a, b]| format!("{a} <-> {b}")).collect();
        if !flows.is_empty() {
            out.push_str(&format!("{} joins its ports {}\n", switch.name, flows.join(", ")));
        }
        for Spread { port, over } in &switch.spread {
            let over: Vec<String> = over.iter().map(u32::to_string).collect();
            let name = &switch.name;
            out.push_str(&format!(
                "{name} spreads port {port} over {} by the UDP or TCP source port\n",
                over.join(", ")
            ));
        }
    }
    out
}

/// Each cable, the end nearer to the tester first: as frames pass them, but one way after another where they are spread.
fn cables(topology: &Topology) -> Vec<[&End; 2]> {
    let path = topology.path(0).unwrap_or_default();
    let mut cables: Vec<(usize, [&End; 2])> = Vec::new();
    for passage in &path {
        for (way, passed) in passage.ports.iter().enumerate() {
            let Some(Link { ends: [a, b] }) = topology.link.iter().find(|link| link.ends.contains(&passed.end)) else {
                continue;
            };
            let cable = if column(topology, &a.node) <= column(topology, &b.node) { [a, b] } else { [b, a] };
            if cables.iter().all(|(_, known)| *known != cable) {
                cables.push((way, cable));
            }
        }
    }
    // The tester's own stay first and last.
    if let [_, between @ .., _] = cables.as_mut_slice() {
        between.sort_by_key(|(way, _)| *way);
    }
    cables.into_iter().map(|(_, cable)| cable).collect()
}

fn column(topology: &Topology, node: &str) -> usize {
    match node {
        TESTER => 0,
        _ if topology.guest.iter().any(|guest| guest.name == node) => 2,
        _ => 1,
    }
}

fn label(topology: &Topology, node: &str) -> String {
    let what = topology.guest.iter().find(|guest| guest.name == node).map(|guest| guest.application.name().to_owned());
    let kernel = || topology.kernel.iter().find(|k| k.name == node).map(|k| format!("{:?}", k.role).to_lowercase());
    let switch = || topology.switch_named(node).map(|_| "ovs-dpdk".to_owned());
    match what.or_else(kernel).or_else(switch) {
        Some(what) => format!("{node} ({what})"),
        None => node.to_owned(),
    }
}

/// Writes a text over a line.
fn put(line: &mut [char], at: usize, text: &str) {
    for (place, c) in line.iter_mut().skip(at).zip(text.chars()) {
        *place = c;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topology;

    #[test]
    fn every_topology_has_a_picture() {
        let all: Vec<String> =
            topology::names().map(|name| format!("{name}\n{}", render(&topology::load(name).unwrap()))).collect();
        insta::assert_snapshot!(all.join("\n"));
    }
}
