//! What a machine is made of: CPUs, NUMA nodes, hugepages, and what it runs in.

use std::collections::BTreeMap;

use crate::{
    boot_line::BootLine,
    cpu_set::{self, CpuSet},
    pci::PciDevice,
    pci::USER_SPACE,
    realtime, Roots,
};

/// One CPU that is on: a thread of a core.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Cpu {
    /// Its number.
    pub number: u32,
    /// NUMA node; 0 where the machine has only one.
    pub node: u32,
    /// All threads of its core, itself included (SMT).
    pub threads: CpuSet,
}

/// Hugepages of one size.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Hugepages {
    /// How many there are.
    pub total: u64,
    /// How many nobody uses.
    pub free: u64,
}

/// A NUMA node.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Node {
    /// Its number.
    pub number: u32,
    /// Its CPUs that are on.
    pub cpus: CpuSet,
    /// Its hugepages by size in KiB.
    pub hugepages: BTreeMap<u64, Hugepages>,
}

/// What a machine is made of.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Machine {
    /// CPUs that are on, rising.
    pub cpus: Vec<Cpu>,
    /// NUMA nodes, rising; at least one.
    pub nodes: Vec<Node>,
    /// What the kernel was booted with.
    pub boot: BootLine,
    /// The kernel's release, `6.1.0-18-amd64`.
    pub kernel: String,
    /// Vendor of the CPU: `GenuineIntel`, `AuthenticAMD`.
    pub cpu_vendor: String,
    /// Model of the CPU.
    pub cpu_model: String,
    /// Features of the CPU, as `/proc/cpuinfo` names them.
    pub cpu_flags: Vec<String>,
    /// The hypervisor's or the machine's vendor, if this is a virtual machine.
    pub virtual_machine: Option<String>,
    /// How a container was found, if this is one.
    pub container: Option<String>,
    /// CPUs that this process may use.
    pub allowed: CpuSet,
    /// CPUs that the control group of this process may use the time of; `None` without a limit.
    pub quota_cpus: Option<f64>,
    /// Network devices on the PCI bus.
    pub nics: Vec<PciDevice>,
}

impl Machine {
    /// The NUMA node of the first NIC that was named. Without one, that of the NICs that a program in user space has, or of all,
    /// where they agree.
    pub fn node_of_nics(&self, named: &[String]) -> Option<u32> {
        if let Some(first) = named.first() {
            return self.nics.iter().find(|nic| nic.address == *first)?.numa_node;
        }
        let handed = |nic: &&PciDevice| nic.driver.as_deref().is_some_and(|driver| USER_SPACE.contains(&driver));
        let handed: Vec<&PciDevice> = self.nics.iter().filter(handed).collect();
        let nics = if handed.is_empty() { self.nics.iter().collect() } else { handed };
        let node = nics.first()?.numa_node;
        node.filter(|_| nics.iter().all(|nic| nic.numa_node == node))
    }

    /// Reads it. What cannot be read is empty.
    pub fn read(roots: &Roots) -> Self {
        let cpuinfo = roots.fact("/proc/cpuinfo").known().unwrap_or_default();
        let field = |name: &str| {
            let value =
                |line: &str| line.split_once(':').filter(|(k, _)| k.trim() == name).map(|(_, v)| v.trim().to_owned());
            cpuinfo.lines().find_map(value).unwrap_or_default()
        };
        let cpu_flags: Vec<String> = field("flags").split_ascii_whitespace().map(str::to_owned).collect();
        let container = container(roots);
        let nodes = nodes(roots);
        let cpus: Vec<Cpu> = online(roots).into_iter().map(|number| cpu(roots, &nodes, number)).collect();
        Self {
            boot: BootLine::parse(&roots.fact("/proc/cmdline").known().unwrap_or_default()),
            kernel: roots.fact("/proc/sys/kernel/osrelease").known().unwrap_or_default(),
            cpu_vendor: field("vendor_id"),
            cpu_model: field("model name"),
            virtual_machine: cpu_flags.iter().any(|flag| flag == "hypervisor").then(|| hypervisor(roots)),
            allowed: allowed(roots, container.is_some()),
            container,
            cpu_flags,
            quota_cpus: quota(roots),
            nics: PciDevice::all(roots),
            nodes: if nodes.is_empty() { vec![only_node(roots, &cpus)] } else { nodes },
            cpus,
        }
    }

    /// All CPUs that are on.
    pub fn online(&self) -> CpuSet {
        self.cpus.iter().map(|cpu| cpu.number).collect()
    }

    /// A CPU; `None` if there is none of this number, or it is off.
    pub fn cpu(&self, number: u32) -> Option<&Cpu> {
        self.cpus.iter().find(|cpu| cpu.number == number)
    }

    /// The other threads of the core of a CPU.
    pub fn siblings(&self, number: u32) -> CpuSet {
        let threads = self.cpu(number).map(|cpu| cpu.threads.clone()).unwrap_or_default();
        threads.into_iter().filter(|&thread| thread != number).collect()
    }

    /// A node by its number.
    pub fn node(&self, number: u32) -> Option<&Node> {
        self.nodes.iter().find(|node| node.number == number)
    }

    /// Whether the CPU has a feature.
    pub fn has_flag(&self, flag: &str) -> bool {
        self.cpu_flags.iter().any(|f| f == flag)
    }

    /// The first two numbers of the kernel's release; zeros where there are none.
    pub fn kernel_version(&self) -> (u32, u32) {
        realtime::version(&self.kernel)
    }
}

fn online(roots: &Roots) -> CpuSet {
    let listed = roots.fact("/sys/devices/system/cpu/online").known();
    if let Some(listed) = listed.map(|text| cpu_set::from_list(&text)).filter(|cpus| !cpus.is_empty()) {
        return listed;
    }
    // A container may hide it; each CPU has a line of its own here.
    let stat = roots.fact("/proc/stat").known().unwrap_or_default();
    let number = |line: &str| line.split_ascii_whitespace().next()?.strip_prefix("cpu")?.parse().ok();
    stat.lines().filter_map(number).collect()
}

fn cpu(roots: &Roots, nodes: &[Node], number: u32) -> Cpu {
    let threads = roots.fact(format!("/sys/devices/system/cpu/cpu{number}/topology/thread_siblings_list"));
    let mut threads = cpu_set::from_list(&threads.known().unwrap_or_default());
    threads.insert(number);
    let node = nodes.iter().find(|node| node.cpus.contains(&number)).map_or(0, |node| node.number);
    Cpu { number, node, threads }
}

fn nodes(roots: &Roots) -> Vec<Node> {
    let names = roots.names("/sys/devices/system/node");
    let mut numbers: Vec<u32> = names.iter().filter_map(|name| name.strip_prefix("node")?.parse().ok()).collect();
    numbers.sort_unstable();
    let node = |number: u32| {
        let at = format!("/sys/devices/system/node/node{number}");
        let cpus = cpu_set::from_list(&roots.fact(format!("{at}/cpulist")).known().unwrap_or_default());
        Node { number, cpus, hugepages: hugepages(roots, &format!("{at}/hugepages")) }
    };
    numbers.into_iter().map(node).collect()
}

/// A machine that does not speak of nodes has one.
fn only_node(roots: &Roots, cpus: &[Cpu]) -> Node {
    let hugepages = hugepages(roots, "/sys/kernel/mm/hugepages");
    Node { number: 0, cpus: cpus.iter().map(|cpu| cpu.number).collect(), hugepages }
}

fn hugepages(roots: &Roots, at: &str) -> BTreeMap<u64, Hugepages> {
    let size = |name: &String| name.strip_prefix("hugepages-")?.strip_suffix("kB")?.parse().ok();
    let one = |name: String| {
        let count = |file: &str| roots.value(format!("{at}/{name}/{file}")).unwrap_or(0);
        Some((size(&name)?, Hugepages { total: count("nr_hugepages"), free: count("free_hugepages") }))
    };
    roots.names(at).into_iter().filter_map(one).collect()
}

fn hypervisor(roots: &Roots) -> String {
    let vendor = roots.fact("/sys/class/dmi/id/sys_vendor").known().filter(|vendor| !vendor.is_empty());
    let kind = || roots.fact("/sys/hypervisor/type").known();
    vendor.or_else(kind).unwrap_or_else(|| "unknown hypervisor".to_owned())
}

/// Signs of a container, none of which alone is in every one.
fn container(roots: &Roots) -> Option<String> {
    for file in ["/.dockerenv", "/run/.containerenv"] {
        if roots.is_there(file) {
            return Some(file.to_owned());
        }
    }
    let sign =
        |text: &str| ["docker", "kubepods", "libpod", "lxc", "containerd"].into_iter().find(|s| text.contains(s));
    if let Some(sign) = roots.fact("/proc/1/cgroup").known().as_deref().and_then(sign) {
        return Some(format!("/proc/1/cgroup: {sign}"));
    }
    // With a name space of its own it sees no group above itself, but where the layers of its root are.
    let mounts = roots.fact("/proc/mounts").known()?;
    let root = |line: &&str| line.split_ascii_whitespace().skip(1).take(2).eq(["/", "overlay"]);
    let layers = mounts.lines().rev().find(root)?;
    let sign = ["docker", "containerd", "containers"].into_iter().find(|sign| layers.contains(&format!("/{sign}/")))?;
    Some(format!("/proc/mounts: {sign}"))
}

/// CPUs that threads of this process may be put on: those that it has, and isolated ones, unless somebody has chosen CPUs for it.
pub(crate) fn may_go_to(roots: &Roots) -> CpuSet {
    let list = |of: &str| {
        let status = roots.proc(&format!("{of}/status"))?;
        Some(cpu_set::from_list(status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"))?.trim()))
    };
    let own = list("self").unwrap_or_default();
    // `taskset`, or a service that names CPUs: the first process has what the boot line left.
    match list("1").is_none_or(|first| first == own) {
        true => allowed(roots, container(roots).is_some()),
        false => own,
    }
}

/// CPUs that this process may use.
fn allowed(roots: &Roots, container: bool) -> CpuSet {
    let status = roots.fact("/proc/self/status").known().unwrap_or_default();
    let listed = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:")).unwrap_or_default();
    let mut allowed = cpu_set::from_list(listed.trim());
    if allowed.is_empty() {
        return allowed;
    }
    // No process begins on a CPU of isolcpus, and each may go there: what holds it is its control group.
    let isolated = roots.fact("/sys/devices/system/cpu/isolated").known().unwrap_or_default();
    let files = ["cpuset.cpus.effective", "cpuset.effective_cpus", "cpuset.cpus"];
    let of_group = |at: &String| {
        let cpus = |file: &&str| Some(cpu_set::from_list(&roots.fact(format!("{at}/{file}")).known()?));
        files.iter().find_map(cpus).filter(|cpus| !cpus.is_empty())
    };
    let group = groups(roots, "cpuset").iter().find_map(|(_, at)| of_group(at));
    let may = |cpu: &u32| group.as_ref().map_or(!container, |group| group.contains(cpu));
    allowed.extend(cpu_set::from_list(&isolated).into_iter().filter(may));
    allowed
}

/// The directories of the control groups of this process that have a controller, each before those above it, and whether
/// they are of the second kind.
fn groups(roots: &Roots, controller: &str) -> Vec<(bool, String)> {
    let mut found = Vec::new();
    for line in roots.fact("/proc/self/cgroup").known().unwrap_or_default().lines() {
        let mut parts = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(path)) = (parts.next(), parts.next()) else { continue };
        let second = controllers.is_empty();
        if !second && !controllers.split(',').any(|one| one == controller) {
            continue;
        }
        // Of the first kind: the kernel writes cpuacct,cpu where the directory is cpu,cpuacct; a link has the name alone.
        let tops = match second {
            true => vec!["/sys/fs/cgroup".to_owned()],
            false if controllers == controller => vec![format!("/sys/fs/cgroup/{controller}")],
            false => vec![format!("/sys/fs/cgroup/{controllers}"), format!("/sys/fs/cgroup/{controller}")],
        };
        for top in tops {
            let mut path = path.trim_matches('/');
            while !path.is_empty() {
                found.push((second, format!("{top}/{path}")));
                path = path.rsplit_once('/').map_or("", |(above, _)| above);
            }
            found.push((second, top));
        }
    }
    found
}

/// The CPU time that the control group of this process may use, in CPUs; the least of it and of the groups above.
fn quota(roots: &Roots) -> Option<f64> {
    let one = |(second, at): (bool, String)| if second { quota_v2(roots, &at) } else { quota_v1(roots, &at) };
    groups(roots, "cpu").into_iter().filter_map(one).reduce(f64::min)
}

fn quota_v2(roots: &Roots, at: &str) -> Option<f64> {
    let text = roots.fact(format!("{at}/cpu.max")).known()?;
    let (most, period) = text.split_once(' ')?;
    Some(most.parse::<f64>().ok()? / period.trim().parse::<f64>().ok().filter(|&us| us > 0.0)?)
}

fn quota_v1(roots: &Roots, at: &str) -> Option<f64> {
    let most: f64 = roots.value(format!("{at}/cpu.cfs_quota_us")).filter(|&us| us > 0.0)?;
    Some(most / roots.value::<f64>(format!("{at}/cpu.cfs_period_us")).filter(|&us| us > 0.0)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Recording;

    fn machine(tree: &str) -> Machine {
        let dir = tempfile::tempdir().unwrap();
        Recording::parse(&format!("linerate machine 1\n{tree}")).unwrap().unpack(dir.path()).unwrap();
        Machine::read(&Roots::at(dir.path()))
    }

    #[test]
    fn two_sockets_with_threads_are_read() {
        let machine = machine(
            "/sys/devices/system/cpu/online = 0-7
/sys/devices/system/cpu/cpu{0,4}/topology/thread_siblings_list = 0,4
/sys/devices/system/cpu/cpu{1,5}/topology/thread_siblings_list = 1,5
/sys/devices/system/node/node0/cpulist = 0-1,4-5
/sys/devices/system/node/node1/cpulist = 2-3,6-7
/sys/devices/system/node/node0/hugepages/hugepages-1048576kB/nr_hugepages = 4
/sys/devices/system/node/node0/hugepages/hugepages-1048576kB/free_hugepages = 3
/proc/cpuinfo <<
processor\t: 0
vendor_id\t: GenuineIntel
flags\t\t: fpu constant_tsc
>>
/proc/sys/kernel/osrelease = 6.12.3-amd64
/proc/self/status <<
Name:\tx
Cpus_allowed_list:\t0-3
>>
",
        );
        assert_eq!(machine.cpus.len(), 8);
        assert_eq!(machine.siblings(5), cpu_set::from_list("1"));
        assert_eq!(machine.siblings(2), CpuSet::new());
        assert_eq!(machine.cpu(6).unwrap().node, 1);
        assert_eq!(machine.node(0).unwrap().hugepages[&1_048_576], Hugepages { total: 4, free: 3 });
        assert_eq!(machine.allowed, cpu_set::from_list("0-3"));
        assert_eq!(machine.kernel_version(), (6, 12));
        assert!(machine.has_flag("constant_tsc") && machine.virtual_machine.is_none() && machine.container.is_none());
        assert_eq!(machine.quota_cpus, None);
    }

    #[test]
    fn a_container_in_a_virtual_machine_is_both() {
        let machine = machine(
            "/proc/stat <<
cpu  1 2
cpu0 1 2
cpu3 1 2
>>
/proc/cpuinfo = flags : fpu hypervisor
/.dockerenv =
/proc/self/cgroup = 0::/a/b
/sys/fs/cgroup/a/cpu.max = 150000 100000
/sys/fs/cgroup/a/b/cpu.max = max 100000
/sys/fs/cgroup/cpu.max = 400000 100000
",
        );
        assert_eq!(machine.online(), cpu_set::from_list("0,3"));
        assert_eq!(machine.virtual_machine.as_deref(), Some("unknown hypervisor"));
        assert_eq!(machine.container.as_deref(), Some("/.dockerenv"));
        assert_eq!(machine.quota_cpus, Some(1.5), "that of the group above");
        assert_eq!((machine.nodes.len(), machine.nodes[0].cpus.len()), (1, 2));
    }

    #[test]
    fn isolated_cpus_may_be_used_unless_the_group_forbids_it() {
        let tree = "/proc/self/status = Cpus_allowed_list:\t0\n/sys/devices/system/cpu/isolated = 1-3\n";
        let allowed = |more: &str| cpu_set::to_list(&machine(&format!("{tree}{more}")).allowed);
        assert_eq!(allowed(""), "0-3");
        let group = "/proc/self/cgroup = 0::/a/b\n/sys/fs/cgroup/a/cpuset.cpus.effective = 0-2\n";
        assert_eq!(allowed(&format!("{group}/sys/fs/cgroup/cpuset.cpus.effective = 0-3\n")), "0-2");
        assert_eq!(allowed("/.dockerenv =\n"), "0", "what the group says is not known");
        assert_eq!(
            allowed("/.dockerenv =\n/proc/self/cgroup = 0::/\n/sys/fs/cgroup/cpuset.cpus.effective = 0,3\n"),
            "0,3"
        );
        assert_eq!(allowed("/proc/self/cgroup = 3:cpuset:/\n/sys/fs/cgroup/cpuset/cpuset.cpus = 0-1\n"), "0-1");
    }

    #[test]
    fn what_polls_may_go_to_isolated_cpus_unless_somebody_chose_others() {
        let may = |first: &str| {
            let tree = format!(
                "linerate machine 1\n/proc/self/status = Cpus_allowed_list:\t0\n/sys/devices/system/cpu/isolated = 1-3\n{first}"
            );
            let dir = tempfile::tempdir().unwrap();
            Recording::parse(&tree).unwrap().unpack(dir.path()).unwrap();
            cpu_set::to_list(&may_go_to(&Roots::at(dir.path())))
        };
        assert_eq!(may("/proc/1/status = Cpus_allowed_list:\t0\n"), "0-3");
        assert_eq!(may("/proc/1/status = Cpus_allowed_list:\t0,4\n"), "0", "taskset");
        assert_eq!(may(""), "0-3", "nobody says");
    }

    #[test]
    fn control_groups_of_the_first_kind_and_odd_ones() {
        let first = machine(
            "/proc/self/cgroup <<
5:cpu,cpuacct:/x
4:memory:/
odd
>>
/proc/1/cgroup = 1:name=systemd:/kubepods/burstable/x
/sys/fs/cgroup/cpu,cpuacct/x/cpu.cfs_quota_us = 50000
/sys/fs/cgroup/cpu,cpuacct/x/cpu.cfs_period_us = 100000
/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us = -1
",
        );
        assert_eq!(first.quota_cpus, Some(0.5));
        let swapped = "/proc/self/cgroup = 4:cpuacct,cpu:/\n/sys/fs/cgroup/cpu/cpu.cfs_quota_us = 150000\n/sys/fs/cgroup/cpu/cpu.cfs_period_us = 100000\n";
        assert_eq!(machine(swapped).quota_cpus, Some(1.5));
        assert_eq!(first.container.as_deref(), Some("/proc/1/cgroup: kubepods"));
        let layers =
            "/proc/1/cgroup = 0::/\n/proc/mounts = overlay / overlay rw,lowerdir=/var/lib/containerd/x/fs 0 0\n";
        assert_eq!(machine(layers).container.as_deref(), Some("/proc/mounts: containerd"));
        assert_eq!(machine(&layers.replace("/var/lib/containerd", "/run/live")).container, None);
        assert_eq!(machine("/proc/self/cgroup = 0::/\n/sys/fs/cgroup/cpu.max = 1 0\n").quota_cpus, None);
        assert_eq!(machine("/sys/nothing = 1\n").cpus.len(), 0);
    }
}
