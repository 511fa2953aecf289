//! What a topology needs from the machine, and what of it is missing.

use std::{fs, path::Path, process::Command};

use crate::{
    build::VSWITCHD,
    memory,
    options::LabOptions,
    topology::{KernelRole, Topology},
    vm::kernel::{self, Kernel},
};

/// What runs virtual machines.
const QEMU: &str = "qemu-system-x86_64";

/// One thing that a topology needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Need {
    /// What it is.
    pub what: String,
    /// Whether the machine has it.
    pub met: bool,
    /// The command that mends it.
    pub remedy: String,
}

/// The machine as far as labs look at it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Machine {
    /// Programs that were found.
    pub programs: Vec<String>,
    /// Hugepages of 2 MiB, and how many of them are free.
    pub hugepages: u64,
    /// Free ones.
    pub free_hugepages: u64,
    /// Whether this user is root.
    pub root: bool,
    /// The kernel that guests would boot.
    pub guest_kernel: Option<String>,
    /// Whether an ordinary user may make user namespaces.
    pub user_namespaces: bool,
    /// Memory that programs can have without swapping, MiB; `None` if the kernel does not say.
    pub memory_mib: Option<u64>,
}

/// Programs that a topology may need, and their Debian packages.
const PROGRAMS: [(&str, &str); 10] = [
    (QEMU, "qemu-system-x86"),
    (VSWITCHD, "openvswitch-switch-dpdk"),
    ("ovsdb-server", "openvswitch-switch-dpdk"),
    ("ovs-vsctl", "openvswitch-switch-dpdk"),
    ("dpdk-testpmd", "dpdk-dev"),
    ("ip", "iproute2"),
    ("ethtool", "ethtool"),
    ("sysctl", "procps"),
    ("unshare", "util-linux"),
    ("nsenter", "util-linux"),
];

impl Machine {
    /// Looks at this machine.
    pub fn read() -> Self {
        let path = std::env::var("PATH").unwrap_or_default() + ":/usr/local/sbin:/usr/sbin:/sbin";
        let found = |program: &str| match program.starts_with('/') {
            true => Path::new(program).exists(),
            false => path.split(':').any(|dir| Path::new(dir).join(program).exists()),
        };
        let number = |file: &str| fs::read_to_string(file).ok().and_then(|text| text.trim().parse::<u64>().ok());
        let pages = |name: &str| number(&format!("/sys/kernel/mm/hugepages/hugepages-2048kB/{name}")).unwrap_or(0);
        Self {
            programs: PROGRAMS
                .iter()
                .filter(|(program, _)| found(program))
                .map(|(program, _)| (*program).to_owned())
                .collect(),
            hugepages: pages("nr_hugepages"),
            free_hugepages: pages("free_hugepages").saturating_sub(pages("resv_hugepages")),
            guest_kernel: Kernel::find().map(|kernel| kernel.release),
            root: rustix::process::getuid().is_root(),
            memory_mib: host::outcome::available_memory(&host::Roots::default()).map(|bytes| bytes >> 20),
            user_namespaces: may_make_user_namespaces(
                number("/proc/sys/user/max_user_namespaces"),
                number("/proc/sys/kernel/unprivileged_userns_clone"),
            ),
        }
    }

    /// What this topology needs, in the order in which it is best mended.
    pub fn needs(&self, topology: &Topology, options: &LabOptions) -> Vec<Need> {
        let testpmd = topology.guest.iter().filter(|guest| guest.application.testpmd_mode().is_some()).count();
        let mut programs = vec!["unshare", "nsenter"];
        if !topology.switch.is_empty() {
            programs.extend([VSWITCHD, "ovsdb-server", "ovs-vsctl"]);
        }
        if testpmd > 0 {
            programs.push("dpdk-testpmd");
        }
        let guests = options.guests.accelerator().filter(|_| !topology.guest.is_empty());
        let kernels = options.kernels.accelerator().filter(|_| !topology.kernel.is_empty());
        let machines = guests.or(kernels);
        if machines.is_some() {
            programs.push(QEMU);
        }
        if !topology.kernel.is_empty() {
            programs.extend(["ip", "ethtool", "sysctl"]);
        }
        if topology.switch.iter().any(|switch| !switch.tunnel.is_empty()) {
            programs.push("ip");
        }
        let mut needs = vec![match options.phy.is_empty() {
            true => Need {
                what: "root or user namespaces".to_owned(),
                met: self.root || self.user_namespaces,
                remedy: "sudo sysctl user.max_user_namespaces=1000, or run it as root".to_owned(),
            },
            false => Need {
                what: "root (NICs are taken from their drivers)".to_owned(),
                met: self.root,
                remedy: "run it as root".to_owned(),
            },
        }];
        for (program, package) in PROGRAMS.iter().filter(|(program, _)| programs.contains(program)) {
            let name = program.rsplit('/').next().unwrap_or(program);
            needs.push(Need {
                what: name.to_owned(),
                met: self.programs.iter().any(|found| found == program),
                remedy: format!("sudo apt-get install -y {package}"),
            });
        }
        if machines.is_some() {
            let found = self.guest_kernel.as_ref().map(|release| format!(" ({release})")).unwrap_or_default();
            needs.push(Need {
                what: format!("a kernel for guests{found}"),
                met: self.guest_kernel.is_some(),
                remedy: kernel::REMEDY.to_owned(),
            });
        }
        let mib = memory::ordinary_mib(topology, options);
        if let Some(free) = self.memory_mib.filter(|_| mib > 0) {
            let less = if machines.is_some() { "less with --guest-memory" } else { "end what takes it" };
            needs.push(Need {
                what: format!("{mib} MiB of memory ({free} are free)"),
                met: mib <= free,
                remedy: less.to_owned(),
            });
        }
        needs.extend(self.hugepages(topology, options));
        needs
    }

    /// The same choice with ordinary memory where an ordinary user lacks hugepages, which only root can make.
    pub fn memory_for(&self, topology: &Topology, options: LabOptions) -> LabOptions {
        let lacks = |options: &LabOptions| self.hugepages(topology, options).is_some_and(|need| !need.met);
        let ordinary = !self.root && options.phy.is_empty() && lacks(&options);
        LabOptions { hugepages: options.hugepages && !ordinary, ..options }
    }

    /// The hugepages of a lab, and those of its tester: it does with ordinary memory, but the remedy is for both.
    fn hugepages(&self, topology: &Topology, options: &LabOptions) -> Option<Need> {
        let pages = memory::needed_mib(topology, options) / 2;
        let tester = if options.tester_elsewhere { 0 } else { memory::TESTER_MIB / 2 };
        let more = if tester == 0 { String::new() } else { format!(", {tester} more for the tester") };
        let used = self.hugepages.saturating_sub(self.free_hugepages);
        // NICs do not go without.
        let or = if options.phy.is_empty() { ", or --no-huge" } else { "" };
        (pages > 0).then(|| Need {
            what: format!(
                "{pages} free hugepages of 2 MiB{more} ({} of {} are free)",
                self.free_hugepages, self.hugepages
            ),
            met: self.free_hugepages >= pages,
            remedy: format!("sudo sysctl vm.nr_hugepages={}{or}", used + pages + tester),
        })
    }
}

/// By the kernel's limit, and by the switch that Debian's kernel has beside it.
fn may_make_user_namespaces(most: Option<u64>, unprivileged: Option<u64>) -> bool {
    most.unwrap_or(0) > 0 && unprivileged.unwrap_or(1) > 0
}

/// Whether this machine's kernel cannot be what a topology has as one: native Open vSwitch needs its module.
pub fn lacks_kernel(topology: &Topology) -> bool {
    topology.kernel.iter().any(|node| node.role == KernelRole::Ovs) && !has_module("openvswitch")
}

fn has_module(name: &str) -> bool {
    let known = || {
        Command::new("modprobe")
            .args(["--quiet", "--dry-run", name])
            .env("PATH", "/usr/sbin:/sbin:/usr/bin:/bin")
            .status()
    };
    Path::new("/sys/module").join(name).exists() || known().is_ok_and(|status| status.success())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topology;

    fn unmet(machine: &Machine, name: &str) -> Vec<String> {
        let topology = topology::load(name).unwrap();
        let needs = machine.needs(&topology, &LabOptions::default());
        needs.into_iter().filter(|need| !need.met).map(|need| format!("{}: {}", need.what, need.remedy)).collect()
    }

    #[test]
    fn virtual_machines_need_what_runs_and_boots_them() {
        use crate::options::GuestKind;
        let bare = Machine {
            programs: PROGRAMS.iter().map(|(program, _)| (*program).to_owned()).filter(|name| name != QEMU).collect(),
            hugepages: 2048,
            free_hugepages: 2048,
            root: true,
            guest_kernel: None,
            user_namespaces: false,
            memory_mib: Some(24_000),
        };
        let unmet = |name: &str, guests: GuestKind, kernels: GuestKind| {
            let topology = topology::load(name).unwrap();
            let needs = bare.needs(&topology, &LabOptions { guests, kernels, ..LabOptions::default() });
            needs.into_iter().filter(|need| !need.met).map(|need| need.what).collect::<Vec<_>>()
        };
        let full = Machine { memory_mib: Some(2047), ..bare.clone() };
        let two = topology::load("phy-vm-vm-phy").unwrap();
        let memory = |machine: &Machine, guests: GuestKind, guest_mib: u32| {
            let needs = machine.needs(&two, &LabOptions { guests, guest_mib, ..LabOptions::default() });
            needs.into_iter().find(|need| need.what.contains("MiB of memory")).map(|need| need.met)
        };
        // Two guests of 1,024 MiB do not fit into 2,047.
        let kvm = LabOptions::default().hugepages;
        assert_eq!([1024, 1023].map(|mib| memory(&full, GuestKind::Tcg, mib)), [Some(false), Some(true)]);
        assert_eq!(
            (kvm, memory(&full, GuestKind::Kvm, 1024), memory(&full, GuestKind::Process, 1024)),
            (true, None, None)
        );
        assert_eq!(memory(&Machine { memory_mib: None, ..bare.clone() }, GuestKind::Tcg, 1024), None, "unknown");
        let machines = [QEMU, "a kernel for guests"];
        let (process, tcg) = (GuestKind::Process, GuestKind::Tcg);
        assert_eq!(unmet("phy-vm-phy", tcg, process), machines);
        assert_eq!(unmet("phy-vm-phy", GuestKind::Kvm, process), machines);
        assert_eq!(unmet("kernel-bridge", process, tcg), machines);
        // Neither has any of the other kind.
        for (name, guests, kernels) in
            [("phy-vm-phy", process, tcg), ("kernel-bridge", tcg, process), ("phy-ovs-phy", tcg, tcg)]
        {
            assert_eq!(unmet(name, guests, kernels), Vec::<String>::new(), "{name}");
        }
    }

    #[test]
    fn a_topology_needs_no_program_that_it_does_not_start() {
        let needed = |name: &str| {
            let machine = Machine { programs: Vec::new(), ..Machine::read() };
            let needs = machine.needs(&topology::load(name).unwrap(), &LabOptions::default());
            let known = |what: &String| PROGRAMS.iter().any(|(program, _)| program.ends_with(what.as_str()));
            needs.into_iter().map(|need| need.what).filter(known).collect::<Vec<_>>()
        };
        let vswitchd = VSWITCHD.rsplit('/').next().unwrap();
        let always = ["unshare", "nsenter"];
        let switch = [vswitchd, "ovsdb-server", "ovs-vsctl"];
        assert_eq!(needed("phy-ovs-phy"), [&switch[..], &always].concat());
        assert_eq!(needed("phy-vm-phy"), [&switch[..], &["dpdk-testpmd"], &always].concat());
        assert_eq!(needed("vxlan"), [&switch[..], &["dpdk-testpmd", "ip"], &always].concat());
        assert_eq!(needed("kernel-router"), [&["ip", "ethtool", "sysctl"][..], &always].concat());
    }

    #[test]
    fn user_namespaces_are_there_unless_one_of_two_settings_forbids_them() {
        let may = may_make_user_namespaces;
        assert!(may(Some(1), None) && may(Some(15_000), Some(1)));
        assert!(!may(None, None) && !may(Some(0), Some(1)) && !may(Some(1), Some(0)));
    }

    #[test]
    fn a_module_is_known_to_the_kernel_or_not() {
        // Every kernel with modules has some loaded, or built in with parameters.
        let loaded = fs::read_dir("/sys/module").unwrap().flatten().next().unwrap();
        assert!(has_module(&loaded.file_name().to_string_lossy()));
        assert!(!has_module("linerate_has_no_module"));
        let without = topology::load("kernel-bridge").unwrap();
        assert!(!lacks_kernel(&without), "a bridge needs no module of its own");
        assert_eq!(lacks_kernel(&topology::load("ovs-kernel").unwrap()), !has_module("openvswitch"));
    }

    #[test]
    fn what_is_missing_comes_with_its_remedy() {
        let bare = Machine {
            programs: Vec::new(),
            hugepages: 512,
            free_hugepages: 36,
            root: false,
            guest_kernel: None,
            user_namespaces: false,
            memory_mib: Some(24_000),
        };
        insta::assert_snapshot!(unmet(&bare, "phy-vm-vm-phy").join("\n"));
        insta::assert_snapshot!(unmet(&bare, "kernel-bridge").join("\n"));
        let programs = PROGRAMS.iter().map(|(program, _)| (*program).to_owned()).collect();
        let guest_kernel = Some("6.1".to_owned());
        let full = Machine {
            programs,
            hugepages: 2048,
            free_hugepages: 2048,
            root: true,
            guest_kernel,
            user_namespaces: false,
            memory_mib: Some(24_000),
        };
        for name in topology::names() {
            assert_eq!(unmet(&full, name), Vec::<String>::new(), "{name}");
        }
        let user = Machine { root: false, user_namespaces: true, ..full };
        for name in topology::names() {
            assert_eq!(unmet(&user, name), Vec::<String>::new(), "{name}");
        }
        // NICs are taken from their drivers by root.
        let nics = LabOptions { phy: vec!["a".into(), "b".into()], ..LabOptions::default() };
        let root = |machine: &Machine| machine.needs(&topology::load("phy-ovs-phy").unwrap(), &nics)[0].met;
        let remedy = |options: &LabOptions| {
            let none = Machine { free_hugepages: 0, ..Machine::read() };
            none.needs(&topology::load("phy-ovs-phy").unwrap(), options).pop().unwrap().remedy
        };
        assert!(remedy(&LabOptions::default()).contains("--no-huge") && !remedy(&nics).contains("--no-huge"));
        assert!(!root(&user) && root(&Machine { root: true, user_namespaces: false, ..user }));
    }

    #[test]
    fn an_ordinary_user_without_hugepages_has_ordinary_memory() {
        let topology = topology::load("phy-vm-phy").unwrap();
        let huge = |root: bool, free_hugepages: u64, options: LabOptions| {
            let machine = Machine { root, free_hugepages, ..Machine::read() };
            machine.memory_for(&topology, options).hugepages
        };
        let usual = LabOptions::default;
        let needed = memory::needed_mib(&topology, &usual()) / 2;
        assert!(huge(false, needed, usual()) && !huge(false, needed - 1, usual()));
        assert!(huge(true, 0, usual()), "root can make them, and is told how");
        assert!(huge(false, 0, LabOptions { phy: vec!["a".into(), "b".into()], ..usual() }), "NICs take hugepages");
        assert!(!huge(false, needed, LabOptions { hugepages: false, ..usual() }), "as asked for");
    }

    #[test]
    fn ordinary_memory_must_be_free() {
        let ordinary = LabOptions { hugepages: false, ..LabOptions::default() };
        let met = |memory_mib: u64, options: &LabOptions| {
            let machine = Machine { memory_mib: Some(memory_mib), ..Machine::read() };
            let needs = machine.needs(&topology::load("phy-vm-phy").unwrap(), options);
            needs.into_iter().find(|need| need.what.contains("MiB of memory")).map(|need| (need.met, need.remedy))
        };
        let end = || "end what takes it".to_owned();
        assert_eq!(met(1024, &ordinary), Some((true, end())));
        assert_eq!(met(1023, &ordinary), Some((false, end())));
        assert_eq!(met(0, &LabOptions::default()), None, "all of it is hugepages");
    }
}
