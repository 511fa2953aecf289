//! `search.goals` of a plan: a set by its name, or goals one by one.

use std::fmt;

use serde::{de, Deserialize, Deserializer, Serialize};

use super::{error::PlanError, goal_set::GoalSet};
use crate::schema::goal::SearchGoal;

/// The search goals of an MLRsearch, as written. [`Goals::set`] says whether they make sense.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Goals {
    /// One of [`GoalSet::NAMES`].
    Named(String),
    /// `[[search.goals]]`
    Listed(Vec<SearchGoal>),
}

impl Default for Goals {
    /// CSIT's: without loss, and with at most 0.5 %.
    fn default() -> Self {
        Self::Named("csit".to_owned())
    }
}

impl Goals {
    /// The goals, checked. Errors in one line: key, value, what is legal.
    pub fn set(&self) -> Result<GoalSet, PlanError> {
        let set = match self {
            Self::Named(name) => name.parse(),
            Self::Listed(goals) => GoalSet::new(goals.clone()),
        };
        set.map_err(|e| e.within("search"))
    }
}

// By hand, because serde's own error for an untagged value says only that nothing matched.
impl<'de> Deserialize<'de> for Goals {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        struct Either;

        impl<'de> de::Visitor<'de> for Either {
            type Value = Goals;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "one of {} in quotes, or [[search.goals]] tables", GoalSet::NAMES.join(", "))
            }

            fn visit_str<E: de::Error>(self, name: &str) -> Result<Goals, E> {
                Ok(Goals::Named(name.to_owned()))
            }

            fn visit_seq<A: de::SeqAccess<'de>>(self, seq: A) -> Result<Goals, A::Error> {
                Deserialize::deserialize(de::value::SeqAccessDeserializer::new(seq)).map(Goals::Listed)
            }
        }

        d.deserialize_any(Either)
    }
}
