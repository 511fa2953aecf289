//! What a machine can measure, judged from what was seen of it: pure functions over records.
//!
//! [`noise`] makes a record of the gaps of a core, [`load`] and [`full_load`] of trials. [`judge`] draws the conclusion:
//! the highest clean load, the precision to be expected, and what would improve it most.

mod causes;
mod full_load;
mod loads;
mod noise;
mod precision;

pub use full_load::full_load;
pub use loads::{highest_clean, load};
pub use noise::{both, noise, Gap, Polled, ABSENCE_NS, GAP_NS};
pub use precision::{expected, WITHIN_S};

pub use crate::schema::check::{
    Cause, CauseKind, CheckAnswer, CheckLoad, CheckResult, CheckTrials, CoreNoise, ExpectedPrecision, FullLoad,
    MachineState, OtherThread, TogetherNoise, CHECK_SCHEMA,
};
use crate::schema::standing::Standing;

/// A wider interval than this is not worth a figure.
const WIDEST: f64 = 0.5;

/// Fills in the answer and the causes of what was measured. `stopped`: a signal ended the check.
pub fn judge(result: &mut CheckResult, stopped: bool) {
    result.causes = causes::ranked(result);
    let clean_load_fps = result.trials.as_ref().and_then(|trials| highest_clean(&trials.loads));
    let full = result.trials.as_ref().map(|trials| trials.full_load.as_slice()).unwrap_or_default();
    let clean_share = precision::clean_share(full);
    let precision = expected(full, WITHIN_S);
    let good_for = precision.map(|p| precision::rounded_up(p.width)).filter(|width| *width <= WIDEST);
    let one_cpu = result.cpus.len() == 1 && !result.cores.is_empty();
    let (standing, conclusion) = match (clean_load_fps, good_for) {
        _ if stopped => (Standing::Stopped, "stopped before the end: this is what was found so far".to_owned()),
        (Some(load), Some(width)) => (
            Standing::Completed,
            format!("this machine: good for {} % within a minute up to {load}", precision::percent(width)),
        ),
        (Some(load), None) if precision.is_none() => (
            Standing::NotTrustworthy,
            format!("this machine: loads up to {load} pass, but too little time is clean for any precision"),
        ),
        (Some(load), None) => (
            Standing::NotTrustworthy,
            format!("this machine: loads up to {load} pass, but their rates differ too much for any precision"),
        ),
        (None, _) if one_cpu => (
            Standing::NotTrustworthy,
            "one CPU was checked, so no trial was made. A tester and a device need two".to_owned(),
        ),
        (None, _) => (
            Standing::NotTrustworthy,
            "this machine: no load was clean, so no figure can be trusted. See what to improve".to_owned(),
        ),
    };
    result.answer = CheckAnswer { standing, clean_load_fps, clean_share, precision, good_for, conclusion };
}

#[cfg(test)]
mod tests;
