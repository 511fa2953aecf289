//! A simulated DUT of known capacity in virtual time: the truth that searches are tested against.
//!
//! Deterministic for a seed. Its records are judged by the real validity rules.

use crate::{
    placement::PlacementClassifier,
    plan::Trust,
    search::{Answer, Search, Step},
    trial::{DirectionCounts, Interference, LcoreInterference, TrialRecord, TrialSpec},
    validity::{gap_threshold_ns, judge, Evidence},
};

/// Numbers from a seed (splitmix64): the same on every machine and forever.
#[derive(Debug, Clone)]
pub struct Rng(u64);

impl Rng {
    /// A sequence of its own for each seed.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next 64 bits.
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Evenly from 0 to below 1.
    pub fn share(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// True with this probability.
    pub fn chance(&mut self, probability: f64) -> bool {
        self.share() < probability
    }
}

/// A placement of the cores: how far apart they are, and what the DUT forwards there.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SimPlacement {
    /// Core-to-core latency, one way, ns.
    pub core_to_core_ns: f64,
    /// Frames/s forwarded without loss.
    pub capacity: f64,
}

/// What to simulate.
#[derive(Debug, Clone, PartialEq)]
pub struct SimSetup {
    /// Placements of the cores; with only one, no probe is recorded.
    pub placements: Vec<SimPlacement>,
    /// Probability that the cores move between two trials.
    pub flip: f64,
    /// Probability that they move during a trial.
    pub flip_within: f64,
    /// Frames the DUT can hold: a burst above the capacity that is not lost.
    pub queue: u64,
    /// Probability that a trial loses a few frames at any load, and how many at most.
    pub accidents: (f64, u64),
    /// Probability that the tester is away for 30 ms during a trial.
    pub stalls: f64,
    /// Frames/s the tester can offer.
    pub tester_max: f64,
    /// Directions loaded, 1 or 2.
    pub directions: u32,
    /// Seed of everything random.
    pub seed: u64,
}

impl SimSetup {
    /// A quiet DUT that forwards this many frames/s one way and holds 256.
    pub fn new(capacity: f64, seed: u64) -> Self {
        Self {
            placements: vec![SimPlacement { core_to_core_ns: 60.0, capacity }],
            flip: 0.0,
            flip_within: 0.0,
            queue: 256,
            accidents: (0.0, 0),
            stalls: 0.0,
            tester_max: f64::INFINITY,
            directions: 1,
            seed,
        }
    }

    /// The DUT, at virtual time zero.
    pub fn start(self) -> SimDut {
        let rng = Rng::new(self.seed);
        SimDut { setup: self, now_s: 0.0, trials: 0, rng, at: 0, classifier: PlacementClassifier::default() }
    }
}

/// A tester and a DUT, simulated.
#[derive(Debug, Clone)]
pub struct SimDut {
    setup: SimSetup,
    now_s: f64,
    trials: u32,
    rng: Rng,
    at: usize,
    classifier: PlacementClassifier,
}

impl SimDut {
    /// A quiet DUT that forwards this many frames/s one way and holds 256.
    pub fn new(capacity: f64, seed: u64) -> Self {
        SimSetup::new(capacity, seed).start()
    }

    /// Virtual seconds of sending so far.
    pub fn now_s(&self) -> f64 {
        self.now_s
    }

    /// The classes its trials were assigned.
    pub fn classifier(&self) -> &PlacementClassifier {
        &self.classifier
    }

    fn maybe_move(&mut self, probability: f64) {
        if self.setup.placements.len() > 1 && self.rng.chance(probability) {
            self.at = (self.at + 1) % self.setup.placements.len();
        }
    }

    fn placement(&self) -> SimPlacement {
        self.setup.placements.get(self.at).copied().unwrap_or(SimPlacement { core_to_core_ns: 60.0, capacity: 0.0 })
    }

    /// Runs one trial.
    pub fn run(&mut self, spec: &TrialSpec) -> TrialRecord {
        self.maybe_move(self.setup.flip);
        let here = self.placement();
        self.maybe_move(self.setup.flip_within);
        let there = self.placement();
        let probed = self.setup.placements.len() > 1;
        let mut wobble = |ns: f64| probed.then(|| ns * (0.95 + 0.1 * self.rng.share()));
        let (before, after) = (wobble(here.core_to_core_ns), wobble(there.core_to_core_ns));
        let placement = self.classifier.classify(before, after);
        let (load, time) = (spec.load_fps.get(), spec.duration_s);
        let stall_ns = if self.rng.chance(self.setup.stalls) { 30_000_000 } else { 0 };
        let intended = (load * time).round() as u64;
        let can = (self.setup.tester_max * (time - stall_ns as f64 / 1e9)).min(1e18) as u64;
        let sent = intended.min(can);
        let fits = (here.capacity.min(there.capacity) * time) as u64;
        // A stalled tester does not read for 30 ms: its ring holds 2048 frames.
        let unread = ((load * stall_ns as f64 / 1e9) as u64).saturating_sub(if stall_ns > 0 { 2048 } else { 0 });
        let mut accident = || {
            if self.rng.chance(self.setup.accidents.0) {
                1 + self.rng.bits() % self.setup.accidents.1.max(1)
            } else {
                0
            }
        };
        let lost =
            sent.saturating_sub(if fits == 0 { 0 } else { fits + self.setup.queue }).max(accident() + unread).min(sent);
        let one = |from: &str, to: &str| DirectionCounts {
            from: from.to_owned(),
            to: to.to_owned(),
            intended,
            sent,
            skipped: intended - sent,
            received: sent - lost,
            lost,
            received_bytes: (sent - lost) * u64::from(spec.frame_size_bytes.bytes()),
            tx_span_s: time,
            ..DirectionCounts::default()
        };
        let ways = [one("a", "b"), one("b", "a")];
        self.now_s += time;
        self.trials += 1;
        let tester = LcoreInterference {
            role: "tester".to_owned(),
            lcore: 1,
            largest_gap_ns: stall_ns.max(3_000),
            total_gap_ns: stall_ns,
            gaps: u64::from(stall_ns > 0),
            gap_threshold_ns: gap_threshold_ns(load, 2048),
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
                core_to_core_before_ns: before,
                core_to_core_after_ns: after,
                placement,
                clock_drift_ppm: 0.5,
            },
            dut: None,
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
