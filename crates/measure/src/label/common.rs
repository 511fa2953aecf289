//! Departures that several labels have in common.

use units::{FrameSize, Frames, Imix, Nanos};

use crate::plan::{Placements, Plan, Trust};

/// Departures for each tolerance of the plan that is wider than its default in `docs/trial-rules.md`.
pub(super) fn trust(plan: &Plan) -> Vec<String> {
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
        departures.push(format!("the tester or the built-in device may stop polling for {gap}, instead of {least}"));
    }
    if trust.placements == Placements::Combined {
        departures.push("trials with different placements of the cores count together".to_owned());
    }
    departures
}

/// The departure for a mix of frame sizes.
pub(super) fn mixed(mix: Imix) -> String {
    format!("a mix of frame sizes, {} (RFC 6985), instead of one size (§9)", mix.brief())
}

/// The frame sizes of RFC 2544 §9.1 that the plan leaves out; `None` when it has them all.
pub(super) fn sizes_left_out(plan: &Plan) -> Option<String> {
    let missing = FrameSize::RFC2544.iter().filter(|size| !plan.frame_sizes.contains(&Frames::Size(**size)));
    let missing: Vec<_> = missing.map(FrameSize::to_string).collect();
    (!missing.is_empty()).then(|| missing.join(", "))
}
