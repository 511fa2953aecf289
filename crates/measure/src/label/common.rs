//! Departures that several labels have in common.

use units::{FrameSize, Frames, Imix, Nanos};

use crate::plan::{Placements, Plan, Trust};

/// What the plan tolerates in a trial and the rules of `docs/trust.md` do not.
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
        departures.push(format!("the tester or the built-in device may be away for {gap}, instead of {least}"));
    }
    if trust.placements == Placements::Combined {
        departures.push("trials count wherever the host had the cores".to_owned());
    }
    departures
}

/// That frames were of a mix.
pub(super) fn mixed(mix: Imix) -> String {
    format!("a mix of frame sizes, {} (RFC 6985), instead of one size (§9)", mix.brief())
}

/// Which of the frame sizes of RFC 2544 §9.1 the plan has not; nothing when it has them all.
pub(super) fn sizes_left_out(plan: &Plan) -> Option<String> {
    let missing = FrameSize::RFC2544.iter().filter(|size| !plan.frame_sizes.contains(&Frames::Size(**size)));
    let missing: Vec<_> = missing.map(FrameSize::to_string).collect();
    (!missing.is_empty()).then(|| missing.join(", "))
}
