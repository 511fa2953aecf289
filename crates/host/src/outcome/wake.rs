//! How long a core takes to wake up: a thread sleeps for a millisecond again and again, and says by how much it overslept.

use std::{
    thread,
    time::{Duration, Instant},
};

use serde::Serialize;

use crate::Roots;

const SLEEP: Duration = Duration::from_millis(1);
const SLEEPS: usize = 300;

/// By how much a thread overslept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Wake {
    /// Half of the times by less than this, nanoseconds. The kernel's slack of timers is in it (50 us for ordinary threads).
    pub median_ns: u64,
    /// The worst time.
    pub longest_ns: u64,
    /// Idle states that the core entered meanwhile, the deepest last.
    pub states: Vec<IdleState>,
}

/// An idle state of a core.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct IdleState {
    /// Its name: `C6`.
    pub name: String,
    /// How long it takes to leave, microseconds, as the kernel has it.
    pub latency_us: u64,
    /// How often it was entered.
    pub times: u64,
}

/// Sleeps on this CPU, where the thread has to be.
pub(super) fn measure(roots: &Roots, cpu: u32, go_on: &(dyn Fn() -> bool + Sync)) -> Option<Wake> {
    let before = states(roots, cpu);
    let mut over: Vec<u64> = Vec::with_capacity(SLEEPS);
    while over.len() < SLEEPS && go_on() {
        let start = Instant::now();
        thread::sleep(SLEEP);
        let more = start.elapsed().saturating_sub(SLEEP);
        over.push(u64::try_from(more.as_nanos()).unwrap_or(u64::MAX));
    }
    let after = states(roots, cpu);
    over.sort_unstable();
    let entered = |(before, after): (&IdleState, &IdleState)| {
        let times = after.times.saturating_sub(before.times);
        (before.name == after.name && times > 0).then(|| IdleState { times, ..after.clone() })
    };
    Some(Wake {
        median_ns: *over.get(over.len() / 2)?,
        longest_ns: *over.last()?,
        states: before.iter().zip(&after).filter_map(entered).collect(),
    })
}

/// The states of a core, with how often each was entered since boot.
fn states(roots: &Roots, cpu: u32) -> Vec<IdleState> {
    let at = format!("/sys/devices/system/cpu/cpu{cpu}/cpuidle");
    let mut names = roots.names(&at);
    names.sort_by_key(|name| name.trim_start_matches("state").parse::<u32>().unwrap_or(u32::MAX));
    let state = |name: &String| {
        let number = |file: &str| roots.value(format!("{at}/{name}/{file}"));
        let name = roots.fact(format!("{at}/{name}/name")).known()?;
        Some(IdleState { name, latency_us: number("latency").unwrap_or(0), times: number("usage")? })
    };
    names.iter().filter_map(state).collect()
}

#[cfg(test)]
mod tests {
    use std::{cell::Cell, fs, sync::Mutex};

    use super::*;

    #[test]
    fn sleeps_are_timed_and_states_counted() {
        let dir = tempfile::tempdir().unwrap();
        let put = |state: u32, usage: u32| {
            let at = dir.path().join(format!("sys/devices/system/cpu/cpu3/cpuidle/state{state}"));
            fs::create_dir_all(&at).unwrap();
            fs::write(at.join("name"), format!("C{state}\n")).unwrap();
            fs::write(at.join("usage"), format!("{usage}\n")).unwrap();
            fs::write(at.join("latency"), format!("{}\n", state * 10)).unwrap();
        };
        [0, 1, 10].into_iter().for_each(|state| put(state, 5));
        let asked = Mutex::new(Cell::new(0));
        let go_on = || {
            let asked = asked.lock().unwrap();
            asked.set(asked.get() + 1);
            put(1, 9);
            put(10, 6);
            asked.get() < 4
        };
        let wake = measure(&Roots::at(dir.path()), 3, &go_on).unwrap();
        let state = |name: &str, latency_us, times| IdleState { name: name.to_owned(), latency_us, times };
        assert_eq!(wake.states, [state("C1", 10, 4), state("C10", 100, 1)]);
        assert!(wake.median_ns <= wake.longest_ns && wake.longest_ns > 0);
        assert_eq!(measure(&Roots::at(dir.path()), 3, &|| false), None);
    }
}
