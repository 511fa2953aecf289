//! MLRsearch, ours, against the PyPI package `MLRsearch` 1.2.1 and against plain binary search with 60 s trials: all of
//! them over the same simulated DUTs, whose truth is known.
//!
//! `cargo bench -p measure --bench search [-- SEEDS [SCENARIO]]` prints a Markdown table; SCENARIO is part of
//! a name, or a DUT as text such as `queue=64,stalls=1/s:10`. The package runs when
//! `MLRSEARCH_PYTHON` names a Python that has it (`scripts/mlrsearch.sh` makes one and prints its path).
//!
//! Called with `--simdut` the program is the simulated DUT itself: that is how the package gets the very same one.

mod runs;
mod scenario;

use std::{
    error::Error,
    io::{BufRead, Write},
    path::PathBuf,
};

use measure::{
    search::mlr::GoalSet,
    sim::{SimDut, SimSetup},
    trial::{Purpose, TrialSpec},
};
use runs::{Library, Run};
use scenario::{Scenario, SCENARIOS};
use units::{Fps, FrameSize};

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|a| a != "--bench").collect();
    if arguments.first().is_some_and(|a| a == "--simdut") {
        return simdut();
    }
    // A test run of the workspace's benches: see that it works.
    let test = arguments.iter().any(|a| a == "--test");
    let seeds = arguments.first().and_then(|a| a.parse().ok()).unwrap_or(if test { 2 } else { 100 });
    let wanted = arguments.get(1).cloned().unwrap_or_default();
    let mut library = match std::env::var_os("MLRSEARCH_PYTHON") {
        Some(python) => Some(Library::start(&PathBuf::from(python))?),
        None => {
            println!("Without the PyPI package: set MLRSEARCH_PYTHON=$(scripts/mlrsearch.sh)\n");
            None
        }
    };
    println!("NDR and PDR of CSIT (1 s trials, 21 s, exceed ratio 0.5, width 0.5 %), {seeds} seeds.");
    println!("Spread: largest less smallest throughput over the median, of one DUT searched {AGAIN} times (mean of {}) / of the throughput over the truth of {seeds} DUTs.\n", (seeds / AGAIN).max(1));
    println!("| DUT | search | trial-s mean | median | p90 | trials | truth inside | spread NDR | spread PDR | least s | × least |");
    println!("|---|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|");
    let named = SCENARIOS.iter().filter(|s| s.name.contains(&wanted)).copied();
    let own = Scenario { name: "as given", text: Box::leak(wanted.clone().into_boxed_str()) };
    let scenarios = if wanted.contains('=') { vec![own] } else { named.collect() };
    for scenario in &scenarios {
        let goals = GoalSet::csit();
        row(scenario, "Linerate", seeds, &goals, &mut |dut| runs::linerate(dut, &goals))?;
        if let Some(library) = &mut library {
            row(scenario, "MLRsearch 1.2.1", seeds, &goals, &mut |dut| library.run(dut, &goals))?;
        }
        row(scenario, "bisection, 60 s", seeds, &goals, &mut |dut| runs::bisection(dut, &goals))?;
    }
    Ok(())
}

type Contestant<'a> = &'a mut dyn FnMut(&str) -> Result<Run, Box<dyn Error>>;

/// How often a DUT is searched again.
const AGAIN: u64 = 10;

/// Runs a contestant over as many DUTs as there are seeds, and over a tenth as many ten times each; prints what came out.
fn row(
    scenario: &Scenario,
    name: &str,
    seeds: u64,
    goals: &GoalSet,
    run: Contestant<'_>,
) -> Result<(), Box<dyn Error>> {
    let mut seconds = Vec::new();
    let (mut trials, mut inside, mut asked, mut least) = (0, 0, 0, 0.0);
    // By goal: the throughputs over the truth, and those of each DUT that is searched again.
    let mut relative = vec![Vec::new(); goals.goals().len()];
    let same = (seeds / AGAIN).max(1);
    let mut repeated: Vec<Vec<Vec<f64>>> = vec![vec![Vec::new(); same as usize]; goals.goals().len()];
    let once = (1..=seeds).map(|seed| (seed, seed, None));
    let again = (1..=seeds).map(|seed| (seed % same, seeds + seed, Some((seed % same) as usize)));
    for (which, seed, group) in once.chain(again) {
        let dut = scenario.dut(which, seed);
        let made = run(&dut)?;
        seconds.push(made.trial_s);
        trials += made.trials;
        least += scenario.least_s(goals.goals(), &dut);
        for (i, (goal, bounds)) in goals.goals().iter().zip(&made.goals).enumerate() {
            asked += 1;
            let Some((lower, upper, throughput)) = *bounds else { continue };
            let truths = scenario.truths(goal, &dut, made.trial_s);
            inside += usize::from(truths.iter().any(|t| lower <= t.1 && t.0 <= upper));
            match group {
                Some(group) => repeated[i][group].push(throughput),
                None => relative[i].push(throughput / truths.last().map_or(f64::NAN, |t| t.1)),
            }
        }
    }
    seconds.sort_by(f64::total_cmp);
    let at = |share: f64| seconds[((seconds.len() - 1) as f64 * share).round() as usize];
    let mean = seconds.iter().sum::<f64>() / seconds.len() as f64;
    let least = least / seconds.len() as f64;
    let spreads = |i: usize| {
        let again = repeated[i].iter().map(|found| spread(found)).sum::<f64>() / same as f64;
        let shown = |v: f64| if v.is_nan() { "no answer".to_owned() } else { format!("{v:.2} %") };
        format!("{} / {}", shown(again), shown(spread(&relative[i])))
    };
    println!(
        "| {} | {name} | {mean:.1} | {} | {} | {:.1} | {:.1} % | {} | {} | {least:.1} | {:.2} |",
        scenario.name,
        at(0.5),
        at(0.9),
        trials as f64 / seconds.len() as f64,
        100.0 * inside as f64 / f64::from(asked),
        spreads(0),
        spreads(1),
        mean / least,
    );
    std::io::stdout().flush()?;
    Ok(())
}

/// Largest less smallest over the median, percent.
fn spread(found: &[f64]) -> f64 {
    let mut found = found.to_vec();
    found.sort_by(f64::total_cmp);
    match (found.first(), found.last(), found.get(found.len() / 2)) {
        (Some(first), Some(last), Some(median)) => (last - first) / median * 100.0,
        _ => f64::NAN,
    }
}

/// The simulated DUT on a pipe: `dut TEXT` starts one anew, `LOAD DURATION` runs a trial and is answered with
/// `INTENDED SENT RECEIVED`.
fn simdut() -> Result<(), Box<dyn Error>> {
    let mut dut: Option<SimDut> = None;
    let mut out = std::io::stdout().lock();
    for line in std::io::stdin().lock().lines() {
        let line = line?;
        if let Some(text) = line.strip_prefix("dut ") {
            dut = Some(text.parse::<SimSetup>()?.start());
            continue;
        }
        let (load, duration) = line.split_once(' ').ok_or("neither `dut TEXT` nor `LOAD DURATION`")?;
        let spec = TrialSpec::steady(FrameSize::MIN, Fps::new(load.parse()?)?, duration.parse()?, Purpose::Search);
        let trial = dut.as_mut().ok_or("no DUT yet")?.run(&spec);
        let way = trial.directions.first().ok_or("no direction")?;
        writeln!(out, "{} {} {}", way.intended, way.sent, way.received)?;
        out.flush()?;
    }
    Ok(())
}
