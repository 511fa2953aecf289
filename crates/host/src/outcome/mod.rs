//! What comes of a machine's settings, measured on the cores that are to poll.
//!
//! A setting says what was asked for; these figures say what happens: whether the tick stops, which interrupts stay, who
//! takes a core away and for how long, which clock it has, how long it takes to wake up.

mod clock;
mod judge;
mod memory;
mod poll;
mod wake;

use std::{
    thread,
    time::{Duration, Instant},
};

use serde::Serialize;

pub use clock::CoreClock;
pub use judge::findings;
pub use memory::available as available_memory;
pub use poll::Gaps;
pub use wake::{IdleState, Wake};

use crate::{
    core_plan::CorePlan,
    watch::{CoreWatch, Watch},
    CoreCounters, CoreToCoreProbe, Pinned, Roots,
};

/// How long both ends of the probe of a cache line may take.
const CACHE_LINE: Duration = Duration::from_secs(1);

/// What came of it on one core, which polled the clock meanwhile.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CoreOutcome {
    /// Interrupts by name, steal, threads that ran: what came to it.
    #[serde(flatten)]
    pub came: CoreWatch,
    /// Times that its thread was switched out against its will; `None` if the kernel does not say.
    pub involuntary_switches: Option<u64>,
    /// Seconds that it was ready and the kernel let another run there; `None` if the kernel does not say.
    pub waited_seconds: Option<f64>,
    /// When it was away.
    pub gaps: Gaps,
    /// How fast its clock was; `None` if that could not be told.
    pub clock: Option<CoreClock>,
    /// Times that it was slowed down because of heat; `None` if the machine does not say.
    pub throttles: Option<u64>,
    /// System management interrupts; `None` if they cannot be read (Intel, as root, with the module `msr`).
    pub management_interrupts: Option<u64>,
    /// How long it took to wake up.
    pub wake: Option<Wake>,
}

/// What came of it on a machine.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Outcome {
    /// Each core that is to be busy, rising.
    pub cores: Vec<CoreOutcome>,
    /// Nanoseconds of a read at a random place of a memory much larger than any cache, in ordinary pages.
    pub memory_ns: Option<f64>,
    /// CPUs of the two ends of a cache line, and nanoseconds of its way.
    pub cache_line: Option<(u32, u32, f64)>,
}

/// Why nothing was measured.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NotMeasured {
    /// It was asked to end.
    Stopped,
    /// A thread cannot run on this CPU, and what the system says.
    Cpu(u32, String),
}

/// Polls on all busy cores of a plan for this long, after about a second of other measurements. `go_on` is asked again and
/// again.
///
/// # Errors
///
/// A core cannot be used, or it was asked to end.
pub fn measure(
    roots: &Roots,
    plan: &CorePlan,
    time: Duration,
    go_on: &(dyn Fn() -> bool + Sync),
) -> Result<Outcome, NotMeasured> {
    let busy = plan.busy();
    let cpus: Vec<u32> = busy.iter().copied().collect();
    for &cpu in &cpus {
        Pinned::to(cpu).map_err(|e| NotMeasured::Cpu(cpu, e.to_string()))?;
    }
    let memory_ns = on(cpus.last().copied(), || memory::random_read_ns(roots, go_on)).flatten();
    let cache_line = cache_line(plan);
    let wakes = each(&cpus, |cpu| wake::measure(roots, cpu, go_on));
    let end = Instant::now() + time;
    let mut watch = Watch::begin(roots, &busy);
    let polled = each(&cpus, |cpu| {
        let before = Counts::read(roots, cpu);
        let polled = poll::until(end, go_on);
        (polled, before.until(&Counts::read(roots, cpu)))
    });
    let came = watch.look_closely();
    if !go_on() {
        return Err(NotMeasured::Stopped);
    }
    let cores = came.into_iter().zip(polled).zip(wakes).filter_map(|((came, polled), wake)| {
        let (polled, counts) = polled?;
        Some(CoreOutcome {
            came,
            involuntary_switches: counts.core.kernel.involuntary_switches,
            waited_seconds: counts.core.kernel.waited_ns.map(|ns| ns as f64 * 1e-9),
            gaps: polled.gaps,
            clock: polled.clock,
            throttles: counts.core.kernel.throttles,
            management_interrupts: counts.management,
            wake: wake.flatten(),
        })
    });
    Ok(Outcome { cores: cores.collect(), memory_ns, cache_line })
}

/// The way of a cache line between the first two cores that poll.
fn cache_line(plan: &CorePlan) -> Option<(u32, u32, f64)> {
    let polling = plan.polling();
    let mut cpus = polling.iter().copied();
    let (one, other) = (cpus.next()?, cpus.next()?);
    let probe = CoreToCoreProbe::new();
    let ns = thread::scope(|s| {
        s.spawn(|| on(Some(other), || probe.pong(CACHE_LINE)));
        s.spawn(|| on(Some(one), || probe.ping(CACHE_LINE))).join().ok()
    });
    Some((one, other, ns.flatten().flatten()?))
}

/// Runs on each CPU at once, on a thread of its own; in the order of the CPUs.
fn each<T: Send>(cpus: &[u32], run: impl Fn(u32) -> T + Sync) -> Vec<Option<T>> {
    thread::scope(|s| {
        let all: Vec<_> = cpus
            .iter()
            .map(|&cpu| {
                s.spawn({
                    let run = &run;
                    move || on(Some(cpu), || run(cpu))
                })
            })
            .collect();
        all.into_iter().map(|one| one.join().ok().flatten()).collect()
    })
}

/// Runs on a CPU; `None` if this thread may not.
fn on<T>(cpu: Option<u32>, run: impl FnOnce() -> T) -> Option<T> {
    let _there = Pinned::to(cpu?).ok()?;
    Some(run())
}

/// What the kernel and the processor count of a core and of the thread that polls on it.
struct Counts {
    core: CoreCounters,
    management: Option<u64>,
}

impl Counts {
    fn read(roots: &Roots, cpu: u32) -> Self {
        Self {
            core: CoreCounters::read(roots, cpu, crate::current_tid()),
            management: management_interrupts(roots, cpu),
        }
    }

    fn until(&self, later: &Self) -> Self {
        let management = self.management.zip(later.management).map(|(a, b)| b.saturating_sub(a));
        Self { core: self.core.until(&later.core), management }
    }
}

/// `MSR_SMI_COUNT` (Intel SDM, volume 4: 34H).
fn management_interrupts(roots: &Roots, cpu: u32) -> Option<u64> {
    use std::os::unix::fs::FileExt;
    let file = std::fs::File::open(roots.of_machine(format!("/dev/cpu/{cpu}/msr"))).ok()?;
    let mut bytes = [0; 8];
    file.read_exact_at(&mut bytes, 0x34).ok()?;
    // The upper half is reserved.
    Some(u64::from_le_bytes(bytes) & 0xffff_ffff)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{cpu_set, machine::Machine};

    #[test]
    fn this_machine_is_measured_and_ends_when_it_is_asked_to() {
        let roots = Roots::default();
        let cpu = Machine::read(&roots).allowed.first().copied().unwrap();
        let plan = CorePlan { tester: [cpu].into(), ..CorePlan::default() };
        let outcome = measure(&roots, &plan, Duration::from_millis(300), &|| true).unwrap();
        let [core] = outcome.cores.as_slice() else { panic!("{outcome:?}") };
        assert_eq!(core.came.cpu, cpu);
        assert!(core.gaps.seconds > 0.2 && core.gaps.longest_ns > 0, "{core:?}");
        assert!(core.involuntary_switches.is_some() && core.wake.is_some(), "{core:?}");
        assert!(outcome.cache_line.is_none());
        assert_eq!(measure(&roots, &plan, Duration::from_secs(600), &|| false), Err(NotMeasured::Stopped));
        let nowhere = CorePlan { tester: cpu_set::from_list("4000"), ..CorePlan::default() };
        assert!(matches!(measure(&roots, &nowhere, Duration::ZERO, &|| true), Err(NotMeasured::Cpu(4000, _))));
    }
}
