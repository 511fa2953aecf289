//! Trials of a simulated device.

use units::{Fps, Nanos};

use super::{
    counts::{Chances, AWAY},
    rng::Rng,
    setup::{SimPlacement, SimSetup},
    state::SimDut,
};
use crate::{
    evidence::{self, Watch},
    placement::PlacementClassifier,
    plan::{Placements, Trust},
    schema::timeline::{Absence, Cut, Party, Timeline},
    search::{Answer, Search, Step},
    trial::{DirectionCounts, Interference, LcoreInterference, LcoreRole, TrialRecord, TrialSpec},
    validity::{gap_threshold_ns, judge, Evidence},
};

/// Most slices of a trial.
const MOST_SLICES: usize = 4_096;

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

    /// Whether trials that are asked for by slices come with them: where delays are modelled.
    pub fn has_slices(&self) -> bool {
        self.setup.latency.0 > 0
    }

    /// The last trial that was cut into slices, over time.
    pub fn timeline(&self) -> &Timeline {
        &self.timeline
    }

    /// When the tester is away for so long, drawn apart as other moments are.
    fn gap(&self, time: f64, away_s: f64) -> (f64, f64) {
        let mut moments = Rng::new(self.setup.seed ^ u64::from(self.trials).wrapping_add(1).rotate_left(48));
        let from_s = moments.share() * (time - away_s).max(0.0);
        (from_s, (from_s + away_s).min(time))
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
        // Without a delay of their own no queue is seen in the delays of frames.
        let cut = (spec.by_slices && self.has_slices()).then(|| cut(time, spec.load_fps));
        let gap = cut.filter(|_| away.0 > 0).map(|_| self.gap(time, away.seconds()));
        // A tester that is away and makes up for it does not read either: its ring holds 2048 frames.
        let unread =
            if away.0 > 0 && gap.is_none() { ((load * away.seconds()) as u64).saturating_sub(2048) } else { 0 };
        let accident = match self.rng.chance(self.setup.accidents.0) {
            true => 1 + self.rng.bits() % self.setup.accidents.1.max(1),
            false => 0,
        };
        let chances = Chances { away_s: away.seconds(), gap, sudden: accident + unread };
        let (counts, slices) = self.counts(spec, [before, self.at], &chances, cut.as_ref());
        let one = |from: &str, to: &str| DirectionCounts { from: from.to_owned(), to: to.to_owned(), ..counts.clone() };
        let ways = [one("a", "b"), one("b", "a")];
        self.now_s += time;
        self.trials += 1;
        let evidence = cut.and_then(|cut| {
            let absence = |(from_s, to_s)| Absence { who: Party::Tester, from_s, to_s };
            let directions = vec![slices; self.setup.directions as usize];
            self.timeline =
                Timeline { slice_s: cut.slice_s, directions, absences: gap.map(absence).into_iter().collect() };
            evidence::of(&self.timeline, time, Watch::Known, cut.usual)
        });
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
            evidence,
            power: None,
            violations: Vec::new(),
        };
        let trust = Trust::default();
        let violations = judge(&Evidence { trial: &record, trust: &trust, tsc_invariant: true, selftest_max: None });
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

/// How a trial is cut: a long one into fewer slices than a tester's, which would show no more of a device so even.
fn cut(duration_s: f64, load: Fps) -> Cut {
    let cut = Cut::of(duration_s, load);
    let longer = cut.count.div_ceil(MOST_SLICES);
    match longer {
        0 | 1 => cut,
        _ => Cut { slice_s: cut.slice_s * longer as f64, count: cut.count.div_ceil(longer), usual: 1 },
    }
}
