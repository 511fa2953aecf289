//! What spoils a figure on a machine: what a rule is, what it looks at, and what it finds.

mod context;
mod finding;
mod out;
mod rule;

pub use context::Context;
pub(crate) use finding::{is_setting, is_unit};
pub use finding::{Finding, Group, Mend, Verdict};
pub use out::Out;
pub use rule::{Asked, Rule};
