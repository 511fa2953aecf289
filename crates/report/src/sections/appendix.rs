//! What a document in a file holds besides: the machine and the effective plan.

use measure::result::RunResult;

use crate::{
    document::{Audience, Block, Fact, Section, Topic},
    style::Paint,
};

/// Facts of the machine and of the ports.
pub(crate) fn host(result: &RunResult) -> Section {
    let h = &result.host;
    let mut facts = Vec::new();
    let mut row = |name: &str, value: String| {
        if !value.trim().is_empty() {
            facts.push(Fact::new(name.to_owned(), value, Paint::Plain));
        }
    };
    row("host name", h.hostname.clone());
    row("CPU", h.cpu_model.clone());
    row("CPUs allowed", h.cpus_allowed.to_string());
    row("hypervisor", h.hypervisor.clone().unwrap_or_else(|| "none seen".to_owned()));
    row("kernel", h.kernel.clone());
    row("DPDK", h.dpdk_version.clone());
    row("memory", h.memory.clone());
    let invariant = if h.tsc_invariant { "invariant" } else { "not invariant" };
    row("TSC", format!("{} MHz, {invariant}", h.tsc_hz / 1_000_000));
    h.extra.iter().for_each(|(name, value)| row(name, value.clone()));
    for port in &result.ports {
        let link = port.link_bps.map_or_else(|| "link not reported".to_owned(), |l| format!("link {l}bit/s"));
        let (rx, tx) = port.descriptors;
        row("port", format!("{} {} {} {link}, {rx} rx and {tx} tx descriptors", port.name, port.driver, port.mac));
    }
    Section::new(Topic::Host, "Host").folded().with(Audience::FILE, Block::Facts(facts))
}

/// The plan with every default.
pub(crate) fn plan(result: &RunResult) -> Section {
    let json = serde_json::to_string_pretty(&result.effective_plan).unwrap_or_default();
    Section::new(Topic::Plan, "Plan").folded().with(Audience::FILE, Block::Json(json))
}
