//! Trials of a simulated device.

use units::Nanos;

use super::{
    counts::{Chances, AWAY},
    setup::{SimPlacement, SimSetup},
    state::SimDut,
};
use crate::{
    placement::PlacementClassifier,
    plan::{Placements, Trust},
    search::{Answer, Search, Step},
    trial::{DirectionCounts, Interference, LcoreInterference, LcoreRole, TrialRecord, TrialSpec},
    validity::{gap_threshold_ns, judge, Evidence},
};

impl SimDut {
    /// A quiet DUT that forwards this many frames/s one way and holds 256.
    pub fn new(capacity: f64, seed: u64) -> Self {
        SimSetup::new(capacity, seed).start()
    }

    /// Virtual seconds so far: of sending, and of [`SimDut::wait`].
    pub fn now_s(&self) -> f64 {
        self.now_s
    }

    /// Lets virtual time pass, such as the waits around a trial.
    pub fn wait(&mut self, seconds: f64) {
        let capacity = self.setup.capacity(self.at, self.now_s, self.now_s + seconds);
        self.queued = (self.queued - capacity * seconds.max(0.0)).max(0.0);
        self.now_s += seconds.max(0.0);
    }

    /// With a tester that waits so many seconds for residual frames: later ones are lost to it, and what is in the queue
    /// when the next trial begins is in its way. Otherwise each trial ends with an empty queue.
    pub fn with_residual(self, residual_s: f64) -> Self {
        Self { patience_s: Some(residual_s), ..self }
    }

    /// With placements told apart or not, as the plan's `[trust]` says.
    pub fn with_placements(self, placements: Placements) -> Self {
        Self { classifier: PlacementClassifier::new(placements), ..self }
    }

    /// The classes its trials were assigned.
    pub fn classifier(&self) -> &PlacementClassifier {
        &self.classifier
    }

    /// The next trial is one in which the device is reset: it is dead when `dead` says, from this trial's first frame.
    pub fn event_comes(&mut self) {
        let (now, dead) = (self.now_s, *self.dead.get_or_insert(self.setup.dead));
        self.setup.dead = dead.map(|(from, to)| (now + from, now + to));
    }

    fn maybe_move(&mut self, probability: f64) {
        if self.setup.placements.len() > 1 && self.rng.chance(probability) {
            self.at = (self.at + 1) % self.setup.placements.len();
        }
    }

    fn core_to_core(&self) -> f64 {
        self.setup.placements.get(self.at).map_or(60.0, |p: &SimPlacement| p.core_to_core_ns)
    }

    /// Runs one trial.
    pub fn run(&mut self, spec: &TrialSpec) -> TrialRecord {
        self.maybe_move(self.setup.flip);
        let before = self.at;
        let ns_before = self.core_to_core();
        self.maybe_move(self.setup.flip_within);
        let ns_after = self.core_to_core();
        let probed = self.setup.placements.len() > 1;
        let mut wobble = |ns: f64| probed.then(|| ns * (0.95 + 0.1 * self.rng.share()));
        let (probe_before, probe_after) = (wobble(ns_before), wobble(ns_after));
        let placement = self.classifier.classify(probe_before, probe_after);
        let (load, time) = (spec.load_fps.get(), spec.duration_s);
        let away = if self.rng.chance(self.setup.tester_stalls) { AWAY } else { Nanos(0) };
        // A tester that is away does not read either: its ring holds 2048 frames.
        let unread = ((load * away.seconds()) as u64).saturating_sub(if away.0 > 0 { 2048 } else { 0 });
        let accident = match self.rng.chance(self.setup.accidents.0) {
            true => 1 + self.rng.bits() % self.setup.accidents.1.max(1),
            false => 0,
        };
        let chances = Chances { away_s: away.seconds(), sudden: accident + unread };
        let counts = self.counts(spec, [before, self.at], &chances);
        let one = |from: &str, to: &str| DirectionCounts { from: from.to_owned(), to: to.to_owned(), ..counts.clone() };
        let ways = [one("a", "b"), one("b", "a")];
        self.now_s += time;
        self.trials += 1;
        let tester = LcoreInterference {
            role: LcoreRole::Tester,
            lcore: 1,
            largest_gap_ns: away.0.max(3_000),
            total_gap_ns: away.0,
            gaps: u64::from(away.0 > 0),
            gap_threshold_ns: gap_threshold_ns(spec.shape.peak(spec.load_fps).get(), 2048),
            ..LcoreInterference::default()
        };
        let mut record = TrialRecord {
            number: self.trials,
            spec: *spec,
            attempt: 1,
            real_duration_s: time,
            directions: ways.into_iter().take(self.setup.directions as usize).collect(),
            interference: Interference {
                lcores: vec![tester],
                core_to_core_before_ns: probe_before,
                core_to_core_after_ns: probe_after,
                placement,
                device_waited_ns: None,
                clock_drift_ppm: 0.5,
            },
            dut: None,
            switch_threads: Vec::new(),
            evidence: None,
            power: None,
            violations: Vec::new(),
        };
        let trust = Trust::default();
        let evidence = Evidence { trial: &record, trust: &trust, tsc_invariant: true, selftest_max: None };
        let violations = judge(&evidence);
        record.violations = violations;
        record
    }

    /// Runs a search to its end, or for `limit` trials. Returns its answer and every trial made.
    pub fn drive(&mut self, search: &mut impl Search, limit: u32) -> (Option<Answer>, Vec<TrialRecord>) {
        let mut made = Vec::new();
        for _ in 0..limit {
            match search.next() {
                Step::Done(answer) => return (Some(answer), made),
                Step::Run(spec) => {
                    let record = self.run(&spec);
                    search.report(&record);
                    made.push(record);
                }
            }
        }
        (None, made)
    }
}
