//! `forward show`, `forward route add ...`, `forward load`: requests to a data plane that runs.

use std::{
    fs,
    io::{self, Read},
    time::Duration,
};

use serde_json::Value;

use crate::{
    cli::forward::{Change, Control, Target},
    out,
};
use control::{Client, Request, MAX_LOAD};
use failure::{Exit, Failure};

/// Largest file of changes read.
const MAX_FILE_BYTES: u64 = 1 << 30;
/// How long a stop may take: a flow logger gives its collectors 10 s.
const ENDS_WITHIN: Duration = Duration::from_secs(15);

/// Sends the request to the data plane of this command, `forward` or `flowlog`, and prints the answer.
pub fn run(command: &str, control: &Control) -> Result<Exit, Failure> {
    match control {
        Control::Show { what, json, interval, limit, target } => {
            let interval_s = units::parse_duration_or_zero(interval)?.as_secs_f64();
            let request = Request::Show {
                what: what.name().into(),
                json: *json,
                limit: Some(*limit),
                interval_s: Some(interval_s),
            };
            match connect(command, target)?.ask(&request, &[])? {
                Value::String(text) => out::print(&text),
                value => out::print(&serde_json::to_string_pretty(&value).map_err(Failure::failed)?),
            }
        }
        Control::Address(change) => apply(command, "address", change)?,
        Control::Route(change) => apply(command, "route", change)?,
        Control::Neighbour(change) => apply(command, "neighbour", change)?,
        Control::Label(change) => apply(command, "label", change)?,
        Control::Network(change) => apply(command, "network", change)?,
        Control::Remote(change) => apply(command, "remote", change)?,
        Control::Fdb(change) => apply(command, "fdb", change)?,
        Control::Load { file, target } => {
            let text = read(file)?;
            let lines = text.iter().filter(|&&b| b == b'\n').count() as u64;
            if lines > MAX_LOAD {
                return Err(Failure::usage(format!(
                    "{}: {lines} lines; must be at most {MAX_LOAD} at once: split the file",
                    file.display()
                )));
            }
            let answer = connect(command, target)?
                .ask(&Request::Load(lines), &text)
                .map_err(|f| Failure { text: format!("{}: {}", file.display(), f.text), ..f })?;
            out::note(&format!(
                "{} {} applied in {:.2} s",
                answer["applied"],
                if answer["applied"] == 1 { "change" } else { "changes" },
                answer["took_s"].as_f64().unwrap_or(0.0)
            ));
        }
        Control::Stop { target } => {
            // For somebody who looks on: a script waits anyway.
            let waits = || {
                if out::watched() {
                    let most = ENDS_WITHIN.as_secs();
                    out::note(&format!("{command}: waiting up to {most} s until the process has ended"));
                }
            };
            connect(command, target)?.stop(ENDS_WITHIN, waits)?;
        }
    }
    Ok(Exit::Passed)
}

fn connect(command: &str, target: &Target) -> Result<Client, Failure> {
    Client::connect(command, target.name.as_deref(), target.socket.as_deref())
}

fn apply(command: &str, table: &str, change: &Change) -> Result<(), Failure> {
    if change.words.len() < 2 {
        let example = match table {
            "address" => "add 0 192.0.2.1/24",
            "route" => "add 203.0.113.0/24 via 192.0.2.9",
            "neighbour" => "add 0 192.0.2.9 02:00:00:00:00:09",
            "label" => "add 16 swap 17 via 192.0.2.9",
            "network" => "add 10 local 192.0.2.1 access 0",
            "remote" => "add 10 192.0.2.2",
            _ => "add 02:00:00:00:00:09 1",
        };
        let typed = change.words.join(" ");
        return Err(Failure::usage(format!(
            "{table} {typed:?}: must be add, replace or del and an entry, such as {table} {example}"
        )));
    }
    let line = format!("{table} {}", change.words.join(" "));
    connect(command, &change.target)?.ask(&Request::Apply(vec![line]), &[])?;
    Ok(())
}

/// The file's lines, each ended; `-` is standard input.
fn read(file: &std::path::Path) -> Result<Vec<u8>, Failure> {
    let refused = |e: String| Failure::usage(format!("{}: {e}", file.display()));
    let mut bytes = Vec::new();
    if file.as_os_str() == "-" {
        io::stdin().lock().take(MAX_FILE_BYTES + 1).read_to_end(&mut bytes).map_err(|e| refused(e.to_string()))?;
    } else {
        let open = fs::File::open(file).map_err(|e| refused(failure::unreadable(&e)))?;
        open.take(MAX_FILE_BYTES + 1).read_to_end(&mut bytes).map_err(|e| refused(e.to_string()))?;
    }
    if bytes.len() as u64 > MAX_FILE_BYTES {
        return Err(refused("larger than 1 GiB: split the file".into()));
    }
    if !bytes.is_empty() && !bytes.ends_with(b"\n") {
        bytes.push(b'\n');
    }
    Ok(bytes)
}
