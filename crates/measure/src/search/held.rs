//! Devices that hold the tester's calls, for searches by loss. Frames that the tester had no time to hand over, since the device
//! held each call until its frames were out, count as lost: RFC 9971 (Measurer) recommends to turn a severe deviation between the
//! intended and the offered load into loss. A device that works in the calls takes the tester's own time along, and is told apart
//! first: see [`calls`](super::calls).

use units::{Fps, Ratio};

use super::{
    calls::{busy, Calls, Waiting, ALWAYS, BOTH_ENDS, CALL, PROBE, WAITING},
    config::SearchConfig,
    gave::Gave,
    reason::Reason,
};
use crate::schema::trial::{TrialRecord, TrialSpec};

/// The highest load is so much above the rate then, as a share: it is seen to fail.
const ABOVE: f64 = 0.05;
/// The least share of a load that is refused, beside what is cut off at both ends of the time.
const LEAST: f64 = 1e-3;
/// Share of the rate below which the tester has time, or the device only works; and how often that is looked at again.
const BELOW: f64 = 0.99;
const PROBES: u32 = 3;

/// What is known of the device.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Holding {
    calls: Calls,
    /// The load that the tester could not offer, and the most that it offered of it.
    beyond: (Fps, Fps),
    probes: u32,
}

/// What the lower load says of the device.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Probed {
    /// It waits, and loads up to this one make sense.
    Waits(Fps),
    /// It still waits.
    Again,
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

    /// The load that tells whether the device waits, while that is to be looked at.
    pub fn probe(&self) -> Option<Fps> {
        match self.calls {
            Calls::Probed { offered, .. } => Some(Fps::from_raw((offered * PROBE).round())),
            _ => None,
        }
    }

    /// What that load shows.
    pub fn probed(&mut self, passed: bool, trial: &TrialRecord) -> Probed {
        let (load, offered) = self.beyond;
        self.probes += 1;
        let Some(busy) = busy(trial).filter(|busy| passed && *busy < WAITING) else {
            self.calls = Calls::Works;
            return Probed::Works { load, offered, after_all: self.probes > 1 };
        };
        self.calls = Calls::Holds(Waiting { load: trial.spec.load_fps.get(), busy, ..Waiting::default() });
        match self.probes {
            1 => Probed::Waits(Fps::from_raw((offered.get() * (1.0 + ABOVE)).round().min(load.get()))),
            _ => Probed::Again,
        }
    }

    /// Takes a trial that passed: where the tester was always busy although it should have had time, the lower load is looked at
    /// again.
    pub fn see_passed(&mut self, trial: &TrialRecord) {
        let (_, offered) = self.beyond;
        let below = trial.spec.load_fps.get() < offered.get() * BELOW && self.probes < PROBES;
        if below && self.waiting().is_some() && busy(trial).is_some_and(|busy| busy >= ALWAYS) {
            self.calls = Calls::Probed { at_top: true, offered: offered.get() };
        }
    }

    /// What a trial gave where the device held the calls from end to end: a bucket of tokens let more through at first, which does
    /// not count.
    pub fn refused(&self, spec: &TrialSpec, trial: &TrialRecord) -> Option<Gave> {
        let always = busy(trial).is_some_and(|busy| busy >= ALWAYS);
        let e = trial.evidence.as_ref().filter(|e| always && e.is_clean(spec.duration_s))?;
        let later = e.settled.filter(|_| self.waiting().is_some())?;
        // Where the tester was away these differ, and nobody knows which is right: above both the load fails.
        let rate = later.all_fps.get().max(later.clean_fps.get());
        let refused = 1.0 - rate / spec.load_fps.get();
        let offered = e.offered as f64;
        let lost = (refused * offered).round() as u64;
        let gave = Gave { effective_s: e.clean_s, lost, loss_ratio: refused, ..Gave::whole(trial) };
        let clearly = refused > LEAST.max(2.0 * CALL * BOTH_ENDS / offered);
        (clearly && e.lost == 0).then_some(gave)
    }

    /// What to say of a device that waits.
    pub fn note(&self) -> Option<Reason> {
        let Waiting { load, busy, .. } = self.waiting()?;
        Some(Reason::Holds { load: Fps::from_raw(load.round()), busy: Ratio::new(busy).ok()? })
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
        schema::{goal::Regularity, outcome::Outcome, trial::Purpose},
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
        // A trial that was disturbed, or lost frames, or that does not say how busy the tester was, tells nothing.
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
    fn a_device_that_only_seemed_to_wait_is_found_out() {
        for method in [Method::Tst009, Method::Mlrsearch] {
            let answer = found(method, Some(0.45), |number, trial| {
                if number > 2 {
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

    #[test]
    fn a_bucket_of_tokens_and_frames_lost_are_told_from_what_is_refused() {
        // 300 frames at first: what was offered in all of the trial is above the rate.
        let answer = found(Method::Tst009, Some(0.45), |_, trial| {
            let (load, seconds) = (trial.spec.load_fps.get(), trial.spec.duration_s);
            if let Some(e) = trial.evidence.as_mut().filter(|_| load > RATE) {
                e.offered_fps = Fps::from_raw((RATE + 300.0 / seconds).min(load));
            }
        });
        let (lower, upper) = ends(&answer);
        assert!(lower <= 1.0 && upper >= 1.0 && upper - lower < 0.011, "{lower} {upper}");
        // The share of the load above its rate, in frames and as a ratio; nothing where it lost some by itself, or the tester had time.
        let mut world =
            World { tester: RATE, kernel_pair: Some(0.44e6), waits: Some(0.45), ..World::new(12e6, 512.0, 7) };
        let spec = |load: f64| {
            let spec = TrialSpec::steady(FrameSize::MIN, Fps::from_raw(load), 0.3, Purpose::Search);
            TrialSpec { by_slices: true, ..spec }
        };
        let holds = Calls::Holds(Waiting { load: 70e3, busy: 0.45, ..Waiting::default() });
        let holding = Holding { calls: holds, ..Holding::default() };
        let mut trial = world.run(&spec(RATE * 1.25));
        let gave = holding.refused(&trial.spec, &trial).unwrap();
        assert!((gave.loss_ratio - 0.2).abs() < 0.001, "{gave:?}");
        assert!((gave.lost as f64 - RATE * 0.3 * 0.2).abs() < 100.0 && gave.effective_s > 0.29, "{gave:?}");
        assert_eq!(Holding::default().refused(&trial.spec, &trial), None);
        trial.evidence.as_mut().unwrap().lost = 1;
        assert_eq!(holding.refused(&trial.spec, &trial), None);
        let trial = world.run(&spec(RATE * 0.99));
        assert_eq!(holding.refused(&trial.spec, &trial), None);
    }
}
