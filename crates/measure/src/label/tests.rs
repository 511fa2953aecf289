//! Labels of throughput and latency.

use std::time::Duration;

use units::*;

use super::*;
use crate::{plan::*, result::*, schema::goal::SearchGoal};

const ROUTING: &str = "no routing update to a router before each trial (RFC 2544 §23 a)";

/// An outside device that got learning frames as the standard asks for.
fn outside() -> LabelFacts {
    LabelFacts { learning_wait: Some(Duration::from_secs(2)), ..LabelFacts::default() }
}

fn departures(plan: &Plan, facts: &LabelFacts) -> Vec<String> {
    throughput(plan, facts).0.departures
}

#[test]
fn the_defaults_depart_only_where_they_must() {
    // The default wait after learning frames.
    let facts = LabelFacts { learning_wait: Some(Duration::from_millis(2)), ..LabelFacts::default() };
    let (label, compliance) = throughput(&Plan::default(), &facts);
    assert_eq!((label.name.as_str(), compliance), ("RFC 2544 §26.1 throughput", Compliance::Conditional));
    let wait = "0.002 s instead of 2 s of waiting after learning frames (RFC 2544 §23 b)";
    assert_eq!(label.departures, [ROUTING, wait, "searched to a precision of 0.5 %"]);
    assert_eq!(departures(&Plan::default(), &outside()), [ROUTING, "searched to a precision of 0.5 %"]);
    let no_learning = departures(&Plan::default(), &LabelFacts::default());
    assert_eq!(no_learning[1], "no learning frames before each trial (RFC 2544 §23 b)");
}

#[test]
fn what_must_be_and_is_not_is_no_compliance() {
    let of = |plan: &Plan| throughput(plan, &outside()).1;
    let lossy = |mut plan: Plan| {
        plan.search.tolerated_loss = "0.1%".parse().unwrap();
        plan
    };
    assert_eq!(of(&Plan::default().quick()), Compliance::Conditional, "§24 says SHOULD");
    assert_eq!(of(&lossy(Plan::default())), Compliance::Departs, "a throughput loses nothing");
    let mut verified = Plan::default();
    verified.search.method = Method::Tst009;
    assert_eq!(of(&verified), Compliance::Conditional);
    assert_eq!(of(&lossy(verified)), Compliance::Departs);
    let simulated = LabelFacts { simulated: true, ..LabelFacts::default() };
    assert_eq!(throughput(&Plan::default(), &simulated).1, Compliance::Departs);
    // §26.2: MUST be repeated at least 20 times.
    let (label, compliance) = latency(&Plan::default(), &outside());
    assert_eq!((label.departures[0].as_str(), compliance), ("one trial instead of 20", Compliance::Departs));
    assert_eq!(
        latency(&Plan::default(), &simulated).0.name,
        "simulation of RFC 2544 §26.2 latency, RFC 5481 PDV and IPDV"
    );
}

#[test]
fn a_mix_is_a_departure_with_its_genome() {
    let mix: Imix = "aaafg".parse().unwrap();
    let facts = LabelFacts { mix: Some(mix), ..outside() };
    let departs = departures(&Plan::default(), &facts);
    assert_eq!(departs[0], "a mix of frame sizes, IMIX - aaafg (RFC 6985), instead of one size (§9)");
}

#[test]
fn every_departure_is_listed() {
    let mut plan = Plan::default().quick();
    plan.search.tolerated_loss = "0.1%".parse().unwrap();
    plan.frame_sizes.truncate(5);
    let facts = LabelFacts { software_ports: true, repeated: 3, several_placements: true, ..LabelFacts::default() };
    insta::assert_snapshot!(departures(&plan, &facts).join("\n"), @r"
    trials of 0.1 s instead of 60 s (§24)
    loss up to 0.1 % counts as passing, §26.1 allows none
    frame sizes 1280, 1518 of §9.1 left out
    0.02 s instead of 2 s of waiting for residual frames (§23 d)
    0 s instead of 5 s between trials (§23 e)
    no routing update to a router before each trial (RFC 2544 §23 a)
    no learning frames before each trial (RFC 2544 §23 b)
    searched to a precision of 1 %
    invalid trials repeated, none of them counted
    the host moved the cores: trials of one placement only are behind the figure
    software ports instead of a physical link
    ");
    insta::assert_snapshot!(latency(&plan, &facts).0.departures.join("\n"), @r"
    one trial instead of 20
    one-way delay of every frame, from its stamp to its receipt by software, instead of one tagged frame
    a stream of 0.25 s instead of 120 s
    ");
}

#[test]
fn what_trust_lets_pass_is_a_departure() {
    let mut plan = Plan::default();
    plan.trust.placements = Placements::Combined;
    plan.trust.max_gap = Duration::from_millis(500);
    plan.trust.offered_tolerance = "5%".parse().unwrap();
    plan.trust.duration_tolerance = "2%".parse().unwrap();
    let facts = outside();
    insta::assert_snapshot!(departures(&plan, &facts).join("\n"), @r"
    no routing update to a router before each trial (RFC 2544 §23 a)
    searched to a precision of 0.5 %
    the tester may leave out 5 % of a trial's frames, instead of 0.1 %
    a trial's duration may be off by 2 %, instead of 1 %
    the tester or the built-in device may stop polling for 500 ms, instead of 10.0 ms
    trials with different placements of the cores count together
    ");
    plan.trust = Trust { max_gap: Duration::from_millis(1), ..Trust::default() };
    assert_eq!(departures(&plan, &facts), [ROUTING, "searched to a precision of 0.5 %"], "stricter is none");
}

#[test]
fn a_simulation_never_bears_a_standard_s_name() {
    let facts = LabelFacts { simulated: true, ..LabelFacts::default() };
    let (label, _) = throughput(&Plan::default(), &facts);
    assert_eq!(label.name, "simulation of RFC 2544 §26.1 throughput");
    assert_eq!(label.departures[0], "simulated: no frame was sent and no device measured");
}

#[test]
fn mlrsearch_states_every_attribute_of_every_goal() {
    let mut plan = Plan::default();
    plan.search.method = Method::Mlrsearch;
    let facts = outside();
    let mut of = |goals: &str| {
        plan.search.goals = Some(Goals::Named(goals.to_owned()));
        let (label, compliance) = throughput(&plan, &facts);
        assert_eq!(compliance, Compliance::Conditional, "RFC 9971 takes any goal");
        format!("{}\n- {}", label.name, label.departures.join("\n- "))
    };
    insta::assert_snapshot!(["csit", "rfc2544"].map(&mut of).join("\n"), @r"
    RFC 9971 MLRsearch: NDR (loss 0 %, exceed 50 %, final 1s, sum 21s, initial 1s, width 0.5 %), PDR (loss 0.5 %, exceed 50 %, final 1s, sum 21s, initial 1s, width 0.5 %); trial effective duration = trial duration (by slices, the time that counts), width = (upper - lower) / upper
    - not compliant with RFC 2544 §24, some trials may lose frames: NDR, PDR
    - no routing update to a router before each trial (RFC 2544 §23 a)
    RFC 9971 MLRsearch: RFC 2544 (loss 0 %, exceed 0 %, final 60s, sum 60s, initial 1s, width 0.5 %); trial effective duration = trial duration (by slices, the time that counts), width = (upper - lower) / upper; unconditionally compliant with RFC 2544 §24: RFC 2544
    - no routing update to a router before each trial (RFC 2544 §23 a)
    ");
    let mut short = GoalSet::rfc2544().goals().to_vec();
    short[0].final_duration = Duration::from_secs(30);
    short.push(SearchGoal::default());
    plan.search.goals = Some(Goals::Listed(short));
    let departs = departures(&plan, &facts);
    assert_eq!(departs[0], "not compliant with RFC 2544 §24, some trials may lose frames: NDR");
    assert_eq!(departs[1], "conditionally compliant with RFC 2544 §24, trials are shorter than 60 s: RFC 2544");
}

#[test]
fn loss_verification_is_never_called_rfc_2544() {
    let mut plan = Plan::default();
    plan.search.method = Method::Tst009;
    plan.search.retries = 2;
    plan.search.retry_max_lost = Some(5000);
    let name = throughput(&plan, &LabelFacts::default()).0.name;
    assert_eq!(name, "ETSI GS NFV-TST 009 §12.3.3 binary search with loss verification, r=3, z=5000");
}
