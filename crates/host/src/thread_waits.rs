//! How long threads of other processes wait for a CPU that another thread has (`/proc/PID/task/TID/schedstat`).

use std::{fs::File, os::unix::fs::FileExt};

use crate::Roots;

/// Most threads that are watched: those that have run longest. Each costs a read a sample.
const MOST: usize = 8;

/// What a thread did so far, nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ThreadTime {
    /// It had a CPU.
    pub ran_ns: u64,
    /// It was ready, and another thread had the CPU.
    pub waited_ns: u64,
}

impl ThreadTime {
    /// From the text of `schedstat`. A kernel that does not count writes zeros, also for how often the thread had a CPU.
    pub(crate) fn parse(schedstat: &str) -> Option<Self> {
        let mut figures = schedstat.split_ascii_whitespace().map(str::parse::<u64>);
        let (ran_ns, waited_ns) = (figures.next()?.ok()?, figures.next()?.ok()?);
        let turns = figures.next()?.ok()?;
        (turns > 0).then_some(Self { ran_ns, waited_ns })
    }
}

/// Threads that are watched, at most eight.
#[derive(Debug, Default)]
pub struct ThreadWaits {
    files: Vec<File>,
}

impl ThreadWaits {
    /// The threads of these processes.
    ///
    /// # Errors
    ///
    /// The first process that does not exist, or of which the kernel does not tell.
    pub fn of(roots: &Roots, pids: &[u32]) -> Result<Self, u32> {
        let mut found = Vec::new();
        for &pid in pids {
            let before = found.len();
            found.extend(threads(roots, pid).into_iter().filter_map(|tid| open(roots, pid, tid)));
            if found.len() == before {
                return Err(pid);
            }
        }
        Ok(Self::longest(found))
    }

    /// The threads of another program that may run on this CPU only: lcores of DPDK, for example. None where there are none,
    /// or where several programs have such threads: nobody knows which of them is meant.
    pub fn pinned_to(roots: &Roots, cpu: u32) -> Self {
        let pinned = |pid: u32, tid: u32| {
            let status = roots.proc(&format!("{pid}/task/{tid}/status")).unwrap_or_default();
            let allowed = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
            allowed.is_some_and(|list| list.trim() == cpu.to_string())
        };
        // Threads of the kernel have no command line.
        let program = |pid: &u32| roots.proc(&format!("{pid}/cmdline")).is_some_and(|line| !line.is_empty());
        let pids = roots.proc_numbers("").into_iter().filter(|&pid| pid != std::process::id()).filter(program);
        let mut programs = pids.filter_map(|pid| {
            let tids = threads(roots, pid).into_iter().filter(|&tid| pinned(pid, tid));
            let files: Vec<_> = tids.filter_map(|tid| open(roots, pid, tid)).collect();
            (!files.is_empty()).then_some(files)
        });
        match (programs.next(), programs.next()) {
            (Some(files), None) => Self::longest(files),
            _ => Self::default(),
        }
    }

    fn longest(mut found: Vec<(ThreadTime, File)>) -> Self {
        found.sort_by_key(|(time, _)| std::cmp::Reverse(time.ran_ns));
        Self { files: found.into_iter().take(MOST).map(|(_, file)| file).collect() }
    }

    /// Whether no thread is watched.
    pub fn is_empty(&self) -> bool {
        self.files.is_empty()
    }

    /// What each thread did so far, in an order that stays. A thread that has ended did nothing.
    pub fn read(&self) -> Vec<ThreadTime> {
        self.files.iter().map(|file| time(file).unwrap_or_default()).collect()
    }
}

fn threads(roots: &Roots, pid: u32) -> Vec<u32> {
    roots.proc_numbers(&format!("{pid}/task"))
}

fn open(roots: &Roots, pid: u32, tid: u32) -> Option<(ThreadTime, File)> {
    let file = roots.open_proc(&format!("{pid}/task/{tid}/schedstat"))?;
    Some((time(&file)?, file))
}

fn time(file: &File) -> Option<ThreadTime> {
    let mut text = [0; 96];
    let read = file.read_at(&mut text, 0).ok()?;
    ThreadTime::parse(std::str::from_utf8(text.get(..read)?).ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(threads: &[(u32, u32, &str, &str)]) -> (tempfile::TempDir, Roots) {
        let dir = tempfile::tempdir().unwrap();
        for (pid, tid, allowed, schedstat) in threads {
            let task = dir.path().join(format!("proc/{pid}/task/{tid}"));
            std::fs::create_dir_all(&task).unwrap();
            std::fs::write(task.join("status"), format!("Name:\tx\nCpus_allowed_list:\t{allowed}\n")).unwrap();
            std::fs::write(task.join("schedstat"), schedstat).unwrap();
            std::fs::write(dir.path().join(format!("proc/{pid}/cmdline")), "testpmd\0").unwrap();
        }
        let roots = Roots::at(dir.path());
        (dir, roots)
    }

    fn times(of: &[(u64, u64)]) -> Vec<ThreadTime> {
        of.iter().map(|&(ran_ns, waited_ns)| ThreadTime { ran_ns, waited_ns }).collect()
    }

    #[test]
    fn a_kernel_that_does_not_count_waits_says_nothing() {
        let waited = |text| ThreadTime::parse(text).map(|time| (time.ran_ns, time.waited_ns));
        assert_eq!([waited("5000 300 4\n"), waited("5000 0 4\n")], [Some((5000, 300)), Some((5000, 0))]);
        assert_eq!(["0 0 0\n", "5000 300\n", "5000 x 4\n", ""].map(waited), [None; 4]);
    }

    #[test]
    fn the_threads_that_ran_longest_are_watched() {
        let many: Vec<(u32, u32, &str, String)> =
            (0..12).map(|n| (4_200_000, 4_200_000 + n, "0-3", format!("{} {n} 1\n", n * 100))).collect();
        let many: Vec<(u32, u32, &str, &str)> = many.iter().map(|(p, t, a, s)| (*p, *t, *a, s.as_str())).collect();
        let (_dir, roots) = tree(&many);
        let waits = ThreadWaits::of(&roots, &[4_200_000]).unwrap();
        assert_eq!(
            waits.read(),
            times(&[(1100, 11), (1000, 10), (900, 9), (800, 8), (700, 7), (600, 6), (500, 5), (400, 4)])
        );
        assert_eq!(ThreadWaits::of(&roots, &[4_200_000, 4_200_001]).unwrap_err(), 4_200_001);
    }

    #[test]
    fn a_thread_pinned_to_the_cpu_is_found_and_what_the_kernel_writes_garbled_is_not() {
        let own = std::process::id();
        let (dir, roots) = tree(&[
            (4_200_000, 4_200_000, "0-1", "5 1 1\n"),
            (4_200_000, 4_200_001, "1", "7 2 1\n"),
            (4_200_002, 4_200_002, "1", "garbage\n"),
            (4_200_003, 4_200_003, "1", "9 3 1\n"),
            (own, own, "1", "8 8 8\n"),
        ]);
        std::fs::write(dir.path().join("proc/4200003/cmdline"), "").unwrap();
        assert_eq!(ThreadWaits::pinned_to(&roots, 1).read(), times(&[(7, 2)]));
        assert!(ThreadWaits::pinned_to(&roots, 3).is_empty());
        std::fs::write(dir.path().join("proc/4200003/cmdline"), "stress-ng\0").unwrap();
        assert!(ThreadWaits::pinned_to(&roots, 1).is_empty());
    }

    #[test]
    fn this_machine_tells_of_this_process() {
        let waits = ThreadWaits::of(&Roots::default(), &[std::process::id()]).unwrap();
        assert!(waits.read().iter().any(|time| time.ran_ns > 0));
    }
}
