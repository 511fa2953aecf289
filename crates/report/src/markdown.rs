//! The report as Markdown, whole, for an issue or a wiki: tables, trust, the plan, the host and every trial.

use measure::result::RunResult;

use crate::{
    figures, num, procedures, runtime, tables,
    terminal::{self, trust},
    text::{code, markdown as escape},
    windows, words, Style,
};

/// The document. Text from outside stays text: no markup, no HTML, no broken table.
pub fn render(result: &RunResult) -> String {
    let mut out = format!("# {}\n\n", escape(&terminal::title(result)));
    out.push_str(&format!("**Verdict: {}**\n\n", words::verdict(result.standing.verdict()).0));
    for (label, value) in terminal::setting(result) {
        out.push_str(&format!("- {label}: {}\n", code(&value)));
    }
    if result.sizes.is_empty() {
        if let Some(trial) = terminal::single(result).filter(|_| result.tests.is_empty()) {
            section(&mut out, "Trial");
            out.push_str(&format!(
                "{} at {} for {}{}: {}\n\n",
                words::size(&trial.spec),
                trial.spec.load_fps,
                num::duration(trial.spec.duration_s),
                words::shape(&trial.spec.shape).map_or_else(String::new, |shape| format!(", {shape}")),
                tables::validity(trial)
            ));
            for v in &trial.violations {
                out.push_str(&format!("- {}\n", escape(&v.text)));
            }
            out.push_str(&format!("\n{}", terminal::trial_counts(result, trial).markdown()));
            match trial.directions.iter().any(|d| d.replay.is_some()) {
                true => out.push_str(&format!("\nOne-way delay: {}\n", words::NO_STAMP)),
                false => out.push_str(&format!("\n{}", tables::trial_latency(trial).markdown())),
            }
            let windows = windows::table(trial);
            if !windows.is_empty() {
                section(&mut out, &windows::title(trial));
                out.push_str(&windows.markdown());
            }
        }
    } else {
        section(&mut out, if result.directions > 1 { "Throughput, both ways" } else { "Throughput" });
        out.push_str(&tables::throughput(result).markdown());
        out.push('\n');
        for note in tables::notes(result) {
            out.push_str(&format!("- {}\n", escape(&note)));
        }
        let picture = terminal::bars::render(result, &Style::PIPE);
        if !picture.is_empty() {
            out.push_str(&format!("\n```text\n{}\n```\n", picture.trim()));
        }
        let goals = tables::goals(result);
        if !goals.is_empty() {
            section(&mut out, terminal::GOALS);
            out.push_str(&goals.markdown());
        }
        let latency = tables::latency(result);
        if !latency.is_empty() {
            section(&mut out, "One-way delay at the throughput, and its variation");
            out.push_str(&latency.markdown());
        }
        let nodes = runtime::nodes(result, &result.sizes);
        if !nodes.is_empty() {
            section(&mut out, "Inside the data plane, at the throughput");
            out.push_str(&nodes.markdown());
            out.push('\n');
            for line in runtime::sums(result, &result.sizes) {
                out.push_str(&format!("- {}\n", escape(&line)));
            }
            section(&mut out, "The data plane by load");
            out.push_str(&runtime::by_load(result).markdown());
        }
    }
    for test in procedures::sections(result) {
        section(&mut out, test.title);
        out.push_str(&test.table.markdown());
        out.push('\n');
        for note in &test.notes {
            out.push_str(&format!("- {}\n", escape(note)));
        }
    }
    section(&mut out, "Trust");
    for fact in trust::facts(result) {
        out.push_str(&format!("- **{}**: {}\n", fact.label, escape(&fact.text)));
    }
    host(&mut out, result);
    details(&mut out, "Plan", &fenced(&serde_json::to_string_pretty(&result.effective_plan).unwrap_or_default()));
    details(&mut out, &trials_title(result), &trials(result));
    out
}

fn section(out: &mut String, title: &str) {
    out.push_str(&format!("\n## {title}\n\n"));
}

fn details(out: &mut String, title: &str, body: &str) {
    out.push_str(&format!("\n<details><summary>{title}</summary>\n\n{}\n\n</details>\n", body.trim_end()));
}

fn trials_title(result: &RunResult) -> String {
    let tally = figures::TrialTally::of(&result.trials);
    format!("Trials: {} run, {} invalid", tally.run, tally.invalid)
}

fn trials(result: &RunResult) -> String {
    let mut out = tables::trials(result).markdown();
    for trial in result.trials.iter().filter(|t| !t.violations.is_empty()) {
        for v in &trial.violations {
            out.push_str(&format!("\n- trial {} {}: {}", trial.number, words::rule(v.rule), escape(&v.text)));
        }
    }
    out
}

fn host(out: &mut String, result: &RunResult) {
    let h = &result.host;
    let mut body = String::from("| fact | value |\n| :-- | :-- |\n");
    let mut row = |name: &str, value: &str| {
        if !value.trim().is_empty() {
            body.push_str(&format!("| {} | {} |\n", escape(name), code(value)));
        }
    };
    row("host name", &h.hostname);
    row("CPU", &h.cpu_model);
    row("CPUs allowed", &h.cpus_allowed.to_string());
    row("hypervisor", h.hypervisor.as_deref().unwrap_or("none seen"));
    row("kernel", &h.kernel);
    row("DPDK", &h.dpdk_version);
    row("memory", &h.memory);
    row(
        "TSC",
        &format!("{} MHz, {}", h.tsc_hz / 1_000_000, if h.tsc_invariant { "invariant" } else { "not invariant" }),
    );
    for (name, value) in &h.extra {
        row(name, value);
    }
    for port in &result.ports {
        let link = port.link_bps.map_or_else(|| "link not reported".to_owned(), |l| format!("link {l}bit/s"));
        let (rx, tx) = port.descriptors;
        row("port", &format!("{} {} {} {link}, {rx} rx and {tx} tx descriptors", port.name, port.driver, port.mac));
    }
    details(out, "Host", &body);
}

/// A code block whose fence is longer than any run of backticks in it.
fn fenced(body: &str) -> String {
    let body: String = body.lines().map(|l| crate::text::clean_indented(l) + "\n").collect();
    let longest = body.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat((longest + 1).max(3));
    format!("{fence}json\n{body}{fence}\n")
}
