//! What was measured, where and when.

use measure::result::{FindingLevel, MixFacts, RunResult};

use crate::{
    document::{Audience, Block, Fact, Section, Topic},
    names, num,
    standing::standing_line,
    style::Paint,
    text,
};

/// Program, plan, device, ports, machine and time; in a file also how the result stands, for who reads the top alone.
pub(crate) fn section(result: &RunResult) -> Section {
    let plain = |(label, text): (&'static str, String)| Fact::new(label, text, Paint::Plain);
    let mut facts: Vec<Fact> = setting(result).into_iter().map(plain).collect();
    facts.extend(findings(result, usize::MAX));
    let ways = if result.directions > 1 { "both ways" } else { "one way" };
    let device = Fact::new("DUT", names::dut_short(result), Paint::Plain);
    let device = device.in_one_line(format!("; {ways}, {}", link(result)));
    Section::new(Topic::Setting, "")
        .with(Audience::DETAILS, Block::Title(title(result)))
        .with(Audience::SHORT, Block::Title(format!("{}; {}", title(result), when(result))))
        .with(Audience::FILE, Block::Standing(standing_line(result)))
        .with(Audience::SHORT, Block::Facts(std::iter::once(device).chain(findings(result, FEW)).collect()))
        .with(Audience::DETAILS, Block::Facts(facts))
}

/// Findings about the host that stand in a short report.
const FEW: usize = 3;

/// What was open on the host while it ran, the worst first; `None` if nothing was.
fn findings(result: &RunResult, most: usize) -> Option<Fact> {
    let all = result.host.findings.as_deref().filter(|all| !all.is_empty())?;
    let mut ids: Vec<(&str, FindingLevel)> = all.iter().map(|f| (f.id.as_str(), f.level)).collect();
    ids.dedup();
    let (text, bad) = text::open_rules(ids.iter().map(|(id, level)| (*id, *level == FindingLevel::Bad)), most);
    let paint = if bad { Paint::Bad } else { Paint::Plain };
    Some(Fact::new("settings", text, paint))
}

/// `Linerate 0.1.0: rfc2544 (quick)`. A plan may be run by another method than its own: `rfc2544 (quick), method tst009`.
pub(crate) fn title(result: &RunResult) -> String {
    let plan = text::clean(&result.plan_name);
    let method = result.effective_plan["search"]["method"].as_str().unwrap_or_default();
    let other = ["tst009", "mlrsearch"].into_iter().find(|other| *other == method && !result.sizes.is_empty());
    let method = other.map_or_else(String::new, |method| format!(", method {method}"));
    format!("Linerate {}: {plan}{method}", text::clean(&result.linerate_version))
}

fn when(result: &RunResult) -> String {
    format!("{}, {}", text::clean(&result.started_at), num::duration(result.elapsed_s))
}

fn link(result: &RunResult) -> String {
    result.link_bps.map_or_else(|| "link speed not known".to_owned(), |l| format!("link {l}bit/s"))
}

/// Each fact with its label.
fn setting(result: &RunResult) -> Vec<(&'static str, String)> {
    let ports: Vec<String> = result
        .ports
        .iter()
        .map(|p| {
            let driver = text::clean(&p.driver);
            let name = text::clean(&p.name);
            if driver.is_empty() {
                name
            } else {
                format!("{name} ({driver})")
            }
        })
        .collect();
    let ways = if result.directions > 1 { "both ways" } else { "one way" };
    let host = &result.host;
    let mut machine = vec![text::clean(&host.hostname), text::clean(&host.cpu_model)];
    machine.push(format!("{} CPUs allowed", host.cpus_allowed));
    machine.extend(host.hypervisor.as_deref().map(|h| format!("virtual ({})", text::clean(h))));
    machine.push(format!("kernel {}", text::clean(&host.kernel)));
    machine.push(format!("DPDK {}", text::clean(&host.dpdk_version)));
    machine.push(text::clean(&host.memory));
    machine.retain(|m| !m.is_empty());
    let mut setting = vec![
        ("DUT", names::dut(result)),
        ("ports", format!("{}; {ways}, {}", ports.join(", "), link(result))),
        ("host", machine.join(", ")),
        ("run", when(result)),
    ];
    // RFC 6985 §4 asks for the genome of a mix, and §5 for the table of its sizes.
    let average = |mix: &MixFacts| num::trim(mix.average_bytes, 2);
    let genome = |mix: &MixFacts| mix.frame_size_bytes.mix().map_or_else(String::new, |mix| text::clean(&mix.brief()));
    let mix = |mix: &MixFacts| format!("{}: {}, {} B on average", mix.frame_size_bytes, genome(mix), average(mix));
    setting.extend(result.mixes.iter().map(|m| ("mix", mix(m))));
    setting
}
