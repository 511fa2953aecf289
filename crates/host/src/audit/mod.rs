//! What spoils a figure on a machine: what a rule is, what it looks at, and what it finds.

mod context;
mod finding;
mod out;
mod rule;
mod setting;

pub use context::Context;
pub use finding::{Finding, Group, Mend, Verdict};
pub use out::Out;
pub use rule::{Asked, Rule};
pub use setting::is_setting;
pub(crate) use setting::is_unit;
