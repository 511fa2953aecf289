//! Layouts of tables, and results stored before.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use report::layout::Layout;

/// A source document's layout.
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
    /// The layout meant.
    pub fn layout(self) -> Layout {
        match self {
            Self::Nfvi => Layout::Nfvi,
            Self::Onp => Layout::Onp,
            Self::Router => Layout::Router,
            Self::Flowlog => Layout::Flowlog,
        }
    }
}

/// How results are laid out, beside the usual tables.
#[derive(Debug, Args, Default)]
#[command(next_help_heading = "Output")]
pub struct LayoutArgs {
    /// Print the table of a source document too; in --markdown it is added, in --csv it stands alone.
    #[arg(long, value_enum, value_name = "LAYOUT")]
    pub layout: Option<LayoutArg>,
    /// Compare with an earlier result (JSON) of the same plan: improvement in percent; printed and written as
    /// --layout is.
    #[arg(long, value_name = "OLD.json")]
    pub against: Option<PathBuf>,
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
    /// Show a stored result again, in any layout or against another; several in one layout.
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
    pub against: Option<PathBuf>,
    /// Print every statement: each departure, warning, placement and percentile.
    #[arg(long, short)]
    pub verbose: bool,
    /// Write what is shown as Markdown.
    #[arg(long, value_name = "FILE")]
    pub markdown: Option<PathBuf>,
    /// Write what is shown as CSV.
    #[arg(long, value_name = "FILE")]
    pub csv: Option<PathBuf>,
    /// Write the pictures of the result as SVG; of one result, or of a sweep.
    #[arg(long, value_name = "FILE")]
    pub svg: Option<PathBuf>,
    /// Write the result again as JSON of this version (`-` for standard output, without tables); of one result, or of a
    /// sweep.
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
}
