//! Labels of the throughput and of the latency at it.

use units::Ratio;

use super::{
    common::{mixed, sizes_left_out, trust},
    draft::Draft,
    facts::LabelFacts,
};
use crate::{
    plan::{GoalSet, Method, Plan},
    schema::{
        goal::SearchGoal,
        outcome::{Compliance, StandardLabel},
    },
};

/// Label of a throughput found by the plan's search, and how far its standard is met. MLRsearch's is RFC 9971, which any
/// goal meets; what RFC 2544 lacks in a goal is listed.
pub fn throughput(plan: &Plan, facts: &LabelFacts) -> (StandardLabel, Compliance) {
    let s = &plan.search;
    let goals = s.goals.clone().unwrap_or_default().set().unwrap_or_else(|_| GoalSet::csit());
    let several = s.method == Method::Mlrsearch;
    let name = match s.method {
        Method::Rfc2544 => "RFC 2544 §26.1 throughput".to_owned(),
        Method::Tst009 if s.retries == 0 => "ETSI GS NFV-TST 009 §12.3.2 binary search".to_owned(),
        Method::Tst009 => {
            let z = s.retry_max_lost.map_or("infinity".to_owned(), |z| z.to_string());
            format!("ETSI GS NFV-TST 009 §12.3.3 binary search with loss verification, r={}, z={z}", s.retries + 1)
        }
        Method::Mlrsearch => mlrsearch(&goals),
    };
    let mut label = Draft::of(name, facts);
    if several {
        goals_depart(&mut label, &goals);
    } else {
        label.shorter(s.duration, 60, "§24");
        let loss = s.tolerated_loss;
        // The throughput is the highest load without loss by its definition.
        label.must(loss > Ratio::ZERO, format!("loss up to {loss} counts as passing, §26.1 allows none"));
    }
    let missing = sizes_left_out(plan);
    label.should(missing.is_some(), format!("frame sizes {} of §9.1 left out", missing.unwrap_or_default()));
    label.should(facts.mix.is_some(), facts.mix.map_or_else(String::new, mixed));
    let [wait, settle] = [plan.trust.residual, plan.trust.settle].map(|d| d.as_secs_f64());
    label.should(wait < 2.0, format!("{wait} s instead of 2 s of waiting for residual frames (§23 d)"));
    label.should(settle < 5.0, format!("{settle} s instead of 5 s between trials (§23 e)"));
    label.prepared(facts, false);
    label.should(!several, format!("searched to a precision of {}", s.precision));
    let last = "one last trial at S[L], which the standard's loop leaves out";
    label.should(s.method == Method::Tst009, last);
    label.should(facts.repeated > 0, "invalid trials repeated, none of them counted");
    let aside = facts.aside_share.unwrap_or_default() * 100.0;
    let text = format!("evidence by slices in which nobody was away: {aside:.1} % of the sending time set aside");
    label.should(facts.aside_share.is_some(), text);
    let moved = match facts.aside_share {
        Some(_) => "the host moved the cores: trials of all placements are behind the figure",
        None => "the host moved the cores: trials of one placement only are behind the figure",
    };
    label.should(facts.several_placements, moved);
    label.should(facts.software_ports, "software ports instead of a physical link");
    trust(plan).into_iter().for_each(|text| label.should(true, text));
    label.finish(facts)
}

/// What the goals lack to be compliant with RFC 2544 §24, conditionally or unconditionally (RFC 9971, MLRsearch Compliant
/// with RFC 2544).
fn goals_depart(label: &mut Draft, goals: &GoalSet) {
    let names = |of: &dyn Fn(&SearchGoal) -> bool| {
        let named: Vec<_> = goals.goals().iter().filter(|g| of(g)).map(|g| g.name.as_str()).collect();
        named.join(", ")
    };
    let none = names(&|g| !g.is_lossless());
    label.should(!none.is_empty(), format!("not compliant with RFC 2544 §24, some trials may lose frames: {none}"));
    let short = names(&|g| g.is_lossless() && !g.is_rfc2544());
    let text = format!("conditionally compliant with RFC 2544 §24, trials are shorter than 60 s: {short}");
    label.should(!short.is_empty(), text);
}

/// The goals with every attribute, and what RFC 9971 leaves open.
fn mlrsearch(goals: &GoalSet) -> String {
    let all: Vec<_> = goals.goals().iter().map(SearchGoal::describe).collect();
    let full: Vec<_> = goals.goals().iter().filter(|g| g.is_rfc2544()).map(|g| g.name.as_str()).collect();
    let full = match full.is_empty() {
        true => String::new(),
        false => format!("; unconditionally compliant with RFC 2544 §24: {}", full.join(", ")),
    };
    let open =
        "trial effective duration = trial duration (by slices, the time that counts), width = (upper - lower) / upper";
    format!("RFC 9971 MLRsearch: {}; {open}{full}", all.join(", "))
}

/// Label of the latency measured at the throughput by one trial, and how far its standard is met. What the throughput
/// departs by is in its own label.
pub fn latency(plan: &Plan, facts: &LabelFacts) -> (StandardLabel, Compliance) {
    let mut label = Draft::of("RFC 2544 §26.2 latency, RFC 5481 PDV and IPDV", facts);
    label.must(true, "one trial instead of 20");
    let text = "one-way delay of every frame, from its stamp to its receipt by software, instead of one tagged frame";
    label.should(true, text);
    let duration_s = plan.latency.duration.as_secs_f64();
    label.should(duration_s < 120.0, format!("a stream of {duration_s} s instead of 120 s"));
    label.finish(facts)
}
