//! One run of a suite or a sweep, in a process of its own: a job from standard input, its answer on standard output.

use std::io::stdin;

use campaign::read_job;
use failure::{Exit, Failure, Stop};

use super::progress::Progress;
use crate::out;

/// Runs the command. What the job could not do is in its answer.
pub fn run() -> Result<Exit, Failure> {
    let stop = Stop::on_signals()?;
    let job = read_job(&mut stdin().lock())?;
    let progress = Progress::new(job.quiet);
    let answer = job.run(&stop, &progress);
    progress.clear();
    out::print(&serde_json::to_string(&answer).map_err(Failure::failed)?);
    Ok(Exit::Passed)
}
