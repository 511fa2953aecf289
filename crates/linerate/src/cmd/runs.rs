//! `linerate runs show`: stored results again, without measuring.

use std::path::{Path, PathBuf};

use campaign::stored::{self, Stored};
use measure::{repeat::RepeatResult, result::RunResult, sweep::SweepResult};
use report::{layout, Document, Section};

use super::output::{self, Documents};
use crate::cli::{
    layout::{RunsArgs, RunsCommand, ShowArgs},
    OutputArgs,
};
use failure::{Exit, Failure};

/// Runs the command.
pub fn run(args: &RunsArgs) -> Result<Exit, Failure> {
    match &args.command {
        RunsCommand::Show(args) => show(args),
    }
}

fn show(args: &ShowArgs) -> Result<Exit, Failure> {
    let wanted = output_args(args);
    if [&args.markdown, &args.svg, &args.csv].into_iter().flatten().any(|path| path == Path::new("-")) {
        return Err(Failure::usage("-: the table goes to standard output already: name a file"));
    }
    output::check(&wanted)?;
    let stored = args.files.iter().map(|f| stored::read_any(f)).collect::<Result<Vec<_>, _>>()?;
    if let ([Stored::Sweep(sweep)], None) = (stored.as_slice(), args.layout) {
        show_sweep(args, sweep, &wanted)?;
        return Ok(Exit::Passed);
    }
    if let ([Stored::Repeat(repeat)], None) = (stored.as_slice(), args.layout) {
        show_repeat(args, repeat, &wanted)?;
        return Ok(Exit::Passed);
    }
    if let ([one @ (Stored::Latency(_) | Stored::Raw(_))], None) = (stored.as_slice(), args.layout) {
        return show_latency(args, one, &wanted);
    }
    if stored.iter().any(|one| matches!(one, Stored::Latency(_) | Stored::Raw(_))) {
        return Err(Failure::usage(
            "results of linerate latency have no --layout, and are shown one by one: two of them with --baseline OLD NEW",
        ));
    }
    let results: Vec<RunResult> = stored.into_iter().flat_map(runs_of).collect();
    let sheets = sheets(args, &results)?;
    let one = match results.as_slice() {
        [result] => Some(result),
        _ if args.json.is_some() || args.svg.is_some() => {
            return Err(Failure::usage("--json and --svg: written of one result or one sweep: give one file"))
        }
        _ => None,
    };
    let document = match one.filter(|_| sheets.is_empty()) {
        Some(result) => report::run::document(result, []),
        None => Document::of(sheets),
    };
    let none = || Err("JSON and SVG are of one result: give one file".to_owned());
    let documents = Documents {
        json: &|| one.map_or_else(none, |result| report::json::render(result).map_err(|e| e.to_string())),
        svg: &|| one.map_or_else(none, |result| report::svg::render(result).map_err(|e| e.to_string())),
        markdown: &|| Ok(report::markdown::render(&document)),
        csv: &|| Ok(report::csv::figures(&document)),
        csv_tests: &none,
        table: &|written| table(&document, args, written),
    };
    output::write(&documents, &wanted)?;
    Ok(Exit::Passed)
}

/// The files requested, as for a benchmark.
fn output_args(args: &ShowArgs) -> OutputArgs {
    OutputArgs {
        json: args.json.clone(),
        markdown: args.markdown.clone(),
        svg: args.svg.clone(),
        csv: args.csv.clone(),
        ..OutputArgs::default()
    }
}

fn table(document: &Document, args: &ShowArgs, written: &[PathBuf]) -> String {
    report::terminal::render(document, output::detail(args.verbose), &output::style(), written)
}

fn show_sweep(args: &ShowArgs, sweep: &SweepResult, wanted: &OutputArgs) -> Result<(), Failure> {
    let document = Document::of(sweep_sheets(args, sweep)?).with([report::sweep::standing(sweep)]);
    let documents = Documents {
        json: &|| report::json::sweep(sweep).map_err(|e| e.to_string()),
        svg: &|| report::svg::sweep(sweep).map_err(|e| e.to_string()),
        markdown: &|| Ok(report::markdown::render(&document)),
        csv: &|| match args.baseline {
            None => Ok(report::sweep::csv(sweep)),
            Some(_) => Ok(report::csv::figures(&document)),
        },
        csv_tests: &|| Ok(report::sweep::csv_tests(sweep)),
        table: &|written| table(&document, args, written),
    };
    output::write(&documents, wanted)
}

fn show_repeat(args: &ShowArgs, repeat: &RepeatResult, wanted: &OutputArgs) -> Result<(), Failure> {
    let no_picture = || Failure::usage("--svg: several runs of a plan have no picture: give a result of one run");
    args.svg.as_ref().map_or(Ok(()), |_| Err(no_picture()))?;
    let sheet = match &args.baseline {
        None => report::repeat::sheet(repeat),
        Some(path) => match stored::read_any(path)? {
            Stored::Repeat(old) => {
                layout::compare_repeats(repeat, &old).map_err(|why| not_compared(&args.files[0], path, &why))?
            }
            Stored::Run(_) | Stored::Sweep(_) | Stored::Latency(_) | Stored::Raw(_) => {
                return Err(Failure::usage(format!(
                    "--baseline {}: must hold several runs of a plan (bench --repeat N), as the new result does",
                    path.display()
                )))
            }
        },
    };
    let document = Document::of(vec![sheet, report::repeat::standing(repeat)]);
    let none = || Ok(String::new());
    let documents = Documents {
        json: &|| report::json::repeat(repeat).map_err(|e| e.to_string()),
        svg: &none,
        markdown: &|| Ok(report::markdown::render(&document)),
        csv: &|| match args.baseline {
            None => Ok(report::repeat::csv(repeat)),
            Some(_) => Ok(report::csv::figures(&document)),
        },
        csv_tests: &none,
        table: &|written| table(&document, args, written),
    };
    output::write(&documents, wanted)
}

/// A result of `linerate latency`, alone or against an earlier one.
fn show_latency(args: &ShowArgs, result: &Stored, wanted: &OutputArgs) -> Result<Exit, Failure> {
    fn named(stored: &Stored) -> Vec<report::latency::Named<'_>> {
        match stored {
            Stored::Latency(result) => report::latency::of_sockets(result),
            Stored::Raw(result) => report::latency::of_raw(result),
            Stored::Run(_) | Stored::Sweep(_) | Stored::Repeat(_) => Vec::new(),
        }
    }
    let against = args.baseline.as_ref().map(|path| -> Result<Document, Failure> {
        let old = stored::read_any(path)?;
        if std::mem::discriminant(&old) != std::mem::discriminant(result) {
            let why = "one is of raw frames, the other of round trips over sockets, or of a bench".to_owned();
            return Err(not_compared(&args.files[0], path, &[why]));
        }
        report::latency::compared(&named(result), &named(&old))
            .map_err(|why| not_compared(&args.files[0], path, &[why]))
    });
    let against = against.transpose()?;
    match result {
        Stored::Latency(result) => super::latency::write_sockets(result, None, against, None, wanted)?,
        Stored::Raw(result) => super::latency::write_raw(result, None, against, None, wanted)?,
        Stored::Run(_) | Stored::Sweep(_) | Stored::Repeat(_) => {}
    }
    Ok(Exit::Passed)
}

/// The runs in a file.
fn runs_of(stored: Stored) -> Vec<RunResult> {
    match stored {
        Stored::Run(result) => vec![*result],
        Stored::Sweep(sweep) => sweep.points.into_iter().map(|p| p.result).collect(),
        Stored::Repeat(repeat) => repeat.runs,
        // Shown by themselves.
        Stored::Latency(_) | Stored::Raw(_) => Vec::new(),
    }
}

/// The table of a sweep; with a baseline, a comparison of each point that both sweeps have.
fn sweep_sheets(args: &ShowArgs, new: &SweepResult) -> Result<Vec<Section>, Failure> {
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
        sheets.push(report::sheet::words("Not compared with the old result", reasons));
    }
    Ok(sheets)
}

fn sheets(args: &ShowArgs, results: &[RunResult]) -> Result<Vec<Section>, Failure> {
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
