//! What a measurement found, as it is kept.

use host::audit::Finding;
use serde::{Deserialize, Serialize};

use crate::{
    background::Background,
    disturbed::{Interference, Judged},
    open_loop::{OpenLoopOptions, OpenMeasured},
    pingpong::{Ended, Measured, PingPongOptions},
    socket::{Transport, Wait},
    stamps::Split,
    steps::{steps, Step},
    summary::{uncertainty, Samples},
    tally::Counts,
    throughput::{self, Throughput},
};

pub use crate::summary::{Precision, Times};

/// Schema of a [`LatencyResult`].
pub const LATENCY_SCHEMA: &str = "linerate-latency/1";

/// A rate below this share of what was asked for was not kept.
const KEPT: f64 = 0.98;

/// Stretches of time in which the measuring thread ran, by whether something took its CPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Stretches {
    /// All.
    pub all: u64,
    /// Those in which the thread waited for its CPU for more than 50 us, and 4 us each time that it was woken.
    pub disturbed: u64,
}

/// What an open loop has beside its round trips, which count from the moment at which a message was due.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct OpenLoop {
    /// Messages a second that were asked for.
    pub asked_rate: f64,
    /// Messages that the socket took, those that asked for no reply too.
    #[serde(default)]
    pub messages: u64,
    /// The same a second.
    pub rate: f64,
    /// Each Nth message asked for a reply.
    pub reply_every: u32,
    /// The most by which the sender was late, ns.
    pub late_ns: u64,
    /// Messages that the socket did not take.
    pub refused: u64,
    /// Messages that were due and not sent when the time was over.
    #[serde(default)]
    pub unsent: u64,
    /// Round trips from the moment at which a message really went out: what hides the waits of a sender that was late.
    pub from_sending: Times,
    /// Round trips of a closed loop before it, and replies a second.
    pub closed_loop: Times,
    /// Replies a second of the closed loop.
    pub closed_rate: f64,
}

impl OpenLoop {
    /// Whether the messages went out at the rate that was asked for. If not, times grow for as long as it lasts.
    pub fn is_kept(&self) -> bool {
        self.unsent == 0 && self.rate >= self.asked_rate * KEPT
    }
}

/// A measurement of round trips.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LatencyResult {
    /// Of this program.
    pub schema: String,
    /// Version of the program.
    pub linerate_version: String,
    /// UDP or TCP.
    pub transport: Transport,
    /// How replies were waited for.
    pub wait: Wait,
    /// The server.
    pub server: String,
    /// This end.
    pub local: String,
    /// The least and the most bytes of a message.
    pub bytes: (usize, usize),
    /// Messages that went out before their replies were awaited.
    pub burst: u32,
    /// When it began.
    pub started_at: String,
    /// Name of this machine.
    pub hostname: String,
    /// Model of its CPU.
    pub cpu_model: String,
    /// Release of its kernel.
    pub kernel: String,
    /// The CPU that the measuring thread was pinned to.
    pub cpu: Option<u32>,
    /// How long it measured, seconds, without the warm-up.
    pub seconds: f64,
    /// Why it ended.
    pub ended: Ended,
    /// What became of the messages.
    pub counts: Counts,
    /// From before the call that sent to after the call that received.
    pub round_trip: Times,
    /// The same of undisturbed stretches; `None` if the kernel does not say.
    pub undisturbed: Option<Times>,
    /// Stretches.
    pub stretches: Stretches,
    /// What the kernel counted of the threads that measured, and of their CPUs.
    #[serde(default)]
    pub interference: Interference,
    /// How the round trips are distributed.
    #[serde(default)]
    pub steps: Vec<Step>,
    /// What a reading of the clock takes, ns: one is in each sample.
    pub clock_ns: f64,
    /// Clients at once.
    #[serde(default = "one")]
    pub clients: u32,
    /// Whether memory was locked, so that no page had to be fetched.
    #[serde(default)]
    pub memory_locked: bool,
    /// Load that there was beside.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub background: Option<Background>,
    /// Where the device was to be polled: whether it could be.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub napi: Option<bool>,
    /// Parts of a round trip by the kernel's time stamps.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub split: Option<Split>,
    /// Time stamps were wanted, and the kernel made none.
    #[serde(default)]
    pub no_stamps: bool,
    /// Why round trips could not be split by time stamps, where that was wanted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub split_failed: Option<String>,
    /// Findings about the host that were open at the start, the worst first; `None` where nobody looked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub findings: Option<Vec<Finding>>,
    /// How precisely median and 99th percentile were to be known, as a share, and how precisely they are; `None` where nothing was
    /// asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub precision: Option<Precision>,
    /// When each of the first messages went out and its reply came, ns after the first; only where they were asked for.
    #[serde(skip)]
    pub log: Vec<(u64, u64)>,
    /// Of an open loop; `None` of a closed one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub open_loop: Option<OpenLoop>,
    /// An open loop was asked for, and it ended in the closed one that goes before: all figures are of that.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub before_open_loop: bool,
    /// Where messages went out as fast as they could: `counts` and round trips are of the few that asked for a reply.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub throughput: Option<Throughput>,
}

impl LatencyResult {
    /// A result without measurements; `None` if there is too little memory.
    pub fn new(
        (transport, wait): (Transport, Wait),
        (server, local): (String, String),
        options: &PingPongOptions,
    ) -> Option<Self> {
        Some(Self {
            schema: LATENCY_SCHEMA.to_owned(),
            linerate_version: env!("CARGO_PKG_VERSION").to_owned(),
            transport,
            wait,
            server,
            local,
            bytes: (*options.size.start(), *options.size.end()),
            burst: options.burst,
            started_at: String::new(),
            hostname: String::new(),
            cpu_model: String::new(),
            kernel: String::new(),
            cpu: None,
            seconds: 0.0,
            ended: Ended::Done,
            counts: Counts::default(),
            round_trip: Times::of(&Samples::new()?),
            undisturbed: None,
            stretches: Stretches::default(),
            interference: Interference::default(),
            steps: Vec::new(),
            clock_ns: clock_ns(),
            clients: 1,
            memory_locked: false,
            background: None,
            napi: None,
            split: None,
            no_stamps: false,
            split_failed: None,
            findings: None,
            precision: options.precision.map(|asked| Precision { asked, reached: None }),
            log: Vec::new(),
            open_loop: None,
            before_open_loop: false,
            throughput: None,
        })
    }

    /// Takes over what was measured.
    pub fn take(&mut self, measured: Measured) {
        self.seconds = measured.seconds;
        self.ended = measured.ended;
        self.counts = measured.counts;
        self.times(&measured.times);
        self.log = measured.log;
    }

    /// Takes over what was sent as fast as it could.
    pub fn take_throughput(&mut self, measured: throughput::Measured) {
        self.seconds = measured.seconds;
        self.ended = measured.ended;
        self.counts = measured.counts;
        self.round_trip = Times::of(&measured.times);
        self.steps = steps(&measured.times);
        self.throughput = Some(measured.sent);
    }

    /// Takes over what an open loop measured, behind a closed one.
    pub fn take_open(&mut self, measured: &OpenMeasured, closed: &Measured, options: &OpenLoopOptions) {
        self.seconds = measured.seconds;
        self.ended = measured.ended.clone();
        self.counts = measured.counts;
        self.times(&measured.intended);
        let mut open = OpenLoop {
            asked_rate: options.rate,
            messages: measured.messages,
            rate: measured.rate,
            reply_every: options.reply_every,
            late_ns: measured.late_ns,
            refused: measured.refused,
            unsent: measured.unsent,
            from_sending: Times::of(&measured.actual.all),
            closed_loop: Times::of(&closed.times.all),
            closed_rate: closed.rate(),
        };
        if !open.is_kept() {
            // Each time is that of the message before and a little more.
            let all = [Some(&mut self.round_trip), self.undisturbed.as_mut(), Some(&mut open.from_sending)];
            all.into_iter().flatten().for_each(Times::leave_out_intervals);
        }
        self.open_loop = Some(open);
    }

    fn times(&mut self, times: &Judged) {
        let (all, disturbed) = times.stretches;
        self.round_trip = Times::of(&times.all);
        if let Some(precision) = &mut self.precision {
            precision.reached = uncertainty(&times.all);
        }
        self.undisturbed = times.undisturbed.as_ref().map(Times::of);
        self.stretches = Stretches { all, disturbed };
        self.interference = times.interference;
        self.steps = steps(&times.all);
    }
}

fn one() -> u32 {
    1
}

/// What a reading of the clock takes, ns: the fastest of several rows of readings.
pub fn clock_ns() -> f64 {
    const READINGS: u32 = 1000;
    let row = |_| {
        let begun = std::time::Instant::now();
        (0..READINGS).for_each(|_| {
            std::hint::black_box(std::time::Instant::now());
        });
        begun.elapsed().as_secs_f64() * 1e9 / f64::from(READINGS)
    };
    (0..20).map(row).fold(f64::INFINITY, f64::min)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_hold_every_percentile_and_a_clock_has_its_price() {
        let mut samples = Samples::new().unwrap();
        (1..=500).for_each(|ns| samples.add(ns));
        let times = Times::of(&samples);
        assert_eq!((times.samples, times.percentiles.len()), (500, crate::summary::PERCENTILES.len()));
        assert!((times.mean_ns.unwrap() - 250.5).abs() < 1.0, "{times:?}");
        let ns = clock_ns();
        assert!((1.0..100_000.0).contains(&ns), "{ns}");
    }
}
