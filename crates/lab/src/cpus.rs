//! Who polls on which CPU.

use std::collections::{BTreeMap, BTreeSet};

use failure::Failure;
use host::{
    core_plan::{CorePlan, Purpose, Shape},
    cpu_set::CpuSet,
    machine::Machine,
    Roots,
};
use serde::{Deserialize, Serialize};

use crate::{options::LabOptions, topology::Topology};

/// The CPUs of a lab.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CpuLayout {
    /// The tester's polling CPU.
    pub tester: u32,
    /// The CPU of everything that does not poll.
    pub control: u32,
    /// The switch's poll-mode threads, one on each.
    pub pmds: Vec<u32>,
    /// Each guest's polling CPUs: one for each queue of a port where there are enough for all guests, else one.
    pub guests: BTreeMap<String, Vec<u32>>,
    /// CPUs that more than one polling thread has: its rates are of a machine with too few CPUs.
    pub shared: Vec<u32>,
}

impl CpuLayout {
    /// Whether polling threads take turns on a CPU. A search goes by whole trials then: in a slice only one of them has had its
    /// turn.
    pub fn takes_turns(&self) -> bool {
        !self.shared.is_empty()
    }

    /// Every CPU of the lab and of its tester, in order.
    pub fn all(&self) -> Vec<u32> {
        let polling = self.pmds.iter().chain(self.guests.values().flatten()).copied();
        polling.chain([self.tester, self.control]).collect::<BTreeSet<u32>>().into_iter().collect()
    }

    /// Lays the polling threads of a topology over the CPUs that this process may use: the tester on the last, control on the
    /// first, switch and guests between. Where there are too few, switch and guests share all but the tester's.
    ///
    /// # Errors
    ///
    /// (usage) for a chosen CPU that cannot be used or that is used twice, and for more poll-mode threads than CPUs; (machine) for
    /// a single CPU.
    pub fn choose(topology: &Topology, options: &LabOptions, allowed: &[u32]) -> Result<Self, Failure> {
        let list = || allowed.iter().map(u32::to_string).collect::<Vec<_>>().join(",");
        let chosen = options.tester_cpu.iter().map(|&cpu| ("--tester-cpu", cpu));
        let chosen = chosen.chain(options.pmd_cpus.iter().map(|&cpu| ("--pmd-cpus", cpu)));
        let mut taken = BTreeSet::new();
        for (flag, cpu) in
            chosen.chain(options.guest_cpus.iter().flatten().map(|&cpu| ("--core-plan: a guest's CPU", cpu)))
        {
            if !allowed.contains(&cpu) {
                return Err(Failure::usage(format!("{flag} {cpu}: this process may use CPUs {}", list())));
            }
            if !taken.insert(cpu) {
                return Err(Failure::usage(format!("{flag} {cpu}: two polling threads would have this CPU")));
            }
        }
        let free =
            |not: &BTreeSet<u32>| -> Vec<u32> { allowed.iter().copied().filter(|cpu| !not.contains(cpu)).collect() };
        // A tester elsewhere leaves every CPU to the rest; the first one stands for it.
        let own = if options.tester_elsewhere { None } else { free(&taken).last().copied() };
        let elsewhere = allowed.first().copied().filter(|_| options.tester_elsewhere);
        let tester = options.tester_cpu.or(own).or(elsewhere);
        if tester.is_none() && allowed.len() > 1 {
            return Err(Failure::usage(format!(
                "--pmd-cpus {}: leaves the tester no CPU: this process may use CPUs {}",
                options.pmd_cpus.iter().map(u32::to_string).collect::<Vec<_>>().join(","),
                list()
            )));
        }
        let Some(tester) = tester.filter(|_| allowed.len() > 1 || options.tester_elsewhere) else {
            return Err(Failure::machine(format!(
                "a lab needs a CPU besides the tester's, and this process may use only CPU {}: allow it two (taskset -c 0,1 \
                 linerate ...)",
                list()
            )));
        };
        if !options.tester_elsewhere {
            taken.insert(tester);
        }
        let pmds = match (topology.switch.is_empty(), options.pmd_cpus.len()) {
            (true, _) => 0,
            (false, 0) => options.pmds as usize,
            (false, _) => 0,
        };
        let chosen_guests = options.guest_cpus.len().min(topology.guest.len());
        let mut places = free(&taken);
        let left = topology.guest.len() - chosen_guests;
        // One CPU is left for what does not poll.
        let each = if pmds + left * (options.queues as usize) < places.len() { options.queues as usize } else { 1 };
        let wanted = pmds + left * each;
        // The first CPU takes most interrupts: it does not poll where others can.
        if places.len() > wanted {
            places.remove(0);
        }
        let mut places = by_core(&places, &taken, options);
        if places.is_empty() {
            // Every CPU but the tester's was chosen for the switch.
            places.clone_from(&options.pmd_cpus);
        }
        if pmds > places.len() {
            return Err(Failure::usage(format!(
                "--pmds {pmds}: the switch needs {pmds} CPUs, and of CPUs {} it can have {}: at most --pmds {}, or allow more CPUs \
                 (taskset -c)",
                list(),
                places.len(),
                places.len()
            )));
        }
        let mut next = places.iter().copied().cycle();
        let mut pmd_cpus = options.pmd_cpus.clone();
        pmd_cpus.extend(next.by_ref().take(pmds));
        let mut own = options.guest_cpus.iter().take(chosen_guests);
        let mut cpus = || own.next().cloned().unwrap_or_else(|| next.by_ref().take(each).collect());
        let guests: BTreeMap<String, Vec<u32>> =
            topology.guest.iter().map(|guest| (guest.name.clone(), cpus())).collect();
        let mut shared: Vec<u32> = Vec::new();
        let mut seen = BTreeSet::new();
        for cpu in pmd_cpus.iter().chain(guests.values().flatten()) {
            if !seen.insert(*cpu) && !shared.contains(cpu) {
                shared.push(*cpu);
            }
        }
        // Virtual CPUs of a machine that poll its queues, and have fewer CPUs.
        let crowded = |cpus: &&Vec<u32>| options.guests.accelerator().is_some() && cpus.len() < options.queues as usize;
        for cpu in guests.values().filter(crowded).flatten() {
            if !shared.contains(cpu) {
                shared.push(*cpu);
            }
        }
        let control = options.control_cpu.filter(|cpu| allowed.contains(cpu));
        let control = control.or_else(|| allowed.iter().copied().find(|&cpu| cpu != tester)).unwrap_or(tester);
        pmd_cpus.sort_unstable();
        let pmds = if topology.switch.is_empty() { Vec::new() } else { pmd_cpus };
        Ok(Self { tester, control, pmds, guests, shared })
    }
}

/// These variables with the CPUs of a plan of the host.
pub fn by_plan(options: LabOptions, topology: &Topology, plan: &CorePlan) -> LabOptions {
    let first = |cpus: &CpuSet| cpus.first().copied();
    let polling = |cpus: &CpuSet| cpus.iter().copied().take(options.queues as usize).collect();
    let pmd_cpus = if topology.switch.is_empty() { Vec::new() } else { plan.pmds.iter().copied().collect() };
    LabOptions {
        pmd_cpus,
        tester_cpu: first(&plan.tester).filter(|_| !options.tester_elsewhere),
        guest_cpus: plan
            .guests
            .iter()
            .filter(|cpus| !cpus.is_empty())
            .map(polling)
            .take(topology.guest.len())
            .collect(),
        control_cpu: first(&plan.housekeeping),
        ..options
    }
}

/// These variables with the CPUs of the usual plan of the host, where nothing was chosen and the machine has enough cores: one
/// NUMA node, that of the NICs; the operating system's cores left alone.
pub fn by_usual_plan(options: LabOptions, topology: &Topology, machine: &Machine) -> LabOptions {
    if !options.pmd_cpus.is_empty() || options.tester_cpu.is_some() || options.smt {
        return options;
    }
    let nic = machine.nics.iter().find(|nic| options.phy.contains(&nic.address));
    let shape = |vcpus: usize| Shape {
        node: nic.and_then(|nic| nic.numa_node),
        switch: 0,
        pmds: if topology.switch.is_empty() { 0 } else { options.pmds as usize },
        guests: topology.guest.len(),
        vcpus,
        tester: usize::from(!options.tester_elsewhere),
        ..Shape::of(Purpose::NfviTwoVm)
    };
    // A core for each queue of a guest's port, else one for each guest.
    let plan = [options.queues as usize, 1].into_iter().find_map(|vcpus| CorePlan::make(machine, &shape(vcpus)).ok());
    match plan {
        Some(plan) => by_plan(options, topology, &plan),
        None => options,
    }
}

/// CPUs in the order in which they are taken: those first whose core nobody else polls on, since two hardware threads of a core
/// have half of it each; or in pairs of one core where that is asked for.
fn by_core(places: &[u32], taken: &BTreeSet<u32>, options: &LabOptions) -> Vec<u32> {
    let siblings = |cpu: &u32| options.siblings.get(cpu).map_or(&[][..], Vec::as_slice);
    let (mut alone, mut others): (Vec<u32>, Vec<u32>) = (Vec::new(), Vec::new());
    for cpu in places {
        let is_alone = siblings(cpu).iter().all(|other| !taken.contains(other) && !alone.contains(other));
        if is_alone { &mut alone } else { &mut others }.push(*cpu);
    }
    if options.smt {
        let pair = |cpu: &u32| {
            let more = siblings(cpu).iter().copied().filter(|other| others.contains(other));
            std::iter::once(*cpu).chain(more).collect::<Vec<_>>()
        };
        let mut paired: Vec<u32> = alone.iter().flat_map(pair).collect();
        paired.extend(others.iter().filter(|cpu| !paired.contains(cpu)).copied().collect::<Vec<_>>());
        return paired;
    }
    alone.extend(others);
    alone
}

/// CPUs as a mask in hexadecimal digits, `0x3c`.
pub(crate) fn mask(cpus: &[u32]) -> String {
    format!("0x{}", host::cpu_set::to_hex(&cpus.iter().copied().collect()))
}

/// CPUs of another machine, for what is only printed: `None` if these choices fit this one. It has the CPUs that were chosen, and
/// one for everything that polls.
pub fn of_another_machine(topology: &Topology, options: &LabOptions, allowed: &[u32]) -> Option<Vec<u32>> {
    if CpuLayout::choose(topology, options, allowed).is_ok() {
        return None;
    }
    let chosen = options.pmd_cpus.iter().chain(&options.tester_cpu).max().map_or(0, |most| most + 1);
    let number = |len: usize| u32::try_from(len).unwrap_or(u32::MAX / 4);
    let pmds = if options.pmd_cpus.is_empty() { options.pmds } else { number(options.pmd_cpus.len()) };
    // The tester, and one for what does not poll.
    let polling = pmds + number(topology.guest.len()) + 2;
    Some((0..chosen.max(polling)).collect())
}

/// Hardware threads that share a core with each CPU of this machine; CPUs that are a core are left out.
pub fn siblings() -> BTreeMap<u32, Vec<u32>> {
    siblings_of(&Roots::default())
}

fn siblings_of(roots: &Roots) -> BTreeMap<u32, Vec<u32>> {
    let of = |cpu: &u32| (*cpu, host::CoreFacts::read(roots, *cpu).siblings);
    host::Facts::read(roots).cpus_allowed.iter().map(of).filter(|(_, siblings)| !siblings.is_empty()).collect()
}

/// The CPUs this process may run on, in order.
pub fn allowed_cpus() -> Vec<u32> {
    host::Facts::read(&Roots::default()).cpus_allowed
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{options::GuestKind, topology};

    fn lay(name: &str, options: &LabOptions, allowed: &[u32]) -> Result<CpuLayout, Failure> {
        CpuLayout::choose(&topology::load(name).unwrap(), options, allowed)
    }

    #[test]
    fn each_thread_has_a_cpu_where_there_are_enough() {
        let options = LabOptions { pmds: 2, ..LabOptions::default() };
        let cpus = lay("phy-vm-vm-phy", &options, &[0, 1, 2, 3, 4, 5]).unwrap();
        assert_eq!((cpus.tester, cpus.control, cpus.pmds.as_slice()), (5, 0, &[1, 2][..]));
        assert_eq!(
            cpus.guests.into_iter().collect::<Vec<_>>(),
            [("vm1".to_owned(), vec![3]), ("vm2".to_owned(), vec![4])]
        );
        assert_eq!(cpus.shared, Vec::<u32>::new());
        let alone = lay("kernel-bridge", &options, &[0, 1]).unwrap();
        assert_eq!((alone.tester, alone.pmds.len(), alone.shared.len()), (1, 0, 0));
    }

    #[test]
    fn too_few_are_shared_but_the_testers() {
        let cpus = lay("phy-vm-vm-phy", &LabOptions::default(), &[0, 1]).unwrap();
        assert_eq!((cpus.tester, cpus.pmds.as_slice(), cpus.shared.as_slice()), (1, &[0][..], &[0][..]));
        assert!(cpus.guests.values().all(|cpus| *cpus == [0]));
        let many = |pmds| LabOptions { pmds, ..LabOptions::default() };
        assert_eq!(lay("phy-ovs-phy", &many(2), &[0, 1, 2]).unwrap().pmds, [0, 1]);
        let refused = [lay("phy-ovs-phy", &many(4), &[0, 1, 2]), lay("phy-vm-phy", &many(2), &[0, 1])];
        insta::assert_snapshot!(refused.map(|refused| refused.unwrap_err().text).join("\n"));
        assert_eq!(lay("phy-ovs-phy", &LabOptions::default(), &[3]).unwrap_err().exit, failure::Exit::Machine);
    }

    #[test]
    fn virtual_cpus_of_one_machine_that_poll_on_one_cpu_share_it() {
        let shared = |queues, guests| {
            let options = LabOptions { queues, guests, ..LabOptions::default() };
            lay("phy-vm-phy", &options, &[0, 1, 2, 3]).unwrap().shared
        };
        assert_eq!(shared(2, GuestKind::Kvm), [2], "two would leave nothing for control");
        assert_eq!((shared(1, GuestKind::Kvm), shared(2, GuestKind::Process)), (vec![], vec![]));
    }

    #[test]
    fn polling_threads_have_cores_of_their_own_or_share_one_when_asked() {
        // Eight CPUs, four cores: 0 and 4 are one, and so on.
        let siblings: BTreeMap<u32, Vec<u32>> = (0..8).map(|cpu| (cpu, vec![(cpu + 4) % 8])).collect();
        let all: Vec<u32> = (0..8).collect();
        let options = LabOptions { pmds: 2, siblings, ..LabOptions::default() };
        let cpus = lay("phy-vm-phy", &options, &all).unwrap();
        // The tester has CPU 7, and its core to itself; nobody polls beside the switch.
        assert_eq!((cpus.tester, cpus.pmds.as_slice(), cpus.guests["vm1"][0]), (7, &[1, 2][..], 4));
        let pairs = lay("phy-vm-phy", &LabOptions { smt: true, ..options.clone() }, &all).unwrap();
        assert_eq!((pairs.pmds.as_slice(), pairs.guests["vm1"][0]), (&[1, 5][..], 2));
        let crowded = lay("phy-vm-vm-phy", &LabOptions { pmds: 4, ..options }, &all).unwrap();
        assert_eq!((crowded.pmds.as_slice(), crowded.shared.len()), (&[1, 2, 3, 4][..], 0));
        assert_eq!(crowded.guests.values().flatten().copied().collect::<Vec<_>>(), [5, 6]);
        // Every CPU a core: the order of before.
        assert_eq!(by_core(&[1, 2, 3], &BTreeSet::new(), &LabOptions::default()), [1, 2, 3]);
    }

    #[test]
    fn what_this_machine_has_not_is_printed_for_one_that_has() {
        let other = |options: &LabOptions| {
            let topology = topology::load("phy-vm-vm-phy").unwrap();
            let cpus = of_another_machine(&topology, options, &[0, 1])?;
            Some((cpus.len(), CpuLayout::choose(&topology, options, &cpus).unwrap()))
        };
        assert_eq!(other(&LabOptions::default()), None);
        let (cpus, layout) = other(&LabOptions { pmd_cpus: vec![2, 3, 4, 5], ..LabOptions::default() }).unwrap();
        assert_eq!((cpus, layout.pmds.as_slice(), layout.shared.len()), (8, &[2, 3, 4, 5][..], 0));
        let (cpus, layout) = other(&LabOptions { pmds: 2, ..LabOptions::default() }).unwrap();
        assert_eq!((cpus, layout.pmds.as_slice(), layout.tester), (6, &[1, 2][..], 5));
        // A CPU that was chosen is there.
        let (cpus, layout) = other(&LabOptions { tester_cpu: Some(11), ..LabOptions::default() }).unwrap();
        assert_eq!((cpus, layout.tester), (12, 11));
    }

    /// A machine of one-threaded cores on two nodes.
    fn machine(cpus: u32) -> Machine {
        let cpu = |number| host::machine::Cpu { number, node: number * 2 / cpus, threads: [number].into() };
        let node = |number| host::machine::Node {
            number,
            cpus: (0..cpus).filter(|cpu| cpu * 2 / cpus == number).collect(),
            ..host::machine::Node::default()
        };
        let all: CpuSet = (0..cpus).collect();
        Machine {
            cpus: (0..cpus).map(cpu).collect(),
            nodes: vec![node(0), node(1)],
            allowed: all,
            ..Machine::default()
        }
    }

    #[test]
    fn the_usual_plan_is_followed_where_there_are_enough_cores_and_nothing_was_chosen() {
        let topology = topology::load("phy-vm-vm-phy").unwrap();
        let by = |cpus, options| by_usual_plan(options, &topology, &machine(cpus));
        let options = by(16, LabOptions { pmds: 2, ..LabOptions::default() });
        assert_eq!((options.pmd_cpus.as_slice(), options.tester_cpu), (&[1, 2][..], Some(3)));
        assert_eq!((options.guest_cpus.concat().as_slice(), options.control_cpu), (&[7, 6][..], Some(0)));
        let all: Vec<u32> = (0..16).collect();
        let cpus = CpuLayout::choose(&topology, &options, &all).unwrap();
        assert_eq!((cpus.tester, cpus.control, cpus.pmds.as_slice()), (3, 0, &[1, 2][..]));
        assert_eq!(cpus.guests.into_values().collect::<Vec<_>>().concat(), [7, 6]);
        assert!(cpus.shared.is_empty());
        for chosen in [
            LabOptions { tester_cpu: Some(1), ..LabOptions::default() },
            LabOptions { pmd_cpus: vec![1], ..LabOptions::default() },
            LabOptions { smt: true, ..LabOptions::default() },
        ] {
            assert_eq!(by(16, chosen.clone()), chosen);
        }
        assert_eq!(by(4, LabOptions::default()), LabOptions::default());
        // One guest takes one core: eight cores are enough for it.
        let one = topology::load("phy-vm-phy").unwrap();
        assert_eq!(by_usual_plan(LabOptions::default(), &one, &machine(16)).guest_cpus.len(), 1);
        // The NIC's node.
        let nic = host::PciDevice { address: "0000:81:00.0".into(), numa_node: Some(1), ..Default::default() };
        let far = Machine { nics: vec![nic], ..machine(16) };
        let phy = LabOptions { phy: vec!["0000:81:00.0".into(), "0000:81:00.1".into()], ..LabOptions::default() };
        let near_nic = by_usual_plan(phy, &topology, &far);
        assert!(near_nic.pmd_cpus.iter().chain(&near_nic.tester_cpu).all(|&cpu| cpu >= 8), "{near_nic:?}");
        let elsewhere = by(16, LabOptions { tester_elsewhere: true, ..LabOptions::default() });
        assert_eq!((elsewhere.tester_cpu, elsewhere.pmd_cpus.as_slice()), (None, &[1][..]));
        let bridge = topology::load("kernel-bridge").unwrap();
        assert_eq!(by_usual_plan(LabOptions::default(), &bridge, &machine(16)).pmd_cpus, Vec::<u32>::new());
    }

    #[test]
    fn what_shares_a_core_is_read_of_the_cpus_that_may_be_used() {
        let dir = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            let path = dir.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        write("proc/self/status", "Cpus_allowed_list:\t1-3\n");
        for (cpu, threads) in [(0, "0,4"), (1, "1,5"), (2, "2"), (3, "3,7")] {
            write(&format!("sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list"), threads);
        }
        assert_eq!(siblings_of(&Roots::at(dir.path())), BTreeMap::from([(1, vec![5]), (3, vec![7])]));
        // Of this machine: what the kernel says of this thread, and isolated ones.
        let own = rustix::thread::sched_getaffinity(None).unwrap();
        let own: Vec<u32> = (0..1024).filter(|&cpu| own.is_set(cpu as usize)).collect();
        let allowed = allowed_cpus();
        assert!(!own.is_empty() && own.iter().all(|cpu| allowed.contains(cpu)), "{allowed:?} {own:?}");
        assert_eq!(siblings(), siblings_of(&Roots::default()));
    }

    #[test]
    fn the_tester_is_left_a_cpu() {
        let all = LabOptions { pmd_cpus: vec![0, 1], ..LabOptions::default() };
        assert_eq!(lay("phy-vm-phy", &all, &[0, 1]).unwrap_err().exit, failure::Exit::Usage);
        assert_eq!(lay("phy-vm-phy", &LabOptions::default(), &[0]).unwrap_err().exit, failure::Exit::Machine);
    }

    #[test]
    fn each_queue_of_a_guest_has_a_core_where_there_are_enough() {
        let guests = |options: &LabOptions, cpus: u32| {
            let cpus = lay("phy-vm-vm-phy", options, &(0..cpus).collect::<Vec<_>>()).unwrap();
            (cpus.guests.into_values().collect::<Vec<_>>(), cpus.pmds, cpus.shared)
        };
        let two = LabOptions { queues: 2, pmds: 2, guests: GuestKind::Tcg, ..LabOptions::default() };
        // 0 is for control, 1 and 2 for the switch, 7 the tester's.
        assert_eq!(guests(&two, 8), (vec![vec![3, 4], vec![5, 6]], vec![1, 2], vec![]));
        // Too few: one for each guest, whose virtual CPUs share it.
        assert_eq!(guests(&two, 7), (vec![vec![3], vec![4]], vec![1, 2], vec![3, 4]));
        let process = LabOptions { guests: GuestKind::Process, ..two.clone() };
        assert_eq!(guests(&process, 7).2, Vec::<u32>::new(), "a thread that polls both queues");
        // Those of a plan, as many as there are queues.
        let planned = LabOptions { guest_cpus: vec![vec![6, 5], vec![4, 3]], ..two };
        assert_eq!(guests(&planned, 8), (vec![vec![6, 5], vec![4, 3]], vec![1, 2], vec![]));
        let usual = |queues| {
            let options = LabOptions { queues, ..LabOptions::default() };
            by_usual_plan(options, &topology::load("phy-vm-vm-phy").unwrap(), &machine(16)).guest_cpus
        };
        assert_eq!(usual(2).iter().map(Vec::len).collect::<Vec<_>>(), [2, 2]);
        assert_eq!(usual(4).iter().map(Vec::len).collect::<Vec<_>>(), [1, 1], "a node has eight");
    }

    #[test]
    fn a_core_of_which_a_thread_is_taken_comes_last() {
        let siblings: BTreeMap<u32, Vec<u32>> = (0..8).map(|cpu| (cpu, vec![(cpu + 4) % 8])).collect();
        let order = |smt| {
            let options = LabOptions { smt, siblings: siblings.clone(), ..LabOptions::default() };
            by_core(&[1, 2, 4, 5, 6], &BTreeSet::from([0]), &options)
        };
        assert_eq!(order(true), [1, 5, 2, 6, 4]);
        assert_eq!(order(false), [1, 2, 4, 5, 6]);
    }

    #[test]
    fn a_guest_of_a_plan_has_its_cpu_or_is_refused() {
        let options = LabOptions { guest_cpus: vec![vec![2]], ..LabOptions::default() };
        let cpus = lay("phy-vm-vm-phy", &options, &[0, 1, 2, 3, 4]).unwrap();
        assert_eq!((cpus.tester, cpus.pmds.as_slice(), cpus.guests["vm1"][0]), (4, &[1][..], 2));
        assert_eq!(cpus.guests["vm2"], [3]);
        let refused = lay("phy-vm-phy", &options, &[0, 1]).unwrap_err();
        assert_eq!(refused.exit, failure::Exit::Usage);
    }

    #[test]
    fn a_mask_has_every_cpu() {
        assert_eq!(mask(&[2, 3, 4, 5]), "0x3c");
        assert_eq!((mask(&[0]).as_str(), mask(&[70, 1]).as_str()), ("0x1", "0x400000000000000002"));
    }

    #[test]
    fn chosen_cpus_are_kept_or_refused() {
        let chosen = LabOptions { pmd_cpus: vec![3, 2], tester_cpu: Some(1), ..LabOptions::default() };
        let cpus = lay("phy-vm-phy", &chosen, &[0, 1, 2, 3, 4]).unwrap();
        assert_eq!((cpus.tester, cpus.pmds.as_slice(), cpus.guests["vm1"][0]), (1, &[2, 3][..], 4));
        let all = LabOptions { pmd_cpus: vec![0], ..LabOptions::default() };
        let cpus = lay("phy-vm-phy", &all, &[0, 1]).unwrap();
        assert_eq!((cpus.tester, cpus.guests["vm1"].as_slice(), cpus.shared.as_slice()), (1, &[0][..], &[0][..]));
        let refused = |options: &LabOptions| lay("phy-vm-phy", options, &[0, 1]).unwrap_err().text;
        let twice = LabOptions { pmd_cpus: vec![0, 0], ..LabOptions::default() };
        let with_tester = LabOptions { pmd_cpus: vec![1], tester_cpu: Some(1), ..LabOptions::default() };
        let none = LabOptions { pmd_cpus: vec![7], ..LabOptions::default() };
        insta::assert_snapshot!([twice, with_tester, none].map(|o| refused(&o)).join("\n"));
    }
}
