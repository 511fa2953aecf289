//! A trial over time: short slices of equal length, and who was away when.

use serde::{Deserialize, Serialize};
use units::Fps;

/// Shortest slice, seconds.
pub const SHORTEST_SLICE_S: f64 = 1e-4;
/// Longest slice of a trial that has room for it, seconds.
pub const LONGEST_SLICE_S: f64 = 1e-3;
/// Most slices of a trial: 3 MB a direction. Slices of a longer trial are longer.
pub const MOST_SLICES: usize = 65_536;
/// Frames that a slice is to have at its load.
const FRAMES_A_SLICE: f64 = 256.0;

/// How a trial of this length at this load (a direction) is cut: the length of a slice in seconds, and their number. The
/// last slices are after the end of sending: frames still arrive then.
pub fn grid(duration_s: f64, load: Fps) -> (f64, usize) {
    let wanted = (FRAMES_A_SLICE / load.get()).clamp(SHORTEST_SLICE_S, LONGEST_SLICE_S);
    let slice_s = wanted.max(duration_s / (MOST_SLICES - TAIL_SLICES) as f64);
    let count = (duration_s / slice_s).ceil().max(1.0) as usize + TAIL_SLICES;
    (slice_s, count.min(MOST_SLICES))
}

/// Slices after the end of sending.
const TAIL_SLICES: usize = 64;

/// A trial over time.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Timeline {
    /// Length of a slice, seconds. The last slice lasts until the end of the trial.
    pub slice_s: f64,
    /// The slices of each direction, from the start of the trial.
    pub directions: Vec<Vec<Slice>>,
    /// Who was away when, in order of the beginning.
    pub absences: Vec<Absence>,
}

impl Timeline {
    /// For each slice the seconds in which this party was away.
    pub fn away(&self, who: Party, slices: usize) -> Vec<f64> {
        self.away_longer(who, slices, 0.0)
    }

    /// The same, for absences longer than this time in seconds.
    pub fn away_longer(&self, who: Party, slices: usize, than_s: f64) -> Vec<f64> {
        let mut away = vec![0.0; slices];
        let longer = |a: &&Absence| a.who == who && a.to_s - a.from_s > than_s;
        for absence in self.absences.iter().filter(longer) {
            let first = (absence.from_s / self.slice_s).max(0.0) as usize;
            let last = (absence.to_s / self.slice_s).max(0.0) as usize;
            for (i, slice) in away.iter_mut().enumerate().take(last + 1).skip(first) {
                let (from, to) = (i as f64 * self.slice_s, (i + 1) as f64 * self.slice_s);
                *slice += (absence.to_s.min(to) - absence.from_s.max(from)).max(0.0);
            }
        }
        away
    }
}

/// One slice of one direction. Frames unless said.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct Slice {
    /// Taken by the sending port.
    pub sent: u32,
    /// Due and refused by the full queue of the sending port.
    pub refused: u32,
    /// Of those sent, received at any time.
    pub received: u32,
    /// Smallest delay of those; zero without any.
    pub min_delay_ns: u32,
    /// Mean delay of those; zero without any.
    pub mean_delay_ns: u32,
    /// Received in this slice, sent at any time.
    pub arrived: u32,
    /// Smallest delay of those; zero without any.
    pub arrival_min_delay_ns: u32,
    /// Copies that came in this slice.
    pub duplicates: u32,
}

impl Slice {
    /// Frames that were sent and never came.
    pub fn lost(&self) -> u32 {
        self.sent.saturating_sub(self.received)
    }

    /// Whether the device or the way to it was under pressure: it lost frames, or its queue was full.
    pub fn is_pressed(&self) -> bool {
        self.lost() > 0 || self.refused > 0
    }
}

/// A time in which somebody did not do its part.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Absence {
    /// Who.
    pub who: Party,
    /// Beginning, seconds from the start of the trial.
    pub from_s: f64,
    /// End, seconds.
    pub to_s: f64,
}

/// Who can be away.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Party {
    /// The tester's lcore.
    Tester,
    /// The built-in device's lcore, or the process of an outside one.
    Device,
}
