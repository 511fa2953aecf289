//! `linerate bench`: a plan, every frame size, one answer each.

use measure::{
    diagnose::nothing_came_back,
    label::{self, LabelFacts},
    plan::Method,
    result::{Outcome, RunResult, SizeResult, Verdict, Warning, WarningKind},
    search::mlr::Regularity,
    search::{for_config, Answer, PlacementSearch, Search, SearchConfig, Step},
    trial::{Purpose, TrialRecord, TrialSpec},
    validity::beyond_tester,
};
use report::progress::Line;
use std::time::Duration;
use units::{Fps, FrameSize};

mod bed;
mod layouts;
mod list;
mod needs;
mod rehearse;
mod set;
pub mod sim;

use self::{bed::Bed, sim::SimRun};
use super::{
    output, plan,
    progress::{left_s, Progress},
    run::Run,
};
use crate::{
    cli::BenchArgs,
    failure::{Exit, Failure},
    out,
    stop::Stop,
};

/// Loads below the throughput found that the longer latency trial may fall back to, each a precision lower.
const MAX_STEPS_DOWN: u32 = 8;
/// A throughput that only the tester limits is lowered by this when so many latency trials fell short of it.
const TESTER_STEP: f64 = 0.9;
const MAX_SHORT: u32 = 6;
/// A trial of an answer in another placement, or none, is tried again this often.
const PLACEMENT_TRIES: u32 = 20;

/// Runs the command.
pub fn run(args: &BenchArgs) -> Result<Exit, Failure> {
    if args.list {
        return list::print();
    }
    if let Some(exit) = set::run(args)? {
        return Ok(exit);
    }
    if let Some(logger) = &args.flow_logger.flow_logger {
        return super::flowbench::run(args, logger);
    }
    let plan = plan::for_bench(args)?;
    if args.print_config {
        out::print(&plan.to_toml()?);
        return Ok(Exit::Passed);
    }
    if args.dry_run {
        return rehearse::run(&plan, &args.ports);
    }
    output::check(&args.output)?;
    let sizes = plan.frame_sizes.clone();
    let simulated = sim::asked(&args.ports, &plan)?;
    let old = layouts::old(&args.tables, &plan, simulated.is_some())?;
    match simulated {
        Some(setup) => measured(args, sizes, SimRun::new(plan, setup, Stop::on_signals()?), old.as_ref()),
        None => measured(args, sizes, Run::new(plan, &args.ports, &args.machine)?, old.as_ref()),
    }
}

/// Runs the plan on this testbed, and shows what came of it.
fn measured(args: &BenchArgs, sizes: Vec<FrameSize>, run: impl Bed, old: Option<&RunResult>) -> Result<Exit, Failure> {
    for &size in &sizes {
        // Bounds that contradict each other or the link are wrong before the first frame, whatever the tester can do.
        SearchConfig::for_size(run.plan(), size, run.link(), Some(Fps::from_raw(f64::from(u32::MAX))))?;
    }
    let mut bench = Bench { run, progress: Progress::new(args.output.quiet), sizes, quiet: args.output.quiet };
    let (results, ended) = bench.all();
    bench.progress.clear();
    if bench.run.trials().is_empty() && ended.is_err() {
        // Nothing was measured: there is nothing to show before saying why.
        return ended.map(|()| Exit::Failed);
    }
    let mut verdict = verdict(&results, bench.run.stopped());
    if ended.is_err() && verdict == Verdict::Passed {
        verdict = Verdict::Failed;
    }
    let warnings = bench.warnings(args.quick);
    let result = bench.run.result(results, warnings, verdict);
    let exit = layouts::finish(result, bench.run.plan(), old, args)?;
    // A rig that failed half way says so after what it measured before.
    ended.map(|()| exit)
}

struct Bench<B> {
    run: B,
    progress: Progress,
    sizes: Vec<FrameSize>,
    quiet: bool,
}

/// Where a search stands, for the progress line.
struct At {
    size: FrameSize,
    index: usize,
    /// Trials that a search of this precision takes, where that is known.
    expected: Option<f64>,
}

impl<B: Bed> Bench<B> {
    /// Every frame size in turn. What was found before a failure or a signal is kept.
    fn all(&mut self) -> (Vec<SizeResult>, Result<(), Failure>) {
        let mut results = Vec::new();
        for index in 0..self.sizes.len() {
            let size = self.sizes[index];
            if self.run.stopped() {
                break;
            }
            match self.size(size, index) {
                Ok(result) => {
                    self.say(&result);
                    let gone = result.outcome == Outcome::Interrupted && !self.run.stopped();
                    let reason = result.diagnosis.clone();
                    results.push(result);
                    if gone {
                        return (results, Err(Failure::failed(reason.unwrap_or_default())));
                    }
                }
                Err(e) => return (results, Err(e)),
            }
        }
        (results, Ok(()))
    }

    fn size(&mut self, size: FrameSize, index: usize) -> Result<SizeResult, Failure> {
        let first_trial = self.run.trials().len();
        let streams = self.run.streams(size)?;
        let duration = self.run.plan().search.duration;
        self.progress.show(&self.line("self-test", size, index));
        let most =
            self.run.selftest(&streams, duration.clamp(Duration::from_millis(20), Duration::from_millis(100)))?;
        let config = SearchConfig::for_size(self.run.plan(), size, self.run.link(), most)?;
        let expected = self.trials_per_size();
        let mut search = for_config(config);
        let at = At { size, index, expected };
        let mut answer = self.search(&mut search, &streams, &at, most)?;
        let mut notes: Vec<String> = answer.reason.iter().cloned().collect();
        let mut confirmed = None;
        if self.run.plan().latency.enabled && found(answer.outcome) {
            confirmed = self.confirm(&mut answer, &streams, &at, most, &mut notes)?;
        }
        let down = self.run.links_down();
        if !down.is_empty() && answer.outcome != Outcome::Found {
            answer.outcome = Outcome::Interrupted;
            notes.insert(
                0,
                format!(
                    "port {}: its link went down during trial {}: the peer ended or was disconnected; trials so far are kept",
                    down.join(" and "),
                    self.run.trials().last().map_or(0, |t| t.number)
                ),
            );
        }
        let records: Vec<&TrialRecord> = self.run.trials().iter().skip(first_trial).collect();
        if answer.outcome == Outcome::NoTraffic {
            notes.push(nothing_came_back(&records, &self.run.port_states()));
        }
        let invalid = records.iter().filter(|r| !r.valid()).count() as u32;
        let facts = LabelFacts { repeated: invalid, ..self.run.label_facts() };
        let mut standard = label::throughput(self.run.plan(), &facts);
        if let Some(trial) = &confirmed {
            if trial.number != answer.best_trial.unwrap_or(0) {
                standard
                    .departures
                    .extend(label::latency(self.run.plan()).departures.into_iter().map(|d| format!("latency: {d}")));
            }
        }
        let classifier = self.run.classifier();
        Ok(SizeResult {
            frame_size_bytes: size,
            outcome: answer.outcome,
            throughput_fps: answer.throughput,
            upper_bound_fps: answer.upper_bound,
            standard,
            placement: answer.placement.and_then(|class| classifier.placement(class)),
            other_placements: search.others(classifier),
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
        streams: &B::Streams,
        at: &At,
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
            let trial = self.one(
                streams,
                spec,
                attempts.next(&spec),
                most,
                line,
                at.expected.map(|all| all - f64::from(done)),
            )?;
            let Some(trial) = trial else {
                return Ok(Answer { outcome: Outcome::Interrupted, ..search.so_far() });
            };
            done += 1;
            search.report(&trial);
            if trial.loss_ratio() > 0.0 && !self.run.links_down().is_empty() {
                return Ok(Answer { outcome: Outcome::Interrupted, ..search.so_far() });
            }
        }
    }

    /// The latency trial at the throughput, in its placement. A throughput that does not stand for the longer trial
    /// is lowered by the precision and tried again, and the notes say so.
    fn confirm(
        &mut self,
        answer: &mut Answer,
        streams: &B::Streams,
        at: &At,
        most: Option<Fps>,
        notes: &mut Vec<String>,
    ) -> Result<Option<TrialRecord>, Failure> {
        let Some(found) = answer.throughput else { return Ok(None) };
        let plan = self.run.plan();
        // A goal's lower bound may lose frames in some of its trials: one more says nothing against it.
        let goals = plan.search.method == Method::Mlrsearch;
        let (tolerated, precision) = (plan.search.tolerated_loss, plan.search.precision.get());
        let duration_s = plan.latency.duration.as_secs_f64();
        let tries = plan.trust.max_repeats.max(PLACEMENT_TRIES);
        let mut load = found;
        for step in 0..=MAX_STEPS_DOWN {
            let spec = TrialSpec::steady(at.size, load, duration_s, Purpose::AtThroughput);
            let (mut valid, mut short) = (None, 0);
            for attempt in 1..=tries {
                let mut line = self.line("latency", at.size, at.index);
                line.load = Some(load);
                let Some(trial) = self.one(streams, spec, attempt, most, line, Some(0.0))? else { return Ok(None) };
                if trial.loss_ratio() > 0.0 && !self.run.links_down().is_empty() {
                    // What the search found stands; this trial says nothing of it.
                    answer.outcome = Outcome::Interrupted;
                    return Ok(None);
                }
                // With one core there is nothing to probe, and one place to be.
                let seen = &trial.interference;
                let unprobed = seen.core_to_core_before_ns.is_none() && seen.core_to_core_after_ns.is_none();
                let here = unprobed || answer.placement.is_none() || seen.placement == answer.placement;
                if trial.valid() && here {
                    valid = Some(trial);
                    break;
                }
                short += u32::from(beyond_tester(&trial));
                if answer.outcome == Outcome::TesterLimited && short >= MAX_SHORT {
                    break;
                }
            }
            if !goals && valid.is_none() && short >= MAX_SHORT && answer.outcome == Outcome::TesterLimited {
                // "At least" less than was claimed: the tester holds it for a moment, and not for this long.
                load = Fps::from_raw(load.get() * TESTER_STEP);
                continue;
            }
            let Some(trial) = valid else {
                notes.push(format!(
                    "no latency: {tries} trials of {duration_s} s at the throughput were all invalid or in another \
                     placement of the cores"
                ));
                return Ok(None);
            };
            if goals || trial.loss_ratio() <= tolerated.get() {
                if step > 0 && answer.outcome == Outcome::TesterLimited {
                    notes.push(format!(
                        "lowered from {found}: the tester does not offer that for {duration_s} s without a break"
                    ));
                } else if step > 0 {
                    notes.push(format!(
                        "lowered from {found}: trials of {duration_s} s, longer than the search's, lost frames above"
                    ));
                }
                answer.throughput = Some(load);
                return Ok(Some(trial));
            }
            answer.upper_bound = Some(load);
            if answer.outcome != Outcome::Found {
                answer.outcome = Outcome::Found;
            }
            load = Fps::from_raw(load.get() * (1.0 - precision));
        }
        if answer.outcome == Outcome::TesterLimited {
            notes.push(format!("no latency: the tester offers neither {found} nor half of it for {duration_s} s"));
            return Ok(None);
        }
        notes.push(format!(
            "trials of {duration_s} s lost frames at {found} and at {MAX_STEPS_DOWN} loads below it, where shorter ones \
             of the search did not"
        ));
        answer.outcome = Outcome::Inconclusive;
        answer.throughput = None;
        Ok(None)
    }

    fn one(
        &mut self,
        streams: &B::Streams,
        spec: TrialSpec,
        attempt: u32,
        most: Option<Fps>,
        mut line: Line,
        trials_left: Option<f64>,
    ) -> Result<Option<TrialRecord>, Failure> {
        let per_size = self.trials_per_size();
        let Self { run, progress, .. } = self;
        let trust = &run.plan().trust;
        let latency = run.plan().latency.duration;
        let trial_s = (run.plan().search.duration + trust.residual + trust.settle).as_secs_f64();
        let later = line.frame_size.map_or(0, |(_, at, of)| of - at);
        run.trial(streams, spec, attempt, most, &mut |elapsed| {
            let left = |(now, later_each)| left_s(later, now, trial_s, latency, later_each) - elapsed;
            line.left_s = trials_left.zip(per_size).map(|trials| left(trials).max(0.0));
            progress.show(&line);
        })
    }

    /// Trials that a search of the plan's precision takes; nobody knows it of MLRsearch.
    fn trials_per_size(&self) -> Option<f64> {
        let search = &self.run.plan().search;
        let halvings = (1.0 / search.precision.get()).log2().ceil();
        (search.method != Method::Mlrsearch).then_some(halvings + 3.0)
    }

    fn line(&self, phase: &str, size: FrameSize, index: usize) -> Line {
        Line {
            phase: phase.to_owned(),
            frame_size: Some((size, index + 1, self.sizes.len())),
            load: None,
            bounds: (None, None),
            trials: self.run.trials().len() as u32,
            invalid: self.run.trials().iter().filter(|t| !t.valid()).count() as u32,
            left_s: None,
        }
    }

    /// One line a frame size while the run goes on, for those who watch.
    fn say(&self, result: &SizeResult) {
        if !self.quiet && out::watched() {
            let found = result.throughput_fps.map_or_else(|| "-".to_owned(), |f| f.to_string());
            let text = format!("{:>5} B  {found:>12}  {} trials", result.frame_size_bytes, result.trials.len());
            self.progress.println(&text);
        }
    }

    fn warnings(&self, quick: bool) -> Vec<Warning> {
        let mut warnings = Vec::new();
        let mut warn = |kind, text: String| warnings.push(Warning { kind, text });
        if self.run.stopped() {
            warn(WarningKind::Stopped, "stopped before the end: what was measured until then is here".to_owned());
        }
        if quick {
            let text = "quick: trials are shorter than the standard's; leave out --quick for figures to publish";
            warn(WarningKind::ShortTrials, text.to_owned());
        }
        let classes = self.run.classifier().classes();
        if classes > 1 {
            warn(
                WarningKind::PlacementChanged,
                format!(
                    "the host moved the cores in use between {classes} placements; each answer is from one of them, \
                     and figures of different placements do not compare"
                ),
            );
        }
        for disagreement in port_disagreements(self.run.trials()) {
            warn(WarningKind::PortCounters, disagreement);
        }
        warnings
    }
}

/// Counts how often the same trial has been asked for in a row.
#[derive(Default)]
struct Attempts(Option<(TrialSpec, u32)>);

impl Attempts {
    fn next(&mut self, spec: &TrialSpec) -> u32 {
        let n = match &self.0 {
            Some((last, n)) if last == spec => n + 1,
            _ => 1,
        };
        self.0 = Some((*spec, n));
        n
    }
}

/// Ports whose own counters of frames out or in differ from ours in valid trials: one line each.
fn port_disagreements(trials: &[TrialRecord]) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for t in trials.iter().filter(|t| t.valid()) {
        for d in &t.directions {
            // Learning frames and foreign ones pass the port too; fewer than we counted never do.
            if let Some(tx) = d.port_tx.filter(|&tx| tx > 0 && tx < d.sent) {
                let line = format!(
                    "port {} says it sent fewer frames than it took from the tester (trial {}: {tx} of {})",
                    d.from, t.number, d.sent
                );
                if !lines.iter().any(|l| l.starts_with(&format!("port {} ", d.from))) {
                    lines.push(line);
                }
            }
        }
    }
    lines
}

/// Outcomes that carry a figure.
fn found(outcome: Outcome) -> bool {
    matches!(outcome, Outcome::Found | Outcome::AtMaximum | Outcome::TesterLimited)
}

fn verdict(results: &[SizeResult], stopped: bool) -> Verdict {
    let any = |outcomes: &[Outcome]| results.iter().any(|r| outcomes.contains(&r.outcome));
    // The outcome is the first goal's; where it has a figure, the others are held against the criteria, too.
    let goal = |how| results.iter().any(|r| found(r.outcome) && r.goals.iter().any(|g| g.regularity == how));
    if stopped {
        Verdict::Stopped
    } else if any(&[Outcome::Inconclusive]) || goal(Regularity::Unfinished) {
        Verdict::Inconclusive
    } else if any(&[Outcome::BelowMinimum, Outcome::NoTraffic, Outcome::Interrupted])
        || goal(Regularity::BelowMinimum)
        || results.is_empty()
    {
        Verdict::Failed
    } else {
        Verdict::Passed
    }
}
