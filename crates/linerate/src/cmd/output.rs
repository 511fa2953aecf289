//! Output of results: files are checked first, then written completely or not at all. The table is always printed.

use std::{
    env,
    io::{stdout, IsTerminal},
    path::{Path, PathBuf},
};

use campaign::{files::to_stdout, suite::path_for_run};
use failure::{Exit, Failure};
use measure::result::RunResult;
use report::{write::write_atomic, Detail, Section, Style};

use crate::{cli::OutputArgs, out};

pub use campaign::files::{apart, check_file};

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

/// Fails before the measurement when a file cannot be written afterwards.
pub fn check(args: &OutputArgs) -> Result<(), Failure> {
    for (flag, path) in
        [("--markdown", &args.markdown), ("--svg", &args.svg), ("--csv", &args.csv), ("--csv-tests", &args.csv_tests)]
    {
        if path.as_deref().is_some_and(to_stdout) {
            return Err(Failure::usage(format!("{flag} -: the table goes to standard output: name a file")));
        }
    }
    apart(files(args))
}

/// The files of one run of a suite, with the name of the run in each file name: see [`path_for_run`].
pub fn for_run(args: &OutputArgs, run: &str) -> OutputArgs {
    let file = |path: &Option<PathBuf>| path.as_deref().map(|path| path_for_run(path, run));
    OutputArgs {
        json: file(&args.json),
        markdown: file(&args.markdown),
        svg: file(&args.svg),
        csv: file(&args.csv),
        csv_tests: file(&args.csv_tests),
        ..args.clone()
    }
}

/// Prints what is for people, unless one of these documents is printed.
pub fn table<'a>(documents: impl IntoIterator<Item = &'a PathBuf>, text: impl FnOnce() -> String) {
    if !documents.into_iter().any(|path| to_stdout(path)) {
        out::print(&text());
    }
}

/// Writes one file completely, or prints it.
pub fn file(path: &Path, text: &str) -> Result<(), Failure> {
    if to_stdout(path) {
        out::print(text);
        return Ok(());
    }
    check_file(path)?;
    write_atomic(path, text.as_bytes()).map_err(Failure::machine)
}

fn files(args: &OutputArgs) -> impl Iterator<Item = &PathBuf> {
    [&args.json, &args.markdown, &args.svg, &args.csv, &args.csv_tests].into_iter().flatten().filter(|p| !to_stdout(p))
}

/// Writes the files requested, prints the table (except when JSON goes to standard output), and returns the outcome.
pub fn finish(result: &RunResult, args: &OutputArgs) -> Result<Exit, Failure> {
    finish_with(result, &[], args)
}

/// The same with tables in other layouts: after the usual tables, and as the only content of the CSV.
pub fn finish_with(result: &RunResult, sheets: &[Section], args: &OutputArgs) -> Result<Exit, Failure> {
    let named = args.dut_name.as_ref().map(|name| RunResult { dut_name: Some(name.clone()), ..result.clone() });
    let result = named.as_ref().unwrap_or(result);
    let document = report::run::document(result, sheets.to_vec());
    write(
        &Documents {
            json: &|| report::json::render(result).map_err(|e| e.to_string()),
            markdown: &|| Ok(report::markdown::render(&document)),
            svg: &|| report::svg::render(result).map_err(|e| e.to_string()),
            csv: &|| Ok(report::csv::figures(&document)),
            csv_tests: &|| Ok(report::csv::tests(&document)),
            table: &|written| report::terminal::render(&document, detail(args.verbose), &style(), written),
        },
        args,
    )?;
    Ok(campaign::exit_of(result.standing))
}

/// How much is printed.
pub fn detail(verbose: bool) -> Detail {
    match verbose {
        true => Detail::Verbose,
        false => Detail::Short,
    }
}

/// Makes one document.
pub type Document<'a> = &'a dyn Fn() -> Result<String, String>;

/// How to make each document of a result, if requested.
pub struct Documents<'a> {
    pub json: Document<'a>,
    pub markdown: Document<'a>,
    pub svg: Document<'a>,
    pub csv: Document<'a>,
    pub csv_tests: Document<'a>,
    /// The printed text, given the files written.
    pub table: &'a dyn Fn(&[PathBuf]) -> String,
}

/// Writes the files requested, and prints the table (except when JSON goes to standard output).
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
    // If a file cannot be written, the result is kept in another place.
    let rescue = env::temp_dir().join(format!("linerate-{}.json", std::process::id()));
    let kept = (documents.json)().ok().and_then(|text| write_atomic(&rescue, text.as_bytes()).ok());
    let kept = if kept.is_some() { format!("; the result is kept in {}", rescue.display()) } else { String::new() };
    Err(Failure::machine(format!("{}{kept}", failed.join("; "))))
}
