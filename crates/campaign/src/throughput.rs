//! The search for the throughput at one frame size.

use std::time::Duration;

use failure::Failure;
use measure::{
    diagnose::nothing_came_back,
    label::{self, LabelFacts},
    placement::core_to_core,
    plan::Method,
    result::{Outcome, SizeResult},
    search::{for_config, Answer, PlacementSearch, Search, SearchConfig, Step},
    timeline::{Timeline, TrialTimeline},
    trial::{TrialRecord, TrialSpec},
};
use report::progress::Line;
use units::{Fps, Frames};

use crate::{
    controller::{Attempts, Controller},
    testbed::Testbed,
};

/// Where a search stands, for the progress line.
pub(crate) struct SearchPlace {
    pub(crate) size: Frames,
    pub(crate) index: usize,
    /// Trials that a search of this precision takes, where that is known.
    pub(crate) expected: Option<f64>,
}

impl<T: Testbed> Controller<'_, T> {
    pub(crate) fn throughput(
        &mut self,
        config: &SearchConfig,
        index: usize,
        most: Option<Fps>,
    ) -> Result<SizeResult, Failure> {
        let (size, first_trial) = (config.frame_size, self.trials.len());
        let expected = self.trials_per_size();
        let mut search = for_config(config.clone());
        let at = SearchPlace { size, index, expected };
        self.telling = None;
        let mut answer = self.search(&mut search, &at, most)?;
        if self.timeline.is_none() && answer.outcome.has_figure() {
            self.timeline = self.telling.take().map(|(_, timeline)| timeline);
        }
        let mut notes: Vec<String> = answer.reason().into_iter().collect();
        let mut confirmed = None;
        if self.plan.wants_latency() && answer.outcome.has_figure() {
            confirmed = self.confirm(&mut answer, &at, most, &mut notes)?;
        }
        if let Some(why) = self.testbed.gone().filter(|_| answer.outcome != Outcome::Found) {
            answer.outcome = Outcome::Interrupted;
            notes.insert(0, format!("{why}; trials so far are kept"));
        }
        let records: Vec<&TrialRecord> = self.trials.iter().skip(first_trial).collect();
        if answer.outcome == Outcome::NoTraffic {
            notes.push(nothing_came_back(&records, &self.testbed.ports()));
        }
        let invalid = records.iter().filter(|r| !r.valid()).count() as u32;
        let aside_share = answer.interval.map(|found| found.aside_share);
        let mix = config.frame_size.mix();
        let facts = LabelFacts { repeated: invalid, mix, aside_share, ..self.testbed.facts().labels };
        let (standard, compliance) = label::throughput(&self.plan, &facts);
        let (latency_standard, latency_compliance) =
            confirmed.as_ref().map(|_| label::latency(&self.plan, &facts)).unzip();
        let classifier = &self.testbed.facts().placements;
        Ok(SizeResult {
            frame_size_bytes: size,
            outcome: answer.outcome,
            throughput_fps: answer.throughput,
            upper_bound_fps: answer.upper_bound,
            answer: answer.interval,
            standard,
            compliance: Some(compliance),
            latency_standard,
            latency_compliance,
            placement: answer.placement.and_then(|class| classifier.placement(class)),
            other_placements: search.others(classifier),
            core_to_core: core_to_core(records.iter().map(|record| &record.interference)),
            at_throughput_trial: confirmed.as_ref().map(|t| t.number),
            at_throughput: confirmed.map(|t| t.directions).unwrap_or_default(),
            trials: records.iter().map(|r| r.number).collect(),
            invalid_trials: invalid,
            diagnosis: (!notes.is_empty()).then(|| notes.join("; ")),
            goals: answer.goals,
        })
    }

    fn search(
        &mut self,
        search: &mut PlacementSearch<Box<dyn Search + Send>>,
        at: &SearchPlace,
        most: Option<Fps>,
    ) -> Result<Answer, Failure> {
        let mut attempts = Attempts::default();
        let mut done = 0u32;
        loop {
            let spec = match search.next() {
                Step::Done(answer) => return Ok(answer),
                Step::Run(spec) => spec,
            };
            let so_far = search.so_far();
            let line = Line {
                phase: String::new(),
                load: Some(spec.load_fps),
                bounds: (so_far.throughput, so_far.upper_bound),
                trials: done,
                invalid: so_far.invalid_trials,
                ..self.line("", at.size, at.index)
            };
            let trial =
                self.one(spec, attempts.next(&spec), most, line, at.expected.map(|all| all - f64::from(done)))?;
            let Some(trial) = trial else {
                return Ok(Answer { outcome: Outcome::Interrupted, ..search.so_far() });
            };
            done += 1;
            self.keep_timeline(&trial);
            search.report(&trial);
            if self.testbed.is_last(&trial) {
                return Ok(Answer { outcome: Outcome::Interrupted, ..search.so_far() });
            }
        }
    }

    /// Keeps this trial over time unless one kept before tells more: an overload does. Of two the later is nearer to the
    /// answer.
    fn keep_timeline(&mut self, trial: &TrialRecord) {
        // After an absence a device is kept busy below its capacity, too.
        let busy = trial.evidence.as_ref().and_then(|evidence| evidence.undisturbed);
        let overload = busy.is_some_and(|busy| trial.spec.load_fps > busy.fps);
        let is_better = self.telling.as_ref().is_none_or(|(kept, _)| overload || !kept);
        if self.timeline.is_some() || !is_better || !trial.spec.by_slices || !trial.valid() {
            return;
        }
        let timeline = self.testbed.timeline().map(Timeline::thinned);
        let kept = timeline.map(|timeline| (overload, TrialTimeline { trial: trial.number, timeline }));
        self.telling = kept.or(self.telling.take());
    }

    pub(crate) fn one(
        &mut self,
        spec: TrialSpec,
        attempt: u32,
        most: Option<Fps>,
        mut line: Line,
        trials_left: Option<f64>,
    ) -> Result<Option<TrialRecord>, Failure> {
        let per_size = self.trials_per_size();
        let trust = &self.plan.trust;
        let latency = self.plan.latency.duration;
        let trial_s = (self.plan.search.duration + trust.residual + trust.settle).as_secs_f64();
        let later = line.frame_size.map_or(0, |(_, at, of)| of - at);
        let display = self.display;
        self.measure(spec, attempt, most, &mut |elapsed| {
            let left = |(now, later_each)| left_s(later, now, trial_s, latency, later_each) - elapsed;
            line.left_s = trials_left.zip(per_size).map(|trials| left(trials).max(0.0));
            display.show(&line);
        })
    }

    /// Trials that a search of the plan's precision takes; nobody knows it of MLRsearch.
    fn trials_per_size(&self) -> Option<f64> {
        let search = &self.plan.search;
        let halvings = (1.0 / search.precision.get()).log2().ceil();
        (search.method != Method::Mlrsearch).then_some(halvings + 3.0)
    }
}

/// Seconds left, from what one frame size takes.
fn left_s(sizes_left: usize, trials_left: f64, trial_s: f64, latency: Duration, trials_per_size: f64) -> f64 {
    let size_s = trials_per_size * trial_s + latency.as_secs_f64();
    sizes_left as f64 * size_s + trials_left.max(0.0) * trial_s + latency.as_secs_f64()
}
