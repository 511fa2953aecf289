//! The throughput from slices: overload first, then a load just below, in several passes.
//!
//! A pass overloads the device a little and takes the rate that it forwards while it is kept busy; then a load just below
//! that rate has to pass without loss and without a growing delay, in slices in which nobody was away. At least three
//! passes are made, spread over the time of the search; the interval covers what differs between them.

mod answer;
mod far;
mod held;
mod loads;
mod own;
mod votes;

use units::Fps;

use super::{
    calls::Calls,
    config::SearchConfig,
    gave::{Busiest, Drain, Sending, GROWTH, SATURATED_S},
    interval::{self, Mean, Sample},
    liveness::{Liveness, Sign},
    own_port::takes_at_most,
    pauses::Pauses,
    reason::Reason,
    step::{same_trial, Answer, Search, Step},
};
use crate::{
    attempts::{within_tester, Attempts, Budget, GivenUp, Ruling, Streak, LOADS_IN_A_ROW},
    schema::{
        evidence::{Saturation, SliceEvidence},
        outcome::Outcome,
        trial::{Purpose, TrialRecord, TrialSpec},
    },
};

/// Width of the interval that ends a search, as a share, unless less is asked for, or more than twice of it.
const NARROW: f64 = 0.005;
/// From this share of its time on a search goes on for no more than was asked.
const SOON: f64 = 1.0 / 3.0;
/// Passes made at least, and at most where the precision is not reached.
const PASSES: usize = 3;
const MOST_PASSES: usize = 12;
/// At least of a device for which single trials are luck: so many decide against one. If the interval is then still so many times
/// wider than asked, the device differs from moment to moment by more than further passes can tell.
const WARY_PASSES: usize = 9;
const HOPELESS: f64 = 2.0;
/// The load of a pass over the rate expected.
const OVERLOAD: f64 = 1.1;
/// The most it is raised to where a buffer takes the excess of a trial.
const MOST_OVERLOAD: f64 = 8.0;
/// Share of a load from which on the tester has offered it.
const REACHED: f64 = 0.995;
/// First distance of the load below, as a share of the rate.
const BELOW: f64 = 0.002;
/// Trials at a load below of which one may fail.
const TRIES: u32 = 2;
/// Standard error of a rate at which a device was not busy throughout, as a share.
const ROUGHLY: f64 = 0.03;
/// Rates at two overloads that differ by more: the device degrades in overload.
const DEGRADED: f64 = 0.02;

/// Loads that are the same to within this share, most passes made to see both ends again, and trials that show an end of a
/// device that degrades: one may be luck.
const SAME: f64 = 2e-3;
const CONFIRMING: usize = 6;
const TWICE: usize = 2;
/// A loss below this share of the load says little of a load near the capacity: the tester sent its frames in bursts.
const EVEN: f64 = 0.95;
/// Least half width of the answer then, as a share: what the kernel's own rate drifts by from second to second.
const IN_CALLS_HALF: f64 = 5e-3;

/// What a trial shows of its load.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Shown {
    /// The device was kept busy.
    Busy(Saturation),
    /// No more loss than tolerated in enough clean time, and no growing delay. The load that was offered.
    Passed(f64),
    /// No more loss than tolerated, but the delay grows: a buffer takes the excess. The rate that this tells.
    Buffered(f64),
    /// Loss in slices in which nobody was away. The rate that came through.
    Lossy(f64),
    /// Too little clean time.
    Unclear,
}

/// A load that passed.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Pass {
    load: f64,
    trial: u32,
    sending: Sending,
}

/// What is tried now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// The highest load.
    Top,
    /// A little above the rate expected.
    Above,
    /// A little below it.
    Below,
    /// Half way between the highest load that passed and the lowest that did not, of a device that degrades in overload:
    /// its rate in overload is not its capacity.
    Between,
    /// The highest load that passed, again: it may have passed in a better moment of the device.
    Again,
    /// The lowest load that failed, again: it may have failed in a worse one.
    Against,
    /// A load that tells whether the kernel works in the tester's calls, or waits.
    Probe,
}

/// A search by slices.
#[derive(Debug, Clone)]
pub struct CapacitySearch {
    config: SearchConfig,
    pending: Option<TrialSpec>,
    done: Option<Answer>,
    liveness: Liveness,
    phase: Phase,
    /// The rate expected.
    expected: f64,
    overload: f64,
    /// The excess of that is so many times more, since the device did more than expected.
    climb: f64,
    below: f64,
    /// Rates of the device while busy, without absences and with them.
    rates: Vec<Sample>,
    /// Rates of trials in which it was not busy throughout: they count while there are no others.
    rough: Vec<Sample>,
    measured: Vec<Sample>,
    /// The first of them, at the highest load.
    at_top: Option<Sample>,
    /// Loads that passed, with the trials.
    passed: Vec<Pass>,
    /// Loads above the rate or just below it that did not.
    failed: Vec<f64>,
    passes: usize,
    /// Loads above the rate that passed, since the tester offered less.
    short: usize,
    tries: u32,
    /// Loads that were far above the rate, so that their slices told nothing of it.
    lowered: u32,
    /// Trials in a row that do not describe their load, or are invalid.
    attempts: Attempts,
    unclear: u32,
    pauses: Pauses,
    /// Loads in a row that the tester never offered for its own gaps.
    disturbed: Streak,
    budget: Budget,
    trials: Vec<u32>,
    invalid: u32,
    clean_s: f64,
    aside_s: f64,
    /// Trials are so many times longer, since a buffer takes the excess of the usual ones.
    longer: f64,
    drain: Drain,
    busiest: Busiest,
    calls: Calls,
    /// The most that the tester offered of loads that the kernel set, in slices that count.
    most_offered: f64,
}

impl CapacitySearch {
    /// A fresh search.
    pub fn new(config: SearchConfig) -> Self {
        let expected = config.upper.get();
        Self {
            attempts: Attempts::new(config.max_repeats),
            disturbed: Streak::new(LOADS_IN_A_ROW),
            budget: config.budget(),
            config,
            pending: None,
            done: None,
            liveness: Liveness::default(),
            phase: Phase::Top,
            expected,
            overload: OVERLOAD,
            climb: 1.0,
            below: BELOW,
            rates: Vec::new(),
            rough: Vec::new(),
            measured: Vec::new(),
            at_top: None,
            passed: Vec::new(),
            failed: Vec::new(),
            passes: 0,
            short: 0,
            tries: 0,
            lowered: 0,
            unclear: 0,
            pauses: Pauses::default(),
            trials: Vec::new(),
            invalid: 0,
            clean_s: 0.0,
            aside_s: 0.0,
            longer: 1.0,
            drain: Drain::default(),
            busiest: Busiest::default(),
            calls: Calls::default(),
            most_offered: 0.0,
        }
    }

    fn top(&self) -> f64 {
        self.config.upper.get()
    }

    fn shown(&mut self, spec: &TrialSpec, e: &SliceEvidence) -> Shown {
        // At a load that loses no more than tolerated the device forwards all but that.
        let tolerated = self.config.tolerated_loss.get();
        // Under pressure only while the device is away it is not its own rate that shows.
        let busy = e.undisturbed.filter(|s| s.seconds >= SATURATED_S);
        let clean = e.is_clean(spec.duration_s);
        let loss = if e.offered > 0 { e.lost as f64 / e.offered as f64 } else { 0.0 };
        let offered = self.lasting(e, spec.load_fps.get());
        match busy {
            Some(busy) if busy.fps.get() < offered.max(spec.load_fps.get()) * (1.0 - tolerated) => Shown::Busy(busy),
            // What its buffers took is lost where that lasts.
            _ if loss > tolerated => {
                Shown::Lossy(offered * (1.0 - loss.max(self.busiest.excess(&Sending::of(e, offered)))))
            }
            _ if !clean => Shown::Unclear,
            // Without a stretch in which delays can be seen to grow, the device may only have rested between absences.
            _ => match e.delay.map(|delay| delay.growth) {
                None => Shown::Unclear,
                Some(growth) if growth > GROWTH => Shown::Buffered(offered / (1.0 + growth)),
                Some(_) => match self.busiest.excess(&Sending::of(e, offered)) {
                    excess if excess > tolerated => Shown::Buffered(offered * (1.0 - excess)),
                    _ => Shown::Passed(offered),
                },
            },
        }
    }

    fn judge(&mut self, spec: &TrialSpec, trial: &TrialRecord) {
        let Some(e) = &trial.evidence else {
            return match self.far_below(spec, trial, Shown::Unclear) {
                Some(rate) => self.lower_to(rate),
                None => self.repeat(trial),
            };
        };
        self.drain.see(e);
        self.clean_s += e.clean_s;
        self.aside_s += e.aside_s;
        self.busiest.see(e, spec.load_fps);
        // What passed before it was known how the device behaves when it is kept busy is looked at again.
        let (busiest, tolerated) = (self.busiest, self.config.tolerated_loss.get());
        self.passed.retain(|pass| busiest.excess(&pass.sending) <= tolerated);
        if let Some(most) = takes_at_most(trial).filter(|most| *most < spec.load_fps.get() * REACHED) {
            return self.offer_no_more_than(most);
        }
        let shown = self.shown(spec, e);
        if let Some(rate) = self.far_below(spec, trial, shown) {
            return self.lower_to(rate);
        }
        if self.phase == Phase::Probe {
            self.trials.push(trial.number);
            return self.probed(shown, trial);
        }
        let shown = self.look_for_holding(shown, spec, trial, e);
        let uneven =
            e.offered_fps.get() < EVEN * spec.load_fps.get() && !matches!(self.phase, Phase::Top | Phase::Above);
        if shown == Shown::Unclear || uneven && matches!(shown, Shown::Lossy(_)) {
            return self.repeat(trial);
        }
        self.attempts.restart();
        self.unclear = 0;
        self.trials.push(trial.number);
        if !matches!((shown, self.phase), (Shown::Passed(_), Phase::Above)) {
            self.climb = 1.0;
        }
        match shown {
            Shown::Busy(busy) => self.sample(busy, e),
            Shown::Passed(_) => self.pauses.see(e),
            _ => {}
        }
        // At the load that was offered, and at no more than was asked for: some slices may have had a frame more.
        let top = self.top();
        let pass = |offered: f64| {
            let load = offered.min(top);
            Pass { load, trial: trial.number, sending: Sending::of(e, load) }
        };
        match self.phase {
            Phase::Top => self.at_top(shown, pass),
            Phase::Above => self.above(shown, spec, pass),
            Phase::Below => self.below(shown, spec, pass),
            Phase::Between | Phase::Again | Phase::Against | Phase::Probe => self.between(shown, spec, pass),
        }
    }

    /// The rate of the device.
    fn rate(&self) -> Option<Mean> {
        let rate = interval::mean(&self.rates).or_else(|| interval::mean(&self.rough))?;
        Some(Mean { half: rate.half + self.open(), ..rate })
    }

    /// Keeps the rate of a device that was busy.
    fn sample(&mut self, busy: Saturation, e: &SliceEvidence) {
        let scale = 1.0 / (1.0 - self.config.tolerated_loss.get());
        let of = |s: Saturation| Sample { value: s.fps.get() * scale, error: s.error_fps.get() * scale };
        let sample = of(busy);
        if self.phase == Phase::Top {
            self.at_top = Some(sample);
            // Its rate in so high an overload is not its capacity if it degrades.
            self.rough.push(Sample { error: sample.error.max(sample.value * ROUGHLY), ..sample });
            self.expected = sample.value;
            return;
        }
        self.rates.push(sample);
        self.measured.extend(e.as_measured.map(of));
        self.expected = self.rate().map_or(sample.value, |m| m.mean);
    }

    fn at_top(&mut self, shown: Shown, pass: impl Fn(f64) -> Pass) {
        match shown {
            Shown::Busy(_) => {
                self.failed.push(self.top());
                self.phase = Phase::Above;
            }
            Shown::Passed(offered) => {
                self.passed.push(pass(offered));
                self.passes += 1;
                let reached = offered >= self.top() * REACHED;
                if !reached && self.probes(offered) {
                    return;
                }
                if self.passes >= PASSES && !reached && self.is_in_calls() {
                    self.end(Outcome::Found, [Some(Reason::InCalls { alone: self.config.kernel_pair }), None]);
                } else if self.passes >= PASSES {
                    let tester = self.config.upper_is_tester || !reached;
                    // It failed in other trials, and no side has the better of it.
                    match reached && !self.passes_at(offered) {
                        true if self.passes < MOST_PASSES => {}
                        true => self.end(Outcome::Found, [self.precision_missed(), None]),
                        false if tester => self.end(Outcome::TesterLimited, [None, None]),
                        false => self.end(Outcome::AtMaximum, [None, None]),
                    }
                }
            }
            Shown::Buffered(rate) | Shown::Lossy(rate) => {
                self.failed.push(self.top());
                (self.phase, self.expected, self.passes) = (Phase::Above, rate, 0);
            }
            Shown::Unclear => {}
        }
    }

    fn above(&mut self, shown: Shown, spec: &TrialSpec, pass: impl Fn(f64) -> Pass) {
        let load = spec.load_fps.get();
        match shown {
            Shown::Busy(_) => {
                self.short = 0;
                // A load that passes in a lucky moment is outvoted.
                self.failed.push(load);
                self.phase = Phase::Below;
            }
            // The device does more than it did in a higher overload.
            Shown::Passed(offered) => {
                self.passed.push(pass(offered));
                self.rough.clear();
                let reached = offered >= load * REACHED;
                if !reached && self.probes(offered) {
                    return;
                }
                if load < self.top() && reached && !self.rates.is_empty() {
                    // Or than it did a moment ago: what it does now is seen higher up.
                    self.climb *= 2.0;
                    return;
                }
                self.rates.clear();
                self.measured.clear();
                if load >= self.top() {
                    (self.phase, self.passes) = (Phase::Top, 1);
                } else if reached {
                    self.expected = offered * OVERLOAD;
                } else {
                    // The tester offers no more, so a loss at a higher load says nothing about a limit of the device.
                    self.short += 1;
                    if self.short >= PASSES {
                        self.failed.clear();
                        match self.is_in_calls() {
                            true => {
                                self.end(
                                    Outcome::Found,
                                    [Some(Reason::InCalls { alone: self.config.kernel_pair }), None],
                                );
                            }
                            false => self.end(Outcome::TesterLimited, [None, None]),
                        }
                    }
                }
            }
            // A higher overload keeps it busy sooner.
            Shown::Buffered(_) | Shown::Lossy(_) if self.overload < MOST_OVERLOAD && load < self.top() => {
                self.overload *= 2.0;
            }
            Shown::Buffered(rate) | Shown::Lossy(rate) => {
                self.failed.push(load);
                self.longer *= 2.0;
                // Not busy throughout: the rate is known roughly.
                self.rough.push(Sample { value: rate, error: rate * ROUGHLY });
                self.expected = self.rate().map_or(rate, |m| m.mean);
                self.phase = Phase::Below;
            }
            Shown::Unclear => {}
        }
    }

    fn below(&mut self, shown: Shown, spec: &TrialSpec, pass: impl Fn(f64) -> Pass) {
        let load = spec.load_fps.get();
        self.tries += 1;
        match shown {
            Shown::Passed(offered) => {
                self.passed.push(pass(offered.min(load)));
                // The next one nearer to the rate: this one may have been so low for a disturbance. Of a device that loses frames
                // now and then once this one is sure to pass.
                if self.passes_at(load) {
                    self.below = (self.below / 4.0).max(BELOW);
                }
                self.pass_done();
            }
            _ if self.tries < TRIES => {}
            _ => {
                self.failed.push(load);
                self.tries = 0;
                self.below = (self.below * 2.0).min(0.99);
                if load <= self.floor() {
                    self.end(Outcome::BelowMinimum, [None, None]);
                } else if self.below >= 0.9 {
                    match self.passed.is_empty() {
                        // Nothing passes: the least load says whether anything does.
                        true => self.below = 1.0,
                        false => self.pass_done(),
                    }
                }
            }
        }
    }

    fn between(&mut self, shown: Shown, spec: &TrialSpec, pass: impl Fn(f64) -> Pass) {
        let load = spec.load_fps.get();
        match shown {
            Shown::Passed(offered) => self.passed.push(pass(offered.min(load))),
            _ => self.failed.push(load),
        }
        self.pass_done();
    }

    /// More passes where a load below the rate failed, or the device degrades: single trials tell little of its limit then.
    fn least_passes(&self) -> usize {
        match self.is_wary() {
            true => WARY_PASSES,
            false => PASSES,
        }
    }

    fn is_wary(&self) -> bool {
        self.is_moody() || self.degrades()
    }

    /// Which end of the interval is to be seen again, if any: the highest load that passed has to pass in one of the last trials
    /// too, and each end twice. Only of a device that degrades: of others the rate in overload says it too, pass for pass.
    fn to_confirm(&self) -> Option<Phase> {
        if !self.degrades() {
            return None;
        }
        let best = self.best()?;
        let late = self.trials.get(self.trials.len() * 2 / 3..).unwrap_or_default();
        let at_best = || self.passed.iter().filter(|pass| pass.load >= best * (1.0 - SAME));
        if at_best().count() < TWICE || !at_best().any(|pass| late.contains(&pass.trial)) {
            return Some(Phase::Again);
        }
        let failed = self.lowest_failed(best)?;
        (self.votes(failed).0 < TWICE).then_some(Phase::Against)
    }

    fn pass_done(&mut self) {
        let asked = self.config.precision.get();
        let soon = self.budget.used_share() < SOON;
        let wanted = if soon { asked.min((asked / 2.0).max(NARROW)) } else { asked };
        let width = self.open_width();
        let narrow = width.is_some_and(|width| width <= wanted);
        // Below where no load passes beyond dispute.
        let stands = self.passed.iter().any(|pass| self.passes_at(pass.load));
        let next = match self.degrades() {
            // No trial tells loads apart that are nearer.
            true if stands && narrow && self.passes.is_multiple_of(2) => Phase::Again,
            true if stands && narrow => Phase::Against,
            true if stands || self.passed.is_empty() => Phase::Between,
            true => Phase::Below,
            false => Phase::Above,
        };
        (self.passes, self.tries, self.phase) = (self.passes + 1, 0, next);
        let hopeless = self.is_wary() && width.is_some_and(|width| width > HOPELESS * asked);
        let enough = self.passes >= self.least_passes() && (narrow || hopeless) || self.passes >= MOST_PASSES;
        let again = self.to_confirm().filter(|_| enough && self.passes < MOST_PASSES + CONFIRMING);
        if let Some(end) = again {
            self.phase = if stands { end } else { next };
        } else if enough {
            let found = self.interval();
            let outcome = if found.lower_fps.is_some() { Outcome::Found } else { Outcome::Inconclusive };
            self.end(outcome, [self.degradation(), self.precision_missed()]);
        }
    }

    /// A trial that does not describe its load.
    fn repeat(&mut self, trial: &TrialRecord) {
        self.unclear += 1;
        if self.unclear.is_multiple_of(2) {
            match self.phase {
                // So near its rate a device with a buffer takes long to recover from an absence.
                Phase::Below => self.below = (self.below * 4.0).min(0.5),
                // And so near it takes long to fill.
                Phase::Above => self.overload = (self.overload * 2.0).min(MOST_OVERLOAD),
                Phase::Top | Phase::Between | Phase::Again | Phase::Against | Phase::Probe => {}
            }
        }
        if let Ruling::GiveUp(why) = self.attempts.unclear(trial) {
            self.give_up(why);
        }
    }

    /// What follows from an invalid trial.
    fn discard(&mut self, spec: &TrialSpec, ruling: Ruling) {
        self.invalid += 1;
        match ruling {
            Ruling::Counts | Ruling::Repeat => {}
            Ruling::BeyondTester { disturbed, .. } if self.disturbed.see(disturbed) => self.give_up(GivenUp::Disturbed),
            Ruling::BeyondTester { most_offered, .. } => {
                self.config.upper = within_tester(spec.load_fps, most_offered, self.config.precision.get());
                self.config.upper_is_tester = true;
                self.attempts.restart();
            }
            Ruling::GiveUp(why) => self.give_up(why),
        }
    }
}

impl Search for CapacitySearch {
    fn next(&mut self) -> Step {
        if self.done.is_none() && self.pending.is_none() {
            if let Some(why) = self.budget.used_up() {
                self.give_up(why);
            } else {
                let load = match self.liveness.checks() {
                    true => self.liveness.check_at(Fps::from_raw((self.top() * 0.01).max(self.config.floor().get()))),
                    false => Fps::from_raw(self.whole_load()),
                };
                let duration_s = self.duration_s();
                let spec = TrialSpec::steady(self.config.frame_size, load, duration_s, Purpose::Search);
                self.pending = Some(TrialSpec { by_slices: true, drain_s: self.drain.seconds(), ..spec });
            }
        }
        match (&self.done, self.pending) {
            (None, Some(spec)) => Step::Run(spec),
            _ => Step::Done(self.so_far()),
        }
    }

    fn report(&mut self, trial: &TrialRecord) {
        let Some(spec) = self.pending.filter(|spec| same_trial(spec, &trial.spec)) else { return };
        self.pending = None;
        self.budget.spend(trial);
        // One search for all placements of the cores: each is a home.
        match self.attempts.rule(trial, None) {
            Ruling::Counts => self.disturbed.see(false),
            other => return self.discard(&spec, other),
        };
        match self.liveness.sign(trial) {
            Sign::Load => self.judge(&spec, trial),
            Sign::Nothing | Sign::Alive | Sign::WasDown => {}
            Sign::NoTraffic => {
                let why = GivenUp::NoTraffic { low: spec.load_fps };
                self.end(Outcome::NoTraffic, [Some(why.into()), None]);
            }
            Sign::Gone(why) => self.give_up(why),
        }
    }

    fn so_far(&self) -> Answer {
        self.done.clone().unwrap_or_else(|| self.answer(Outcome::Interrupted, [None, None]))
    }
}

#[cfg(test)]
mod tests;
