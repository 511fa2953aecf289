//! Which standard a figure meets, and each way in which it departs.

mod procedure;

use units::{FrameSize, Frames, Imix, Nanos, Ratio};

use crate::{
    plan::{Method, Placements, Plan, Trust},
    result::StandardLabel,
    search::mlr::{GoalSet, SearchGoal},
};

pub use procedure::{addresses, procedure};

/// What a label depends on beside the plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LabelFacts {
    /// The ports are software: a cable in the process, or shared memory to another process or guest.
    pub software_ports: bool,
    /// Frames for learning and routing were sent before each trial (RFC 2544 §23 a, b).
    pub learning_frames: bool,
    /// The frames were of a mix of sizes.
    pub mix: Option<Imix>,
    /// Trials repeated because they were invalid.
    pub repeated: u32,
    /// The cores were seen in more than one placement.
    pub several_placements: bool,
    /// The device under test is a simulation: nothing was measured.
    pub simulated: bool,
}

/// Label of a throughput found by the plan's search.
pub fn throughput(plan: &Plan, facts: &LabelFacts) -> StandardLabel {
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
    let name = if facts.simulated { format!("simulation of {name}") } else { name };
    let mut departures = Vec::new();
    let mut depart = |when: bool, text: String| {
        if when {
            departures.push(text);
        }
    };
    let seconds = |d: std::time::Duration| d.as_secs_f64();
    depart(facts.simulated, "simulated: no frame was sent and no device measured".to_owned());
    let loss = s.tolerated_loss;
    if several {
        let others: Vec<_> = goals.goals().iter().filter(|g| !g.is_rfc2544()).map(|g| g.name.as_str()).collect();
        let text = format!("not unconditionally compliant with RFC 2544 §24 for {}", others.join(", "));
        depart(!others.is_empty(), text);
    }
    depart(!several && s.duration.as_secs() < 60, format!("trials of {} s instead of 60 s (§24)", seconds(s.duration)));
    depart(!several && loss > Ratio::ZERO, format!("loss up to {loss} counts as passing, §26.1 allows none"));
    let missing = sizes_left_out(plan);
    depart(missing.is_some(), format!("frame sizes {} of §9.1 left out", missing.unwrap_or_default()));
    depart(facts.mix.is_some(), facts.mix.map_or_else(String::new, mixed));
    let wait = plan.trust.residual;
    depart(wait.as_secs() < 2, format!("{} s instead of 2 s of waiting for residual frames (§23 d)", seconds(wait)));
    let settle = plan.trust.settle;
    depart(settle.as_secs() < 5, format!("{} s instead of 5 s between trials (§23 e)", seconds(settle)));
    depart(
        !facts.learning_frames && !facts.simulated,
        "no learning frames or routing updates before each trial (§23 a, b)".to_owned(),
    );
    depart(!several, format!("searched to a precision of {}", s.precision));
    if s.method == Method::Tst009 {
        depart(true, "one last trial at S[L], which the standard's loop leaves out".to_owned());
    }
    let repeated = facts.repeated;
    depart(repeated > 0, "invalid trials repeated, none of them counted".to_owned());
    let moved = facts.several_placements;
    depart(moved, "the host moved the cores: trials of one placement only are behind the figure".to_owned());
    depart(facts.software_ports, "software ports instead of a physical link".to_owned());
    departures.extend(trust(plan));
    StandardLabel { name, departures }
}

/// What the plan lets pass in a trial that the rules of `docs/trust.md` do not.
fn trust(plan: &Plan) -> Vec<String> {
    let (trust, usual) = (&plan.trust, Trust::default());
    let mut departures = Vec::new();
    if trust.offered_tolerance > usual.offered_tolerance {
        departures.push(format!(
            "the tester may leave out {} of a trial's frames, instead of {}",
            trust.offered_tolerance, usual.offered_tolerance
        ));
    }
    if trust.duration_tolerance > usual.duration_tolerance {
        departures.push(format!(
            "a trial's duration may be off by {}, instead of {}",
            trust.duration_tolerance, usual.duration_tolerance
        ));
    }
    if trust.max_gap > usual.max_gap {
        let [gap, least] = [trust.max_gap, usual.max_gap].map(Nanos::from);
        departures.push(format!("the tester or the built-in device may be away for {gap}, instead of {least}"));
    }
    if trust.placements == Placements::Together {
        departures.push("trials count wherever the host had the cores".to_owned());
    }
    departures
}

/// That frames were of a mix.
fn mixed(mix: Imix) -> String {
    format!("a mix of frame sizes, {} (RFC 6985), instead of one size (§9)", mix.brief())
}

/// Which of the frame sizes of RFC 2544 §9.1 the plan has not; nothing when it has them all.
fn sizes_left_out(plan: &Plan) -> Option<String> {
    let missing = FrameSize::RFC2544.iter().filter(|size| !plan.frame_sizes.contains(&Frames::Size(**size)));
    let missing: Vec<_> = missing.map(FrameSize::to_string).collect();
    (!missing.is_empty()).then(|| missing.join(", "))
}

/// The goals with every attribute, and what RFC 9971 leaves open.
fn mlrsearch(goals: &GoalSet) -> String {
    let all: Vec<_> = goals.goals().iter().map(SearchGoal::describe).collect();
    let full: Vec<_> = goals.goals().iter().filter(|g| g.is_rfc2544()).map(|g| g.name.as_str()).collect();
    let full = match full.is_empty() {
        true => String::new(),
        false => format!("; unconditionally compliant with RFC 2544 §24: {}", full.join(", ")),
    };
    let open = "trial effective duration = trial duration, width = (upper - lower) / upper";
    format!("RFC 9971 MLRsearch: {}; {open}{full}", all.join(", "))
}

/// Label of the latency measured at the throughput.
pub fn latency(plan: &Plan) -> StandardLabel {
    let mut departures = vec![
        "one-way delay of every frame, from its stamp to its receipt by software, instead of one tagged frame"
            .to_owned(),
        "one trial instead of 20".to_owned(),
    ];
    let duration = plan.latency.duration;
    if duration.as_secs() < 120 {
        departures.push(format!("a stream of {} s instead of 120 s", duration.as_secs_f64()));
    }
    StandardLabel { name: "RFC 2544 §26.2 latency, RFC 5481 PDV and IPDV".to_owned(), departures }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Goals;

    #[test]
    fn the_defaults_depart_only_where_they_must() {
        let facts = LabelFacts { learning_frames: true, ..LabelFacts::default() };
        let label = throughput(&Plan::default(), &facts);
        assert_eq!(label.name, "RFC 2544 §26.1 throughput");
        assert_eq!(label.departures, ["searched to a precision of 0.5 %"]);
    }

    #[test]
    fn a_mix_is_a_departure_with_its_genome() {
        let mix: Imix = "aaafg".parse().unwrap();
        let facts = LabelFacts { learning_frames: true, mix: Some(mix), ..LabelFacts::default() };
        let label = throughput(&Plan::default(), &facts);
        assert_eq!(label.departures[0], "a mix of frame sizes, IMIX - aaafg (RFC 6985), instead of one size (§9)");
    }

    #[test]
    fn every_departure_is_listed() {
        let mut plan = Plan::default().quick();
        plan.search.tolerated_loss = "0.1%".parse().unwrap();
        plan.frame_sizes.truncate(5);
        let facts = LabelFacts { software_ports: true, repeated: 3, several_placements: true, ..LabelFacts::default() };
        insta::assert_snapshot!(throughput(&plan, &facts).departures.join("\n"), @r"
        trials of 0.1 s instead of 60 s (§24)
        loss up to 0.1 % counts as passing, §26.1 allows none
        frame sizes 1280, 1518 of §9.1 left out
        0.02 s instead of 2 s of waiting for residual frames (§23 d)
        0 s instead of 5 s between trials (§23 e)
        no learning frames or routing updates before each trial (§23 a, b)
        searched to a precision of 1 %
        invalid trials repeated, none of them counted
        the host moved the cores: trials of one placement only are behind the figure
        software ports instead of a physical link
        ");
        insta::assert_snapshot!(latency(&plan).departures.join("\n"), @r"
        one-way delay of every frame, from its stamp to its receipt by software, instead of one tagged frame
        one trial instead of 20
        a stream of 0.25 s instead of 120 s
        ");
    }

    #[test]
    fn what_trust_lets_pass_is_a_departure() {
        let mut plan = Plan::default();
        plan.trust.placements = Placements::Together;
        plan.trust.max_gap = std::time::Duration::from_millis(500);
        plan.trust.offered_tolerance = "5%".parse().unwrap();
        plan.trust.duration_tolerance = "2%".parse().unwrap();
        let facts = LabelFacts { learning_frames: true, ..LabelFacts::default() };
        insta::assert_snapshot!(throughput(&plan, &facts).departures.join("\n"), @r"
        searched to a precision of 0.5 %
        the tester may leave out 5 % of a trial's frames, instead of 0.1 %
        a trial's duration may be off by 2 %, instead of 1 %
        the tester or the built-in device may be away for 500 ms, instead of 10.0 ms
        trials count wherever the host had the cores
        ");
        plan.trust = Trust { max_gap: std::time::Duration::from_millis(1), ..Trust::default() };
        assert_eq!(throughput(&plan, &facts).departures, ["searched to a precision of 0.5 %"], "stricter is none");
    }

    #[test]
    fn a_simulation_never_bears_a_standard_s_name() {
        let facts = LabelFacts { simulated: true, ..LabelFacts::default() };
        let label = throughput(&Plan::default(), &facts);
        assert_eq!(label.name, "simulation of RFC 2544 §26.1 throughput");
        assert_eq!(label.departures[0], "simulated: no frame was sent and no device measured");
    }

    #[test]
    fn mlrsearch_states_every_attribute_of_every_goal() {
        let mut plan = Plan::default();
        plan.search.method = Method::Mlrsearch;
        let facts = LabelFacts { learning_frames: true, ..LabelFacts::default() };
        let mut of = |goals: &str| {
            plan.search.goals = Some(Goals::Named(goals.to_owned()));
            let label = throughput(&plan, &facts);
            format!("{}\n- {}", label.name, label.departures.join("\n- "))
        };
        insta::assert_snapshot!(["csit", "rfc2544"].map(&mut of).join("\n"), @r"
        RFC 9971 MLRsearch: NDR (loss 0 %, exceed 50 %, final 1s, sum 21s, initial 1s, width 0.5 %), PDR (loss 0.5 %, exceed 50 %, final 1s, sum 21s, initial 1s, width 0.5 %); trial effective duration = trial duration, width = (upper - lower) / upper
        - not unconditionally compliant with RFC 2544 §24 for NDR, PDR
        RFC 9971 MLRsearch: RFC 2544 (loss 0 %, exceed 0 %, final 60s, sum 60s, initial 1s, width 0.5 %); trial effective duration = trial duration, width = (upper - lower) / upper; unconditionally compliant with RFC 2544 §24: RFC 2544
        - 
        ");
    }

    #[test]
    fn loss_verification_is_never_called_rfc_2544() {
        let mut plan = Plan::default();
        plan.search.method = Method::Tst009;
        plan.search.retries = 2;
        plan.search.retry_max_lost = Some(5000);
        let name = throughput(&plan, &LabelFacts::default()).name;
        assert_eq!(name, "ETSI GS NFV-TST 009 §12.3.3 binary search with loss verification, r=3, z=5000");
    }
}
