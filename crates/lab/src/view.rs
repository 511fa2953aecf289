//! What `linerate lab` prints.

use crate::{
    build::Build,
    counters::Counts,
    diagram,
    needs::Machine,
    options::LabOptions,
    protocol::{Checked, Status},
    topology::{self, Topology},
};

/// Every built-in topology: what it is, where it comes from, and whether this machine can run it.
pub fn list(machine: &Machine) -> String {
    let mut out = String::new();
    let width = topology::names().map(str::len).max().unwrap_or(0);
    for name in topology::names() {
        let Ok(topology) = topology::load(name) else { continue };
        let source = if topology.source.is_empty() { String::new() } else { format!(" ({})", topology.source) };
        out.push_str(&format!("{name:<width$}  {}{source}\n", topology.description));
        let needs = machine.needs(&topology, &LabOptions::default());
        let (met, missing): (Vec<_>, Vec<_>) = needs.into_iter().partition(|need| need.met);
        let met: Vec<_> = met.into_iter().map(|need| need.what).collect();
        out.push_str(&format!("    needs    {}\n", met.join(", ")));
        if missing.is_empty() {
            out.push_str("    here     can run\n");
        }
        for need in missing {
            out.push_str(&format!("    missing  {}: {}\n", need.what, need.remedy));
        }
    }
    out
}

/// A topology before it is started: its picture, its ports and its CPUs.
pub fn show(build: &Build) -> String {
    let Topology { name, description, .. } = &build.topology;
    let mut out = format!("{name}: {description}\n\n{}\n", diagram::render(&build.topology));
    for (n, port) in build.tester.ports.iter().enumerate() {
        out.push_str(&format!("tester:{n}  --port {port}\n"));
    }
    out.push_str(&cpus(build));
    out
}

fn cpus(build: &Build) -> String {
    let cpus = &build.cpus;
    let list = |cpus: &[u32]| cpus.iter().map(u32::to_string).collect::<Vec<_>>().join(",");
    let mut out = format!("CPUs      tester {}, control {}", cpus.tester, cpus.control);
    if !cpus.pmds.is_empty() {
        out.push_str(&format!(", switch {}", list(&cpus.pmds)));
    }
    for (name, cpu) in &cpus.guests {
        out.push_str(&format!(", {name} {cpu}"));
    }
    out.push('\n');
    out + &shared(&cpus.shared)
}

/// Says that polling threads share CPUs, if they do.
fn shared(cpus: &[u32]) -> String {
    match cpus {
        [] => String::new(),
        _ => {
            let list = cpus.iter().map(u32::to_string).collect::<Vec<_>>().join(", ");
            format!(
                "too few CPUs: polling threads share CPU {list}, so rates are lower and losses come from the sharing; a machine \
                 with a CPU for each has other figures\n"
            )
        }
    }
}

/// A lab that is up.
pub fn status(status: &Status) -> String {
    let Status { name, topology, holder, up_s, ready_ms, .. } = status;
    let mut out = format!(
        "lab {name}: {}, up for {up_s} s, ready in {:.1} s, held by process {holder}\n\n{}\n",
        topology.description,
        *ready_ms as f64 / 1e3,
        diagram::render(topology)
    );
    out.push_str("program     process  threads and their CPUs\n");
    for program in &status.programs {
        let pid = program.pid.map_or_else(|| "-".to_owned(), |pid| pid.to_string());
        let mut threads: Vec<String> = Vec::new();
        for (name, cpus) in &program.threads {
            let text = format!("{name} {cpus}");
            if !threads.contains(&text) {
                threads.push(text);
            }
        }
        let threads = program.ended.as_ref().map_or_else(|| threads.join(", "), |how| format!("ended: {how}"));
        out.push_str(&format!("{:<11} {pid:>7}  {threads}\n", program.name));
    }
    out + &shared(&status.cpus.shared)
}

/// The counters of every port; `-` where one cannot be read.
pub fn counters(all: &Counts) -> String {
    let mut out = format!("{:<12} {:>14} {:>14} {:>12} {:>12}\n", "port", "in", "out", "in dropped", "out dropped");
    let text = |n: Option<u64>| n.map_or_else(|| "-".to_owned(), |n| n.to_string());
    for (name, counts) in all {
        out.push_str(&format!(
            "{name:<12} {:>14} {:>14} {:>12} {:>12}\n",
            text(counts.rx),
            text(counts.tx),
            text(counts.rx_dropped),
            text(counts.tx_dropped)
        ));
    }
    out
}

/// What was checked, a line each; of what is wrong also the command, its answer, and what to do.
pub fn checked(all: &[Checked]) -> String {
    let mut out = String::new();
    for check in all {
        let word = match (check.met, check.only_while_measured) {
            (true, _) => "ok",
            (false, true) => "later",
            (false, false) => "WRONG",
        };
        out.push_str(&format!("{word:<6} {}\n", check.what));
        if !check.command.is_empty() {
            out.push_str(&format!("       {}\n", check.command));
        }
        if word == "later" {
            out.push_str("       holds only while the tester measures\n");
        }
        if word == "WRONG" {
            for line in check.printed.lines().filter(|line| !line.trim().is_empty()).take(12) {
                out.push_str(&format!("         {}\n", line.trim_end()));
            }
            out.push_str(&format!("       do: {}\n", check.remedy));
        }
    }
    out
}
