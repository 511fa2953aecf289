//! Results read back from files.

use std::{fs, path::Path};

use latency::{
    raw::result::{RawResult, RAW_SCHEMA},
    result::{LatencyResult, LATENCY_SCHEMA},
};
use measure::{
    repeat::{RepeatResult, REPEAT_SCHEMA},
    result::{RunResult, SCHEMA, SCHEMA_1},
    sweep::{SweepResult, SWEEP_SCHEMA, SWEEP_SCHEMA_1},
    upgrade,
};

use failure::Failure;

/// Largest result of a run: one of thousands of trials with their histograms is some ten megabytes.
const MAX_RUN: u64 = 256 << 20;
/// Largest result of a sweep, which holds up to 64 runs, or of a repeat.
const MAX_BYTES: u64 = 1 << 30;

/// A result of any kind.
#[derive(Debug)]
pub enum Stored {
    /// Of one run.
    Run(Box<RunResult>),
    /// Of a sweep.
    Sweep(Box<SweepResult>),
    /// Of several runs of a plan.
    Repeat(Box<RepeatResult>),
    /// Of messages over sockets.
    Latency(Box<LatencyResult>),
    /// Of raw frames, or of every method of a machine.
    Raw(Box<RawResult>),
}

/// The result of a run from a file. What is none is refused in one line.
pub fn read(path: &Path) -> Result<RunResult, Failure> {
    match read_any(path)? {
        Stored::Run(result) => Ok(*result),
        Stored::Sweep(sweep) => Err(at(path)(format!("is a sweep of {} points, not one run", sweep.points.len()))),
        Stored::Repeat(repeat) => Err(at(path)(format!("holds {} runs of a plan, not one", repeat.runs.len()))),
        Stored::Latency(_) | Stored::Raw(_) => {
            Err(at(path)("is of linerate latency, not of a bench or trial".to_owned()))
        }
    }
}

fn at(path: &Path) -> impl Fn(String) -> Failure + '_ {
    move |what| Failure::usage(format!("result {}: {what}", path.display().to_string().escape_debug()))
}

/// A result of any kind from a file.
pub fn read_any(path: &Path) -> Result<Stored, Failure> {
    let at = at(path);
    match fs::metadata(path) {
        Ok(m) if m.is_file() && m.len() <= MAX_BYTES => {}
        Ok(m) if m.is_file() => return Err(at("is too large for a result file (limit 1 GiB)".to_owned())),
        Ok(_) => return Err(at("must be a regular file, written with --json".to_owned())),
        Err(e) => return Err(at(failure::unreadable(&e))),
    }
    let bytes = fs::read(path).map_err(|e| at(failure::unreadable(&e)))?;
    parse(&bytes).map_err(at)
}

fn parse(bytes: &[u8]) -> Result<Stored, String> {
    /// The one field that tells a result from any other JSON.
    #[derive(serde::Deserialize)]
    struct Head {
        schema: Option<serde_json::Value>,
    }
    const GIVE: &str = "give a file written with --json";
    if bytes.trim_ascii_start().first().is_some_and(|first| *first != b'{') {
        return Err(format!("is not a JSON object: {GIVE}"));
    }
    let not_json = |e: serde_json::Error| format!("is not a JSON object ({}): {GIVE}", e.to_string().escape_debug());
    let head: Head = serde_json::from_slice(bytes).map_err(not_json)?;
    let whole = |e: serde_json::Error| {
        let e: String = e.to_string().chars().take(200).collect();
        format!("is not a complete result: {}", e.escape_debug())
    };
    match head.schema {
        Some(serde_json::Value::String(schema)) if is_run(&schema) && bytes.len() as u64 > MAX_RUN => {
            Err("is too large for the result of one run (limit 256 MiB)".to_owned())
        }
        Some(serde_json::Value::String(schema)) if is_run(&schema) => {
            let mut run: Box<RunResult> = serde_json::from_slice(bytes).map_err(whole)?;
            upgrade::run(&mut run);
            Ok(Stored::Run(run))
        }
        Some(serde_json::Value::String(schema)) if [SWEEP_SCHEMA, SWEEP_SCHEMA_1].contains(&schema.as_str()) => {
            let mut sweep: Box<SweepResult> = serde_json::from_slice(bytes).map_err(whole)?;
            upgrade::sweep(&mut sweep);
            Ok(Stored::Sweep(sweep))
        }
        Some(serde_json::Value::String(schema)) if schema == REPEAT_SCHEMA => {
            Ok(Stored::Repeat(serde_json::from_slice(bytes).map_err(whole)?))
        }
        Some(serde_json::Value::String(schema)) if schema == LATENCY_SCHEMA => {
            Ok(Stored::Latency(serde_json::from_slice(bytes).map_err(whole)?))
        }
        Some(serde_json::Value::String(schema)) if schema == RAW_SCHEMA => {
            Ok(Stored::Raw(serde_json::from_slice(bytes).map_err(whole)?))
        }
        Some(serde_json::Value::String(schema)) => {
            let schema: String = schema.chars().take(60).collect();
            Err(format!(
                "its schema is {schema:?}, and must be {SCHEMA:?}, {SWEEP_SCHEMA:?}, {REPEAT_SCHEMA:?}, \
                 {LATENCY_SCHEMA:?} or {RAW_SCHEMA:?}"
            ))
        }
        _ => Err(format!("has no schema: give a result file written with --json ({SCHEMA:?})")),
    }
}

fn is_run(schema: &str) -> bool {
    [SCHEMA, SCHEMA_1].contains(&schema)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_is_not_a_result_is_refused_in_one_line() {
        let deep = format!("{{\"schema\":{}", "[".repeat(100_000));
        let errors = [
            "",
            "[1, 2]",
            "{\"schema\": \"evil\\u001b[2J/9\"}",
            "{\"schema\": 7}",
            "{\"a\": 1}",
            "{\"schema\": \"linerate-sweep/1\"}",
            "{\"schema\": \"linerate-result/1\"}",
            &deep,
        ]
        .map(|text| parse(text.as_bytes()).unwrap_err());
        assert!(!errors.iter().any(|error| error.chars().any(char::is_control)), "{errors:?}");
        insta::assert_snapshot!(errors.join("\n"), @r#"
        is not a JSON object (EOF while parsing a value at line 1 column 0): give a file written with --json
        is not a JSON object: give a file written with --json
        its schema is "evil\u{1b}[2J/9", and must be "linerate-result/2", "linerate-sweep/2", "linerate-repeat/1", "linerate-latency/1" or "linerate-latency-raw/1"
        has no schema: give a result file written with --json ("linerate-result/2")
        has no schema: give a result file written with --json ("linerate-result/2")
        is not a complete result: missing field `linerate_version` at line 1 column 30
        is not a complete result: missing field `linerate_version` at line 1 column 31
        is not a JSON object (recursion limit exceeded at line 1 column 137): give a file written with --json
        "#);
        let errors = ["/dev/zero", "/nowhere/r.json"].map(|path| read(Path::new(path)).unwrap_err());
        assert!(errors.iter().all(|error| error.exit == failure::Exit::Usage));
        insta::assert_snapshot!(errors.map(|error| error.text).join("\n"), @r"
        result /dev/zero: must be a regular file, written with --json
        result /nowhere/r.json: no such file: check the path
        ");
    }
}
