//! Facts of the machine, as the result keeps them, and what is worth a warning.

use host::{Facts, Roots};
use measure::result::{HostFacts, Warning, WarningKind};

/// Reads the machine.
pub fn read() -> Facts {
    Facts::read(&Roots::default())
}

/// The facts as the result keeps them.
pub fn for_result(facts: &Facts, dpdk_version: String, memory: String, tsc_hz: u64) -> HostFacts {
    let extra = [
        ("boot_line", Some(facts.boot_line.clone())),
        ("clocksource", facts.clocksource.clone()),
        ("governor", facts.governor.clone()),
        ("isolated_cpus", Some(facts.isolated.clone())),
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
        extra: extra.into_iter().filter_map(|(k, v)| Some((k.to_owned(), v.filter(|v| !v.is_empty())?))).collect(),
    }
}

/// What about the machine bends a result.
pub fn warnings(facts: &Facts, hugepages: bool) -> Vec<Warning> {
    let mut warnings = Vec::new();
    let mut warn = |kind, text: &str| warnings.push(Warning { kind, text: text.to_owned() });
    if facts.hypervisor.is_some() {
        warn(
            WarningKind::Host,
            "this is a virtual machine: its cores can be moved and stopped by the host at any time; \
             the interference record of each trial says when they were",
        );
    }
    if !hugepages {
        warn(
            WarningKind::NoHugepages,
            "packets live in ordinary pages, which costs rate at many flows: as root, sysctl vm.nr_hugepages=512",
        );
    }
    if !facts.tsc_invariant {
        warn(WarningKind::Clock, "the TSC is not invariant on this CPU: latency is withheld");
    }
    warnings
}
