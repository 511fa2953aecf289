//! Stretches of time in which something took the CPU from this thread: its samples are told apart, and never discarded.

use std::{fs::File, os::unix::fs::FileExt, time::Duration, time::Instant};

use host::{CpuSnapshot, Roots};
use serde::{Deserialize, Serialize};

use crate::summary::Samples;

/// How long a stretch is at least,
const STRETCH: Duration = Duration::from_millis(5);
/// and how many samples it has, unless it becomes longer than this. Asking the kernel may make the next message slower: beside one
/// message in a hundred it would be in the 99th percentile.
const SAMPLES: usize = 400;
const LONGEST: Duration = Duration::from_millis(50);
/// A stretch is disturbed if the thread was ready and did not run for longer in all,
const WAITED: Duration = Duration::from_micros(50);
/// and for longer than this each time that it was woken: a thread that sleeps waits a little for its CPU whenever a message comes.
const WOKEN: Duration = Duration::from_micros(4);
/// Samples of a stretch that are held back until it is judged; further ones are judged with the next.
const HELD: usize = 1 << 14;

/// What the kernel counted meanwhile of the threads that measured, and of their CPUs, where each is pinned to one; `None`: it does
/// not say.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Interference {
    /// Times that another thread took the CPU.
    pub involuntary_switches: Option<u64>,
    /// Interrupts that the CPU took, all sources.
    pub interrupts: Option<u64>,
    /// Time that the hypervisor gave to others, ns, in steps of 10 ms.
    pub steal_ns: Option<u64>,
    /// Times that the CPU was slowed down because of heat.
    pub throttles: Option<u64>,
}

impl Interference {
    fn of(counted: &CpuSnapshot) -> Self {
        let CpuSnapshot { steal_ns, interrupts, involuntary_switches, throttles, .. } = *counted;
        Self { involuntary_switches, interrupts, steal_ns, throttles }
    }

    /// Together with those of another thread.
    fn with(self, other: Self) -> Self {
        let sum = |a: Option<u64>, b: Option<u64>| Some(a?.saturating_add(b?));
        Self {
            involuntary_switches: sum(self.involuntary_switches, other.involuntary_switches),
            interrupts: sum(self.interrupts, other.interrupts),
            steal_ns: sum(self.steal_ns, other.steal_ns),
            throttles: sum(self.throttles, other.throttles),
        }
    }
}

/// The counters of the calling thread, and of its CPU if it is pinned to one.
fn counted() -> CpuSnapshot {
    let cpus = host::may_run_on().unwrap_or_default();
    let own = cpus.first().copied().filter(|_| cpus.len() == 1);
    CpuSnapshot::read(&Roots::default(), own, host::current_tid())
}

/// Samples, all of them and those of undisturbed stretches.
#[derive(Debug)]
pub struct Judged {
    /// All.
    pub all: Samples,
    /// Those of stretches in which nobody took the CPU; `None` if the kernel does not say.
    pub undisturbed: Option<Samples>,
    /// Stretches, and the disturbed ones of them.
    pub stretches: (u64, u64),
    /// What the kernel counted from the beginning to the end.
    pub interference: Interference,
    counted: CpuSnapshot,
    waits: Option<File>,
    waits_before: Waits,
    sender: Option<Watched>,
    since: Instant,
    held: Vec<u64>,
}

impl Judged {
    /// An empty collection, for times that the calling thread measures; `None` if there is too little memory.
    pub fn new() -> Option<Self> {
        let waits = File::open("/proc/thread-self/schedstat").ok();
        let mut judged = Self {
            all: Samples::new()?,
            undisturbed: if waits.is_some() { Some(Samples::new()?) } else { None },
            stretches: (0, 0),
            interference: Interference::default(),
            counted: counted(),
            waits,
            waits_before: Waits::default(),
            sender: None,
            since: Instant::now(),
            held: vec![1; HELD],
        };
        // Written to once: its memory is there.
        judged.held.clear();
        judged.waits_before = waits_so_far(judged.waits.as_ref());
        Some(judged)
    }

    /// The same where another thread of this process sends what the calling one times: stretches in which that one waited for its
    /// CPU are disturbed, too.
    pub fn sent_by(tid: u32) -> Option<Self> {
        Some(Self { sender: Watched::thread(tid), ..Self::new()? })
    }

    /// Adds a time that was seen at this moment.
    pub fn add(&mut self, ns: u64, now: Instant) {
        self.all.add(ns);
        self.held.push(ns);
        let (long, held) = (now - self.since, self.held.len());
        if long >= STRETCH && held >= SAMPLES || long >= LONGEST || held == HELD {
            self.judge(now);
        }
    }

    /// Adds those of another thread.
    pub fn merge(&mut self, other: &Self) {
        self.all.merge(&other.all);
        self.undisturbed = match (self.undisturbed.take(), &other.undisturbed) {
            (Some(mut own), Some(others)) => {
                own.merge(others);
                Some(own)
            }
            _ => None,
        };
        self.interference = self.interference.with(other.interference);
        self.stretches = (self.stretches.0 + other.stretches.0, self.stretches.1 + other.stretches.1);
    }

    /// Judges what is held.
    pub fn end(&mut self) {
        self.judge(Instant::now());
        self.interference = Interference::of(&self.counted.until(&counted()));
    }

    fn judge(&mut self, now: Instant) {
        let waits = waits_so_far(self.waits.as_ref());
        let sender = self.sender.as_mut().is_some_and(Watched::disturbs);
        let disturbed = self.waits_before.until(waits).is_disturbed() || sender;
        self.stretches.0 += 1;
        self.stretches.1 += u64::from(disturbed);
        match &mut self.undisturbed {
            Some(undisturbed) if !disturbed => self.held.drain(..).for_each(|ns| undisturbed.add(ns)),
            _ => self.held.clear(),
        }
        (self.waits_before, self.since) = (waits, now);
    }
}

/// A thread that sends what another one times.
#[derive(Debug)]
struct Watched {
    waits: File,
    before: Waits,
    waited: bool,
}

impl Watched {
    fn thread(tid: u32) -> Option<Self> {
        let waits = File::open(format!("/proc/self/task/{tid}/schedstat")).ok()?;
        let before = waits_so_far(Some(&waits));
        Some(Self { waits, before, waited: false })
    }

    /// Whether it waited in the stretch that ends now, or in the one before: what it then sent late is replied to in this one.
    fn disturbs(&mut self) -> bool {
        let now = waits_so_far(Some(&self.waits));
        let waited = self.before.until(now).is_disturbed();
        self.before = now;
        std::mem::replace(&mut self.waited, waited) || waited
    }
}

/// How long a thread was ready while another had its CPU, and how often it came to run.
fn waits_so_far(file: Option<&File>) -> Waits {
    let mut text = [0; 96];
    let read = file.and_then(|file| file.read_at(&mut text, 0).ok()).unwrap_or(0);
    let text = std::str::from_utf8(&text[..read]).unwrap_or_default();
    let mut numbers = text.split_ascii_whitespace().skip(1).map(|number| number.parse().unwrap_or(0));
    let (waited, ran) = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
    Waits { waited: Duration::from_nanos(waited), ran }
}

/// What the kernel counts of a thread (`schedstat`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Waits {
    /// Ready, while another had its CPU.
    waited: Duration,
    /// Times that it came to run.
    ran: u64,
}

impl Waits {
    fn until(self, later: Self) -> Self {
        Self { waited: later.waited.saturating_sub(self.waited), ran: later.ran.saturating_sub(self.ran) }
    }

    fn is_disturbed(self) -> bool {
        self.waited > WAITED + WOKEN * u32::try_from(self.ran).unwrap_or(u32::MAX)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;

    #[test]
    fn all_samples_are_kept_and_those_of_quiet_stretches_once_more() {
        let mut judged = Judged::new().unwrap();
        let begun = Instant::now();
        for n in 0..1000 {
            judged.add(n, begun + Duration::from_micros(n * 20));
        }
        judged.end();
        assert_eq!(judged.all.count(), 1000);
        let (stretches, disturbed) = judged.stretches;
        // Of 400 samples, and the last.
        assert!(stretches == 3 && disturbed <= stretches, "{:?}", judged.stretches);
        let undisturbed = judged.undisturbed.as_ref().map_or(0, Samples::count);
        assert!(undisturbed <= 1000 && (disturbed > 0 || undisturbed == 1000), "{undisturbed}");
    }

    #[test]
    fn a_stretch_has_many_samples_and_ends_in_time_without_them() {
        let stretches = |every: Duration, samples: u32| {
            let mut judged = Judged::new().unwrap();
            let begun = Instant::now();
            (1..=samples).for_each(|n| judged.add(1, begun + every * n));
            judged.stretches.0
        };
        assert_eq!(stretches(Duration::from_millis(10), 20), 4, "each 50 ms");
        assert_eq!(stretches(Duration::from_micros(50), 1200), 3, "400 samples are 20 ms");
        assert_eq!(stretches(Duration::from_micros(1), 10_100), 2, "5 ms, whatever comes in them");
        assert_eq!(stretches(Duration::from_nanos(1), 2 * HELD as u32), 2, "no more than there is memory for");
    }

    #[test]
    fn what_the_kernel_counts_meanwhile_is_kept() {
        let pinned = host::Pinned::to(*host::may_run_on().unwrap().first().unwrap()).unwrap();
        let mut judged = Judged::new().unwrap();
        std::thread::sleep(Duration::from_millis(20));
        judged.end();
        let counted = judged.interference;
        assert!(counted.involuntary_switches.is_some() && counted.steal_ns.is_some(), "{counted:?}");
        assert!(counted.interrupts > Some(0), "the tick, or the timer that woke it: {counted:?}");
        drop(pinned);
        let two = Interference { interrupts: Some(2), steal_ns: None, ..counted };
        let sum = two.with(Interference { interrupts: Some(3), steal_ns: Some(5), ..counted });
        assert_eq!((sum.interrupts, sum.steal_ns), (Some(5), None));
    }

    #[test]
    fn a_stretch_in_which_the_sender_waited_is_disturbed_and_the_next_one() {
        let cpu = *host::may_run_on().unwrap().first().unwrap();
        let stop = AtomicBool::new(false);
        let spin = || {
            while !stop.load(Ordering::Relaxed) {
                std::hint::spin_loop();
            }
        };
        let (tell, told) = std::sync::mpsc::channel();
        let mut waited = std::thread::scope(|s| {
            s.spawn(move || {
                host::pin(cpu).unwrap();
                tell.send(host::current_tid()).unwrap();
                spin();
            });
            // It takes turns with the first: both wait for half of the time.
            s.spawn(|| host::pin(cpu).map(|()| spin()));
            let mut watched = Watched::thread(told.recv().unwrap().unwrap()).unwrap();
            let began = Instant::now();
            while !watched.disturbs() && began.elapsed() < Duration::from_secs(10) {
                std::thread::sleep(Duration::from_millis(20));
            }
            stop.store(true, Ordering::Relaxed);
            assert!(watched.waited);
            watched
        });
        // The thread is gone, and nothing can be read of it any more: only the stretch before counts.
        waited.before = waits_so_far(Some(&waited.waits));
        assert_eq!((waited.disturbs(), waited.disturbs()), (true, false));
    }

    #[test]
    fn a_stretch_in_which_the_thread_waited_is_disturbed() {
        let mut judged = Judged::new().unwrap();
        let now = Instant::now();
        judged.add(1, now);
        judged.end();
        assert_eq!(judged.stretches.0, 1);
        let waits = |us, ran| Waits { waited: Duration::from_micros(us), ran };
        assert!(!waits(50, 0).is_disturbed() && waits(51, 0).is_disturbed());
        assert!(!waits(450, 100).is_disturbed() && waits(451, 100).is_disturbed(), "4 us each time");
        assert_eq!(waits(100, 5).until(waits(300, 9)), waits(200, 4));
        assert_eq!(waits(300, 9).until(waits(100, 5)), waits(0, 0));
        let own = waits_so_far(judged.waits.as_ref());
        assert!(own.ran > 0, "the kernel counts this thread: {own:?}");
    }
}
