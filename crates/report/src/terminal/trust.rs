use std::collections::BTreeMap;

use measure::{
    result::{RunResult, SizeResult},
    trial::Rule,
};

use crate::{
    figures::{by_sizes, sizes_text, TrialTally},
    style::Paint,
    text, words,
};

/// One thing to know before believing the figures.
pub(crate) struct Fact {
    pub(crate) label: &'static str,
    pub(crate) text: String,
    pub(crate) paint: Paint,
}

/// Everything the reader needs to judge the figures by, the verdict last.
pub(crate) fn facts(result: &RunResult) -> Vec<Fact> {
    let mut facts = vec![trials(result)];
    let mut add = |label, text, paint| facts.push(Fact { label, text, paint });
    if let Some(text) = tester(result) {
        add("tester", text, Paint::Plain);
    }
    for (text, paint) in placements(result) {
        add("placement", text, paint);
    }
    let all = result.sizes.len();
    let with_sizes = |(text, sizes): (String, Vec<_>)| match sizes_text(&sizes, all) {
        s if s.is_empty() => text,
        s => format!("{text} ({s})"),
    };
    let names = |s: &SizeResult| {
        let latency = s.latency_standard.as_ref().map(|label| (label, s.latency_compliance));
        let all = std::iter::once((&s.standard, s.compliance)).chain(latency);
        all.filter(|(label, _)| !label.name.is_empty()).map(|(label, met)| words::standard(label, met)).collect()
    };
    for item in by_sizes(result, names) {
        add("standard", with_sizes(item), Paint::Plain);
    }
    let departures = by_sizes(result, |s| {
        let latency = s.latency_standard.iter().flat_map(|label| &label.departures);
        let latency = latency.map(|d| format!("latency: {}", text::clean(d)));
        s.standard.departures.iter().map(|d| text::clean(d)).chain(latency).collect()
    });
    if departures.is_empty() && result.sizes.iter().any(|s| !s.standard.name.is_empty()) {
        add("departs", "nowhere".to_owned(), Paint::Good);
    }
    for item in departures {
        add("departs", with_sizes(item), Paint::Plain);
    }
    for warning in &result.warnings {
        add("warning", text::clean(&warning.text), Paint::Warn);
    }
    let (verdict, paint) = super::verdict(result);
    add("verdict", verdict.to_owned(), paint);
    facts
}

fn trials(result: &RunResult) -> Fact {
    let tally = TrialTally::of(&result.trials);
    let mut text = format!("{} run", tally.run);
    let by_rule: Vec<String> = tally
        .by_rule
        .iter()
        .filter(|(rule, _)| rule.invalidates())
        .map(|(rule, n)| format!("{} {n}", words::rule(*rule)))
        .collect();
    if tally.invalid > 0 {
        text.push_str(&format!(", {} thrown away as invalid ({})", tally.invalid, by_rule.join(", ")));
    } else {
        text.push_str(", none invalid");
    }
    if let Some(n) = tally.by_rule.get(&Rule::Clock) {
        text.push_str(&format!("; latency withheld in {n} (clock)"));
    }
    Fact { label: "trials", text, paint: if tally.invalid > 0 { Paint::Warn } else { Paint::Plain } }
}

fn tester(result: &RunResult) -> Option<String> {
    let points: Vec<String> =
        result.selftest.iter().map(|p| format!("{} at {}", p.max_fps, p.frame_size_bytes.with_unit("B"))).collect();
    (!points.is_empty()).then(|| format!("with no DUT does {}", points.join(", ")))
}

/// The placements answers were found in, and the answers of the others.
fn placements(result: &RunResult) -> Vec<(String, Paint)> {
    let mut classes: BTreeMap<u32, (f64, f64, Vec<units::Frames>)> = BTreeMap::new();
    for size in &result.sizes {
        if let Some(p) = size.placement {
            let entry = classes.entry(p.class).or_insert((p.core_to_core_ns, p.core_to_core_ns, vec![]));
            entry.0 = entry.0.min(p.core_to_core_ns);
            entry.1 = entry.1.max(p.core_to_core_ns);
            entry.2.push(size.frame_size_bytes);
        }
    }
    let mut lines: Vec<(String, Paint)> = classes
        .iter()
        .map(|(class, (low, high, sizes))| {
            let range = if high - low < 1.0 { format!("{low:.0} ns") } else { format!("{low:.0} to {high:.0} ns") };
            let of = sizes_text(sizes, result.sizes.len());
            let of = if of.is_empty() { of } else { format!(" ({of})") };
            (format!("found in class {class}, {range} from core to core{of}"), Paint::Plain)
        })
        .collect();
    for size in &result.sizes {
        for other in &size.other_placements {
            let mut text = format!(
                "{} in class {} ({:.0} ns) as well, kept apart: ",
                size.frame_size_bytes.with_unit("B"),
                other.placement.class,
                other.placement.core_to_core_ns
            );
            text.push_str(&match (other.throughput_fps, other.upper_bound_fps) {
                (Some(low), Some(high)) => format!("between {low} and {high}"),
                (Some(low), None) => format!("at least {low}"),
                (None, Some(high)) => format!("below {high}"),
                (None, None) => "no bounds".to_owned(),
            });
            let word = words::outcome_alone(other.outcome);
            text.push_str(&format!(
                ", {}{} trials",
                if word.is_empty() { String::new() } else { format!("{word}, ") },
                other.trials
            ));
            lines.push((text, Paint::Warn));
        }
    }
    lines
}
