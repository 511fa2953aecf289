//! The tests of the standards beside the throughput search, each a state machine: asked for the next trial, told what it
//! gave, no I/O and no clock.
//!
//! A [`Procedure`] sees to what all of them need: invalid trials repeated within a bound, loads beyond the tester, a
//! device that has gone silent, an end in bounded time. The steps of each test are in a module of its own, with what it
//! finds.

mod back_to_back;
mod bursty;
mod forwarding_rate;
mod frame_loss;
mod guard;
mod latency_profile;
mod pdv;
mod recovery;
mod reset;
mod soak;
mod spread;

use serde::{Deserialize, Serialize};
use units::{Fps, Frames};

pub use back_to_back::BackToBack;
pub use bursty::{BurstPoint, Bursty};
pub use forwarding_rate::{ForwardingPoint, ForwardingRate};
pub use frame_loss::{FrameLoss, LossPoint, NoPoint};
pub use guard::{Ask, Findings, Procedure};
pub use latency_profile::{LatencyPoint, LatencyProfile};
pub use pdv::{Pdv, PdvDirection, WindowSpread};
pub use recovery::{Recovery, RecoveryTrial};
pub use reset::{Reset, ResetTrial};
pub use soak::{Segment, Soak};
pub use spread::{Spread, Trend};

use crate::{
    addresses::Addresses,
    plan::{Test, ValidPlan},
    result::{Outcome, SizeResult},
    search::SearchConfig,
};

/// How a test ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TestOutcome {
    /// Run to its end.
    Done,
    /// Not run: the standard does not ask for it here, or there is no throughput to go by.
    NotRun,
    /// The answer is the highest that was tried, or near it: the device does at least this.
    AtMaximum,
    /// Even the least that was tried lost frames.
    BelowMinimum,
    /// The tester cannot offer what the test asks for.
    TesterLimited,
    /// Nothing came back.
    NoTraffic,
    /// Run to its end, and a criterion was not met.
    Failed,
    /// Too many trials could not be trusted, or it took too long.
    Inconclusive,
    /// Stopped by the user or a fault before its end; what was measured is kept.
    Interrupted,
}

/// What a test found. Loads and rates are per direction.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Found {
    /// The test was not run.
    Nothing,
    /// RFC 2544 §26.3.
    FrameLoss(FrameLoss),
    /// RFC 9004.
    BackToBack(BackToBack),
    /// RFC 2544 §26.5.
    Recovery(Recovery),
    /// RFC 6201.
    Reset(Reset),
    /// RFC 2544 §21.
    Bursty(Bursty),
    /// RFC 2889 §5.6.
    ForwardingRate(ForwardingRate),
    /// RFC 2544 §26.2.
    LatencyProfile(LatencyProfile),
    /// RFC 5481.
    Pdv(Pdv),
    /// A load for hours.
    Soak(Soak),
    /// RFC 2889 §5.7, §5.8.
    Addresses(Addresses),
}

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
    fn overloadable(&self, clause: &str) -> Result<Fps, NoProcedure> {
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
    fn link(&self) -> Option<units::LinkSpeed> {
        let bits = self.frame_size.average_on_wire() * 8.0;
        units::LinkSpeed::new((self.line_rate?.get() * bits).round() as u64).ok()
    }

    fn known(&self) -> Result<Known, String> {
        self.throughput.ok_or_else(|| "no throughput was found at this frame size".to_owned())
    }
}

/// The procedure of a test at one frame size. Errors with the reason when it is not to be run here.
pub fn for_test(test: Test, plan: &ValidPlan, setting: &Setting) -> Result<Procedure, NoProcedure> {
    let not = |why: &str| Err(NoProcedure::from(why.to_owned()));
    if test.is_of_one_size() && setting.frame_size.size().is_none() {
        return not("it is of one frame size, and this is a mix");
    }
    let steps: Box<dyn guard::Steps> = match test {
        Test::Throughput | Test::Latency => return not("a search, not a procedure"),
        Test::AddressCaching | Test::AddressLearning => return not("rounds between three ports"),
        Test::FrameLoss => Box::new(frame_loss::Steps::new(plan.frame_loss.clone().unwrap_or_default(), setting)),
        Test::BackToBack => Box::new(back_to_back::Steps::new(plan.back_to_back.clone().unwrap_or_default(), setting)?),
        Test::Recovery => Box::new(recovery::Steps::new(plan.recovery.clone().unwrap_or_default(), setting)?),
        Test::Reset => {
            if plan.smallest_size().is_some_and(|least| setting.frame_size != least) {
                return not("RFC 2544 §26.6: only at the smallest frame size");
            }
            Box::new(reset::Steps::new(plan.reset.clone().unwrap_or_default(), setting)?)
        }
        Test::Bursty => Box::new(bursty::Steps::new(plan.bursty.clone().unwrap_or_default(), setting)),
        Test::ForwardingRate => {
            Box::new(forwarding_rate::Steps::new(&plan.forwarding_rate.clone().unwrap_or_default(), setting)?)
        }
        Test::LatencyProfile => {
            let table = plan.latency_profile.clone().unwrap_or_default();
            Box::new(latency_profile::Steps::new(&table, setting)?)
        }
        Test::Pdv => Box::new(pdv::Steps::new(&plan.pdv.clone().unwrap_or_default(), setting)?),
        Test::Soak => Box::new(soak::Steps::new(&plan.soak.clone().unwrap_or_default(), setting)?),
    };
    Ok(Procedure::new(setting, steps))
}

#[cfg(test)]
mod tests;
