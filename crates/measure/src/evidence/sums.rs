//! The slices of a trial over all directions, with who was away in each.

use units::Fps;

use crate::schema::timeline::{Party, Slice, Timeline};

/// Frames that a slice of usual length is to have: fewer are joined.
pub(super) const FRAMES: f64 = 64.0;
/// Slices that are left at least when they are joined.
const LEAST: usize = 40;

/// A device sends in batches where nothing comes out of it in more than this share of the slices in which it is loaded: then
/// silence is its own way, and no absence.
pub(super) const BATCHING: f64 = 1.0 / 3.0;
/// Frames that a slice is to have for its silence to say something: fewer are joined.
pub(super) const TELLING: f64 = 4.0;

/// Frames that a receive queue of the tester holds, at least.
const RING: f64 = 512.0;

/// The tester was gone from so much of a slice on. In shorter times its driver frees a ring of buffers at once, say: it makes up
/// for them within the slice, which counts with the load that was offered in it.
pub(super) const GONE: f64 = 0.5;

/// How many slices lie between two batches of a device that sends in batches, as interrupts that are coalesced do: the
/// longest of nine in ten distances. 1 of any other device.
fn batch_slices(slices: &[Sum]) -> usize {
    let there = |s: &&Sum| s.tester_away_s == 0.0 && s.device_away_s == 0.0 && s.offered() > 0;
    let (of, frames) = slices.iter().filter(there).fold((0usize, 0), |(n, frames), s| (n + 1, frames + s.offered()));
    let joined = (TELLING * of as f64 / frames.max(1) as f64).ceil().max(1.0) as usize;
    let joined: Vec<Sum> = slices.chunks(joined).map(Sum::of).collect();
    let (of, silent) = joined
        .iter()
        .filter(there)
        .fold((0usize, 0usize), |(of, silent), s| (of + 1, silent + usize::from(s.arrived == 0)));
    if of == 0 || (silent as f64) < BATCHING * of as f64 {
        return 1;
    }
    let came: Vec<usize> = (0..joined.len()).filter(|i| joined.get(*i).is_some_and(|s| s.arrived > 0)).collect();
    let mut distances: Vec<usize> =
        came.windows(2).filter_map(|pair| Some(pair.last()? - pair.first()?)).filter(|d| *d > 1).collect();
    distances.sort_unstable();
    distances.get(distances.len() * 9 / 10).copied().unwrap_or(1) * slices.len().div_ceil(joined.len().max(1))
}

/// How long frames wait in a full queue, seconds: the delay under pressure over the smallest. While the tester is away for
/// less, the device is kept busy by what waits.
fn queue_s(slices: &[Sum], slice_s: f64) -> f64 {
    let floor = slices.iter().filter_map(|s| s.min_delay_ns()).min().unwrap_or(0);
    let own = |(i, s): (usize, &Sum)| {
        s.min_delay_ns().filter(|&ns| s.lost() > 0 && !waits_for_tester(slices, slice_s, i, ns))
    };
    let mut pressed: Vec<u32> = slices.iter().enumerate().filter_map(own).collect();
    pressed.sort_unstable();
    pressed.get(pressed.len() / 2).map_or(0.0, |delay| f64::from(delay.saturating_sub(floor)) * 1e-9)
}

/// Whether the tester was away as frames came back that departed in a slice and took so long: then they waited for the tester.
pub(super) fn waits_for_tester(slices: &[Sum], slice_s: f64, i: usize, delay_ns: u32) -> bool {
    let came = i + (f64::from(delay_ns) * 1e-9 / slice_s) as usize;
    let beside = slices.get(came.saturating_sub(1)..(came + 2).min(slices.len())).unwrap_or_default();
    beside.iter().any(|s| s.tester_any_s > 0.0)
}

/// How long the tester may be away before its receive queue overflows, seconds: with [`RING`] frames of room, at the rate of the
/// slices in which most came through.
fn deaf_s(slices: &[Sum], slice_s: f64) -> f64 {
    let mut received: Vec<u64> = slices.iter().map(|s| s.received).collect();
    received.sort_unstable();
    let most = received.get(received.len() * 9 / 10).copied().unwrap_or(0);
    RING * slice_s / (most as f64).max(1.0)
}

/// Slices whose frames were lost as they came back: by the wait of those before they did while the tester was away for so
/// long that its receive queue overflowed. After the end of sending nobody knows that, so that a slice of which no frame came
/// counts among them if they were to come then.
fn mark_missed(slices: &mut [Sum], slice_s: f64) {
    let mut wait = None;
    for i in 0..slices.len() {
        let Some(sum) = slices.get(i) else { return };
        if let Some(ns) = sum.min_delay_ns().filter(|ns| !waits_for_tester(slices, slice_s, i, *ns)) {
            wait = Some((f64::from(ns) * 1e-9 / slice_s) as usize);
        }
        let is_deaf = |at: usize| match slices.get(at..(at + 2).min(slices.len())) {
            Some(came @ [_, ..]) => came.iter().any(|s| s.tester_deaf_s > 0.0),
            _ => sum.received == 0,
        };
        let missed = sum.lost() > 0 && wait.is_some_and(|wait| is_deaf(i + wait));
        if let Some(sum) = slices.get_mut(i) {
            sum.missed = missed;
        }
    }
}

/// The directions of a trial together, slice by slice, as far as sending lasted.
#[derive(Debug, Clone)]
pub(super) struct Sums {
    pub slice_s: f64,
    pub directions: f64,
    /// See [`queue_s`].
    pub queue_s: f64,
    /// Between two batches of a device that sends in batches, seconds; otherwise zero.
    pub batch_s: f64,
    pub all: Vec<Sum>,
}

/// One slice over all directions.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Sum {
    pub sent: u64,
    pub refused: u64,
    pub received: u64,
    pub arrived: u64,
    /// The smallest delay of the first direction and of the last one; `None` where it received nothing.
    least_ns: [Option<u32>; 2],
    /// Seconds in which the tester was away for so long that a queue ran empty; in which it was away for much of a slice; and
    /// in which the device was away.
    pub tester_away_s: f64,
    pub tester_gone_s: f64,
    pub device_away_s: f64,
    /// Seconds in which the tester was away at all, and in which it was away for so long that its receive queue overflowed.
    pub tester_any_s: f64,
    pub tester_deaf_s: f64,
    /// See [`mark_missed`].
    pub missed: bool,
}

impl Sum {
    /// Several slices as one.
    fn of(slices: &[Self]) -> Self {
        let add = |of: fn(&Self) -> u64| slices.iter().map(of).sum();
        Self {
            sent: add(|s| s.sent),
            refused: add(|s| s.refused),
            received: add(|s| s.received),
            arrived: add(|s| s.arrived),
            least_ns: [0, 1].map(|end| slices.iter().filter_map(|s| s.least_ns[end]).min()),
            tester_away_s: slices.iter().map(|s| s.tester_away_s).sum(),
            tester_gone_s: slices.iter().map(|s| s.tester_gone_s).sum(),
            device_away_s: slices.iter().map(|s| s.device_away_s).sum(),
            tester_any_s: slices.iter().map(|s| s.tester_any_s).sum(),
            tester_deaf_s: slices.iter().map(|s| s.tester_deaf_s).sum(),
            missed: slices.iter().any(|s| s.missed),
        }
    }

    /// The largest over directions of the smallest delay; `None` where a direction received nothing.
    pub fn min_delay_ns(&self) -> Option<u32> {
        let [first, last] = self.least_ns;
        Some(first?.max(last?))
    }

    pub fn offered(&self) -> u64 {
        self.sent + self.refused
    }

    pub fn lost(&self) -> u64 {
        self.sent.saturating_sub(self.received) + self.refused
    }
}

impl Sums {
    /// Slices with fewer than `frames` frames are joined. `gone_s`: the tester was gone in absences longer than this.
    pub fn of(timeline: &Timeline, duration_s: f64, frames: f64, gone_s: f64) -> Option<Self> {
        let slices = timeline.directions.iter().map(Vec::len).min()?;
        // A slice that sending ended in is not whole.
        let whole = ((duration_s / timeline.slice_s + 1e-9) as usize).min(slices);
        let sum = |i: usize| {
            let each = || timeline.directions.iter().filter_map(|slices| slices.get(i));
            let add = |of: fn(&Slice) -> u32| each().map(|slice| u64::from(of(slice))).sum();
            let least = |slice: Option<&Slice>| slice.filter(|s| s.received > 0).map(|s| s.min_delay_ns);
            Sum {
                sent: add(|s| s.sent),
                refused: add(|s| s.refused),
                received: add(|s| s.received),
                arrived: add(|s| s.arrived),
                least_ns: [least(each().next()), least(each().next_back())],
                ..Sum::default()
            }
        };
        let mut all: Vec<Sum> = (0..whole).map(sum).collect();
        let any = timeline.away(Party::Tester, whole);
        all.iter_mut().zip(&any).for_each(|(sum, any)| sum.tester_any_s = *any);
        let queue_s = queue_s(&all, timeline.slice_s);
        let tester = timeline.away_longer(Party::Tester, whole, queue_s / 2.0);
        let gone = timeline.away_longer(Party::Tester, whole, gone_s);
        let device = timeline.away(Party::Device, whole);
        let deaf = timeline.away_longer(Party::Tester, whole, deaf_s(&all, timeline.slice_s));
        for (i, sum) in all.iter_mut().enumerate() {
            let at = |away: &[f64]| away.get(i).copied().unwrap_or_default();
            (sum.tester_away_s, sum.tester_gone_s, sum.device_away_s) = (at(&tester), at(&gone), at(&device));
            sum.tester_deaf_s = at(&deaf);
        }
        mark_missed(&mut all, timeline.slice_s);
        // Slices with few frames are joined: loss shows in each of a device that is kept busy.
        let mean = |of: &dyn Fn(&&Sum) -> bool| {
            let (n, frames) = all.iter().filter(of).fold((0usize, 0), |(n, frames), s| (n + 1, frames + s.offered()));
            frames as f64 / n.max(1) as f64
        };
        // As the load has them, while the tester is there.
        let mean = mean(&|s| s.tester_gone_s == 0.0).max(mean(&|_| true));
        let by_frames = (frames / mean.max(1e-9)).ceil() as usize;
        // And so are those of a batch: between two of them nothing can be told.
        let batch = batch_slices(&all);
        let joined = by_frames.max(if batch > 1 { 2 * batch } else { 1 }).min(all.len() / LEAST).max(1);
        let batch_s = if batch > 1 { batch as f64 * timeline.slice_s } else { 0.0 };
        let all: Vec<Sum> = all.chunks_exact(joined).map(Sum::of).collect();
        let (slice_s, directions) = (timeline.slice_s * joined as f64, timeline.directions.len() as f64);
        // Batches longer than a slice can be made leave nothing to tell by.
        let told = batch_s <= slice_s;
        (told && !all.is_empty()).then_some(Self { slice_s, directions, queue_s, batch_s, all })
    }

    /// Frames a second and direction over so many slices.
    pub fn rate(&self, frames: u64, slices: usize) -> Fps {
        Fps::from_raw(frames as f64 / self.directions / (slices.max(1) as f64 * self.slice_s))
    }
}
