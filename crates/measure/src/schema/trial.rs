//! One trial: what was asked for, what was counted, and whether it counts as evidence.

use std::{collections::BTreeMap, time::Duration};

use serde::{Deserialize, Serialize};
use units::{Fps, Frames, Nanos, Ratio};

use super::shape::{LastLost, LoadShape, Outage, ReplayCounts, WindowSummary};
pub use super::{
    delay::{IpdvSummary, LatencySummary},
    interference::{Interference, LcoreInterference, LcoreRole, Scheduling},
};
use super::{
    evidence::SliceEvidence,
    lab::{Hop, SwitchThread},
    power::Power,
};

/// A load is known by one frame in a thousand.
const KNOWN_BY: f64 = 1e-3;

/// What a trial is asked to be.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct TrialSpec {
    /// Frame size, FCS included, or the mix; of a replay the mean.
    pub frame_size_bytes: Frames,
    /// Intended load per direction, frames/s.
    pub load_fps: Fps,
    /// Seconds of sending.
    pub duration_s: f64,
    /// Why it is run.
    pub purpose: Purpose,
    /// How the frames are spread over the duration.
    #[serde(default, skip_serializing_if = "LoadShape::is_steady")]
    pub shape: LoadShape,
    /// Length of the windows that delays are summed up in beside the whole, seconds; absent: only the whole.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window_s: Option<f64>,
    /// Seconds that a full buffer of the device takes to empty: residual frames are waited for so much longer than
    /// `trust.residual`, and the next trial begins no sooner after that.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub drain_s: f64,
    /// The most loss that any goal of the search tolerates. A device that loses more than that, polling gaps aside, of a
    /// load that the tester offered only in part would lose it of all of it: such a trial counts. `None`: it does not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tolerated_loss: Option<Ratio>,
    /// The loss that every goal of the search tolerates. With no more than that a trial passes, whoever lost the frames:
    /// polling gaps that explain them do not make it invalid. `None`: they do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub passing_loss: Option<Ratio>,
    /// Judged by the slices in which nobody was away, instead of as a whole.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub by_slices: bool,
    /// A trial that passes counts at the load that the tester offered, somewhat less than this one.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub at_offered: bool,
}

fn is_zero(seconds: &f64) -> bool {
    *seconds == 0.0
}

impl TrialSpec {
    /// A trial of evenly spaced frames, without windows.
    pub fn steady(frames: impl Into<Frames>, load_fps: Fps, duration_s: f64, purpose: Purpose) -> Self {
        let frame_size_bytes = frames.into();
        let shape = LoadShape::Steady;
        let (window_s, drain_s, tolerated_loss, passing_loss) = (None, 0.0, None, None);
        Self {
            frame_size_bytes,
            load_fps,
            duration_s,
            purpose,
            shape,
            window_s,
            drain_s,
            tolerated_loss,
            passing_loss,
            by_slices: false,
            at_offered: false,
        }
    }

    /// [`drain_s`](Self::drain_s) as a time.
    pub fn drain(&self) -> Duration {
        Duration::try_from_secs_f64(self.drain_s).unwrap_or_default()
    }
}

/// Why a trial is run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Purpose {
    /// Not counted: caches and learning tables fill.
    Warmup,
    /// Moves the bounds of a search.
    Search,
    /// Repeats a lossy trial of a search at the same load (TST009 loss verification).
    Verification,
    /// Latency, PDV and IPDV at the throughput found.
    AtThroughput,
    /// Asked for by itself (`linerate trial`).
    Single,
    /// What the tester can do with no DUT.
    SelfTest,
    /// A trial of a test besides the throughput: frame loss, back-to-back frames and the rest.
    Test,
}

/// Everything counted in one trial: integers are the facts, ratios are derived from them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TrialRecord {
    /// Number within the run, from 1.
    pub number: u32,
    /// What was asked.
    pub spec: TrialSpec,
    /// Which try at this spec this is, from 1; more than 1 when earlier ones were invalid.
    pub attempt: u32,
    /// Seconds of sending by CLOCK_MONOTONIC, first poll to last frame due.
    pub real_duration_s: f64,
    /// One entry a direction (one way: one; both ways: two).
    pub directions: Vec<DirectionCounts>,
    /// What disturbed the tester and, when built in, the DUT.
    pub interference: Interference,
    /// What the built-in DUT counted over the trial; `None` for an outside one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dut: Option<DutReport>,
    /// What the polling threads of a lab's switch did.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub switch_threads: Vec<SwitchThread>,
    /// What its slices show; `None` of a trial without slices.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub evidence: Option<SliceEvidence>,
    /// What the machine took, and how hot it was; `None` if it has no sensors.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub power: Option<Power>,
    /// Rules broken; empty when the trial is valid evidence.
    pub violations: Vec<Violation>,
}

/// What the built-in data plane counted over a trial. Frames unless said.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct DutReport {
    /// Taken in, learning and foreign frames included.
    pub rx_frames: u64,
    /// Sent out.
    pub tx_frames: u64,
    /// Inside at the end.
    pub held_frames: u64,
    /// Taken in for itself: ARP, echo requests.
    #[serde(default)]
    pub punted_frames: u64,
    /// Made by itself: `rx + originated = tx + drops + punted + held`.
    #[serde(default)]
    pub originated_frames: u64,
    /// Dropped, by reason; reasons that dropped none are left out.
    pub drops: BTreeMap<String, u64>,
    /// The function's own counters by name, such as `impair-lost`.
    pub counters: BTreeMap<String, u64>,
    /// Its nodes, in the order frames meet them.
    pub nodes: Vec<NodeReport>,
    /// Polls that found frames.
    pub busy_polls: u64,
    /// Polls that found none.
    pub idle_polls: u64,
    /// Ticks of the clock spent in polls that found frames.
    #[serde(default)]
    pub busy_clocks: u64,
    /// Ticks spent in polls that found none.
    #[serde(default)]
    pub idle_clocks: u64,
}

/// One node of the built-in data plane over a trial.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct NodeReport {
    /// Its name.
    pub name: String,
    /// Bursts handled.
    pub calls: u64,
    /// Frames handled.
    pub vectors: u64,
    /// Ticks of the clock spent.
    pub clocks: u64,
}

/// Counts of one direction of one trial. Frames unless said.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct DirectionCounts {
    /// Sending port, as named by the user.
    pub from: String,
    /// Receiving port, as named by the user.
    pub to: String,
    /// Frames that the intended load asked for in the real duration.
    pub intended: u64,
    /// Frames the sending port accepted: the offered load.
    pub sent: u64,
    /// Frames due that the port refused because its queue was full: the link fell short. Count as loss.
    pub refused: u64,
    /// Frames due that the tester did not try to send in time: the tester fell short.
    pub skipped: u64,
    /// Stamped frames of this direction and trial that came back, duplicates excluded. Of a replay all that came, up to
    /// the number sent.
    pub received: u64,
    /// Extra copies.
    pub duplicates: u64,
    /// Frames whose sequence is below the highest already seen (RFC 4737 type-P-reordered).
    pub reordered: u64,
    /// Frames that came 65,536 or more behind the highest sequence: too late to tell a first arrival from a copy. They
    /// count as lost.
    #[serde(default)]
    pub late: u64,
    /// `sent - received`.
    pub lost: u64,
    /// Frames at the receiving port without this trial's stamp.
    pub foreign: u64,
    /// Stamped frames of the wrong length.
    pub wrong_length: u64,
    /// Stamped frames of this trial that came to a port they were not expected at.
    pub misdirected: u64,
    /// Received layer-2 bytes, FCS counted, of the `received` frames; of a replay those of the extra ones, too.
    pub received_bytes: u64,
    /// The sending port's own counter of frames out over the trial, when it has one.
    pub port_tx: Option<u64>,
    /// The receiving port's own counter of frames in over the trial, when it has one.
    pub port_rx: Option<u64>,
    /// The receiving port's own counter of frames missed over the trial, when it has one.
    pub port_missed: Option<u64>,
    /// Seconds from the first to the last frame sent.
    pub tx_span_s: f64,
    /// One-way delay; `None` when nothing came back or the clock cannot be trusted.
    pub latency: Option<LatencySummary>,
    /// The last frame that was lost; `None` when none was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_lost: Option<LastLost>,
    /// The longest run of lost frames; `None` when none was lost.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outage: Option<Outage>,
    /// Delays window by window, where the trial asked for windows.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub windows: Vec<WindowSummary>,
    /// What else was counted of a replay, where the trial is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replay: Option<ReplayCounts>,
    /// What each port on the way has counted, in the order in which frames pass; empty where no lab was measured.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hops: Vec<Hop>,
}

impl DirectionCounts {
    /// Lost and refused frames over offered ones: what a goal's loss ratio is held against. Frames that the tester skipped
    /// were not offered.
    pub fn loss_ratio(&self) -> f64 {
        ratio(self.lost.saturating_add(self.refused), self.offered())
    }

    /// Frames offered: due, and not skipped by the tester.
    pub fn offered(&self) -> u64 {
        self.intended.saturating_sub(self.skipped)
    }
}

/// A part of a whole; zero of none.
fn ratio(part: u64, whole: u64) -> f64 {
    if whole == 0 {
        0.0
    } else {
        part as f64 / whole as f64
    }
}

/// A validity rule that a trial broke, with its evidence.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Violation {
    /// Which rule.
    pub rule: Rule,
    /// What was seen, in figures, and what to do about it: one line.
    pub text: String,
}

/// The validity rules (`docs/trial-rules.md`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Rule {
    /// The tester offered less than intended by more than 0.1 %, and not because the link was full.
    TesterShort,
    /// The real duration was off by more than 1 %.
    Stretched,
    /// The load is above the tester's self-test maximum: not run.
    TesterLimited,
    /// Polling gaps of a tester or built-in DUT lcore explain the loss.
    Interrupted,
    /// A lcore was away so long that the load was not what was asked, lossy or not.
    Stalled,
    /// Counts do not add up.
    Counters,
    /// TSC and CLOCK_MONOTONIC disagree, or the TSC is not invariant: latency withheld, loss still counts.
    Clock,
    /// The cores in use were moved during the trial.
    Moved,
}

impl Rule {
    /// Whether a trial that broke this rule is invalid. A clock that cannot be trusted only withholds delays.
    pub fn invalidates(self) -> bool {
        match self {
            Self::Clock => false,
            Self::TesterShort
            | Self::Stretched
            | Self::TesterLimited
            | Self::Interrupted
            | Self::Stalled
            | Self::Counters
            | Self::Moved => true,
        }
    }
}

impl TrialRecord {
    /// Whether the trial is evidence about the DUT.
    pub fn valid(&self) -> bool {
        !self.violations.iter().any(|v| v.rule.invalidates())
    }

    /// Loss ratio over all directions, refused frames counted as lost (RFC 9971: aggregated over all outputs). Frames that
    /// the tester skipped were not offered.
    pub fn loss_ratio(&self) -> f64 {
        let sum = |of: fn(&DirectionCounts) -> u64| self.directions.iter().map(of).fold(0u64, u64::saturating_add);
        ratio(sum(|d| d.lost.saturating_add(d.refused)), sum(DirectionCounts::offered))
    }

    /// The load that the trial counts for, per direction: the one asked for, less what the tester skipped.
    pub fn offered_load(&self) -> Fps {
        let sum = |of: fn(&DirectionCounts) -> u64| self.directions.iter().map(of).fold(0u64, u64::saturating_add);
        match ratio(sum(|d| d.skipped), sum(|d| d.intended)) {
            short if short <= KNOWN_BY => self.spec.load_fps,
            short => Fps::from_raw(self.spec.load_fps.get() * (1.0 - short)),
        }
    }

    /// The least share of its load that the tester offered in any direction: 1 where no more than one frame in a thousand lacks.
    pub fn least_offered(&self) -> f64 {
        let most = self.directions.iter().map(|d| ratio(d.skipped, d.intended)).fold(0.0, f64::max);
        if most <= KNOWN_BY {
            1.0
        } else {
            1.0 - most
        }
    }

    /// Whether the tester was away in all of the trial: frames were due, and it tried to send none of them.
    pub fn nothing_offered(&self) -> bool {
        self.directions.iter().any(|d| d.intended > 0) && self.directions.iter().all(|d| d.sent + d.refused == 0)
    }

    /// Frames received in all directions.
    pub fn received(&self) -> u64 {
        self.directions.iter().map(|d| d.received).sum()
    }

    /// Frames lost or refused in all directions.
    pub fn lost(&self) -> u64 {
        self.directions.iter().map(|d| d.lost + d.refused).sum()
    }

    /// Received frames per second of real duration, per direction (mean over directions).
    pub fn forwarding_rate(&self) -> Fps {
        let n = self.directions.len().max(1) as f64;
        let received: u64 = self.directions.iter().map(|d| d.received).sum();
        Fps::from_raw(received as f64 / n / self.real_duration_s)
    }

    /// Offered frames per second of real duration, per direction (mean over directions).
    pub fn offered_rate(&self) -> Fps {
        let n = self.directions.len().max(1) as f64;
        let sent: u64 = self.directions.iter().map(|d| d.sent).sum();
        Fps::from_raw(sent as f64 / n / self.real_duration_s)
    }

    /// How long the sending really took.
    pub fn real_duration(&self) -> Nanos {
        Nanos((self.real_duration_s * 1e9) as u64)
    }
}
