//! Flags of `linerate latency`.

use std::{net::SocketAddr, ops::RangeInclusive, path::PathBuf};

use clap::{Args, Subcommand, ValueEnum};
use latency::{
    asked::{open_rate, precision, sizes, OpenRate},
    socket::Wait,
};

/// `linerate latency`
#[derive(Debug, Args)]
#[command(after_help = EXIT_CODES)]
pub struct LatencyArgs {
    /// What to measure.
    #[command(subcommand)]
    pub command: LatencyCommand,
}

/// The subcommands.
#[derive(Debug, Subcommand)]
pub enum LatencyCommand {
    /// Round trips of datagrams between two applications; either end may be sockperf.
    Udp(SocketArgs),
    /// Round trips of messages in a connection; either end may be sockperf.
    Tcp(SocketArgs),
}

/// What both have.
#[derive(Debug, Args)]
pub struct SocketArgs {
    /// The server: an address and a port, `10.0.0.2:11111` or `[fd00::2]:11111`.
    #[arg(value_name = "ADDRESS:PORT", required_unless_present = "server", conflicts_with = "server")]
    pub address: Option<SocketAddr>,
    /// Be the server, until Ctrl-C: answer what asks.
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub server: Option<SocketAddr>,
    /// How a thread waits for messages.
    #[arg(long, value_enum, default_value = "block")]
    pub wait: WaitArg,
    /// Bytes of a message, 14 to 65507; a range for a new size each time, 14..1400.
    #[arg(long, value_name = "BYTES|FROM..TO", default_value = "14", value_parser = sizes)]
    pub size: RangeInclusive<usize>,
    /// Messages that go out before their replies are awaited, 1 to 1024.
    #[arg(long, value_name = "N", default_value = "1", value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub burst: u32,
    /// How long it measures, 10ms to 24h.
    #[arg(long, value_name = "TIME", default_value = "10s")]
    pub duration: String,
    /// How long messages go before their times count, up to 1min.
    #[arg(long, value_name = "TIME", default_value = "200ms")]
    pub warm_up: String,
    /// End before that when so many replies were timed.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub samples: Option<u64>,
    /// End before that when median and 99th percentile are known this precisely: ci=1%.
    #[arg(long, value_name = "ci=PERCENT", value_parser = precision)]
    pub until: Option<f64>,
    /// Send at a rate, whatever the replies do, and count from the moment at which each message was due: messages a second, or a
    /// share of what a closed loop does, 50%.
    #[arg(long, value_name = "RATE|PERCENT", value_parser = open_rate, conflicts_with_all = ["burst", "samples", "until", "verify"])]
    pub open_loop: Option<OpenRate>,
    /// Each Nth message asks for a reply; the others are load.
    #[arg(long, value_name = "N", default_value = "1", requires = "open_loop", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub reply_every: u32,
    /// CPU that the receiving thread of an open loop is pinned to.
    #[arg(long, value_name = "CPU", requires = "open_loop")]
    pub receiver_cpu: Option<u32>,
    /// Compare the payload of each reply with what was sent.
    #[arg(long)]
    pub verify: bool,
    /// CPU that the measuring thread, or the server's, is pinned to; of an open loop the one that sends, which wants
    /// `--receiver-cpu` too.
    #[arg(long, value_name = "CPU")]
    pub cpu: Option<u32>,
    /// Print in the layout of another program.
    #[arg(long, value_enum, value_name = "LAYOUT")]
    pub layout: Option<LatencyLayout>,
    /// Write the result as JSON (`-` for standard output, without the table).
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
}

/// How a thread waits.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub enum WaitArg {
    /// It sleeps in the call that receives.
    Block,
    /// It asks the socket again and again: it takes a CPU of its own.
    Spin,
    /// It sleeps in epoll_wait.
    Epoll,
}

impl From<WaitArg> for Wait {
    fn from(arg: WaitArg) -> Self {
        match arg {
            WaitArg::Block => Self::Block,
            WaitArg::Spin => Self::Spin,
            WaitArg::Epoll => Self::Epoll,
        }
    }
}

/// Layouts of others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum LatencyLayout {
    /// The lines of sockperf 3.7: half round trips in microseconds.
    Sockperf,
}

const EXIT_CODES: &str =
    "Exit codes: 0 measured; 1 the server went away, what was measured is printed; 2 the command is wrong; \
4 nobody answers, or a right is missing; 130 stopped by Ctrl-C, with what was measured so far. Page: docs/latency.md";
