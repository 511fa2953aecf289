//! Which threads of other processes ran, where, and for how long.

use std::collections::{BTreeMap, BTreeSet};

use crate::Roots;

/// Threads that are looked at at most: reading one takes some 10 us.
const MOST_THREADS: usize = 20_000;
/// USER_HZ is 100 on every Linux we run on.
const TICK_S: f64 = 0.01;
/// The kernel's flag of its own threads (`PF_KTHREAD`).
const KERNEL_THREAD: u64 = 0x0020_0000;

/// The CPU time of every thread of other processes, to be taken twice and subtracted.
#[derive(Debug, Clone, Default)]
pub struct ProcessTimes(BTreeMap<u32, ThreadTime>);

#[derive(Debug, Clone, PartialEq, Eq)]
struct ThreadTime {
    pid: u32,
    name: String,
    /// The CPU it ran on last.
    cpu: u32,
    ticks: u64,
    kernel: bool,
}

/// A thread that ran.
#[derive(Debug, Clone, PartialEq)]
pub struct Ran {
    /// Its process.
    pub pid: u32,
    /// Its name: at most 15 characters, set by the process itself.
    pub name: String,
    /// The CPU it ran on last.
    pub cpu: u32,
    /// CPU time, seconds (steps of 10 ms).
    pub seconds: f64,
    /// A thread of the kernel: most of them cannot be moved.
    pub kernel: bool,
}

/// Which of some programs run, by the names that the kernel keeps (15 characters). Names of other programs are neither kept
/// nor recorded.
pub(crate) fn running(roots: &Roots, names: &[&str]) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for pid in numbers(&roots.of_machine("/proc")) {
        let path = format!("/proc/{pid}/comm");
        let Ok(name) = std::fs::read_to_string(roots.of_machine(&path)) else { continue };
        if names.contains(&name.trim_end()) {
            // Once more, for a recording.
            found.extend(roots.fact(&path).known());
        }
    }
    found
}

fn numbers(dir: &std::path::Path) -> Vec<u32> {
    let entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

impl ProcessTimes {
    /// Reads the threads of all processes but `own`. Processes that this user may not see are left out.
    pub fn read(roots: &Roots, own: u32) -> Self {
        let mut threads = BTreeMap::new();
        for pid in roots.proc_numbers("").into_iter().filter(|&pid| pid != own) {
            for tid in roots.proc_numbers(&format!("{pid}/task")) {
                if threads.len() >= MOST_THREADS {
                    return Self(threads);
                }
                let stat = roots.proc(&format!("{pid}/task/{tid}/stat"));
                threads.extend(stat.and_then(|stat| Some((tid, parse(&stat, pid)?))));
            }
        }
        Self(threads)
    }

    /// What ran between `self` and `later` on one of these CPUs, the longest first. Threads of a program that have one name count
    /// together.
    pub fn until(&self, later: &Self, cpus: &[u32]) -> Vec<Ran> {
        let ran = |(tid, now): (&u32, &ThreadTime)| {
            let before = self.0.get(tid).filter(|before| before.pid == now.pid).map_or(0, |before| before.ticks);
            let seconds = now.ticks.saturating_sub(before) as f64 * TICK_S;
            Ran { pid: now.pid, name: now.name.clone(), cpu: now.cpu, seconds, kernel: now.kernel }
        };
        let mut all: Vec<Ran> = Vec::new();
        for ran in later.0.iter().map(ran).filter(|ran| ran.seconds > 0.0 && cpus.contains(&ran.cpu)) {
            match all.iter_mut().find(|one| (one.pid, one.cpu, &one.name) == (ran.pid, ran.cpu, &ran.name)) {
                Some(one) => one.seconds += ran.seconds,
                None => all.push(ran),
            }
        }
        all.sort_by(|a, b| b.seconds.total_cmp(&a.seconds));
        all
    }
}

/// A line of `/proc/PID/task/TID/stat`. The name stands in brackets and may hold brackets itself.
fn parse(stat: &str, pid: u32) -> Option<ThreadTime> {
    let (head, tail) = stat.rsplit_once(") ")?;
    let (_, name) = head.split_once('(')?;
    let field = |n: usize| tail.split_ascii_whitespace().nth(n - 3);
    let ticks = field(14)?.parse::<u64>().ok()?.saturating_add(field(15)?.parse().ok()?);
    let kernel = field(9)?.parse::<u64>().ok()? & KERNEL_THREAD != 0;
    Some(ThreadTime { pid, name: name.to_owned(), cpu: field(39)?.parse().ok()?, ticks, kernel })
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn stat(name: &str, cpu: u32, user: u64) -> String {
        let zeros = |n: usize| "0 ".repeat(n);
        let flags = if name == "kworker" { KERNEL_THREAD } else { 64 };
        format!("7 ({name}) R {}{flags} {}{user} 5 {}{cpu} 0 0\n", zeros(5), zeros(4), zeros(23))
    }

    #[test]
    fn what_ran_is_named_with_its_cpu() {
        let dir = tempfile::tempdir().unwrap();
        let put = |pid: u32, tid: u32, text: &str| {
            let path = dir.path().join(format!("proc/{pid}/task/{tid}"));
            fs::create_dir_all(&path).unwrap();
            fs::write(path.join("stat"), text).unwrap();
        };
        let roots = Roots::at(dir.path());
        put(5, 5, &stat("own", 1, 0));
        put(7, 7, &stat("a) (b", 1, 10));
        put(7, 8, &stat("worker", 0, 20));
        put(9, 9, "garbage");
        put(12, 12, &stat("twin", 1, 0));
        put(12, 13, &stat("twin", 1, 0));
        let before = ProcessTimes::read(&roots, 5);
        put(5, 5, &stat("own", 1, 900));
        put(7, 7, &stat("a) (b", 1, 60));
        put(7, 8, &stat("worker", 0, 120));
        put(11, 11, &stat("kworker", 1, 95));
        put(12, 12, &stat("twin", 1, 10));
        put(12, 13, &stat("twin", 1, 20));
        let later = ProcessTimes::read(&roots, 5);
        let ran = before.until(&later, &[1]);
        let names: Vec<_> = ran.iter().map(|ran| (ran.pid, ran.name.as_str(), ran.cpu, ran.kernel)).collect();
        assert_eq!(names, [(11, "kworker", 1, true), (7, "a) (b", 1, false), (12, "twin", 1, false)]);
        assert!((ran[2].seconds - 0.3).abs() < 1e-9, "both of them: {ran:?}");
        assert!((ran[0].seconds - 1.0).abs() < 1e-9 && (ran[1].seconds - 0.5).abs() < 1e-9, "{ran:?}");
        assert_eq!(later.until(&before, &[0, 1]), []);
    }
}
