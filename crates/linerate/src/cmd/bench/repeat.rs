//! `linerate bench --repeat N`: whole runs of a plan, and one table of how far they agree.

use campaign::{
    repeat::{RepeatView, Repeated},
    Launcher,
};
use failure::{Exit, Failure, Stop};
use measure::{
    plan::{Plan, ValidPlan},
    repeat::RepeatResult,
    result::RunResult,
};
use report::Document;
use rig::Device;

use super::job;
use crate::{
    cli::BenchArgs,
    cmd::output::{self, Documents},
    out,
};

/// Makes the runs.
pub fn run(args: &BenchArgs, (plan, device): (&ValidPlan, &Device), runs: i64) -> Result<Exit, Failure> {
    campaign::repeat::check(plan, runs)?;
    refuse(args)?;
    output::check(&args.output)?;
    let job = job::of(args, Plan::clone(plan))?;
    let mut view = View { watched: !args.output.quiet && out::watched() };
    let Repeated { exit, result } =
        campaign::repeat::run((plan, device), &job, runs, &Launcher::new()?, &Stop::on_signals()?, &mut view)?;
    if let Some(mut result) = result {
        if let Some(name) = &args.output.dut_name {
            result.runs.iter_mut().for_each(|run| run.dut_name = Some(name.clone()));
        }
        show(&result, args)?;
    }
    Ok(exit)
}

/// Refuses documents that are of one run only.
fn refuse(args: &BenchArgs) -> Result<(), Failure> {
    let given = [
        ("--svg", args.output.svg.is_some()),
        ("--csv-tests", args.output.csv_tests.is_some()),
        ("--layout", args.tables.layout.is_some()),
        ("--baseline", args.tables.baseline.is_some()),
    ];
    match given.iter().find(|(_, given)| *given) {
        Some((flag, _)) => Err(Failure::usage(format!(
            "{flag}: is written of one run: leave out --repeat, or write all runs with --json FILE"
        ))),
        None => Ok(()),
    }
}

/// Says how far it is, on a terminal.
struct View {
    watched: bool,
}

impl RepeatView for View {
    fn begins(&mut self, number: u32, of: u32) {
        if self.watched && number == 1 {
            out::note(&format!("{of} runs"));
        }
    }

    fn measured(&mut self, number: u32, of: u32, result: &RunResult) {
        if self.watched {
            out::note(&format!("run {number} of {of}: {}", report::repeat::line(result)));
        }
    }

    fn failed(&mut self, failure: &Failure) {
        out::note(&format!("linerate: {failure}"));
    }
}

/// Prints the table and writes the requested files.
fn show(result: &RepeatResult, args: &BenchArgs) -> Result<(), Failure> {
    let document = Document::of(vec![report::repeat::sheet(result), report::repeat::standing(result)]);
    let none = || Ok(String::new());
    output::write(
        &Documents {
            json: &|| report::json::repeat(result).map_err(|e| e.to_string()),
            markdown: &|| Ok(report::markdown::render(&document)),
            svg: &none,
            csv: &|| Ok(report::repeat::csv(result)),
            csv_tests: &none,
            table: &|written| {
                report::terminal::render(&document, output::detail(args.output.verbose), &output::style(), written)
            },
        },
        &args.output,
    )
}
