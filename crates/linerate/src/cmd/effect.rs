//! `linerate host effect`: what a setting is worth here.

use std::{
    ffi::OsString,
    path::{Path, PathBuf},
};

use campaign::{
    effect::{self, EffectOptions, EffectView, KEPT},
    files,
    tuned::Tuned,
    Launcher,
};
use failure::{Exit, Failure, Stop};
use host::{journal, machine::Machine, Roots};
use measure::plan::Plan;
use rig::host_plan;

use super::{bench, output, plan};
use crate::{
    cli::{self, host::EffectArgs, BenchArgs, Command, OutputArgs},
    out,
};

/// What is measured where nothing was asked for: the usual seven sizes would take minutes in each leg.
const USUAL: [&str; 3] = ["--frame-sizes", "64", "--no-latency"];

/// Runs the command.
pub fn run(args: &EffectArgs) -> Result<Exit, Failure> {
    let asked = if args.bench.is_empty() { USUAL.map(OsString::from).into() } else { args.bench.clone() };
    let mut bench_args = bench_args(&asked)?;
    bench_args.output.quiet = true;
    let roots = Roots::default();
    let machine = Machine::read(&roots);
    let cores = match &bench_args.machine.core_plan {
        Some(file) => host_plan::read_host_plan(file, &machine)?.cores,
        None => bench::host_plan(&bench_args)?.cores,
    };
    if effect::is_applied(Path::new(journal::DIR)) {
        return Err(Failure::machine(
            "a plan is applied, or measured with: wait for its end, or sudo linerate host revert",
        ));
    }
    if let Some(file) = args.json.as_deref().filter(|file| !files::to_stdout(file)) {
        files::check_file(file)?;
    }
    let plan = effect::setting(&args.id, args.value.as_deref(), &roots, &machine, cores)?;
    let test = plan::for_bench(&bench_args)?;
    let options = EffectOptions {
        id: args.id.clone(),
        plan,
        rounds: args.rounds,
        test: format!("linerate bench {}", flags(&asked)),
        job: bench::job_of(&bench_args, Plan::clone(&test))?,
        journals: PathBuf::from(journal::DIR),
    };
    let (stop, guard) = (Stop::on_signals()?, Tuned::guarded()?);
    let measured = effect::run(&options, &Launcher::new()?, &stop, &mut View { watched: out::watched() });
    // Otherwise the guard tries once more.
    if !effect::is_applied(Path::new(journal::DIR)) {
        guard.dismissed();
    }
    let measured = measured?;
    output::table(&args.json, || report::host::effect(&measured));
    let text = serde_json::to_string_pretty(&measured).map_err(Failure::failed)? + "\n";
    if let Some(file) = &args.json {
        output::file(file, &text)?;
    }
    // Without a figure of the tester there is nothing to tell later.
    if !measured.figures.iter().any(|figure| figure.more_is_better && figure.change.is_some()) {
        return Ok(Exit::Failed);
    }
    if let Err(e) = effect::keep(Path::new(KEPT), &measured.id, &text) {
        out::note(&format!("linerate: {KEPT}: {e}: not kept for audits"));
    }
    Ok(Exit::Passed)
}

fn flags(flags: &[OsString]) -> String {
    flags.iter().map(|flag| flag.to_string_lossy()).collect::<Vec<_>>().join(" ")
}

/// The flags behind `--`, as bench reads them.
fn bench_args(flags: &[OsString]) -> Result<BenchArgs, Failure> {
    let words = ["linerate", "bench"].map(OsString::from).into_iter().chain(flags.iter().cloned());
    let wrong = |e: clap::Error| Failure::usage(format!("behind --: {}", cli::parsing::one_line(&e)));
    match cli::parsing::parse(words).map_err(wrong)?.command {
        Command::Bench(args)
            if args.tune || args.list || args.dry_run || args.print_config || args.repeat.is_some() =>
        {
            Err(Failure::usage("behind --: flags that say what one run measures; neither --tune nor --repeat"))
        }
        Command::Bench(args) if has_documents(&args.output) => {
            Err(Failure::usage("behind --: each leg writes over the last one's document: use host effect --json FILE"))
        }
        Command::Bench(args) => Ok(*args),
        _ => Err(Failure::usage("behind --: flags of bench, such as -- --dut l3 --frame-sizes 64")),
    }
}

fn has_documents(args: &OutputArgs) -> bool {
    [&args.json, &args.markdown, &args.svg, &args.csv, &args.csv_tests].iter().any(|file| file.is_some())
}

struct View {
    watched: bool,
}

impl EffectView for View {
    fn begins(&mut self, number: usize, of: usize, with: bool) {
        if self.watched {
            out::note(&format!("leg {number} of {of}, {} the change", if with { "with" } else { "without" }));
        }
    }

    fn failed(&mut self, failure: &Failure) {
        out::note(&format!("linerate: {failure}"));
    }
}
