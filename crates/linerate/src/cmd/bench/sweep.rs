//! The progress of a sweep, its table, and its files.

use std::path::Path;

use campaign::{
    sweep::{SweepView, Swept},
    Launcher,
};
use failure::{Exit, Failure, Stop};
use measure::{
    plan::{Axis, Plan, Point, ValidPlan},
    result::RunResult,
    sweep::SweepResult,
};
use report::{layout, Document};

use super::job;
use crate::{
    cli::BenchArgs,
    cmd::output::{self, Documents},
    out,
};

/// Runs every point of the plan's sweep.
pub fn run(args: &BenchArgs, plan: &ValidPlan) -> Result<Exit, Failure> {
    if args.tables.baseline.is_some() {
        return Err(Failure::usage(
            "--baseline: compare two stored sweeps: linerate runs show new.json --baseline old.json",
        ));
    }
    output::check(&args.output)?;
    let mut view = View { to_stdout: args.output.json.as_deref() == Some(Path::new("-")), quiet: args.output.quiet };
    let (points, axes) = (plan.sweep.points().len(), plan.sweep.axes.iter().map(Axis::to_string).collect::<Vec<_>>());
    let plural = if points == 1 { "" } else { "s" };
    view.print(&format!("{points} point{plural}: {}\n", axes.join("; ")));
    let job = job::of(args, Plan::clone(plan))?;
    let Swept { exit, result, ended } =
        campaign::sweep::run(plan, &job, &Launcher::new()?, &Stop::on_signals()?, &mut view)?;
    if let Some(result) = &result {
        show(result, args)?;
    }
    // An error half way comes after the figures measured before.
    ended.map(|()| exit)
}

/// Prints each point as it ends; to standard error when the result goes to standard output.
struct View {
    to_stdout: bool,
    quiet: bool,
}

impl View {
    fn print(&self, text: &str) {
        match (self.to_stdout, self.quiet) {
            (false, _) => out::print(text),
            (true, false) => out::note(text.trim_end()),
            (true, true) => {}
        }
    }
}

impl SweepView for View {
    fn begins(&mut self, number: usize, of: usize, point: &Point) {
        self.print(&format!("{number} of {of}: {point}\n"));
    }

    fn measured(&mut self, result: &RunResult) {
        self.print(&report::sweep::lines(result));
    }

    fn failed(&mut self, failure: &Failure) {
        out::note(&format!("linerate: {failure}"));
    }
}

/// Prints the table and writes the requested files.
fn show(result: &SweepResult, args: &BenchArgs) -> Result<(), Failure> {
    let results: Vec<_> = result.points.iter().map(|p| &p.result).collect();
    let mut sheets = vec![report::sweep::sheet(result)];
    sheets.extend(args.tables.layout.map(|layout| layout::sheet(&results, layout.layout())));
    let json = || report::json::sweep(result).map_err(|e| e.to_string());
    let csv = || match sheets.get(1..) {
        Some(layouts @ [_, ..]) => report::sheet::csv(layouts),
        _ => report::sweep::csv(result),
    };
    let document = Document::of(sheets.clone()).with([report::sweep::standing(result)]);
    output::write(
        &Documents {
            json: &json,
            markdown: &|| Ok(report::markdown::render(&document)),
            svg: &|| report::svg::sweep(result).map_err(|e| e.to_string()),
            csv: &|| Ok(csv()),
            csv_tests: &|| Ok(report::sweep::csv_tests(result)),
            table: &|written| {
                let detail = output::detail(args.output.verbose);
                format!("\n{}", report::terminal::render(&document, detail, &output::style(), written))
            },
        },
        &args.output,
    )
}
