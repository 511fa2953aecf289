//! A plan as configuration of others: boot loader, sysctl, tuned, systemd, Open vSwitch, QEMU, libvirt, our own flags.

use super::{
    host_plan::{HostPlan, Step},
    persist,
};
use crate::{
    audit::Mend,
    core_plan::CorePlan,
    cpu_set::{self, CpuSet},
};

/// How a plan is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// The file that `host apply` takes.
    Plan,
    /// A drop-in of the boot loader (`/etc/default/grub.d`).
    Grub,
    /// A file of `sysctl.d`.
    Sysctl,
    /// A profile of tuned.
    Tuned,
    /// A unit of systemd.
    Systemd,
    /// Commands that make the changes, for a shell.
    Shell,
    /// Settings of Open vSwitch.
    Ovs,
    /// Pinning of QEMU's threads.
    Qemu,
    /// Elements of libvirt's domains.
    Libvirt,
    /// Flags of Linerate.
    Flags,
}

/// Writes a plan. `program` is the path of Linerate, for the unit.
///
/// # Errors
///
/// The plan cannot be written.
pub fn render(plan: &HostPlan, format: Format, program: &str) -> Result<String, String> {
    Ok(match format {
        Format::Plan => plan.to_text()?,
        Format::Grub => persist::grub_text(&plan.boot_words()),
        Format::Sysctl => persist::sysctl_text(&persist::sysctls(&plan.steps)),
        Format::Tuned => tuned(plan),
        Format::Systemd => format!(
            "# The plan that it applies: linerate host plan --out /etc/linerate/host-plan.toml\n{}",
            persist::service_text(program)
        ),
        Format::Shell => shell(&plan.steps),
        Format::Ovs => ovs(&plan.cores),
        Format::Qemu => qemu(&plan.cores),
        Format::Libvirt => libvirt(&plan.cores),
        Format::Flags => flags(&plan.cores),
    })
}

fn tuned(plan: &HostPlan) -> String {
    let mut text = String::from("# A profile of tuned: /etc/tuned/linerate/tuned.conf, then tuned-adm profile linerate\n[main]\nsummary=Packet forwarding, by linerate host plan\n");
    let keys = persist::sysctls(&plan.steps);
    if !keys.is_empty() {
        text += "\n[sysctl]\n";
        keys.iter().for_each(|(key, value)| text += &format!("{key}={value}\n"));
    }
    let files: Vec<(String, &String)> = plan
        .steps
        .iter()
        .filter_map(|step| match &step.change {
            Mend::Write { path, value } if !path.starts_with("/proc/sys") => Some((path.display().to_string(), value)),
            _ => None,
        })
        .collect();
    // tuned's plugin writes below /sys only.
    let (in_sys, elsewhere): (Vec<_>, Vec<_>) = files.into_iter().partition(|(path, _)| path.starts_with("/sys/"));
    if !in_sys.is_empty() {
        text += "\n[sysfs]\n";
        in_sys.iter().for_each(|(path, value)| text += &format!("{path}={value}\n"));
    }
    if !elsewhere.is_empty() {
        text += "\n# tuned cannot write these: linerate host apply, or --format systemd\n";
        elsewhere.iter().for_each(|(path, value)| text += &format!("# echo {value} > {path}\n"));
    }
    let services = plan.steps.iter().filter_map(|step| match &step.change {
        Mend::Stop { service } => Some(service.strip_suffix(".service").unwrap_or(service)),
        _ => None,
    });
    let services: Vec<&str> = services.collect();
    if !services.is_empty() {
        text += "\n[service]\n";
        services.iter().for_each(|service| text += &format!("service.{service}=stop\n"));
    }
    let by_hand = |step: &&Step| matches!(step.change, Mend::Command { .. } | Mend::Hand { .. });
    let by_hand: Vec<&Step> = plan.steps.iter().filter(by_hand).collect();
    if !by_hand.is_empty() {
        text += "\n# left to you:\n";
        by_hand.iter().for_each(|step| text += &format!("# {}\n", step.change.text()));
    }
    let words = plan.boot_words();
    if !words.is_empty() {
        text += &format!("\n[bootloader]\ncmdline_linerate={}\n", words.join(" "));
    }
    text
}

fn shell(steps: &[Step]) -> String {
    let mut text = String::new();
    for step in steps {
        text += &format!("# {}: {}\n", step.id, step.why);
        match step.change.needs_reboot() {
            true => text += &format!("#   by hand: {}\n", step.change.text()),
            false => text += &format!("{}\n", step.change.text()),
        }
    }
    text
}

fn ovs(cores: &CorePlan) -> String {
    let mut text = String::new();
    let set = |key: &str, cpus: &CpuSet| {
        format!("ovs-vsctl set Open_vSwitch . other_config:{key}=0x{}\n", cpu_set::to_hex(cpus))
    };
    let main = if cores.switch.is_empty() { &cores.housekeeping } else { &cores.switch };
    if cores.pmds.is_empty() {
        return "# the plan has no polling threads of a switch: linerate host plan --for nfvi-two-vm\n".to_owned();
    }
    text += &set("dpdk-lcore-mask", main);
    text += &set("pmd-cpu-mask", &cores.pmds);
    // As in the document: receive queue q of port p on the polling thread of its turn.
    let pmds: Vec<u32> = cores.pmds.iter().copied().collect();
    text += "# receive queues: port n's queue q on the polling thread n + 2q\n";
    let queues = (pmds.len() / 2).max(1);
    for port in 0..2usize {
        let places: Vec<String> = (0..queues).map(|q| format!("{q}:{}", pmds[(port + 2 * q) % pmds.len()])).collect();
        text += &format!(
            "ovs-vsctl set Interface dpdk{port} options:n_rxq={queues} other_config:pmd-rxq-affinity=\"{}\"\n",
            places.join(",")
        );
    }
    text
}

fn qemu(cores: &CorePlan) -> String {
    if cores.guests.is_empty() {
        return "# the plan has no guests: linerate host plan --for nfvi-two-vm\n".to_owned();
    }
    let mut text = format!(
        "# threads of QEMU by their ids (QMP: query-cpus-fast); all others on CPU {}\n",
        cpu_set::to_list(&cores.housekeeping)
    );
    for (n, cpus) in cores.guests.iter().enumerate() {
        for (vcpu, cpu) in cpus.iter().enumerate() {
            text += &format!("taskset -pc {cpu} \"$VM{}_VCPU{vcpu}\"\n", n + 1);
        }
    }
    text
}

fn libvirt(cores: &CorePlan) -> String {
    if cores.guests.is_empty() {
        return "<!-- the plan has no guests: linerate host plan, for nfvi-two-vm -->\n".to_owned();
    }
    let mut text = String::new();
    for (n, cpus) in cores.guests.iter().enumerate() {
        let list = cpu_set::to_list(cpus);
        text += &format!(
            "<!-- guest {} -->\n<vcpu placement='static' cpuset='{list}'>{}</vcpu>\n<cputune>\n",
            n + 1,
            cpus.len()
        );
        for (vcpu, cpu) in cpus.iter().enumerate() {
            text += &format!("  <vcpupin vcpu='{vcpu}' cpuset='{cpu}'/>\n");
        }
        let rest = cpu_set::to_list(&cores.housekeeping);
        text += &format!("  <emulatorpin cpuset='{rest}'/>\n</cputune>\n<numatune>\n  <memory mode='strict' nodeset='{}'/>\n</numatune>\n", cores.node);
    }
    text
}

fn flags(cores: &CorePlan) -> String {
    let mut text = String::from("# each of these commands also takes --core-plan FILE\n");
    let list = |cpus: &CpuSet| cpus.iter().map(u32::to_string).collect::<Vec<_>>().join(",");
    if !cores.data_plane.is_empty() {
        text += &format!("linerate forward --cpus {0}\nlinerate flowlog --cpus {0}\n", list(&cores.data_plane));
    }
    if !cores.pmds.is_empty() {
        text += &format!("linerate lab up TOPOLOGY --pmd-cpus {}\n", list(&cores.pmds));
    }
    if !cores.tester.is_empty() {
        let first = |flag: &str, cpus: &CpuSet| cpus.first().map_or_else(String::new, |cpu| format!(" {flag} {cpu}"));
        let (tester, device) = (first("--tester-cpu", &cores.tester), first("--dut-cpu", &cores.data_plane));
        text += &format!("linerate bench{tester}{device}\n");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan() -> HostPlan {
        let cpus = cpu_set::from_list;
        let cores = CorePlan {
            housekeeping: cpus("0,22"),
            switch: cpus("1"),
            pmds: cpus("2-5"),
            guests: vec![cpus("19-21"), cpus("16-18")],
            data_plane: cpus("6"),
            tester: cpus("7"),
            ..CorePlan::default()
        };
        let step = |change| Step { id: "a.b".into(), why: "why".into(), change, interrupt: None };
        let write = |path: &str, value: &str| step(Mend::Write { path: path.into(), value: value.into() });
        let steps = vec![
            write("/proc/sys/kernel/watchdog", "0"),
            write("/sys/kernel/mm/ksm/run", "0"),
            step(Mend::Stop { service: "irqbalance.service".into() }),
            step(Mend::Command { command: "ethtool -G eth0 rx 4096".into() }),
            step(Mend::Boot { word: "isolcpus=managed_irq,domain,1-7".into() }),
            step(Mend::Boot { word: "nohz_full=1-7".into() }),
        ];
        HostPlan { version: 1, cores, steps }
    }

    #[test]
    fn each_format_holds_what_it_is_for() {
        let text = |format| render(&plan(), format, "/usr/bin/linerate").unwrap();
        assert!(text(Format::Grub).ends_with("GRUB_CMDLINE_LINUX_DEFAULT=\"$GRUB_CMDLINE_LINUX_DEFAULT isolcpus=managed_irq,domain,1-7 nohz_full=1-7\"\n"));
        assert!(text(Format::Sysctl).ends_with("\nkernel.watchdog = 0\n"));
        let tuned = text(Format::Tuned);
        assert!(
            tuned.contains("[sysctl]\nkernel.watchdog=0\n") && tuned.contains("[sysfs]\n/sys/kernel/mm/ksm/run=0\n"),
            "{tuned}"
        );
        assert!(tuned.ends_with("[bootloader]\ncmdline_linerate=isolcpus=managed_irq,domain,1-7 nohz_full=1-7\n"));
        assert!(text(Format::Systemd)
            .contains("ExecStart=/usr/bin/linerate host apply --plan /etc/linerate/host-plan.toml\n"));
        assert!(text(Format::Shell).contains("\nsysctl -w kernel.watchdog=0\n"));
        // The document's own commands for four polling threads (4.1.4.2).
        let ovs = text(Format::Ovs);
        for line in [
            "pmd-cpu-mask=0x3c",
            "dpdk0 options:n_rxq=2 other_config:pmd-rxq-affinity=\"0:2,1:4\"",
            "dpdk1 options:n_rxq=2 other_config:pmd-rxq-affinity=\"0:3,1:5\"",
        ] {
            assert!(ovs.contains(line), "{line}: {ovs}");
        }
        assert!(text(Format::Libvirt).contains("<vcpupin vcpu='2' cpuset='21'/>"));
        assert!(text(Format::Qemu).contains("taskset -pc 16 \"$VM2_VCPU0\""));
        assert!(tuned.contains("\n[service]\nservice.irqbalance=stop\n"), "{tuned}");
        assert!(tuned.contains("\n# left to you:\n# ethtool -G eth0 rx 4096\n"), "{tuned}");
        assert!(text(Format::Flags).contains("--pmd-cpus 2,3,4,5"));
        assert!(text(Format::Flags).ends_with("\nlinerate bench --tester-cpu 7 --dut-cpu 6\n"));
        assert_eq!(HostPlan::parse(&text(Format::Plan)), Ok(plan()));
        let bare = HostPlan { cores: CorePlan::default(), ..plan() };
        for format in [Format::Ovs, Format::Qemu, Format::Libvirt] {
            assert!(render(&bare, format, "x").unwrap().contains("nfvi-two-vm"));
        }
    }
}
