//! The trials of an MLRsearch by load, and the bounds that follow.

use units::Fps;

use super::classify::{classify, conditional_throughput, Class, Seen, Sums};
use crate::schema::goal::SearchGoal;

/// One load and its trials.
#[derive(Debug, Clone)]
pub(super) struct Row {
    /// Intended load.
    pub load: Fps,
    /// Number and outcome of each trial, in order of time.
    pub trials: Vec<(u32, Seen)>,
}

impl Row {
    /// The outcomes of the trials.
    pub fn seen(&self) -> impl Iterator<Item = &Seen> {
        self.trials.iter().map(|(_, seen)| seen)
    }

    /// The sums that classify the load.
    pub fn sums(&self, goal: &SearchGoal) -> Sums {
        Sums::of(goal, self.seen())
    }

    /// Smallest loss ratio seen, which has the least noise.
    pub fn least_loss(&self) -> f64 {
        self.seen().map(|s| s.loss_ratio).fold(1.0, f64::min)
    }
}

/// Every trial seen, by load. All trials count for all goals.
#[derive(Debug, Clone, Default)]
pub(super) struct LoadTable {
    /// In rising order of load.
    rows: Vec<Row>,
}

impl LoadTable {
    /// Adds a trial.
    pub fn add(&mut self, load: Fps, number: u32, seen: Seen) {
        match self.rows.binary_search_by(|row| row.load.get().total_cmp(&load.get())) {
            Ok(at) => self.rows[at].trials.push((number, seen)),
            Err(at) => self.rows.insert(at, Row { load, trials: vec![(number, seen)] }),
        }
    }

    /// The loads tried, in rising order.
    pub fn rows(&self) -> &[Row] {
        &self.rows
    }

    /// The trials at a load, if any.
    pub fn row(&self, load: Fps) -> Option<&Row> {
        let at = self.rows.binary_search_by(|row| row.load.get().total_cmp(&load.get()));
        at.ok().and_then(|at| self.rows.get(at))
    }

    /// The current bounds of a goal.
    pub fn bounds(&self, goal: &SearchGoal) -> RelevantBounds {
        let class = |row: &&Row| classify(goal, row.seen());
        let upper = self.rows.iter().find(|row| class(row) == Class::Upper).map(|row| row.load);
        let below = |row: &&Row| upper.is_none_or(|upper| row.load < upper);
        let lower = self.rows.iter().filter(below).rfind(|row| class(row) == Class::Lower).map(|row| row.load);
        RelevantBounds { lower, upper }
    }

    /// The Conditional Throughput at a load.
    pub fn conditional_throughput(&self, goal: &SearchGoal, load: Fps) -> Option<Fps> {
        let seen: Vec<Seen> = self.row(load)?.seen().copied().collect();
        conditional_throughput(goal, load, &seen)
    }
}

/// The Relevant Lower and Upper Bound (RFC 9971): with loss inversion, the upper bounds win. Without an upper bound, the
/// largest lower bound is only an effective one.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct RelevantBounds {
    /// Largest lower bound below the upper bound.
    pub lower: Option<Fps>,
    /// Smallest upper bound.
    pub upper: Option<Fps>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(loads: &[(f64, usize, f64)]) -> LoadTable {
        let mut table = LoadTable::default();
        for &(load, times, loss_ratio) in loads {
            for number in 0..times {
                let seen = Seen { duration_s: 1.0, effective_s: 1.0, loss_ratio };
                table.add(Fps::new(load).unwrap(), number as u32, seen);
            }
        }
        table
    }

    fn bounds(loads: &[(f64, usize, f64)]) -> (Option<f64>, Option<f64>) {
        let found = table(loads).bounds(&SearchGoal::default());
        (found.lower.map(Fps::get), found.upper.map(Fps::get))
    }

    #[test]
    fn bounds_are_the_relevant_ones() {
        assert_eq!(bounds(&[]), (None, None));
        assert_eq!(bounds(&[(5.0, 11, 0.0), (4.0, 11, 0.0)]), (Some(5.0), None), "an effective lower bound");
        assert_eq!(bounds(&[(5.0, 10, 0.0), (6.0, 11, 0.1)]), (None, Some(6.0)), "ten seconds do not settle a load");
        assert_eq!(bounds(&[(3.0, 11, 0.0), (4.0, 11, 0.0), (7.0, 11, 0.1)]), (Some(4.0), Some(7.0)));
    }

    #[test]
    fn of_loss_inversion_the_smaller_load_is_believed() {
        let inverted = [(3.0, 11, 0.0), (4.0, 11, 0.1), (5.0, 11, 0.0), (6.0, 11, 0.1)];
        assert_eq!(bounds(&inverted), (Some(3.0), Some(4.0)));
        assert_eq!(bounds(&inverted[1..]), (None, Some(4.0)));
    }
}
