//! `linerate bench`: a plan, every frame size, one answer each.

use measure::{
    diagnose::nothing_came_back,
    label::{self, LabelFacts},
    plan::{Method, Test},
    procedure::Known,
    result::{Outcome, RunResult, SizeResult, Standing, TestResult},
    search::{for_config, Answer, PlacementSearch, Search, SearchConfig, Step},
    standing,
    trial::{TrialRecord, TrialSpec},
};
use report::progress::Line;
use std::time::Duration;
use units::{Fps, Frames};

mod addresses;
mod bed;
mod command;
mod ending;
mod latency;
mod layouts;
mod list;
mod needs;
mod procedure;
mod rehearse;
mod set;
pub mod sim;
pub mod sweep;

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
    if !args.dry_run && args.sweep.point.is_none() {
        sweep::check_device(&plan, &args.ports)?;
    }
    if args.dry_run && plan.tests_addresses() {
        return Err(Failure::usage(
            "--dry-run: the address tests are rounds between three ports, each after addresses.age: there is no device to \
             rehearse them on",
        ));
    }
    if !plan.sweep.is_empty() {
        return sweep::run(args, &plan);
    }
    if args.dry_run {
        return rehearse::run(&plan, args);
    }
    output::check(&args.output)?;
    let sizes = plan.frame_sizes.clone();
    if plan.tests_addresses() {
        return addresses::run(args, plan);
    }
    let simulated = sim::asked(&args.ports, &plan)?;
    let old = layouts::old(&args.tables, &plan, simulated.is_some())?;
    match simulated {
        Some(setup) => measured(args, sizes, SimRun::new(plan, setup, Stop::on_signals()?), old.as_ref()),
        None => {
            if plan.reset.as_ref().is_some_and(|t| t.command.is_empty()) {
                return Err(Failure::usage(
                    "reset.command: must name the program that causes the event, such as [\"systemctl\", \"restart\", \
                     \"vswitch\"]: nothing else is run (or rehearse with --dut sim:dead=FROM-TO)",
                ));
            }
            measured(args, sizes, Run::new(plan, &args.ports, &args.machine)?, old.as_ref())
        }
    }
}

/// Runs the plan on this testbed, and shows what came of it.
fn measured(args: &BenchArgs, sizes: Vec<Frames>, run: impl Bed, old: Option<&RunResult>) -> Result<Exit, Failure> {
    for &size in &sizes {
        // Bounds that contradict each other or the link are wrong before the first frame, whatever the tester can do.
        SearchConfig::for_size(run.plan(), size, run.link(), Some(Fps::from_raw(f64::from(u32::MAX))))?;
    }
    let mut bench = Bench::new(run, sizes, args.output.quiet);
    let (results, ended) = bench.all();
    bench.progress.clear();
    if bench.run.trials().is_empty() && ended.is_err() {
        // Nothing was measured: there is nothing to show before saying why.
        return ended.map(|()| Exit::Failed);
    }
    let mut standing = standing::of_run(&results, &bench.tests, bench.run.stopped());
    if ended.is_err() && standing.is_good() {
        standing = Standing::Interrupted;
    }
    let warnings = bench.warnings(args.quick);
    let mut result = bench.run.result(results, warnings, standing);
    result.tests = std::mem::take(&mut bench.tests);
    let exit = layouts::finish(result, bench.run.plan(), old, args)?;
    // A rig that failed half way says so after what it measured before.
    ended.map(|()| exit)
}

struct Bench<B> {
    run: B,
    progress: Progress,
    sizes: Vec<Frames>,
    quiet: bool,
    /// Answers of the tests beside the throughput.
    tests: Vec<TestResult>,
}

/// Where a search stands, for the progress line.
struct At {
    size: Frames,
    index: usize,
    /// Trials that a search of this precision takes, where that is known.
    expected: Option<f64>,
}

impl<B: Bed> Bench<B> {
    fn new(run: B, sizes: Vec<Frames>, quiet: bool) -> Self {
        Self { run, progress: Progress::new(quiet), sizes, quiet, tests: Vec::new() }
    }

    /// Every frame size in turn. What was found before a failure or a signal is kept.
    fn all(&mut self) -> (Vec<SizeResult>, Result<(), Failure>) {
        let mut results = Vec::new();
        for index in 0..self.sizes.len() {
            let size = self.sizes[index];
            if self.run.stopped() {
                break;
            }
            if let Err(e) = self.size(size, index, &mut results) {
                return (results, Err(e));
            }
        }
        (results, Ok(()))
    }

    /// The search at one frame size, then its other tests.
    fn size(&mut self, size: Frames, index: usize, results: &mut Vec<SizeResult>) -> Result<(), Failure> {
        let streams = self.run.streams(size)?;
        let duration = self.run.plan().search.duration;
        self.progress.show(&self.line("self-test", size, index));
        let most =
            self.run.selftest(&streams, duration.clamp(Duration::from_millis(20), Duration::from_millis(100)))?;
        let config = SearchConfig::for_size(self.run.plan(), size, self.run.link(), most)?;
        let mut known = None;
        if self.run.plan().runs(Test::Throughput) {
            let result = self.throughput(&config, &streams, index, most)?;
            self.say(&result);
            known = Known::found(&result);
            let gone = result.outcome == Outcome::Interrupted && !self.run.stopped();
            let reason = result.diagnosis.clone();
            results.push(result);
            if gone {
                return Err(Failure::failed(reason.unwrap_or_default()));
            }
        }
        self.procedures(&config, &streams, index, most, known)
    }

    fn throughput(
        &mut self,
        config: &SearchConfig,
        streams: &B::Streams,
        index: usize,
        most: Option<Fps>,
    ) -> Result<SizeResult, Failure> {
        let (size, first_trial) = (config.frame_size, self.run.trials().len());
        let expected = self.trials_per_size();
        let mut search = for_config(config.clone());
        let at = At { size, index, expected };
        let mut answer = self.search(&mut search, streams, &at, most)?;
        let mut notes: Vec<String> = answer.reason.iter().cloned().collect();
        let mut confirmed = None;
        if self.run.plan().wants_latency() && answer.outcome.has_figure() {
            confirmed = self.confirm(&mut answer, streams, &at, most, &mut notes)?;
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
        let facts = LabelFacts { repeated: invalid, mix: config.frame_size.mix(), ..self.run.label_facts() };
        let (standard, compliance) = label::throughput(self.run.plan(), &facts);
        let (latency_standard, latency_compliance) =
            confirmed.as_ref().map(|_| label::latency(self.run.plan(), &facts)).unzip();
        let classifier = self.run.classifier();
        Ok(SizeResult {
            frame_size_bytes: size,
            outcome: answer.outcome,
            throughput_fps: answer.throughput,
            upper_bound_fps: answer.upper_bound,
            standard,
            compliance: Some(compliance),
            latency_standard,
            latency_compliance,
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

    fn line(&self, phase: &str, size: Frames, index: usize) -> Line {
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
            let text =
                format!("{:>7}  {found:>12}  {} trials", result.frame_size_bytes.with_unit("B"), result.trials.len());
            self.progress.println(&text);
        }
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
