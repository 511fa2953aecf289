//! What measurements of raw frames, and comparisons of methods, leave.

use host::audit::Finding;
use serde::{Deserialize, Serialize};

use super::{
    run::{RawMeasured, RxMode, TxMode},
    sizes::Slope,
    timing::Timing,
};
use crate::{
    disturbed::{Interference, Judged},
    pingpong::Ended,
    result::{Precision, Stretches, Times},
    steps::{steps, Step},
    tally::Counts,
};

/// Schema of a [`RawResult`].
pub const RAW_SCHEMA: &str = "linerate-latency-raw/1";

/// From where to where a time counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Span {
    /// From before a frame is handed over at one end to when it is received at the other: one way.
    SendToReceive,
    /// From when a frame is there to when it is handed over again.
    ReceiveToSend,
    /// From the kernel's time stamp in the driver that sends to the one in the driver that receives.
    DriverToDriver,
    /// From the NIC's time stamp of sending to the NIC's time stamp of receiving.
    WireToWire,
    /// To another application and back.
    RoundTrip,
}

/// One method at one size.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// How frames or messages went: `software cable`, `memif`, `AF_XDP`, `UDP, blocking`.
    pub method: String,
    /// From where to where its times count.
    pub span: Span,
    /// Where they went out, and where they came in.
    pub ends: (String, String),
    /// What was timed when a frame was sent; `None` of messages.
    pub tx: Option<TxMode>,
    /// What was timed when a frame was received; `None` of messages.
    pub rx: Option<RxMode>,
    /// Bytes of a frame without FCS, or of a message; the most where they differ.
    pub bytes: usize,
    /// The least, where they differ.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub least_bytes: Option<usize>,
    /// Further frames a second that took the same way beside; `None` where none were wanted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub background_fps: Option<f64>,
    /// How many were wanted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub background_asked_fps: Option<f64>,
    /// How long it measured, seconds.
    pub seconds: f64,
    /// Why it ended.
    pub ended: Ended,
    /// How precisely it was to be known, where that was asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub precision: Option<Precision>,
    /// What became of frames or messages.
    pub counts: Counts,
    /// Frames that the port did not take.
    pub refused: u64,
    /// Frames that came back without time stamps, where these count.
    #[serde(default)]
    pub unstamped: u64,
    /// The times.
    pub times: Times,
    /// The same of undisturbed stretches; `None` if the kernel does not say.
    pub undisturbed: Option<Times>,
    /// Stretches.
    pub stretches: Stretches,
    /// What the kernel counted of the thread that measured, and of its CPU.
    #[serde(default)]
    pub interference: Interference,
    /// How the times are distributed.
    pub steps: Vec<Step>,
    /// The first times one by one, in clocks; only where they were asked for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub clocks: Vec<u64>,
}

impl Row {
    /// Of a way of frames.
    pub fn of(
        method: &str,
        span: Span,
        ends: (String, String),
        modes: (TxMode, RxMode),
        bytes: usize,
        measured: RawMeasured,
    ) -> Self {
        let RawMeasured {
            times,
            counts,
            refused,
            unstamped,
            bytes: forwarded,
            background,
            background_asked,
            seconds,
            ended,
            precision,
            clocks,
        } = measured;
        let mut row = Self::of_times(method, span, ends, bytes, &times);
        (row.tx, row.rx) = (Some(modes.0), Some(modes.1));
        // Frames from outside have sizes of their own.
        let (least, most) = forwarded.unwrap_or((bytes, bytes));
        row.bytes = most;
        row.least_bytes = (least != most).then_some(least);
        (row.background_fps, row.background_asked_fps) = (background, background_asked);
        Self { counts, refused, unstamped, seconds, ended, precision, clocks, ..row }
    }

    /// Of times alone.
    pub fn of_times(method: &str, span: Span, ends: (String, String), bytes: usize, times: &Judged) -> Self {
        Self {
            method: method.to_owned(),
            span,
            ends,
            tx: None,
            rx: None,
            bytes,
            least_bytes: None,
            background_fps: None,
            background_asked_fps: None,
            seconds: 0.0,
            ended: Ended::Done,
            precision: None,
            counts: Counts::default(),
            refused: 0,
            unstamped: 0,
            times: Times::of(&times.all),
            undisturbed: times.undisturbed.as_ref().map(Times::of),
            stretches: Stretches { all: times.stretches.0, disturbed: times.stretches.1 },
            interference: times.interference,
            steps: steps(&times.all),
            clocks: Vec::new(),
        }
    }

    /// A percentile of all times, ns; `None` where it is not a figure.
    pub fn ns(&self, percent: f64) -> Option<f64> {
        self.times.percentiles.iter().find(|p| p.percent == percent).and_then(|p| p.ns).map(|ns| ns as f64)
    }
}

/// A method that this machine could not measure.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Missing {
    /// The method.
    pub method: String,
    /// Why.
    pub why: String,
}

/// A measurement of raw frames at one or more sizes, or a comparison of methods.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RawResult {
    /// Of this program.
    pub schema: String,
    /// Version of the program.
    pub linerate_version: String,
    /// When it began.
    pub started_at: String,
    /// Name of this machine.
    pub hostname: String,
    /// Model of its CPU.
    pub cpu_model: String,
    /// Release of its kernel.
    pub kernel: String,
    /// The CPU that the measuring thread was pinned to.
    pub cpu: u32,
    /// Whether memory was locked, so that no page had to be fetched.
    pub memory_locked: bool,
    /// The clock.
    pub timing: Timing,
    /// What was measured.
    pub rows: Vec<Row>,
    /// What could not be.
    pub missing: Vec<Missing>,
    /// What a reader should know: another program polls the same CPU.
    #[serde(default)]
    pub warnings: Vec<String>,
    /// Findings about the host that were open at the start, the worst first; `None` where nobody looked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub findings: Option<Vec<Finding>>,
    /// The line through the medians of three sizes or more of one method.
    pub slope: Option<Slope>,
}

impl RawResult {
    /// A result without measurements.
    pub fn new(cpu: u32) -> Self {
        Self {
            schema: RAW_SCHEMA.to_owned(),
            linerate_version: env!("CARGO_PKG_VERSION").to_owned(),
            started_at: String::new(),
            hostname: String::new(),
            cpu_model: String::new(),
            kernel: String::new(),
            cpu,
            memory_locked: false,
            timing: Timing::default(),
            rows: Vec::new(),
            missing: Vec::new(),
            warnings: Vec::new(),
            findings: None,
            slope: None,
        }
    }

    /// Fits the line through the medians of its sizes.
    pub fn fit(&mut self) {
        let points: Vec<_> = self.rows.iter().filter_map(|row| Some((row.bytes as f64, row.ns(50.0)?))).collect();
        self.slope = Slope::through(&points);
    }

    /// Why it ended: as the worst of its rows did.
    pub fn ended(&self) -> &Ended {
        self.rows.iter().map(|row| &row.ended).max_by_key(|ended| ended.rank()).unwrap_or(&Ended::Stopped)
    }
}
