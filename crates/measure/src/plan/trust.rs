//! `[trust]`: when a trial counts.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use units::Ratio;

use super::limits::percent;
use crate::schema::text;

/// `[trust]`
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Trust {
    /// Invalid trials are repeated at most this often at one load; then the search is inconclusive.
    pub max_repeats: u32,
    /// Share of the intended load that the tester may fail to offer.
    #[serde(with = "text::ratio")]
    pub offered_tolerance: Ratio,
    /// Share by which the real duration may be off.
    #[serde(with = "text::ratio")]
    pub duration_tolerance: Ratio,
    /// Longest time a lcore of ours may be away before the trial is invalid, lossy or not.
    #[serde(with = "text::span")]
    pub max_gap: Duration,
    /// Whether each placement of the cores has a search of its own.
    pub placements: Placements,
    /// Whether slices of a trial are the evidence of a search, or whole trials.
    pub evidence: EvidenceBy,
    /// Whether to measure first what the tester can do with no DUT.
    pub selftest: bool,
    /// How long to wait for the first frame through an outside device, before the first trial.
    #[serde(with = "text::span")]
    pub ready_timeout: Duration,
    /// Wait for frames still under way after the last was sent (RFC 2544 §23 d: 2 s).
    #[serde(with = "text::span")]
    pub residual: Duration,
    /// Wait between trials (RFC 2544 §23 e: 5 s).
    #[serde(with = "text::span")]
    pub settle: Duration,
}

impl Default for Trust {
    fn default() -> Self {
        Self {
            max_repeats: 10,
            offered_tolerance: percent(0.1),
            duration_tolerance: percent(1.0),
            max_gap: Duration::from_millis(10),
            placements: Placements::Separate,
            evidence: EvidenceBy::Slices,
            selftest: true,
            ready_timeout: Duration::from_secs(5),
            residual: Duration::from_secs(2),
            settle: Duration::from_secs(5),
        }
    }
}

/// What becomes of trials that the host made with the cores in different places.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase", try_from = "String")]
pub enum Placements {
    /// Each placement has a search and an answer of its own, and a trial during which the cores moved is invalid.
    #[default]
    Separate,
    /// All count as one: the answer is what held wherever the cores were.
    Combined,
}

impl TryFrom<String> for Placements {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        match text.as_str() {
            "apart" => Err("trust.placements = \"apart\" is now \"separate\"".to_owned()),
            "together" => Err("trust.placements = \"together\" is now \"combined\"".to_owned()),
            text => one_of("trust.placements", text, [("separate", Self::Separate), ("combined", Self::Combined)]),
        }
    }
}

/// What a search goes by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", try_from = "String")]
pub enum EvidenceBy {
    /// Short slices in which nobody was away, and the rate of a device that is kept busy.
    #[default]
    Slices,
    /// Whole trials, as RFC 2544 has it: one in which somebody was away is repeated.
    WholeTrial,
}

impl TryFrom<String> for EvidenceBy {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        one_of("trust.evidence", &text, [("slices", Self::Slices), ("whole-trial", Self::WholeTrial)])
    }
}

/// The value of this name, of two. The error names the key and what is legal.
fn one_of<T>(key: &str, text: &str, [first, second]: [(&str, T); 2]) -> Result<T, String> {
    match text {
        t if t == first.0 => Ok(first.1),
        t if t == second.0 => Ok(second.1),
        _ => Err(format!("{key} = {text:?}: must be {:?} or {:?}", first.0, second.0)),
    }
}
