//! The simulated DUTs of the benchmark, and what is true of them.

use std::{cell::RefCell, collections::HashMap};

use measure::{
    search::mlr::SearchGoal,
    sim::SimSetup,
    trial::{Purpose, TrialSpec},
};
use units::{Fps, FrameSize, Nanos};

/// Lowest and highest load of every search: 10GbE at 64 bytes.
pub const LOADS: (f64, f64) = (10_000.0, 14_880_952.0);
/// Trials that a probability is counted over.
const SAMPLE: u32 = 200;

/// A kind of DUT, of a capacity within 5 % of 10M frames/s.
#[derive(Clone, Copy)]
pub struct Scenario {
    pub name: &'static str,
    /// All but capacity and seed.
    pub text: &'static str,
}

pub const SCENARIOS: [Scenario; 8] = [
    Scenario { name: "deterministic", text: "queue=1024" },
    Scenario { name: "rare stalls", text: "queue=1024,stalls=0.05/s:2000" },
    Scenario { name: "frequent small stalls", text: "queue=1024,stalls=0.3/s:50" },
    Scenario { name: "loss inversion far below", text: "queue=1024,inversion=2M-3M:0.1%" },
    Scenario { name: "loss inversion just below", text: "queue=1024,inversion=9M-10M:0.1%" },
    Scenario { name: "drift -0.1 %/min", text: "queue=1024,drift=-0.1%/min" },
    Scenario { name: "soft onset 0.2 %", text: "queue=1024,onset=0.2%" },
    Scenario { name: "soft onset 1 %, stalls", text: "queue=1024,onset=1%,stalls=0.1/s:500" },
];

impl Scenario {
    /// A DUT as text: one of many of this kind, and a seed of its noise.
    pub fn dut(&self, which: u64, seed: u64) -> String {
        // The inversion is said in frames/s, so its DUT stays where it is.
        let share = if self.text.contains("inversion") { 0.0 } else { (which as f64 * 0.618_034).fract() - 0.5 };
        let capacity = if self.text.contains("capacity") {
            String::new()
        } else {
            format!("capacity={},", (10e6 * (1.0 + 0.1 * share)).round())
        };
        format!("sim:{capacity}{},seed={seed}", self.text)
    }

    /// Loads between which the bounds of a correct answer may stand, for a search that took so many seconds: each as
    /// `(lowest, highest)`.
    ///
    /// The truth is the highest load at which the goal's criterion holds in expectation: a trial of the final duration is
    /// a high-loss one with no more than the probability that the goal's exceed ratio allows. Where the DUT has loss
    /// inversion, every load at which that ceases to hold is a truth (RFC 9971 asks for the relevant bounds among the
    /// loads that were tried, and nobody tries them all). Where it drifts, the truth is everything that the threshold was
    /// from the search's first second to its last.
    pub fn truths(&self, goal: &SearchGoal, dut: &str, took_s: f64) -> Vec<(f64, f64)> {
        let Ok(setup) = dut.parse::<SimSetup>() else { return Vec::new() };
        let moved = 1.0 + setup.drift_per_min * took_s / 60.0;
        let quiet = SimSetup { drift_per_min: 0.0, ..setup };
        let span = |t: f64| (t * moved.min(1.0), t * moved.max(1.0));
        thresholds(&quiet, goal).into_iter().map(span).collect()
    }

    /// The seconds that the goals' definition demands of any search that knows the answer: what it takes on average to
    /// classify a load half a width below each threshold as a lower bound and one half a width above as an upper one. A
    /// load may be the upper bound of one goal and the lower bound of the next, where the thresholds are so close.
    pub fn least_s(&self, goals: &[SearchGoal], dut: &str) -> f64 {
        let Ok(setup) = dut.parse::<SimSetup>() else { return f64::NAN };
        let setup = SimSetup { drift_per_min: 0.0, ..setup };
        let mut least = 0.0;
        let mut before: Option<f64> = None;
        for goal in goals {
            let width = goal.width.get();
            let ends = |truth: f64| (truth * (1.0 - width / 2.0), truth * (1.0 + width / 2.0));
            // Of several truths the highest that has room for the bounds around it.
            let found = thresholds(&setup, goal);
            let room = |t: &&f64| high_loss(&setup, goal, ends(**t).0) <= goal.exceed_ratio.get();
            let Some(&truth) = found.iter().rev().find(room) else { return f64::NAN };
            let shared = before.is_some_and(|b| b < truth && truth * (1.0 - width) <= b / (1.0 - width));
            for (load, skip) in [(ends(truth).0, shared), (ends(truth).1, false)] {
                least += if skip { 0.0 } else { to_classify(goal, high_loss(&setup, goal, load)) };
            }
            before = Some(truth);
        }
        least
    }
}

/// Loads at which the goal's criterion ceases to hold as the load rises, found among loads 2 % apart and, around the
/// capacity, 0.1 %.
fn thresholds(setup: &SimSetup, goal: &SearchGoal) -> Vec<f64> {
    thread_local!(static KNOWN: RefCell<HashMap<String, Vec<f64>>> = RefCell::default());
    let key = format!("{} {}", goal.name, SimSetup { seed: 0, ..setup.clone() });
    if let Some(known) = KNOWN.with_borrow(|k| k.get(&key).cloned()) {
        return known;
    }
    let holds = |load: f64| high_loss(setup, goal, load) <= goal.exceed_ratio.get();
    let capacity = setup.capacity(0, 0.0, 0.0);
    let mut loads: Vec<f64> = (0..=130).map(|i| LOADS.1 * 0.98_f64.powi(i)).collect();
    loads.extend((-20..=20).map(|i| capacity * (1.0 + f64::from(i) * 1e-3)));
    loads.sort_by(f64::total_cmp);
    let held: Vec<(f64, bool)> = loads.into_iter().map(|l| (l, holds(l))).collect();
    let crossing = |pair: &[(f64, bool)]| {
        let &[(mut low, true), (mut high, false)] = pair else { return None };
        while high - low > 50.0 {
            let middle = (low + high) / 2.0;
            *(if holds(middle) { &mut low } else { &mut high }) = middle;
        }
        Some(low)
    };
    let found: Vec<f64> = held.windows(2).filter_map(crossing).collect();
    KNOWN.with_borrow_mut(|k| k.insert(key, found.clone()));
    found
}

/// Share of the trials at a load that are high-loss ones.
fn high_loss(setup: &SimSetup, goal: &SearchGoal, load: f64) -> f64 {
    let mut dut = SimSetup { seed: 12345, latency: Nanos(0), ..setup.clone() }.start();
    let spec = TrialSpec::steady(FrameSize::MIN, Fps::from_raw(load), goal.final_s(), Purpose::Search);
    let high = (0..SAMPLE).filter(|_| dut.run(&spec).loss_ratio() > goal.loss_ratio.get()).count();
    high as f64 / f64::from(SAMPLE)
}

/// Mean seconds of full-length trials until a load is classified, each a high-loss one with probability `p`.
fn to_classify(goal: &SearchGoal, p: f64) -> f64 {
    let trials = goal.sum_s() / goal.final_s();
    let lows = (trials * (1.0 - goal.exceed_ratio.get()) - 1e-9).ceil() as usize;
    let highs = (trials * goal.exceed_ratio.get()).floor() as usize + 1;
    // expected[l][h]: trials still to come when l low-loss and h high-loss ones are missing.
    let mut expected = vec![vec![0.0; highs + 1]; lows + 1];
    for low in 1..=lows {
        for high in 1..=highs {
            expected[low][high] = 1.0 + (1.0 - p) * expected[low - 1][high] + p * expected[low][high - 1];
        }
    }
    expected[lows][highs] * goal.final_s()
}
