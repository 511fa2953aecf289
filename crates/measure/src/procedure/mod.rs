//! The tests of the standards besides the throughput search, each a state machine: asked for the next trial, told what it
//! gave, no I/O and no clock.
//!
//! A [`Procedure`] does what all of them need: it repeats invalid trials within a bound, recognises loads beyond the tester
//! and a silent device, and ends in bounded time. The steps of each test are in a module of its own.

mod back_to_back;
mod bursty;
mod forwarding_rate;
mod frame_loss;
mod latency_profile;
mod pdv;
mod recovery;
mod reset;
mod retrying;
mod setting;
mod soak;
mod steps;

pub use retrying::{Ask, Findings, Procedure};
pub use setting::{Known, NoProcedure, Setting};

use crate::plan::{Test, ValidPlan};
pub use crate::schema::{found::*, outcome::TestOutcome};

/// The procedure of a test at one frame size. Errors with the reason when it is not to be run here.
pub fn for_test(test: Test, plan: &ValidPlan, setting: &Setting) -> Result<Procedure, NoProcedure> {
    let not = |why: &str| Err(NoProcedure::from(why.to_owned()));
    if test.is_of_one_size() && setting.frame_size.size().is_none() {
        return not("it is of one frame size, and this is a mix");
    }
    let steps: Box<dyn steps::Steps> = match test {
        Test::Throughput | Test::Latency => return not("a search, not a procedure"),
        Test::AddressCaching | Test::AddressLearning => return not("rounds between three ports"),
        Test::FrameLoss => Box::new(frame_loss::Steps::new(plan.frame_loss.clone().unwrap_or_default(), setting)),
        Test::BackToBack => Box::new(back_to_back::Steps::new(plan.back_to_back.clone().unwrap_or_default(), setting)?),
        Test::Recovery => Box::new(recovery::Steps::new(plan.recovery.clone().unwrap_or_default(), setting)?),
        Test::Reset => {
            if plan.smallest_size().is_some_and(|least| setting.frame_size != least) {
                return not("RFC 2544 §26.6: only at the smallest frame size");
            }
            Box::new(reset::Steps::new(plan.reset.clone().unwrap_or_default(), setting)?)
        }
        Test::Bursty => Box::new(bursty::Steps::new(plan.bursty.clone().unwrap_or_default(), setting)),
        Test::ForwardingRate => {
            Box::new(forwarding_rate::Steps::new(&plan.forwarding_rate.clone().unwrap_or_default(), setting)?)
        }
        Test::LatencyProfile => {
            let table = plan.latency_profile.clone().unwrap_or_default();
            Box::new(latency_profile::Steps::new(&table, setting)?)
        }
        Test::Pdv => Box::new(pdv::Steps::new(&plan.pdv.clone().unwrap_or_default(), setting)?),
        Test::Soak => Box::new(soak::Steps::new(&plan.soak.clone().unwrap_or_default(), setting)?),
    };
    Ok(Procedure::new(setting, steps))
}

#[cfg(test)]
mod tests;
