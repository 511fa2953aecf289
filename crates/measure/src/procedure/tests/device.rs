//! A device that forwards so much, holds so much, and knows the shapes of loads.

use units::{Fps, FrameSize, LinkSpeed};

use crate::{
    plan::{Plan, Test, ValidPlan},
    procedure::{for_test, Ask, Findings, Known, Setting},
    shape::{LastLost, LoadShape, Outage, WindowSummary},
    sim::{SimDut, SimSetup},
    trial::{Rule, TrialRecord, TrialSpec, Violation},
};

/// Line rate of 64-byte frames at 10 Gbit/s.
pub const LINE: f64 = 14_880_952.380_952_38;

pub struct Device {
    pub capacity: f64,
    pub queue: f64,
    pub recovery_s: f64,
    /// It loses as many at any load.
    pub always: u64,
    /// Frames/s the tester offers.
    pub tester: f64,
    /// Share of the frames due that it skips, none of them beyond what is tolerated.
    pub skips: f64,
    /// Frames of the longest burst that the tester sends without a break.
    pub longest: u64,
    /// Spans of sending time in which nothing is forwarded.
    pub dead: Option<(f64, f64)>,
    /// Growth of every delay, ns a second of sending.
    pub creep: f64,
    pub sim: SimDut,
    pub sent_s: f64,
}

impl Device {
    pub fn new(capacity: f64, queue: f64) -> Self {
        // Faster than anything asked of it: what is lost is this file's to say.
        let sim = SimSetup::new(1e15, 1).start();
        let tester = f64::INFINITY;
        Self {
            capacity,
            queue,
            recovery_s: 0.0,
            always: 0,
            tester,
            skips: 0.0,
            longest: u64::MAX,
            dead: None,
            creep: 0.0,
            sim,
            sent_s: 0.0,
        }
    }

    /// Frames lost, and when the last of them left.
    fn lost(&self, spec: &TrialSpec) -> (f64, f64) {
        let (load, time) = (spec.load_fps.get(), spec.duration_s);
        let over = |load: f64, time: f64| ((load - self.capacity) * time - self.queue).max(0.0);
        match spec.shape {
            LoadShape::Steady | LoadShape::Replay { .. } => (over(load, time), time),
            LoadShape::Burst { frames } => {
                let burst_s = frames as f64 / load;
                ((frames as f64 - self.capacity * burst_s - self.queue).max(0.0).floor(), time)
            }
            LoadShape::Bursts { frames, burst_fps } => {
                let held = f64::from(frames) * (1.0 - self.capacity / burst_fps.get()) - self.queue;
                (over(load, time).max(held.max(0.0) * load * time / f64::from(frames)), time)
            }
            LoadShape::Step { step_s, then_fps } => {
                let first = over(load, step_s);
                if then_fps.get() > self.capacity {
                    (first + over(then_fps.get(), time - step_s), time)
                } else if first > 0.0 {
                    (first + self.recovery_s * then_fps.get(), step_s + self.recovery_s)
                } else {
                    (0.0, 0.0)
                }
            }
        }
    }

    pub fn run(&mut self, spec: &TrialSpec) -> TrialRecord {
        let mut record = self.sim.run(spec);
        let (mut lost, mut last_s) = self.lost(spec);
        let until = self.sent_s + spec.duration_s;
        let gone = self.dead.map(|(a, b)| (a.max(self.sent_s), b.min(until))).filter(|(a, b)| a < b);
        if let Some((a, b)) = gone {
            lost += (b - a) * spec.load_fps.get();
            last_s = b - self.sent_s;
        }
        let d = &mut record.directions[0];
        if let LoadShape::Step { step_s, then_fps } = spec.shape {
            d.sent = (spec.load_fps.get() * step_s + then_fps.get() * (spec.duration_s - step_s)).round() as u64;
            d.intended = d.sent;
        }
        d.lost = (lost.round() as u64 + self.always).min(d.sent);
        d.received = d.sent - d.lost;
        d.last_lost = (d.lost > 0).then_some(LastLost { sequence: 0, departed_s: last_s });
        d.outage = gone.map(|(a, b)| Outage {
            lost: d.lost,
            from_s: a - self.sent_s,
            to_s: (b < until).then_some(b - self.sent_s),
        });
        if let Some(window_s) = spec.window_s {
            let windows = (spec.duration_s / window_s).round() as u32;
            let window = |i: u32| {
                let from_s = f64::from(i) * window_s;
                let p50 = 10_000 + ((self.sent_s + from_s) * self.creep) as u64;
                let (to_s, received) = (from_s + window_s, (spec.load_fps.get() * window_s) as u64);
                let (min_ns, pdv_p99_9_ns) = (p50 - 1000, 2000);
                WindowSummary { from_s, to_s, received, min_ns, p50_ns: p50, pdv_p99_9_ns, ..WindowSummary::default() }
            };
            d.windows = (0..windows).map(window).collect();
        }
        d.skipped = (d.sent as f64 * self.skips) as u64;
        d.sent -= d.skipped;
        d.received = d.received.min(d.sent - d.lost);
        let long = matches!(spec.shape, LoadShape::Burst { frames } if frames > self.longest);
        if spec.load_fps.get() > self.tester || long {
            d.skipped = if long { d.sent / 2 } else { d.sent - (self.tester * spec.duration_s) as u64 };
            d.sent -= d.skipped;
            (d.lost, d.received) = (0, d.sent);
            record.violations = vec![Violation { rule: Rule::TesterShort, text: "too slow".to_owned() }];
        }
        self.sent_s = until;
        record
    }
}

/// A valid plan of one test.
pub fn plan(test: &str, more: &str) -> ValidPlan {
    let toml = format!("frame_sizes = [64]\ntests = [{test:?}]\nlink.speed = '10G'\n{more}");
    Plan::from_toml(&toml).unwrap().validate().unwrap()
}

/// 64 bytes over 10 Gbit/s, with a throughput.
pub fn setting(throughput: Option<f64>) -> Setting {
    let line = "10G".parse::<LinkSpeed>().unwrap().line_rate(FrameSize::MIN);
    let known = |fps: f64| Known {
        fps: Fps::from_raw(fps),
        at_maximum: fps >= line.get(),
        tester_limited: false,
        placement: None,
    };
    Setting {
        frame_size: FrameSize::MIN.into(),
        max: line,
        line_rate: Some(line),
        throughput: throughput.map(known),
        placement: None,
        max_repeats: 10,
        timeout_s: 86_400.0,
        overhead_s: 7.0,
    }
}

/// Runs a test to its end, within so many trials.
pub fn drive(device: &mut Device, test: Test, plan: &ValidPlan, setting: &Setting) -> (Findings, Vec<TrialRecord>) {
    let mut procedure = for_test(test, plan, setting).unwrap();
    let mut made = Vec::new();
    for _ in 0..10_000 {
        let spec = match procedure.wanted() {
            Ask::Done => return (procedure.so_far(), made),
            Ask::Run(spec) | Ask::Event { spec, .. } => spec,
        };
        let record = device.run(&spec);
        procedure.report(&record);
        made.push(record);
    }
    panic!("{test} does not end")
}
