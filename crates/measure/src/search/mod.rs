//! Searches as state machines: asked for the next trial, told what it gave, no I/O and no clock.
//!
//! A search moves its bounds on valid trials only. An invalid one is asked for again, a bounded number of times; a
//! search that cannot get valid trials ends [`Outcome::Inconclusive`](crate::result::Outcome::Inconclusive).

mod calls;
mod capacity;
mod config;
mod gave;
mod held;
pub(crate) mod interval;
mod liveness;
pub mod mlr;
mod own_port;
mod pauses;
mod placed;
mod reason;
mod retrying;
mod rfc2544;
mod step;
mod strategy;
mod tst009;

pub use capacity::CapacitySearch;
pub use config::SearchConfig;
pub(crate) use gave::Gave;
pub(crate) use interval::{mean, Sample};
pub use mlr::MlrSearch;
pub use placed::PlacementSearch;
pub use reason::Reason;
pub use retrying::Retrying;
pub use rfc2544::{Bisection, Rfc2544Search};
pub use step::{Answer, Search, Step};
pub(crate) use strategy::{Strategy, Want};
pub use tst009::{LossVerification, Tst009Search};

use crate::plan::Method;

/// The search a configuration asks for, one instance a placement class.
pub fn for_config(config: SearchConfig) -> PlacementSearch<Box<dyn Search + Send>> {
    // A search by slices ends by itself with what it has shown: these bounds are not to cut it short.
    let more = if config.by_slices { 2 } else { 1 };
    let (timeout_s, max_trials) = (config.timeout_s * f64::from(more), config.max_trials * more);
    let bounds = SearchConfig { timeout_s, max_trials, ..config.clone() };
    PlacementSearch::new(&bounds, move || fresh(&config))
}

/// A fresh search, for one placement of the cores.
fn fresh(config: &SearchConfig) -> Box<dyn Search + Send> {
    let config = config.clone();
    match config.method {
        Method::Rfc2544 if config.by_slices => Box::new(CapacitySearch::new(config)),
        Method::Rfc2544 => Box::new(Rfc2544Search::new(config)),
        Method::Tst009 => Box::new(Tst009Search::new(config)),
        Method::Mlrsearch => {
            let (goals, warmup_s) = (config.goals.clone(), config.warmup_s);
            Box::new(MlrSearch::new(config, goals, warmup_s))
        }
    }
}

#[cfg(test)]
mod hostile;
#[cfg(test)]
mod simulated;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod world;
