//! Packet delay variation (RFC 5481): PDV and IPDV of a stream, over windows and the whole.

use units::Fps;

use super::{
    setting::Setting,
    steps::{self, Want},
};
use crate::{
    plan::PdvPlan,
    schema::{
        found::{Found, Pdv, PdvDirection, Spread, WindowSpread},
        outcome::TestOutcome,
    },
    shape::WindowSummary,
    trial::{DirectionCounts, Purpose, TrialRecord, TrialSpec},
};

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

impl steps::Steps for Steps {
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
