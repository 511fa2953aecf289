//! The controller of a benchmark: every frame size, its search, its other tests, and the result of all.

use std::time::{Duration, Instant, SystemTime};

use failure::Failure;
use measure::{
    plan::{EvidenceBy, Test, ValidPlan},
    procedure::Known,
    result::{
        MixFacts, Outcome, RunResult, SelfTestKind, SelfTestPoint, SizeResult, Standing, TestResult, Warning, SCHEMA,
    },
    search::SearchConfig,
    timeline::TrialTimeline,
    trial::{TrialRecord, TrialSpec},
};
use report::progress::Line;
use units::{Fps, Frames};

use crate::{
    display::Display,
    testbed::{Measurement, Testbed},
};

/// Runs a plan on a testbed and keeps every trial.
pub struct Controller<'a, T> {
    /// Runs the trials.
    pub testbed: T,
    /// What is run.
    pub plan: ValidPlan,
    /// Every trial so far, valid or not.
    pub trials: Vec<TrialRecord>,
    /// Shows how far it is.
    pub(crate) display: &'a dyn Display,
    /// Answers of the tests beside the throughput.
    pub(crate) tests: Vec<TestResult>,
    /// The trial over time that the result keeps.
    pub(crate) timeline: Option<TrialTimeline>,
    /// The most telling trial of the present search over time, and whether it was an overload.
    pub(crate) telling: Option<(bool, TrialTimeline)>,
    begun: (Instant, SystemTime),
}

impl<'a, T: Testbed> Controller<'a, T> {
    /// Nothing is run yet.
    pub fn new(testbed: T, plan: ValidPlan, display: &'a dyn Display) -> Self {
        let begun = (Instant::now(), SystemTime::now());
        Self { testbed, plan, trials: Vec::new(), display, tests: Vec::new(), timeline: None, telling: None, begun }
    }

    /// Bounds that contradict each other or the link are wrong before the first frame, whatever the tester can do.
    ///
    /// # Errors
    ///
    /// (usage) for such bounds.
    pub(crate) fn check(&self) -> Result<(), Failure> {
        let link = self.testbed.facts().link;
        for &size in &self.plan.frame_sizes {
            SearchConfig::for_size(&self.plan, size, link, Some(Fps::from_raw(f64::from(u32::MAX))))?;
        }
        Ok(())
    }

    /// Every frame size in turn. What was found before a failure or a signal is kept.
    pub(crate) fn all(&mut self) -> (Vec<SizeResult>, Result<(), Failure>) {
        let mut results = Vec::new();
        for index in 0..self.plan.frame_sizes.len() {
            if self.testbed.stopped() {
                break;
            }
            if let Err(e) = self.size(index, &mut results) {
                return (results, Err(e));
            }
        }
        (results, Ok(()))
    }

    /// The search at one frame size, then its other tests.
    fn size(&mut self, index: usize, results: &mut Vec<SizeResult>) -> Result<(), Failure> {
        let size = self.plan.frame_sizes[index];
        let duration = self.plan.search.duration;
        self.display.show(&self.line("self-test", size, index));
        let most = self.testbed.prepare(size, duration.clamp(Duration::from_millis(20), Duration::from_millis(100)))?;
        if self.testbed.stopped() {
            // A self-test that was cut short does not tell what the tester can do.
            return Ok(());
        }
        if index == 0 {
            self.await_device(size, index)?;
        }
        let mut config = SearchConfig::for_size(&self.plan, size, self.testbed.facts().link, most)?;
        config.by_slices = self.by_slices();
        config.kernel_pair = kernel_pair(&self.testbed.facts().selftest, size);
        let mut known = None;
        if self.plan.runs(Test::Throughput) {
            let result = self.throughput(&config, index, most)?;
            let found = result.throughput_fps.map_or_else(|| "-".to_owned(), |f| f.to_string());
            let (unit, trials) = (result.frame_size_bytes.with_unit("B"), result.trials.len());
            self.display.keep(&format!("{unit:>7}  {found:>12}  {trials} trials"));
            known = Known::found(&result);
            let gone = result.outcome == Outcome::Interrupted && !self.testbed.stopped();
            let reason = result.diagnosis.clone();
            results.push(result);
            if gone {
                return Err(Failure::failed(reason.unwrap_or_default()));
            }
        }
        self.procedures(&config, index, most, known)
    }

    /// Waits until frames come back each way through an outside device, for a while: a guest may still boot, a bridge
    /// still listen. A device that never answers is left to the search, which tells why.
    fn await_device(&mut self, size: Frames, index: usize) -> Result<(), Failure> {
        let begun = Instant::now();
        while begun.elapsed() < self.plan.trust.ready_timeout && self.testbed.device_answers()? == Some(false) {
            self.display.show(&self.line("waiting for the device", size, index));
        }
        Ok(())
    }

    /// Whether the search for the throughput goes by slices.
    pub(crate) fn by_slices(&self) -> bool {
        self.plan.trust.evidence == EvidenceBy::Slices && self.testbed.has_slices()
    }

    /// Runs one trial and keeps it. `None` when a signal came.
    ///
    /// # Errors
    ///
    /// A testbed that fails.
    pub fn measure(
        &mut self,
        spec: TrialSpec,
        attempt: u32,
        selftest_max: Option<Fps>,
        tick: &mut dyn FnMut(f64),
    ) -> Result<Option<TrialRecord>, Failure> {
        let trial = self.testbed.measure(&Measurement { spec, attempt, selftest_max }, tick)?;
        self.trials.extend(trial.clone());
        Ok(trial)
    }

    /// Where the run is, without what a search adds.
    pub(crate) fn line(&self, phase: &str, size: Frames, index: usize) -> Line {
        Line {
            phase: phase.to_owned(),
            frame_size: Some((size, index + 1, self.plan.frame_sizes.len())),
            load: None,
            bounds: (None, None),
            trials: self.trials.len() as u32,
            invalid: self.trials.iter().filter(|t| !t.valid()).count() as u32,
            left_s: None,
        }
    }

    /// The result of everything so far.
    pub fn result(&self, sizes: Vec<SizeResult>, mut warnings: Vec<Warning>, standing: Standing) -> RunResult {
        let facts = self.testbed.facts();
        warnings.extend(facts.warnings);
        RunResult {
            schema: SCHEMA.to_owned(),
            linerate_version: env!("CARGO_PKG_VERSION").to_owned(),
            plan_name: self.plan.name.clone(),
            started_at: humantime::format_rfc3339_seconds(self.begun.1).to_string(),
            elapsed_s: self.begun.0.elapsed().as_secs_f64(),
            host: facts.host,
            dut: facts.device.describe(),
            device: facts.device,
            lab: facts.lab,
            dut_name: None,
            ports: facts.ports,
            link_bps: facts.link,
            directions: self.plan.traffic.directions(),
            effective_plan: self.plan.to_json(),
            mixes: MixFacts::of(&self.plan.frame_sizes),
            selftest: facts.selftest,
            sizes,
            tests: self.tests.clone(),
            trials: self.trials.clone(),
            // Where no frame size has a figure, the last search shows why.
            timeline: self.timeline.as_ref().or(self.telling.as_ref().map(|(_, last)| last)).cloned(),
            warnings,
            standing,
        }
    }
}

/// What the tester does over a pair of kernel interfaces at a frame size, if that is the kind of its ports.
fn kernel_pair(selftest: &[SelfTestPoint], size: Frames) -> Option<Fps> {
    let point = selftest.iter().find(|point| point.frame_size_bytes == size)?;
    point.pair.as_ref().filter(|pair| pair.kind == SelfTestKind::Veth).map(|pair| pair.lower_fps)
}

/// Counts how often the same trial has been asked for in a row.
#[derive(Default)]
pub(crate) struct Attempts(Option<(TrialSpec, u32)>);

impl Attempts {
    pub(crate) fn next(&mut self, spec: &TrialSpec) -> u32 {
        let n = match &self.0 {
            Some((last, n)) if last == spec => n + 1,
            _ => 1,
        };
        self.0 = Some((*spec, n));
        n
    }
}
