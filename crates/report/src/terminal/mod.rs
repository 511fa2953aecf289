//! What a person reads at the end of a run: tables, a picture, and why to believe them.

pub(crate) mod bars;
mod trial;
pub(crate) mod trust;

use std::path::PathBuf;

use measure::{
    result::{MixFacts, RunResult},
    trial::{Purpose, TrialRecord},
};

pub(crate) use trial::counts as trial_counts;
pub use trial::{render as render_trial, trial_line};

use crate::{num, procedures, runtime, style::Paint, tables, text, words, Style};

/// Over the table of an MLRsearch's goals.
pub(crate) const GOALS: &str = "Search goals (RFC 9971); figures of irregular results in brackets";

/// The whole report of a run. `files` are the documents already written. A result without frame sizes
/// (`linerate trial`) shows its trial instead of the tables.
pub fn render(result: &RunResult, style: &Style, files: &[PathBuf]) -> String {
    let mut out = header(result, style);
    if result.sizes.is_empty() {
        if let Some(trial) = single(result).filter(|_| result.tests.is_empty()) {
            out.push_str(&trial::render(result, trial, style));
        }
    } else {
        out.push_str(&style.heading(if result.directions > 1 { "Throughput, both ways" } else { "Throughput" }));
        out.push_str(&tables::throughput(result).text(style));
        for note in tables::notes(result) {
            out.push_str(&paragraph("", &text::styled(&note, style), Paint::Warn, style));
        }
        let goals = tables::goals(result);
        if !goals.is_empty() {
            out.push_str(&style.heading(GOALS));
            out.push_str(&goals.text(style));
        }
        if !tables::latency(result).is_empty() {
            out.push_str(&style.heading("One-way delay at the throughput, and its variation"));
            out.push_str(&tables::latency(result).text(style));
        }
        out.push_str(&bars::render(result, style));
        // One frame size is enough to see where the cycles go; the smallest has the least to do with memory.
        let least = || result.sizes.iter().min_by_key(|s| s.frame_size_bytes);
        let nodes = runtime::nodes(result, least());
        if !nodes.is_empty() {
            out.push_str(&style.heading("Inside the data plane, at the throughput"));
            out.push_str(&nodes.text(style));
            for line in runtime::sums(result, least()) {
                out.push_str(&paragraph("", &text::styled(&line, style), Paint::Plain, style));
            }
        }
    }
    for section in procedures::sections(result) {
        out.push_str(&style.heading(section.title));
        out.push_str(&section.table.text(style));
        for note in &section.notes {
            out.push_str(&paragraph("", &text::styled(note, style), Paint::Plain, style));
        }
    }
    out.push_str(&style.heading("Trust"));
    for fact in trust::facts(result) {
        out.push_str(&paragraph(fact.label, &text::styled(&fact.text, style), fact.paint, style));
    }
    for file in files {
        out.push_str(&paragraph("written", &text::styled(&file.to_string_lossy(), style), Paint::Plain, style));
    }
    out
}

/// The trial that `linerate trial` was asked for: its last try.
pub(crate) fn single(result: &RunResult) -> Option<&TrialRecord> {
    result.trials.iter().rev().find(|t| t.spec.purpose == Purpose::Single).or(result.trials.last())
}

fn header(result: &RunResult, style: &Style) -> String {
    let mut out = style.paint(Paint::Bold, &text::styled(&title(result), style));
    out.push('\n');
    for (label, value) in setting(result) {
        out.push_str(&paragraph(label, &text::styled(&value, style), Paint::Plain, style));
    }
    out
}

/// `Linerate 0.1.0: plan rfc2544-quick`.
pub(crate) fn title(result: &RunResult) -> String {
    format!("Linerate {}: {}", text::clean(&result.linerate_version), text::clean(&result.plan_name))
}

/// What was measured, where and when, each with its label.
pub(crate) fn setting(result: &RunResult) -> Vec<(&'static str, String)> {
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
    let link = result.link_bps.map_or_else(|| "link speed not known".to_owned(), |l| format!("link {l}bit/s"));
    let host = &result.host;
    let mut machine = vec![text::clean(&host.hostname), text::clean(&host.cpu_model)];
    machine.push(format!("{} CPUs allowed", host.cpus_allowed));
    machine.extend(host.hypervisor.as_deref().map(|h| format!("virtual ({})", text::clean(h))));
    machine.push(format!("kernel {}", text::clean(&host.kernel)));
    machine.push(format!("DPDK {}", text::clean(&host.dpdk_version)));
    machine.push(text::clean(&host.memory));
    machine.retain(|m| !m.is_empty());
    let mut setting = vec![
        ("DUT", text::clean(&result.dut)),
        ("ports", format!("{}; {ways}, {link}", ports.join(", "))),
        ("host", machine.join(", ")),
        ("run", format!("{}, {}", text::clean(&result.started_at), num::duration(result.elapsed_s))),
    ];
    // RFC 6985 §4 asks for the genome of a mix, and §5 for the table of its sizes.
    let average = |mix: &MixFacts| num::trim(mix.average_bytes, 2);
    let genome = |mix: &MixFacts| mix.frame_size_bytes.mix().map_or_else(String::new, |mix| text::clean(&mix.brief()));
    let mix = |mix: &MixFacts| format!("{}: {}, {} B on average", mix.frame_size_bytes, genome(mix), average(mix));
    setting.extend(result.mixes.iter().map(|m| ("mix", mix(m))));
    setting
}

/// A labelled paragraph that wraps under itself.
pub(crate) fn paragraph(label: &str, body: &str, paint: Paint, style: &Style) -> String {
    let indent = if label.is_empty() { 2 } else { 11 };
    let mut out = String::new();
    for (i, line) in text::wrap(body, style.width.saturating_sub(indent)).iter().enumerate() {
        let head = if i == 0 { format!("{label:<indent$}") } else { " ".repeat(indent) };
        out.push_str(&style.paint(Paint::Dim, &head));
        out.push_str(&style.paint(paint, line));
        out.push('\n');
    }
    out
}

/// The verdict alone, as words.
pub(crate) fn verdict(result: &RunResult) -> (&'static str, Paint) {
    words::verdict(result.standing.verdict())
}
