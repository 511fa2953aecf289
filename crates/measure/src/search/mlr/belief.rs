//! The probability of each load to be the threshold of a goal.

use super::{
    classify::is_high_loss,
    hints::{Hints, Prior},
    ladder::Ladder,
    table::{LoadTable, Row},
};
use crate::schema::goal::SearchGoal;

/// Shares of high-loss trials far below the threshold at an exceed ratio of one half, each with its probability: from a
/// quiet DUT to one that stalls every other second.
const ACCIDENTS: [(f64, f64); 3] = [(0.02, 0.55), (0.15, 0.3), (0.35, 0.15)];
/// Largest such share of trials that lose far more than the goal allows.
const GROSS: f64 = 0.02;
/// Share of low-loss trials far above the threshold.
const LUCK: f64 = 0.03;
/// Softness of the threshold in widths of the goal, each with its probability. High-loss trials follow a logistic law.
const SOFTNESS: [(f64, f64); 3] = [(0.03, 0.85), (0.25, 0.1), (1.0, 0.05)];
/// Multiples of the softness beyond which the distance to the threshold no longer counts.
const FAR: f64 = 9.0;
/// Widths around each known rung within which every rung is a cell.
const REACH: f64 = 4.0;

/// Where the threshold of a goal may be. The threshold is the load above which trials fail the goal too often.
///
/// Each cell between rungs of the ladder has a probability. Cell `(a, b]` means: rung `b` and all rungs above are above
/// the threshold, rung `a` and all rungs below are not. Cells are single rungs near known rungs and grow with the
/// distance. The probability is a prior from forwarding rates ([`Prior`]) times the likelihood of the high-loss and
/// low-loss trials seen, summed over a few kinds of noise.
///
/// The belief only guides the choice of loads. Classification alone makes a load a bound.
#[derive(Debug)]
pub(super) struct Belief {
    /// The rung that ends each cell.
    ends: Vec<usize>,
    /// Probability of this cell and all below it.
    up_to: Vec<f64>,
}

impl Belief {
    /// Takes the threshold to be between just below rung `first` and just below rung `last`. Just below rung 0: every load
    /// of the ladder is above the threshold. Just below the rung after the top: no load is.
    pub fn new(
        ladder: &Ladder,
        goal: &SearchGoal,
        table: &LoadTable,
        (first, last): (usize, usize),
        top: usize,
    ) -> Self {
        let hints = Hints::of(ladder, goal, table, top);
        let width = ladder.rungs(goal.width.get()) as f64;
        let rows: Vec<(usize, Counts)> =
            table.rows().iter().map(|row| (ladder.rung(row.load), Counts::of(goal, row))).collect();
        let known = hints.positions().map(|at| at.round().max(0.0) as usize).chain(rows.iter().map(|r| r.0));
        let ends = cells(known, (first, last), (REACH * width) as usize);
        let starts = std::iter::once(first as f64 - 1.0).chain(ends.iter().map(|&end| end as f64));
        let spans: Vec<(f64, f64)> = starts.zip(ends.iter().map(|&end| end as f64)).collect();

        let mut joint = vec![f64::NEG_INFINITY; ends.len()];
        for (accident, likely) in ACCIDENTS {
            for (softness, also) in SOFTNESS {
                // If the goal tolerates no high-loss trials, one of them settles the load: accidents are left out.
                let accident = accident * (2.0 * goal.exceed_ratio.get()).clamp(1e-6, 1.0);
                let noise = Noise::new(goal, accident, softness * width);
                let mut logs = vec![f64::ln(likely * also); spans.len()];
                for (at, counts) in &rows {
                    noise.weigh(*at as f64, counts, &spans, &mut logs);
                }
                joint.iter_mut().zip(logs).for_each(|(sum, log)| *sum = add_logs(*sum, log));
            }
        }
        let prior = Prior::new(hints, top);
        joint.iter_mut().zip(&spans).for_each(|(log, span)| *log += prior.of(*span).ln());
        let most = joint.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let mut sum = 0.0;
        let mut up_to = Vec::with_capacity(joint.len());
        for log in joint {
            sum += (log - most).exp();
            up_to.push(sum);
        }
        up_to.iter_mut().for_each(|p| *p /= sum);
        Self { ends, up_to }
    }

    /// The rungs between cells, rising.
    pub fn ends(&self) -> impl Iterator<Item = usize> + '_ {
        self.ends.iter().copied()
    }

    /// Probability that the load of a rung is above the threshold.
    pub fn above(&self, rung: usize) -> f64 {
        let cells = self.ends.partition_point(|&end| end <= rung);
        cells.checked_sub(1).and_then(|cell| self.up_to.get(cell)).copied().unwrap_or(0.0)
    }

    /// The rung that is as likely above the threshold as below it.
    pub fn middle(&self) -> usize {
        let cell = self.up_to.partition_point(|&p| p < 0.5).min(self.ends.len().saturating_sub(1));
        self.ends.get(cell).copied().unwrap_or(0)
    }
}

/// Ends of cells from `first` to `last`: every rung within `reach` of a known rung, fewer with growing distance.
fn cells(known: impl Iterator<Item = usize>, (first, last): (usize, usize), reach: usize) -> Vec<usize> {
    let mut known: Vec<usize> = known.map(|rung| rung.clamp(first, last)).chain([first, last]).collect();
    known.sort_unstable();
    known.dedup();
    let steps = || std::iter::successors(Some(0_usize), move |&d| Some(d + if d < reach { 1 } else { (d / 8).max(1) }));
    let mut ends = vec![last];
    for pair in known.windows(2) {
        let &[low, high] = pair else { continue };
        let half = (high - low) / 2;
        ends.extend(steps().take_while(|&d| d <= half).flat_map(|d| [low + d, high - d]));
    }
    ends.sort_unstable();
    ends.dedup();
    ends
}

/// ln(e^a + e^b)
fn add_logs(a: f64, b: f64) -> f64 {
    let (least, most) = if a < b { (a, b) } else { (b, a) };
    if most == f64::NEG_INFINITY {
        most
    } else {
        most + (least - most).exp().ln_1p()
    }
}

/// One kind of noise: how the probability of a high-loss trial rises with the load.
struct Noise {
    accident: f64,
    /// In rungs.
    softness: f64,
    /// Moves the threshold to where the probability equals the exceed ratio.
    shift: f64,
}

impl Noise {
    fn new(goal: &SearchGoal, accident: f64, softness: f64) -> Self {
        let share = ((goal.exceed_ratio.get() - accident) / (1.0 - accident - LUCK)).clamp(0.02, 0.98);
        Self { accident, softness, shift: (share / (1.0 - share)).ln() }
    }

    /// Probability of a high-loss trial at this many rungs above the threshold.
    fn high(&self, rungs: f64, accident: f64) -> f64 {
        accident + (1.0 - accident - LUCK) / (1.0 + (-rungs / self.softness - self.shift).exp())
    }

    /// Adds the trials seen at a rung to the logarithm of each cell.
    fn weigh(&self, at: f64, seen: &Counts, cells: &[(f64, f64)], logs: &mut [f64]) {
        // Far from the threshold, the distance hardly matters.
        let far = FAR * self.softness;
        let (below, above) = (self.log(-far, seen), self.log(far, seen));
        for (log, (from, to)) in logs.iter_mut().zip(cells) {
            let rungs = at - (from + to) / 2.0;
            *log += match rungs {
                _ if rungs <= -far => below,
                _ if rungs >= far => above,
                _ => self.log(rungs, seen),
            };
        }
    }

    /// Logarithm of the probability of the trials seen at a load this many rungs above the threshold.
    fn log(&self, rungs: f64, seen: &Counts) -> f64 {
        let p = self.high(rungs, self.accident);
        let mut log = seen.low * (1.0 - p).ln() + seen.high * p.ln();
        if seen.gross > 0.0 {
            log += seen.gross * self.high(rungs, self.accident.min(GROSS)).ln();
        }
        log
    }
}

/// Numbers of trials at one load.
struct Counts {
    low: f64,
    high: f64,
    /// High-loss trials whose loss exceeds the loss ratio of the goal by more than the width of the goal.
    gross: f64,
}

impl Counts {
    fn of(goal: &SearchGoal, row: &Row) -> Self {
        let far = goal.loss_ratio.get() + goal.width.get();
        let mut counts = Self { low: 0.0, high: 0.0, gross: 0.0 };
        for trial in row.seen() {
            *(match is_high_loss(goal, trial) {
                false => &mut counts.low,
                true if trial.loss_ratio > far => &mut counts.gross,
                true => &mut counts.high,
            }) += 1.0;
        }
        counts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_are_single_rungs_near_what_is_known() {
        assert_eq!(cells([5].into_iter(), (3, 3), 2), [3]);
        assert_eq!(cells([4].into_iter(), (0, 8), 2), [0, 1, 2, 3, 4, 5, 6, 7, 8]);
        let far = cells([5000].into_iter(), (0, 10_000), 8);
        assert!(far.len() < 250, "{}", far.len());
        assert!((4992..=5008).all(|rung| far.contains(&rung)));
        assert!(far.windows(2).all(|w| w[0] < w[1]) && far.first() == Some(&0) && far.last() == Some(&10_000));
    }
}
