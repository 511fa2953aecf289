//! What the kernel does in the calls by which the tester sends, and how busy they keep it.

use units::{Fps, Ratio};

use super::reason::Reason;
use crate::schema::{
    evidence::{Settled, SliceEvidence},
    trial::{LcoreRole, TrialRecord},
};

/// The load that tells, as a share of the most offered.
pub(super) const PROBE: f64 = 0.95;
/// A device that works in the calls keeps the tester busy for about that share then; one that holds them for less than this.
pub(super) const WAITING: f64 = 0.75;
/// Share of the time from which on the tester is always busy.
pub(super) const ALWAYS: f64 = 0.9;
/// Frames that one call may hold: what a trial counts too many or too few.
const CALL: f64 = 32.0;
/// Standard deviation of that at both ends of the time, in calls: of two that are cut anywhere.
const BOTH_ENDS: f64 = 0.41;
/// The share of a trial that comes after its first quarter, and rates of the halves of that which differ by more: a bucket of tokens
/// was not yet empty.
pub(super) const SETTLED: f64 = 0.75;
const DRAINS: f64 = 5e-3;

/// What the kernel does in the calls by which the tester sends.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) enum Calls {
    /// Not looked at.
    #[default]
    Unknown,
    /// A lower load is looked at. The one before was the highest load, or one a little above the rate.
    Probed { at_top: bool, offered: f64 },
    /// It works as long as they last, or nobody knows.
    Works,
    /// It waits until it may let frames out.
    Holds(Waiting),
}

/// What the lower load showed, and trials at which the device held the calls.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Waiting {
    pub load: f64,
    pub busy: f64,
    /// Share of that load that the tester did not offer in the slices that count. It is away for moments that no slice shows, and
    /// the device is not held then.
    pub short: f64,
    /// Trials in a row just below the rate in which the tester was always busy nevertheless.
    pub doubts: u32,
    /// How far the rates of all slices and of those that count are from what is taken between them, frames a second, summed over
    /// these trials: which of the two is right depends on its bucket of tokens, and no number of trials tells.
    pub apart: f64,
    pub trials: u32,
}

impl Waiting {
    /// How far its rate may be from the mean of what the trials say, frames a second, however many there are.
    pub fn open(&self) -> f64 {
        self.apart / f64::from(self.trials.max(1))
    }

    /// What to say of it.
    pub fn reason(&self) -> Option<Reason> {
        Some(Reason::Holds { load: Fps::from_raw(self.load.round()), busy: Ratio::new(self.busy).ok()? })
    }
}

/// Share of the sending time in which the tester's loop had something to do: of the busiest lcore.
pub(super) fn busy(trial: &TrialRecord) -> Option<f64> {
    let testers = trial.interference.lcores.iter().filter(|lcore| lcore.role == LcoreRole::Tester);
    let most = testers.filter_map(|lcore| lcore.busy_ns).max()?;
    Some(most as f64 * 1e-9 / trial.spec.duration_s)
}

/// Frames of the settled part of a trial with so many.
fn settled(offered: u64) -> f64 {
    (offered as f64 * SETTLED).max(CALL)
}

/// Standard error of the rate of that part, for what is cut off at its ends.
pub(super) fn cut_off(rate: f64, offered: u64) -> f64 {
    rate * CALL * BOTH_ENDS / settled(offered)
}

/// Whether a bucket of tokens was empty by then: the rate no longer falls.
pub(super) fn is_emptied(e: &SliceEvidence, later: &Settled) -> bool {
    let (before, after) = (later.earlier_fps.get(), later.later_fps.get());
    before <= after * (1.0 + DRAINS) + 2.0 * after * CALL / settled(e.offered)
}

/// What the device let through for as long as that lasts, whoever was away; `None` where a bucket of tokens was not yet empty.
pub(super) fn sustained(e: &SliceEvidence) -> Option<Fps> {
    let later = e.settled.filter(|later| is_emptied(e, later))?;
    Some(Fps::from_raw(later.all_fps.get().min(later.clean_fps.get())))
}
