//! Changing a machine so that it spoils fewer figures, and changing it back.

mod apply;
mod formats;
mod host_plan;
mod persist;

pub use apply::{apply, revert, status, Applied, ApplyError, Reverted, Status, NAME, PERSISTENT};
pub use formats::{render, Format};
pub use host_plan::{HostPlan, Step};
pub use persist::{files, why_not_for_a_unit, EARLY_BOOT};
