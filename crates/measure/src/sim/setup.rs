//! What to simulate: a device of known truth, and a tester with the faults that testers have.

use units::Nanos;

/// A placement of the cores: how far apart they are, and what the DUT forwards there.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SimPlacement {
    /// Core-to-core latency, one way, ns.
    pub core_to_core_ns: f64,
    /// Frames/s forwarded without loss.
    pub capacity: f64,
}

/// Moments at which the DUT is away, whatever the load: so many a second on average, each losing so many frames.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Stalls {
    /// Stalls per second.
    pub rate: f64,
    /// Frames that one loses.
    pub frames: u64,
}

/// A band of loads below the capacity that loses frames: RFC 9971, Multiple Goals and Loss Inversion.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Inversion {
    /// Lowest and highest load of the band, frames/s.
    pub band: (f64, f64),
    /// Share of the frames lost there.
    pub loss: f64,
}

/// What to simulate: a DUT of known truth, and a tester with the faults a tester has.
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
    /// Softness of the loss onset, relative to the capacity: at the capacity this times ln 2 of the frames are lost, and
    /// `e` times fewer for every such step below. Zero: no loss at all up to the capacity.
    pub onset: f64,
    /// Stalls of the DUT.
    pub stalls: Vec<Stalls>,
    /// A lower band of loads that loses frames.
    pub inversion: Option<Inversion>,
    /// Relative change of the capacity per minute of virtual time.
    pub drift_per_min: f64,
    /// From when to when, in virtual seconds, nothing is forwarded.
    pub dead: Option<(f64, f64)>,
    /// Delay of a frame that does not wait; zero: delays are not modelled.
    pub latency: Nanos,
    /// After an overload the DUT goes on losing every frame for so long, seconds.
    pub recovery_s: f64,
    /// Probability that a trial loses a few frames at any load, and how many at most.
    pub accidents: (f64, u64),
    /// Probability that the tester is away for 30 ms during a trial.
    pub tester_stalls: f64,
    /// Frames/s the tester can offer.
    pub tester_max: f64,
    /// Directions loaded, 1 or 2; all of them lose alike.
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
            onset: 0.0,
            stalls: Vec::new(),
            inversion: None,
            drift_per_min: 0.0,
            dead: None,
            latency: Nanos(10_000),
            recovery_s: 0.0,
            accidents: (0.0, 0),
            tester_stalls: 0.0,
            tester_max: f64::INFINITY,
            directions: 1,
            seed,
        }
    }

    /// Frames/s that the DUT could forward over a span of virtual time, on average, were it not dead.
    pub fn capacity(&self, placement: usize, from_s: f64, to_s: f64) -> f64 {
        let capacity = self.placements.get(placement).map_or(0.0, |p| p.capacity);
        capacity * (1.0 + self.drift_per_min * (from_s + to_s) / 120.0).max(0.0)
    }
}
