//! `linerate bench --flow-logger`: sends flows that are known one by one, reads what the logger recorded, and scores it.

mod fresh;
mod reader;
mod result;
mod truth;

use std::{sync::Arc, time::Duration};

use flow::truth::{Difference, Expected, Score};
use measure::{
    attempts::{GivenUp, SCORES},
    bisection::Descent,
    plan::{Direction, Plan, Traffic},
    result::Verdict,
    trial::{Purpose, TrialRecord, TrialSpec},
    validity::beyond_tester,
};
use packet::frame::Template;
use report::progress::Line;
use traffic::{
    flows::{FlowSpec, Program, MOST_FLOWS},
    stream::StreamSpec,
};
use units::{Fps, FrameSize};

use self::{
    reader::{Reader, Reading},
    result::{conclusion, FlowResult, Highest, TrialScore},
    truth::{Moment, Truth},
};
use super::{output, plan, progress::Progress, run::Run};
use crate::{
    cli::{
        flowbench::{FlowLogger, FlowsArg},
        BenchArgs,
    },
    engine,
    failure::{Exit, Failure},
    out,
};

/// Sending time when none is given.
const DURATION: Duration = Duration::from_secs(10);
/// How long to wait for records when nothing is said.
const WAIT: Duration = Duration::from_secs(90);
/// Relative distance of the bounds at which a search ends, when none is given: each trial waits for the logger.
const PRECISION: f64 = 0.05;
/// The lowest rate of new flows a search tries, when none is given.
const LOWEST: f64 = 1000.0;

/// Runs the command.
pub fn run(args: &BenchArgs, logger: &FlowLogger) -> Result<Exit, Failure> {
    let Some(FlowsArg::Program(program)) = args.traffic.flows else {
        return Err(Failure::usage(
            "--flow-logger needs the flows to send: --flows constant:1M, zipf:100k,s=1.1, churn:1M,packets=4 or \
             scan:256,1024",
        ));
    };
    let mut bench = Bench::new(args, logger, program)?;
    let (verdict, result) = match program {
        FlowSpec::Churn { rate: None, .. } => bench.search(args)?,
        _ => bench.once(args)?,
    };
    bench.progress.clear();
    bench.finish(args, verdict, &result)
}

/// What stays the same from trial to trial.
struct Bench {
    run: Run,
    reader: Reader,
    progress: Progress,
    spec: FlowSpec,
    logger: String,
    size: FrameSize,
    wait: Duration,
    /// Trials tried so far: each has keys of its own, so that late records of one are none of the next.
    tried: u16,
    scores: Vec<TrialScore>,
    last: Option<(Verdict, String)>,
    /// Whether the last trial was more than the tester can offer.
    beyond: bool,
}

impl Bench {
    fn new(args: &BenchArgs, logger: &FlowLogger, spec: FlowSpec) -> Result<Self, Failure> {
        let wait = args.flow_logger.flow_wait.as_deref().map(units::parse_duration).transpose()?.unwrap_or(WAIT);
        let duration = args.search.duration.as_deref().map(units::parse_duration).transpose()?.unwrap_or(DURATION);
        let Plan { traffic, link, trust, .. } = plan::load(&args.plan)?;
        let mut wanted = Plan {
            name: "flow-logger".to_owned(),
            description: "What a flow logger recorded against what was sent".to_owned(),
            source: String::new(),
            traffic,
            link,
            trust,
            ..Plan::default()
        };
        plan::headers(&mut wanted, &args.traffic)?;
        refuse(args, &wanted.traffic)?;
        // A second run against a logger that goes on is not to meet the flows of the first.
        wanted.traffic.seed = args.traffic.seed.unwrap_or_else(fresh::seed);
        plan::link(&mut wanted, &args.ports);
        // The smallest frames the headers allow, when none are asked for.
        let probe = engine::stream(&wanted.traffic, FrameSize::new(1518)?, 0, Default::default())?;
        let asked = args.frame_sizes.first().and_then(|frames| frames.size());
        let size = asked.unwrap_or_else(|| Template::min_frame_size(&probe.headers));
        // Wrong words are wrong before anything is opened.
        Program::new(&spec, &engine::stream(&wanted.traffic, size, 0, Default::default())?).map_err(Failure::usage)?;
        wanted.frame_sizes = vec![size.into()];
        wanted.search.duration = duration;
        wanted.trust.selftest = false;
        wanted.trust.settle = Duration::ZERO;
        wanted.latency.enabled = false;
        let plan = wanted.validate()?;
        output::check(&args.output)?;
        let reader = Reader::start(logger)?;
        let run = Run::new(plan, &args.ports, &args.machine)?;
        Ok(Self {
            run,
            reader,
            progress: Progress::new(args.output.quiet),
            spec,
            logger: logger.to_string(),
            size,
            wait,
            tried: 0,
            scores: Vec::new(),
            last: None,
            beyond: false,
        })
    }

    fn duration_s(&self) -> f64 {
        self.run.plan.search.duration.as_secs_f64()
    }

    /// One trial at the load asked for.
    fn once(&mut self, args: &BenchArgs) -> Result<(Verdict, FlowResult), Failure> {
        let own = match self.spec {
            FlowSpec::Churn { rate: Some(rate), .. } => self.spec.load(rate).map(Fps::from_raw),
            _ => None,
        };
        let load = match (own, args.flow_logger.load) {
            (Some(own), None) => own,
            (None, Some(load)) => load.resolve(self.size, self.run.link())?,
            (Some(own), Some(load)) => {
                return Err(Failure::usage(format!(
                    "--load {load}: --flows {} says itself how fast it sends ({own}): leave --load out",
                    self.spec
                )))
            }
            (None, None) => {
                return Err(Failure::usage(format!(
                    "--flows {} needs a load: --load 1Mpps, or a share of the link",
                    self.spec
                )))
            }
        };
        let (verdict, conclusion) = match self.trial(self.spec, load, 1)? {
            Some(_) => self.last.clone().unwrap_or((Verdict::Inconclusive, String::new())),
            None => (Verdict::Stopped, "stopped before the end".to_owned()),
        };
        Ok((verdict, self.result(None, conclusion)))
    }

    /// The highest rate of new flows at which no packet record is lost.
    fn search(&mut self, args: &BenchArgs) -> Result<(Verdict, FlowResult), Failure> {
        let FlowSpec::Churn { packets, .. } = self.spec else {
            return Err(Failure::usage(format!("--flows {}: only a churn is searched", self.spec)));
        };
        let per_flow = packets as f64;
        let rate = |load: units::Load| -> Result<f64, Failure> {
            Ok(load.resolve(self.size, self.run.link())?.get() / per_flow)
        };
        let lower = args.search.lower.map(rate).transpose()?.unwrap_or(LOWEST);
        let upper = args.search.upper.map(rate).transpose()?;
        let most = MOST_FLOWS as f64 / self.duration_s() * 0.99;
        let upper = match upper {
            Some(upper) if upper > most => {
                return Err(Failure::usage(format!(
                    "--upper: {upper:.0} flows a second for {} s are more than the {MOST_FLOWS} flows that can be \
                     scored: shorten --duration, or lower it",
                    self.duration_s()
                )))
            }
            Some(upper) => upper,
            None => {
                let streams = self.streams(self.spec)?.0;
                let able = self.run.rig.selftest(&streams, Duration::from_millis(100))?.max_fps.get() / per_flow;
                let link = self.run.link().map_or(f64::INFINITY, |l| l.line_rate(self.size).get() / per_flow);
                (0.9 * able).min(link).min(most)
            }
        };
        let precision = args.search.precision.map_or(PRECISION, |p| p.get());
        let mut search = Descent::new(lower, upper, precision);
        let (mut unsure, mut stopped, mut limited) = (None, false, false);
        'rates: while let Some(rate) = search.next() {
            let mut held = false;
            for attempt in 1..=SCORES {
                let load = Fps::from_raw(rate * per_flow);
                let Some(score_held) = self.trial(self.spec.at_rate(rate), load, attempt)? else {
                    stopped = true;
                    break 'rates;
                };
                held = score_held;
                unsure =
                    self.last.clone().filter(|(verdict, _)| *verdict == Verdict::Inconclusive).map(|(_, text)| text);
                if unsure.is_none() {
                    break;
                }
            }
            if unsure.is_some() && self.beyond {
                // The logger was not asked for this rate, so that it is no bound of its own.
                (limited, unsure) = (true, None);
            } else if unsure.is_some() {
                break;
            }
            search.report(held);
        }
        let (held, not_held) = (search.bounds().passed(), search.bounds().failed());
        let highest = Highest { held_per_s: held, not_held_per_s: not_held };
        let (verdict, text) = match (stopped, unsure, held, not_held) {
            (true, ..) => (Verdict::Stopped, "stopped before the end".to_owned()),
            (_, Some(last), ..) => (Verdict::Inconclusive, GivenUp::Unscored { last }.to_string()),
            (_, _, Some(_), None) => {
                (Verdict::Passed, "the logger holds the highest rate tried; it may hold more (--upper)".to_owned())
            }
            (_, _, Some(_), _) if limited => {
                (Verdict::Passed, "found, and the tester cannot offer more: the logger may hold more".to_owned())
            }
            (_, _, Some(_), _) => (Verdict::Passed, "found".to_owned()),
            (_, _, None, _) if limited => (Verdict::Inconclusive, "the tester offers none of these rates".to_owned()),
            (_, _, None, _) => (Verdict::Failed, "no rate tried was held (--lower)".to_owned()),
        };
        Ok((verdict, self.result(Some(highest), text)))
    }

    /// What both ports send in the next trial, and the stream of the flows.
    fn streams(&mut self, spec: FlowSpec) -> Result<(engine::Streams, Arc<Program>, StreamSpec), Failure> {
        self.tried += 1;
        let mut streams = self.run.streams(self.size.into())?;
        let mut stream = streams.specs[0].clone();
        // What was taught before the trial is not of it: the learning frames keep the plan's headers.
        fresh::own(&mut stream.headers, stream.seed, self.tried);
        stream.seed = stream.seed.wrapping_add(u64::from(self.tried));
        let program = Arc::new(Program::new(&spec, &stream).map_err(Failure::usage)?);
        streams.flows = Some((stream.clone(), Arc::clone(&program)));
        Ok((streams, program, stream))
    }

    /// One trial, scored; whether nothing was missed. `None` when a signal came.
    fn trial(&mut self, spec: FlowSpec, load: Fps, attempt: u32) -> Result<Option<bool>, Failure> {
        let duration_s = self.duration_s();
        let (streams, program, stream) = self.streams(spec)?;
        let frames = (load.get() * duration_s).round() as u64;
        let flows = program.flows(frames);
        if flows > MOST_FLOWS || frames > program.most_frames() {
            return Err(Failure::usage(format!(
                "--flows {spec}: {flows} flows in {duration_s} s are more than the {} that can be scored: shorten \
                 --duration, or lower the rate",
                MOST_FLOWS.min(program.most_frames())
            )));
        }
        self.reader.expect(&program);
        let before = Moment::now(&self.run.rig.clock);
        let trial_spec = TrialSpec::steady(self.size, load, duration_s, Purpose::Single);
        let mut line = self.line("trial", Some(load));
        let progress = &self.progress;
        let record = self.run.trial(&streams, trial_spec, attempt, None, &mut |elapsed| {
            line.left_s = Some((duration_s - elapsed).max(0.0));
            progress.show(&line);
        })?;
        let (Some(record), Some(departed)) = (record, self.run.departed.take()) else { return Ok(None) };
        let moments = [before, Moment::now(&self.run.rig.clock)];
        let (mut line, progress) = (self.line("", Some(load)), &self.progress);
        let (recorded, reading) = self.reader.finish(departed.frames, self.wait, &self.run.stop, &mut |so_far| {
            line.phase = format!("reading records: {so_far} of {} packets", departed.frames);
            progress.show(&line);
        })?;
        if self.run.stop.requested() {
            return Ok(None);
        }
        let template = Template::new(&stream.headers, self.size).map_err(Failure::usage)?;
        let truth = Truth {
            tally: program.tally(departed.frames),
            departed: &departed,
            moments,
            frame_len: template.bytes().len() as u64,
            before_ip: template.offsets().l3 as u32,
        };
        let score = Score::new(recorded, &truth);
        let last = conclusion(&score, &reading, &record);
        let held = score.nothing_missed() && last.0 != Verdict::Inconclusive;
        self.last = Some(last);
        self.beyond = beyond_tester(&record);
        self.scores.push(scored(score, reading, &record, &truth));
        Ok(Some(held))
    }

    fn line(&self, phase: &str, load: Option<Fps>) -> Line {
        Line {
            phase: phase.to_owned(),
            frame_size: Some((self.size.into(), 1, 1)),
            load,
            bounds: (None, None),
            trials: self.scores.len() as u32,
            invalid: self.run.trials.iter().filter(|t| !t.valid()).count() as u32,
            left_s: None,
        }
    }

    fn result(&mut self, highest: Option<Highest>, conclusion: String) -> FlowResult {
        FlowResult {
            logger: self.logger.clone(),
            program: self.spec.to_string(),
            seed: self.run.plan.traffic.seed,
            scores: std::mem::take(&mut self.scores),
            highest,
            conclusion,
        }
    }

    /// Writes the JSON, prints the text.
    fn finish(&self, args: &BenchArgs, verdict: Verdict, result: &FlowResult) -> Result<Exit, Failure> {
        let whole = self.run.result(Vec::new(), Vec::new(), verdict.into());
        let mut json = serde_json::to_value(&whole).map_err(Failure::failed)?;
        json["flow_logger"] = serde_json::to_value(result).map_err(Failure::failed)?;
        let json = serde_json::to_string_pretty(&json).map_err(Failure::failed)?;
        match args.output.json.as_deref() {
            Some(path) if path == std::path::Path::new("-") => out::print(&json),
            path => {
                out::print(&result::text(result, &self.run.trials, &whole.dut, self.size.bytes()));
                if let Some(path) = path {
                    report::write::write_atomic(path, json.as_bytes()).map_err(Failure::machine)?;
                }
            }
        }
        Ok(match verdict {
            Verdict::Passed => Exit::Passed,
            Verdict::Failed => Exit::Failed,
            Verdict::Inconclusive => Exit::Untrusted,
            Verdict::Stopped => Exit::Stopped,
        })
    }
}

/// What a plan's benchmark takes, and this does not.
fn refuse(args: &BenchArgs, traffic: &Traffic) -> Result<(), Failure> {
    let not = |flag: &str, why: &str| Err(Failure::usage(format!("{flag} with --flow-logger: {why}")));
    if traffic.direction == Direction::BothWays {
        let flag = if args.traffic.both_ways { "--both-ways" } else { "a plan of direction both-ways" };
        return not(flag, "flows are sent from the first port to the second");
    }
    if !traffic.field.is_empty() {
        let flag = if args.traffic.fields.is_empty() { "a plan of [[traffic.field]]" } else { "--field" };
        return not(flag, "the flow program says what varies");
    }
    if args.frame_sizes.len() > 1 || args.frame_sizes.iter().any(|frames| frames.mix().is_some()) {
        return not("--frame-sizes", "one size a run");
    }
    let output = &args.output;
    for (flag, given) in [("--markdown", &output.markdown), ("--svg", &output.svg), ("--csv", &output.csv)] {
        if given.is_some() {
            return not(flag, "results are text and --json");
        }
    }
    Ok(())
}

fn scored(score: Score, reading: Reading, trial: &TrialRecord, truth: &Truth<'_>) -> TrialScore {
    let words = |what| match what {
        Difference::Missed => "missed",
        Difference::Duplicated => "duplicated",
        Difference::Miscounted => "miscounted",
        Difference::Invented => "invented",
    };
    let example = |e: &flow::truth::Example| {
        let t = truth.tally.keys().tuple(e.flow);
        format!(
            "{}: {}:{} -> {}:{} protocol {}: {} packets sent, {} recorded",
            words(e.what),
            t.src,
            t.sport,
            t.dst,
            t.dport,
            t.protocol,
            e.sent,
            e.recorded
        )
    };
    TrialScore {
        trial: trial.number,
        new_flows_per_s: truth.flows().min(score.flows.sent) as f64 / trial.real_duration_s.max(1e-9),
        sent_known_within_ns: truth.known_within_ns(),
        examples: score.examples.iter().map(example).collect(),
        reading,
        score,
    }
}
