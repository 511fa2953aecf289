//! The chain of a lab as a picture of text: the nodes that frames pass, how many passed each cable, and where they were lost.
//!
//! ```text
//! tester:0 ──────────▶ br0 1→3 ─────────▶ vm1 0→1 ─────────▶ br0 4→2 ─────────▶ tester:1
//!           11,684,784         8,016,615          8,014,884          8,013,109
//!                      -3,668,169         -1,731             -1,775
//! ```

use measure::schema::lab::{Hop, HopLoss};

use crate::num;

/// Widest line: what fits a page of Markdown and most terminals.
const WIDTH: usize = 100;

/// One part of the chain: what stands in it, and below it frames and losses.
struct Part {
    head: String,
    frames: String,
    lost: String,
    /// A cable is drawn over the whole width of its figures.
    cable: bool,
}

impl Part {
    fn width(&self) -> usize {
        let least = [&self.head, &self.frames, &self.lost].map(|text| text.chars().count());
        least.into_iter().max().unwrap_or(0) + if self.cable { 3 } else { 0 }
    }
}

/// The picture of one direction, in as many rows as it needs; empty without hops.
pub(super) fn draw(hops: &[HopLoss]) -> String {
    let mut out = String::new();
    let mut row: Vec<Part> = Vec::new();
    let width = |row: &[Part]| row.iter().map(|part| part.width() + 1).sum::<usize>();
    for part in parts(hops) {
        if width(&row) + part.width() > WIDTH && !row.is_empty() {
            write(&row, &mut out);
            row.clear();
        }
        row.push(part);
    }
    write(&row, &mut out);
    out
}

/// Nodes and cables in order. Hops come in pairs: out of a node, into the next.
fn parts(hops: &[HopLoss]) -> Vec<Part> {
    let mut parts = Vec::new();
    let mut entered: Option<&HopLoss> = None;
    for pair in hops.chunks(2) {
        let [out, into] = pair else { continue };
        parts.push(Part {
            head: node(entered.map(|hop| &hop.hop), &out.hop),
            frames: String::new(),
            lost: if entered.is_some() { loss(out) } else { String::new() },
            cable: false,
        });
        parts.push(Part { head: String::new(), frames: frames(&into.hop), lost: loss(into), cable: true });
        entered = Some(into);
    }
    parts.extend(entered.map(|last| Part {
        head: last.hop.at.clone(),
        frames: String::new(),
        lost: String::new(),
        cable: false,
    }));
    parts
}

/// A node with the ports by which frames came and left: `br0 1→3`. Ways that wait at both are left out.
fn node(came: Option<&Hop>, left: &Hop) -> String {
    let Some(came) = came else { return left.at.clone() };
    let parts = |ends: Vec<&str>| -> Vec<(String, String)> {
        let parts = ends.into_iter().filter_map(|end| end.split_once(':'));
        parts.map(|(node, port)| (node.to_owned(), port.to_owned())).collect()
    };
    let (came, left) = moved(&came.at, &left.at);
    let (came, left) = (parts(came), parts(left));
    let mut nodes: Vec<&str> = Vec::new();
    for (node, _) in came.iter().chain(&left) {
        if !nodes.contains(&node.as_str()) {
            nodes.push(node);
        }
    }
    let ports = |ends: &[(String, String)]| {
        let mut ports: Vec<&str> = ends.iter().map(|(_, port)| port.as_str()).collect();
        ports.dedup();
        ports.join(",")
    };
    format!("{} {}→{}", nodes.join("+"), ports(&came), ports(&left))
}

/// The ends of two places that frames go between. Ways that wait are at both, and are left out.
pub(super) fn moved<'a>(from: &'a str, to: &'a str) -> (Vec<&'a str>, Vec<&'a str>) {
    let without = |ends: &'a str, others: &str| -> Vec<&'a str> {
        ends.split('+').filter(|end| ends == others || !others.split('+').any(|other| other == *end)).collect()
    };
    (without(from, to), without(to, from))
}

fn frames(hop: &Hop) -> String {
    hop.frames.map_or_else(|| "?".to_owned(), num::thousands)
}

/// What was lost just before a hop; nothing if nothing was.
fn loss(hop: &HopLoss) -> String {
    match hop.lost {
        None if hop.hop.frames.is_none() => "?".to_owned(),
        None | Some(0) => String::new(),
        Some(lost) if lost > 0 => format!("-{}", num::thousands(lost.unsigned_abs())),
        Some(more) => format!("+{}", num::thousands(more.unsigned_abs())),
    }
}

fn write(row: &[Part], out: &mut String) {
    let mut lines = [String::new(), String::new(), String::new()];
    for part in row {
        let width = part.width();
        let head = if part.cable { format!("{}▶", "─".repeat(width - 1)) } else { part.head.clone() };
        for (line, text) in lines.iter_mut().zip([&head, &part.frames, &part.lost]) {
            line.push_str(&format!("{text:^width$} "));
        }
    }
    for line in lines.iter().map(|line| line.trim_end()).filter(|line| !line.is_empty()) {
        out.push_str(line);
        out.push('\n');
    }
}

#[cfg(test)]
mod tests {
    use measure::schema::lab::{losses, HopWay};

    use super::*;

    fn picture(hops: &[(&str, Option<u64>)]) -> String {
        let hop = |(n, (at, frames)): (usize, &(&str, Option<u64>))| Hop {
            at: (*at).to_owned(),
            way: if n % 2 == 0 { HopWay::Out } else { HopWay::In },
            frames: *frames,
        };
        draw(&losses(&hops.iter().enumerate().map(hop).collect::<Vec<_>>()))
    }

    #[test]
    fn a_chain_is_drawn_with_its_losses() {
        let one = [
            ("tester:0", Some(11_684_784)),
            ("br0:1", Some(11_684_784)),
            ("br0:3", Some(8_016_615)),
            ("vm1:0", Some(8_016_615)),
            ("vm1:1", None),
            ("br0:4", Some(8_014_884)),
            ("br0:2", Some(8_013_109)),
            ("tester:1", Some(8_013_108)),
        ];
        let spread = [
            ("tester:0", Some(100)),
            ("br0:1", Some(100)),
            ("br0:3+br0:5", Some(90)),
            ("vm1:0+vm2:0", Some(90)),
            ("vm1:1+vm2:1", Some(90)),
            ("br0:4+br0:6", Some(90)),
            ("br0:4+br0:7", Some(80)),
            ("br0:4+vm3:0", Some(80)),
            ("br0:4+vm3:1", Some(80)),
            ("br0:4+br0:8", Some(80)),
            ("br0:2", Some(81)),
            ("tester:1", Some(81)),
        ];
        insta::assert_snapshot!(picture(&one) + "\n" + &picture(&spread));
        assert_eq!(picture(&[]), "");
        assert!(picture(&spread).lines().all(|line| line.chars().count() <= WIDTH));
    }
}
