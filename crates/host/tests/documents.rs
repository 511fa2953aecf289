//! Every setting of the documents has a rule, is one of the firmware's settings that a rule knows, or is done by another part
//! of Linerate. The list follows the documents' order.

use host::rules;

/// What answers a setting.
enum By {
    /// A rule of the audit.
    Rule(&'static str),
    /// A setting of the firmware, all of which one rule knows.
    Firmware(&'static str),
    /// The plan's configuration, or the lab, which sets it and reads it back.
    Part(&'static str),
    /// Nothing that changes a figure.
    NoSetting(&'static str),
}

use By::{Firmware, NoSetting, Part, Rule};

const TWO_VM: &[(&str, &str, By)] = &[
    ("4.1.1", "clearcpuid=304", Rule("boot.avx512")),
    ("4.1.1", "default_hugepagesz=1G hugepagesz=1G hugepages=64", Rule("memory.large_hugepages")),
    ("4.1.1", "hugepagesz=2M hugepages=2048", Rule("memory.hugepages")),
    ("4.1.1", "processor.max_cstate=0", Rule("power.sleep")),
    ("4.1.1", "intel_pstate=disable", Rule("power.driver")),
    ("4.1.1", "hpet=disable", Rule("boot.hpet")),
    ("4.1.1", "nosoftlockup", Rule("kernel.watchdog")),
    ("4.1.1", "intel_idle.max_cstate=0", Rule("power.sleep")),
    ("4.1.1", "mce=ignore_ce", Rule("kernel.machine_checks")),
    ("4.1.1", "idle=poll", Rule("power.idle_poll")),
    ("4.1.1", "audit=0", Rule("boot.audit")),
    ("4.1.1", "isolcpus=1-21,23-43", Rule("cores.isolated")),
    ("4.1.1", "rcu_nocbs=1-21,23-43", Rule("cores.rcu_callbacks")),
    ("4.1.1", "nohz_full=1-21,23-43", Rule("cores.tickless")),
    ("4.1.1", "selinux=0 enforcing=0", Rule("boot.selinux")),
    ("4.1.1", "intel_iommu=on iommu=pt", Rule("boot.iommu")),
    ("4.1.1", "crashkernel=auto", Rule("programs.crash_dump")),
    ("4.1.1", "rd.lvm.lv=... rhgb quiet", NoSetting("where the root is, and how the boot looks")),
    ("4.1.1", "cores on the node of the NIC", Rule("cores.node")),
    ("4.1.1", "pmd-cpu-mask", Rule("switch.polling_cores")),
    ("4.1.1", "cores 0 and 22 for the operating system", Part("host plan --for nfvi-two-vm")),
    ("4.1.2", "skew_tick=1", Rule("boot.skew_tick")),
    ("4.1.2", "guests in hugepages of 1 GiB, locked", Part("lab show --libvirt, host plan --format libvirt")),
    ("4.1.2", "nosharepages", Rule("memory.same_pages")),
    ("4.1.2", "mount -t hugetlbfs", Rule("memory.mounts")),
    ("4.1.2", "HugePages_Total and _Free on each node", Rule("memory.hugepages")),
    ("4.1.2", "the boot line in dmesg", Rule("boot.line")),
    (
        "4.1.3",
        "queues='2', csum, gso, tso4, tso6, ecn, ufo, mrg_rxbuf off",
        Part("lab: negotiated virtio features are checked"),
    ),
    ("4.1.3", "offloads of host and guest", Rule("nic.offloads")),
    ("4.1.4", "n_rxq and pmd-rxq-affinity", Rule("switch.queues")),
    ("4.1.4", "pmd-rxq-show: isolated : true", Rule("switch.queues")),
    ("4.1.5", "vcpupin, cpuset", Part("host plan --format libvirt")),
    ("4.1.5", "host-passthrough, topology, pdpe1gb, numatune strict", Part("lab show --libvirt")),
    ("4.1.6", "tuned-adm profile network-latency", Rule("programs.tuned")),
    ("4.1.6", "force_latency of latency-performance", Rule("power.sleep")),
    ("4.1.6", "governor=performance, energy_perf_bias=performance, min_perf_pct=100", Rule("power.governor")),
    ("4.1.6", "energy_perf_bias of latency-performance", Rule("power.bias")),
    ("4.1.6", "vm.swappiness of latency-performance", Rule("memory.swap")),
    ("4.1.6", "transparent_hugepages=never of network-latency", Rule("memory.transparent_hugepages")),
    ("4.1.6", "net.core.busy_read, busy_poll of network-latency", Rule("nic.busy_polling")),
    ("4.1.6", "kernel.numa_balancing=0 of network-latency", Rule("memory.node_balancing")),
    ("4.1.7", "smp_affinity of the management NIC", Rule("interrupts.each")),
    ("4.2.1", "isolcpus in the guest", Rule("cores.isolated")),
    ("4.2.1", "hugepages in the guest", Rule("memory.hugepages")),
    ("4.2.2", "rx and tx desc=2048", Rule("nic.rings")),
    ("4.2.2", "two queues a port and core", Part("lab --queues 2")),
    ("Appendix A", "Workload Profile", Firmware("Workload Profile")),
    ("Appendix A", "Dynamic Power Capping Functionality", Firmware("Dynamic Power Capping Functionality")),
    ("Appendix A", "Opportunistic Self-Refresh", Firmware("Opportunistic Self-Refresh")),
    ("Appendix A", "Memory Remap", Firmware("Memory Remap")),
    ("Appendix A", "Persistent Memory Backup Power Policy", Firmware("Persistent Memory Backup Power Policy")),
    ("Appendix A", "Persistent Memory Integrity Check", Firmware("Persistent Memory Integrity Check")),
    ("Appendix A", "Persistent Memory Address Range Scrub", Firmware("Persistent Memory Address Range Scrub")),
    ("Appendix A", "Power Regulator", Firmware("Power Regulator")),
    ("Appendix A", "Core C-State", Firmware("Minimum Processor Idle Power Core C-State")),
    ("Appendix A", "Package C-State", Firmware("Minimum Processor Idle Power Package C-State")),
    ("Appendix A", "Turbo Boost", Rule("power.turbo")),
    ("Appendix A", "Energy/Performance Bias", Rule("power.bias")),
    ("Appendix A", "Energy/Performance Bias, in the menu", Firmware("Energy/Performance Bias")),
    ("Appendix A", "Collaborative Power Control", Firmware("Collaborative Power Control")),
    ("Appendix A", "DMI Link Frequency", Firmware("Intel DMI Link Frequency")),
    ("Appendix A", "NUMA Group Size Optimization", Firmware("NUMA Group Size Optimization")),
    ("Appendix A", "Performance Monitoring", Firmware("Intel Performance Monitoring Support")),
    ("Appendix A", "Uncore Frequency Scaling", Firmware("Uncore Frequency Scaling")),
    ("Appendix A", "Sub-NUMA Clustering", Rule("cores.nodes")),
    ("Appendix A", "Sub-NUMA Clustering, in the menu", Firmware("Sub-NUMA Clustering")),
    ("Appendix A", "Energy Efficient Turbo", Firmware("Energy Efficient Turbo")),
    ("Appendix A", "Local/Remote Threshold", Firmware("Local/Remote Threshold")),
    ("Appendix A", "LLC Dead Line Allocation", Firmware("LLC Dead Line Allocation")),
    ("Appendix A", "Stale A to S", Firmware("Stale A to S")),
    ("Appendix A", "HW Prefetcher", Firmware("HW Prefetcher")),
    ("Appendix A", "Adjacent Sector Prefetch", Firmware("Adjacent Sector Prefetch")),
    ("Appendix A", "DCU Stream Prefetcher", Firmware("DCU Stream Prefetcher")),
    ("Appendix A", "DCU IP Prefetcher", Firmware("DCU IP Prefetcher")),
    ("Appendix A", "LLC Prefetch", Firmware("LLC Prefetch")),
    ("Appendix A", "XPT Prefetcher", Firmware("XPT Prefetcher")),
    ("Appendix A", "ACPI SLIT", Firmware("ACPI SLIT")),
    ("Appendix A", "NIC DMA Channels (IOAT)", Firmware("Intel NIC DMA Channels (IOAT)")),
    ("Appendix A", "Memory Proximity Reporting for I/O", Firmware("Memory Proximity Reporting for I/O")),
    ("Appendix A", "UPI Link Enablement", Firmware("Intel UPI Link Enablement")),
    ("Appendix A", "UPI Link Power Management", Firmware("Intel UPI Link Power Management")),
    ("Appendix A", "UPI Link Frequency", Firmware("Intel UPI Link Frequency")),
    ("Appendix A", "UPI Prefetcher", Firmware("UPI Prefetcher")),
    ("Appendix A", "Direct to UPI (D2K)", Firmware("Direct to UPI (D2K)")),
    ("Appendix A", "Processor Jitter Control", Firmware("Processor Jitter Control")),
    ("Appendix A", "Redundant Power Supply Mode", Firmware("Redundant Power Supply Mode")),
    ("Appendix A", "Mixed Power Supply Reporting", Firmware("Mixed Power Supply Reporting")),
    ("Appendix A", "HPET ACPI Support", Rule("boot.hpet")),
    ("Appendix A", "Thermal Configuration", Rule("power.throttled")),
    ("Appendix A", "Thermal Configuration, in the menu", Firmware("Thermal Configuration")),
    ("Appendix A", "Thermal Shutdown", Firmware("Thermal Shutdown")),
    ("Appendix A", "Fan Installation Requirements", Firmware("Fan Installation Requirements")),
    ("Appendix A", "Fan Failure Policy", Firmware("Fan Failure Policy")),
    ("Appendix A", "Extended Ambient Temperature Support", Firmware("Extended Ambient Temperature Support")),
    ("Appendix A", "Memory Pre-Failure Notification", Firmware("Memory Pre-Failure Notification")),
    ("Appendix A", "Advanced RAS Recovery Support", Firmware("Advanced RAS Recovery Support")),
    ("Appendix A", "BDAT ACPI Support", Firmware("BDAT ACPI Support")),
    ("Appendix A", "Processor Monitor/Mwait Support", Firmware("Processor Monitor/Mwait Support")),
    ("Appendix A", "Hyper-Threading", Rule("cores.threads")),
    ("Appendix A", "x2APIC", Firmware("Processor x2APIC Support")),
    ("Appendix A", "VT", Firmware("Intel Virtualization Technology (Intel VT)")),
    ("Appendix A", "VT-d", Rule("boot.iommu")),
    ("Appendix A", "SR-IOV", Rule("nic.virtual_functions")),
    ("Appendix A", "Advanced Memory Protection", Firmware("Advanced Memory Protection")),
    ("Appendix A", "Power Profile", Rule("power.governor")),
    ("Appendix A", "QPI Link Power Management", Firmware("Intel QPI Link Power Management")),
    ("Appendix A", "QPI Link Frequency", Firmware("Intel QPI Link Frequency")),
    ("Appendix A", "QPI Link Enablement", Firmware("Intel QPI Link Enablement")),
    ("Appendix A", "Maximum Memory Bus Frequency, Channel Interleaving", Rule("firmware.memory")),
    ("Appendix A", "Maximum PCI Express Speed", Rule("pcie.link")),
    ("Appendix A", "Dynamic Power Savings Mode Response", Firmware("Dynamic Power Savings Mode Response")),
    ("Appendix A", "Node Interleaving", Firmware("Node Interleaving")),
    ("Appendix A", "QPI Snoop Configuration", Firmware("QPI Snoop Configuration")),
    ("Appendix A", "QPI Home Snoop Optimization", Firmware("QPI Home Snoop Optimization")),
    ("Appendix A", "QPI Bandwidth Optimization (RTID)", Firmware("QPI Bandwidth Optimization (RTID)")),
    ("Appendix A", "I/O Non-posted Prefetching", Firmware("I/O Non-posted Prefetching")),
    (
        "Appendix A",
        "Processor Power and Utilization Monitoring",
        Firmware("Processor Power and Utilization Monitoring"),
    ),
    ("Appendix A", "Shared Memory Communication", Firmware("Shared Memory Communication")),
    ("Appendix A", "Memory Patrol Scrubbing", Firmware("Memory Patrol Scrubbing")),
    ("Appendix A", "Memory Refresh Rate", Firmware("Memory Refresh Rate")),
    ("Appendix A", "Primary Riser PCIe x16 Bifurcation", Firmware("Primary Riser PCIe x16 Bifurcation")),
    ("Appendix A", "Hardware P-State Control", Firmware("Hardware P-State Control")),
];

const LOW_LATENCY: &[(&str, &str, By)] = &[
    ("ExaNIC Configuration", "port speed, signal detected, link active", Rule("nic.speed")),
    ("BIOS Configuration", "hyperthreading", Rule("cores.threads")),
    ("BIOS Configuration", "speedstep, power saving: cpu MHz below nominal", Rule("power.governor")),
    ("BIOS Configuration", "power saving: sleep", Rule("power.sleep")),
    ("BIOS Configuration", "microcode in /proc/cpuinfo", Rule("firmware.processor")),
    ("Kernel Build Configuration", "CONFIG_NO_HZ_FULL=y", Rule("kernel.preemption")),
    ("Kernel Boot Configuration", "isolcpus=2,3", Rule("cores.isolated")),
    ("Kernel Boot Configuration", "nohz_full=2,3", Rule("cores.tickless")),
    ("Kernel Boot Configuration", "rcu_nocbs=2,3", Rule("cores.rcu_callbacks")),
    ("Kernel Boot Configuration", "intel_idle.max_cstate=0", Rule("power.sleep")),
    ("Kernel Boot Configuration", "irqaffinity=0,1", Rule("interrupts.new")),
    ("Kernel Boot Configuration", "selinux=0", Rule("boot.selinux")),
    ("Kernel Boot Configuration", "audit=0", Rule("boot.audit")),
    ("Kernel Boot Configuration", "tsc=reliable", Rule("boot.tsc_reliable")),
    ("Kernel Boot Configuration", "cat /proc/cmdline", Rule("boot.line")),
    ("Hardware Configuration", "8.0 GT/s x8 (LnkSta)", Rule("pcie.link")),
    ("Hardware Configuration", "TrErr, link training", Rule("pcie.errors")),
    ("Hardware Configuration", "a processor root port", Rule("pcie.root_port")),
    ("Hardware Configuration", "cores of the NIC's node", Rule("cores.node")),
    ("Software Settings", "sched_rt_runtime_us = -1", Rule("kernel.realtime_throttling")),
    ("Software Settings", "the same of newer kernels", Rule("kernel.fair_server")),
    ("Software Settings", "kernel.watchdog = 0", Rule("kernel.watchdog")),
    ("Software Settings", "kernel.nmi_watchdog = 0", Rule("kernel.nmi_watchdog")),
    ("Software Settings", "default_smp_affinity = 3", Rule("interrupts.new")),
    ("Software Settings", "smp_affinity of every interrupt", Rule("interrupts.each")),
    ("Software Settings", "scaling_governor = performance", Rule("power.governor")),
    ("Software Settings", "machinecheck check_interval = 0", Rule("kernel.machine_checks")),
    ("raw frames", "taskset -c 2", Part("--core-plan")),
];

const ONP: &[(&str, &str, By)] = &[
    ("3.1", "processor, memory on 8 channels, BIOS version", Rule("firmware.memory")),
    ("3.1", "BIOS version", Rule("firmware.version")),
    ("3.2", "kernel, driver versions", Rule("boot.line")),
    ("3.2", "i40e version", Rule("nic.driver")),
    ("3.3", "hugepages of 1 GiB: 16, of 2 MiB: 2048", Rule("memory.large_hugepages")),
    ("3.3", "isolcpus = 1-17 or 1-17,19-35", Rule("cores.isolated")),
    ("3.3", "C-state", Firmware("C-state")),
    ("3.3", "P-state", Firmware("P-state")),
    ("3.3", "Hyper-Threading enabled and disabled", Rule("cores.threads")),
    ("3.3", "Turbo Boost disabled", Rule("power.turbo")),
    ("3.3", "SpeedStep disabled", Firmware("Enhanced Intel SpeedStep Technology")),
    ("3.3", "Energy Efficient Turbo disabled", Firmware("Energy Efficient Turbo")),
    ("3.3", "VT-x enabled", Firmware("Intel Virtualization Technology (Intel VT)")),
    ("3.3", "guest: hugepages, isolcpus = 1-2", Rule("cores.isolated")),
    ("3.4", "DPDK and Open vSwitch built with -Ofast -g", Part("versions of all programs stand in the result")),
    ("3.4", "CONFIG_RTE_BUILD_COMBINE_LIBS, VHOST, VHOST_USER", NoSetting("today's DPDK has no such options")),
    ("3.4", "RX and TX descriptors 2048", Rule("nic.rings")),
    ("3.5", "NetworkManager, dhclient", Rule("programs.network")),
    ("3.5", "firewalld, iptables", Rule("programs.firewall")),
    ("3.5", "irqbalance", Rule("interrupts.balancer")),
    ("3.5", "randomize_va_space = 0", Rule("kernel.address_layout")),
    ("3.5", "SELinux disabled", Rule("boot.selinux")),
    ("3.5", "ip_forward = 0", Rule("kernel.forwarding")),
    ("3.5", "rmmod ipmi_msghandler, ipmi_si, ipmi_devintf, lpc_ich, bridge", Rule("kernel.modules")),
    ("9.2", "isolcpus for Open vSwitch", Rule("cores.isolated")),
    ("9.3", "hugepages of 1 GiB, mounted", Rule("memory.mounts")),
    ("9.4", "pmd-cpu-mask", Rule("switch.polling_cores")),
    ("10.2", "intel_iommu=off", Rule("boot.iommu")),
    ("10.1", "ip_forward, randomize_va_space in sysctl.d", Rule("kernel.forwarding")),
];

const SMALL_ROUTER: &[(&str, &str, By)] = &[
    ("NICs", "5 GT/s x4 of x8", Rule("pcie.link")),
    ("NICs", "watts of each card", Part("power in every trial")),
    ("NICs", "payload size of the bus", Rule("pcie.payload")),
    ("DUT", "temperature", Rule("power.throttled")),
];

const FLOW_LOGGER: &[(&str, &str, By)] = &[
    ("NUMA", "cores and card on one node", Rule("cores.node")),
    ("NUMA", "sibling threads idle", Rule("cores.threads")),
];

#[test]
fn every_setting_of_the_documents_has_an_answer() {
    let documents = [TWO_VM, LOW_LATENCY, ONP, SMALL_ROUTER, FLOW_LOGGER];
    for (section, setting, by) in documents.into_iter().flatten() {
        match by {
            Rule(id) => {
                let rule = rules::find(id).unwrap_or_else(|| panic!("{section}: {setting}: no rule {id}"));
                assert!(!rule.asked.is_empty(), "{id} names who asks for it");
            }
            Firmware(name) => {
                assert!(rules::SETTINGS.iter().any(|known| known.name == *name), "{section}: {setting}: {name}");
            }
            Part(what) | NoSetting(what) => assert!(!what.is_empty()),
        }
    }
}

#[test]
fn every_setting_of_the_firmware_that_a_rule_knows_is_in_a_document() {
    let listed = [TWO_VM, ONP].into_iter().flatten().filter_map(|(.., by)| match by {
        Firmware(name) => Some(*name),
        _ => None,
    });
    let listed: Vec<&str> = listed.collect();
    // These are answered by a rule of their own.
    let own = [
        "Intel Turbo Boost Technology",
        "High Precision Event Timer (HPET) ACPI Support",
        "Intel Hyper-Threading Technology",
        "Intel Virtualization Technology for Directed I/O (Intel VT-d)",
        "SR-IOV",
        "Power Profile",
        "Maximum Memory Bus Frequency",
        "Channel Interleaving",
        "Maximum PCI Express Speed",
    ];
    for setting in rules::SETTINGS {
        assert!(listed.contains(&setting.name) || own.contains(&setting.name), "{}", setting.name);
    }
}

#[test]
fn ids_are_unique_and_read_as_words() {
    let mut seen = std::collections::BTreeSet::new();
    for rule in rules::all() {
        assert!(seen.insert(rule.id), "{} twice", rule.id);
        assert!(
            rule.id.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || "._".contains(c)),
            "{}",
            rule.id
        );
        assert!(!rule.why.is_empty() && !rule.why.ends_with('.'), "{}", rule.id);
    }
    assert!(seen.len() >= 60, "{}", seen.len());
}
