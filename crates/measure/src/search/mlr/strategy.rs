//! MLRsearch's choice of trials.

use units::{Fps, Ratio};

use super::{
    belief::Belief,
    classify::{Seen, Sums},
    ladder::Ladder,
    result::goal_result,
    table::{LoadTable, RelevantBounds},
};
use crate::{
    plan::GoalSet,
    schema::{
        goal::{GoalResult, Regularity, SearchGoal},
        outcome::Outcome,
        trial::Purpose,
    },
    search::{
        gave::Gave,
        strategy::{Bounds, Strategy, Want},
    },
};

/// Least probability of a window that is measured. Below, the search looks for the threshold first.
const LIKELY: f64 = 0.3;
/// Least probability of a window that is measured, relative to the most likely window.
const UNLIKELY: f64 = 0.4;
/// Least probability of one end of a window before full measurement instead of short trials.
const SURE: f64 = 0.97;
/// Most short trials at a load before full measurement: even a short trial has its waits.
const TRIES: usize = 3;
/// Cost of a wrong window, in costs of measuring a whole window: the time lost, and the risk that its ends are
/// misclassified.
const WRONG: f64 = 1.5;
/// Extra cost of a load that was not tried yet, in trials. The extra cost keeps accidents from moving a window, so that
/// the same DUT gets the same answer.
const STAY: f64 = 2.0;

/// MLRsearch's choice of trials.
///
/// For the current goal, the strategy keeps a belief about the threshold. While the belief is wide, the strategy tries the
/// load in the middle. Once a window of the goal's width is likely to hold the threshold, the strategy measures both ends
/// of the window until they are classified. The ends may already have trials, made for this goal or another one. The best
/// window is likely and needs few seconds.
#[derive(Debug, Clone)]
pub struct Mlr {
    goals: GoalSet,
    /// Indices of the goals, strictest first: strict goals have lower bounds, and an upper bound that is found late at a
    /// lower load would undo the bounds found above.
    order: Vec<usize>,
    ladder: Ladder,
    /// Highest rung to try.
    top: usize,
    top_is_tester: bool,
    /// Whether the tester cannot offer even the lowest rung.
    out_of_reach: bool,
    /// Seconds of the warm-up trial, which does not count; zero when none is left.
    warmup_s: f64,
    table: LoadTable,
}

/// The ends of a window as rungs; `None`: beyond the ladder.
#[derive(Debug, Clone, Copy)]
struct Window {
    lower: Option<usize>,
    upper: Option<usize>,
}

impl Mlr {
    pub(super) fn new(goals: GoalSet, bottom: f64, top: (f64, bool), warmup_s: f64) -> Self {
        let width = goals.goals().iter().map(|g| g.width.get()).fold(0.5, f64::min);
        let ladder = Ladder::new(bottom, top.0, width);
        let mut order: Vec<usize> = (0..goals.goals().len()).collect();
        let strictness = |&i: &usize| goals.goals().get(i).map(|g| (g.loss_ratio, g.exceed_ratio));
        order.sort_by(|a, b| strictness(a).partial_cmp(&strictness(b)).unwrap_or(std::cmp::Ordering::Equal));
        Self {
            order,
            top: ladder.last(),
            top_is_tester: top.1,
            out_of_reach: false,
            warmup_s,
            table: LoadTable::default(),
            ladder,
            goals,
        }
    }

    fn at(&self, rung: usize) -> f64 {
        self.ladder.load(rung).get()
    }

    fn sums(&self, goal: &SearchGoal, rung: usize) -> Sums {
        self.table.row(self.ladder.load(rung)).map_or(Sums::default(), |row| row.sums(goal))
    }

    /// How the search for a goal ended; `None` while it goes on.
    fn regularity(&self, goal: &SearchGoal) -> Option<Regularity> {
        let RelevantBounds { lower, upper } = self.table.bounds(goal);
        let at_top = lower.is_some_and(|l| l.get() >= self.at(self.top));
        match (lower, upper) {
            (Some(l), Some(u)) if goal.narrow(l.get(), u.get()) => Some(Regularity::Regular),
            (_, Some(u)) if u.get() <= self.at(0) => Some(Regularity::BelowMinimum),
            _ if at_top && self.top_is_tester => Some(Regularity::TesterLimited),
            _ if at_top => Some(Regularity::AtMaximum),
            _ => None,
        }
    }

    /// The next trial for a goal whose search goes on: rung, and duration in seconds.
    fn trial(&self, goal: &SearchGoal) -> (usize, f64) {
        let RelevantBounds { lower, upper } = self.table.bounds(goal);
        // The bounds as rungs. Without an upper bound: one above the top.
        let floor = lower.map(|l| self.ladder.rung(l));
        let ceiling = upper.map_or(self.top + 1, |u| self.ladder.rung(u).min(self.top + 1));
        let nothing_lossy = self.table.rows().iter().all(|row| row.least_loss() <= goal.loss_ratio.get());
        if nothing_lossy && self.sums(goal, self.top) == Sums::default() {
            return (self.top, goal.initial_s());
        }
        let first = floor.map_or(0, |f| f + 1);
        let belief = Belief::new(&self.ladder, goal, &self.table, (first, ceiling), self.top);
        let (window, likely) = self.best_window(goal, &belief, floor, ceiling);
        let low = window.lower.filter(|&l| Some(l) != floor);
        let high = window.upper.filter(|&u| u < ceiling);
        let sure = |low: usize| 1.0 - belief.above(low);
        match (low, high) {
            _ if likely < LIKELY => (belief.middle().clamp(first, ceiling - 1), goal.initial_s()),
            (Some(l), Some(u)) if sure(l).max(SURE) <= belief.above(u).max(SURE) => self.low_end(goal, l, sure(l)),
            (Some(l), None) => self.low_end(goal, l, sure(l)),
            (_, Some(u)) => self.high_end(goal, u, belief.above(u)),
            // Cannot happen: both ends are classified, but the goal goes on. The middle of the rest is always a step.
            (None, None) => (belief.middle().clamp(first, ceiling - 1), goal.initial_s()),
        }
    }

    /// A trial towards a lower bound: full-length once the bound is likely.
    fn low_end(&self, goal: &SearchGoal, rung: usize, sure: f64) -> (usize, f64) {
        (rung, if self.is_open(rung, sure) { goal.initial_s() } else { goal.final_s() })
    }

    /// A trial towards an upper bound: as short as possible.
    fn high_end(&self, goal: &SearchGoal, rung: usize, sure: f64) -> (usize, f64) {
        if self.is_open(rung, sure) {
            return (rung, goal.initial_s());
        }
        // One trial of just more than the missing seconds. Low-loss short trials balance high-loss short trials; if the load
        // has any, the trial is full-length.
        let sums = self.sums(goal, rung);
        let enough_s = ((sums.missing_high_s(goal, true) / goal.initial_s()).floor() + 1.0) * goal.initial_s();
        (rung, if sums.short_low_s == 0.0 { enough_s.min(goal.final_s()) } else { goal.final_s() })
    }

    /// Whether a load needs a few short trials first.
    fn is_open(&self, rung: usize, sure: f64) -> bool {
        sure < SURE && self.table.row(self.ladder.load(rung)).is_none_or(|row| row.trials.len() < TRIES)
    }

    /// The window that is expected to end the search soonest, and its probability to hold the threshold.
    fn best_window(&self, goal: &SearchGoal, belief: &Belief, floor: Option<usize>, ceiling: usize) -> (Window, f64) {
        let wide = self.ladder.rungs(goal.width.get());
        let below_all = floor.is_none().then_some(None);
        let lowers = floor.into_iter().chain(belief.ends().filter(|&end| end < ceiling)).map(Some);
        let windows = below_all.into_iter().chain(lowers).map(|lower| {
            let upper = match lower {
                None => Some(0),
                Some(l) if l == self.top => None,
                Some(l) => Some((l + wide).min(ceiling).min(self.top)),
            };
            let above = upper.map_or(1.0, |u| belief.above(u));
            (Window { lower, upper }, above - lower.map_or(0.0, |l| belief.above(l)))
        });
        let windows: Vec<(Window, f64)> = windows.collect();
        let likeliest = windows.iter().map(|w| w.1).fold(0.0, f64::max);
        let fresh = self.low_cost(goal, &Sums::default()) + self.high_cost(goal, &Sums::default());
        let cost = |(window, likely): &(Window, f64)| {
            let low = window.lower.filter(|&l| Some(l) != floor).map(|l| self.sums(goal, l));
            let high = window.upper.filter(|&u| u < ceiling).map(|u| self.sums(goal, u));
            let untried = [low, high].iter().filter(|sums| **sums == Some(Sums::default())).count();
            low.map_or(0.0, |sums| self.low_cost(goal, &sums))
                + high.map_or(0.0, |sums| self.high_cost(goal, &sums))
                + STAY * untried as f64 * goal.initial_s()
                + WRONG * (1.0 - likely) * fresh
        };
        let worth = windows.into_iter().filter(|w| w.1 >= UNLIKELY * likeliest);
        let best = worth.min_by(|a, b| cost(a).total_cmp(&cost(b)));
        best.unwrap_or((Window { lower: floor, upper: None }, 0.0))
    }

    /// Seconds until a load is a lower bound, if no further trial is a high-loss trial.
    fn low_cost(&self, goal: &SearchGoal, sums: &Sums) -> f64 {
        (sums.missing_low_s(goal) / goal.final_s() - 1e-9).ceil().max(0.0) * goal.final_s()
    }

    /// Seconds until a load is an upper bound, if every further trial is a high-loss trial.
    fn high_cost(&self, goal: &SearchGoal, sums: &Sums) -> f64 {
        let of = |duration: f64, short| ((sums.missing_high_s(goal, short) / duration).floor() + 1.0) * duration;
        of(goal.final_s(), false).min(of(goal.initial_s(), goal.initial_s() < goal.final_s()))
    }

    fn results(&self, otherwise: Regularity) -> Vec<GoalResult> {
        let of = |goal| goal_result(goal, &self.table, self.regularity(goal).unwrap_or(otherwise));
        self.goals.goals().iter().map(of).collect()
    }
}

impl Strategy for Mlr {
    fn next(&mut self) -> Want {
        if self.out_of_reach {
            return Want::End(Outcome::Inconclusive);
        }
        if self.warmup_s > 0.0 {
            return Want::Trial(self.ladder.load(self.top), self.warmup_s, Purpose::Warmup);
        }
        let goals = self.goals.goals();
        let open = self.order.iter().filter_map(|&i| goals.get(i)).find(|goal| self.regularity(goal).is_none());
        match open {
            Some(goal) => {
                let (rung, duration_s) = self.trial(goal);
                Want::Trial(self.ladder.load(rung), duration_s, Purpose::Search)
            }
            // The outcome of the search is the outcome of the first goal.
            None => Want::End(match goals.first().and_then(|goal| self.regularity(goal)) {
                Some(Regularity::Regular) => Outcome::Found,
                Some(Regularity::AtMaximum) => Outcome::AtMaximum,
                Some(Regularity::TesterLimited) => Outcome::TesterLimited,
                Some(Regularity::BelowMinimum) => Outcome::BelowMinimum,
                Some(Regularity::Unfinished) | None => Outcome::Inconclusive,
            }),
        }
    }

    fn verdict(&mut self, load: Fps, _passed: bool, gave: &Gave) {
        if gave.purpose == Purpose::Warmup {
            self.warmup_s = 0.0;
            return;
        }
        self.aside(load, gave);
    }

    fn near(&self, load: Fps) -> Fps {
        self.ladder.load(self.ladder.rung(load))
    }

    fn aside(&mut self, load: Fps, gave: &Gave) {
        let Gave { duration_s, effective_s, loss_ratio, .. } = *gave;
        self.table.add(load, gave.number, Seen { duration_s, effective_s, loss_ratio });
    }

    fn passed_less(&mut self, gave: &Gave) {
        if let Some(rung) = self.ladder.below(gave.load.get()) {
            self.aside(self.ladder.load(rung), gave);
        }
    }

    fn cap(&mut self, top: Fps) {
        self.top_is_tester = true;
        match self.ladder.below(top.get()) {
            Some(rung) => self.top = self.top.min(rung),
            None => self.out_of_reach = true,
        }
    }

    fn bounds(&self) -> Bounds {
        let Some(goal) = self.goals.goals().first() else { return Bounds::default() };
        let RelevantBounds { lower, upper } = self.table.bounds(goal);
        let passed = |load: Fps| {
            let row = self.table.row(load)?;
            let best = row.trials.iter().find(|(_, seen)| seen.loss_ratio <= goal.loss_ratio.get())?;
            Some((load, best.0))
        };
        Bounds { lower: lower.and_then(passed), upper, ..Bounds::default() }
    }

    fn tolerated_loss(&self) -> Option<(Ratio, Ratio)> {
        let by = |a: &Ratio, b: &Ratio| a.get().total_cmp(&b.get());
        let all = || self.goals.goals().iter().map(|g| g.loss_ratio);
        all().min_by(by).zip(all().max_by(by))
    }

    fn goals(&self) -> Vec<GoalResult> {
        self.results(Regularity::Unfinished)
    }
}
