//! Sends flows that are known one by one, reads what a flow logger recorded, and scores it.

use std::{sync::Arc, time::Duration};

use failure::{Failure, Stop};
use flow::truth::{Difference, Expected, Score};
use measure::{
    attempts::{Ruling, ScoreAttempts},
    bisection::Descent,
    plan::{Direction, Plan, Traffic},
    result::Standing,
    trial::{Purpose, TrialRecord, TrialSpec},
    validity::beyond_tester,
};
use packet::frame::Template;
use report::progress::Line;
use rig::{device::DeviceOptions, Device, MachineOptions};
use traffic::{
    flows::{FlowSpec, Program, MOST_FLOWS},
    stream::StreamSpec,
};
use units::{Fps, FrameSize, Frames, Load, Ratio};

use super::{
    fresh,
    logger::FlowLogger,
    reader::{Reader, Reading},
    result::{conclusion, FlowResult, Highest, ScoredRun, TrialScore},
    truth::{Moment, Truth},
};
use crate::{controller::Controller, display::Display, rig_testbed::RigTestbed};

/// Sending time when none is given.
const DURATION: Duration = Duration::from_secs(10);
/// How long to wait for records when nothing is said.
const WAIT: Duration = Duration::from_secs(90);
/// Relative distance of the bounds at which a search ends, when none is given: each trial waits for the logger.
const PRECISION: f64 = 0.05;
/// The lowest rate of new flows a search tries, when none is given.
const LOWEST: f64 = 1000.0;

/// What is asked of a score.
#[derive(Debug, Clone)]
pub struct ScoreOptions {
    /// Where records are read.
    pub logger: FlowLogger,
    /// What is sent.
    pub program: FlowSpec,
    /// Traffic, link and `[trust]`; the rest of it is not used.
    pub plan: Plan,
    /// Makes the keys of this run its own; absent: one that no other run has.
    pub seed: Option<u64>,
    /// How fast frames are sent, unless the program says so itself.
    pub load: Option<Load>,
    /// Sending time of a trial; absent: ten seconds.
    pub duration: Option<Duration>,
    /// How long to wait for records; absent: 90 s.
    pub wait: Option<Duration>,
    /// At most one frame size; none: the smallest that the headers allow.
    pub frame_sizes: Vec<Frames>,
    /// Of a search: where it begins.
    pub lower: Option<Load>,
    /// Of a search: where it ends.
    pub upper: Option<Load>,
    /// Of a search: relative distance of the bounds at its end.
    pub precision: Option<Ratio>,
    /// The device under test, which is or leads to the logger.
    pub device: DeviceOptions,
    /// Cores and memory.
    pub machine: MachineOptions,
}

/// Sends the flows and scores what was recorded; for a churn without a rate, searches the highest rate that is held.
///
/// # Errors
///
/// Words that do not go together, a logger that cannot be read, or a rig that fails.
pub fn run(options: &ScoreOptions, stop: &Stop, display: &dyn Display) -> Result<ScoredRun, Failure> {
    let mut score = FlowScore::new(options, stop, display)?;
    let (standing, flows) = match options.program {
        FlowSpec::Churn { rate: None, .. } => score.search(options)?,
        _ => score.once(options)?,
    };
    let result = score.controller.result(Vec::new(), Vec::new(), standing);
    Ok(ScoredRun { result, flows, frame_bytes: score.size.bytes() })
}

/// What stays the same from trial to trial.
struct FlowScore<'a> {
    controller: Controller<'a, RigTestbed>,
    reader: Reader,
    spec: FlowSpec,
    logger: String,
    size: FrameSize,
    wait: Duration,
    /// Trials tried so far: each has keys of its own, so that late records of one are none of the next.
    tried: u16,
    scores: Vec<TrialScore>,
    last: Option<(Standing, String)>,
    /// Whether the last trial was more than the tester can offer.
    beyond: bool,
}

impl<'a> FlowScore<'a> {
    fn new(options: &ScoreOptions, stop: &Stop, display: &'a dyn Display) -> Result<Self, Failure> {
        let Plan { traffic, link, trust, .. } = options.plan.clone();
        refuse(&options.frame_sizes, &traffic)?;
        let mut wanted = Plan {
            name: "flow-logger".to_owned(),
            description: "What a flow logger recorded against what was sent".to_owned(),
            source: String::new(),
            traffic,
            link,
            trust,
            ..Plan::default()
        };
        // A second run against a logger that goes on is not to meet the flows of the first.
        wanted.traffic.seed = options.seed.unwrap_or_else(fresh::seed);
        let probe = rig::stream(&wanted.traffic, FrameSize::new(1518)?, 0, Default::default())?;
        let asked = options.frame_sizes.first().and_then(|frames| frames.size());
        let size = asked.unwrap_or_else(|| Template::min_frame_size(&probe.headers));
        // Wrong words are wrong before anything is opened.
        Program::new(&options.program, &rig::stream(&wanted.traffic, size, 0, Default::default())?)
            .map_err(Failure::usage)?;
        wanted.frame_sizes = vec![size.into()];
        wanted.search.duration = options.duration.unwrap_or(DURATION);
        wanted.trust.selftest = false;
        wanted.trust.settle = Duration::ZERO;
        wanted.latency.enabled = false;
        let plan = wanted.validate()?;
        let reader = Reader::start(&options.logger)?;
        let device = Device::parse(&options.device, &plan)?;
        let testbed = RigTestbed::new(plan.clone(), &device, &options.machine, stop)?;
        Ok(Self {
            controller: Controller::new(testbed, plan, display),
            reader,
            spec: options.program,
            logger: options.logger.to_string(),
            size,
            wait: options.wait.unwrap_or(WAIT),
            tried: 0,
            scores: Vec::new(),
            last: None,
            beyond: false,
        })
    }

    fn duration_s(&self) -> f64 {
        self.controller.plan.search.duration.as_secs_f64()
    }

    /// One trial at the load asked for.
    fn once(&mut self, options: &ScoreOptions) -> Result<(Standing, FlowResult), Failure> {
        let own = match self.spec {
            FlowSpec::Churn { rate: Some(rate), .. } => self.spec.load(rate).map(Fps::from_raw),
            _ => None,
        };
        let load = match (own, options.load) {
            (Some(own), None) => own,
            (None, Some(load)) => load.resolve(self.size, self.controller.testbed.link())?,
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
        let (standing, conclusion) = match self.trial(self.spec, load, 1)? {
            Some(_) => self.last.clone().unwrap_or((Standing::NotTrustworthy, String::new())),
            None => (Standing::Stopped, "stopped before the end".to_owned()),
        };
        Ok((standing, self.result(None, conclusion)))
    }

    /// The highest rate of new flows at which no packet record is lost.
    fn search(&mut self, options: &ScoreOptions) -> Result<(Standing, FlowResult), Failure> {
        let FlowSpec::Churn { packets, .. } = self.spec else {
            return Err(Failure::usage(format!("--flows {}: only a churn is searched", self.spec)));
        };
        let per_flow = packets as f64;
        let rate = |load: units::Load| -> Result<f64, Failure> {
            Ok(load.resolve(self.size, self.controller.testbed.link())?.get() / per_flow)
        };
        let lower = options.lower.map(rate).transpose()?.unwrap_or(LOWEST);
        let upper = options.upper.map(rate).transpose()?;
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
                let testbed = &mut self.controller.testbed;
                // After a signal no trial follows.
                let point = testbed.rig.selftest(&streams, Duration::from_millis(100), &testbed.stop)?;
                let able = point.map_or(most, |point| point.max_fps.get() / per_flow);
                let link =
                    self.controller.testbed.link().map_or(f64::INFINITY, |l| l.line_rate(self.size).get() / per_flow);
                (0.9 * able).min(link).min(most)
            }
        };
        let precision = options.precision.map_or(PRECISION, |p| p.get());
        let mut search = Descent::new(lower, upper, precision);
        let (mut unsure, mut stopped, mut limited) = (None, false, false);
        'rates: while let Some(rate) = search.next() {
            let mut attempts = ScoreAttempts::default();
            loop {
                let load = Fps::from_raw(rate * per_flow);
                let Some(held) = self.trial(self.spec.at_rate(rate), load, attempts.attempt())? else {
                    stopped = true;
                    break 'rates;
                };
                match attempts.rule(self.unsure(), self.beyond) {
                    Ruling::Repeat => {}
                    Ruling::Counts => break search.report(held),
                    Ruling::BeyondTester { .. } => {
                        // The logger never saw this rate, so the rate is not a bound of the logger.
                        limited = true;
                        break search.report(false);
                    }
                    Ruling::GiveUp(why) => {
                        unsure = Some(why.to_string());
                        break 'rates;
                    }
                }
            }
        }
        let (held, not_held) = (search.bounds().passed(), search.bounds().failed());
        let highest = Highest { held_per_s: held, not_held_per_s: not_held };
        let (standing, text) = match (stopped, unsure, held, not_held) {
            (true, ..) => (Standing::Stopped, "stopped before the end".to_owned()),
            (_, Some(why), ..) => (Standing::NotTrustworthy, why),
            (_, _, Some(_), None) => (
                Standing::NotDeviceLimit,
                "the logger holds the highest rate tried; it may hold more (--upper)".to_owned(),
            ),
            (_, _, Some(_), _) if limited => (
                Standing::NotDeviceLimit,
                "found, and the tester cannot offer more: the logger may hold more".to_owned(),
            ),
            (_, _, Some(_), _) => (Standing::Completed, "found".to_owned()),
            (_, _, None, _) if limited => {
                (Standing::NotTrustworthy, "the tester offers none of these rates".to_owned())
            }
            (_, _, None, _) => (Standing::CriterionMissed, "no rate tried was held (--lower)".to_owned()),
        };
        Ok((standing, self.result(Some(highest), text)))
    }

    /// Why the last score says nothing about the logger, if so.
    fn unsure(&self) -> Option<&str> {
        let (standing, text) = self.last.as_ref()?;
        (*standing == Standing::NotTrustworthy).then_some(text)
    }

    /// What both ports send in the next trial, and the stream of the flows.
    fn streams(&mut self, spec: FlowSpec) -> Result<(rig::Streams, Arc<Program>, StreamSpec), Failure> {
        self.tried += 1;
        let mut streams = self.controller.testbed.make_streams(self.size.into())?;
        let mut stream = streams.specs[0].clone();
        // What was learned before the trial is not of it: the learning frames keep the plan's headers.
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
        let before = Moment::now(&self.controller.testbed.rig.clock);
        let trial_spec = TrialSpec::steady(self.size, load, duration_s, Purpose::Single);
        let mut line = self.line("trial", Some(load));
        self.controller.testbed.streams = Some(streams);
        let display = self.controller.display;
        let record = self.controller.measure(trial_spec, attempt, None, &mut |elapsed| {
            line.left_s = Some((duration_s - elapsed).max(0.0));
            display.show(&line);
        })?;
        let (Some(record), Some(departed)) = (record, self.controller.testbed.sent_flows.take()) else {
            return Ok(None);
        };
        let moments = [before, Moment::now(&self.controller.testbed.rig.clock)];
        let mut line = self.line("", Some(load));
        let (recorded, reading) =
            self.reader.finish(departed.frames, self.wait, &self.controller.testbed.stop, &mut |so_far| {
                line.phase = format!("reading records: {so_far} of {} packets", departed.frames);
                display.show(&line);
            })?;
        if self.controller.testbed.stop.requested() {
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
        let held = score.nothing_missed() && last.0 != Standing::NotTrustworthy;
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
            invalid: self.controller.trials.iter().filter(|t| !t.valid()).count() as u32,
            left_s: None,
        }
    }

    fn result(&mut self, highest: Option<Highest>, conclusion: String) -> FlowResult {
        FlowResult {
            logger: self.logger.clone(),
            program: self.spec.to_string(),
            seed: self.controller.plan.traffic.seed,
            scores: std::mem::take(&mut self.scores),
            highest,
            conclusion,
        }
    }
}

/// What the plan of a benchmark may have, and the score of a flow logger has no use for.
fn refuse(frame_sizes: &[Frames], traffic: &Traffic) -> Result<(), Failure> {
    let why = if traffic.direction == Direction::BothWays {
        "traffic.direction both-ways: a score sends flows from the first port to the second only"
    } else if !traffic.field.is_empty() {
        "traffic.field: the flow program (--flows) says what varies in a score: leave the fields out"
    } else if frame_sizes.len() > 1 || frame_sizes.iter().any(|frames| frames.mix().is_some()) {
        "--frame-sizes: a score has one frame size: name one"
    } else {
        return Ok(());
    };
    Err(Failure::usage(why))
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
