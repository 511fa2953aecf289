//! What the tester's own ports could not take in.

use units::Nanos;

use crate::schema::trial::{DirectionCounts, LcoreRole, TrialRecord};

/// Frames that the tester's port missed matter from this share of the lost ones on.
const MATTER: f64 = 0.1;
/// And from this share of those that came on.
const LEAST: f64 = 1e-4;
/// So many times more than can have come while the tester was away.
const UNEXPLAINED: f64 = 2.0;
/// Frames a second and direction that the tester takes in at most, if its own port missed frames while its loop was there: a loss
/// that is none of the device.
pub(super) fn takes_at_most(trial: &TrialRecord) -> Option<f64> {
    let sum = |of: fn(&DirectionCounts) -> u64| trial.directions.iter().map(of).sum::<u64>() as f64;
    let (missed, lost, received) = (sum(|d| d.port_missed.unwrap_or(0)), sum(|d| d.lost), sum(|d| d.received));
    let testers = trial.interference.lcores.iter().filter(|lcore| lcore.role == LcoreRole::Tester);
    let away_s: f64 = testers.map(|lcore| Nanos(lcore.total_gap_ns).seconds()).sum();
    let directions = trial.directions.len().max(1) as f64;
    let meanwhile = trial.spec.load_fps.get() * away_s * directions;
    let matters = missed > lost * MATTER && missed > received * LEAST && missed > meanwhile * UNEXPLAINED;
    matters.then(|| received / trial.real_duration_s / directions)
}
