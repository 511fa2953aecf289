//! A trial over time: short slices of equal length, and who was away when.

use serde::{Deserialize, Serialize};
use units::Fps;

/// Shortest slice, seconds.
pub const SHORTEST_SLICE_S: f64 = 1e-4;
/// Longest slice of a trial that has room for it, seconds.
pub const LONGEST_SLICE_S: f64 = 1e-3;
/// Most slices of a trial: 3 MB a direction. Slices of a longer trial are longer.
pub const MOST_SLICES: usize = 65_536;
/// Frames that a slice of usual length is to have at its load.
const USUAL_FRAMES: f64 = 256.0;
/// Frames that a slice is to have at least.
pub const FRAMES_A_SLICE: f64 = 16.0;

/// How a trial is cut.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Cut {
    /// Length of a slice, seconds.
    pub slice_s: f64,
    /// Number of slices. The last ones are after the end of sending: frames still arrive then.
    pub count: usize,
    /// How many slices make one of usual length, in which the loss of a device that is kept busy shows.
    pub usual: usize,
}

impl Cut {
    /// Of a trial of this length at this load (a direction).
    pub fn of(duration_s: f64, load: Fps) -> Self {
        let usual_s = (USUAL_FRAMES / load.get()).clamp(SHORTEST_SLICE_S, LONGEST_SLICE_S);
        let shortest_s = (FRAMES_A_SLICE / load.get()).max(SHORTEST_SLICE_S);
        let most = (MOST_SLICES - TAIL_SLICES) as f64;
        let parts = (usual_s / shortest_s).min(usual_s * most / duration_s).floor().max(1.0);
        let slice_s = (usual_s / parts).max(duration_s / most);
        let count = (duration_s / slice_s).ceil().max(1.0) as usize + TAIL_SLICES;
        Self { slice_s, count: count.min(MOST_SLICES), usual: parts as usize }
    }
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
    /// How long a slice would be at the load that was offered, were the trial a short one, seconds.
    pub fn usual_slice_s(&self, duration_s: f64) -> f64 {
        let sent: u64 = self.directions.iter().flatten().map(|slice| u64::from(slice.sent)).sum();
        let load = sent as f64 / self.directions.len().max(1) as f64 / duration_s;
        (USUAL_FRAMES / load).clamp(SHORTEST_SLICE_S, LONGEST_SLICE_S)
    }

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

impl Timeline {
    /// The same in longer slices, so many joined in each.
    #[must_use]
    pub fn in_longer(&self, each: usize) -> Self {
        let each = each.max(1);
        let join = |slices: &Vec<Slice>| slices.iter().collect::<Vec<_>>().chunks(each).map(joined).collect();
        Self {
            slice_s: self.slice_s * each as f64,
            directions: self.directions.iter().map(join).collect(),
            absences: self.absences.clone(),
        }
    }
}

impl Timeline {
    /// The same without the slices that begin later, of a trial that was cut short.
    #[must_use]
    pub fn until(mut self, end_s: f64) -> Self {
        let slices = (end_s / self.slice_s).ceil().max(0.0) as usize;
        self.directions.iter_mut().for_each(|direction| direction.truncate(slices));
        self
    }
}

/// Most slices of a direction of a timeline that a result keeps: neighbours are joined.
pub const MOST_KEPT: usize = 400;

impl Timeline {
    /// The same in at most [`MOST_KEPT`] slices a direction, without those behind the last frame, and with so many absences
    /// at most, the longest ones.
    #[must_use]
    pub fn thinned(&self) -> Self {
        let last = |slices: &Vec<Slice>| slices.iter().rposition(|s| *s != Slice::default()).map_or(0, |last| last + 1);
        let len = self.directions.iter().map(last).max().unwrap_or(0);
        let each = len.div_ceil(MOST_KEPT).max(1);
        let shorter = |slices: &Vec<Slice>| slices.iter().take(len).copied().collect();
        let whole = Self {
            slice_s: self.slice_s,
            directions: self.directions.iter().map(shorter).collect(),
            absences: Vec::new(),
        };
        let end_s = len as f64 * self.slice_s;
        let mut absences: Vec<Absence> = self.absences.iter().filter(|a| a.from_s < end_s).copied().collect();
        absences.sort_by(|a, b| (b.to_s - b.from_s).total_cmp(&(a.to_s - a.from_s)));
        absences.truncate(MOST_KEPT);
        absences.sort_by(|a, b| a.from_s.total_cmp(&b.from_s));
        Self { absences, ..whole.in_longer(each) }
    }
}

/// Neighbouring slices as one.
fn joined(run: &[&Slice]) -> Slice {
    let sum = |of: fn(&Slice) -> u32| run.iter().fold(0u32, |sum, s| sum.saturating_add(of(s)));
    let least = |frames: fn(&Slice) -> u32, delay: fn(&Slice) -> u32| {
        run.iter().filter(|s| frames(s) > 0).map(|s| delay(s)).min().unwrap_or(0)
    };
    let received: u64 = run.iter().map(|s| u64::from(s.received)).sum();
    let delays: u128 = run.iter().map(|s| u128::from(s.received) * u128::from(s.mean_delay_ns)).sum();
    Slice {
        sent: sum(|s| s.sent),
        refused: sum(|s| s.refused),
        received: sum(|s| s.received),
        min_delay_ns: least(|s| s.received, |s| s.min_delay_ns),
        mean_delay_ns: delays.checked_div(u128::from(received)).unwrap_or(0) as u32,
        arrived: sum(|s| s.arrived),
        arrival_min_delay_ns: least(|s| s.arrived, |s| s.arrival_min_delay_ns),
        duplicates: sum(|s| s.duplicates),
    }
}

/// A trial of a run over time, [thinned](Timeline::thinned).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TrialTimeline {
    /// Number of the trial.
    pub trial: u32,
    /// Its slices, joined.
    #[serde(flatten)]
    pub timeline: Timeline,
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

#[cfg(test)]
mod tests {
    use super::*;

    fn absence(from_s: f64, to_s: f64) -> Absence {
        Absence { who: Party::Tester, from_s, to_s }
    }

    #[test]
    fn slices_are_short_enough_to_join_and_few_enough_to_keep() {
        let cut = |duration_s, fps| Cut::of(duration_s, Fps::from_raw(fps));
        // Frames a slice as usual, and the shortest: at a high load both are of 0.1 ms.
        let Cut { slice_s, count, usual } = cut(0.1, 25e6);
        assert_eq!((slice_s, count, usual), (SHORTEST_SLICE_S, 1_000 + TAIL_SLICES, 1));
        let Cut { slice_s, usual, .. } = cut(0.1, 1e6);
        assert!(usual == 2 && (slice_s * usual as f64 - 256e-6).abs() < 1e-12, "{slice_s} {usual}");
        // At a low load a slice of usual length is the longest.
        let Cut { slice_s, usual, .. } = cut(0.1, 200e3);
        assert!(usual == 10 && (slice_s - 1e-4).abs() < 1e-12, "{slice_s} {usual}");
        assert_eq!((cut(0.1, 20e3).usual, cut(0.1, 20e3).slice_s), (1, LONGEST_SLICE_S));
        // Of a long trial they are longer, and those of usual length no longer than before.
        let Cut { slice_s, count, usual } = cut(60.0, 200e3);
        assert!(count <= MOST_SLICES && usual == 1 && slice_s <= LONGEST_SLICE_S, "{slice_s} {count} {usual}");
        let long = cut(600.0, 25e6);
        assert!(
            long.count == MOST_SLICES && long.usual == 1 && long.slice_s * (MOST_SLICES - TAIL_SLICES) as f64 >= 600.0
        );
    }

    #[test]
    fn a_thinned_timeline_has_all_frames_in_few_slices() {
        let busy =
            Slice { sent: 10, received: 8, min_delay_ns: 500, mean_delay_ns: 700, arrived: 8, ..Slice::default() };
        let mut slices = vec![busy; 10_000];
        slices[5].min_delay_ns = 300;
        slices[6] = Slice { sent: 10, ..Slice::default() };
        slices.extend([Slice::default(); 64]);
        let mut absences: Vec<_> =
            (0..1000).map(|i| absence(f64::from(i) * 1e-3, f64::from(i) * 1e-3 + 1e-5)).collect();
        absences[500].to_s += 1e-4;
        absences.push(absence(1.0001, 9.0));
        let thin = Timeline { slice_s: 1e-4, directions: vec![slices, Vec::new()], absences }.thinned();
        assert_eq!((thin.directions[0].len(), thin.directions[1].len(), thin.absences.len()), (400, 0, 400));
        assert!((thin.slice_s - 25e-4).abs() < 1e-12);
        let sum = |of: fn(&Slice) -> u32| thin.directions[0].iter().map(of).sum::<u32>();
        assert_eq!((sum(|s| s.sent), sum(|s| s.received)), (100_000, 79_992));
        let first = thin.directions[0][0];
        assert_eq!((first.min_delay_ns, first.mean_delay_ns, first.lost()), (300, 700, 58));
        assert!(thin.absences.iter().any(|a| a.to_s - a.from_s > 1e-4) && thin.absences.iter().all(|a| a.from_s < 1.0));
    }

    #[test]
    fn a_timeline_that_was_cut_short_ends_there() {
        let directions = vec![vec![Slice { sent: 1, ..Slice::default() }; 10]; 2];
        let timeline = Timeline { slice_s: 0.5, directions, absences: vec![absence(1.0, 1.2)] };
        let slices = |end_s| timeline.clone().until(end_s).directions.iter().map(Vec::len).collect::<Vec<_>>();
        assert_eq!([0.0, 1.5, 1.6, 99.0].map(slices), [[0, 0], [3, 3], [4, 4], [10, 10]]);
    }

    #[test]
    fn a_short_timeline_stays_as_it_is() {
        let one = Slice { sent: 1, received: 1, arrived: 1, ..Slice::default() };
        let whole = Timeline { slice_s: 1e-3, directions: vec![vec![one; 3]], absences: vec![absence(0.0, 1e-3)] };
        assert_eq!(whole.thinned(), whole);
        assert_eq!(Timeline::default().thinned(), Timeline::default());
    }
}
