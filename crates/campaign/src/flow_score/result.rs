//! What a score looks like: as JSON, and as text.

use std::fmt::Write;

use flow::truth::{Score, Spread};
use measure::{
    result::{RunResult, Standing},
    trial::{Rule, TrialRecord, Violation},
};
use report::{Cell, Style, Table};
use serde::Serialize;
use units::si;

use super::reader::Reading;

/// The part of the result that is about flows: `flow_logger` in the JSON.
#[derive(Debug, Serialize)]
pub struct FlowResult {
    /// Where the records were read.
    pub logger: String,
    /// The flow program.
    pub program: String,
    /// What makes the keys of the run its own: `--seed` with it sends the same flows again.
    pub seed: u64,
    /// One for each trial, by its number.
    pub scores: Vec<TrialScore>,
    /// Of a search: the highest rate of new flows that lost no packet record, and the lowest that did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub highest: Option<Highest>,
    /// What the standing rests on, one line.
    pub conclusion: String,
}

/// A score with the result of its trials.
#[derive(Debug)]
pub struct ScoredRun {
    /// The trials.
    pub result: RunResult,
    /// The score.
    pub flows: FlowResult,
    /// Bytes of a frame, FCS included.
    pub frame_bytes: u32,
}

impl ScoredRun {
    /// As `--json` writes it: the result with `flow_logger` beside its other fields.
    ///
    /// # Errors
    ///
    /// A figure that JSON cannot hold.
    pub fn json(&self) -> serde_json::Result<String> {
        let mut json = serde_json::to_value(&self.result)?;
        json["flow_logger"] = serde_json::to_value(&self.flows)?;
        serde_json::to_string_pretty(&json)
    }

    /// As text.
    pub fn text(&self) -> String {
        text(&self.flows, &self.result.trials, &self.result.dut, self.frame_bytes)
    }
}

/// What a search found, in new flows a second.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Highest {
    /// Held without losing a packet record.
    pub held_per_s: Option<f64>,
    /// Not held.
    pub not_held_per_s: Option<f64>,
}

/// One trial.
#[derive(Debug, Serialize)]
pub struct TrialScore {
    /// The trial's number.
    pub trial: u32,
    /// New flows a second, as sent.
    pub new_flows_per_s: f64,
    /// Times of departure are known within this.
    pub sent_known_within_ns: u64,
    /// What came in besides flow records.
    pub reading: Reading,
    /// The score.
    pub score: Score,
    /// The first few flows that are not right, in words.
    pub examples: Vec<String>,
}

/// The violation that makes a trial invalid as a score of the logger, if there is one. Gaps that explain lost frames and
/// moved cores excuse missing flows. They do not change a complete score, so such a trial stays valid.
fn invalidating(violations: &[Violation], complete: bool) -> Option<&Violation> {
    let excuse = |rule| match rule {
        Rule::Interrupted | Rule::Moved => true,
        Rule::TesterShort | Rule::Stretched | Rule::TesterLimited | Rule::Stalled | Rule::Counters | Rule::Clock => {
            false
        }
    };
    violations.iter().find(|v| v.rule.invalidates() && !(complete && excuse(v.rule)))
}

/// One line on one trial's score.
pub fn conclusion(score: &Score, reading: &Reading, trial: &TrialRecord) -> (Standing, String) {
    let flows = &score.flows;
    let failed = |text: String| (Standing::CriterionMissed, text);
    let unsure = |text: String| (Standing::NotTrustworthy, text);
    if flows.sent == 0 {
        return unsure("no frame was sent: there is nothing to score".to_owned());
    }
    if score.records == 0 {
        let came = match (reading.messages, score.foreign.records) {
            (0, _) => "nothing came from the logger: does it run, see this port's traffic, and export to this address?",
            (_, 0) => "the logger spoke, but told no flow: are its timeouts longer than --flow-wait?",
            _ => "records came, but none of a flow sent: does the logger see this port's traffic?",
        };
        return unsure(format!("no flow sent was recorded: {came}"));
    }
    if let Some(violation) = invalidating(&trial.violations, score.perfect()) {
        return unsure(format!("the trial is not valid: {}", violation.text));
    }
    if score.beyond > 0 {
        return unsure(format!("{} records came beyond those that can be kept: send fewer flows", score.beyond));
    }
    if score.perfect() {
        return (
            Standing::CriterionMet,
            "every flow and every packet was recorded exactly, and nothing else".to_owned(),
        );
    }
    if score.packets.missed > 0 && reading.lost > 0 {
        return unsure(format!(
            "{} packets are missing, and {} records were lost on the way here (by their sequence numbers): export over \
             TCP, or with a larger net.core.rmem_max",
            score.packets.missed, reading.lost
        ));
    }
    if score.packets.missed > 0 && reading.without_template > 0 {
        return unsure(format!(
            "{} packets are missing, and {} sets of records could not be read because their template had not come: start \
             the exporter after this command, or let it send templates more often",
            score.packets.missed, reading.without_template
        ));
    }
    failed(format!(
        "{} of {} flows are not recorded exactly, {} packets missing, {} too many, {} in duplicates, {} flows invented",
        flows.sent - flows.exact,
        flows.sent,
        score.packets.missed,
        score.packets.extra,
        score.packets.duplicated,
        score.invented.flows
    ))
}

/// The whole as text.
pub fn text(result: &FlowResult, trials: &[TrialRecord], dut: &str, size: u32) -> String {
    let mut out = String::new();
    let _ = writeln!(out, "Flow logger {} at {dut}", result.logger);
    let _ = writeln!(out, "Flows {}, frames of {size} B, seed {}", result.program, result.seed);
    for (score, last) in result.scores.iter().zip((0..result.scores.len()).rev()) {
        let trial = trials.iter().find(|t| t.number == score.trial);
        if last == 0 {
            if let Some(trial) = trial {
                one(&mut out, score, trial);
            }
        } else {
            let s = &score.score;
            let _ = writeln!(
                out,
                "trial {:>3}: {}flows/s, {} of {} flows exact, {} packets missing",
                score.trial,
                si(score.new_flows_per_s),
                s.flows.exact,
                s.flows.sent,
                s.packets.missed
            );
        }
    }
    if let Some(highest) = &result.highest {
        let rate = |r: Option<f64>| r.map_or_else(|| "none".to_owned(), |r| format!("{}flows/s", si(r)));
        let _ = writeln!(
            out,
            "\nHighest rate of new flows without losing a packet record: {} (lost at: {})",
            rate(highest.held_per_s),
            rate(highest.not_held_per_s)
        );
    }
    let _ = write!(out, "\n{}", result.conclusion);
    out
}

/// One trial in full.
fn one(out: &mut String, trial_score: &TrialScore, trial: &TrialRecord) {
    let (s, direction) = (&trial_score.score, trial.directions.first());
    let valid = if invalidating(&trial.violations, s.perfect()).is_none() { "valid" } else { "not valid" };
    let _ = writeln!(
        out,
        "\nTrial {} ({valid}): {} for {:.2} s, {} new flows/s",
        trial.number,
        trial.spec.load_fps,
        trial.real_duration_s,
        si(trial_score.new_flows_per_s).trim_end()
    );
    out.push_str(&counts(s));
    let share = |part: u64, whole: u64| format!("{:.4} %", 100.0 * part as f64 / whole.max(1) as f64);
    let _ = writeln!(
        out,
        "  complete: {} of the flows exact, {} of the packets recorded; worst flow off by {} packets",
        share(s.flows.exact, s.flows.sent),
        share(s.packets.sent - s.packets.missed, s.packets.sent),
        s.packets.worst
    );
    for (name, spread) in [("first", &s.first_error), ("last", &s.last_error)] {
        if let Some(Spread { min_ns, median_ns, p99_abs_ns, max_ns, .. }) = spread {
            let us = |ns: i64| format!("{:.1}", ns as f64 / 1e3);
            let _ = writeln!(
                out,
                "  time of the {name} packet, recorded less sent: min {} us, median {} us, max {} us, 99 % within {} us",
                us(*min_ns),
                us(*median_ns),
                us(*max_ns),
                us(*p99_abs_ns as i64)
            );
        }
    }
    let octets = match s.octets {
        flow::truth::Octets::Frame => "frames without FCS",
        flow::truth::Octets::Ip => "IP packets",
        flow::truth::Octets::FrameAndFcs => "frames with FCS",
    };
    let r = &trial_score.reading;
    let _ = writeln!(
        out,
        "  read: {} records in {} messages ({} broken, {} records lost on the way), {} records of other traffic; bytes are of {octets}",
        s.records, r.messages, r.malformed, r.lost, s.foreign.records
    );
    if let Some(d) = direction {
        let _ =
            writeln!(out, "  frames that came back: {} of {} ({} refused by the link)", d.received, d.sent, d.refused);
    }
    for text in &trial_score.examples {
        let _ = writeln!(out, "  {text}");
    }
}

/// What was sent against what was recorded.
fn counts(s: &Score) -> String {
    let mut table = Table::default();
    table.left(0, "", "");
    table.right(0, "flows", "");
    table.right(0, "packets", "");
    table.right(0, "bytes", "");
    let (f, p, b) = (&s.flows, &s.packets, &s.bytes);
    let mut row = |name: &str, counts: [Option<u64>; 3]| {
        let cell = |n: Option<u64>| Cell::from(n.map_or_else(String::new, |n| n.to_string()));
        table.row(std::iter::once(name.into()).chain(counts.map(cell)).collect());
    };
    row("sent", [f.sent, p.sent, b.sent].map(Some));
    row("exact", [Some(f.exact), None, None]);
    row("missed", [f.missed, p.missed, b.missed].map(Some));
    row("duplicated", [f.duplicated, p.duplicated, b.duplicated].map(Some));
    row("miscounted", [f.miscounted, p.extra, b.extra].map(Some));
    row("invented", [Some(s.invented.flows), Some(s.invented.packets), None]);
    table.text(&Style::PIPE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_disturbs_the_way_excuses_only_what_is_missing() {
        for (rule, when_incomplete, when_complete) in [
            (Rule::TesterShort, true, true),
            (Rule::Counters, true, true),
            (Rule::Interrupted, true, false),
            (Rule::Moved, true, false),
            (Rule::Clock, false, false),
        ] {
            let broken = [Violation { rule, text: String::new() }];
            let invalid = |complete| invalidating(&broken, complete).is_some();
            assert_eq!((invalid(false), invalid(true)), (when_incomplete, when_complete), "{rule:?}");
        }
    }
}
