//! `linerate bench`: runs a plan, with one answer for each frame size.

mod baseline;
mod dry_run;
mod job;
mod list;
mod repeat;
mod suite;
mod sweep;

pub use job::of as job_of;

use campaign::{
    plans::{self, SuitePlan},
    tuned::Tuned,
    JobAnswer,
};
use failure::{Exit, Failure, Stop};
use host::tuning::HostPlan;
use measure::plan::Plan;
use rig::{lab_plan::ForPlan, Device};

use super::{lab, output, plan, progress::Progress};
use crate::{cli::BenchArgs, out};

/// Runs the command.
pub fn run(args: &mut BenchArgs) -> Result<Exit, Failure> {
    if args.list {
        return list::print();
    }
    let name = args.plan_name().to_owned();
    let asked = || Ok(Some(ForPlan { needs: plans::needs_of(&name)?, plan: name.clone() }));
    if let Some(exit) =
        lab::join(&mut args.ports, &mut args.traffic, &mut args.machine, Some(&mut args.search.evidence), &asked)?
    {
        return Ok(exit);
    }
    let args = &*args;
    if !args.tune {
        return measure(args);
    }
    let (tuned, made) = Tuned::begin(&host_plan(args)?)?;
    out::note(&format!("linerate: {}", report::host::tuned(&made, args.output.verbose)));
    let measured = measure(args);
    tuned.end()?.iter().for_each(|left| out::note(&format!("linerate: {left}")));
    measured
}

/// What can be changed on this machine for this run.
///
/// # Errors
///
/// (usage) for flags that cannot be.
pub fn host_plan(args: &BenchArgs) -> Result<HostPlan, Failure> {
    let plan = match suite_of(args)? {
        Some(set) => set.base.validate()?,
        None => plan::for_bench(args)?,
    };
    rig::host_plan::for_run(&args.machine.options()?, &Device::parse(&args.ports.options()?, &plan)?)
}

fn measure(args: &BenchArgs) -> Result<Exit, Failure> {
    if let Some(set) = suite_of(args)? {
        return suite::run(args, &set);
    }
    let plan = plan::for_bench(args)?;
    if args.print_config {
        out::print(&plan.to_toml()?);
        return Ok(Exit::Passed);
    }
    let device = Device::parse(&args.ports.options()?, &plan)?;
    if args.dry_run {
        return if plan.sweep.is_empty() {
            dry_run::one(&plan, &device, args)
        } else {
            dry_run::points(&plan, &device, args)
        };
    }
    campaign::sweep::check_device(&plan, &device)?;
    if let Some(runs) = args.repeat {
        return repeat::run(args, (&plan, &device), runs);
    }
    if !plan.sweep.is_empty() {
        return sweep::run(args, &plan);
    }
    output::check(&args.output)?;
    let baseline = baseline::read(&args.tables, &plan, &device)?;
    let (stop, progress) = (Stop::on_signals()?, Progress::new(args.output.quiet));
    let JobAnswer { result, failure } = job::of(args, Plan::clone(&plan))?.run(&stop, &progress);
    progress.clear();
    let exit = match result {
        Some(result) => baseline::finish(&result, baseline.as_ref(), args.tables.layout, &args.output)?,
        None => Exit::Failed,
    };
    // If the rig failed half way, the error comes after the figures measured before.
    failure.map_or(Ok(exit), Err)
}

/// The suite with the name of the plan, if any.
fn suite_of(args: &BenchArgs) -> Result<Option<SuitePlan>, Failure> {
    match plans::suite(args.plan_name()) {
        // `PLAN:RUN` names one run, which is loaded like any plan.
        Err(_) if args.plan_name().contains(':') => Ok(None),
        found => found,
    }
}
