//! The schema's closed lists in words.

use measure::{
    procedure::TestOutcome,
    result::{Compliance, Outcome, SizeResult, StandardLabel},
    search::mlr::Regularity,
    shape::LoadShape,
    trial::{Purpose, Rule, TrialRecord, TrialSpec},
};

use units::LinkSpeed;

use crate::{figures::at_line_rate, num, style::Paint, text};

/// One or two words for a column; empty when simply found.
pub(crate) fn outcome(size: &SizeResult, link: Option<LinkSpeed>) -> &'static str {
    if at_line_rate(size, link) {
        "line rate"
    } else {
        outcome_alone(size.outcome)
    }
}

/// The same with nothing known but the outcome.
pub(crate) fn outcome_alone(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Found => "",
        Outcome::AtMaximum => "at highest load",
        Outcome::TesterLimited => "tester-limited",
        Outcome::BelowMinimum => "below minimum",
        Outcome::NoTraffic => "no traffic",
        Outcome::Inconclusive => "inconclusive",
        Outcome::Interrupted => "stopped",
    }
}

/// What an outcome means and what to do, when its word does not say it all.
pub(crate) fn outcome_meaning(size: &SizeResult, link: Option<LinkSpeed>) -> Option<&'static str> {
    match size.outcome {
        Outcome::AtMaximum if at_line_rate(size, link) => None,
        Outcome::Found => None,
        Outcome::AtMaximum => Some("the DUT does at least this; raise the highest load of the plan to find its limit"),
        Outcome::TesterLimited => Some("the tester set the highest load; the DUT does at least this"),
        Outcome::BelowMinimum => Some("even the lowest load did not meet the goal"),
        Outcome::NoTraffic => Some("no frame came back at any load"),
        Outcome::Inconclusive => Some("too few trials could be used, so there is no figure"),
        Outcome::Interrupted => Some("the search did not end, so there is no figure"),
    }
}

pub(crate) fn outcome_paint(size: &SizeResult, link: Option<LinkSpeed>) -> Paint {
    match size.outcome {
        Outcome::AtMaximum if at_line_rate(size, link) => Paint::Good,
        Outcome::Found => Paint::Plain,
        Outcome::AtMaximum | Outcome::TesterLimited | Outcome::Interrupted => Paint::Warn,
        Outcome::BelowMinimum | Outcome::NoTraffic | Outcome::Inconclusive => Paint::Bad,
    }
}

/// How a test ended, in a word or two; empty when simply done.
pub(crate) fn test_outcome(outcome: TestOutcome) -> (&'static str, Paint) {
    match outcome {
        TestOutcome::Done => ("", Paint::Plain),
        TestOutcome::NotRun => ("not run", Paint::Plain),
        TestOutcome::AtMaximum => ("at the highest tried", Paint::Warn),
        TestOutcome::BelowMinimum => ("below minimum", Paint::Bad),
        TestOutcome::TesterLimited => ("tester-limited", Paint::Warn),
        TestOutcome::NoTraffic => ("no traffic", Paint::Bad),
        TestOutcome::Failed => ("failed", Paint::Bad),
        TestOutcome::Inconclusive => ("inconclusive", Paint::Bad),
        TestOutcome::Interrupted => ("stopped", Paint::Warn),
    }
}

/// A standard, and how far it is met where that is known: `RFC 2544 §26.1 throughput (conditionally met)`.
pub(crate) fn standard(label: &StandardLabel, compliance: Option<Compliance>) -> String {
    let met = match compliance {
        None => "",
        Some(Compliance::Unconditional) => " (unconditionally met)",
        Some(Compliance::Conditional) => " (conditionally met)",
        Some(Compliance::Departs) => " (not met)",
    };
    format!("{}{met}", text::clean(&label.name))
}

/// Whether a Goal Result of RFC 9971 is regular, and why not.
pub(crate) fn regularity(regularity: Regularity) -> (&'static str, Paint) {
    match regularity {
        Regularity::Regular => ("regular", Paint::Plain),
        Regularity::AtMaximum => ("irregular: at highest load", Paint::Warn),
        Regularity::TesterLimited => ("irregular: tester-limited", Paint::Warn),
        Regularity::BelowMinimum => ("irregular: below minimum", Paint::Bad),
        Regularity::Unfinished => ("irregular: not finished", Paint::Bad),
    }
}

pub(crate) fn rule(rule: Rule) -> &'static str {
    match rule {
        Rule::TesterShort => "tester fell short",
        Rule::Stretched => "stretched",
        Rule::TesterLimited => "tester-limited",
        Rule::Interrupted => "interrupted",
        Rule::Stalled => "stalled",
        Rule::Counters => "counters",
        Rule::Clock => "clock",
        Rule::Moved => "cores moved",
    }
}

pub(crate) fn purpose(purpose: Purpose) -> &'static str {
    match purpose {
        Purpose::Warmup => "warm-up",
        Purpose::Search => "search",
        Purpose::Verification => "verification",
        Purpose::AtThroughput => "at throughput",
        Purpose::Single => "single",
        Purpose::SelfTest => "self-test",
        Purpose::Test => "test",
    }
}

/// How the frames of a trial were spread; `None` when evenly.
pub(crate) fn shape(shape: &LoadShape) -> Option<String> {
    match *shape {
        LoadShape::Steady => None,
        LoadShape::Burst { frames } => Some(format!("one burst of {} frames", num::thousands(frames))),
        LoadShape::Bursts { frames, burst_fps } => {
            Some(format!("in bursts of {} frames at {burst_fps}", num::thousands(u64::from(frames))))
        }
        LoadShape::Step { step_s, then_fps } => Some(format!("from {} on {then_fps}", num::duration(step_s))),
        LoadShape::Replay { frames, capture_frames, speed, max_gap_s, .. } => {
            let timing = match speed {
                None => "evenly".to_owned(),
                Some(1.0) => "at the captured timing".to_owned(),
                Some(speed) => format!("at {} times the captured speed", num::trim(speed, 3)),
            };
            let cut = max_gap_s.map_or_else(String::new, |gap| format!(", pauses cut to {}", num::duration(gap)));
            let [frames, of] = [frames, capture_frames].map(num::thousands);
            Some(format!("{frames} frames of a capture of {of}, {timing}{cut}"))
        }
    }
}

/// Frame size of a trial; a replay's is but the mean.
pub(crate) fn size(spec: &TrialSpec) -> String {
    let mean = if matches!(spec.shape, LoadShape::Replay { .. }) { " in the mean" } else { "" };
    format!("{}{mean}", spec.frame_size_bytes.with_unit("B"))
}

/// Why a replay has no delays.
pub(crate) const NO_STAMP: &str = "not measured: the frames of a capture carry no stamp, so they are only counted";

/// `valid`, `valid, latency withheld`, or `invalid: ` and the rules broken.
pub(crate) fn validity(trial: &TrialRecord) -> String {
    let mut rules: Vec<&str> = vec![];
    for v in trial.violations.iter().filter(|v| v.rule.invalidates()) {
        if !rules.contains(&rule(v.rule)) {
            rules.push(rule(v.rule));
        }
    }
    match (rules.is_empty(), trial.violations.is_empty()) {
        (true, true) => "valid".to_owned(),
        (true, false) => "valid, latency withheld".to_owned(),
        _ => format!("invalid: {}", rules.join(", ")),
    }
}
