//! Where results go: files first checked, then written whole or not at all; the table always.

use std::{
    env,
    io::{stdout, IsTerminal},
    path::{Path, PathBuf},
};

use measure::result::{RunResult, Verdict};
use report::{layout::Sheet, write::write_atomic, Style};

use super::runs;
use crate::{
    cli::OutputArgs,
    failure::{Exit, Failure},
    out,
};

/// What standard output can show.
pub fn style() -> Style {
    if !stdout().is_terminal() {
        return Style::PIPE;
    }
    let columns = console::Term::stdout().size_checked().map(|(_, columns)| usize::from(columns));
    let utf8 = ["LC_ALL", "LC_CTYPE", "LANG"]
        .iter()
        .filter_map(|name| env::var(name).ok())
        .find(|value| !value.is_empty())
        .is_none_or(|value| value.to_ascii_uppercase().replace('-', "").contains("UTF8"));
    let colour = env::var_os("NO_COLOR").is_none_or(|v| v.is_empty()) && env::var("TERM").map_or(true, |t| t != "dumb");
    Style::terminal(columns, colour, utf8)
}

/// Fails before anything is measured when a file could not be written afterwards.
pub fn check(args: &OutputArgs) -> Result<(), Failure> {
    let all: Vec<_> = files(args).collect();
    for (i, path) in all.iter().enumerate() {
        if all[..i].contains(path) && (path.is_file() || !path.exists()) {
            return Err(Failure::usage(format!(
                "{} is named twice: each document needs a file of its own",
                path.display()
            )));
        }
        let parent = match path.parent() {
            Some(p) if !p.as_os_str().is_empty() => p,
            _ => Path::new("."),
        };
        if !parent.is_dir() {
            return Err(Failure::usage(format!(
                "cannot write {}: its directory does not exist: make it first (mkdir -p {})",
                path.display(),
                parent.display()
            )));
        }
        if path.is_dir() {
            return Err(Failure::usage(format!(
                "cannot write {}: it is a directory: name a file in it",
                path.display()
            )));
        }
    }
    Ok(())
}

fn to_stdout(path: &Path) -> bool {
    path == Path::new("-")
}

fn files(args: &OutputArgs) -> impl Iterator<Item = &PathBuf> {
    [&args.json, &args.markdown, &args.svg, &args.csv, &args.csv_tests].into_iter().flatten().filter(|p| !to_stdout(p))
}

/// Writes the files asked for, prints the table (unless JSON goes to standard output), and says how it ended.
pub fn finish(result: &RunResult, args: &OutputArgs) -> Result<Exit, Failure> {
    finish_with(result, &[], args)
}

/// The same with tables in other layouts: after the usual ones, and as the CSV.
pub fn finish_with(result: &RunResult, sheets: &[Sheet], args: &OutputArgs) -> Result<Exit, Failure> {
    let json = || report::json::render(result).map_err(|e| e.to_string());
    let csv = || if sheets.is_empty() { report::csv::figures(result) } else { runs::csv(sheets) };
    write(
        &Documents {
            json: &json,
            markdown: &|| Ok(report::markdown::render(result) + &runs::markdown(sheets)),
            svg: &|| report::svg::render(result).map_err(|e| e.to_string()),
            csv: &|| Ok(csv()),
            csv_tests: &|| Ok(report::csv::tests(result)),
            table: &|written| report::terminal::render(result, &style(), written) + &runs::text(sheets),
        },
        args,
    )?;
    Ok(exit(result.standing.verdict()))
}

/// Makes one document.
pub type Document<'a> = &'a dyn Fn() -> Result<String, String>;

/// How each document of a result is made, when it is asked for.
pub struct Documents<'a> {
    pub json: Document<'a>,
    pub markdown: Document<'a>,
    pub svg: Document<'a>,
    pub csv: Document<'a>,
    pub csv_tests: Document<'a>,
    /// What is printed, with the files written.
    pub table: &'a dyn Fn(&[PathBuf]) -> String,
}

/// Writes the files asked for, and prints the table (unless JSON goes to standard output).
pub fn write(documents: &Documents<'_>, args: &OutputArgs) -> Result<(), Failure> {
    let mut written = Vec::new();
    let mut failed = Vec::new();
    let mut save = |path: &Option<PathBuf>, render: Document<'_>| {
        let Some(path) = path.as_deref().filter(|p| !to_stdout(p)) else { return };
        match render().and_then(|text| write_atomic(path, text.as_bytes()).map_err(|e| e.to_string())) {
            Ok(()) => written.push(path.to_owned()),
            Err(e) => failed.push(e),
        }
    };
    save(&args.json, documents.json);
    save(&args.markdown, documents.markdown);
    save(&args.svg, documents.svg);
    save(&args.csv, documents.csv);
    save(&args.csv_tests, documents.csv_tests);
    if args.json.as_deref().is_some_and(to_stdout) {
        out::print(&(documents.json)().map_err(Failure::failed)?);
    } else {
        out::print(&(documents.table)(&written));
    }
    if failed.is_empty() {
        return Ok(());
    }
    // Nothing measured is lost: what could not be written where it should be is kept where it can.
    let rescue = env::temp_dir().join(format!("linerate-{}.json", std::process::id()));
    let kept = (documents.json)().ok().and_then(|text| write_atomic(&rescue, text.as_bytes()).ok());
    let kept = if kept.is_some() { format!("; the result is kept in {}", rescue.display()) } else { String::new() };
    Err(Failure::machine(format!("{}{kept}", failed.join("; "))))
}

fn exit(verdict: Verdict) -> Exit {
    match verdict {
        Verdict::Passed => Exit::Passed,
        Verdict::Failed => Exit::Failed,
        Verdict::Inconclusive => Exit::Untrusted,
        Verdict::Stopped => Exit::Stopped,
    }
}
