//! Packet delay variation (RFC 5481): PDV and IPDV of a stream, over windows and the whole.

use serde::{Deserialize, Serialize};
use units::Fps;

use super::{
    guard::{self, Want},
    Found, Setting, Spread, TestOutcome,
};
use crate::{
    plan::PdvPlan,
    shape::WindowSummary,
    trial::{DirectionCounts, IpdvSummary, Purpose, TrialRecord, TrialSpec},
};

/// Delay variation at one load.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Pdv {
    /// Intended load.
    pub load_fps: Fps,
    /// Length of a window, seconds.
    pub window_s: f64,
    /// Loss ratio of the trial.
    pub loss_ratio: f64,
    /// One entry a direction.
    pub directions: Vec<PdvDirection>,
}

/// Delay variation of one direction. Nanoseconds.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct PdvDirection {
    /// Sending port.
    pub from: String,
    /// Receiving port.
    pub to: String,
    /// Smallest delay of the whole.
    pub min_ns: u64,
    /// PDV p99.9 of the whole, against that minimum (RFC 5481 §4.2).
    pub pdv_p99_9_ns: u64,
    /// IPDV of the whole (§4.1).
    pub ipdv: Option<IpdvSummary>,
    /// The windows summed up; `None` when there are none with frames.
    pub windows: Option<WindowSpread>,
}

/// How the windows of a direction differ. Nanoseconds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WindowSpread {
    /// Their smallest delays.
    pub min_ns: Spread,
    /// Their PDV p99.9, each against its own minimum.
    pub pdv_p99_9_ns: Spread,
    /// Their IPDV ranges, from the 5th to the 95th percentile; `None` where none was measured.
    pub ipdv_range_ns: Option<Spread>,
}

impl PdvDirection {
    fn of(d: &DirectionCounts) -> Option<Self> {
        let whole = d.latency.as_ref()?;
        let filled: Vec<&WindowSummary> = d.windows.iter().filter(|w| w.received > 0).collect();
        let spread = |of: fn(&WindowSummary) -> u64| {
            let values: Vec<f64> = filled.iter().map(|w| of(w) as f64).collect();
            Spread::of(&values)
        };
        let ranges = filled.iter().filter_map(|w| w.ipdv.as_ref()).map(|i| (i.p95_ns - i.p5_ns) as f64);
        let ranges: Vec<f64> = ranges.collect();
        let windows = spread(|w| w.min_ns).zip(spread(|w| w.pdv_p99_9_ns)).map(|(min_ns, pdv_p99_9_ns)| WindowSpread {
            min_ns,
            pdv_p99_9_ns,
            ipdv_range_ns: Spread::of(&ranges),
        });
        Some(Self {
            from: d.from.clone(),
            to: d.to.clone(),
            min_ns: whole.min_ns,
            pdv_p99_9_ns: whole.pdv_p99_9_ns,
            ipdv: whole.ipdv.clone(),
            windows,
        })
    }
}

#[derive(Debug)]
pub(super) struct Steps {
    spec: TrialSpec,
    done: bool,
    found: Pdv,
}

impl Steps {
    pub(super) fn new(plan: &PdvPlan, setting: &Setting) -> Result<Self, String> {
        let load_fps = Fps::from_raw(setting.known()?.fps.get() * plan.load_percent / 100.0);
        let window_s = plan.window.as_secs_f64();
        let spec = TrialSpec::steady(setting.frame_size, load_fps, plan.duration.as_secs_f64(), Purpose::Test);
        let spec = TrialSpec { window_s: Some(window_s), ..spec };
        Ok(Self { spec, done: false, found: Pdv { load_fps, window_s, ..Pdv::default() } })
    }
}

impl guard::Steps for Steps {
    fn next(&mut self) -> Want {
        if !self.done {
            return Want::Trial(self.spec);
        }
        if self.found.directions.is_empty() {
            return Want::end(
                TestOutcome::Inconclusive,
                "no delay was measured: the clock cannot be trusted, or nothing came back",
            );
        }
        let reason = (self.found.loss_ratio > 0.0).then_some("frames were lost: delays are of those that came back");
        Want::End(TestOutcome::Done, reason.map(str::to_owned))
    }

    fn verdict(&mut self, trial: &TrialRecord) {
        self.done = true;
        self.found.loss_ratio = trial.loss_ratio();
        self.found.directions = trial.directions.iter().filter_map(PdvDirection::of).collect();
    }

    fn patience(&self) -> u32 {
        1
    }

    fn found(&self) -> Found {
        Found::Pdv(self.found.clone())
    }

    fn expected(&self) -> u32 {
        1
    }
}
