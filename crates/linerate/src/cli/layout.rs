//! Layouts of tables, and results stored before.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use report::layout::Layout;

/// Layout of a source document.
#[derive(Debug, Clone, Copy, ValueEnum, PartialEq, Eq)]
pub enum LayoutArg {
    /// The two-VM document: PPS, Mbps (layer 1) and throughput % over both ports.
    Nfvi,
    /// The ONP report: Mbps, packets/s, % line rate, latency in ns.
    Onp,
    /// The small-router document: L2 and L1 bits/s, packets/s, % of line rate.
    Router,
    /// The flow logger's rates.
    Flowlog,
}

impl LayoutArg {
    /// The layout of the report.
    pub fn layout(self) -> Layout {
        match self {
            Self::Nfvi => Layout::Nfvi,
            Self::Onp => Layout::Onp,
            Self::Router => Layout::Router,
            Self::Flowlog => Layout::Flowlog,
        }
    }
}

/// Layouts of results besides the usual tables.
#[derive(Debug, Args, Default)]
#[command(next_help_heading = "Output")]
pub struct LayoutArgs {
    /// Also print the table of a source document. --markdown adds it; --csv holds only this table.
    #[arg(long, value_enum, value_name = "LAYOUT")]
    pub layout: Option<LayoutArg>,
    /// Compare with an earlier result (JSON) of the same plan: improvement in percent. Printed and written as with
    /// --layout.
    #[arg(long, value_name = "OLD.json")]
    pub baseline: Option<PathBuf>,
}

/// `linerate runs`
#[derive(Debug, Args)]
pub struct RunsArgs {
    /// What to do.
    #[command(subcommand)]
    pub command: RunsCommand,
}

/// The subcommands of `runs`.
#[derive(Debug, Subcommand)]
pub enum RunsCommand {
    /// Show a stored result again, in any layout or compared with an earlier one; or several results in one layout.
    Show(ShowArgs),
}

/// `linerate runs show`
#[derive(Debug, Args)]
pub struct ShowArgs {
    /// A result written with --json; several with --layout.
    #[arg(value_name = "RESULT.json", required = true)]
    pub files: Vec<PathBuf>,
    /// The table of a source document instead of the usual ones.
    #[arg(long, value_enum, value_name = "LAYOUT")]
    pub layout: Option<LayoutArg>,
    /// Compare with an earlier result of the same plan: improvement in percent.
    #[arg(long, value_name = "OLD.json")]
    pub baseline: Option<PathBuf>,
    /// Print every statement: each departure, warning, placement and percentile.
    #[arg(long, short)]
    pub verbose: bool,
    /// Write the output as Markdown.
    #[arg(long, value_name = "FILE")]
    pub markdown: Option<PathBuf>,
    /// Write the output as CSV.
    #[arg(long, value_name = "FILE")]
    pub csv: Option<PathBuf>,
    /// Write the pictures of one result or sweep as SVG.
    #[arg(long, value_name = "FILE")]
    pub svg: Option<PathBuf>,
    /// Write one result or sweep again as JSON of this version (`-` for standard output, without tables).
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
}
