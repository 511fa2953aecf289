//! `linerate flowlog score`: compares the records of a flow logger with the flows sent.

use std::path::Path;

use campaign::flow_score::{self, ScoreOptions};
use failure::{Exit, Failure, Stop};
use measure::plan::Plan;
use report::write::write_atomic;

use super::{output, plan, progress::Progress};
use crate::{
    cli::{flows_arg::FlowsArg, score::ScoreArgs, OutputArgs},
    out,
};

/// Runs the command.
pub fn run(args: &ScoreArgs) -> Result<Exit, Failure> {
    let Some(FlowsArg::Program(program)) = args.traffic.flows else {
        return Err(Failure::usage(
            "flowlog score needs the flows to send: --flows constant:1M, zipf:100k,s=1.1, churn:1M,packets=4 or \
             scan:256,1024",
        ));
    };
    output::check(&OutputArgs { json: args.json.clone(), ..OutputArgs::default() })?;
    let time = |text: &Option<String>| text.as_deref().map(units::parse_duration).transpose();
    let options = ScoreOptions {
        logger: args.logger.clone(),
        program,
        plan: plan(args)?,
        seed: args.traffic.seed,
        load: args.load,
        duration: time(&args.duration)?,
        wait: time(&args.flow_wait)?,
        frame_sizes: args.frame_sizes.clone(),
        lower: args.lower,
        upper: args.upper,
        precision: args.precision,
        device: args.ports.options()?,
        machine: args.machine.options()?,
    };
    let progress = Progress::new(args.quiet);
    let scored = flow_score::run(&options, &Stop::on_signals()?, &progress);
    progress.clear();
    let scored = scored?;
    let json = scored.json().map_err(Failure::failed)?;
    match args.json.as_deref() {
        Some(path) if path == Path::new("-") => out::print(&json),
        path => {
            out::print(&scored.text());
            if let Some(path) = path {
                write_atomic(path, json.as_bytes()).map_err(Failure::machine)?;
            }
        }
    }
    Ok(campaign::exit_of(scored.result.standing))
}

/// The plan's traffic, link and trust, changed by the flags.
fn plan(args: &ScoreArgs) -> Result<Plan, Failure> {
    let mut plan = campaign::plans::load(&args.plan)?;
    if args.traffic.both_ways {
        return Err(Failure::usage("--both-ways: a score sends flows from the first port to the second only"));
    }
    if !args.traffic.fields.is_empty() {
        return Err(Failure::usage("--field: the flow program (--flows) says what varies: leave --field out"));
    }
    plan::headers(&mut plan, &args.traffic)?;
    plan::link(&mut plan, &args.ports);
    Ok(plan)
}
