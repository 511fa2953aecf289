//! Flags of `linerate flowlog score`.

use std::path::PathBuf;

use campaign::flow_score::FlowLogger;
use clap::Args;
use units::{Frames, Load, Ratio};

use super::groups::{MachineArgs, PortArgs, TrafficArgs};

/// Send known flows, read the records of a flow logger, and score them.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct ScoreArgs {
    /// Where the logger's records are read: `ipfix=udp://ADDRESS:PORT`, `ipfix=tcp://ADDRESS:PORT` or
    /// `ours=HOST:PORT[,token=TOKEN]`.
    #[arg(long, value_name = "WHERE")]
    pub logger: FlowLogger,
    /// How fast to send. Leave it out if the flow program sets the rate.
    #[arg(long, value_name = "LOAD", allow_hyphen_values = true)]
    pub load: Option<Load>,
    /// Sending time of a trial [default: 10s].
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    pub duration: Option<String>,
    /// Longest wait for the records of a trial [default: 90s].
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    pub flow_wait: Option<String>,
    /// A plan by name or file: its traffic, link and `[trust]` are used.
    #[arg(long, value_name = "NAME|FILE", default_value = "rfc2544")]
    pub plan: String,
    /// Frame size in bytes, FCS included [default: the smallest that the headers allow].
    #[arg(long, value_name = "BYTES", allow_hyphen_values = true, value_delimiter = ',')]
    pub frame_sizes: Vec<Frames>,
    /// For a churn without a rate: lowest load of the search.
    #[arg(long, value_name = "LOAD", allow_hyphen_values = true, help_heading = "Search")]
    pub lower: Option<Load>,
    /// For a churn without a rate: highest load of the search.
    #[arg(long, value_name = "LOAD", allow_hyphen_values = true, help_heading = "Search")]
    pub upper: Option<Load>,
    /// Relative distance of the bounds at which the search ends [default: 5%].
    #[arg(long, value_name = "RATIO", allow_hyphen_values = true, help_heading = "Search")]
    pub precision: Option<Ratio>,
    /// Ports or device.
    #[command(flatten)]
    pub ports: PortArgs,
    /// What is sent.
    #[command(flatten)]
    pub traffic: TrafficArgs,
    /// Cores and memory.
    #[command(flatten)]
    pub machine: MachineArgs,
    /// Write the result to this file; `-` for standard output instead of the text.
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub json: Option<PathBuf>,
    /// Hide the progress line.
    #[arg(long, short, help_heading = "Output")]
    pub quiet: bool,
}

const EXAMPLES: &str = "Examples:
  linerate flowlog score --logger ipfix=udp://0.0.0.0:4739 --flows constant:1M --load 5Mpps --duration 10s \
                         --port 0000:37:00.0 --port 0000:37:00.1
  linerate flowlog score --logger ours=127.0.0.1:9395 --flows churn:packets=4 \
                         --port memif:/run/a.sock --port memif:/run/b.sock
                                                      the highest rate of new flows that loses no record

Exit codes: 0 every flow as sent, or found; 1 flows missed, duplicated or miscounted; 2 the command or a file is
wrong; 3 measured, but not trustworthy; 4 the machine lacks something; 130 stopped by Ctrl-C.";
