//! Facts about the machine for the result, and warnings about it.

use host::{Facts, Roots};
use measure::result::{HostFacts, HostFinding, Warning, WarningKind};

/// Reads the facts of this machine.
pub fn read() -> Facts {
    Facts::read(&Roots::default())
}

/// The facts in the form of the result.
pub fn for_result(facts: &Facts, dpdk_version: String, memory: String, tsc_hz: u64, realtime: String) -> HostFacts {
    let extra = [
        ("boot_line", Some(facts.boot_line.clone())),
        ("clocksource", facts.clocksource.clone()),
        ("governor", facts.governor.clone()),
        ("isolated_cpus", Some(facts.isolated.clone())),
        ("realtime", Some(realtime)),
    ];
    HostFacts {
        hostname: facts.hostname.clone(),
        kernel: facts.kernel.clone(),
        cpu_model: facts.cpu_model.clone(),
        cpus_allowed: facts.cpus_allowed.len() as u32,
        hypervisor: facts.hypervisor.clone(),
        dpdk_version: dpdk_version.trim_start_matches("DPDK ").to_owned(),
        memory,
        tsc_hz,
        tsc_invariant: facts.tsc_invariant,
        idle_power: None,
        findings: None,
        extra: extra.into_iter().filter_map(|(k, v)| Some((k.to_owned(), v.filter(|v| !v.is_empty())?))).collect(),
    }
}

/// Facts with the findings that were open; none where nobody looked.
pub fn with_findings(facts: HostFacts, findings: Vec<HostFinding>) -> HostFacts {
    HostFacts { findings: Some(findings), ..facts }
}

/// What distorts results on this machine.
pub fn warnings(facts: &Facts, hugepages: bool) -> Vec<Warning> {
    let mut warnings = Vec::new();
    let mut warn = |kind, text: &str| warnings.push(Warning { kind, text: text.to_owned() });
    if facts.hypervisor.is_some() {
        warn(
            WarningKind::Host,
            "this is a virtual machine: the host can move and stop its cores at any time. The interference record of \
             each trial says when",
        );
    }
    if !hugepages {
        let (free, total) = facts.hugepages_2m;
        // Those that are there are used by others.
        let wanted = (total - free.min(total)).max(256) + 256;
        let there = if total > 0 { format!(": of {total} hugepages {free} are free") } else { String::new() };
        let why = "packets are in ordinary pages, which lowers rates at many flows";
        warn(WarningKind::NoHugepages, &format!("{why}{there}. As root: sysctl vm.nr_hugepages={wanted}"));
    }
    if !facts.tsc_invariant {
        warn(WarningKind::Clock, "the TSC is not invariant on this CPU: latency is withheld");
    }
    warnings
}
