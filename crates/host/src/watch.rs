//! Who interrupted which core, how often, for how long and by what.

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use serde::Serialize;

use crate::{
    cpu_set::CpuSet,
    interrupt_table::{self, Row},
    ProcessTimes, Ran, Roots,
};

/// Largest share of the time that looking may cost: threads are looked at less often where there are many.
const MOST_COST: u32 = 100;

/// Counters of all CPUs at one moment.
#[derive(Debug, Clone, Default)]
struct Counters {
    /// By name, then by CPU.
    interrupts: BTreeMap<String, BTreeMap<u32, u64>>,
    softirqs: BTreeMap<String, BTreeMap<u32, u64>>,
    /// Ticks of 10 ms: interrupts, soft interrupts, steal.
    ticks: BTreeMap<u32, [u64; 3]>,
}

/// What came to a core in an interval.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CoreWatch {
    /// The CPU.
    pub cpu: u32,
    /// Seconds between the two looks.
    pub seconds: f64,
    /// Interrupts by name, the most frequent first. Those that did not come are left out.
    pub interrupts: Vec<Came>,
    /// Soft interrupts by name, the most frequent first.
    pub softirqs: Vec<Came>,
    /// Seconds in interrupts, of both kinds (steps of 10 ms).
    pub interrupt_seconds: f64,
    /// Seconds that the hypervisor ran something else (steps of 10 ms).
    pub steal_seconds: f64,
    /// Threads that ran, the longest first; `None` if they were not looked at in this interval.
    pub threads: Option<Vec<Thread>>,
}

/// Something that came.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Came {
    /// Its name: `LOC`, `TLB`, `eth0-rx-0`, `TIMER`.
    pub name: String,
    /// How often.
    pub times: u64,
}

/// A thread that ran.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Thread {
    /// Its process.
    pub pid: u32,
    /// Its name.
    pub name: String,
    /// Seconds (steps of 10 ms).
    pub seconds: f64,
    /// Whether it is one of the kernel's.
    pub kernel: bool,
}

/// Looks at cores again and again.
#[derive(Debug)]
pub struct Watch {
    roots: Roots,
    cpus: CpuSet,
    at: Instant,
    before: Counters,
    threads: ProcessTimes,
    /// What looking at threads took.
    cost: Duration,
    /// When threads were looked at.
    looked: Instant,
}

impl Watch {
    /// Looks for the first time.
    pub fn begin(roots: &Roots, cpus: &CpuSet) -> Self {
        let looked = Instant::now();
        let threads = ProcessTimes::read(roots, std::process::id());
        let cost = looked.elapsed();
        Self {
            roots: roots.clone(),
            cpus: cpus.clone(),
            at: Instant::now(),
            before: Counters::read(roots),
            threads,
            cost,
            looked,
        }
    }

    /// What came to each core since the last look.
    pub fn look(&mut self) -> Vec<CoreWatch> {
        self.look_for(false)
    }

    /// The same with threads, whatever that costs: for a single look.
    pub fn look_closely(&mut self) -> Vec<CoreWatch> {
        self.look_for(true)
    }

    fn look_for(&mut self, closely: bool) -> Vec<CoreWatch> {
        let (now, counters) = (Instant::now(), Counters::read(&self.roots));
        let seconds = (now - self.at).as_secs_f64();
        let ran = self.ran(closely);
        let cores = self.cpus.iter().map(|&cpu| {
            let [irq, soft, steal] = self.before.ticks_until(&counters, cpu);
            let of = |ran: &Vec<Ran>| ran.iter().filter(|ran| ran.cpu == cpu).map(thread).collect();
            CoreWatch {
                cpu,
                seconds,
                interrupts: until(&self.before.interrupts, &counters.interrupts, cpu),
                softirqs: until(&self.before.softirqs, &counters.softirqs, cpu),
                interrupt_seconds: (irq + soft) as f64 * 0.01,
                steal_seconds: steal as f64 * 0.01,
                threads: ran.as_ref().map(of),
            }
        });
        let cores = cores.collect();
        (self.at, self.before) = (now, counters);
        cores
    }

    /// Threads that ran since they were looked at; `None` if that was too short ago for what it costs.
    fn ran(&mut self, closely: bool) -> Option<Vec<Ran>> {
        let begun = Instant::now();
        if !closely && begun - self.looked < self.cost * MOST_COST {
            return None;
        }
        let later = ProcessTimes::read(&self.roots, std::process::id());
        let cpus: Vec<u32> = self.cpus.iter().copied().collect();
        let ran = self.threads.until(&later, &cpus);
        (self.threads, self.looked, self.cost) = (later, begun, begun.elapsed());
        Some(ran)
    }
}

fn thread(ran: &Ran) -> Thread {
    Thread { pid: ran.pid, name: ran.name.clone(), seconds: ran.seconds, kernel: ran.kernel }
}

impl Counters {
    fn read(roots: &Roots) -> Self {
        let text = |path: &str| roots.fact(path).known().unwrap_or_default();
        let stat = text("/proc/stat");
        let ticks = |line: &str| {
            let words: Vec<&str> = line.split_ascii_whitespace().collect();
            let cpu = words.first()?.strip_prefix("cpu")?.parse().ok()?;
            // user nice system idle iowait irq softirq steal
            let field = |n: usize| words.get(n)?.parse::<u64>().ok();
            Some((cpu, [field(6)?, field(7)?, field(8)?]))
        };
        Self {
            interrupts: table(&text("/proc/interrupts")),
            softirqs: table(&text("/proc/softirqs")),
            ticks: stat.lines().filter_map(ticks).collect(),
        }
    }

    fn ticks_until(&self, later: &Self, cpu: u32) -> [u64; 3] {
        let of = |counters: &Self| counters.ticks.get(&cpu).copied().unwrap_or_default();
        let (before, later) = (of(self), of(later));
        std::array::from_fn(|n| later[n].saturating_sub(before[n]))
    }
}

/// The rows of a table by name; those of one name are added.
fn table(text: &str) -> BTreeMap<String, BTreeMap<u32, u64>> {
    let mut by_name: BTreeMap<String, BTreeMap<u32, u64>> = BTreeMap::new();
    for Row { name, counts, .. } in interrupt_table::rows(text) {
        let row = by_name.entry(name).or_default();
        counts.into_iter().for_each(|(cpu, count)| *row.entry(cpu).or_default() += count);
    }
    by_name
}

fn until(
    before: &BTreeMap<String, BTreeMap<u32, u64>>,
    later: &BTreeMap<String, BTreeMap<u32, u64>>,
    cpu: u32,
) -> Vec<Came> {
    let came = |(name, row): (&String, &BTreeMap<u32, u64>)| {
        let before = before.get(name).and_then(|row| row.get(&cpu)).copied().unwrap_or(0);
        let times = row.get(&cpu)?.saturating_sub(before);
        (times > 0).then(|| Came { name: name.clone(), times })
    };
    let mut all: Vec<Came> = later.iter().filter_map(came).collect();
    all.sort_by(|a, b| b.times.cmp(&a.times).then_with(|| a.name.cmp(&b.name)));
    all
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::cpu_set;

    #[test]
    fn what_came_to_each_core_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let put = |name: &str, text: &str| {
            fs::create_dir_all(dir.path().join("proc")).unwrap();
            fs::write(dir.path().join("proc").join(name), text).unwrap();
        };
        put("interrupts", "      CPU0 CPU2\n 24:  1 2 PCI-MSI 1-edge eth0\n 25: 1 1 PCI-MSI 2-edge eth0\nLOC: 100 200 Local timer\nERR: 0\n");
        put("softirqs", "      CPU0 CPU2\n TIMER: 5 6\n");
        put("stat", "cpu 1 1 1 1 1 1 1 1\ncpu0 0 0 0 0 0 0 0 0\ncpu2 0 0 0 0 0 10 20 30\n");
        let mut watch = Watch::begin(&Roots::at(dir.path()), &cpu_set::from_list("2,7"));
        put("interrupts", "      CPU0 CPU2\n 24:  9 4 PCI-MSI 1-edge eth0\n 25: 1 2 PCI-MSI 2-edge eth0\nLOC: 200 450 Local timer\nTLB: 0 9 TLB shootdowns\n");
        put("softirqs", "      CPU0 CPU2\n TIMER: 5 16\n");
        put("stat", "cpu2 0 0 0 0 0 11 22 33\n");
        let cores = watch.look();
        let came = |came: &[Came]| came.iter().map(|c| format!("{} {}", c.name, c.times)).collect::<Vec<_>>();
        assert_eq!(came(&cores[0].interrupts), ["LOC 250", "TLB 9", "eth0 3"]);
        assert_eq!(came(&cores[0].softirqs), ["TIMER 10"]);
        assert!((cores[0].interrupt_seconds - 0.03).abs() < 1e-9 && (cores[0].steal_seconds - 0.03).abs() < 1e-9);
        assert_eq!((cores[1].cpu, cores[1].interrupts.len()), (7, 0), "a CPU that is not there");
        assert!(watch.look()[0].interrupts.is_empty(), "nothing came since");
    }

    #[test]
    fn this_machine_is_looked_at_for_less_than_a_hundredth_of_the_time() {
        let mut watch = Watch::begin(&Roots::default(), &cpu_set::from_list("0"));
        watch.cost = Duration::from_secs(3600);
        assert!(watch.look()[0].threads.is_none(), "looking at threads would cost too much now");
        watch.cost = Duration::from_secs(3600);
        assert!(watch.look_closely()[0].threads.is_some());
        watch.cost = Duration::ZERO;
        assert!(watch.look()[0].threads.is_some());
    }
}
