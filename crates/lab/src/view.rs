//! What `linerate lab` prints.

use crate::{
    build::Build,
    counters::Counts,
    diagram,
    needs::Machine,
    options::{GuestKind, LabOptions},
    protocol::{Checked, Status},
    topology::{self, Topology},
};

/// Every built-in topology: what it is, where it comes from, and whether this machine can run it. `options` says what its guests
/// and kernels would be here.
pub fn list(machine: &Machine, options: &dyn Fn(&Topology) -> LabOptions) -> String {
    let mut out = String::new();
    let width = topology::names().map(str::len).max().unwrap_or(0);
    for name in topology::names() {
        let Ok(topology) = topology::load(name) else { continue };
        let source = if topology.source.is_empty() { String::new() } else { format!(" ({})", topology.source) };
        out.push_str(&format!("{name:<width$}  {}{source}\n", topology.description));
        let options = machine.memory_for(&topology, options(&topology));
        let needs = machine.needs(&topology, &options);
        let (met, missing): (Vec<_>, Vec<_>) = needs.into_iter().partition(|need| need.met);
        let met: Vec<_> = met.into_iter().map(|need| need.what).collect();
        out.push_str(&format!("    needs    {}\n", met.join("; ")));
        if missing.is_empty() {
            let kernel = options.kernels.accelerator().filter(|_| !topology.kernel.is_empty());
            let how = match kernel {
                None => "",
                Some("kvm") => ", in a virtual machine: this machine's kernel cannot",
                Some(_) => ", emulated: this machine's kernel cannot, and rates of an emulated one mean nothing",
            };
            out.push_str(&format!("    here     can run{how}\n"));
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
    out.push_str(&machines(&build.topology, &build.options));
    out
}

/// What guests and kernels are, where they are virtual machines, and where memory is ordinary pages.
pub fn machines(topology: &Topology, options: &LabOptions) -> String {
    let line = |what: &str, kind: GuestKind, nodes: usize| match kind.accelerator().filter(|_| nodes > 0) {
        None => String::new(),
        Some("kvm") => format!("{what:<9} virtual machines (KVM)\n"),
        Some(_) => format!("{what:<9} emulated virtual machines: their rates mean nothing\n"),
    };
    let takes_none = topology.switch.is_empty() && topology.guest.is_empty();
    let ordinary = !(options.hugepages || takes_none);
    let memory = if ordinary { "memory    ordinary pages, without hugepages\n" } else { "" };
    line("guests", options.guests, topology.guest.len())
        + &line("kernels", options.kernels, topology.kernel.len())
        + memory
}

/// Who polls where.
pub(crate) fn cpus(build: &Build) -> String {
    let cpus = &build.cpus;
    let list = |cpus: &[u32]| cpus.iter().map(u32::to_string).collect::<Vec<_>>().join(",");
    let mut out = format!("CPUs      tester {}, control {}", cpus.tester, cpus.control);
    if !cpus.pmds.is_empty() {
        out.push_str(&format!(", switch {}", list(&cpus.pmds)));
    }
    for (name, polling) in &cpus.guests {
        out.push_str(&format!(", {name} {}", list(polling)));
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
    out + &machines(topology, &status.options) + &shared(&status.cpus.shared)
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::GuestKind;

    #[test]
    fn ordinary_memory_is_told_of_what_takes_any() {
        let told = |name: &str, hugepages: bool| {
            !machines(&topology::load(name).unwrap(), &LabOptions { hugepages, ..LabOptions::default() }).is_empty()
        };
        for name in ["phy-phy", "phy-ovs-phy", "phy-vm-phy"] {
            assert_eq!([told(name, true), told(name, false)], [false, true], "{name}");
        }
        assert!(!told("kernel-bridge", false), "no hugepages in any case");
    }

    #[test]
    fn the_list_says_what_would_be_emulated() {
        let options = |topology: &Topology| {
            let native = topology.name == "ovs-kernel";
            let kernels = if native { GuestKind::Tcg } else { GuestKind::Process };
            LabOptions { kernels, ..LabOptions::default() }
        };
        let programs =
            ["qemu-system-x86_64", "ip", "ethtool", "sysctl", "unshare", "nsenter"].map(str::to_owned).into();
        let (root, guest_kernel) = (true, Some("6.1".to_owned()));
        let machine = Machine {
            programs,
            hugepages: 0,
            free_hugepages: 0,
            root,
            guest_kernel,
            user_namespaces: true,
            memory_mib: None,
        };
        let text = list(&machine, &options);
        let of =
            |name: &str| text.split("\n").skip_while(|l| !l.starts_with(name)).take(3).collect::<Vec<_>>().join("\n");
        insta::assert_snapshot!([of("ovs-kernel"), of("kernel-bridge")].join("\n"));
    }
}
