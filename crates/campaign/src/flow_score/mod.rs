//! A flow logger scored against what was sent: the generator knows every flow.

mod fresh;
mod logger;
mod reader;
mod result;
mod score;
mod truth;

pub use logger::FlowLogger;
pub use result::{FlowResult, ScoredRun};
pub use score::{run, ScoreOptions};
