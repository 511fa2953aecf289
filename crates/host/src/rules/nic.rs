//! Network cards. The bus that they are on is in [`crate::pcie`].

use crate::{
    audit::{Asked, Context, Group, Out, Rule, Verdict},
    cpu_set, pci, Fact, PciDevice,
};

/// Entries of a ring as the documents set them.
const RING: u32 = 2048;

pub(super) const RULES: &[Rule] = &[
    Rule {
        id: "nic.driver",
        group: Group::Nic,
        why: "which driver has it",
        effect: None,
        asked: &[Asked::TwoVm("4.1.1"), Asked::Onp("3.2"), Asked::Dpdk],
        bare_metal: false,
        check: |cx, out| {
            let mut any = false;
            for nic in cx.plan_nics() {
                any = true;
                let driver = nic.driver.clone().unwrap_or_else(|| "no driver".to_owned());
                out.noted(&nic.address, format!("{} {driver}", nic.id));
            }
            if !any {
                out.not_applicable("", "no NIC on a PCI bus");
            }
        },
    },
    Rule {
        id: "nic.speed",
        group: Group::Nic,
        why: "the link is slower than the card, or down",
        effect: None,
        asked: &[Asked::LowLatency("ExaNIC Configuration")],
        bare_metal: false,
        check: |cx, out| {
            if no_interface(cx, out) {
                return;
            }
            for (nic, interface) in cx.plan_interfaces() {
                let place = format!("{} ({})", nic.address, interface.name);
                match (interface.carrier, interface.speed_mbps) {
                    (None, _) => out.noted(&place, "not set up"),
                    (Some(false), _) => {
                        out.found(Verdict::Warn, &place, "no carrier", "a link").hand("look after cable and peer");
                    }
                    (Some(true), None) => out.noted(&place, "a link; does not say its speed"),
                    (Some(true), Some(mbps)) => out.noted(&place, format!("{mbps} Mbit/s")),
                }
            }
        },
    },
    Rule {
        id: "nic.error_correction",
        group: Group::Nic,
        why: "forward error correction delays each frame; ends that differ in it have no link",
        effect: None,
        asked: &[Asked::LowLatency("ExaNIC Configuration")],
        bare_metal: false,
        check: |cx, out| {
            ethtool(cx, out, "--show-fec", |text| {
                let active = text.lines().find_map(|line| line.split_once("Active FEC encoding")?.1.split_once(':'));
                let got = active.map_or("does not say", |(_, kinds)| kinds.trim());
                (Verdict::Noted, got.to_owned(), String::new())
            });
        },
    },
    Rule {
        id: "nic.steering",
        group: Group::Nic,
        why: "the kernel hands frames of a queue to other CPUs: work of the kernel on cores that poll",
        effect: None,
        asked: &[Asked::TwoVm("4.2.2"), Asked::Tuned],
        bare_metal: false,
        check: |cx, out| {
            if no_interface(cx, out) {
                return;
            }
            for (_, interface) in cx.plan_interfaces() {
                let queues = format!("/sys/class/net/{}/queues", interface.name);
                for queue in cx.roots.names(&queues) {
                    match queue.starts_with("rx-") {
                        true => steered(cx, out, &format!("{queues}/{queue}/rps_cpus")),
                        false => steered(cx, out, &format!("{queues}/{queue}/xps_cpus")),
                    }
                }
            }
            if out.is_empty() {
                out.not_applicable("", "no queue has a mask");
            }
        },
    },
    Rule {
        id: "nic.queues",
        group: Group::Nic,
        why: "queues of the kernel's driver, and which CPUs the kernel gives their frames to",
        effect: None,
        asked: &[Asked::TwoVm("4.1.3"), Asked::TwoVm("4.2.2")],
        bare_metal: false,
        check: |cx, out| {
            if no_interface(cx, out) {
                return;
            }
            for (nic, interface) in cx.plan_interfaces() {
                let queues = cx.roots.names(format!("/sys/class/net/{}/queues", interface.name));
                let count = |kind: &str| queues.iter().filter(|queue| queue.starts_with(kind)).count();
                out.noted(
                    &format!("{} ({})", nic.address, interface.name),
                    format!("{} receive, {} transmit", count("rx-"), count("tx-")),
                );
            }
        },
    },
    Rule {
        id: "nic.rings",
        group: Group::Nic,
        why: "a ring holds what comes while a core is away: 2048 frames at 14.88 Mpps are 138 us",
        effect: None,
        asked: &[Asked::TwoVm("4.2.2"), Asked::Onp("3.4")],
        bare_metal: false,
        check: |cx, out| ethtool(cx, out, "-g", rings),
    },
    Rule {
        id: "nic.coalescing",
        group: Group::Nic,
        why: "the card waits before it interrupts: latency of sockets grows by it",
        effect: None,
        asked: &[Asked::LowLatency("Software Settings")],
        bare_metal: false,
        check: |cx, out| {
            ethtool(cx, out, "-c", |text| {
                let of = |key: &str| value(text, key).unwrap_or("?");
                (
                    Verdict::Noted,
                    format!(
                        "rx-usecs {}, {}",
                        of("rx-usecs"),
                        text.lines().find(|line| line.starts_with("Adaptive")).unwrap_or("?")
                    ),
                    String::new(),
                )
            });
        },
    },
    Rule {
        id: "nic.pause",
        group: Group::Nic,
        why: "a paused tester measures the device's buffers, and a paused device hides its loss",
        effect: None,
        asked: &[Asked::Dpdk],
        bare_metal: false,
        check: |cx, out| {
            ethtool(cx, out, "-a", |text| {
                let on: Vec<&str> = ["RX", "TX"].into_iter().filter(|side| value(text, side) == Some("on")).collect();
                match on.is_empty() {
                    true => (Verdict::Ok, "off".to_owned(), String::new()),
                    false => (Verdict::Warn, format!("on: {}", on.join(", ")), "off".to_owned()),
                }
            });
        },
    },
    Rule {
        id: "nic.offloads",
        group: Group::Nic,
        why: "joined frames are not forwarded as they came: off where the kernel forwards, known in every result",
        effect: None,
        asked: &[Asked::TwoVm("4.1.3"), Asked::Onp("10.2")],
        bare_metal: false,
        check: |cx, out| {
            ethtool(cx, out, "-k", |text| {
                const KEYS: [&str; 4] = [
                    "generic-receive-offload",
                    "large-receive-offload",
                    "generic-segmentation-offload",
                    "tcp-segmentation-offload",
                ];
                let on: Vec<&str> = KEYS
                    .into_iter()
                    .filter(|key| value(text, key).is_some_and(|value| value.starts_with("on")))
                    .collect();
                (
                    Verdict::Noted,
                    if on.is_empty() { "off".to_owned() } else { format!("on: {}", on.join(", ")) },
                    String::new(),
                )
            });
        },
    },
    Rule {
        id: "nic.busy_polling",
        group: Group::Nic,
        why: "whether the kernel leaves a card's interrupts off while a program polls its sockets",
        effect: Some("re-arming interrupts costs about 20 % at 100 Gbit/s with 32 queues (kernel commit 6f8b12d661d0)"),
        asked: &[Asked::LowLatency("Software Settings")],
        bare_metal: false,
        check: |cx, out| {
            if no_interface(cx, out) {
                return;
            }
            for (nic, interface) in cx.plan_interfaces() {
                let file = |file: &str| {
                    cx.roots
                        .fact(format!("/sys/class/net/{}/{file}", interface.name))
                        .known()
                        .unwrap_or_else(|| "?".to_owned())
                };
                let got = format!(
                    "napi_defer_hard_irqs {}, gro_flush_timeout {}",
                    file("napi_defer_hard_irqs"),
                    file("gro_flush_timeout")
                );
                out.noted(&format!("{} ({})", nic.address, interface.name), got);
            }
        },
    },
    Rule {
        id: "nic.vfio",
        group: Group::Nic,
        why: "a card bound to vfio-pci without an IOMMU can write to all memory",
        effect: None,
        asked: &[Asked::Dpdk, Asked::TwoVm("5")],
        bare_metal: false,
        check: |cx, out| {
            for nic in cx.plan_nics().filter(|nic| nic.driver.as_deref() == Some("vfio-pci")) {
                match nic.iommu {
                    true => out.ok(&nic.address, "behind an IOMMU"),
                    false => out.noted(&nic.address, "no IOMMU: physical addresses"),
                }
            }
            cx.note(out, "/sys/module/vfio/parameters/enable_unsafe_noiommu_mode");
            // DPDK's guide for AMD: a device that sleeps while nobody has it open may not come back.
            cx.note(out, "/sys/module/vfio_pci/parameters/disable_idle_d3");
        },
    },
    Rule {
        id: "nic.virtual_functions",
        group: Group::Nic,
        why: "virtual functions share a card's queues and bandwidth",
        effect: None,
        asked: &[Asked::TwoVm("Appendix A")],
        bare_metal: false,
        check: |cx, out| {
            if cx.plan_nics().next().is_none() {
                return out.not_applicable("", "no NIC on a PCI bus");
            }
            for nic in cx.plan_nics() {
                match cx.roots.fact(format!("/sys/bus/pci/devices/{}/sriov_numvfs", nic.address)) {
                    Fact::Known(count) => {
                        out.noted(&nic.address, format!("{count} virtual functions"));
                        if count != "0" {
                            rights(cx, out, nic);
                        }
                    }
                    Fact::Absent => out.not_applicable(&nic.address, "none possible"),
                    Fact::Unreadable(why) => out.unknown(&nic.address, why),
                }
            }
        },
    },
];

/// Says so where the kernel has no interface of any NIC of the plan, and so nothing to look at.
fn no_interface(cx: &Context<'_>, out: &mut Out) -> bool {
    let none = cx.plan_interfaces().next().is_none();
    match cx.plan_nics().next() {
        None => out.not_applicable("", "no NIC on a PCI bus"),
        Some(nic) if none && nic.driver.as_deref().is_some_and(|driver| pci::USER_SPACE.contains(&driver)) => {
            out.not_applicable("", "the kernel has no interface of it: it is a program's");
        }
        Some(_) if none => out.not_applicable("", "no interface of it here: another network name space may have it"),
        Some(_) => {}
    }
    none
}

/// A mask of CPUs to which the kernel gives frames. None for a queue that one CPU serves alone, which is the usual.
fn steered(cx: &Context<'_>, out: &mut Out, path: &str) {
    let Fact::Known(mask) = cx.roots.fact(path) else { return };
    let cpus = cpu_set::from_mask(&mask).unwrap_or_default();
    let busy = cx.busy_in(&cpus);
    match busy.filter(|_| path.ends_with("rps_cpus")) {
        // A transmit queue's mask says who may send by it, and only those who send do.
        None if cpus.is_empty() => {}
        None => out.noted(path, format!("CPU {}", cpu_set::to_list(&cpus))),
        Some(busy) => {
            out.found(Verdict::Warn, path, format!("CPU {busy}"), "no CPU that polls").write(path, "0");
        }
    }
}

/// What virtual functions may do, as `ip` says it: a guest that bridges sends from addresses that are not its own.
fn rights(cx: &Context<'_>, out: &mut Out, nic: &PciDevice) {
    for interface in &nic.interfaces {
        let Fact::Known(text) = cx.roots.command("ip", &["link", "show", "dev", &interface.name]) else { continue };
        for line in text.lines().map(str::trim).filter(|line| line.starts_with("vf ")) {
            let number = line.split_ascii_whitespace().nth(1).unwrap_or("?").trim_end_matches(',');
            let of = |key: &str| line.split(", ").find_map(|part| part.strip_prefix(key)).unwrap_or("not said").trim();
            let got = format!("spoof checking {}, trust {}", of("spoof checking"), of("trust"));
            out.noted(&format!("{} function {number}", interface.name), got);
        }
    }
}

/// What `ethtool` says of each interface of the plan.
fn ethtool(cx: &Context<'_>, out: &mut Out, flag: &str, judge: impl Fn(&str) -> (Verdict, String, String)) {
    if no_interface(cx, out) {
        return;
    }
    for (nic, interface) in cx.plan_interfaces() {
        let place = format!("{} ({})", nic.address, interface.name);
        match cx.roots.command("ethtool", &[flag, &interface.name]) {
            Fact::Absent if cx.roots.command("ethtool", &["--version"]).known().is_some() => {
                out.not_applicable(&place, "its driver does not say it");
            }
            Fact::Absent => out.unknown(&place, "needs the program ethtool, and a driver that says it"),
            Fact::Unreadable(why) => out.unknown(&place, why),
            Fact::Known(text) => {
                let (verdict, got, want) = judge(&text);
                let found = out.found(verdict, &place, got, want);
                if verdict == Verdict::Warn {
                    let mend = match flag {
                        "-g" => {
                            let most = |side| most(&text, side).unwrap_or(RING).min(RING);
                            format!("ethtool -G {} rx {} tx {}", interface.name, most("RX"), most("TX"))
                        }
                        _ => format!("ethtool -A {0} rx off tx off", interface.name),
                    };
                    found.mended_by(crate::audit::Mend::Command { command: mend });
                }
            }
        }
    }
}

/// `KEY: VALUE` in a text; the last one, which `ethtool -g` prints for what is set now.
fn value<'a>(text: &'a str, key: &str) -> Option<&'a str> {
    let of = |line: &'a str| line.trim().strip_prefix(key)?.trim_start().strip_prefix(':').map(str::trim);
    text.lines().filter_map(of).next_back()
}

/// The first one, which `ethtool -g` prints for what is possible.
fn most(text: &str, key: &str) -> Option<u32> {
    value(text.split("Current").next()?, key)?.parse().ok()
}

fn rings(text: &str) -> (Verdict, String, String) {
    match value(text, "RX").and_then(|entries| entries.parse::<u32>().ok()) {
        Some(entries) if entries < 1024 && most(text, "RX") == Some(entries) => {
            (Verdict::Noted, format!("{entries} entries, and no more are possible"), String::new())
        }
        Some(entries) if entries >= 1024 => (Verdict::Ok, format!("{entries} entries"), String::new()),
        Some(entries) => (Verdict::Warn, format!("{entries} entries"), "at least 1024".to_owned()),
        None => (Verdict::Noted, "does not say".to_owned(), String::new()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_ethtool_prints_last_is_what_is_set() {
        let text = "Ring parameters for eth0:\nPre-set maximums:\nRX:\t\t4096\nTX:\t\t4096\nCurrent hardware settings:\nRX:\t\t512\nRX Mini:\tn/a\nTX:\t\t2048\n";
        assert_eq!(rings(text).0, Verdict::Warn);
        assert_eq!(rings(&text.replace("512", "1024")).0, Verdict::Ok);
        assert_eq!(rings("").0, Verdict::Noted);
        assert_eq!((most(text, "RX"), most(text, "TX"), most("RX:\tn/a\n", "RX")), (Some(4096), Some(4096), None));
        assert_eq!(rings(&text.replace("4096", "512")).0, Verdict::Noted, "a virtual one has no more");
        assert_eq!(value("rx-usecs: 3\n", "rx-usecs"), Some("3"));
        assert_eq!(value("rx-usecs-irq: 3\n", "rx-usecs"), None);
    }
}
