//! `linerate flows`: the live display of flow loggers.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use flow::protocol;

/// `linerate flows`
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct FlowsArgs {
    /// Flow loggers: where each is read (`linerate flowlog --listen`). An IPv6 address goes in brackets.
    #[arg(value_name = "HOST:PORT", default_value = "127.0.0.1:9395")]
    pub loggers: Vec<String>,
    /// No display: a line of JSON for each logger each interval.
    #[arg(long)]
    pub json: bool,
    /// One look at each logger, then end. Also without it where standard output is no terminal and --json is not given.
    #[arg(long, conflicts_with = "count")]
    pub once: bool,
    /// Interval between looks, 100ms to 1h.
    #[arg(long, value_name = "TIME", default_value = "1s")]
    pub every: String,
    /// End after this many looks at each logger (with --json). Default: never.
    #[arg(long, value_name = "N", requires = "json", value_parser = clap::value_parser!(u64).range(1..))]
    pub count: Option<u64>,
    /// Flows shown at most, 0 to 1000. Default: 1000 in the display, 10 elsewhere.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(0..=1000))]
    pub top: Option<u16>,
    /// Largest in what.
    #[arg(long, value_enum, default_value = "bytes")]
    pub by: ByArg,
    /// Only these flows: prefix=10.0.0.0/8,port=53,protocol=udp,ingress=0; every part given must hold.
    #[arg(long, value_name = "PART=VALUE,...", default_value = "")]
    pub filter: String,
    /// The token the loggers ask for, in a file.
    #[arg(long, value_name = "FILE")]
    pub token_file: Option<PathBuf>,
    /// Speak TLS to the loggers, and trust the certificates in this file (PEM).
    #[arg(long, value_name = "FILE")]
    pub tls_ca: Option<PathBuf>,
}

/// What a flow is large in.
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
  0 ended by q, a signal or --count
  1 a logger broke off or speaks something else
  2 the command, a file or the token is wrong
  4 no logger answers";
