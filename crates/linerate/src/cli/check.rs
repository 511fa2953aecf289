//! Flags of `linerate check`.

use std::path::PathBuf;

use clap::Args;

use super::groups::MemoryArg;

/// A CPU, or the first and the last of a row of them.
pub type Cpus = std::ops::RangeInclusive<u32>;

/// Reads `3` or `0-3`.
fn cpus(text: &str) -> Result<Cpus, String> {
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    match (first.trim().parse(), last.trim().parse()) {
        (Ok(first), Ok(last)) if first <= last && last < 4096 => Ok(first..=last),
        _ => Err("must be numbers of CPUs below 4096, such as 0,2 or 0-3".into()),
    }
}

/// `linerate check`
#[derive(Debug, Args)]
#[command(after_help = EXIT_CODES)]
pub struct CheckArgs {
    /// CPUs to check. The last one is the tester's in the trials, the one before it the device's. Default: all that this
    /// process may use.
    #[arg(long, value_name = "CPU,...", value_delimiter = ',', value_parser = cpus)]
    pub cpus: Vec<Cpus>,
    /// How long the check lasts: 1s to 10min.
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, default_value = "10s")]
    pub duration: String,
    /// Where packets live.
    #[arg(long, value_enum, default_value = "auto")]
    pub memory: MemoryArg,
    /// Write the result as JSON (`-` for standard output, without the text).
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// Hide the progress line.
    #[arg(long, short)]
    pub quiet: bool,
}

const EXIT_CODES: &str = "Exit codes: 0 this machine can measure something; 2 the command is wrong; 3 nothing that it \
measures can be trusted; 4 it lacks something; 130 stopped by Ctrl-C, with what was found so far. Page: docs/check.md";
