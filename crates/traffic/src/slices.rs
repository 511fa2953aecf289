//! A trial cut into short slices of equal length: what was offered, refused and received in each.
//!
//! The sender counts by departure. The checker counts by departure, from the stamps, and by arrival. Loss needs no counter of
//! its own: of the frames that departed in a slice, those that never came are lost in it. Both sides add up nothing while a
//! slice lasts: a burst costs one comparison, and the totals at both ends of the slice tell what was counted in it. A
//! reordered frame at the end of a burst hides that frames before it departed in the next slice: then up to a burst is
//! counted one slice early.

/// How a trial is cut. Ticks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Grid {
    /// Length of a slice; at least one tick.
    pub width: u64,
    /// Number of slices. The last one lasts until the end.
    pub count: usize,
}

impl Grid {
    fn index(self, start: u64, tick: u64) -> usize {
        let index = tick.saturating_sub(start) / self.width.max(1);
        usize::try_from(index).unwrap_or(usize::MAX).min(self.count.saturating_sub(1))
    }

    /// End of a slice; the last one has none.
    fn end(self, start: u64, index: usize) -> u64 {
        if index + 1 >= self.count {
            return u64::MAX;
        }
        start.saturating_add(self.width.saturating_mul(index as u64 + 1))
    }
}

/// What a sender did in one slice. Frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SentSlice {
    /// Taken by the port.
    pub sent: u32,
    /// Due and not taken by the port.
    pub refused: u32,
}

/// Counts of a sender, slice by slice.
#[derive(Debug, Clone, Default)]
pub(crate) struct SentSlices {
    grid: Grid,
    start: u64,
    at: usize,
    until: u64,
    /// What the sender had counted when the slice began: sent, refused.
    before: (u64, u64),
    all: Box<[SentSlice]>,
}

impl SentSlices {
    pub(crate) fn new(grid: Grid) -> Self {
        let all = vec![SentSlice::default(); grid.count].into_boxed_slice();
        Self { grid, start: 0, at: 0, until: u64::MAX, before: (0, 0), all }
    }

    pub(crate) fn begin(&mut self, start: u64) {
        (self.start, self.at, self.until) = (start, 0, self.grid.end(start, 0));
    }

    /// When the slice being counted ends.
    #[inline(always)]
    pub(crate) fn until(&self) -> u64 {
        self.until
    }

    /// Ends the slice with what the sender had sent and refused until then, and goes on to that of this departure.
    #[cold]
    #[inline(never)]
    pub(crate) fn roll(&mut self, sent: u64, refused: u64, departure: u64) {
        add_sent(&mut self.all, self.at, self.before, (sent, refused));
        self.before = (sent, refused);
        self.at = self.grid.index(self.start, departure);
        self.until = self.grid.end(self.start, self.at);
    }

    /// All of them, if the sender has sent and refused so many until now.
    pub(crate) fn all(&self, sent: u64, refused: u64) -> Vec<SentSlice> {
        let mut all = self.all.to_vec();
        add_sent(&mut all, self.at, self.before, (sent, refused));
        all
    }
}

fn add_sent(all: &mut [SentSlice], at: usize, before: (u64, u64), now: (u64, u64)) {
    if let Some(slice) = all.get_mut(at) {
        slice.sent += (now.0 - before.0) as u32;
        slice.refused += (now.1 - before.1) as u32;
    }
}

/// Frames of one slice, and their one-way delays in ticks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CameSlice {
    /// Received for the first time.
    pub frames: u32,
    /// The smallest delay; `u32::MAX` without frames.
    pub min: u32,
    /// Sum of the delays.
    pub sum: u64,
}

impl Default for CameSlice {
    fn default() -> Self {
        Self { frames: 0, min: u32::MAX, sum: 0 }
    }
}

/// What a checker counted in one slice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CheckedSlice {
    /// Frames that departed in it.
    pub departed: CameSlice,
    /// Frames that arrived in it.
    pub arrived: CameSlice,
    /// Copies that arrived in it.
    pub duplicates: u32,
}

/// What a checker has counted since the trial began.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Totals {
    /// Frames received for the first time.
    pub(crate) received: u64,
    /// Of these: frames below the highest sequence already seen.
    pub(crate) reordered: u64,
    /// Further copies of frames.
    pub(crate) duplicates: u64,
    /// Sum of all delays, in ticks.
    pub(crate) delays: u128,
}

/// The slice being counted, of departures or of arrivals.
#[derive(Debug, Clone, Copy)]
struct Open {
    at: usize,
    until: u64,
    /// The totals when it began, and the delays of reordered frames among them.
    before: Totals,
    late_before: u64,
    /// The smallest delay in it, but for frames since the last look at [`CheckedSlices::least`].
    min: u64,
}

impl Open {
    const NEW: Self = Self {
        at: 0,
        until: u64::MAX,
        before: Totals { received: 0, reordered: 0, duplicates: 0, delays: 0 },
        late_before: 0,
        min: u64::MAX,
    };
}

/// Counts of a checker, slice by slice.
///
/// The totals of the checker at both ends of a slice tell what was counted in it: while a slice lasts nothing is added up
/// but the smallest delay.
#[derive(Debug, Clone)]
pub(crate) struct CheckedSlices {
    grid: Grid,
    start: u64,
    departures: Open,
    arrivals: Open,
    /// When the first of both ends.
    until: u64,
    /// The smallest delay of frames in sequence since one of both began.
    least: u64,
    /// Sum of the delays of reordered frames.
    late: u64,
    all: Box<[CheckedSlice]>,
}

impl CheckedSlices {
    pub(crate) fn new(grid: Grid) -> Self {
        let all = vec![CheckedSlice::default(); grid.count].into_boxed_slice();
        let (departures, arrivals) = (Open::NEW, Open::NEW);
        Self { grid, start: 0, departures, arrivals, until: u64::MAX, least: u64::MAX, late: 0, all }
    }

    /// Begins the trial.
    pub(crate) fn begin(&mut self, start: u64) {
        self.start = start;
        self.until = self.grid.end(start, 0);
        for open in [&mut self.departures, &mut self.arrivals] {
            (open.at, open.until) = (0, self.until);
        }
    }

    /// Until then a burst that arrives belongs to the slices being counted: no frame arrives before it departs.
    #[inline(always)]
    pub(crate) fn until(&self) -> u64 {
        self.until
    }

    /// When the slice of the departures being counted ends.
    pub(crate) fn departing_until(&self) -> u64 {
        self.departures.until
    }

    /// Frames in sequence came with this delay or more.
    #[inline(always)]
    pub(crate) fn came(&mut self, delay: u64) {
        self.least = self.least.min(delay);
    }

    /// A frame below the highest sequence: it departed in an earlier slice, or in this one.
    #[cold]
    pub(crate) fn came_late(&mut self, departure: u64, delay: u64) {
        self.late += delay;
        self.arrivals.min = self.arrivals.min.min(delay);
        let at = self.grid.index(self.start, departure);
        if let Some(slice) = self.all.get_mut(at) {
            slice.departed.add(1, delay, delay);
        }
    }

    /// Goes on to the slice of this arrival, if it is another one.
    pub(crate) fn arrive(&mut self, totals: Totals, now: u64) {
        if now >= self.arrivals.until {
            self.settle();
            add_arrived(&mut self.all, &self.arrivals, totals);
            self.arrivals = self.open(totals, now);
            self.until = self.arrivals.until.min(self.departures.until);
        }
    }

    /// Goes on to the slice of this departure.
    #[cold]
    #[inline(never)]
    pub(crate) fn depart(&mut self, totals: Totals, departure: u64) {
        self.settle();
        add_departed(&mut self.all, &self.departures, totals, self.late);
        self.departures = self.open(totals, departure);
        self.until = self.arrivals.until.min(self.departures.until);
    }

    fn settle(&mut self) {
        for open in [&mut self.departures, &mut self.arrivals] {
            open.min = open.min.min(self.least);
        }
        self.least = u64::MAX;
    }

    fn open(&self, before: Totals, tick: u64) -> Open {
        let at = self.grid.index(self.start, tick);
        Open { at, until: self.grid.end(self.start, at), before, late_before: self.late, min: u64::MAX }
    }

    /// All of them, if these are the totals now.
    pub(crate) fn all(&self, totals: Totals) -> Vec<CheckedSlice> {
        let mut end = Self { all: Box::default(), ..self.clone() };
        end.settle();
        let mut all = self.all.to_vec();
        add_departed(&mut all, &end.departures, totals, self.late);
        add_arrived(&mut all, &end.arrivals, totals);
        all
    }
}

/// Frames in sequence that departed in a slice that is over; reordered ones were added as they came.
fn add_departed(all: &mut [CheckedSlice], open: &Open, totals: Totals, late: u64) {
    let in_sequence = |of: &Totals| of.received - of.reordered;
    let sum = (totals.delays - open.before.delays) as u64 - (late - open.late_before);
    if let Some(slice) = all.get_mut(open.at) {
        slice.departed.add(in_sequence(&totals) - in_sequence(&open.before), open.min, sum);
    }
}

/// Frames that arrived in a slice that is over.
fn add_arrived(all: &mut [CheckedSlice], open: &Open, totals: Totals) {
    let frames = totals.received - open.before.received;
    if let Some(slice) = all.get_mut(open.at) {
        slice.arrived.add(frames, open.min, (totals.delays - open.before.delays) as u64);
        slice.duplicates += (totals.duplicates - open.before.duplicates) as u32;
    }
}

impl CameSlice {
    fn add(&mut self, frames: u64, min: u64, sum: u64) {
        self.frames += frames as u32;
        self.min = self.min.min(u32::try_from(min).unwrap_or(u32::MAX));
        self.sum += sum;
    }
}
