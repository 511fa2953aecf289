//! `linerate flowlog`: the flow logger, and requests to one that runs.

mod flags;

use failure::{Exit, Failure, Stop};
use runner::flowlog::{self, FlowlogSpec};

use super::{forward::client, live};
use crate::{
    cli::{
        flowlog::{Control, FlowlogArgs},
        forward,
    },
    cmd::score,
    out,
};

/// Runs the command.
pub fn run(args: &FlowlogArgs) -> Result<Exit, Failure> {
    if let Some(control) = &args.control {
        return ask(control);
    }
    let config = flags::config(args)?;
    if args.print_config {
        out::print(&config.to_toml()?);
        return Ok(Exit::Passed);
    }
    let spec = FlowlogSpec::check(config, args.check_pools, &rig::facts::read().cpus_allowed)?;
    let stop = Stop::on_signals()?;
    flowlog::run(&spec, live::output(!spec.config.quiet), &stop)?;
    Ok(Exit::Passed)
}

/// Sends a request to a logger that runs. It answers as every data plane does.
fn ask(control: &Control) -> Result<Exit, Failure> {
    let request = match control {
        Control::Show { what, json, interval, target } => forward::Control::Show {
            what: (*what).into(),
            json: *json,
            interval: interval.clone(),
            limit: usize::MAX,
            target: target.clone(),
        },
        Control::Stop { target } => forward::Control::Stop { target: target.clone() },
        Control::Score(args) => return score::run(args),
    };
    client::run("flowlog", &request)
}
