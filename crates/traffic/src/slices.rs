//! A trial cut into short slices of equal length: what was offered, refused and received in each.
//!
//! The sender counts by departure. The checker counts by departure, from the stamps, and by arrival. Loss needs no counter of
//! its own: of the frames that departed in a slice, those that never came are lost in it. Each side looks the slice up once a
//! burst. A reordered frame at the end of a burst hides that frames before it departed in the next slice: then up to a burst
//! is counted one slice early.

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
    all: Box<[SentSlice]>,
}

impl SentSlices {
    pub(crate) fn new(grid: Grid) -> Self {
        let all = vec![SentSlice::default(); grid.count].into_boxed_slice();
        Self { grid, start: 0, at: 0, until: u64::MAX, all }
    }

    pub(crate) fn begin(&mut self, start: u64) {
        (self.start, self.at, self.until) = (start, 0, self.grid.end(start, 0));
    }

    #[inline]
    pub(crate) fn count(&mut self, sent: usize, refused: usize, now: u64) {
        if now >= self.until {
            self.at = self.grid.index(self.start, now);
            self.until = self.grid.end(self.start, self.at);
        }
        if let Some(slice) = self.all.get_mut(self.at) {
            slice.sent += sent as u32;
            slice.refused += refused as u32;
        }
    }

    pub(crate) fn all(&self) -> &[SentSlice] {
        &self.all
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

/// Counts of a checker, slice by slice.
#[derive(Debug, Clone)]
pub(crate) struct CheckedSlices {
    grid: Grid,
    start: u64,
    /// Slice of the departures being counted, and when it ends; the same of the arrivals.
    departing: usize,
    departing_until: u64,
    arriving: usize,
    arriving_until: u64,
    /// Frames below the highest sequence, since the caller set this to none.
    pub(crate) late: Came,
    all: Box<[CheckedSlice]>,
}

/// Frames that came together, and their delays in ticks.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Came {
    pub(crate) frames: u64,
    pub(crate) min: u64,
    pub(crate) sum: u64,
}

impl Came {
    pub(crate) const NONE: Self = Self { frames: 0, min: u64::MAX, sum: 0 };

    #[inline(always)]
    pub(crate) fn join(&mut self, other: Self) {
        self.frames += other.frames;
        self.min = self.min.min(other.min);
        self.sum += other.sum;
    }
}

impl CheckedSlices {
    pub(crate) fn new(grid: Grid) -> Self {
        let all = vec![CheckedSlice::default(); grid.count].into_boxed_slice();
        let (departing_until, arriving_until) = (u64::MAX, u64::MAX);
        Self { grid, start: 0, departing: 0, departing_until, arriving: 0, arriving_until, late: Came::NONE, all }
    }

    /// Begins the trial.
    pub(crate) fn begin(&mut self, start: u64) {
        (self.start, self.departing, self.arriving) = (start, 0, 0);
        self.departing_until = self.grid.end(start, 0);
        self.arriving_until = self.departing_until;
    }

    /// When the slice of the departures being counted ends.
    #[inline]
    pub(crate) fn departing_until(&self) -> u64 {
        self.departing_until
    }

    /// Adds frames that departed in the slice being counted.
    #[inline]
    pub(crate) fn departed(&mut self, came: Came) {
        if let Some(slice) = self.all.get_mut(self.departing) {
            slice.departed.add(came);
        }
    }

    /// Goes on to the slice of this departure.
    #[cold]
    #[inline(never)]
    pub(crate) fn roll(&mut self, departure: u64) {
        self.departing = self.grid.index(self.start, departure);
        self.departing_until = self.grid.end(self.start, self.departing);
    }

    /// A frame below the highest sequence: it departed in an earlier slice, or in this one.
    #[cold]
    pub(crate) fn came_late(&mut self, departure: u64, delay: u64) {
        let at = self.grid.index(self.start, departure);
        let came = Came { frames: 1, min: delay, sum: delay };
        self.late.join(came);
        if let Some(slice) = self.all.get_mut(at) {
            slice.departed.add(came);
        }
    }

    /// A burst that arrived now.
    #[inline]
    pub(crate) fn arrived(&mut self, came: Came, duplicates: u64, now: u64) {
        if now >= self.arriving_until {
            self.arriving = self.grid.index(self.start, now);
            self.arriving_until = self.grid.end(self.start, self.arriving);
        }
        if let Some(slice) = self.all.get_mut(self.arriving) {
            slice.arrived.add(came);
            slice.duplicates += duplicates as u32;
        }
    }

    pub(crate) fn all(&self) -> &[CheckedSlice] {
        &self.all
    }
}

impl CameSlice {
    #[inline]
    fn add(&mut self, came: Came) {
        self.frames += came.frames as u32;
        self.min = self.min.min(u32::try_from(came.min).unwrap_or(u32::MAX));
        self.sum += came.sum;
    }
}
