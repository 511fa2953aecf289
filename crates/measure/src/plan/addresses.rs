//! `[addresses]`: the tests of RFC 2889 §5.7 and §5.8, which need a third port.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use units::{Fps, FrameSize, LinkSpeed, Load, Ratio};

use super::limits::percent;
use crate::{
    addresses::Goal,
    schema::{test::Test, text},
};

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
