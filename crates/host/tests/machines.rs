//! Machines as they are out there, and what the audit says of each: recordings in `machines/`, and beside the snapshots what a
//! person would say.
#![allow(clippy::unwrap_used, clippy::panic)]

use std::{collections::BTreeSet, fs, path::PathBuf};

use host::{
    audit::{Finding, Mend, Verdict},
    core_plan::{CorePlan, Purpose, Shape},
    machine::Machine,
    rules, Recording, Roots,
};
use tempfile::TempDir;

/// A recorded machine with a plan, and what was found.
struct Audited {
    machine: Machine,
    plan: CorePlan,
    nics: Vec<String>,
    roots: Roots,
    findings: Vec<Finding>,
    // The tree is there as long as this is.
    tree: TempDir,
}

fn tree(text: &str) -> (TempDir, Roots) {
    let dir = tempfile::tempdir().unwrap();
    Recording::parse(text).unwrap().unpack(dir.path()).unwrap();
    let roots = Roots::at(dir.path());
    (dir, roots)
}

fn audited(text: &str, purpose: Purpose, node: Option<u32>, nics: &[&str]) -> Audited {
    let (dir, roots) = tree(text);
    let machine = Machine::read(&roots);
    let shape = Shape { node, ..Shape::of(purpose) };
    let plan = CorePlan::make(&machine, &shape).unwrap_or_else(|_| CorePlan::squeezed(&machine, None));
    assert_eq!(plan.misfit(&machine), None);
    let nics: Vec<String> = nics.iter().map(|&nic| nic.to_owned()).collect();
    let findings = rules::audit(&roots, &machine, &plan, &nics);
    Audited { machine, plan, nics, roots, findings, tree: dir }
}

impl Audited {
    fn of(&self, id: &str) -> Vec<&Finding> {
        assert!(rules::find(id).is_some(), "no rule {id}");
        self.findings.iter().filter(|finding| finding.id == id).collect()
    }

    /// What a rule says, when it says the same everywhere.
    fn verdict(&self, id: &str) -> Verdict {
        let all = self.of(id);
        let first = all.first().unwrap_or_else(|| panic!("{id} says nothing")).verdict;
        assert!(all.iter().all(|finding| finding.verdict == first), "{id}: {all:#?}");
        first
    }

    fn at(&self, id: &str, place: &str) -> &Finding {
        let found = self.of(id).into_iter().find(|finding| finding.place == place);
        found.unwrap_or_else(|| panic!("{id} at {place}: {:#?}", self.of(id)))
    }

    fn each(&self, verdict: Verdict, ids: &[&str]) {
        for id in ids {
            assert_eq!(self.verdict(id), verdict, "{id}: {:#?}", self.of(id));
        }
    }

    /// Rules that found something bad, each once.
    fn bad(&self) -> Vec<&str> {
        let mut ids: Vec<&str> =
            self.findings.iter().filter(|f| f.verdict == Verdict::Bad).map(|f| f.id.as_str()).collect();
        ids.dedup();
        ids
    }

    fn mends(&self, id: &str) -> Vec<String> {
        self.of(id).iter().flat_map(|finding| finding.mend.iter().map(|mend| mend.text())).collect()
    }

    fn lines(&self) -> String {
        let line = |finding: &Finding| {
            format!("{} {} {}", finding.id, finding.verdict.word(), finding.place).trim_end().to_owned()
        };
        self.findings.iter().map(line).collect::<Vec<_>>().join("\n")
    }

    /// The files that the open findings write.
    fn written(&self) -> BTreeSet<PathBuf> {
        let written = |mend: &Mend| match mend {
            Mend::Write { path, .. } => Some(path.clone()),
            _ => None,
        };
        self.findings.iter().filter(|f| f.is_open()).flat_map(|f| f.mend.iter().filter_map(written)).collect()
    }
}

/// What holds on each machine, and all that was found, beside this file.
fn held(name: &str, found: Audited) -> Audited {
    insta::assert_snapshot!(name, found.lines());
    let squeezed = CorePlan::squeezed(&found.machine, None);
    let findings = rules::audit(&found.roots, &found.machine, &squeezed, &found.nics);
    for finding in findings.iter().filter(|finding| finding.is_open()) {
        assert!(finding.mend.iter().all(|mend| !mend.text().ends_with([',', '='])), "{finding:?}");
    }
    each_rule_says_something(&found);
    what_is_open_says_what_is_wanted_and_what_mends_it(&found);
    a_recording_of_the_recording_is_the_same_machine(&found);
    what_is_absent_is_not_wrong(found)
}

fn each_rule_says_something(found: &Audited) {
    for rule in rules::all() {
        assert!(!found.of(rule.id).is_empty(), "{} says nothing", rule.id);
    }
    let mut seen = BTreeSet::new();
    for finding in &found.findings {
        assert!(seen.insert((&finding.id, &finding.place)), "twice in one place: {finding:?}");
    }
}

fn what_is_open_says_what_is_wanted_and_what_mends_it(found: &Audited) {
    for finding in found.findings.iter().filter(|finding| finding.is_open()) {
        assert!(!finding.got.is_empty() && !finding.want.is_empty(), "{finding:?}");
        assert!(!finding.mend.is_empty(), "{finding:?}");
        assert!(finding.mend.iter().all(|mend| !mend.text().trim().is_empty()), "{finding:?}");
        // A word for the boot line with an empty list would be taken for none.
        assert!(finding.mend.iter().all(|mend| !mend.text().ends_with([',', '='])), "{finding:?}");
    }
}

fn a_recording_of_the_recording_is_the_same_machine(found: &Audited) {
    let roots = Roots::at(found.tree.path()).recording();
    let machine = Machine::read(&roots);
    rules::audit(&roots, &machine, &found.plan, &found.nics);
    let (_dir, again) = tree(&roots.recorded().to_text());
    let machine = Machine::read(&again);
    assert_eq!(machine, found.machine);
    assert_eq!(rules::audit(&again, &machine, &found.plan, &found.nics), found.findings);
}

/// Files that would mend something are taken away, all of them: none is wished for any more.
fn what_is_absent_is_not_wrong(found: Audited) -> Audited {
    let written = found.written();
    for path in &written {
        let at = found.tree.path().join(path.strip_prefix("/").unwrap());
        assert!(at.is_file(), "would write {path:?}, which is not there");
        fs::remove_file(at).unwrap();
    }
    let findings = rules::audit(&found.roots, &found.machine, &found.plan, &found.nics);
    let without = Audited { findings, ..found };
    let again: Vec<_> = without.written().intersection(&written).cloned().collect();
    assert!(again.is_empty(), "{again:?}");
    Audited { findings: found.findings, ..without }
}

#[test]
fn the_tuned_server_of_the_document() {
    let nics = ["0000:12:00.0", "0000:37:00.0"];
    let found = held(
        "xeon-two-sockets",
        audited(include_str!("machines/xeon-two-sockets.txt"), Purpose::NfviTwoVm, Some(0), &nics),
    );
    assert_eq!(found.bad(), [""; 0]);
    // As table 6 has it.
    let roles: Vec<String> = found.plan.roles().iter().map(|(role, cpus)| format!("{role}: {}", list(cpus))).collect();
    let wanted = ["operating system: 0,22", "switch: 1", "polling threads: 2-3", "guest 1: 19-21", "guest 2: 16-18"];
    assert_eq!(roles, wanted);
    // What the document sets.
    let ok = ["cores.isolated", "cores.tickless", "cores.rcu_callbacks", "cores.threads", "cores.node", "boot.iommu"];
    found.each(Verdict::Ok, &ok);
    found.each(Verdict::Ok, &["boot.skew_tick", "clock.source", "kernel.machine_checks", "power.throttled"]);
    found.each(Verdict::Ok, &["memory.hugepages", "memory.large_hugepages", "memory.mounts", "memory.node_balancing"]);
    found.each(Verdict::Ok, &["memory.same_pages", "memory.swap", "programs.tuned", "pcie.link", "pcie.root_port"]);
    found.each(Verdict::Ok, &["switch.polling_cores", "switch.queues", "pcie.payload"]);
    // Never joins pages, so how it would does not matter.
    found.each(Verdict::Ok, &["memory.transparent_hugepages"]);
    // The kernel keeps watchdogs away from tickless cores, and irqbalance keeps itself away from isolated ones.
    found.each(Verdict::Ok, &["kernel.watchdog", "kernel.nmi_watchdog", "interrupts.balancer"]);
    // A process begins on CPU 0 or 22, and may go anywhere.
    found.each(Verdict::Ok, &["cores.allowed"]);
    // idle=poll and the firmware leave the kernel nothing to set.
    found.each(Verdict::NotApplicable, &["power.governor", "power.frequency", "power.sleep", "kernel.fair_server"]);
    // What KVM does to guests that spin is set where its modules are loaded.
    let spins = found.at("kvm.exits", "/sys/module/kvm_intel/parameters/ple_gap");
    assert_eq!((spins.verdict, spins.got.as_str(), spins.want.as_str()), (Verdict::Warn, "128", "0"));
    assert_eq!(found.at("kvm.exits", "/sys/module/kvm/parameters/kvmclock_periodic_sync").verdict, Verdict::Warn);
    assert_eq!(found.at("kvm.memory_and_halt", "/sys/module/kvm/parameters/halt_poll_ns").got, "200000");
    // A program has the NICs.
    found.each(Verdict::NotApplicable, &["nic.speed", "nic.rings", "nic.pause", "nic.offloads"]);
    // Nothing comes to busy cores; those of the disks have been placed there by their driver and are silent.
    assert!(found.of("interrupts.each").iter().all(|f| matches!(f.verdict, Verdict::Noted | Verdict::Ok)));
    assert_eq!(found.at("interrupts.each", "/proc/irq").got, "42 interrupts stay away from busy cores");
    let disk = found.at("interrupts.each", "/proc/irq/61/smp_affinity_list (smartpqi)");
    assert!(disk.mend.iter().all(|mend| matches!(mend, Mend::Boot { .. })), "a write would fail: {disk:?}");
    let timer = found.at("interrupts.each", "/proc/irq/0/smp_affinity_list (timer)");
    assert!(timer.mend.is_empty() && timer.verdict == Verdict::Noted);
    // What the document leaves as it was.
    let left = [
        "cores.rcu_polled",
        "boot.tsc_reliable",
        "boot.aspm",
        "kernel.realtime_throttling",
        "kernel.statistics",
        "kvm.exits",
    ];
    found.each(Verdict::Warn, &left);
    found.each(Verdict::Warn, &["interrupts.new", "interrupts.work", "interrupts.timers"]);
    let open: BTreeSet<&str> = found.findings.iter().filter(|f| f.is_open()).map(|f| f.id.as_str()).collect();
    assert_eq!(open.len(), left.len() + 3, "{open:?}");
    assert!(found.mends("interrupts.new").contains(&"boot with irqaffinity=0,22".to_owned()));
}

#[test]
fn the_same_server_untuned() {
    let nics = ["0000:05:00.0", "0000:86:00.0"];
    let found =
        held("xeon-untuned", audited(include_str!("machines/xeon-untuned.txt"), Purpose::NfviTwoVm, Some(0), &nics));
    let wanted =
        ["cores.isolated", "cores.node", "power.governor", "interrupts.balancer", "memory.hugepages", "pcie.link"];
    assert_eq!(found.bad(), wanted);
    assert_eq!(found.mends("cores.isolated"), ["boot with isolcpus=managed_irq,domain,1-21,23-43"]);
    // One of its NICs is at the other socket, one is in a bad slot.
    assert_eq!(found.at("cores.node", "0000:05:00.0").verdict, Verdict::Ok);
    assert_eq!(found.at("cores.node", "0000:86:00.0").verdict, Verdict::Bad);
    let slot = found.at("pcie.link", "0000:05:00.0");
    assert_eq!((slot.verdict, slot.want.as_str()), (Verdict::Bad, "14.88 Mpps of the wire"));
    assert!(
        slot.got.starts_with("5 GT/s x4: at most 12.") && slot.got.ends_with("(limited by 0000:00:1c.4)"),
        "{slot:?}"
    );
    assert_eq!(found.at("pcie.link", "0000:86:00.0").verdict, Verdict::Ok);
    assert_eq!(found.at("pcie.root_port", "0000:05:00.0").verdict, Verdict::Warn);
    assert_eq!(found.at("pcie.payload", "0000:05:00.0").verdict, Verdict::Warn);
    // The second NIC is told of too.
    assert_eq!(found.at("pcie.errors", "0000:05:00.0").verdict, Verdict::Warn);
    assert_eq!(found.at("pcie.errors", "0000:86:00.0").verdict, Verdict::Ok);
    let warn =
        ["cores.tickless", "cores.rcu_callbacks", "power.frequency", "power.preference", "power.bias", "power.sleep"];
    found.each(Verdict::Warn, &warn);
    found.each(Verdict::Warn, &["boot.iommu", "kernel.watchdog", "kernel.nmi_watchdog", "kernel.machine_checks"]);
    found.each(
        Verdict::Warn,
        &["memory.node_balancing", "memory.swap", "memory.compaction", "nic.rings", "interrupts.work"],
    );
    found.each(Verdict::Warn, &["kernel.realtime_throttling"]);
    assert_eq!(found.at("memory.transparent_hugepages", "/sys/kernel/mm/transparent_hugepage/enabled").got, "always");
    // C1 is quick enough; C1E and C6 are not, and the deepest is named.
    assert_eq!(found.at("power.sleep", "cpu 1").got, "C6 takes 133 us to leave");
    // The first one has no pages: 512 of 2 MiB, on the node of the plan.
    let pages = "echo 512 > /sys/devices/system/node/node0/hugepages/hugepages-2048kB/nr_hugepages";
    assert_eq!(found.mends("memory.hugepages"), [pages]);
    // A kernel of this age trusts the TSC of this processor by itself.
    found.each(Verdict::Ok, &["boot.tsc_reliable", "clock.source", "cores.threads"]);
    // Of an interrupt of the management NIC that may go to each core of the node, where it goes counts.
    let management = found.at("interrupts.each", "/proc/irq/151/smp_affinity_list (eno1-rx-1)");
    assert_eq!(management.got, "CPU 2, 93101 times since boot");
    assert_eq!(management.mend[0].text(), "echo 0,22 > /proc/irq/151/smp_affinity_list");
    // A queue of the disk that may go to CPUs 0 to 5 goes to CPU 1.
    let disk = found.at("interrupts.each", "/proc/irq/41/smp_affinity_list (nvme0q1)");
    assert_eq!((disk.verdict, disk.got.as_str()), (Verdict::Warn, "CPU 1, 937 times since boot; its driver places it"));
    assert_eq!(disk.mend.len(), 1);
    assert!(disk.mend[0].text().contains("managed_irq"));
}

#[test]
fn a_server_with_four_nodes_and_threads() {
    let found = held("epyc", audited(include_str!("machines/epyc.txt"), Purpose::Bench, Some(2), &["0000:81:00.0"]));
    assert_eq!((found.machine.nodes.len(), found.plan.node), (4, 2));
    let node =
        |named: &[&str]| found.machine.node_of_nics(&named.iter().map(|nic| nic.to_string()).collect::<Vec<_>>());
    assert_eq!((node(&["0000:81:00.0"]), node(&[])), (Some(2), None), "the NICs are on two nodes");
    assert_eq!(
        (list(&found.plan.data_plane), list(&found.plan.tester), list(&found.plan.idle)),
        ("9".into(), "10".into(), "25-26".into())
    );
    assert_eq!(found.bad(), ["cores.isolated", "power.governor", "interrupts.balancer", "memory.hugepages"]);
    // The plan has no guests, so that what KVM does is only told.
    let filter = found.at("kvm.exits", "/sys/module/kvm_amd/parameters/pause_filter_count");
    assert_eq!((filter.verdict, filter.got.as_str()), (Verdict::Noted, "3000"));
    assert_eq!(found.at("kvm.exits", "/sys/module/kvm/parameters/kvmclock_periodic_sync").verdict, Verdict::Ok);
    // Frames of queue 0 go to both cores that poll. Who may send by a queue is only told.
    let queue = |queue: &str| format!("/sys/class/net/enp129s0f0np0/queues/{queue}");
    let steered = found.at("nic.steering", &queue("rx-0/rps_cpus"));
    assert_eq!((steered.verdict, steered.got.as_str()), (Verdict::Warn, "CPU 9-10"));
    assert_eq!(found.mends("nic.steering"), [format!("echo 0 > {}", queue("rx-0/rps_cpus"))]);
    assert_eq!(found.at("nic.steering", &queue("tx-0/xps_cpus")).verdict, Verdict::Noted);
    assert_eq!(found.of("nic.steering").len(), 2, "queue 1 has no mask");
    assert_eq!(found.of("nic.error_correction")[0].got, "RS");
    let function = |n: u32| found.at("nic.virtual_functions", &format!("enp129s0f0np0 function {n}")).got.clone();
    assert_eq!([function(0), function(1)], ["spoof checking off, trust on", "spoof checking on, trust off"]);
    found.each(Verdict::Ok, &["cores.node", "pcie.link", "pcie.root_port", "pcie.payload", "pcie.errors", "nic.rings"]);
    assert_eq!(found.at("memory.hugepages", "node 2").verdict, Verdict::Bad);
    assert_eq!(found.at("power.governor", "/sys/devices/system/cpu/cpu9/cpufreq/scaling_governor").got, "schedutil");
    // AMD: no intel_idle to switch off, and neither a preference nor a bias of energy.
    let sleep = found.at("power.sleep", "cpu 9");
    assert_eq!((sleep.verdict, sleep.got.as_str()), (Verdict::Warn, "C2 takes 800 us to leave"));
    let mends: Vec<String> = sleep.mend.iter().map(Mend::text).collect();
    let write = "echo n/a > /sys/devices/system/cpu/cpu9/power/pm_qos_resume_latency_us";
    assert_eq!(mends, [write, "boot with processor.max_cstate=1"]);
    found.each(Verdict::NotApplicable, &["power.preference", "power.bias", "power.throttled", "boot.avx512"]);
    assert_eq!(found.at("cores.threads", "cpu 25").verdict, Verdict::Warn);
    // The newer kernel takes its share by the fair server.
    found.each(Verdict::Warn, &["kernel.fair_server", "boot.iommu", "boot.tsc_reliable"]);
    // Only older kernels have it.
    found.each(Verdict::NotApplicable, &["kernel.realtime_throttling"]);
    assert_eq!(found.at("boot.iommu", "/sys/class/iommu").got, "DMA-FQ");
    assert_eq!(found.mends("boot.iommu"), ["boot with iommu=pt"]);
    // The driver of the NIC leaves its interrupts to others, that of the disk does not.
    let nic = found.at("interrupts.each", "/proc/irq/111/smp_affinity_list (mlx5_comp10@pci:0000:81:00.0)");
    assert!(matches!(nic.mend[..], [Mend::Write { .. }]), "{nic:?}");
    assert_eq!(found.at("interrupts.each", "/proc/irq/59/smp_affinity_list (nvme0q11)").verdict, Verdict::Noted);
}

#[test]
fn a_small_router() {
    let found = held(
        "atom",
        audited(include_str!("machines/atom.txt"), Purpose::Flowlog, None, &["0000:01:00.0", "0000:02:00.0"]),
    );
    assert_eq!(found.bad(), ["cores.isolated", "power.governor", "kernel.realtime_throttling"]);
    found.each(
        Verdict::NotApplicable,
        &["memory.large_hugepages", "cores.node", "power.preference", "nic.virtual_functions"],
    );
    assert_eq!(found.mends("memory.hugepages"), ["echo 512 > /sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages"]);
    found.each(
        Verdict::Warn,
        &["memory.hugepages", "power.throttled", "power.sleep", "nic.pause", "nic.rings", "memory.swap"],
    );
    assert_eq!(found.of("power.throttled")[0].got, "41 times since boot");
    // The card has one lane and the slot has one: no other slot helps.
    found.each(Verdict::Warn, &["pcie.link"]);
    assert_eq!(found.of("pcie.link")[0].mend[0].text(), "another card: 0000:01:00.0 has no more lanes");
    // All root ports are the chipset's.
    found.each(Verdict::Noted, &["pcie.root_port"]);
    assert_eq!(found.at("pcie.errors", "0000:01:00.0").verdict, Verdict::Ok);
    assert_eq!(found.at("pcie.errors", "0000:02:00.0").verdict, Verdict::Warn);
    let [empty, slow] = &found.of("firmware.memory")[..] else { panic!("{:?}", found.of("firmware.memory")) };
    let wanted = ("1 of 2 slots, 8 GiB; no module on Controller0-ChannelB", "a module on each channel");
    assert_eq!((empty.got.as_str(), empty.want.as_str()), wanted);
    assert_eq!((slow.got.as_str(), slow.want.as_str()), ("1 of 2 slots, 8 GiB; 2933 MT/s", "3200 MT/s"));
}

#[test]
fn a_laptop() {
    let found = held("laptop", audited(include_str!("machines/laptop.txt"), Purpose::LowLatency, None, &[]));
    assert_eq!((list(&found.plan.tester), list(&found.plan.idle)), ("1-2".into(), "5-6".into()));
    assert_eq!(found.bad(), ["cores.isolated", "power.governor", "kernel.realtime_throttling", "interrupts.balancer"]);
    assert_eq!(found.at("power.sleep", "cpu 1").got, "C3_ACPI takes 1048 us to leave");
    assert_eq!(
        found.at("power.preference", "/sys/devices/system/cpu/cpu1/cpufreq/energy_performance_preference").got,
        "balance_performance"
    );
    // TLP leaves no process, but a file.
    assert_eq!(found.at("programs.power_savers", "tlp").mend[0].text(), "systemctl stop tlp.service");
    assert_eq!(found.at("programs.power_savers", "thermald").verdict, Verdict::Warn);
    found.each(Verdict::Warn, &["memory.swap", "boot.aspm", "boot.iommu", "power.throttled"]);
    // The Wi-Fi is in the processor: there is no link and no slot.
    found.each(Verdict::NotApplicable, &["pcie.link", "pcie.root_port", "pcie.payload", "pcie.errors"]);
    assert_eq!(found.of("nic.speed")[0].got, "a link; does not say its speed");
    // The vendor's driver shows settings of the firmware, by its own names.
    let threads = found.at("firmware.settings", "HyperThreadingTechnology");
    assert_eq!((threads.verdict, threads.want.as_str()), (Verdict::Noted, "Disabled"));
}

#[test]
fn a_virtual_machine() {
    let found =
        held("virtual-machine", audited(include_str!("machines/virtual-machine.txt"), Purpose::Bench, None, &[]));
    assert_eq!(found.machine.virtual_machine.as_deref(), Some("QEMU"));
    for rule in rules::all().filter(|rule| rule.bare_metal) {
        assert_eq!(found.verdict(rule.id), Verdict::NotApplicable, "{}", rule.id);
        assert_eq!(found.of(rule.id).len(), 1, "{}", rule.id);
    }
    // These are there: the TSC of the CPU that it was given, its own scheduler.
    assert_eq!(found.bad(), ["clock.source", "cores.isolated", "kernel.realtime_throttling"]);
    // One cause is told once.
    assert_eq!(found.of("clock.source").iter().filter(|finding| finding.is_open()).count(), 1);
    found.each(Verdict::NotApplicable, &["boot.tsc_reliable"]);
    found.each(Verdict::Ok, &["kernel.nmi_watchdog", "programs.quota", "interrupts.balancer"]);
    // Its ring has no more entries.
    found.each(Verdict::Noted, &["nic.rings", "nic.speed"]);
    let disk = found.at("interrupts.each", "/proc/irq/35/smp_affinity_list (virtio1-req.1)");
    assert!(disk.got.ends_with("its driver places it"));
}

#[test]
fn a_container() {
    let found = held("container", audited(include_str!("machines/container.txt"), Purpose::Bench, None, &[]));
    assert_eq!(list(&found.machine.allowed), "4-5");
    assert!(found.plan.shared && found.plan.isolated.is_empty());
    assert_eq!(found.bad(), ["power.governor", "kernel.realtime_throttling", "programs.quota"]);
    assert_eq!(found.of("programs.quota")[0].got, "1.50 CPUs");
    assert_eq!(found.of("programs.container")[0].place, "/proc/mounts: containerd");
    found.each(Verdict::Noted, &["programs.container", "programs.read_only"]);
    assert_eq!(found.of("programs.read_only")[0].got, "/sys and /proc/sys read-only: tune the host");
    // Two CPUs are too few to leave one alone.
    found.each(Verdict::NotApplicable, &["cores.isolated", "cores.tickless", "cores.rcu_callbacks"]);
    found.each(Verdict::Ok, &["cores.allowed"]);
    // What is hidden is not as it should be: it is not known.
    found.each(Verdict::Unknown, &["interrupts.each", "firmware.memory", "pcie.payload"]);
    // The NICs of the host are not in this network name space.
    found.each(Verdict::NotApplicable, &["nic.speed", "nic.pause", "nic.rings", "firmware.version"]);
}

#[test]
fn an_ordinary_user() {
    let found =
        held("xeon-ordinary-user", audited(include_str!("machines/xeon-ordinary-user.txt"), Purpose::Bench, None, &[]));
    assert_eq!(found.bad(), [""; 0]);
    for id in ["firmware.memory", "kernel.fair_server", "kernel.preemption", "pcie.payload"] {
        found.each(Verdict::Unknown, &[id]);
        assert!(found.of(id).iter().all(|finding| finding.got.starts_with("needs root")), "{id}: {:#?}", found.of(id));
    }
    // No process begins on CPUs 1 to 3, and each may go there.
    assert_eq!(list(&found.machine.allowed), "0-7");
    assert_eq!((list(&found.plan.data_plane), list(&found.plan.tester)), ("1".into(), "2".into()));
    found.each(Verdict::Ok, &["cores.isolated", "cores.allowed", "interrupts.balancer", "pcie.link", "power.governor"]);
}

#[test]
fn of_a_machine_that_says_next_to_nothing_only_words_of_the_boot_line_are_wished_for() {
    let bare = "linerate machine 1\n/sys/devices/system/cpu/online = 0-3\n";
    let found = audited(bare, Purpose::Bench, None, &[]);
    assert_eq!(found.bad(), [""; 0]);
    for finding in found.findings.iter().filter(|finding| finding.is_open()) {
        assert!(finding.mend.iter().all(|mend| matches!(mend, Mend::Boot { .. })), "{finding:?}");
    }
}

#[test]
fn memory_without_cores_is_a_node_too() {
    // Memory on CXL, and a card that is nearest to it.
    let text = include_str!("machines/epyc.txt")
        .replace("/sys/devices/system/node/node3/cpulist = 12-15,28-31", "/sys/devices/system/node/node3/cpulist =")
        .replace(
            "/sys/devices/system/node/node0/cpulist = 0-3,16-19",
            "/sys/devices/system/node/node0/cpulist = 0-3,12-19,28-31",
        );
    let found = audited(&text, Purpose::Bench, Some(2), &["0000:c4:00.0"]);
    assert_eq!(found.of("cores.node")[0].got, "node 3 has no cores: each core is far from it");
    assert_eq!(found.verdict("cores.node"), Verdict::Noted);
    assert_eq!(found.at("cores.nodes", "node 3").got, "no CPU; 12 12 12 10");
}

#[test]
fn pages_that_others_have_are_not_ours() {
    // Guests have all pages of 1 GiB of the node; of the small ones 500 are free, and 12 are missing.
    let node = "/sys/devices/system/node/node0/hugepages/hugepages";
    let text = include_str!("machines/xeon-two-sockets.txt")
        .replace(&format!("{node}-1048576kB/free_hugepages = 14"), &format!("{node}-1048576kB/free_hugepages = 0"))
        .replace(&format!("{node}-2048kB/free_hugepages = 1024"), &format!("{node}-2048kB/free_hugepages = 500"));
    let found = audited(&text, Purpose::NfviTwoVm, Some(0), &[]);
    assert_eq!(found.of("memory.hugepages")[0].got, "34816 MiB, 1000 free");
    assert_eq!(found.mends("memory.hugepages"), [format!("echo 1036 > {node}-2048kB/nr_hugepages")]);
}

#[test]
fn irqbalance_does_as_it_is_told() {
    let verdict = |file: &str, told: &str| {
        let text = format!(
            "{}{file} = {told}\n",
            include_str!("machines/xeon-untuned.txt").replace("/etc/default/irqbalance <<", "/etc/unused <<")
        );
        audited(&text, Purpose::NfviTwoVm, Some(0), &[]).verdict("interrupts.balancer")
    };
    assert_eq!(verdict("/etc/default/irqbalance", "IRQBALANCE_BANNED_CPULIST=1-3,16-21"), Verdict::Ok);
    assert_eq!(verdict("/etc/sysconfig/irqbalance", "IRQBALANCE_BANNED_CPUS=\"000,003f000e\""), Verdict::Ok);
    assert_eq!(verdict("/etc/default/irqbalance", "IRQBALANCE_BANNED_CPULIST=1-3"), Verdict::Bad);
    assert_eq!(verdict("/etc/default/irqbalance", "#IRQBALANCE_BANNED_CPULIST=1-21"), Verdict::Bad);
    // What it is told stands in the place of what it would find by itself.
    let told =
        include_str!("machines/xeon-two-sockets.txt").replace("#IRQBALANCE_BANNED_CPUS=", "IRQBALANCE_BANNED_CPUS=2");
    assert_eq!(audited(&told, Purpose::NfviTwoVm, Some(0), &[]).verdict("interrupts.balancer"), Verdict::Bad);
}

fn list(cpus: &host::cpu_set::CpuSet) -> String {
    host::cpu_set::to_list(cpus)
}

/// The same EPYC, whose debugfs nobody mounted.
#[test]
fn without_debugfs_the_fair_server_is_not_known() {
    let text = include_str!("machines/epyc.txt").lines().filter(|line| !line.starts_with("/sys/kernel/debug"));
    let text = text.collect::<Vec<_>>().join("\n");
    let found = audited(&text, Purpose::Bench, Some(2), &["0000:81:00.0"]);
    let unknown = found.at("kernel.fair_server", "/sys/kernel/debug");
    assert_eq!(unknown.verdict, Verdict::Unknown);
    assert!(unknown.got.contains("mount -t debugfs"), "{unknown:?}");
}
