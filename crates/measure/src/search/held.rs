//! Devices that hold the tester's calls, for searches by loss. Frames that the tester had no time to hand over, since the device
//! held each call until its frames were out, count as lost: RFC 9971 (Measurer) recommends to turn a severe deviation between the
//! intended and the offered load into loss. A device that works in the calls takes the tester's own time along, and is told apart
//! first: see [`calls`](super::calls).

use units::Fps;

use super::{
    calls::{busy, is_emptied, Calls, Waiting, ALWAYS, PROBE, WAITING},
    config::SearchConfig,
    gave::{Gave, DISTURBED},
    reason::Reason,
};
use crate::schema::{evidence::SliceEvidence, trial::TrialRecord};

/// The highest load is so much above the rate then, as a share: it is seen to fail.
const ABOVE: f64 = 0.05;
/// A trial of an overload is so long, seconds: it tells the rate.
const LONG_S: f64 = 0.5;
/// The most that is offered of a load that tells the rate, as a share of it.
const PART: f64 = 0.99;
/// What the rates of all slices and of those that count differ by at most, as a share.
const APART: f64 = 0.01;
/// How often the lower load is looked at again, where the tester has no time below the rate: the device may only work.
const PROBES: u32 = 3;
/// Trials of the lower load, where the first ones do not say anything.
const TRIES: u32 = 3;

/// What is known of the device.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Holding {
    calls: Calls,
    /// The load that the tester could not offer, and the most that it offered of it.
    beyond: (Fps, Fps),
    probes: u32,
    /// Trials of the lower load that say nothing.
    tries: u32,
    /// Of trials in which the tester was always busy: their frames, and the sum of their rates, each times its frames.
    frames: f64,
    rates: f64,
    /// Whether the rate is to be measured in a longer trial.
    measures: bool,
}

/// What the lower load says of the device.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Probed {
    /// Nothing: it is looked at again.
    Unclear,
    /// It waits: its rate is looked at next, where that is not known.
    Holds,
    /// It waits, and loads up to this one make sense.
    Waits(Fps),
    /// It works: that much was offered of this load.
    Works {
        load: Fps,
        offered: Fps,
        /// It had been taken for one that waits, and what was shown by that does not count.
        after_all: bool,
    },
}

impl Holding {
    /// After a load that the tester could not offer: whether a lower one is looked at first.
    pub fn probes(&mut self, load: Fps, offered: Fps, config: &SearchConfig) -> bool {
        let looks =
            config.by_slices && self.calls == Calls::Unknown && config.is_in_calls(offered) && offered > Fps::ZERO;
        if looks {
            self.calls = Calls::Probed { at_top: true, offered: offered.get() };
            self.beyond = (load, offered);
        }
        looks
    }

    /// The load that tells whether the device waits, or, once it is known to, its rate, while that is to be looked at; and for how
    /// many seconds, the usual ones being `duration_s`.
    pub fn probe(&self, duration_s: f64) -> Option<(Fps, f64)> {
        match self.calls {
            Calls::Probed { offered, .. } => Some((Fps::from_raw((offered * PROBE).round()), duration_s)),
            _ if self.measures => Some((self.beyond.0, duration_s.max(LONG_S))),
            _ => None,
        }
    }

    /// What that load shows, and how much of it was offered where it passed.
    pub fn probed(&mut self, passed: Option<Fps>, trial: &TrialRecord) -> Probed {
        let (load, offered) = self.beyond;
        if std::mem::take(&mut self.measures) {
            let rate = self.rate().unwrap_or(offered.get());
            return Probed::Waits(Fps::from_raw((rate * (1.0 + ABOVE)).round().min(load.get())));
        }
        self.tries += 1;
        if passed.is_none() && self.tries < TRIES {
            return Probed::Unclear;
        }
        self.probes += 1;
        self.tries = 0;
        let Some((seen, busy)) = passed.zip(busy(trial)).filter(|(_, busy)| *busy < WAITING) else {
            self.calls = Calls::Works;
            return Probed::Works { load, offered, after_all: self.probes > 1 };
        };
        let load = trial.spec.load_fps.get();
        let short = (1.0 - seen.get() / load).max(0.0);
        self.calls = Calls::Holds(Waiting { load, busy, short, ..Waiting::default() });
        self.measures = self.probes == 1;
        Probed::Holds
    }

    /// Takes a trial that passed: where the tester was always busy although it should have had time, the lower load is looked at
    /// again.
    pub fn see_passed(&mut self, trial: &TrialRecord) {
        let (_, offered) = self.beyond;
        let below = trial.spec.load_fps.get() < self.rate().unwrap_or(offered.get()) && self.probes < PROBES;
        if below && self.waiting().is_some() && busy(trial).is_some_and(|busy| busy >= ALWAYS) {
            self.calls = Calls::Probed { at_top: true, offered: offered.get() };
        }
    }

    /// Takes a trial by slices: one that was offered in part while the tester was always busy tells the rate, once the bucket of
    /// tokens is empty.
    pub fn see(&mut self, trial: &TrialRecord) {
        let always = busy(trial).is_some_and(|busy| busy >= ALWAYS);
        let clean = |e: &&SliceEvidence| e.lost == 0 && e.is_clean(trial.spec.duration_s);
        let Some(e) = trial.evidence.as_ref().filter(|e| always && clean(e)) else { return };
        let Some(later) = e.settled.filter(|later| is_emptied(e, later)) else { return };
        // Where the tester was away these differ, and nobody knows which is right.
        let [all, clean] = [later.all_fps, later.clean_fps].map(Fps::get);
        let rate = all.max(clean);
        if rate < trial.spec.load_fps.get() * PART && (all - clean).abs() <= rate * APART {
            let frames = e.offered as f64;
            self.frames += frames;
            self.rates += rate * frames;
        }
    }

    /// Whether a load that passed may have passed for what a bucket of tokens, or a queue, took while the tester was away.
    pub fn has_rested(&self, trial: &TrialRecord) -> bool {
        let settled = trial.evidence.as_ref().and_then(|e| e.settled).filter(|_| self.rate().is_none());
        settled.is_some_and(|later| later.all_fps.get() < later.clean_fps.get() * (1.0 - DISTURBED))
    }

    /// The rate of a device that holds the calls.
    fn rate(&self) -> Option<f64> {
        (self.waiting().is_some() && self.frames > 0.0).then(|| self.rates / self.frames)
    }

    /// What a trial gave at a load above the rate, whatever came through: a bucket of tokens may not have been empty yet.
    pub fn refused(&self, trial: &TrialRecord) -> Option<Gave> {
        let (e, rate) = (trial.evidence.as_ref()?, self.rate()?);
        let loss_ratio = 1.0 - rate / trial.spec.load_fps.get();
        let lost = ((loss_ratio * e.offered as f64).ceil() as u64).max(e.lost);
        let clean = e.is_clean(trial.spec.duration_s);
        (loss_ratio > 0.0 && clean).then(|| Gave { effective_s: e.clean_s, lost, loss_ratio, ..Gave::whole(trial) })
    }

    /// A load that failed, and what the tester does not offer for moments that no slice shows, in which the device is not held: it may
    /// do so much more.
    pub fn seen(&self, failed: Fps) -> Fps {
        let short = self.waiting().map_or(0.0, |waiting| waiting.short);
        Fps::from_raw(failed.get() * (1.0 + short))
    }

    /// What to say of a device that waits.
    pub fn note(&self) -> Option<Reason> {
        self.waiting().filter(|_| self.rate().is_some())?.reason()
    }

    fn waiting(&self) -> Option<Waiting> {
        match self.calls {
            Calls::Holds(waiting) => Some(waiting),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use units::FrameSize;

    use super::*;
    use crate::{
        plan::Method,
        schema::{
            evidence::Settled,
            goal::Regularity,
            outcome::Outcome,
            trial::{Purpose, TrialSpec},
        },
        search::{for_config, world::World, Answer, Search, Step},
    };

    const RATE: f64 = 73.6e3;

    /// A shaper that loses nothing; each trial is changed before it is told, with its number from 0 on.
    fn found(method: Method, waits: Option<f64>, mut change: impl FnMut(u32, &mut TrialRecord)) -> Answer {
        let mut world = World { tester: RATE, kernel_pair: Some(0.44e6), waits, ..World::new(12e6, 512.0, 7) };
        let mut search = for_config(world.config(method));
        while let Step::Run(spec) = search.next() {
            let mut trial = world.run(&spec);
            change(world.trials - 1, &mut trial);
            search.report(&trial);
        }
        assert!(world.trials < 60, "{} trials", world.trials);
        search.so_far()
    }

    fn ends(answer: &Answer) -> (f64, f64) {
        let found = answer.interval.unwrap();
        (found.lower_fps.unwrap().get() / RATE, found.upper_fps.unwrap().get() / RATE)
    }

    /// The tester is busy for as long as it sends, as where the device works in its calls.
    fn works(trial: &mut TrialRecord) {
        let TrialSpec { load_fps, duration_s, .. } = trial.spec;
        trial.interference.lcores[0].busy_ns = Some((duration_s * (load_fps.get() / RATE).min(1.0) * 1e9) as u64);
    }

    fn is_probe(trial: &TrialRecord) -> bool {
        (trial.spec.load_fps.get() / (RATE * PROBE) - 1.0).abs() < 1e-3
    }

    fn is_in_calls(answer: &Answer) -> bool {
        let (_, upper) = ends(answer);
        matches!(answer.reasons[..], [Reason::InCalls { .. }]) && (1.19..1.21).contains(&upper)
    }

    #[test]
    fn loads_above_the_rate_of_a_device_that_holds_the_calls_fail() {
        for method in [Method::Tst009, Method::Mlrsearch] {
            let mut waited = Vec::new();
            let answer = found(method, Some(0.45), |_, trial| waited.push(trial.spec.drain_s));
            assert_eq!(answer.outcome, Outcome::Found, "{answer:?}");
            let (lower, upper) = ends(&answer);
            assert!(lower <= 1.0 && upper >= 1.0 && upper - lower < 0.011, "{method:?}: {lower} {upper}");
            assert!(matches!(answer.reasons[..], [Reason::Holds { .. }]), "{answer:?}");
            assert!(answer.goals.iter().all(|goal| goal.regularity == Regularity::Regular), "{answer:?}");
            // No frame waits in such a device.
            assert!(waited[0] > 0.1 && waited[waited.len() - 1] < 0.01, "{waited:?}");
        }
    }

    #[test]
    fn a_device_that_works_in_the_calls_has_no_load_that_fails() {
        let tst009 = |waits, change: fn(u32, &mut TrialRecord)| found(Method::Tst009, waits, change);
        for waits in [None, Some(0.8)] {
            let answer = tst009(waits, |_, _| {});
            assert!(is_in_calls(&answer), "{answer:?}");
        }
        // Trials that were disturbed, or lost frames, or that do not say how busy the tester was, tell nothing.
        let answer = tst009(Some(0.45), |_, trial| {
            if is_probe(trial) {
                trial.evidence.as_mut().unwrap().clean_s = 0.0;
            }
        });
        assert!(is_in_calls(&answer), "{answer:?}");
        let answer = tst009(Some(0.45), |_, trial| {
            if is_probe(trial) {
                trial.evidence.as_mut().unwrap().lost = 100;
            }
        });
        assert!(is_in_calls(&answer), "{answer:?}");
        let answer = tst009(Some(0.45), |_, trial| trial.interference.lcores[0].busy_ns = None);
        assert!(is_in_calls(&answer), "{answer:?}");
    }

    #[test]
    fn moments_in_which_the_tester_does_not_send_leave_their_share_open() {
        for method in [Method::Tst009, Method::Mlrsearch] {
            let answer = found(method, Some(0.45), |_, trial| {
                if let Some(e) = trial.evidence.as_mut().filter(|_| trial.spec.load_fps.get() < RATE) {
                    e.offered_fps = Fps::from_raw(e.offered_fps.get() * 0.99);
                }
            });
            let (lower, upper) = ends(&answer);
            assert!((0.97..0.991).contains(&lower) && (1.01..1.025).contains(&upper), "{method:?}: {lower} {upper}");
            assert!(answer.reasons.iter().any(|reason| matches!(reason, Reason::Holds { .. })), "{answer:?}");
            assert_eq!(answer.throughput, answer.interval.unwrap().lower_fps, "{answer:?}");
        }
    }

    #[test]
    fn what_passes_while_the_tester_is_away_for_most_of_the_time_counts_as_little() {
        for method in [Method::Tst009, Method::Mlrsearch] {
            // Twice the rate in the slices that count, and half of it in all of the time.
            let answer = found(method, Some(0.45), |_, trial| {
                let load = trial.spec.load_fps.get();
                trial.interference.lcores[0].busy_ns = Some((trial.spec.duration_s * 0.95e9) as u64);
                let Some(e) = trial.evidence.as_mut() else { return };
                e.offered_fps = Fps::from_raw(load.min(2.0 * RATE));
                if let Some(later) = e.settled.as_mut() {
                    (later.clean_fps, later.all_fps) = (e.offered_fps, Fps::from_raw(e.offered_fps.get() * 0.25));
                }
            });
            let found = answer.interval.unwrap();
            assert!(found.lower_fps.is_none_or(|lower| lower.get() <= RATE), "{method:?}: {answer:?}");
            assert!(found.upper_fps.is_none_or(|upper| upper.get() >= RATE), "{method:?}: {answer:?}");
        }
    }

    #[test]
    fn a_trial_that_was_disturbed_is_made_again() {
        let mut probes = 0;
        let answer = found(Method::Tst009, Some(0.45), |_, trial| {
            probes += u32::from(is_probe(trial));
            if is_probe(trial) && probes < TRIES {
                trial.evidence.as_mut().unwrap().clean_s = 0.0;
            }
        });
        assert!(matches!(answer.reasons[..], [Reason::Holds { .. }]) && probes == TRIES, "{probes} {answer:?}");
    }

    #[test]
    fn a_device_that_only_seemed_to_wait_is_found_out() {
        for method in [Method::Tst009, Method::Mlrsearch] {
            let answer = found(method, Some(0.45), |number, trial| {
                if number > 6 {
                    works(trial)
                }
            });
            assert!(matches!(answer.reasons[..], [Reason::InCalls { .. }]), "{answer:?}");
            assert_eq!(answer.outcome == Outcome::TesterLimited, method == Method::Mlrsearch, "{answer:?}");
        }
        // A busy moment of the tester alone changes nothing.
        let mut busy = 0;
        let answer = found(Method::Tst009, Some(0.45), |_, trial| {
            let load = trial.spec.load_fps.get() / RATE;
            if (0.6..0.94).contains(&load) && busy == 0 {
                trial.interference.lcores[0].busy_ns = Some((trial.spec.duration_s * 1e9) as u64);
                busy += 1;
            }
        });
        let (lower, upper) = ends(&answer);
        assert!(busy == 1 && lower <= 1.0 && upper >= 1.0 && upper - lower < 0.011, "{answer:?}");
        assert!(matches!(answer.reasons[..], [Reason::Holds { .. }]), "{answer:?}");
    }

    /// What a bucket of tokens of N frames lets through beyond the rate.
    fn with_bucket(trial: &mut TrialRecord, frames: f64) {
        let (load, seconds) = (trial.spec.load_fps.get(), trial.spec.duration_s);
        let Some(e) = trial.evidence.as_mut().filter(|_| load > RATE) else { return };
        // Full at the begin of each of four parts, it lets all through until it is empty.
        let part = seconds / 4.0;
        let mut left = frames;
        let of_part = [0; 4].map(|_| {
            let more = left.min((load - RATE) * part);
            left -= more;
            RATE + more / part
        });
        let mean = |parts: &[f64]| Fps::from_raw(parts.iter().sum::<f64>() / parts.len() as f64);
        e.offered_fps = mean(&of_part);
        let later = mean(&of_part[1..]);
        e.settled = Some(Settled {
            all_fps: later,
            clean_fps: later,
            earlier_fps: mean(&[of_part[1], of_part[1], of_part[2]]),
            later_fps: mean(&[of_part[2], of_part[3], of_part[3]]),
        });
        // While the bucket is not empty the tester has time.
        let busy = 1.0 - of_part.iter().filter(|fps| **fps >= load).count() as f64 / 4.0 * 0.55;
        trial.interference.lcores[0].busy_ns = Some((seconds * busy * 1e9) as u64);
    }

    #[test]
    fn a_load_passes_for_a_bucket_of_tokens_and_does_not_count() {
        for frames in [50.0, 300.0, 1_000.0] {
            let answer = found(Method::Tst009, Some(0.45), |_, trial| with_bucket(trial, frames));
            let (lower, upper) = ends(&answer);
            assert!(lower <= 1.001 && upper >= 0.999 && upper - lower < 0.011, "{frames}: {lower} {upper}");
            assert!(matches!(answer.reasons[..], [Reason::Holds { .. }]), "{answer:?}");
        }
    }

    #[test]
    fn only_the_share_of_a_load_above_the_rate_is_refused() {
        let mut world =
            World { tester: RATE, kernel_pair: Some(0.44e6), waits: Some(0.45), ..World::new(12e6, 512.0, 7) };
        let mut run = |load: f64| {
            let spec = TrialSpec::steady(FrameSize::MIN, Fps::from_raw(load), 0.3, Purpose::Search);
            world.run(&TrialSpec { by_slices: true, ..spec })
        };
        let holds = Calls::Holds(Waiting { load: 70e3, busy: 0.45, ..Waiting::default() });
        let mut holding = Holding { calls: holds, ..Holding::default() };
        let above = run(RATE * 1.25);
        assert_eq!((holding.refused(&above), holding.rate()), (None, None), "nothing is known");
        // The tester has time, or is not seen clearly, or lost frames, or the rate still falls, or all was offered.
        holding.see(&run(RATE * 0.9));
        let spoilt: [fn(&mut SliceEvidence); 5] = [
            |e| e.clean_s = 0.0,
            |e| e.lost = 1,
            |e| e.settled.as_mut().unwrap().earlier_fps = Fps::from_raw(RATE * 2.0),
            |e| e.settled.as_mut().unwrap().clean_fps = Fps::from_raw(RATE * 1.24),
            |e| e.settled.as_mut().unwrap().all_fps = Fps::from_raw(RATE * 0.9),
        ];
        for spoil in spoilt {
            let mut trial = above.clone();
            spoil(trial.evidence.as_mut().unwrap());
            holding.see(&trial);
        }
        assert_eq!(holding.rate(), None);
        holding.see(&above);
        assert!((holding.rate().unwrap() / RATE - 1.0).abs() < 1e-3);
        let gave = holding.refused(&above).unwrap();
        assert!((gave.loss_ratio - 0.2).abs() < 0.001 && gave.effective_s > 0.29, "{gave:?}");
        assert!((gave.lost as f64 - RATE * 0.3 * 0.2).abs() < 100.0, "{gave:?}");
        assert_eq!(holding.refused(&run(RATE * 0.99)), None);
        let mut unclear = above.clone();
        unclear.evidence.as_mut().unwrap().clean_s = 0.0;
        assert_eq!(holding.refused(&unclear), None);
        // A trial of twice the frames counts twice.
        let mut longer = above.clone();
        let e = longer.evidence.as_mut().unwrap();
        e.offered *= 2;
        let settled = e.settled.as_mut().unwrap();
        (settled.all_fps, settled.clean_fps) = (Fps::from_raw(RATE * 0.7), Fps::from_raw(RATE * 0.7));
        holding.see(&longer);
        assert!((holding.rate().unwrap() / RATE - 0.8).abs() < 1e-3);
    }
}
