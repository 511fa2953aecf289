//! `[addresses]`: the tests of RFC 2889 §5.7 and §5.8, which need a third port.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use units::{Fps, FrameSize, LinkSpeed, Load, Ratio};

use super::{
    percent, text,
    validate::{between, span, within, Check},
    Plan, PlanError, Test,
};
use crate::addresses::Goal;

/// Most addresses that may be offered.
const MOST: u64 = 1 << 24;

/// `[addresses]`
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct AddressesPlan {
    /// Most addresses tried.
    pub most: u64,
    /// Addresses of the first round; of every round of the learning rate, unless the capacity was found just before.
    pub initial: u64,
    /// Rate of learning frames, the first one where it is searched for.
    #[serde(with = "text::load")]
    pub learning_rate: Load,
    /// Highest learning rate tried.
    #[serde(with = "text::load")]
    pub most_rate: Load,
    /// Rate of test frames.
    #[serde(with = "text::load")]
    pub test_rate: Load,
    /// Time after which the device has forgotten every address: waited before each round.
    #[serde(with = "text::span")]
    pub age: Duration,
    /// Relative width at which the search for the learning rate ends.
    #[serde(with = "text::ratio")]
    pub precision: Ratio,
}

impl Default for AddressesPlan {
    fn default() -> Self {
        let rate = |fps| Load::Frames(Fps::from_raw(fps));
        Self {
            most: 65_536,
            initial: 1024,
            learning_rate: rate(1e3),
            most_rate: rate(1e6),
            test_rate: rate(10e3),
            // IEEE 802.1Q table 8-6: 300 s.
            age: Duration::from_secs(301),
            precision: percent(1.0),
        }
    }
}

impl AddressesPlan {
    /// Short waits and few addresses.
    pub(super) fn quick(&mut self) {
        let rate = |fps| Load::Frames(Fps::from_raw(fps));
        (self.most, self.age, self.precision) = (4096, Duration::from_secs(4), percent(10.0));
        (self.learning_rate, self.test_rate) = (rate(20e3), rate(20e3));
    }

    /// What the test looks for at this frame size, and the rate of its test frames. `capacity` is what was found before.
    pub fn goal(
        &self,
        test: Test,
        size: FrameSize,
        link: Option<LinkSpeed>,
        capacity: Option<u64>,
    ) -> Result<(Goal, Fps), units::UnitError> {
        let learning_fps = self.learning_rate.resolve(size, link)?;
        let goal = match test {
            Test::AddressLearning => Goal::Rate {
                addresses: capacity.unwrap_or(self.initial),
                most_fps: self.most_rate.resolve(size, link)?,
                initial_fps: learning_fps,
                precision: self.precision.get(),
            },
            _ => Goal::Capacity { most: self.most, initial: self.initial, learning_fps },
        };
        Ok((goal, self.test_rate.resolve(size, link)?))
    }
}

impl Plan {
    /// Whether the plan's tests are those between three ports.
    pub fn tests_addresses(&self) -> bool {
        self.tests.iter().any(|t| t.is_of_addresses())
    }

    /// That tests between three ports have no others beside them.
    pub(super) fn check_company(&self) -> Check {
        match self.tests.iter().find(|t| !t.is_of_addresses()) {
            Some(other) if self.tests_addresses() => {
                let legal = "is between two ports, and the address tests are between three: run them by themselves";
                Err(PlanError::value("tests", other, legal))
            }
            _ => Ok(()),
        }
    }

    pub(super) fn check_addresses(&self) -> Check {
        let Some(t) = &self.addresses else { return Ok(()) };
        within("addresses.most", t.most, 1, MOST)?;
        within("addresses.initial", t.initial, 1, t.most)?;
        between("addresses.precision", t.precision, 0.0001, 0.5)?;
        span("addresses.age", t.age, Duration::from_secs(1))?;
        let size = self.smallest_size().unwrap_or(FrameSize::MIN);
        let rates = [
            ("addresses.learning_rate", t.learning_rate),
            ("addresses.most_rate", t.most_rate),
            ("addresses.test_rate", t.test_rate),
        ];
        for (key, rate) in rates {
            // A share of a link whose speed nobody gave is looked at when the ports have told.
            let Ok(fps) = rate.resolve(size, self.link.speed) else { continue };
            if fps.get() < 1.0 {
                return Err(PlanError::value(key, rate, "must be at least 1 frame/s"));
            }
        }
        Ok(())
    }
}
