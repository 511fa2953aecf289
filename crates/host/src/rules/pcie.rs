//! The bus that network cards are on.

use crate::{
    audit::{Asked, Context, Group, Out, Rule, Verdict},
    pcie::{Attachment, Link, PciePath, PcieReport, RootPlace},
    Fact,
};

/// Size of the frames that a slot has to carry, bytes: the smallest are the hardest.
const FRAME_SIZE: u32 = 64;
/// Read requests below this size make the card wait for memory, bytes.
const LEAST_MRRS: u32 = 512;
/// Bits of preamble and gap around each frame on the wire.
const AROUND: u32 = 20;

pub(super) const RULES: &[Rule] = &[
    Rule {
        id: "pcie.link",
        group: Group::Nic,
        why: "a slot that is narrower or slower than the card limits frames a second, whatever the cores do",
        effect: Some("X520 on 5 GT/s x4 of x8: 13.4 Mpps of 14.88 forwarded at 64 B (small-router document)"),
        asked: &[Asked::SmallRouter, Asked::LowLatency("Hardware Configuration"), Asked::TwoVm("Appendix A")],
        bare_metal: true,
        check: |cx, out| each(cx, out, link),
    },
    Rule {
        id: "pcie.root_port",
        group: Group::Nic,
        why: "a card behind the chipset or a switch shares the link above it, and each frame takes longer",
        effect: None,
        asked: &[Asked::LowLatency("Hardware Configuration")],
        bare_metal: true,
        check: |cx, out| each(cx, out, root_port),
    },
    Rule {
        id: "pcie.payload",
        group: Group::Nic,
        why: "small payloads and read requests spend the link on headers",
        effect: Some("MPS 256 instead of 128 lifts 1514 B on 5 GT/s x4 from 0.92 to 1.03 Mpps (model of pcie-bench, SIGCOMM 2018)"),
        asked: &[Asked::SmallRouter, Asked::Dpdk],
        bare_metal: true,
        check: |cx, out| each(cx, out, payload),
    },
    Rule {
        id: "pcie.errors",
        group: Group::Nic,
        why: "what was damaged on the bus is sent again, and costs bandwidth",
        effect: None,
        asked: &[Asked::LowLatency("Hardware Configuration")],
        bare_metal: true,
        check: |cx, out| each(cx, out, errors),
    },
];

fn each(cx: &Context<'_>, out: &mut Out, check: fn(&Context<'_>, &mut Out, &PciePath, &str)) {
    let mut any = false;
    for nic in cx.plan_nics() {
        if let Some(path) = PciePath::read(cx.roots, &nic.address) {
            any = true;
            check(cx, out, &path, &nic.address);
        }
    }
    if !any {
        out.not_applicable("", "no NIC on a PCI bus");
    }
}

fn text(link: Link) -> String {
    format!("{} GT/s x{}", link.gts, link.lanes)
}

fn link(cx: &Context<'_>, out: &mut Out, path: &PciePath, address: &str) {
    let report = PcieReport::new(path.clone(), FRAME_SIZE, None);
    let Some(now) = path.narrowest().and_then(|hop| hop.current_link.as_known()).copied() else {
        return out.not_applicable(address, "no link of PCI Express");
    };
    let mpps = |fps: f64| format!("{:.2} Mpps", fps / 1e6);
    let ceiling = report.now().map(|now| now.both.fps);
    let got = match ceiling {
        Some(fps) => format!("{}: at most {} forwarded at {FRAME_SIZE} B", text(now), mpps(fps)),
        None => text(now),
    };
    let limits =
        path.narrowest().filter(|hop| hop.address != address).map(|hop| format!(" (limited by {})", hop.address));
    let got = format!("{got}{}", limits.unwrap_or_default());
    let speed =
        cx.plan_interfaces().find(|(nic, _)| nic.address == address).and_then(|(_, interface)| interface.speed_mbps);
    let line = speed.map(|mbps| f64::from(mbps) * 1e6 / f64::from((FRAME_SIZE + AROUND) * 8));
    let device = path.device().and_then(|hop| hop.max_link.as_known()).copied();
    match (line, ceiling, path.fit().below_device) {
        (Some(line), Some(fps), Some(false)) if fps < line && device == Some(now) => {
            let want = format!("{} of the wire", mpps(line));
            out.found(Verdict::Warn, address, got, want).hand(format!("another card: {address} has no more lanes"));
        }
        (Some(line), Some(fps), _) if fps < line => {
            let want = format!("{} of the wire", mpps(line));
            let best = device.map(|link| format!("{address} into a slot of {}", text(link)));
            out.found(Verdict::Bad, address, got, want)
                .hand(best.unwrap_or_else(|| format!("{address} into another slot")));
        }
        (_, _, Some(true)) => {
            let want = device.map(text).unwrap_or_default();
            out.found(Verdict::Warn, address, got, want.clone()).hand(format!("{address} into a slot of {want}"));
        }
        _ => out.ok(address, got),
    }
}

fn root_port(cx: &Context<'_>, out: &mut Out, path: &PciePath, address: &str) {
    let attached = path.attached();
    let place = path.root_place();
    match (attached.to, place) {
        (Attachment::RootComplex, _) => out.not_applicable(address, "in the root complex itself"),
        (Attachment::RootPort, Some(RootPlace::Chipset)) if !has_processor_ports(cx) => {
            out.noted(address, "a root port of the chipset, as all are here: a system on one chip");
        }
        (Attachment::RootPort, Some(RootPlace::Chipset)) => {
            out.found(Verdict::Warn, address, "a root port of the chipset", "one of the processor")
                .hand(format!("{address} into another slot"));
        }
        (Attachment::RootPort, Some(RootPlace::Processor)) => out.ok(address, "a root port of the processor"),
        (Attachment::RootPort, _) => out.ok(address, "a root port"),
        (Attachment::Switches(n), _) => {
            out.found(Verdict::Warn, address, format!("behind {n} switches"), "a root port")
                .hand(format!("{address} into another slot"));
        }
        (Attachment::PciBridge, _) => {
            out.found(Verdict::Warn, address, "behind a bridge to conventional PCI", "a root port")
                .hand(format!("{address} into another slot"));
        }
        (Attachment::Unknown, _) => out.unknown(address, "needs root"),
    }
}

/// Whether the machine has a root port of the processor, be it empty.
fn has_processor_ports(cx: &Context<'_>) -> bool {
    let all = cx.roots.names("/sys/bus/pci/devices");
    all.iter().any(|address| PciePath::read(cx.roots, address).is_some_and(|path| path.is_processor_port()))
}

fn payload(_: &Context<'_>, out: &mut Out, path: &PciePath, address: &str) {
    let express = match path.device().map(|hop| &hop.express) {
        Some(Fact::Known(express)) => express,
        Some(Fact::Unreadable(why)) => return out.unknown(address, why.clone()),
        _ => return out.not_applicable(address, "no PCI Express"),
    };
    if path.attached().to == Attachment::RootComplex {
        return out.not_applicable(address, "in the root complex itself");
    }
    let (mps, supported) = (path.mps(), path.mps_supported());
    let got = format!("payload {} B, read requests {} B", mps.unwrap_or(express.mps), express.mrrs);
    match (mps, supported) {
        (Some(mps), Some(most)) if mps < most => {
            out.found(Verdict::Warn, address, got, format!("payload {most} B")).boot("pci=pcie_bus_safe");
        }
        _ if express.mrrs < LEAST_MRRS => {
            // Bits 12 to 14 of the Device Control register; the rest stays.
            let command = format!("setpci -s {address} CAP_EXP+8.w=2000:7000");
            out.found(Verdict::Warn, address, got, format!("read requests of {LEAST_MRRS} B"))
                .mended_by(crate::audit::Mend::Command { command });
        }
        _ => out.ok(address, got),
    }
}

fn errors(_: &Context<'_>, out: &mut Out, path: &PciePath, address: &str) {
    let count = |fact: &Fact<u64>| fact.as_known().copied();
    let (mut known, mut any) = (false, false);
    for hop in path.hops() {
        let (corrected, fatal) =
            (count(&hop.errors.correctable), count(&hop.errors.nonfatal).zip(count(&hop.errors.fatal)));
        known |= corrected.is_some() || fatal.is_some();
        let others = fatal.map_or(0, |(nonfatal, fatal)| nonfatal + fatal);
        if corrected.unwrap_or(0) + others > 0 {
            any = true;
            // A bridge may be above two NICs.
            if out.has(&hop.address) {
                continue;
            }
            let got = format!("{} corrected, {others} others since boot", corrected.unwrap_or(0));
            out.found(Verdict::Warn, &hop.address, got, "0")
                .hand(format!("seat {address} again, or look after its riser"));
        }
    }
    match (known, any) {
        (false, _) => out.not_applicable(address, "the kernel does not count them here"),
        (true, false) => out.ok(address, "none since boot"),
        (true, true) => {}
    }
}
