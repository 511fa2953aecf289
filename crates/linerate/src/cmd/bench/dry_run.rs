//! `linerate bench --dry-run`: expected trials and duration of a plan, from a hundred simulated runs.

use std::path::Path;

use campaign::dry_run;
use failure::{Exit, Failure, Stop};
use measure::plan::ValidPlan;
use report::dry_run::{json, render, render_all, DryRun};
use report::write::write_atomic;
use rig::Device;

use crate::{cli::BenchArgs, cmd::output, out};

/// Runs the plan once for each seed and prints trials and durations.
pub fn one(plan: &ValidPlan, device: &Device, args: &BenchArgs) -> Result<Exit, Failure> {
    check(args)?;
    let stop = Stop::on_signals()?;
    let part = dry_run::run(plan, device, &stop)?;
    show(&render(&part, &output::style()), &[(String::new(), part)], args)?;
    Ok(if stop.requested() { Exit::Stopped } else { Exit::Passed })
}

/// The same for every point of the sweep.
pub fn points(plan: &ValidPlan, device: &Device, args: &BenchArgs) -> Result<Exit, Failure> {
    let points = plan.sweep.points();
    let at = |point| Ok((point, campaign::sweep::plan_of(plan, point).validate()?));
    let plans = points.iter().map(at).collect::<Result<Vec<_>, Failure>>()?;
    let plans: Vec<_> = plans.into_iter().map(|(point, plan)| (point.to_string(), device.clone(), plan)).collect();
    all(&plans, args)
}

/// The same for several plans with names: each plan, and the sum.
pub fn all(plans: &[(String, Device, ValidPlan)], args: &BenchArgs) -> Result<Exit, Failure> {
    check(args)?;
    let stop = Stop::on_signals()?;
    let mut parts: Vec<(String, DryRun)> = Vec::new();
    for (name, device, plan) in plans {
        if !stop.requested() {
            parts.push((name.clone(), dry_run::run(plan, device, &stop)?));
        }
    }
    let device = parts.first().map_or_else(String::new, |(_, first)| format!("device     {}\n", first.dut));
    show(&(device + &render_all(&parts, &output::style())), &parts, args)?;
    Ok(if stop.requested() { Exit::Stopped } else { Exit::Passed })
}

/// A dry run measures time, not a device: it can only be written as JSON.
fn check(args: &BenchArgs) -> Result<(), Failure> {
    let o = &args.output;
    let others = [("--markdown", &o.markdown), ("--svg", &o.svg), ("--csv", &o.csv), ("--csv-tests", &o.csv_tests)];
    if let Some((flag, _)) = others.iter().find(|(_, file)| file.is_some()) {
        return Err(Failure::usage(format!(
            "{flag}: a dry run measures nothing: write its durations with --json FILE"
        )));
    }
    output::check(o)
}

fn show(text: &str, parts: &[(String, DryRun)], args: &BenchArgs) -> Result<(), Failure> {
    match args.output.json.as_deref() {
        Some(path) if path == Path::new("-") => out::print(&json(parts)),
        Some(path) => {
            write_atomic(path, json(parts).as_bytes()).map_err(Failure::machine)?;
            out::print(&format!("{text}\nwritten    {}\n", path.display()));
        }
        None => out::print(text),
    }
    Ok(())
}
