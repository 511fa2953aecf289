//! What every search has around its strategy: repeats, loads beyond the tester, a silent device, bounds.

use units::{Fps, Ratio};

use super::{
    calls::sustained,
    config::SearchConfig,
    gave::{Busiest, BySlices, Drain, Gave, Sending},
    held::{Holding, Probed},
    liveness::{Liveness, Sign},
    pauses::Pauses,
    reason::Reason,
    step::{same_trial, Answer, Search, Step},
    strategy::{Bounds, Strategy, Want},
};
use crate::{
    attempts::{within_tester, Attempts, Budget, GivenUp, Ruling, Streak, LOADS_IN_A_ROW, RESTARTS},
    schema::{
        answer::{AnswerStanding, IntervalAnswer},
        outcome::Outcome,
        trial::{Purpose, TrialRecord, TrialSpec},
    },
};

/// Where the tester offers less than this share of a load in slices that count, one trial says that it cannot offer it.
const FAR_SHORT: f64 = 0.5;
/// A load so many times what came through keeps the device busy. It is tried where it is below this share of the one before.
const OVERLOAD: f64 = 4.0;
const CLEARLY_LESS: f64 = 0.5;
/// Where it offers at least this share of a load that is not beyond it, what was offered counts.
const INCIDENTAL: f64 = 0.97;

/// A strategy with what every search needs around it: invalid trials repeated within a bound, loads beyond the tester
/// cut off, a DUT that forwards nothing recognised, one that was away told from a load too high, trials and time bounded.
#[derive(Debug, Clone)]
pub struct Retrying<S> {
    config: SearchConfig,
    strategy: S,
    pending: Option<TrialSpec>,
    done: Option<Answer>,
    liveness: Liveness,
    /// The strategy before its last verdict where that was of a lossy trial, with the trial's load and number: a DUT
    /// that is then silent may have died in it.
    before: Option<(S, Fps, u32)>,
    /// Loads whose verdict was once taken back.
    taken_back: Vec<Fps>,
    /// At the pending load.
    attempts: Attempts,
    /// Loads in a row that the tester never offered for its own gaps.
    disturbed: Streak,
    budget: Budget,
    trials: Vec<u32>,
    invalid: u32,
    /// Whether a trial was counted at less than its load.
    counted_short: bool,
    /// By slices: the most that the tester was seen to offer.
    offers: Fps,
    /// The largest share that the tester did not offer of a load that passed and is not beyond it.
    short: f64,
    /// Of the trials of the pending load that passed at a little less than it, the one that was offered the most.
    most_of_it: Option<Gave>,
    /// The most that the tester offered of loads that were beyond it, other than for its own gaps.
    most_offered: Option<Fps>,
    /// By slices: time that the queue of the device takes to empty.
    drain: Drain,
    /// By slices: time that counts, and time set aside, seconds.
    clean_s: f64,
    aside_s: f64,
    busiest: Busiest,
    /// By slices, over kernel ports: whether the device holds the tester's calls.
    holding: Holding,
    /// The load of a trial that is to be made first, which tells how the device behaves when it is kept busy.
    overload_first: Option<Fps>,
    /// The strategy before any verdict, and how those of its trials were sent that passed.
    initial: S,
    passed: Vec<Sending>,
    pauses: Pauses,
    restarts: u32,
}

impl<S: Clone> Retrying<S> {
    pub(super) fn with(config: SearchConfig, strategy: S) -> Self {
        let attempts = Attempts::new(config.max_repeats);
        let (overload_first, budget) = (Some(config.upper).filter(|_| config.by_slices), config.budget());
        Self {
            config,
            initial: strategy.clone(),
            strategy,
            pending: None,
            done: None,
            liveness: Liveness::default(),
            before: None,
            taken_back: Vec::new(),
            attempts,
            disturbed: Streak::new(LOADS_IN_A_ROW),
            budget,
            trials: Vec::new(),
            invalid: 0,
            counted_short: false,
            offers: Fps::ZERO,
            short: 0.0,
            most_of_it: None,
            most_offered: None,
            drain: Drain::default(),
            clean_s: 0.0,
            aside_s: 0.0,
            busiest: Busiest::default(),
            holding: Holding::default(),
            overload_first,
            passed: Vec::new(),
            pauses: Pauses::default(),
            restarts: 0,
        }
    }
}

#[allow(private_bounds)]
impl<S: Strategy> Retrying<S> {
    fn answer(&self, outcome: Outcome, reason: Option<Reason>) -> Answer {
        let mut bounds = self.strategy.bounds();
        bounds.upper = bounds.upper.map(|failed| self.holding.seen(failed));
        // The loads of goals are those that were asked for; others count at what was offered.
        if self.strategy.tolerated_loss().is_some() {
            let shown = |load: Fps| Fps::from_raw(load.get() * (1.0 - self.short));
            bounds.lower = bounds.lower.map(|(load, number)| (shown(load), number));
        }
        let (mut outcome, mut reason) = (outcome, reason);
        if outcome == Outcome::TesterLimited && self.is_in_calls() {
            reason = reason.or(Some(Reason::InCalls { alone: self.config.kernel_pair }));
            // A goal of an MLRsearch says itself how far it came.
            if self.strategy.tolerated_loss().is_none() {
                let most =
                    self.most_offered.map(|most| Fps::from_raw(self.config.without_own_calls(most.get()).round()));
                (outcome, bounds.upper) = (Outcome::Found, bounds.upper.or(most));
            }
        }
        let shown = Some(self.interval(&bounds)).filter(|_| self.config.by_slices || self.counted_short);
        let interval = shown.filter(|_| self.config.by_slices);
        // A goal of an MLRsearch says itself how far it came, and where the kernel forwards in our calls no load fails.
        let found = outcome == Outcome::Found && !matches!(reason, Some(Reason::InCalls { .. }));
        let wide = shown.filter(|_| found && self.strategy.tolerated_loss().is_none());
        let precision = wide.and_then(|found| self.precision_missed(&bounds, &found));
        let holds = self.holding.note().filter(|_| !matches!(reason, Some(Reason::InCalls { .. })));
        let reasons =
            [reason, precision, holds, self.liveness.note(), self.pauses.note()].into_iter().flatten().collect();
        Answer {
            outcome,
            throughput: bounds.lower.map(|(load, _)| load),
            upper_bound: bounds.upper,
            best_trial: bounds.lower.map(|(_, number)| number),
            trials: self.trials.clone(),
            invalid_trials: self.invalid,
            retries: bounds.retries.clone(),
            placement: None,
            reasons,
            goals: self.strategy.goals(),
            interval,
        }
    }

    /// Width asked for, over the upper end.
    fn asked(&self, bounds: &Bounds) -> f64 {
        let precision = self.config.precision.get();
        bounds.step.zip(bounds.upper).map_or(precision, |(step, upper)| step.get() / upper.get())
    }

    /// What was asked and what was reached, where these differ.
    fn precision_missed(&self, bounds: &Bounds, found: &IntervalAnswer) -> Option<Reason> {
        let wide = found.standing == Some(AnswerStanding::Wide);
        let ratio = |share: f64| Ratio::new(share).ok();
        let (asked, reached) = (ratio(self.asked(bounds))?, ratio(found.relative_width()?)?);
        wide.then_some(Reason::Precision { asked, reached, passes: found.passes as usize })
    }

    /// Whether the device forwards in the tester's own calls, and so sets the load that the tester offers.
    fn is_in_calls(&self) -> bool {
        self.config.by_slices && self.most_offered.is_some_and(|most| self.config.is_in_calls(most))
    }

    /// The bounds, with the time behind them.
    fn interval(&self, bounds: &Bounds) -> IntervalAnswer {
        let total = self.clean_s + self.aside_s;
        let (lower_fps, upper_fps) = (bounds.lower.map(|(load, _)| load), bounds.upper);
        let asked = self.asked(bounds) * 1.000_001;
        IntervalAnswer {
            lower_fps,
            upper_fps,
            standing: Some(AnswerStanding::of(lower_fps, upper_fps, asked)),
            point_fps: lower_fps,
            confidence: None,
            clean_seconds: self.clean_s,
            passes: 1,
            aside_share: if total > 0.0 { self.aside_s / total } else { 0.0 },
            as_measured: None,
        }
    }

    fn end(&mut self, outcome: Outcome, reason: Option<Reason>) {
        let bounds = self.strategy.bounds();
        let shown = (self.config.by_slices || self.counted_short) && bounds.lower.is_some() && bounds.upper.is_some();
        // What was shown stands, though wider than asked. A goal of an MLRsearch says itself how far it came.
        let outcome = match outcome {
            Outcome::Inconclusive if shown && self.strategy.tolerated_loss().is_none() => Outcome::Found,
            outcome => outcome,
        };
        self.pending = None;
        self.done = Some(self.answer(outcome, reason));
    }

    /// A load low enough for any DUT that forwards at all: 1 % of the highest, and enough frames to see some.
    fn low_load(&self) -> Fps {
        let upper = self.config.upper.get();
        let low = self.config.floor().get().max(upper * 0.01).max(10.0 / self.config.duration_s);
        Fps::from_raw(low.min(upper * 0.5))
    }

    /// Gives a trial of the load that the strategy asked for to it.
    fn judge(&mut self, spec: &TrialSpec, trial: &TrialRecord, gave: &Gave) {
        let received = trial.received();
        let passed = received > 0 && gave.loss_ratio <= self.config.tolerated_loss.get();
        // Where nothing came back at all it was made sure that it is the load.
        let doubtful = !self.meets_all(spec, gave) && received > 0 && !self.taken_back.contains(&spec.load_fps);
        self.before = doubtful.then(|| (self.strategy.clone(), spec.load_fps, trial.number));
        if spec.purpose != Purpose::Warmup {
            self.trials.push(trial.number);
        }
        let by_slices = trial.evidence.as_ref().filter(|_| passed && spec.by_slices);
        by_slices.into_iter().for_each(|e| self.pauses.see(e));
        if passed && spec.by_slices {
            self.holding.see_passed(trial);
        }
        self.passed.extend(by_slices.map(|e| Sending::of(e, spec.load_fps.get())));
        self.strategy.verdict(spec.load_fps, passed, gave);
    }

    /// What passed before it was known how the device behaves when it is kept busy may not have: then the search begins again,
    /// with what is known now.
    fn look_again(&mut self) {
        let tolerated = self.config.tolerated_loss.get();
        if self.restarts < RESTARTS && self.passed.iter().any(|sending| self.busiest.excess(sending) > tolerated) {
            self.restarts += 1;
            self.begin_anew();
        }
    }

    /// Keeps what the tester offered of a load that was beyond it.
    fn see_offered(&mut self, offered: Fps) {
        if self.most_offered.is_none_or(|most| most < offered) {
            self.most_offered = Some(offered);
        }
    }

    /// Takes all verdicts back.
    fn begin_anew(&mut self) {
        self.strategy = self.initial.clone();
        self.before = None;
        self.passed.clear();
        self.pauses = Pauses::default();
        self.trials.clear();
    }

    /// A trial at the highest load tells what the tester offers at most, where that is far less.
    fn cap_to_offered(&mut self, spec: &TrialSpec, trial: &TrialRecord) {
        let offered = trial.evidence.as_ref().map(|e| e.offered_fps).filter(|fps| *fps > Fps::ZERO);
        if let Some(most) = offered.filter(|most| most.get() < spec.load_fps.get() * FAR_SHORT) {
            self.see_offered(most);
            self.strategy.cap(within_tester(spec.load_fps, most, self.config.precision.get()));
        }
    }

    /// A load a little below one that the tester could not offer tells whether the device holds its calls. Loads above its rate
    /// can be shown to fail then.
    fn probed(&mut self, spec: &TrialSpec, trial: &TrialRecord) {
        self.pending = None;
        let passed = self.weigh(spec, trial).ok().filter(|gave| self.meets_all(spec, gave));
        match self.holding.probed(passed.map(|gave| gave.load), trial) {
            Probed::Waits(above) => {
                self.initial.cap(above);
                self.strategy.cap(above);
            }
            Probed::Unclear | Probed::Holds => {}
            Probed::Works { load, offered, after_all } => {
                self.see_offered(offered);
                if after_all {
                    self.begin_anew();
                }
                self.strategy.cap(within_tester(load, offered, self.config.precision.get()));
            }
        }
    }

    /// The load that keeps a device busy which is so far below the one of the first trial that this told little of it.
    fn overloads_less(&self, spec: &TrialSpec, trial: &TrialRecord) -> Option<Fps> {
        // Whether a silent device forwards anything at all is asked otherwise.
        let little = trial.received() > 0 && Gave::hopeless(trial).is_some();
        self.overload_first.filter(|_| little && !self.busiest.is_known_well())?;
        let lower = self.strategy.near(Fps::from_raw(trial.forwarding_rate().get() * OVERLOAD));
        (lower.get() < spec.load_fps.get() * CLEARLY_LESS).then_some(lower)
    }

    /// Whether a trial is the one of [`probed`](Self::probed).
    fn is_probe(&self, spec: &TrialSpec) -> bool {
        let probe = self.holding.probe(self.config.duration_s);
        probe == Some((spec.load_fps, spec.duration_s)) && !self.liveness.checks()
    }

    /// Gives a trial that the strategy did not ask for to it.
    fn aside(&mut self, spec: &TrialSpec, gave: &Gave) {
        self.trials.push(gave.number);
        self.strategy.aside(spec.load_fps, gave);
    }

    /// Whether a trial meets every goal.
    fn meets_all(&self, spec: &TrialSpec, gave: &Gave) -> bool {
        gave.loss_ratio <= spec.passing_loss.unwrap_or(self.config.tolerated_loss).get()
    }

    /// Whether a trial counts for its load, and what it gave.
    fn weigh(&mut self, spec: &TrialSpec, trial: &TrialRecord) -> Result<Gave, Ruling> {
        // Which placement it was made in, `PlacementSearch` sees to.
        match self.attempts.rule(trial, None) {
            Ruling::Counts => {}
            other => return Err(other),
        }
        if let Some(e) = trial.evidence.as_ref().filter(|_| spec.by_slices) {
            self.busiest.see(e, spec.load_fps);
            self.clean_s += e.clean_s;
            self.aside_s += e.aside_s;
            self.drain.see(e);
            self.offers = if e.offered_fps > self.offers { e.offered_fps } else { self.offers };
        }
        // A trial without a received frame says so whoever was away.
        let by_slices = spec.by_slices && trial.received() > 0;
        let most = spec.tolerated_loss.unwrap_or(self.config.tolerated_loss).get();
        if by_slices && self.config.kernel_pair.is_some() {
            self.holding.see(trial);
            if let Some(gave) = self.holding.refused(trial) {
                trial.evidence.iter().for_each(|e| self.drain.see_held(e));
                return Ok(gave);
            }
        }
        let seen = by_slices.then(|| Gave::by_slices(trial, most, &self.busiest));
        if seen.is_some_and(|seen| self.has_rested(trial, seen, most)) {
            return Err(self.attempts.unclear(trial));
        }
        match seen {
            None => self.whole(spec, trial),
            Some(BySlices::Counts(gave)) => Ok(gave),
            Some(BySlices::Short(gave)) if self.is_incidental(spec.load_fps, gave.load) => {
                // It offers more at times, so that this load is not beyond it. Goals leave the share open that was not offered, and
                // to a probe it does not matter. Steps would fall to the next lower one: so it is made again, and the most counts.
                let most = self.most_of_it.filter(|most| most.load >= gave.load).unwrap_or(gave);
                self.most_of_it = Some(most);
                match self.attempts.short(gave.load) {
                    Ruling::BeyondTester { .. } => {}
                    _ if self.strategy.tolerated_loss().is_some() || self.is_probe(spec) => {}
                    again => return Err(again),
                }
                self.short = self.short.max(1.0 - most.load.get() / spec.load_fps.get());
                Ok(most)
            }
            Some(BySlices::Short(gave)) => {
                if let Some(load) = self.shows(trial, gave.load) {
                    self.strategy.passed_less(&Gave { load, ..gave });
                }
                Err(self.attempts.short(gave.load))
            }
            // Once it may be that the device was away for nearly all of the trial.
            Some(BySlices::Unclear) => match Gave::hopeless(trial) {
                Some(gave) if gave.loss_ratio > most && self.attempts.are_several() => Ok(gave),
                _ => Err(self.attempts.unclear(trial)),
            },
        }
    }

    /// Over kernel ports: whether the slices that count may have passed only for what the device took while the tester was away.
    fn has_rested(&self, trial: &TrialRecord, seen: BySlices, passing: f64) -> bool {
        let (BySlices::Counts(gave) | BySlices::Short(gave)) = seen else { return false };
        self.config.kernel_pair.is_some() && gave.loss_ratio <= passing && self.holding.has_rested(trial)
    }

    /// The load that a trial shows to pass which was not offered in full; `None` where what it says is of a bucket of tokens.
    fn shows(&self, trial: &TrialRecord, offered: Fps) -> Option<Fps> {
        match self.config.kernel_pair {
            None => Some(offered),
            Some(_) => {
                trial.evidence.as_ref().and_then(sustained).map(|fps| Fps::from_raw(fps.get().min(offered.get())))
            }
        }
    }

    /// Whether the tester offered a little less than this load only for moments that no slice shows: it did offer as much.
    fn is_incidental(&self, load: Fps, offered: Fps) -> bool {
        self.offers >= load && offered.get() >= load.get() * INCIDENTAL
    }

    /// What a whole trial gave. One that passed at less than its load, since the tester offered no more, counts at what was
    /// offered if that tells the strategy anything.
    fn whole(&mut self, spec: &TrialSpec, trial: &TrialRecord) -> Result<Gave, Ruling> {
        let gave = Gave::whole(trial);
        match Gave::at_offered(trial).filter(|_| spec.at_offered && trial.received() > 0 && self.meets_all(spec, &gave))
        {
            None => Ok(gave),
            Some(short) if self.strategy.takes(short.load) == Some(true) => {
                self.counted_short = true;
                Ok(short)
            }
            Some(_) => Err(self.attempts.invalid(trial)),
        }
    }

    /// The last verdict may be of a trial in which the DUT died: as if it had not been given, once a load. Whether there
    /// was such a one.
    fn take_back(&mut self) -> bool {
        let Some((strategy, load, number)) = self.before.take() else { return false };
        self.strategy = strategy;
        self.trials.retain(|&trial| trial != number);
        self.taken_back.push(load);
        true
    }

    /// What follows from an invalid trial.
    fn discard(&mut self, spec: &TrialSpec, ruling: Ruling) {
        self.invalid += 1;
        if self.overload_first.take().is_some() {
            // What can be learned of the device, the trials of the search tell too.
            self.pending = None;
        }
        match ruling {
            Ruling::Counts | Ruling::Repeat => {}
            Ruling::BeyondTester { disturbed, .. } if self.disturbed.see(disturbed) => {
                self.end(Outcome::Inconclusive, Some(GivenUp::Disturbed.into()));
            }
            Ruling::BeyondTester { most_offered, disturbed: false }
                if self.holding.probes(spec.load_fps, most_offered, &self.config) =>
            {
                self.pending = None;
            }
            Ruling::BeyondTester { most_offered, disturbed } => {
                if !disturbed && most_offered > Fps::ZERO {
                    self.see_offered(most_offered);
                }
                self.strategy.cap(within_tester(spec.load_fps, most_offered, self.config.precision.get()));
                self.pending = None;
            }
            Ruling::GiveUp(why) => self.end(Outcome::Inconclusive, Some(why.into())),
        }
    }
}

/// What to say of a strategy's own end, when the outcome alone does not.
fn reason(outcome: Outcome) -> Option<Reason> {
    match outcome {
        Outcome::BelowMinimum => Some(Reason::BelowMinimum),
        Outcome::Inconclusive => Some(Reason::NotOffered),
        _ => None,
    }
}

#[allow(private_bounds)]
impl<S: Strategy> Search for Retrying<S> {
    fn next(&mut self) -> Step {
        if let Some(answer) = &self.done {
            return Step::Done(answer.clone());
        }
        if self.pending.is_none() {
            let want = match self.holding.probe(self.config.duration_s) {
                _ if self.liveness.checks() => {
                    Want::Load(self.liveness.check_at(self.strategy.near(self.low_load())), Purpose::Search)
                }
                Some((load, duration_s)) => Want::Trial(load, duration_s, Purpose::Search),
                None => match self.overload_first {
                    Some(load) => Want::Load(self.strategy.near(load), Purpose::Search),
                    None => self.strategy.next(),
                },
            };
            let (load_fps, duration_s, purpose) = match want {
                Want::Load(load, purpose) => (load, self.config.duration_s, purpose),
                Want::Trial(load, duration_s, purpose) => (load, duration_s, purpose),
                Want::End(outcome) => {
                    self.end(outcome, reason(outcome));
                    return Step::Done(self.so_far());
                }
            };
            self.attempts.restart();
            self.most_of_it = None;
            let spec = TrialSpec::steady(self.config.frame_size, load_fps, duration_s, purpose);
            let one = self.config.tolerated_loss;
            let (least, most) = self.strategy.tolerated_loss().unwrap_or((one, one));
            let by_slices = self.config.by_slices;
            let drain_s = if by_slices { self.drain.seconds() } else { 0.0 };
            let at_offered = !by_slices && self.strategy.takes(load_fps).is_some();
            let spec = TrialSpec { by_slices, at_offered, drain_s, ..spec };
            self.pending = Some(TrialSpec { tolerated_loss: Some(most), passing_loss: Some(least), ..spec });
        }
        if let Some(why) = self.budget.used_up().filter(|_| self.pending.is_some()) {
            self.end(Outcome::Inconclusive, Some(why.into()));
        }
        match (&self.done, self.pending) {
            (None, Some(spec)) => Step::Run(spec),
            (Some(answer), _) => Step::Done(answer.clone()),
            (None, None) => Step::Done(self.answer(Outcome::Inconclusive, None)),
        }
    }

    fn report(&mut self, trial: &TrialRecord) {
        let Some(spec) = self.pending.filter(|spec| same_trial(spec, &trial.spec)) else { return };
        self.budget.spend(trial);
        if self.is_probe(&spec) {
            return self.probed(&spec, trial);
        }
        let weighed = self.weigh(&spec, trial);
        if let Some(lower) = self.overloads_less(&spec, trial) {
            (self.overload_first, self.pending) = (Some(lower), None);
            return;
        }
        let gave = match weighed {
            Ok(gave) => gave,
            Err(ruling) => return self.discard(&spec, ruling),
        };
        self.disturbed.see(false);
        self.pending = None;
        let learned = self.overload_first.take().is_some();
        let asked_for = !self.liveness.checks();
        match self.liveness.sign(trial) {
            Sign::Load if learned => {
                self.aside(&spec, &gave);
                self.cap_to_offered(&spec, trial);
            }
            Sign::Load => {
                self.judge(&spec, trial, &gave);
                self.look_again();
            }
            Sign::Alive if self.meets_all(&spec, &gave) => self.aside(&spec, &gave),
            Sign::Nothing | Sign::Alive => {}
            Sign::WasDown => {
                if !self.take_back() && asked_for {
                    self.judge(&spec, trial, &gave);
                }
            }
            Sign::NoTraffic => {
                self.aside(&spec, &gave);
                let why = GivenUp::NoTraffic { low: spec.load_fps };
                self.end(Outcome::NoTraffic, Some(why.into()));
            }
            Sign::Gone(why) => {
                self.take_back();
                self.end(Outcome::Inconclusive, Some(why.into()));
            }
        }
    }

    fn so_far(&self) -> Answer {
        self.done.clone().unwrap_or_else(|| self.answer(Outcome::Interrupted, None))
    }
}
