//! What a run is: the plan a TOML file and the command line fill in, and what makes it valid.
//!
//! Every field is public and has a default, so that a file says only what differs from the embedded `rfc2544` plan
//! (which is [`Plan::default`]). Nothing runs from a [`Plan`]: [`Plan::validate`] turns it into a [`ValidPlan`], and its
//! error names the key, the value and what is legal.

mod addresses;
mod document;
mod error;
mod file;
mod goal_set;
mod goals;
pub mod library;
mod limits;
mod needs;
mod points;
mod procedures;
mod quick;
mod search;
mod sections;
pub mod suite;
mod sweep;
mod traffic;
mod trust;
mod validate;
mod wanted;

pub use addresses::AddressesPlan;
pub use document::Plan;
pub use error::PlanError;
pub use goal_set::GoalSet;
pub use goals::Goals;
pub use needs::Needs;
pub use procedures::{
    BackToBackPlan, BurstyPlan, ForwardingRatePlan, FrameLossPlan, LatencyProfilePlan, PdvPlan, RecoveryPlan,
    ResetEvent, ResetPlan, SoakPlan,
};
pub use search::{Method, SearchPlan};
pub use sections::{DutPlan, LatencyPlan, LinkPlan};
pub use suite::Suite;
pub use sweep::{Axis, Point, SweepKey, SweepPlan};
pub use traffic::{Direction, FieldMode, FieldPlan, IpVersion, Traffic, L4};
pub use trust::{EvidenceBy, Placements, Trust};
pub(crate) use validate::check_bounds;
pub use validate::ValidPlan;

pub use crate::schema::test::Test;

#[cfg(test)]
mod tests;
