//! `linerate forward`: the reference data plane between ports, and requests to one that runs.

pub mod client;
mod flags;

use failure::{Exit, Failure, Stop};
use runner::forward::{self, ForwardSpec};

use super::live;
use crate::{cli::forward::ForwardArgs, out};

/// Runs the command.
pub fn run(args: &ForwardArgs) -> Result<Exit, Failure> {
    if let Some(control) = &args.control {
        return client::run("forward", control);
    }
    let config = flags::config(args)?;
    if args.print_config {
        out::print(&config.to_toml()?);
        return Ok(Exit::Passed);
    }
    let spec = ForwardSpec::check(config, flags::options(args)?, &rig::facts::read().cpus_allowed)?;
    let stop = Stop::on_signals()?;
    forward::run(spec, live::output(!args.quiet && !args.json), &stop)?;
    Ok(Exit::Passed)
}
