//! A plan as written: every section with its default.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use units::{FrameSize, Frames, Load};

use super::{
    addresses::AddressesPlan,
    needs::Needs,
    procedures::{
        BackToBackPlan, BurstyPlan, ForwardingRatePlan, FrameLossPlan, LatencyProfilePlan, PdvPlan, RecoveryPlan,
        ResetPlan, SoakPlan,
    },
    search::SearchPlan,
    sections::{DutPlan, LatencyPlan, LinkPlan},
    sweep::SweepPlan,
    traffic::Traffic,
    trust::Trust,
};
use crate::schema::{test::Test, text};

/// A plan as written. Durations are text such as `"60s"`, loads such as `"1Mpps"`, ratios `"0.1%"` or a number.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Plan {
    /// Short name, shown in reports.
    pub name: String,
    /// What it measures, one line.
    pub description: String,
    /// The standard or document it follows.
    pub source: String,
    /// Frame sizes in bytes, FCS included (RFC 2544 §9), and mixes of them such as `"imix=aaafg"` (RFC 6985).
    pub frame_sizes: Vec<Frames>,
    /// The tests run at each frame size; those that need the throughput after it.
    pub tests: Vec<Test>,
    /// The throughput that tests go by, per direction, instead of a search for it.
    #[serde(with = "text::opt_load", skip_serializing_if = "Option::is_none")]
    pub throughput: Option<Load>,
    /// Most time for one test besides the throughput at one frame size, waits included; absent: see
    /// [`Plan::time_of_a_test`].
    #[serde(with = "text::opt_span", skip_serializing_if = "Option::is_none")]
    pub test_timeout: Option<Duration>,
    /// What is sent.
    pub traffic: Traffic,
    /// How the throughput is searched for.
    pub search: SearchPlan,
    /// The latency trial at the throughput found.
    pub latency: LatencyPlan,
    /// When a trial counts.
    pub trust: Trust,
    /// The link, where the port does not tell.
    pub link: LinkPlan,
    /// The built-in device under test, for a run without ports.
    pub dut: DutPlan,
    /// The frame-loss curve; this and the tables below are absent unless their test is run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub frame_loss: Option<FrameLossPlan>,
    /// Back-to-back frames.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub back_to_back: Option<BackToBackPlan>,
    /// System recovery.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub recovery: Option<RecoveryPlan>,
    /// Reset.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reset: Option<ResetPlan>,
    /// Bursty traffic.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bursty: Option<BurstyPlan>,
    /// Forwarding rate.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub forwarding_rate: Option<ForwardingRatePlan>,
    /// Latency by load.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub latency_profile: Option<LatencyProfilePlan>,
    /// PDV and IPDV.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pdv: Option<PdvPlan>,
    /// Soak.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub soak: Option<SoakPlan>,
    /// Address caching capacity and learning rate.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub addresses: Option<AddressesPlan>,
    /// Keys that take several values; absent: one run.
    #[serde(skip_serializing_if = "SweepPlan::is_empty")]
    pub sweep: SweepPlan,
    /// What the testbed of the plan's document has.
    #[serde(skip_serializing_if = "Needs::is_empty")]
    pub needs: Needs,
}

impl Default for Plan {
    fn default() -> Self {
        Self {
            name: "rfc2544".to_owned(),
            description: "Throughput by binary search, and latency at the throughput found".to_owned(),
            source: "RFC 2544 §26.1, §26.2".to_owned(),
            frame_sizes: FrameSize::RFC2544.map(Frames::Size).to_vec(),
            tests: vec![Test::Throughput, Test::Latency],
            throughput: None,
            test_timeout: None,
            traffic: Traffic::default(),
            search: SearchPlan::default(),
            latency: LatencyPlan::default(),
            trust: Trust::default(),
            link: LinkPlan::default(),
            dut: DutPlan::default(),
            frame_loss: None,
            back_to_back: None,
            recovery: None,
            reset: None,
            bursty: None,
            forwarding_rate: None,
            latency_profile: None,
            pdv: None,
            soak: None,
            addresses: None,
            sweep: SweepPlan::default(),
            needs: Needs::default(),
        }
    }
}
