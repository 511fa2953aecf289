//! `linerate runs show`: stored results again, without measuring.

use std::path::{Path, PathBuf};

use measure::{result::RunResult, sweep::SweepResult};
use report::{layout, layout::Sheet, write::write_atomic};

use super::{
    output,
    stored::{self, Stored},
};
use crate::{
    cli::{
        layout::{RunsArgs, RunsCommand, ShowArgs},
        OutputArgs,
    },
    out,
};
use failure::{Exit, Failure};

/// Runs the command.
pub fn run(args: &RunsArgs) -> Result<Exit, Failure> {
    match &args.command {
        RunsCommand::Show(args) => show(args),
    }
}

fn show(args: &ShowArgs) -> Result<Exit, Failure> {
    output::check(&OutputArgs { markdown: args.markdown.clone(), csv: args.csv.clone(), ..OutputArgs::default() })?;
    let stored = args.files.iter().map(|f| stored::read_any(f)).collect::<Result<Vec<_>, _>>()?;
    let one_sweep = match stored.as_slice() {
        [Stored::Sweep(sweep)] => Some(sweep.clone()),
        _ => None,
    };
    let results: Vec<RunResult> = stored.into_iter().flat_map(runs_of).collect();
    let sheets = match one_sweep.as_deref().filter(|_| args.layout.is_none()) {
        Some(sweep) => sweep_sheets(args, sweep)?,
        None => sheets(args, &results)?,
    };
    if let Some(sweep) = one_sweep.filter(|_| args.layout.is_none() && args.baseline.is_none()) {
        let written = write(args, markdown(&sheets).trim_start(), &report::sweep::csv(&sweep))?;
        out::print(text(&sheets).trim_start_matches('\n'));
        written.iter().for_each(|path| out::note(&format!("written {}", path.display())));
        return Ok(Exit::Passed);
    }
    let written = match results.as_slice() {
        [result] if sheets.is_empty() => {
            let written = write(args, &report::markdown::render(result), &report::csv::figures(result))?;
            out::print(&report::terminal::render(result, &output::style(), &[]));
            written
        }
        _ => {
            let written = write(args, markdown(&sheets).trim_start(), &csv(&sheets))?;
            out::print(text(&sheets).trim_start_matches('\n'));
            written
        }
    };
    for path in written {
        out::note(&format!("written {}", path.display()));
    }
    Ok(Exit::Passed)
}

/// The runs that a file holds.
fn runs_of(stored: Stored) -> Vec<RunResult> {
    match stored {
        Stored::Run(result) => vec![*result],
        Stored::Sweep(sweep) => sweep.points.into_iter().map(|p| p.result).collect(),
    }
}

/// The table of a sweep; against an old one, a comparison of each point that both have.
fn sweep_sheets(args: &ShowArgs, new: &SweepResult) -> Result<Vec<Sheet>, Failure> {
    let Some(path) = &args.baseline else { return Ok(vec![report::sweep::sheet(new)]) };
    let Stored::Sweep(old) = stored::read_any(path)? else {
        return Err(Failure::usage(format!(
            "--baseline {}: is one run, and a sweep compares with a sweep",
            path.display()
        )));
    };
    let (mut sheets, mut reasons) = (Vec::new(), Vec::new());
    for point in &new.points {
        let name = point.point(&new.keys);
        let compared = match old.points.iter().find(|p| p.values == point.values) {
            Some(was) => layout::compare(&point.result, &was.result),
            None => Err(vec!["the old sweep has no such point".to_owned()]),
        };
        match compared {
            Ok(sheet) => sheets.push(sheet),
            Err(why) => reasons.push(format!("{name}: {}", why.join("; "))),
        }
    }
    if sheets.is_empty() {
        return Err(not_compared(&args.files[0], path, &reasons));
    }
    if !reasons.is_empty() {
        sheets.push(Sheet::words("Not compared with the old result", reasons));
    }
    Ok(sheets)
}

fn sheets(args: &ShowArgs, results: &[RunResult]) -> Result<Vec<Sheet>, Failure> {
    let mut sheets = Vec::new();
    if let Some(layout) = args.layout {
        sheets.push(layout::sheet(&results.iter().collect::<Vec<_>>(), layout.layout()));
    }
    match (results, &args.baseline) {
        ([new], Some(old)) => {
            let sheet =
                layout::compare(new, &stored::read(old)?).map_err(|why| not_compared(&args.files[0], old, &why))?;
            sheets.push(sheet);
        }
        (_, Some(_)) => return Err(Failure::usage("--baseline: compares one result: give one file")),
        ([_], None) => {}
        (_, None) if args.layout.is_none() => {
            return Err(Failure::usage(
                "several results are shown in one table: add --layout nfvi, onp, router or flowlog",
            ))
        }
        _ => {}
    }
    Ok(sheets)
}

fn not_compared(new: &Path, old: &Path, why: &[String]) -> Failure {
    Failure::usage(format!("{} and {} do not compare: {}", new.display(), old.display(), why.join("; ")))
}

/// Sheets one under the other.
pub fn text(sheets: &[Sheet]) -> String {
    sheets.iter().map(|s| s.text(&output::style())).collect()
}

/// Sheets as sections of a Markdown document.
pub fn markdown(sheets: &[Sheet]) -> String {
    sheets.iter().map(Sheet::markdown).collect()
}

/// Sheets as CSV, an empty line between two.
pub fn csv(sheets: &[Sheet]) -> String {
    sheets.iter().map(Sheet::csv).collect::<Vec<_>>().join("\n")
}

fn write(args: &ShowArgs, markdown: &str, csv: &str) -> Result<Vec<PathBuf>, Failure> {
    let mut written = Vec::new();
    for (path, text) in [(&args.markdown, markdown), (&args.csv, csv)] {
        let Some(path) = path else { continue };
        if path == Path::new("-") {
            return Err(Failure::usage("-: the table goes to standard output already: name a file"));
        }
        write_atomic(path, text.as_bytes()).map_err(Failure::machine)?;
        written.push(path.clone());
    }
    Ok(written)
}
