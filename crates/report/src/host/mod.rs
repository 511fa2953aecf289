//! What `linerate host` prints: findings, plans, what was changed, the ceiling of a slot.

mod audit;
mod changes;
mod effect;
mod junit;
mod pcie;
mod plan;
mod watch;

pub use audit::{render as audit, Audit};
pub use changes::{applied, reverted, status, tuned};
pub use effect::{line as effect_line, render as effect};
pub use junit::junit;
pub use pcie::render as pcie;
pub use plan::render as plan;
pub use watch::render as watch;
