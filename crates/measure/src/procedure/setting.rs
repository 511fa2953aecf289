//! What a procedure at one frame size goes by: its loads, the throughput, its bounds.

use units::{Fps, Frames};

use crate::{
    plan::ValidPlan,
    schema::{
        outcome::{Outcome, TestOutcome},
        result::SizeResult,
    },
    search::SearchConfig,
};

/// The throughput that tests at one frame size go by.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Known {
    /// Frames/s per direction.
    pub fps: Fps,
    /// No higher load can be offered: the search ended at its maximum.
    pub at_maximum: bool,
    /// Of such: it is the tester that cannot, not the link or the plan.
    pub tester_limited: bool,
    /// Placement of the cores it holds for.
    pub placement: Option<u32>,
}

impl Known {
    /// What a search found at a frame size, when it found a figure.
    pub fn found(size: &SizeResult) -> Option<Self> {
        let at_maximum = matches!(size.outcome, Outcome::AtMaximum | Outcome::TesterLimited);
        if size.outcome != Outcome::Found && !at_maximum {
            return None;
        }
        let tester_limited = size.outcome == Outcome::TesterLimited;
        let placement = size.placement.map(|p| p.class);
        Some(Self { fps: size.throughput_fps?, at_maximum, tester_limited, placement })
    }
}

/// Why a test has no procedure at a frame size.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NoProcedure {
    /// [`TestOutcome::NotRun`]: not to be run here; [`TestOutcome::Inconclusive`]: the tester is not up to it.
    pub outcome: TestOutcome,
    /// Why, in one line.
    pub reason: String,
}

impl From<String> for NoProcedure {
    fn from(reason: String) -> Self {
        Self { outcome: TestOutcome::NotRun, reason }
    }
}

/// Everything a procedure at one frame size needs to know beside its own table of the plan.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Setting {
    /// Frame size, FCS included.
    pub frame_size: Frames,
    /// The highest load, which is the rate back to back.
    pub max: Fps,
    /// The line rate of the link, where its speed is known.
    pub line_rate: Option<Fps>,
    /// The throughput, where there is one.
    pub throughput: Option<Known>,
    /// Placement of the cores that trials have to be in.
    pub placement: Option<u32>,
    /// Invalid trials repeated at one load.
    pub max_repeats: u32,
    /// Most time, seconds.
    pub timeout_s: f64,
    /// Waits around each trial, seconds: counted against the timeout.
    pub overhead_s: f64,
}

impl Setting {
    /// For the frame size of a search: its highest load, its repeats.
    pub fn new(plan: &ValidPlan, config: &SearchConfig, line_rate: Option<Fps>, throughput: Option<Known>) -> Self {
        Self {
            frame_size: config.frame_size,
            max: config.upper,
            line_rate,
            throughput,
            placement: throughput.and_then(|t| t.placement),
            max_repeats: config.max_repeats,
            timeout_s: plan.time_of_a_test().as_secs_f64(),
            overhead_s: config.overhead_s,
        }
    }

    /// The throughput where a load above it can be offered; otherwise why there is nothing to test, by the `clause` that
    /// says so.
    pub(super) fn overloadable(&self, clause: &str) -> Result<Fps, NoProcedure> {
        let known = self.known()?;
        if known.tester_limited {
            let reason = format!(
                "the tester cannot overload the device: it offers no load above {}, which the device forwards; a faster \
                 tester may",
                known.fps
            );
            return Err(NoProcedure { outcome: TestOutcome::Inconclusive, reason });
        }
        if known.at_maximum || known.fps >= self.max {
            let reason = format!(
                "{clause}the throughput is the highest load that can be offered ({}): the device cannot be overloaded",
                known.fps
            );
            return Err(reason.into());
        }
        Ok(known.fps)
    }

    /// The link, from its line rate: for loads that are shares of it.
    pub(super) fn link(&self) -> Option<units::LinkSpeed> {
        let bits = self.frame_size.average_on_wire() * 8.0;
        units::LinkSpeed::new((self.line_rate?.get() * bits).round() as u64).ok()
    }

    pub(super) fn known(&self) -> Result<Known, String> {
        self.throughput.ok_or_else(|| "no throughput was found at this frame size".to_owned())
    }
}
