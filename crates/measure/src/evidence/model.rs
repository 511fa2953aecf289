//! For tests: a fluid model of a device with a rate and a buffer, slice by slice, and what else devices and clocks do.

use crate::schema::timeline::{Absence, Party, Slice, Timeline};

/// Length of a slice, seconds.
pub(crate) const SLICE: f64 = 1e-4;

/// A device of a rate with a buffer, frame for frame in fluid.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Device {
    /// Frames a second.
    pub rate: f64,
    /// Frames.
    pub buffer: f64,
    /// Delay without a queue, seconds.
    pub base: f64,
    /// It works in the last of every N slices only, and then for all of them: N.
    pub batch: usize,
    /// Seconds that its delay grows by in a second, whatever the load; negative: it shrinks.
    pub drift: f64,
    /// The clock steps by so many seconds at this slice.
    pub step: (usize, f64),
    /// Share of the frames that come twice.
    pub twice: f64,
    /// Its buffer is a bucket of tokens: frames pass at once or are lost.
    pub polices: bool,
}

impl Device {
    /// One that does nothing else.
    pub(crate) const fn new(rate: f64, buffer: f64, base: f64) -> Self {
        Self { rate, buffer, base, batch: 1, drift: 0.0, step: (usize::MAX, 0.0), twice: 0.0, polices: false }
    }

    /// Seconds that a frame of this slice takes longer, or shorter, than its queue says; in batches until the last slice.
    fn more_s(&self, i: usize) -> f64 {
        let waits = (self.batch - 1 - i % self.batch) as f64 * SLICE;
        let step = if i >= self.step.0 { self.step.1 } else { 0.0 };
        waits + self.drift * i as f64 * SLICE + step
    }
}

/// A trial of N slices at a load, with absences of the tester and of the device (first slice, slices).
pub(crate) fn trial(
    device: &Device,
    load: f64,
    slices: usize,
    tester: &[(usize, usize)],
    dut: &[(usize, usize)],
) -> Timeline {
    let within = |all: &[(usize, usize)], i: usize| all.iter().any(|(from, n)| (*from..from + n).contains(&i));
    let (mut queued, mut rest, mut due) = (0.0, [0.0; 4], 0);
    let mut whole = |at: usize, frames: f64| {
        rest[at] += frames;
        let n = rest[at].floor();
        rest[at] -= n;
        n as u32
    };
    let mut all = Vec::new();
    for i in 0..slices {
        let sent = if within(tester, i) { 0.0 } else { load * SLICE };
        let works = !within(dut, i) && i % device.batch == device.batch - 1;
        let served: f64 = if works { device.rate * SLICE * device.batch as f64 } else { 0.0 };
        // A policer that is away takes nothing, and its bucket fills by the clock.
        let rests = device.polices && within(dut, i);
        let taken = if rests { 0.0 } else { f64::min(sent, device.buffer - queued + served) };
        let waits = if device.polices { 0.0 } else { queued / device.rate };
        let delay = (device.base + waits + device.more_s(i)).max(1e-9);
        let out = f64::min(served, queued + taken);
        queued = (queued + taken - if rests { device.rate * SLICE } else { out }).max(0.0);
        let ns = (delay * 1e9) as u32;
        let (fluid, sent) = (sent, whole(0, sent));
        // Of slices in which frames were sent: with few frames others have none that could be lost.
        due += whole(1, fluid - taken);
        let received = sent.saturating_sub(due);
        due = if sent == 0 { due } else { 0 };
        let arrived = whole(2, if device.polices { taken } else { out });
        let delays = if received > 0 { ns } else { 0 };
        all.push(Slice {
            sent,
            received,
            arrived,
            min_delay_ns: delays,
            mean_delay_ns: delays,
            arrival_min_delay_ns: ns,
            duplicates: whole(3, out * device.twice),
            ..Slice::default()
        });
    }
    let absences = |who, all: &[(usize, usize)]| -> Vec<Absence> {
        let one = |(from, n): &(usize, usize)| Absence {
            who,
            from_s: *from as f64 * SLICE,
            to_s: (*from + *n) as f64 * SLICE - 1e-9,
        };
        all.iter().map(one).collect()
    };
    let both = [absences(Party::Tester, tester), absences(Party::Device, dut)].concat();
    Timeline { slice_s: SLICE, directions: vec![all], absences: both }
}
