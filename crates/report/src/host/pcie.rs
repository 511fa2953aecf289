//! The path of a card up to the root of its bus, and what its slot can carry.

use host::{
    pcie::{Attachment, BoundBy, Link, PcieReport, SlotKind},
    Fact,
};

use crate::{style::Style, table::Table};

/// All reports, as text or as JSON.
///
/// # Errors
///
/// As those of `serde_json`: none is known for these.
pub fn render(reports: &[PcieReport], json: bool, style: &Style) -> Result<String, serde_json::Error> {
    match json {
        true => serde_json::to_string_pretty(reports),
        false => Ok(reports.iter().map(|report| one(report, style)).collect::<Vec<_>>().join("\n")),
    }
}

/// The path hop by hop, the ceiling here, and in other slots.
fn one(report: &PcieReport, style: &Style) -> String {
    let mut out = if report.path.hops().is_empty() { String::new() } else { path(report, style) };
    if report.present.is_none() && !report.path.hops().is_empty() {
        return out + "no link of PCI Express is known here: a virtual machine, or a device inside the processor\n";
    }
    out += &format!("frames of {} B, both received and transmitted through the slot, Mpps:\n", report.frame_size);
    let mut slots = Table::default();
    slots.left(0, "slot", "");
    slots.left(0, "link", "");
    for mps in [128, 256, 512] {
        slots.right(1, &format!("MPS {mps}"), "");
    }
    slots.left(1, "limited by", "");
    let mut links = Vec::new();
    for slot in report.present.iter().chain(&report.elsewhere) {
        // A slot that can do more than the card gives what the card's best gives.
        if slot.kind == SlotKind::Other && links.contains(&slot.link) {
            continue;
        }
        links.push(slot.link);
        let of = |mps: u32| slot.by_payload.iter().find(|payload| payload.mps == mps);
        let cell = |mps: u32| match of(mps) {
            Some(payload) if payload.supported != Some(false) => {
                format!("{:.2}{}", payload.both.fps / 1e6, if payload.in_use { " *" } else { "" })
            }
            _ => "-".to_owned(),
        };
        let kind = match slot.kind {
            SlotKind::Present => "here".to_owned(),
            SlotKind::DeviceMaximum => "the card's best".to_owned(),
            SlotKind::Asked => "asked for".to_owned(),
            SlotKind::Other => text(slot.slot),
        };
        let bound = of(256).or_else(|| slot.by_payload.first()).map(|payload| match payload.both.bound_by {
            BoundBy::Up => "card to memory",
            BoundBy::Down => "memory to card",
        });
        slots.row(vec![
            kind.into(),
            text(slot.link).into(),
            cell(128).into(),
            cell(256).into(),
            cell(512).into(),
            bound.unwrap_or("-").into(),
        ]);
    }
    out += &slots.text(style);
    if let Some(now) = report.now() {
        out += &format!(
            "* now: {:.2} Mpps received and forwarded, {:.2} received only, {:.2} transmitted only\n",
            now.both.fps / 1e6,
            now.receive.fps / 1e6,
            now.transmit.fps / 1e6
        );
    }
    out
}

/// The path hop by hop, and an empty line.
fn path(report: &PcieReport, style: &Style) -> String {
    let mut hops = Table::default();
    hops.left(0, "hop", "");
    hops.left(0, "link", "");
    hops.left(0, "could be", "");
    hops.right(0, "payload", "B");
    hops.right(0, "read request", "B");
    hops.right(0, "errors", "");
    for hop in report.path.hops() {
        let narrow = if report.narrowest.as_ref() == Some(&hop.address) { " *" } else { "" };
        let express = hop.express.as_known();
        let errors =
            [&hop.errors.correctable, &hop.errors.nonfatal, &hop.errors.fatal].map(|count| count.as_known().copied());
        let sum: Option<u64> = errors.into_iter().sum();
        hops.row(vec![
            format!("{}{narrow}", hop.address).into(),
            link(&hop.current_link).into(),
            link(&hop.max_link).into(),
            express.map_or("-".to_owned(), |express| express.mps.to_string()).into(),
            express.map_or("-".to_owned(), |express| express.mrrs.to_string()).into(),
            sum.map_or("-".to_owned(), |sum| sum.to_string()).into(),
        ]);
    }
    format!("{}attached to {}\n\n", hops.text(style), attached(&report.attached.to))
}

fn text(link: Link) -> String {
    format!("{} GT/s x{}", link.gts, link.lanes)
}

fn link(fact: &Fact<Link>) -> String {
    fact.as_known().map_or_else(|| "-".to_owned(), |link| text(*link))
}

fn attached(to: &Attachment) -> String {
    match to {
        Attachment::RootPort => "a root port".to_owned(),
        Attachment::Switches(n) => format!("{n} switches"),
        Attachment::PciBridge => "a bridge to conventional PCI".to_owned(),
        Attachment::RootComplex => "the root complex".to_owned(),
        Attachment::Unknown => "something that only root may see".to_owned(),
    }
}
