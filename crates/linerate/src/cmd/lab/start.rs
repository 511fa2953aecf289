//! Starting and ending a lab, with words for the terminal.

use std::io::{self, IsTerminal};

use failure::{Failure, Stop};
use lab::{client::Up, protocol::Spec, start};

use crate::out;

/// Starts a lab and waits until it is up; each step is a line on a terminal.
///
/// # Errors
///
/// What did not come up.
pub fn bring_up(spec: &Spec, bound: bool, stop: &Stop) -> Result<Up, Failure> {
    start::mend_before(spec).into_iter().try_for_each(told)?;
    let watched = io::stderr().is_terminal();
    start::bring_up(spec, bound, stop, &mut |what, at_ms| {
        if watched {
            out::note(&format!("{:>6.2} s  {what}", at_ms as f64 / 1e3));
        }
    })
}

/// Says what became of the NICs of labs.
///
/// # Errors
///
/// A NIC that could not be given back.
pub fn told(lines: Result<Vec<String>, Failure>) -> Result<(), Failure> {
    lines?.iter().for_each(|line| out::note(line));
    Ok(())
}
