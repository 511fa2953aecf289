//! `linerate flows`: the live display of flow loggers.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use flow::protocol;

/// `linerate flows`
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct FlowsArgs {
    /// Addresses of flow loggers (`linerate flowlog --listen`). Write an IPv6 address in brackets.
    #[arg(value_name = "HOST:PORT", default_value = "127.0.0.1:9395")]
    pub loggers: Vec<String>,
    /// Print a line of JSON for each logger at each interval instead of the display.
    #[arg(long)]
    pub json: bool,
    /// Read each logger once, then end. This is also the default when standard output is not a terminal, without --json.
    #[arg(long, conflicts_with = "count")]
    pub once: bool,
    /// Interval, 100ms to 1h.
    #[arg(long, value_name = "TIME", default_value = "1s")]
    pub every: String,
    /// End after this many lines for each logger (with --json). Default: never.
    #[arg(long, value_name = "N", requires = "json", value_parser = clap::value_parser!(u64).range(1..))]
    pub count: Option<u64>,
    /// Most flows shown, 0 to 1000. Default: 1000 in the display, 10 otherwise.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(0..=1000))]
    pub top: Option<u16>,
    /// What flows are sorted by.
    #[arg(long, value_enum, default_value = "bytes")]
    pub by: ByArg,
    /// Only these flows: prefix=10.0.0.0/8,port=53,protocol=udp,ingress=0; all given parts must match.
    #[arg(long, value_name = "PART=VALUE,...", default_value = "")]
    pub filter: String,
    /// File with the token that the loggers ask for.
    #[arg(long, value_name = "FILE")]
    pub token_file: Option<PathBuf>,
    /// Use TLS, and trust the certificates in this file (PEM).
    #[arg(long, value_name = "FILE")]
    pub tls_ca: Option<PathBuf>,
}

/// What flows are sorted by.
#[derive(Debug, Clone, Copy, ValueEnum, PartialEq, Eq)]
pub enum ByArg {
    /// Bytes since it began.
    Bytes,
    /// Packets since it began.
    Packets,
    /// Packets a second.
    Pps,
    /// Bits a second.
    Bps,
}

impl From<ByArg> for protocol::By {
    fn from(by: ByArg) -> Self {
        match by {
            ByArg::Bytes => Self::Bytes,
            ByArg::Packets => Self::Packets,
            ByArg::Pps => Self::PacketRate,
            ByArg::Bps => Self::BitRate,
        }
    }
}

const EXAMPLES: &str = "Keys:
  arrows, PgUp, PgDn, Home, End scroll; < > or s sort column; / filter
  Tab next logger; a flows of all loggers or of one; p pause; q quit

Examples:
  linerate flows                      the logger on this machine
  linerate flows a:9395 b:9395 [2001:db8::1]:9395
                                      three in one screen
  linerate flows --json --every 10s --top 5 --by bps
                                      for scripts
  linerate flows --once --filter prefix=192.0.2.0/24,protocol=tcp

Exit codes:
  0 ended by q or --count; with --json also by a signal
  1 a connection broke, or a logger speaks another protocol
  2 the command, a file or the token is wrong
  4 no logger answers
  130 the display was ended by a signal, or its terminal was closed";
