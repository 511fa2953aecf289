//! A simulated DUT of known truth in virtual time: what searches are tested against, and what a plan is rehearsed on.
//!
//! Deterministic for a seed. Its records are judged by the real validity rules. [`SimSetup`] says what to simulate, as a
//! value or as text (`sim:capacity=10M,queue=1024,stalls=0.05/s:2000`); [`SimDut`] runs trials of any shape, and
//! cuts those of a search into slices as a tester does.

mod counted;
mod counts;
mod delay;
mod dut;
mod flow;
mod rng;
mod setup;
mod slices;
mod state;
mod text;

pub use rng::Rng;
pub use setup::{Inversion, SimPlacement, SimSetup, Stalls};
pub use state::SimDut;

#[cfg(test)]
mod tests;
