//! `linerate bench --dry-run`: what a plan may be expected to take, from a hundred simulated runs of it.

use std::path::Path;

use measure::{plan::ValidPlan, result::Outcome, sim::SimSetup, standing};
use report::rehearsal::{json, render, render_all, Answered, Rehearsal, Rehearsed};
use report::write::write_atomic;
use units::{Fps, FrameSize, Frames};

use super::{sim, Bench, SimRun};
use crate::{
    cli::{BenchArgs, PortArgs},
    cmd::output,
    failure::{Exit, Failure},
    out,
    stop::Stop,
};

/// Runs, each with a seed of its own.
const SEEDS: u64 = 100;
/// What a device is assumed to forward where nothing is known of it: this share of the highest load, or this many
/// frames/s.
const SHARE: f64 = 0.6;
const CAPACITY: f64 = 5e6;

/// Runs the plan once a seed and prints what it took.
pub fn run(plan: &ValidPlan, args: &BenchArgs) -> Result<Exit, Failure> {
    check(args)?;
    let stop = Stop::on_signals()?;
    let part = one(plan, &args.ports, &stop)?;
    show(&render(&part, &output::style()), &[(String::new(), part)], args)?;
    Ok(if stop.requested() { Exit::Stopped } else { Exit::Passed })
}

/// The same for plans that are run one after the other, each with its name: what each takes, and all of them.
pub fn all(plans: &[(String, ValidPlan)], args: &BenchArgs) -> Result<Exit, Failure> {
    check(args)?;
    let stop = Stop::on_signals()?;
    let mut parts: Vec<(String, Rehearsal)> = Vec::new();
    for (name, plan) in plans {
        if !stop.requested() {
            parts.push((name.clone(), one(plan, &args.ports, &stop)?));
        }
    }
    let device = parts.first().map_or_else(String::new, |(_, first)| format!("device     {}\n", first.dut));
    show(&(device + &render_all(&parts, &output::style())), &parts, args)?;
    Ok(if stop.requested() { Exit::Stopped } else { Exit::Passed })
}

/// A rehearsal has figures of time, not of a device: there is one document of it.
fn check(args: &BenchArgs) -> Result<(), Failure> {
    let o = &args.output;
    let others = [("--markdown", &o.markdown), ("--svg", &o.svg), ("--csv", &o.csv), ("--csv-tests", &o.csv_tests)];
    if let Some((flag, _)) = others.iter().find(|(_, file)| file.is_some()) {
        return Err(Failure::usage(format!("{flag}: a rehearsal measures nothing: what it takes is in --json FILE")));
    }
    output::check(o)
}

fn show(text: &str, parts: &[(String, Rehearsal)], args: &BenchArgs) -> Result<(), Failure> {
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

fn one(plan: &ValidPlan, ports: &PortArgs, stop: &Stop) -> Result<Rehearsal, Failure> {
    let (setup, assumed) = match sim::asked(ports, plan)? {
        Some(setup) => (setup, ""),
        None => (assumed(plan), " (assumed; --dut sim:... says another)"),
    };
    let mut runs = Vec::new();
    for seed in 0..SEEDS {
        let seeded = SimSetup { seed: setup.seed.wrapping_add(seed), ..setup.clone() };
        let run = SimRun::new(plan.clone(), seeded, stop.clone());
        let sizes = plan.frame_sizes.clone();
        let mut bench = Bench::new(run, sizes, true);
        let (results, ended) = bench.all();
        ended?;
        if stop.requested() {
            break;
        }
        runs.push(Rehearsed {
            trials: bench.run.made(),
            seconds: bench.run.now_s(),
            verdict: standing::of_run(&results, &bench.tests, false).verdict(),
            answers: results.iter().filter(|r| r.outcome.has_figure()).filter_map(answered).collect(),
        });
    }
    Ok(Rehearsal {
        plan: format!("{}: {} ({})", plan.name, plan.description, Frames::list(&plan.frame_sizes)),
        dut: format!("{setup}{assumed}"),
        capacity: capacity(&setup),
        runs,
    })
}

fn answered(size: &measure::result::SizeResult) -> Option<Answered> {
    let (frame_size, of_device) = (size.frame_size_bytes, size.outcome == Outcome::Found);
    Some(Answered { frame_size, throughput_fps: size.throughput_fps?, of_device })
}

/// What a simulated device forwards, where that is one figure: not of a loss that sets in softly, nor of one that drifts
/// or depends on where the cores are.
fn capacity(setup: &SimSetup) -> Option<Fps> {
    let one = setup.placements.len() == 1 && setup.onset == 0.0 && setup.drift_per_min == 0.0;
    (one && setup.inversion.is_none()).then(|| Fps::from_raw(setup.capacity(0, 0.0, 0.0)))
}

/// A device below the highest load, that loses a few frames in one trial of fifty as machines do.
fn assumed(plan: &ValidPlan) -> SimSetup {
    let link = plan.link.speed;
    let smallest = plan.frame_sizes.iter().min().copied().unwrap_or(FrameSize::MIN.into());
    let asked = plan.search.upper.and_then(|load| load.resolve(smallest, link).ok());
    let highest = asked.or(link.map(|l| l.line_rate(smallest)));
    let capacity = highest.map_or(CAPACITY, |fps| (fps.get() * SHARE).round());
    SimSetup { accidents: (0.02, 50), directions: plan.traffic.directions(), ..SimSetup::new(capacity, 1) }
}
