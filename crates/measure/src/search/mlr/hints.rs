//! What forwarding rates and loss ratios say about the threshold of a goal, before its trials are classified.

use super::{
    ladder::Ladder,
    table::{LoadTable, Row},
};
use crate::schema::goal::SearchGoal;

/// Spread of the threshold around the position that forwarding rates point to, in rungs.
const CORE: f64 = 0.7;
/// Trust in forwarding rates, and the factor on the trust for each load where they were wrong.
const TRUST: f64 = 0.85;
const DISTRUST: f64 = 0.4;
/// Trust in the trend of small losses, as a share of the rest. Its spread per rung beyond the loads tried.
const TREND: f64 = 0.6;
const TREND_SPREAD: f64 = 0.08;
/// Median distance of the threshold in widths, below and above, when forwarding rates mislead.
const TAIL: (f64, f64) = (3.0, 1.0);
/// Share of the lower tail.
const BELOW: f64 = 0.85;
/// A load is beyond the capacity when it loses this many widths more than the goal allows. Less loss may have other
/// reasons.
const OVERLOADED: f64 = 0.25;
/// Losses up to this many widths have a trend.
const FAINT: f64 = 2.0;
/// Mean number of frames that a trial loses at the threshold of a goal without loss: half of the trials lose none.
const HALF_LOSSLESS: f64 = 0.7;

/// Positions on the ladder where the threshold is likely.
pub(super) struct Hints {
    /// Position, spread and trust of each.
    points: Vec<(f64, f64, f64)>,
    /// The position that the first trials point to, where the tails start.
    anchor: f64,
    /// Width of the goal in rungs.
    width: f64,
}

impl Hints {
    pub fn of(ladder: &Ladder, goal: &SearchGoal, table: &LoadTable, top: usize) -> Self {
        let position = |load: f64| ladder.position(load).clamp(-1.0, top as f64 + 1.0);
        let loads: Vec<f64> = capacities(goal, table).into_iter().map(position).collect();
        // A DUT that loses that much below its supposed capacity does not have a single capacity.
        let promised = loads.iter().copied().fold(f64::NEG_INFINITY, f64::max) - 1.0;
        let broken =
            table.rows().iter().filter(|r| is_overloaded(goal, r) && position(r.load.get()) < promised).count();
        let trust = TRUST * DISTRUST.powi(broken as i32);
        let count = loads.len();
        // The nearest load has the largest weight.
        let weight = |i: usize| 0.5_f64.powi(if i + 1 == count { i as i32 } else { i as i32 + 1 });
        let mut points: Vec<_> = loads.iter().enumerate().map(|(i, &at)| (at, CORE, trust * weight(i))).collect();
        if let Some((load, from)) = trend(goal, table) {
            let (at, from) = (position(load), position(from));
            let left = 1.0 - if points.is_empty() { 0.0 } else { trust };
            points.push((at, CORE + TREND_SPREAD * (from - at).abs(), TREND * left));
        }
        let anchor = loads.last().copied().unwrap_or(top as f64 + 1.0);
        Self { points, anchor, width: ladder.rungs(goal.width.get()) as f64 }
    }

    /// The positions of the hints.
    pub fn positions(&self) -> impl Iterator<Item = f64> + '_ {
        self.points.iter().map(|p| p.0).chain([self.anchor])
    }
}

/// Whether a load is beyond the capacity, rather than short of a few frames.
fn is_overloaded(goal: &SearchGoal, row: &Row) -> bool {
    let least = goal.loss_ratio.get() + OVERLOADED * goal.width.get();
    row.least_loss() > least && row.least_loss() < 1.0
}

/// Loads where the threshold may be, the most likely first. An overloaded DUT forwards at its capacity; the threshold is
/// the load at which that rate means the loss ratio of the goal. With a loss ratio above zero, a line through the
/// forwarding rates on both sides of the threshold gives a better estimate.
fn capacities(goal: &SearchGoal, table: &LoadTable) -> Vec<f64> {
    let loss = goal.loss_ratio.get();
    let rate = |row: &Row| row.load.get() * (1.0 - row.least_loss());
    let high = || table.rows().iter().filter(|row| is_overloaded(goal, row));
    let mut loads = Vec::new();
    if let Some(above) = high().next().filter(|_| loss > 0.0) {
        let below = table.rows().iter().rev().find(|row| row.load < above.load && row.least_loss() <= loss);
        if let Some(below) = below.filter(|row| row.least_loss() > 0.0) {
            let slope = (rate(above) - rate(below)) / (above.load.get() - below.load.get());
            let meets = (rate(below) - slope * below.load.get()) / (1.0 - loss - slope);
            if meets > below.load.get() && meets < above.load.get() {
                loads.push(meets);
            }
        }
    }
    loads.extend(high().map(|row| rate(row) / (1.0 - loss)));
    loads
}

/// The load at which small losses would fade to zero, and the lowest load tried. Small losses shrink by a constant factor
/// per rung.
fn trend(goal: &SearchGoal, table: &LoadTable) -> Option<(f64, f64)> {
    if goal.loss_ratio.get() > 0.0 {
        return None;
    }
    let most = FAINT * goal.width.get();
    let mut small = table.rows().iter().filter(|row| row.least_loss() > 0.0 && row.least_loss() < most);
    let near = small.next()?;
    // Losses that do not shrink will not fade.
    let far = small.find(|row| row.least_loss() > 1.2 * near.least_loss())?;
    let frames = |row: &Row| (row.least_loss() * row.load.get() * goal.final_s() / HALF_LOSSLESS).ln();
    let slope = (frames(far) - frames(near)) / (far.load.get() - near.load.get());
    let fades = near.load.get() - frames(near) / slope;
    (slope > 0.0 && fades > 0.0).then_some((fades.min(near.load.get()), near.load.get()))
}

/// The probability of each cell before the trials are classified, not normalised.
pub(super) struct Prior {
    hints: Hints,
    tails: f64,
    top: usize,
}

impl Prior {
    pub fn new(hints: Hints, top: usize) -> Self {
        let tails = 1.0 - hints.points.iter().map(|p| p.2).sum::<f64>();
        Self { hints, tails, top }
    }

    /// The probability of the cell between two rungs: a Laplace law around each hint, and long tails below and above the
    /// anchor.
    pub fn of(&self, (from, to): (f64, f64)) -> f64 {
        let middle = (from + to) / 2.0;
        let core =
            |&(at, spread, weight): &(f64, f64, f64)| weight / (2.0 * spread) * (-(middle - at).abs() / spread).exp();
        let distance = self.hints.anchor - middle;
        let (median, share) = if distance > 0.0 { (TAIL.0, BELOW) } else { (TAIL.1, 1.0 - BELOW) };
        let scale = median * self.hints.width;
        let beyond = scale + distance.abs();
        // The outermost cells also stand for everything farther out.
        let outermost = from < 0.0 || to > self.top as f64;
        let tail = if outermost { scale / beyond } else { scale / beyond.powi(2) * (to - from) };
        (self.hints.points.iter().map(core).sum::<f64>() * (to - from) + self.tails * share * tail)
            .max(f64::MIN_POSITIVE)
    }
}
