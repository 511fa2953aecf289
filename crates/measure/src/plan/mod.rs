//! What a run is: the plan a TOML file and the command line fill in, and what makes it valid.
//!
//! Every field is public and has a default, so that a file says only what differs from the embedded `rfc2544` plan
//! (which is [`Plan::default`]). Nothing runs from a [`Plan`]: [`Plan::validate`] turns it into a [`ValidPlan`], and its
//! error names the key, the value and what is legal.

mod addresses;
mod error;
mod goals;
mod needs;
mod procedures;
mod sweep;
pub(crate) mod text;

mod traffic;
mod validate;
mod wanted;

use std::time::Duration;

use serde::{Deserialize, Serialize};
use units::{FrameSize, Frames, LinkSpeed, Load, Ratio};

pub use addresses::AddressesPlan;
pub use error::PlanError;
pub use goals::Goals;
pub use needs::Needs;
pub use procedures::{
    BackToBackPlan, BurstyPlan, ForwardingRatePlan, FrameLossPlan, LatencyProfilePlan, PdvPlan, RecoveryPlan,
    ResetEvent, ResetPlan, SoakPlan, Test,
};
pub use sweep::{Axis, Point, SweepKey, SweepPlan};
pub use traffic::{Direction, FieldMode, FieldPlan, IpVersion, Traffic, L4};
pub(crate) use validate::check_bounds;
pub use validate::ValidPlan;

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
    /// Most time for one test beside the throughput at one frame size, waits included; absent: see
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

/// Which search finds the throughput.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Method {
    /// Binary search from the highest load (RFC 2544 §26.1).
    #[default]
    Rfc2544,
    /// Binary search with loss verification over an array of loads (ETSI GS NFV-TST 009 §12.3.3).
    Tst009,
    /// MLRsearch: the bounds of several goals in one search (RFC 9971).
    Mlrsearch,
}

/// `[search]`
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SearchPlan {
    /// Which search.
    pub method: Method,
    /// Loss ratio that still passes. With `mlrsearch` this, `precision` and `duration` are the goals' own.
    #[serde(with = "text::ratio")]
    pub tolerated_loss: Ratio,
    /// Relative width `(upper - lower) / upper` at which the search stops; for `tst009` the step over the highest load.
    #[serde(with = "text::ratio")]
    pub precision: Ratio,
    /// Sending time of each trial (RFC 2544 §24: 60 s).
    #[serde(with = "text::span")]
    pub duration: Duration,
    /// Lowest load of the search, per direction; zero: the smallest load whose trial can tell the precision.
    #[serde(with = "text::load")]
    pub lower: Load,
    /// Highest load, per direction; absent: the line rate, or what the tester can do.
    #[serde(with = "text::opt_load", skip_serializing_if = "Option::is_none")]
    pub upper: Option<Load>,
    /// `tst009`: how often a lossy load is tried again, max(r) - 1.
    pub retries: u32,
    /// `tst009`: a trial that lost more frames than this is not tried again (z); absent: no limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry_max_lost: Option<u64>,
    /// Most trials for one frame size, invalid ones counted. Absent: 100, and 400 for `mlrsearch`, whose trials are many
    /// and short.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_trials: Option<u32>,
    /// Most time for one frame size, waits included.
    #[serde(with = "text::span")]
    pub timeout: Duration,
    /// `mlrsearch`: sending time of a first trial at the highest load that counts for nothing; zero: none.
    #[serde(with = "text::span", skip_serializing_if = "Duration::is_zero")]
    pub warmup: Duration,
    /// `mlrsearch`: the goals; absent: `csit`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub goals: Option<Goals>,
}

impl SearchPlan {
    /// Keys that are each goal's own with `mlrsearch`, and what they are called there.
    const OF_GOALS: [(&'static str, &'static str); 3] =
        [("tolerated_loss", "loss_ratio"), ("precision", "width"), ("duration", "final_duration")];

    /// Most trials for one frame size: what was given, or the default of the method.
    pub fn max_trials(&self) -> u32 {
        self.max_trials.unwrap_or(if self.method == Method::Mlrsearch { 400 } else { 100 })
    }

    /// Whether the key is each goal's own with `mlrsearch`.
    fn is_of_goals(key: &str) -> bool {
        Self::OF_GOALS.iter().any(|(own, _)| *own == key)
    }

    /// That a key was given beside the goals it belongs to.
    fn of_goals(key: &str, value: impl std::fmt::Display) -> PlanError {
        let there = Self::OF_GOALS.iter().find(|(own, _)| *own == key).map_or(key, |(_, there)| there);
        let legal = format!(
            "is each goal's own with search.method = \"mlrsearch\": leave out search.{key}, and say {there} in search.goals"
        );
        PlanError::value(format!("search.{key}"), value, legal)
    }
}

impl Default for SearchPlan {
    fn default() -> Self {
        Self {
            method: Method::Rfc2544,
            tolerated_loss: Ratio::ZERO,
            precision: percent(0.5),
            duration: Duration::from_secs(60),
            lower: Load::Frames(units::Fps::ZERO),
            upper: None,
            retries: 0,
            retry_max_lost: None,
            max_trials: None,
            timeout: Duration::from_secs(2 * 3600),
            warmup: Duration::ZERO,
            goals: None,
        }
    }
}

/// `[latency]`
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct LatencyPlan {
    /// Whether to run the trial.
    pub enabled: bool,
    /// Its sending time (RFC 2544 §26.2: at least 120 s).
    #[serde(with = "text::span")]
    pub duration: Duration,
}

impl Default for LatencyPlan {
    fn default() -> Self {
        Self { enabled: true, duration: Duration::from_secs(120) }
    }
}

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
    /// Longest time a lcore of ours may be away before the trial is void, lossy or not.
    #[serde(with = "text::span")]
    pub max_gap: Duration,
    /// Whether each placement of the cores has a search of its own.
    pub placements: Placements,
    /// Whether to measure first what the tester can do with no DUT.
    pub selftest: bool,
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
            selftest: true,
            residual: Duration::from_secs(2),
            settle: Duration::from_secs(5),
        }
    }
}

/// Whether trials with the cores in different places are searched separately.
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
            "separate" => Ok(Self::Separate),
            "combined" => Ok(Self::Combined),
            "apart" => Err("placements = \"apart\" is now placements = \"separate\"".to_owned()),
            "together" => Err("placements = \"together\" is now placements = \"combined\"".to_owned()),
            other => Err(format!("placements {other:?}: must be separate or combined")),
        }
    }
}

/// `[link]`
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct LinkPlan {
    /// Speed for percentages and as the highest load, such as `"10G"`.
    #[serde(with = "text::opt_link", skip_serializing_if = "Option::is_none")]
    pub speed: Option<LinkSpeed>,
}

/// `[dut]`: which built-in data plane the plan is for. Runs over outside ports do not look at it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct DutPlan {
    /// Its function, such as `"mpls"`; absent: `l3`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub function: Option<String>,
    /// What impairs it; absent: nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub impair: Option<String>,
    /// Host routes behind each port that frames are sent to; the flows' destinations are spread over them, whatever
    /// device there is. Absent: the benchmark's four, and one destination.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub routes: Option<u64>,
    /// Cores that it has, which only a sweep's command can give it; absent: as it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cores: Option<u64>,
    /// Receive queues of each of its ports, as `cores`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queues: Option<u64>,
}

impl Plan {
    /// Reads a plan. Errors, in one line, on what is no TOML, on unknown keys and on values no type takes.
    pub fn from_toml(toml: &str) -> Result<Self, PlanError> {
        let plan: Self = toml::from_str(toml).map_err(|e| PlanError::from_toml(toml, &e))?;
        if plan.search.method == Method::Mlrsearch {
            // Given is given, even if it says the default.
            let table: toml::Table = toml::from_str(toml).map_err(|e| PlanError::from_toml(toml, &e))?;
            let given = table.get("search").and_then(toml::Value::as_table).into_iter().flatten();
            if let Some((key, value)) = given.into_iter().find(|(key, _)| SearchPlan::is_of_goals(key)) {
                let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
                return Err(SearchPlan::of_goals(key, text));
            }
        }
        Ok(plan)
    }

    /// The plan as a file would hold it, every default explicit; a comment names the keys that are left open.
    pub fn to_toml(&self) -> Result<String, PlanError> {
        let mut text =
            toml::to_string(self).map_err(|e| PlanError::Toml { place: String::new(), problem: e.to_string() })?;
        if self.search.method == Method::Mlrsearch {
            text = without_goal_keys(&text);
        }
        for (open, comment) in [
            (self.search.upper.is_none(), "search.upper is not set: the line rate, or what the tester can do"),
            (self.link.speed.is_none(), "link.speed is not set: what the ports report"),
            (self.dut.function.is_none(), "dut.function is not set: l3, when no ports are given"),
        ] {
            if open {
                text.push_str(&format!("# {comment}\n"));
            }
        }
        Ok(text)
    }

    /// The plan as a result stores it: what [`Plan::to_toml`] says, as JSON.
    pub fn to_json(&self) -> serde_json::Value {
        let mut plan = serde_json::to_value(self).unwrap_or_default();
        if self.search.method == Method::Mlrsearch {
            if let Some(search) = plan.get_mut("search").and_then(serde_json::Value::as_object_mut) {
                search.retain(|key, _| !SearchPlan::is_of_goals(key));
            }
        }
        plan
    }

    /// The same plan with short trials: seven frame sizes of a two-core software path end in well under 100 s.
    ///
    /// Short ones also slip between the interruptions of a noisy machine: where a core is taken away a few times a
    /// second, most trials of 100 ms are clean and hardly one of a second is. The timeout bounds a frame size where
    /// most are void all the same.
    #[must_use]
    pub fn quick(mut self) -> Self {
        if !self.name.ends_with(" (quick)") {
            self.name.push_str(" (quick)");
            self.description.push_str(" (quick: short trials, not the standard's durations)");
        }
        if self.search.method == Method::Mlrsearch {
            // Contradictory goals stay as they are, for `validate` to name.
            if let Ok(set) = self.search.goals.clone().unwrap_or_default().set() {
                self.search.goals = Some(Goals::Listed(set.quick()));
            }
        } else {
            self.search.duration = Duration::from_millis(100);
            self.search.precision = percent(1.0);
        }
        self.search.timeout = Duration::from_secs(15);
        self.search.max_trials = Some(self.search.max_trials().max(400));
        self.latency.duration = Duration::from_millis(250);
        self.trust.residual = Duration::from_millis(20);
        self.trust.max_repeats = self.trust.max_repeats.max(40);
        self.trust.settle = Duration::ZERO;
        self.quick_tests();
        self
    }
}

/// The text without the keys of `[search]` that MLRsearch does not read.
fn without_goal_keys(toml: &str) -> String {
    let mut in_search = false;
    let keep = |line: &&str| {
        if line.starts_with('[') {
            in_search = *line == "[search]";
        }
        let key = line.split(' ').next().unwrap_or_default();
        !(in_search && SearchPlan::is_of_goals(key))
    };
    toml.lines().filter(keep).map(|line| format!("{line}\n")).collect()
}

/// A ratio from a literal percentage.
fn percent(percent: f64) -> Ratio {
    Ratio::new(percent / 100.0).unwrap_or(Ratio::ZERO)
}

#[cfg(test)]
mod tests;
