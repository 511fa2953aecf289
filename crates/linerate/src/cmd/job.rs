//! One run of a suite or a sweep in its own process: reads a job from standard input, writes the answer to standard output.

use std::io::stdin;

use campaign::read_job;
use failure::{Exit, Failure, Stop};

use super::progress::Progress;
use crate::out;

/// Runs the command. Failures of the job are in its answer.
pub fn run() -> Result<Exit, Failure> {
    let stop = Stop::on_signals()?;
    let job = read_job(&mut stdin().lock())?;
    let progress = Progress::new(job.quiet);
    let answer = job.run(&stop, &progress);
    progress.clear();
    rig::start_again(Some(&serde_json::to_vec(&job).map_err(Failure::failed)?));
    out::print(&serde_json::to_string(&answer).map_err(Failure::failed)?);
    Ok(Exit::Passed)
}
