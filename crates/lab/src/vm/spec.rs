//! What a guest is told: a file in its image.

use serde::{Deserialize, Serialize};

use crate::{
    counters::Source,
    step::{Question, Step},
};

/// What a guest is made of and what it does.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GuestSpec {
    /// Its name.
    pub name: String,
    /// Modules of the kernel to load, in this order; what they depend on is added.
    pub modules: Vec<String>,
    /// Programs of this machine that it needs, with their libraries.
    pub programs: Vec<String>,
    /// Further libraries of this machine: beginnings of their paths.
    pub libraries: Vec<String>,
    /// What brings it up, in order.
    pub steps: Vec<Step>,
    /// What shows that it is up.
    pub checks: Vec<Question>,
    /// Where the counters of its ports are read.
    pub counters: Vec<Source>,
}
