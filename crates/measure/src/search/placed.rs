//! One search for each placement of the cores.

use std::collections::BTreeMap;

use super::{
    config::SearchConfig,
    step::{Answer, Search, Step},
};
use crate::{
    attempts::{broken, Budget, GivenUp, Streak},
    placement::PlacementClassifier,
    result::{Outcome, PlacementAnswer},
    trial::TrialRecord,
};

/// One search for each placement of the cores, so that trials of different placements never mix. A search by slices is one
/// for all placements: its interval covers what differs between them.
///
/// The cores of a virtual machine move within seconds, and the tester cannot choose where. So the next trial is the one
/// that the search of the most recently seen placement wants. A finished trial goes to the search of its own placement.
/// If that search wants another trial, it ignores the finished one and chooses the next trial. The first search to end
/// gives the answer.
pub struct PlacementSearch<S> {
    make: Box<dyn Fn() -> S + Send>,
    /// All placements have one search.
    combined: bool,
    /// Used until a placement has been seen. Every new search wants the same first trial.
    fresh: S,
    searches: BTreeMap<u32, S>,
    latest: Option<u32>,
    invalid: u32,
    /// Consecutive trials during which the host moved the cores, and the rules that the last of them broke.
    unplaced: Streak,
    last_unplaced: String,
    budget: Budget,
    ended: Option<Answer>,
}

impl<S: Search> PlacementSearch<S> {
    /// Searches made by `make`. The bounds of `config` hold for all searches together.
    pub fn new(config: &SearchConfig, make: impl Fn() -> S + Send + 'static) -> Self {
        Self {
            fresh: make(),
            make: Box::new(make),
            combined: config.by_slices,
            searches: BTreeMap::new(),
            latest: None,
            invalid: 0,
            unplaced: Streak::new(config.max_repeats.saturating_add(1)),
            last_unplaced: String::new(),
            budget: config.budget(),
            ended: None,
        }
    }

    /// The state of the search of every other placement, in order of class.
    pub fn others(&self, classifier: &PlacementClassifier) -> Vec<PlacementAnswer> {
        if self.combined {
            return Vec::new();
        }
        let own = self.so_far().placement;
        let others = self.searches.iter().filter(|(&class, _)| Some(class) != own);
        others
            .filter_map(|(&class, search)| {
                let answer = search.so_far();
                Some(PlacementAnswer {
                    placement: classifier.placement(class)?,
                    outcome: answer.outcome,
                    throughput_fps: answer.throughput,
                    upper_bound_fps: answer.upper_bound,
                    trials: answer.trials.len() as u32,
                })
            })
            .collect()
    }

    fn wanted(&mut self) -> Step {
        match self.latest.and_then(|class| self.searches.get_mut(&class)) {
            Some(search) => search.next(),
            None => self.fresh.next(),
        }
    }

    fn placed(&self, class: Option<u32>, answer: Answer) -> Answer {
        // Invalid trials count over all placements, and those without a placement count too.
        Answer { invalid_trials: self.invalid, placement: class.filter(|_| !self.combined), ..answer }
    }

    /// The state of the search with the most valid trials.
    fn leader(&self) -> Answer {
        let best = self.searches.iter().max_by_key(|(&class, s)| (s.so_far().trials.len(), Some(class) == self.latest));
        match best {
            Some((&class, search)) => self.placed(Some(class), search.so_far()),
            None => self.placed(None, self.fresh.so_far()),
        }
    }

    fn give_up(&mut self, why: GivenUp) {
        let answer = Answer { outcome: Outcome::Inconclusive, reasons: vec![why.into()], ..self.leader() };
        self.ended = Some(answer);
    }
}

impl<S: Search> Search for PlacementSearch<S> {
    fn next(&mut self) -> Step {
        if let Some(answer) = &self.ended {
            return Step::Done(answer.clone());
        }
        match self.wanted() {
            Step::Done(answer) => {
                self.ended = Some(self.placed(self.latest, answer));
            }
            Step::Run(spec) => {
                let unplaced = self
                    .unplaced
                    .is_enough()
                    .then(|| GivenUp::Unplaced { trials: self.unplaced.length(), last: self.last_unplaced.clone() });
                match unplaced.or_else(|| self.budget.used_up()) {
                    Some(why) => self.give_up(why),
                    None => return Step::Run(spec),
                }
            }
        }
        Step::Done(self.so_far())
    }

    fn report(&mut self, trial: &TrialRecord) {
        if self.ended.is_some() {
            return;
        }
        self.budget.spend(trial);
        self.invalid += u32::from(!trial.valid());
        let seen = &trial.interference;
        let class = match self.combined {
            true => Some(0),
            false => seen.placement.or((!seen.is_probed()).then_some(0)),
        };
        self.unplaced.see(class.is_none());
        let Some(class) = class else {
            self.last_unplaced = broken(trial);
            return;
        };
        self.latest = Some(class);
        let search = self.searches.entry(class).or_insert_with(|| (self.make)());
        // `next` prepares the request that `report` compares with. The search ignores a trial that it does not want.
        if let Step::Run(_) = search.next() {
            search.report(trial);
        }
    }

    fn so_far(&self) -> Answer {
        self.ended.clone().unwrap_or_else(|| self.leader())
    }
}
