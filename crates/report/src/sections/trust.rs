//! What the reader needs to judge the figures by: in three lines, or each statement.

use std::collections::BTreeMap;

use measure::{
    result::{Compliance, RunResult, SelfTestKind, SelfTestPoint, SizeResult, StandardLabel, WarningKind},
    trial::Rule,
};

use crate::{
    document::{Audience, Block, Fact, Section, Topic},
    figures::{by_sizes, sizes_text, Shown, TrialTally},
    style::Paint,
    text, words,
};

/// Where a short text leads on to the whole.
const MORE: &str = ": --verbose";
/// Rules named in a short text.
const RULES: usize = 3;

/// Trials, placements, standards, departures and warnings.
pub(crate) fn section(result: &RunResult) -> Section {
    Section::new(Topic::Trust, "Trust")
        .short_title("")
        .with(Audience::SHORT, Block::Statements(brief(result)))
        .with(Audience::DETAILS, Block::Statements(facts(result)))
}

/// Three lines at most.
fn brief(result: &RunResult) -> Vec<Fact> {
    let tally = TrialTally::of(&result.trials);
    let mut rules: Vec<_> = tally.by_rule.iter().filter(|(rule, _)| rule.invalidates()).collect();
    rules.sort_by_key(|(_, n)| std::cmp::Reverse(**n));
    let mut named: Vec<String> =
        rules.iter().take(RULES).map(|(rule, n)| format!("{} {n}", words::rule(**rule))).collect();
    named.extend((rules.len() > RULES).then(|| "...".to_owned()));
    let mut facts = vec![match tally.invalid {
        0 => Fact::new("trials", format!("{}, none invalid", tally.run), Paint::Plain),
        n => Fact::new("trials", format!("{}, {n} invalid ({})", tally.run, named.join(", ")), Paint::Warn),
    }];
    facts.iter_mut().for_each(|fact| fact.ending = Some(String::new()));
    facts.extend(departures(result));
    facts.extend(warnings(result));
    facts
}

/// `14 departures from RFC 2544: --verbose`.
fn departures(result: &RunResult) -> Option<Fact> {
    let of_sizes = result.sizes.iter().flat_map(|s| std::iter::once(&s.standard).chain(&s.latency_standard));
    let labels = of_sizes.chain(result.tests.iter().map(|t| &t.standard)).filter(|label| !label.name.is_empty());
    let (mut standards, mut seen): (Vec<String>, Vec<&str>) = (Vec::new(), Vec::new());
    for label in labels {
        // Without the clause, and without the parameters of a method: the files have them.
        let standard = label.name.split(" §").next().and_then(|name| name.split(": ").next()).unwrap_or_default();
        let standard = text::clean(standard);
        if !standards.contains(&standard) {
            standards.push(standard);
        }
        for departure in &label.departures {
            if !seen.contains(&departure.as_str()) {
                seen.push(departure);
            }
        }
    }
    let standards = standards.join(", ");
    match (standards.is_empty(), seen.len()) {
        (true, _) => None,
        (_, 0) => Some(Fact::new("standard", format!("no departure from {standards}"), Paint::Good).in_one_line("")),
        (_, n) => {
            let count = if n == 1 { "1 departure".to_owned() } else { format!("{n} departures") };
            Some(Fact::new("standard", format!("{count} from {standards}"), Paint::Plain).in_one_line(MORE))
        }
    }
}

/// `3 (short trials, cores moved, machine): --verbose`; one that is alone, as it is.
fn warnings(result: &RunResult) -> Option<Fact> {
    let mut kinds: Vec<&str> = Vec::new();
    for warning in &result.warnings {
        let word = warning_word(warning.kind);
        if !kinds.contains(&word) {
            kinds.push(word);
        }
    }
    (!kinds.is_empty()).then(|| Fact::new("warnings", kinds.join(", "), Paint::Warn).in_one_line(MORE))
}

fn warning_word(kind: WarningKind) -> &'static str {
    match kind {
        WarningKind::InvalidTrials => "invalid trials",
        WarningKind::PlacementChanged => "cores moved",
        WarningKind::TesterLimited => "tester-limited",
        WarningKind::ShortTrials => "short trials",
        WarningKind::Clock => "clock",
        WarningKind::NoHugepages => "no hugepages",
        WarningKind::PortFallback => "slower driver",
        WarningKind::PortCounters => "port counters",
        WarningKind::Foreign => "foreign frames",
        WarningKind::Host => "virtual or shared machine",
        WarningKind::CpuShared => "CPU polled by another process",
        WarningKind::Realtime => "real-time priority limited",
        WarningKind::Emulated => "emulated machines: rates mean nothing",
        WarningKind::Stopped => "stopped",
        WarningKind::Simulated => "simulated device",
        WarningKind::Needs => "unmet requirements",
    }
}

/// Every statement.
fn facts(result: &RunResult) -> Vec<Fact> {
    let mut facts = vec![trials(result)];
    let mut add = |label, text: String, paint| facts.push(Fact::new(label, text, paint));
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
    for item in by_sizes(result, |size| standards(size, Shown::of(size, result.link_bps) != Shown::Nothing)) {
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
    facts
}

/// The standards of a size. The degree of compliance is given only where there is a figure.
fn standards(size: &SizeResult, figure: bool) -> Vec<String> {
    let latency = size.latency_standard.as_ref().map(|label| (label, size.latency_compliance));
    let all = std::iter::once((&size.standard, size.compliance)).chain(latency);
    let name = |(label, met): (&StandardLabel, Option<Compliance>)| words::standard(label, met.filter(|_| figure));
    let name = |of: (&StandardLabel, Option<Compliance>)| match figure {
        true => name(of),
        false => format!("{}: no figure", name(of)),
    };
    all.filter(|(label, _)| !label.name.is_empty()).map(name).collect()
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
        text.push_str(&format!(", {} discarded as invalid ({})", tally.invalid, by_rule.join(", ")));
    } else {
        text.push_str(", none invalid");
    }
    if let Some(n) = tally.by_rule.get(&Rule::Clock) {
        text.push_str(&format!("; latency withheld in {n} (clock)"));
    }
    Fact::new("trials", text, if tally.invalid > 0 { Paint::Warn } else { Paint::Plain })
}

fn tester(result: &RunResult) -> Option<String> {
    let over = |p: &SelfTestPoint| match &p.pair {
        Some(pair) if pair.kind != SelfTestKind::SoftwareCable => {
            let unstable = if pair.stable { "" } else { ", not stable" };
            format!(" ({} to {} over {}{unstable})", pair.lower_fps, pair.upper_fps, pair.kind.name())
        }
        _ => String::new(),
    };
    let point = |p: &SelfTestPoint| format!("{} at {}{}", p.max_fps, p.frame_size_bytes.with_unit("B"), over(p));
    let points: Vec<String> = result.selftest.iter().map(point).collect();
    let why = result.selftest.iter().find_map(|p| p.pair.as_ref()?.fallback.as_ref());
    let why = why.map_or_else(String::new, |why| format!("; over the software cable only: {why}"));
    (!points.is_empty()).then(|| format!("without a DUT: {}{why}", points.join(", ")))
}

/// The way from core to core where one answer is for all placements of the cores.
fn ways(result: &RunResult) -> Option<String> {
    let combined = result.sizes.iter().filter(|size| size.placement.is_none());
    let seen: Vec<_> = combined.filter_map(|size| size.core_to_core).collect();
    let low = seen.iter().map(|way| way.min_ns).min_by(f64::total_cmp)?;
    let high = seen.iter().map(|way| way.max_ns).max_by(f64::total_cmp)?;
    let mut medians: Vec<f64> = seen.iter().map(|way| way.median_ns).collect();
    medians.sort_by(f64::total_cmp);
    let median = medians.get(medians.len() / 2)?;
    Some(format!("a cache line took {median:.0} ns from core to core (median), {low:.0} to {high:.0} ns"))
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
    lines.extend(ways(result).map(|text| (text, Paint::Plain)));
    for size in &result.sizes {
        for other in &size.other_placements {
            let mut text = format!(
                "{} also in class {} ({:.0} ns), counted separately: ",
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
