//! The job that a plan becomes.

use campaign::Job;
use failure::Failure;
use measure::plan::Plan;

use crate::cli::BenchArgs;

/// This plan over the device of the command line.
pub fn of(args: &BenchArgs, plan: Plan) -> Result<Job, Failure> {
    Ok(Job {
        plan,
        device: args.ports.options()?,
        machine: args.machine.options()?,
        quick: args.is_quick(),
        quiet: args.output.quiet,
    })
}
