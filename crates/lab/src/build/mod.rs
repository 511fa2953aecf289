//! From a topology to the steps that build it.

mod context;
mod faults;
mod guest;
mod inside;
mod kernel;
mod machine;
mod ovs;
mod ovs_commands;
mod role;
mod tunnel;

use failure::Failure;
use serde::{Deserialize, Serialize};

use crate::{
    counters::Source,
    cpus::{self, CpuLayout},
    line::CommandLine,
    options::LabOptions,
    step::{Question, Step},
    topology::{End, Topology, TESTER},
    vm::Definition,
};

use context::{Context, Part};

pub use context::port_name;
pub use faults::{Act, Fault};
pub use ovs::VSWITCHD;

/// All that is known of a lab before it is started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Build {
    /// The topology with the user's choices in it.
    pub topology: Topology,
    /// The choices.
    pub options: LabOptions,
    /// Who polls where.
    pub cpus: CpuLayout,
    /// The lab's directory, as in the command lines.
    pub dir: String,
    /// What brings it up, in order.
    pub steps: Vec<Step>,
    /// What shows that it is what was asked for, once the tester is connected.
    pub checks: Vec<Question>,
    /// Where the counters of its ports are read.
    pub counters: Vec<Source>,
    /// The commands that say what the polling threads of its switch have done.
    pub threads: Option<[CommandLine; 2]>,
    /// What can be made to fail in it.
    pub faults: Vec<Fault>,
    /// Its virtual machines.
    pub machines: Vec<Definition>,
    /// How the tester is joined to it.
    pub tester: TesterSide,
}

/// How the tester is joined to a lab.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct TesterSide {
    /// Its ports 0 and 1, as `--port` takes them.
    pub ports: Vec<String>,
    /// Where frames of port 0 and 1 are sent to, as `--dst-mac` takes it; none: the other port.
    pub dst_mac: Vec<String>,
}

impl Build {
    /// Derives everything from a topology and the user's choices.
    ///
    /// # Errors
    ///
    /// (usage) for a choice that cannot be; (machine) for too few CPUs; (usage) for a link between two kinds of nodes that
    /// nothing joins.
    pub fn new(
        topology: Topology,
        options: LabOptions,
        allowed_cpus: &[u32],
        linerate: &str,
        dir: &str,
    ) -> Result<Self, Failure> {
        options.check()?;
        let topology = options.applied_to(topology);
        check_links(&topology)?;
        check_nics(&topology, &options)?;
        let cpus = CpuLayout::choose(&topology, &options, allowed_cpus)?;
        let context = Context { topology: &topology, options: &options, cpus: &cpus, linerate, dir };
        check_effects(&topology, &options)?;
        check_guests(&topology, &options)?;
        let machines = machine::definitions(&context);
        // A virtual machine boots when the switch has taken its ports, and its driver makes the rings that the switch waits for.
        let parts = [
            ovs::daemons(&context),
            kernel::taps(&context),
            guest::processes(&context),
            machine::start(&context, &machines),
            ovs::ports(&context),
            machine::booted(&context, &machines),
            ovs::connected(&context),
            machine::pinned(&context, &machines),
            kernel::nodes(&context),
        ];
        let mut all = Part::default();
        for part in parts {
            all.steps.extend(part.steps);
            all.checks.extend(part.checks);
            all.counters.extend(part.counters);
        }
        let (tester, threads) = (tester(&context), ovs::thread_counters(&context));
        let faults = faults::all(&context, &machines);
        let (dir, Part { steps, checks, counters }) = (dir.to_owned(), all);
        Ok(Self { topology, options, cpus, dir, steps, checks, counters, threads, faults, machines, tester })
    }
}

impl Build {
    /// The same for what is only printed: what this machine has too few CPUs for is laid over those of another one, and `note` is
    /// told.
    ///
    /// # Errors
    ///
    /// As [`Build::new`].
    pub fn for_show(
        topology: Topology,
        options: LabOptions,
        allowed_cpus: &[u32],
        dir: &str,
        note: &mut dyn FnMut(&str),
    ) -> Result<Self, Failure> {
        options.check()?;
        let Some(other) = cpus::of_another_machine(&topology, &options, allowed_cpus) else {
            return Self::new(topology, options, allowed_cpus, "linerate", dir);
        };
        // Which of its CPUs share a core is not known here.
        let options = LabOptions { siblings: std::collections::BTreeMap::new(), ..options };
        let build = Self::new(topology, options, &other, "linerate", dir)?;
        let here: Vec<String> = allowed_cpus.iter().map(u32::to_string).collect();
        let last = other.last().copied().unwrap_or_default();
        note(&format!("linerate: for a machine with CPUs 0 to {last}: this process may use CPUs {}", here.join(",")));
        Ok(build)
    }

    /// A virtual machine of the lab, by the name that a flag gives.
    ///
    /// # Errors
    ///
    /// (usage) when there is none of this name.
    pub fn machine(&self, flag: &str, name: &str) -> Result<&Definition, Failure> {
        self.machines.iter().find(|machine| machine.name == name).ok_or_else(|| {
            let names: Vec<&str> = self.machines.iter().map(|machine| machine.name.as_str()).collect();
            let names =
                if names.is_empty() { "none; --guests vm makes guests such".to_owned() } else { names.join(", ") };
            Failure::usage(format!("{flag} {name}: no such virtual machine: there is {names}"))
        })
    }
}

/// Flags that change nothing in this topology: who gives one expects something of it.
fn check_effects(topology: &Topology, options: &LabOptions) -> Result<(), Failure> {
    let virtual_ones = [(options.guests, topology.guest.len()), (options.kernels, topology.kernel.len())];
    let no_machine = !virtual_ones.iter().any(|(kind, nodes)| kind.accelerator().is_some() && *nodes > 0);
    let (no_guests, no_switch) = (topology.guest.is_empty(), topology.switch.is_empty());
    let usual = LabOptions::default();
    let no_kernel = topology.kernel.is_empty();
    let given = [
        (no_guests, options.guests != usual.guests, "--guests", "no guests"),
        (no_guests && no_switch, options.hugepages != usual.hugepages, "--no-huge", "no guests and no switch"),
        (no_kernel, options.kernels != usual.kernels, "--kernel-in", "no kernel that forwards"),
        (no_guests, options.application != usual.application, "--application", "no guests"),
        (no_guests && no_switch, options.queues != usual.queues, "--queues", "ports of one queue"),
        (no_guests && no_switch, options.ring != usual.ring, "--ring", "no virtio ports"),
        (no_switch, options.pmds != usual.pmds || !options.pmd_cpus.is_empty(), "--pmds", "no switch of its own"),
        (no_switch, options.emc != usual.emc, "--no-emc", "no switch of its own"),
        (no_switch, options.smc != usual.smc, "--smc", "no switch of its own"),
        (no_machine, options.vcpus != usual.vcpus, "--vcpus", "no virtual machine here (--guests vm)"),
        (no_machine, options.guest_mib != usual.guest_mib, "--guest-memory", "no virtual machine here (--guests vm)"),
    ];
    match given.iter().find(|(without, given, ..)| *without && *given) {
        None => Ok(()),
        Some((_, _, flag, what)) => {
            Err(Failure::usage(format!("{flag}: topology {} has {what}: leave the flag out", topology.name)))
        }
    }
}

/// What a process cannot be.
fn check_guests(topology: &Topology, options: &LabOptions) -> Result<(), Failure> {
    if let Some(guest) = topology.guest_at_tester().filter(|_| options.guests.accelerator().is_some()) {
        return Err(Failure::usage(format!(
            "{}: is joined to the tester itself, which a virtual machine cannot be: it would wait for the tester before it \
             boots; --guests process",
            guest.name
        )));
    }
    if let Some((guest, _)) = options.disks.iter().next().filter(|_| options.application.is_some()) {
        return Err(Failure::usage(format!(
            "--disk {guest}=... --application: a disk runs what is on it: leave --application out"
        )));
    }
    let named = |guest: &String| topology.guest.iter().any(|known| known.name == *guest);
    if let Some((guest, disk)) = options.disks.iter().find(|(guest, _)| !named(guest)) {
        let names: Vec<&str> = topology.guest.iter().map(|guest| guest.name.as_str()).collect();
        let names = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
        return Err(Failure::usage(format!("--disk {guest}={disk}: no such guest: there is {names}")));
    }
    let disk = topology.guest.iter().find_map(|guest| Some((&guest.name, guest.disk.as_ref()?)));
    match disk {
        Some((guest, _)) if options.guests.accelerator().is_none() => {
            return Err(Failure::usage(format!("{guest}: a disk is booted by a virtual machine: --guests vm")));
        }
        Some((guest, disk)) if !std::path::Path::new(disk).is_file() => {
            return Err(Failure::usage(format!("{guest}: its disk {disk} is not a file here")));
        }
        _ => {}
    }
    let wrong = topology.guest.iter().find(|guest| guest.application.needs_a_machine());
    match wrong.filter(|_| options.guests.accelerator().is_none()) {
        None => Ok(()),
        Some(guest) => Err(Failure::usage(format!(
            "{}: {} needs a kernel of its own, which a process has not: --guests vm",
            guest.name,
            guest.application.name()
        ))),
    }
}

/// NICs stand for the tester's cables to switches and processes.
fn check_nics(topology: &Topology, options: &LabOptions) -> Result<(), Failure> {
    if options.phy.windows(2).any(|pair| pair[0] > pair[1]) {
        return Err(Failure::usage(format!(
            "--phy {}: must be in the order of the bus, as DPDK numbers them: order --tester-ports instead",
            options.phy.join(",")
        )));
    }
    match topology.kernel.first().filter(|_| !options.phy.is_empty()) {
        None => Ok(()),
        Some(node) => Err(Failure::usage(format!(
            "--phy: {} is a kernel, whose ports are veth pairs of the lab: NICs go to switches and to guests",
            node.name
        ))),
    }
}

/// Which kinds of nodes a cable can join: all but guests and the kernel go through a switch or to the tester.
fn check_links(topology: &Topology) -> Result<(), Failure> {
    let is_switch = |end: &End| topology.switch_named(&end.node).is_some();
    let is_guest = |end: &End| topology.guest.iter().any(|guest| guest.name == end.node);
    for link in &topology.link {
        let [a, b] = &link.ends;
        let switched = is_switch(a) != is_switch(b) && [a, b].iter().any(|end| end.is_tester() || is_guest(end));
        let is_kernel = |end: &End| !is_switch(end) && !is_guest(end) && !end.is_tester();
        let with_tester = [(a, b), (b, a)].iter().any(|(a, b)| a.is_tester() && (is_kernel(b) || is_guest(b)));
        if !switched && !with_tester {
            return Err(Failure::usage(format!(
                "topology {}: link {a} - {b}: a link joins the tester with a switch, a guest or the kernel, or a switch with a guest",
                topology.name
            )));
        }
    }
    Ok(())
}

fn tester(context: &Context<'_>) -> TesterSide {
    let Context { topology, options, .. } = context;
    let mut side = TesterSide::default();
    let tunnelled = topology.switch.iter().any(|switch| !switch.tunnel.is_empty());
    for port in [0, 1] {
        let end = End::new(TESTER, port);
        let Some(peer) = topology.peer(&end) else { continue };
        let is_kernel = topology.kernel.iter().any(|kernel| kernel.name == peer.node);
        if let Some(own) = options.tester_ports.get(port as usize) {
            side.ports.push(own.clone());
            side.dst_mac.extend(tunnel::next_mac(topology, peer));
        } else if !is_kernel {
            let socket = context.socket(&end);
            let queues = if options.queues > 1 { format!(",queues={}", options.queues) } else { String::new() };
            side.ports.push(format!("virtio:{socket},server=1,queue_size={}{queues}", options.ring));
            if tunnelled {
                // A port without a tunnel takes any address.
                side.dst_mac.push(tunnel::next_mac(topology, peer).unwrap_or_else(|| kernel::tester_mac(1 - port)));
            }
        } else {
            side.ports.push(format!("eth:{}", kernel::tester_interface(port)));
            side.dst_mac.extend(kernel::next_mac(topology, peer));
        }
    }
    side
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        options::GuestKind,
        script,
        topology::{self, Application},
    };

    pub(super) fn built(name: &str, options: &LabOptions, allowed: &[u32]) -> Build {
        let topology = topology::load(name).unwrap();
        Build::new(topology, options.clone(), allowed, "linerate", "$d").unwrap()
    }

    #[test]
    fn the_two_vm_documents_chain_is_its_script() {
        let options = LabOptions { queues: 2, pmd_cpus: vec![2, 3, 4, 5], ..LabOptions::default() };
        let build = built("phy-vm-vm-phy", &options, &(0..22).collect::<Vec<_>>());
        let text = script::render(&build);
        // Section 5.1, configuration 2: each queue of each port has the document's core.
        for wanted in [
            "pmd-cpu-mask=0x3c",
            r#"phy0 -- set Interface phy0 type=dpdkvhostuserclient"#,
            r#"other_config:pmd-rxq-affinity=0:2,1:4"#,
            r#"other_config:pmd-rxq-affinity=0:3,1:5"#,
            "in_port=1,actions=output:3",
            "in_port=3,actions=output:1",
            "in_port=4,actions=output:5",
            "in_port=6,actions=output:2",
            "max-idle=50000",
        ] {
            assert!(text.contains(wanted), "{wanted} in\n{text}");
        }
        insta::assert_snapshot!(text);
    }

    #[test]
    fn the_tester_is_joined_by_sockets_or_interfaces() {
        let two = LabOptions { queues: 2, ..LabOptions::default() };
        let side = built("phy-vm-phy", &two, &[0, 1]).tester;
        assert_eq!(side.ports[1], "virtio:$d/phy1.sock,server=1,queue_size=1024,queues=2");
        let side = built("kernel-router", &LabOptions::default(), &[0, 1]).tester;
        assert_eq!(side.ports, ["eth:t0", "eth:t1"]);
        assert_eq!(side.dst_mac.len(), 2);
        assert!(built("kernel-bridge", &LabOptions::default(), &[0, 1]).tester.dst_mac.is_empty());
    }

    #[test]
    fn an_emulated_guest_boots_on_every_cpu_of_the_lab_and_is_pinned_when_it_is_connected() {
        let booting = |guests: GuestKind| {
            let build = built("phy-vm-phy", &LabOptions { guests, ..LabOptions::default() }, &[0, 1, 2, 3, 4, 5]);
            let program = |step: &Step| match step {
                Step::Start(program) if program.name == "vm1" => Some(program.cpus.clone()),
                _ => None,
            };
            (build.steps.iter().find_map(program).unwrap(), build)
        };
        let (cpus, build) = booting(GuestKind::Tcg);
        // Control, the switch's thread, the guest's, the tester's; not those between.
        assert_eq!((cpus, build.cpus.tester), (vec![0, 1, 2, 5], 5));
        assert_eq!(booting(GuestKind::Kvm).0, [0]);
        let line = |step: &Step| match step {
            Step::Run(line) => line.to_string(),
            Step::Await(Question { line, want, .. }) => format!("{line} {want:?}"),
            _ => String::new(),
        };
        let place = |wanted: &str| build.steps.iter().position(|step| line(step).contains(wanted)).unwrap();
        let pinned = place("vm1.qmp\" 0:0 1:2 --emulator 0");
        assert!(place("Rings {") < pinned && pinned < place("lab guest vcpus"));
    }

    #[test]
    fn each_virtual_cpu_that_polls_has_a_cpu_and_the_others_are_with_control() {
        let build = |queues, vcpus, guests| {
            let options = LabOptions { queues, vcpus, guests, ..LabOptions::default() };
            built("phy-vm-phy", &options, &[0, 1, 2, 3, 4, 5])
        };
        let pins = |queues, vcpus| build(queues, vcpus, GuestKind::Tcg).machines[0].pins.clone();
        assert_eq!(pins(1, None), [(0, 0), (1, 2)]);
        assert_eq!(pins(2, None), [(0, 0), (1, 2), (2, 3)]);
        assert_eq!(pins(2, Some(5)), [(0, 0), (1, 2), (2, 3), (3, 0), (4, 0)]);
        // Five queues have no CPU each: they share the guest's.
        assert_eq!(pins(5, None), [(0, 0), (1, 2), (2, 2), (3, 2), (4, 2), (5, 2)]);
        let text = script::render(&build(2, Some(5), GuestKind::Tcg));
        assert!(text.contains(" -smp 5 ") && text.contains("isolcpus=1-2 "), "{text}");
        // A process has a thread on each.
        let text = script::render(&build(2, None, GuestKind::Process));
        assert!(text.contains("--lcores 0@2,1@2,2@3 ") && text.contains("--nb-cores=2"), "{text}");
    }

    #[test]
    fn nics_are_taken_in_the_order_of_the_bus_and_by_no_kernel() {
        let nics = |a: &str, b: &str| LabOptions {
            phy: vec![a.to_owned(), b.to_owned()],
            tester_ports: vec!["eth:a".into(), "eth:b".into()],
            ..LabOptions::default()
        };
        let build = |name: &str, options: LabOptions| {
            Build::new(topology::load(name).unwrap(), options, &[0, 1], "linerate", "$d")
        };
        let text = script::render(&build("phy-ovs-phy", nics("0000:05:00.0", "0000:06:00.0")).unwrap());
        for wanted in [
            "-a 0000:05:00.0 -a 0000:06:00.0",
            "type=dpdk options:dpdk-devargs=0000:06:00.0 options:n_rxq=1 options:n_rxq_desc=2048",
            "linerate ports --give-back 0000:05:00.0 >>",
            "linerate ports --give-back 0000:06:00.0 >>",
            "--port eth:a --port eth:b",
        ] {
            assert!(text.contains(wanted), "{wanted} in\n{text}");
        }
        let turned = build("phy-ovs-phy", nics("0000:06:00.0", "0000:05:00.0")).unwrap_err();
        let kernel = build("kernel-bridge", nics("0000:05:00.0", "0000:06:00.0")).unwrap_err();
        assert_eq!((turned.exit, kernel.exit), (failure::Exit::Usage, failure::Exit::Usage));
    }

    #[test]
    fn what_is_only_printed_may_be_for_another_machine() {
        let shown = |options: LabOptions, said: &mut Vec<String>| {
            let topology = topology::load("phy-vm-phy").unwrap();
            Build::for_show(topology, options, &[0, 1], "$d", &mut |text: &str| said.push(text.to_owned()))
        };
        let mut said = Vec::new();
        let build = shown(LabOptions { pmd_cpus: vec![2, 3, 4, 5], ..LabOptions::default() }, &mut said).unwrap();
        assert!(script::render(&build).contains("\n# CPUs      tester 6, control 0, switch 2,3,4,5, vm1 1\n"));
        shown(LabOptions { pmds: 1, ..LabOptions::default() }, &mut said).unwrap();
        assert_eq!(said, ["linerate: for a machine with CPUs 0 to 6: this process may use CPUs 0,1"]);
        let twice = LabOptions { pmd_cpus: vec![2, 2], ..LabOptions::default() };
        assert_eq!(shown(twice, &mut said).unwrap_err().exit, failure::Exit::Usage);
    }

    #[test]
    fn a_flag_that_changes_nothing_is_refused() {
        let wrong = |name: &str, options: LabOptions| {
            let topology = topology::load(name).unwrap();
            Build::new(topology, options, &[0, 1, 2, 3], "linerate", "/run/lab").err().map(|failure| failure.text)
        };
        let usual = LabOptions::default;
        let testpmd = Some(Application::TestpmdIo);
        for (name, options, flag) in [
            ("kernel-bridge", LabOptions { queues: 4, ..usual() }, Some("--queues")),
            ("kernel-bridge", LabOptions { ring: 64, ..usual() }, Some("--ring")),
            ("kernel-router", LabOptions { pmd_cpus: vec![1], ..usual() }, Some("--pmds")),
            ("phy-phy", LabOptions { pmds: 2, ..usual() }, Some("--pmds")),
            ("phy-phy", LabOptions { smc: true, ..usual() }, Some("--smc")),
            ("phy-phy", LabOptions { emc: false, ..usual() }, Some("--no-emc")),
            ("phy-vm-phy", LabOptions { guest_mib: 2048, ..usual() }, Some("--guest-memory")),
            ("phy-ovs-phy", LabOptions { guest_mib: 2048, ..usual() }, Some("--guest-memory")),
            ("phy-ovs-phy", LabOptions { guests: GuestKind::Tcg, ..usual() }, Some("--guests")),
            ("kernel-router", LabOptions { hugepages: false, ..usual() }, Some("--no-huge")),
            ("phy-phy", LabOptions { kernels: GuestKind::Tcg, ..usual() }, Some("--kernel-in")),
            ("phy-vm-phy", LabOptions { guest_mib: 2048, guests: GuestKind::Tcg, ..usual() }, None),
            ("kernel-bridge", LabOptions { guest_mib: 2048, kernels: GuestKind::Tcg, ..usual() }, None),
            ("phy-ovs-phy", LabOptions { application: testpmd, ..usual() }, Some("--application")),
            ("phy-phy", LabOptions { application: testpmd, queues: 2, ring: 64, ..usual() }, None),
            ("phy-ovs-phy", LabOptions { hugepages: false, ..usual() }, None),
            ("phy-phy", LabOptions { hugepages: false, ..usual() }, None),
            ("phy-ovs-phy", LabOptions { queues: 2, ring: 64, smc: true, emc: false, ..usual() }, None),
        ] {
            let wrong = wrong(name, options);
            assert!(wrong.as_deref().is_none_or(|text| flag.is_some_and(|flag| text.starts_with(flag))), "{wrong:?}");
            assert_eq!(wrong.is_some(), flag.is_some(), "{name} {flag:?}");
        }
    }

    #[test]
    fn a_cable_that_nothing_makes_is_refused() {
        let mut own = topology::load("phy-vm-phy").unwrap();
        own.link[2].ends = [End::new("vm1", 0), End::new("vm1", 1)];
        let refused = Build::new(own, LabOptions::default(), &[0, 1], "linerate", "$d").unwrap_err();
        assert_eq!(refused.exit, failure::Exit::Usage);
    }
}
