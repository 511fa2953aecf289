//! Which core does what.
//!
//! The order is that of table 6 of the two-VM document: the first core of each NUMA node belongs to the operating system; of
//! the node that the NIC is at, the switch and its polling threads take the lowest cores, and guests the highest.

use std::{collections::VecDeque, fmt};

use serde::{Deserialize, Serialize};

use crate::{
    cpu_set::{self, CpuSet},
    machine::Machine,
};

/// What the machine is to be used for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Purpose {
    /// `linerate bench`: a tester, and the data plane of `--dut` or of `forward`.
    #[default]
    Bench,
    /// A switch with polling threads and two virtual machines (the two-VM document, table 6).
    NfviTwoVm,
    /// Applications that spin on a core each (the low-latency guide).
    LowLatency,
    /// `linerate flowlog`.
    Flowlog,
}

impl Purpose {
    /// All, in the order of their names in help.
    pub const ALL: [Self; 4] = [Self::Bench, Self::NfviTwoVm, Self::LowLatency, Self::Flowlog];

    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Bench => "bench",
            Self::NfviTwoVm => "nfvi-two-vm",
            Self::LowLatency => "low-latency",
            Self::Flowlog => "flowlog",
        }
    }
}

/// How many cores of each kind are asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shape {
    /// What for.
    pub purpose: Purpose,
    /// The NUMA node; `None` for the one with most CPUs.
    pub node: Option<u32>,
    /// Cores of the switch's own threads.
    pub switch: usize,
    /// Cores of the switch's polling threads.
    pub pmds: usize,
    /// Virtual machines.
    pub guests: usize,
    /// Virtual CPUs of each.
    pub vcpus: usize,
    /// Cores of a data plane of ours.
    pub data_plane: usize,
    /// Cores of the tester, or of applications that spin.
    pub tester: usize,
    /// Whether both threads of a core are used (the ONP report with Hyper-Threading), instead of one with the other idle.
    pub smt: bool,
}

impl Shape {
    /// What a purpose asks for by itself.
    pub fn of(purpose: Purpose) -> Self {
        let none =
            Self { purpose, node: None, switch: 0, pmds: 0, guests: 0, vcpus: 0, data_plane: 0, tester: 0, smt: false };
        match purpose {
            Purpose::Bench => Self { data_plane: 1, tester: 1, ..none },
            Purpose::NfviTwoVm => Self { switch: 1, pmds: 2, guests: 2, vcpus: 3, ..none },
            Purpose::LowLatency => Self { tester: 2, ..none },
            Purpose::Flowlog => Self { data_plane: 1, ..none },
        }
    }

    /// Cores asked for.
    fn cores(&self) -> usize {
        self.switch + self.pmds + self.data_plane + self.tester + self.guests * self.vcpus
    }
}

/// Which core does what. Sets are lists such as `2-5` in its text forms.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct CorePlan {
    /// What for.
    pub purpose: Purpose,
    /// The NUMA node of all busy cores.
    pub node: u32,
    /// Everything else: the operating system, interrupts, control threads.
    #[serde(with = "as_list")]
    pub housekeeping: CpuSet,
    /// The switch's own threads.
    #[serde(with = "as_list", default)]
    pub switch: CpuSet,
    /// The switch's polling threads.
    #[serde(with = "as_list", default)]
    pub pmds: CpuSet,
    /// Each virtual machine's, one CPU for each virtual one.
    #[serde(with = "as_lists", default)]
    pub guests: Vec<CpuSet>,
    /// Lcores of a data plane of ours.
    #[serde(with = "as_list", default)]
    pub data_plane: CpuSet,
    /// Lcores of the tester, or applications that spin.
    #[serde(with = "as_list", default)]
    pub tester: CpuSet,
    /// Other threads of busy cores: nothing runs there.
    #[serde(with = "as_list", default)]
    pub idle: CpuSet,
    /// Kept from the scheduler.
    #[serde(with = "as_list", default)]
    pub isolated: CpuSet,
    /// Whether busy cores are also the operating system's, since there are too few.
    #[serde(default)]
    pub shared: bool,
}

/// Too few cores.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shortage {
    /// The node that was looked at.
    pub node: u32,
    /// Cores that it has beside the operating system's.
    pub has: usize,
    /// Cores asked for.
    pub wants: usize,
}

impl fmt::Display for Shortage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { node, has, wants } = self;
        write!(f, "{wants} cores are needed and NUMA node {node} has {has} beside the operating system's")
    }
}

impl CorePlan {
    /// Makes a plan.
    ///
    /// # Errors
    ///
    /// The node has too few cores, or there is no such node (`has` is 0).
    pub fn make(machine: &Machine, shape: &Shape) -> Result<Self, Shortage> {
        let usable = usable(machine);
        let node = shape.node.unwrap_or_else(|| largest_node(machine, &usable));
        let housekeeping = housekeeping(machine, &usable);
        let cores: Vec<CpuSet> =
            cores(machine, &usable, node).into_iter().filter(|core| core.is_disjoint(&housekeeping)).collect();
        // What is given away of each core: one thread, or all of them, and these to one role.
        let given = |core: &CpuSet| core.iter().copied().take(if shape.smt { core.len() } else { 1 }).collect();
        let mut free: VecDeque<Vec<u32>> = cores.iter().map(given).collect();
        let short = Shortage { node, has: free.iter().map(Vec::len).sum(), wants: shape.cores() };
        let mut low = |n: usize| take(n, || free.pop_front());
        let switch = low(shape.switch).ok_or_else(|| short.clone())?;
        let pmds = low(shape.pmds).ok_or_else(|| short.clone())?;
        let data_plane = low(shape.data_plane).ok_or_else(|| short.clone())?;
        let tester = low(shape.tester).ok_or_else(|| short.clone())?;
        let mut guests = Vec::new();
        for _ in 0..shape.guests {
            guests.push(take(shape.vcpus, || free.pop_back()).ok_or_else(|| short.clone())?);
        }
        let mut plan = Self {
            purpose: shape.purpose,
            node,
            housekeeping,
            switch,
            pmds,
            guests,
            data_plane,
            tester,
            ..Self::default()
        };
        plan.idle = plan.idle_threads(machine);
        plan.isolated = match shape.purpose {
            // As in the document: everything but the operating system's.
            Purpose::NfviTwoVm => usable.difference(&plan.housekeeping).copied().collect(),
            _ => plan.busy().union(&plan.idle).copied().collect(),
        };
        Ok(plan)
    }

    /// The plan of a machine with too few cores: a tester and a data plane that share with the operating system, on this
    /// node or the largest.
    pub fn squeezed(machine: &Machine, node: Option<u32>) -> Self {
        let usable = usable(machine);
        let node = node.unwrap_or_else(|| largest_node(machine, &usable));
        let here = |first: Option<&u32>| first.copied().into_iter().collect::<CpuSet>();
        let on_node: CpuSet = machine
            .node(node)
            .map(|node| node.cpus.intersection(&usable).copied().collect())
            .filter(|cpus: &CpuSet| !cpus.is_empty())
            .unwrap_or(usable);
        Self {
            node,
            housekeeping: here(on_node.first()),
            data_plane: here(on_node.first()),
            tester: here(on_node.last()),
            shared: true,
            ..Self::default()
        }
    }

    /// The plan of a run whose cores were chosen already: everything else is the operating system's.
    pub fn of_run(machine: &Machine, tester: CpuSet, data_plane: CpuSet) -> Self {
        let first = tester.first().copied();
        let mut plan = Self { tester, data_plane, ..Self::default() };
        plan.node = first.and_then(|cpu| machine.cpu(cpu)).map_or(0, |cpu| cpu.node);
        let (usable, busy) = (usable(machine), plan.busy());
        plan.housekeeping = usable.difference(&busy).copied().collect();
        plan.shared = plan.housekeeping.is_empty();
        if plan.shared {
            plan.housekeeping = usable.first().copied().into_iter().collect();
            return plan;
        }
        let other_threads: CpuSet = busy.iter().flat_map(|&cpu| machine.siblings(cpu)).collect();
        let idle: CpuSet = other_threads.difference(&busy).copied().collect();
        // The operating system keeps a core, whoever has the other thread of it.
        if plan.housekeeping.difference(&idle).next().is_some() {
            plan.housekeeping.retain(|cpu| !idle.contains(cpu));
            plan.idle = idle;
        }
        plan.isolated = busy.union(&plan.idle).copied().collect();
        plan
    }

    /// All CPUs on which something polls, or a guest runs.
    pub fn busy(&self) -> CpuSet {
        let groups = [&self.switch, &self.pmds, &self.data_plane, &self.tester];
        groups.into_iter().chain(&self.guests).flatten().copied().collect()
    }

    /// CPUs on which something polls: busy ones without the switch's own threads.
    pub fn polling(&self) -> CpuSet {
        self.busy().difference(&self.switch).copied().collect()
    }

    /// Each role and its CPUs, in the order in which they are printed; roles without CPUs are left out.
    pub fn roles(&self) -> Vec<(String, &CpuSet)> {
        let named = |name: &str, cpus| (name.to_owned(), cpus);
        let guests = self.guests.iter().enumerate().map(|(n, cpus)| (format!("guest {}", n + 1), cpus));
        [
            named("operating system", &self.housekeeping),
            named("switch", &self.switch),
            named("polling threads", &self.pmds),
        ]
        .into_iter()
        .chain([named("data plane", &self.data_plane), named("tester", &self.tester)])
        .chain(guests)
        .chain([named("idle threads", &self.idle)])
        .filter(|(_, cpus)| !cpus.is_empty())
        .collect()
    }

    /// What is wrong with a plan for a machine, such as one that was made for another; `None` if it fits.
    pub fn misfit(&self, machine: &Machine) -> Option<String> {
        let online = machine.online();
        // Threads that are to stay idle may be off: that is one way to keep them so.
        let named: CpuSet =
            self.busy().iter().chain(&self.housekeeping).chain(self.isolated.difference(&self.idle)).copied().collect();
        let off: CpuSet = named.difference(&online).copied().collect();
        if !off.is_empty() {
            return Some(format!(
                "CPU {} is not here or is off (on: {})",
                cpu_set::to_list(&off),
                cpu_set::to_list(&online)
            ));
        }
        let nodes: CpuSet = machine.nodes.iter().map(|node| node.number).collect();
        if !nodes.is_empty() && !nodes.contains(&self.node) {
            return Some(format!("node {} is not here (nodes: {})", self.node, cpu_set::to_list(&nodes)));
        }
        if self.housekeeping.is_empty() {
            return Some("no CPU is left for the operating system".to_owned());
        }
        let mut seen: Vec<(String, &CpuSet)> = Vec::new();
        for (role, cpus) in self.roles() {
            let twice = seen.iter().find_map(|(other, taken)| {
                let both: CpuSet = cpus.intersection(taken).copied().collect();
                (!both.is_empty()).then(|| format!("CPU {} is of both: {other}, {role}", cpu_set::to_list(&both)))
            });
            // Too few cores are shared with the operating system, and only with it.
            match twice {
                Some(twice) if !(self.shared && twice.contains("operating system")) => return Some(twice),
                _ => seen.push((role, cpus)),
            }
        }
        None
    }

    fn idle_threads(&self, machine: &Machine) -> CpuSet {
        let busy = self.busy();
        let others = busy.iter().flat_map(|&cpu| machine.siblings(cpu));
        others.filter(|thread| !busy.contains(thread) && !self.housekeeping.contains(thread)).collect()
    }
}

/// So many CPUs of the next cores; `None` if these are too few. What is left of the last core is given to nobody else.
fn take(n: usize, mut next: impl FnMut() -> Option<Vec<u32>>) -> Option<CpuSet> {
    let mut taken = CpuSet::new();
    while taken.len() < n {
        let left = n - taken.len();
        taken.extend(next()?.into_iter().take(left));
    }
    Some(taken)
}

fn usable(machine: &Machine) -> CpuSet {
    let online = machine.online();
    let both: CpuSet = online.intersection(&machine.allowed).copied().collect();
    if both.is_empty() {
        online
    } else {
        both
    }
}

fn largest_node(machine: &Machine, usable: &CpuSet) -> u32 {
    let size = |cpus: &CpuSet| cpus.intersection(usable).count();
    let largest = machine.nodes.iter().max_by_key(|node| (size(&node.cpus), std::cmp::Reverse(node.number)));
    largest.map_or(0, |node| node.number)
}

/// The cores of a node, each with its threads.
fn cores(machine: &Machine, usable: &CpuSet, node: u32) -> Vec<CpuSet> {
    let mut cores: Vec<CpuSet> = Vec::new();
    for cpu in machine.cpus.iter().filter(|cpu| cpu.node == node) {
        let threads: CpuSet = cpu.threads.intersection(usable).copied().collect();
        if !threads.is_empty() && !cores.contains(&threads) {
            cores.push(threads);
        }
    }
    cores
}

fn housekeeping(machine: &Machine, usable: &CpuSet) -> CpuSet {
    machine.nodes.iter().filter_map(|node| cores(machine, usable, node.number).into_iter().next()).flatten().collect()
}

mod as_list {
    use serde::{de::Error, Deserialize, Deserializer, Serializer};

    use crate::cpu_set::{self, CpuSet};

    pub(super) fn serialize<S: Serializer>(cpus: &CpuSet, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&cpu_set::to_list(cpus))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<CpuSet, D::Error> {
        read(&String::deserialize(from)?).map_err(D::Error::custom)
    }

    /// What a person wrote has to be a list, all of it.
    pub(super) fn read(text: &str) -> Result<CpuSet, String> {
        let cpus = cpu_set::from_list(text);
        let parts = text.split(',').filter(|part| !part.trim().is_empty());
        let number = |text: &str| text.trim().parse::<u32>().is_ok_and(|cpu| cpu <= 4096);
        let sound = |part: &str| match part.split_once('-') {
            Some((first, last)) => number(first) && number(last) && !cpu_set::from_list(part).is_empty(),
            None => number(part),
        };
        match parts.into_iter().all(sound) {
            true => Ok(cpus),
            false => Err(format!("\"{text}\" must be a list of CPUs, such as 2-5 or 0,22")),
        }
    }
}

mod as_lists {
    use serde::{de::Error, Deserialize, Deserializer, Serialize, Serializer};

    use crate::cpu_set::{self, CpuSet};

    pub(super) fn serialize<S: Serializer>(sets: &[CpuSet], to: S) -> Result<S::Ok, S::Error> {
        sets.iter().map(cpu_set::to_list).collect::<Vec<_>>().serialize(to)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<CpuSet>, D::Error> {
        let texts = Vec::<String>::deserialize(from)?;
        texts.iter().map(|text| super::as_list::read(text).map_err(D::Error::custom)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{machine::Node, Recording, Roots};

    /// Cores without threads, or with two: CPU n and CPU n + all.
    fn machine(nodes: u32, cores: u32, threads: u32) -> Machine {
        let all = nodes * cores;
        let mut tree = format!("linerate machine 1\n/sys/devices/system/cpu/online = 0-{}\n", all * threads - 1);
        for cpu in 0..all * threads {
            let threads = (0..threads).map(|t| (cpu % all + t * all).to_string()).collect::<Vec<_>>().join(",");
            tree += &format!("/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list = {threads}\n");
        }
        for node in 0..nodes {
            let lists =
                (0..threads).map(|t| format!("{}-{}", t * all + node * cores, t * all + (node + 1) * cores - 1));
            tree += &format!("/sys/devices/system/node/node{node}/cpulist = {}\n", lists.collect::<Vec<_>>().join(","));
        }
        let dir = tempfile::tempdir().unwrap();
        Recording::parse(&tree).unwrap().unpack(dir.path()).unwrap();
        Machine::read(&Roots::at(dir.path()))
    }

    fn lists(plan: &CorePlan) -> Vec<String> {
        plan.roles().iter().map(|(role, cpus)| format!("{role}: {}", cpu_set::to_list(cpus))).collect()
    }

    #[test]
    fn the_document_s_table_6() {
        let machine = machine(2, 22, 1);
        let shape = Shape { node: Some(0), ..Shape::of(Purpose::NfviTwoVm) };
        let plan = CorePlan::make(&machine, &shape).unwrap();
        let wanted =
            ["operating system: 0,22", "switch: 1", "polling threads: 2-3", "guest 1: 19-21", "guest 2: 16-18"];
        assert_eq!(lists(&plan), wanted);
        assert_eq!(cpu_set::to_list(&plan.isolated), "1-21,23-43");
        let four = CorePlan::make(&machine, &Shape { pmds: 4, ..shape }).unwrap();
        assert_eq!(cpu_set::to_hex(&four.pmds), "3c");
        assert_eq!(plan.misfit(&machine), None);
        assert_eq!(cpu_set::to_list(&plan.polling()), "2-3,16-21");
    }

    #[test]
    fn other_threads_of_busy_cores_stay_idle_unless_they_are_asked_for() {
        let machine = machine(1, 8, 2);
        let plan = CorePlan::make(&machine, &Shape::of(Purpose::Bench)).unwrap();
        assert_eq!(lists(&plan), ["operating system: 0,8", "data plane: 1", "tester: 2", "idle threads: 9-10"]);
        assert_eq!(cpu_set::to_list(&plan.isolated), "1-2,9-10");
        let both = CorePlan::make(&machine, &Shape { smt: true, pmds: 4, ..Shape::of(Purpose::NfviTwoVm) }).unwrap();
        // Both threads of a core are of one role, whatever their numbers.
        assert_eq!(
            lists(&both),
            [
                "operating system: 0,8",
                "switch: 1",
                "polling threads: 2-3,10-11",
                "guest 1: 6-7,15",
                "guest 2: 4-5,13",
                "idle threads: 9,12,14"
            ]
        );
        let pairs =
            CorePlan::make(&machine, &Shape { smt: true, data_plane: 2, tester: 2, ..Shape::of(Purpose::Bench) });
        assert_eq!(lists(&pairs.unwrap())[1..], ["data plane: 1,9", "tester: 2,10"]);
        let most = Shape { smt: true, tester: 15, ..Shape::of(Purpose::LowLatency) };
        assert_eq!(CorePlan::make(&machine, &most).unwrap_err().has, 14);
    }

    #[test]
    fn too_few_cores_are_said_and_shared_only_when_asked() {
        let two = machine(1, 2, 1);
        let short = CorePlan::make(&two, &Shape::of(Purpose::Bench)).unwrap_err();
        assert_eq!(short, Shortage { node: 0, has: 1, wants: 2 });
        let plan = CorePlan::squeezed(&two, None);
        assert_eq!(lists(&plan), ["operating system: 0", "data plane: 0", "tester: 1"]);
        assert!(plan.isolated.is_empty() && plan.misfit(&two).is_none());
        assert_eq!(lists(&CorePlan::squeezed(&machine(2, 2, 1), Some(1)))[1..], ["data plane: 2", "tester: 3"]);
        let none = CorePlan::make(&two, &Shape { node: Some(7), ..Shape::of(Purpose::Flowlog) }).unwrap_err();
        assert_eq!((none.node, none.has), (7, 0));
        assert!(CorePlan::make(&machine(1, 8, 1), &Shape { vcpus: 9, ..Shape::of(Purpose::NfviTwoVm) }).is_err());
        assert_eq!(CorePlan::squeezed(&Machine::default(), None).busy(), CpuSet::new());
        assert_eq!(machine(1, 4, 1).nodes, [Node { number: 0, cpus: cpu_set::from_list("0-3"), ..Node::default() }]);
    }

    #[test]
    fn a_run_on_chosen_cores_leaves_the_others_to_the_operating_system() {
        let set = cpu_set::from_list;
        let of = |machine: &Machine, tester, device| {
            let plan = CorePlan::of_run(machine, set(tester), set(device));
            assert_eq!(plan.misfit(machine), None, "{plan:?}");
            (lists(&plan), cpu_set::to_list(&plan.isolated), plan.shared)
        };
        let (roles, isolated, shared) = of(&machine(2, 4, 1), "7", "6");
        assert_eq!(roles, ["operating system: 0-5", "data plane: 6", "tester: 7"]);
        assert_eq!((isolated.as_str(), shared), ("6-7", false));
        assert_eq!(CorePlan::of_run(&machine(2, 4, 1), set("7"), set("6")).node, 1);
        let (roles, isolated, _) = of(&machine(1, 4, 2), "3", "2");
        assert_eq!(roles, ["operating system: 0-1,4-5", "data plane: 2", "tester: 3", "idle threads: 6-7"]);
        assert_eq!(isolated, "2-3,6-7");
        let (roles, isolated, shared) = of(&machine(1, 2, 1), "1", "0");
        assert_eq!(roles, ["operating system: 0", "data plane: 0", "tester: 1"]);
        assert_eq!((isolated.as_str(), shared), ("", true));
        // Two cores with two threads: the other threads are all that is left.
        let (roles, isolated, _) = of(&machine(1, 2, 2), "1", "0");
        assert_eq!(roles, ["operating system: 2-3", "data plane: 0", "tester: 1"]);
        assert_eq!(isolated, "0-1");
    }

    #[test]
    fn only_cpus_that_this_process_may_use_are_given_away() {
        let mut machine = machine(2, 4, 1);
        machine.allowed = cpu_set::from_list("4-7");
        let plan = CorePlan::make(&machine, &Shape::of(Purpose::Flowlog)).unwrap();
        assert_eq!(lists(&plan), ["operating system: 4", "data plane: 5"]);
        assert_eq!(plan.node, 1);
    }

    #[test]
    fn a_plan_that_does_not_fit_is_told() {
        let machine = machine(1, 4, 1);
        let plan = CorePlan::make(&machine, &Shape::of(Purpose::Bench)).unwrap();
        let with = |change: &dyn Fn(&mut CorePlan)| {
            let mut plan = plan.clone();
            change(&mut plan);
            plan.misfit(&machine).unwrap()
        };
        assert!(with(&|plan| plan.tester = cpu_set::from_list("9")).contains("CPU 9"));
        assert!(with(&|plan| plan.tester = plan.data_plane.clone()).contains("data plane, tester"));
        assert!(with(&|plan| plan.housekeeping.clear()).contains("operating system"));
        assert!(with(&|plan| plan.tester = plan.housekeeping.clone()).contains("operating system"));
        let idle_and_off =
            CorePlan { idle: cpu_set::from_list("9"), isolated: cpu_set::from_list("1-2,9"), ..plan.clone() };
        assert_eq!(idle_and_off.misfit(&machine), None);
        let elsewhere = CorePlan { node: 9, ..idle_and_off };
        let why = elsewhere.misfit(&machine).unwrap();
        assert!(why.contains("node 9"), "{why}");
        // A machine that does not say its nodes has any.
        assert_eq!(elsewhere.misfit(&Machine { nodes: Vec::new(), ..machine }), None);
        let text = serde_json::to_string(&plan).unwrap();
        assert_eq!(serde_json::from_str::<CorePlan>(&text).unwrap(), plan);
        for wrong in ["x", "3-1", "1,,x", "1-", "9999"] {
            let text = text.replacen("\"tester\":\"2\"", &format!("\"tester\":\"{wrong}\""), 1);
            assert!(serde_json::from_str::<CorePlan>(&text).is_err(), "{wrong}");
        }
    }
}
