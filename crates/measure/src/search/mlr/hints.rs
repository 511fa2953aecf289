//! What forwarding rates and loss ratios say about a goal's threshold, before any trial is held against the goal.

use super::{
    ladder::Ladder,
    table::{LoadTable, Row},
};
use crate::schema::goal::SearchGoal;

/// Spread of the threshold around where forwarding rates point to, in rungs.
const CORE: f64 = 0.7;
/// Trust in forwarding rates, and what is left of it for each load that they got wrong.
const TRUST: f64 = 0.85;
const DISTRUST: f64 = 0.4;
/// Trust in the trend of small losses, of what is left; its spread for each rung that it reaches beyond what was tried.
const TREND: f64 = 0.6;
const TREND_SPREAD: f64 = 0.08;
/// How far beyond it may be when they mislead: the median distance, in widths, below and above.
const TAIL: (f64, f64) = (3.0, 1.0);
/// Share of the tails that lies below.
const BELOW: f64 = 0.85;
/// A load is beyond the capacity when it loses so many widths more than the goal allows; less may have other reasons.
const OVERLOADED: f64 = 0.25;
/// Losses up to so many widths have a trend.
const FAINT: f64 = 2.0;
/// Frames that a trial loses on average at a threshold of no loss, of which half the trials then lose none.
const HALF_LOSSLESS: f64 = 0.7;

/// Positions on the ladder where the threshold may well be.
pub(super) struct Hints {
    /// Position, spread and trust of each.
    points: Vec<(f64, f64, f64)>,
    /// Where the first trials pointed to: the tails start there.
    anchor: f64,
    /// Rungs of the goal's width.
    width: f64,
}

impl Hints {
    pub fn of(ladder: &Ladder, goal: &SearchGoal, table: &LoadTable, top: usize) -> Self {
        let position = |load: f64| ladder.position(load).clamp(-1.0, top as f64 + 1.0);
        let loads: Vec<f64> = capacities(goal, table).into_iter().map(position).collect();
        // A DUT that loses as much below where it should lose nothing has no one capacity.
        let promised = loads.iter().copied().fold(f64::NEG_INFINITY, f64::max) - 1.0;
        let broken =
            table.rows().iter().filter(|r| is_overloaded(goal, r) && position(r.load.get()) < promised).count();
        let trust = TRUST * DISTRUST.powi(broken as i32);
        let count = loads.len();
        // The nearest load knows best.
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

    /// Where they point to.
    pub fn positions(&self) -> impl Iterator<Item = f64> + '_ {
        self.points.iter().map(|p| p.0).chain([self.anchor])
    }
}

/// Whether a load is beyond the capacity, and not merely lost a few frames.
fn is_overloaded(goal: &SearchGoal, row: &Row) -> bool {
    let least = goal.loss_ratio.get() + OVERLOADED * goal.width.get();
    row.least_loss() > least && row.least_loss() < 1.0
}

/// At a load that the DUT cannot take it forwards its capacity: the goal's threshold is where that is short by the goal's
/// loss ratio. With a loss ratio above zero, loads on both sides of the threshold tell more: it is where the line through
/// their forwarding rates meets the goal's. The most believable first.
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

/// Where small losses would fade to none: they shrink by a constant factor a rung. The load, and the lowest one tried.
fn trend(goal: &SearchGoal, table: &LoadTable) -> Option<(f64, f64)> {
    if goal.loss_ratio.get() > 0.0 {
        return None;
    }
    let most = FAINT * goal.width.get();
    let mut small = table.rows().iter().filter(|row| row.least_loss() > 0.0 && row.least_loss() < most);
    let near = small.next()?;
    // Losses that do not shrink are not about to fade.
    let far = small.find(|row| row.least_loss() > 1.2 * near.least_loss())?;
    let frames = |row: &Row| (row.least_loss() * row.load.get() * goal.final_s() / HALF_LOSSLESS).ln();
    let slope = (frames(far) - frames(near)) / (far.load.get() - near.load.get());
    let fades = near.load.get() - frames(near) / slope;
    (slope > 0.0 && fades > 0.0).then_some((fades.min(near.load.get()), near.load.get()))
}

/// The probability of each cell before the trials are held against the goal, not normalised.
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

    /// Of the cell between two rungs: around each hint a Laplace law, below and above a tail whose median doubles with
    /// every step into it.
    pub fn of(&self, (from, to): (f64, f64)) -> f64 {
        let middle = (from + to) / 2.0;
        let core =
            |&(at, spread, weight): &(f64, f64, f64)| weight / (2.0 * spread) * (-(middle - at).abs() / spread).exp();
        let distance = self.hints.anchor - middle;
        let (median, share) = if distance > 0.0 { (TAIL.0, BELOW) } else { (TAIL.1, 1.0 - BELOW) };
        let scale = median * self.hints.width;
        let beyond = scale + distance.abs();
        // The outermost cells stand for all that is farther out, too.
        let outermost = from < 0.0 || to > self.top as f64;
        let tail = if outermost { scale / beyond } else { scale / beyond.powi(2) * (to - from) };
        (self.hints.points.iter().map(core).sum::<f64>() * (to - from) + self.tails * share * tail)
            .max(f64::MIN_POSITIVE)
    }
}
