//! Flags of `linerate latency`.

use std::{net::SocketAddr, ops::RangeInclusive, path::PathBuf};

use clap::{Args, Subcommand, ValueEnum};
use latency::{
    asked::{address, background_rate, open_rate, precision, sizes, BackgroundRate, OpenRate},
    plans::{plan, LatencyPlan, What, PLANS},
    raw::{
        packet_socket::Stamps,
        run::{RxMode, TxMode},
        sizes::frame_sizes,
    },
    socket::{Transport, Wait},
};
use rig::MachineOptions;

use super::{groups::MemoryArg, OutputArgs};

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
    /// Raw frames over any two ports: from sending to receiving, or through a forwarder.
    Raw(Box<RawArgs>),
    /// Round trips of datagrams between two applications; either end may be sockperf.
    Udp(SocketArgs),
    /// Round trips of messages in a connection; either end may be sockperf.
    Tcp(SocketArgs),
    /// Every method that this machine has, each for a moment, in one table.
    Compare(CompareArgs),
}

/// Cores and memory.
#[derive(Debug, Args)]
pub struct RawMachineArgs {
    /// CPU that measures. Default: the last allowed CPU.
    #[arg(long, value_name = "CPU")]
    pub cpu: Option<u32>,
    /// Where packets live.
    #[arg(long, value_enum, default_value = "auto")]
    pub memory: MemoryArg,
    /// Memory for packets in MiB.
    #[arg(long, value_name = "MIB", default_value_t = 256, value_parser = clap::value_parser!(u32).range(64..=65536))]
    pub memory_mib: u32,
    /// Descriptors of each queue: a power of two.
    #[arg(long, value_name = "N", default_value_t = 512, value_parser = clap::value_parser!(u32).range(64..=32768))]
    pub descriptors: u32,
}

impl RawMachineArgs {
    /// For the rig.
    pub fn options(&self) -> MachineOptions {
        MachineOptions {
            tester_cpu: self.cpu,
            memory: self.memory.choice(),
            memory_mib: self.memory_mib,
            descriptors: self.descriptors,
            ..MachineOptions::default()
        }
    }
}

/// Files.
#[derive(Debug, Args)]
pub struct LatencyOutput {
    /// Write the result as JSON (`-` for standard output, without the table).
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// Write the report as Markdown.
    #[arg(long, value_name = "FILE")]
    pub markdown: Option<PathBuf>,
    /// Write a picture of the percentiles as SVG.
    #[arg(long, value_name = "FILE")]
    pub svg: Option<PathBuf>,
    /// Write the percentiles as CSV.
    #[arg(long, value_name = "FILE")]
    pub csv: Option<PathBuf>,
    /// Print the distribution too.
    #[arg(long, short)]
    pub verbose: bool,
}

impl LatencyOutput {
    /// The files, by their flags.
    pub fn named(&self) -> [(&'static str, &Option<PathBuf>); 4] {
        [("--json", &self.json), ("--markdown", &self.markdown), ("--svg", &self.svg), ("--csv", &self.csv)]
    }

    /// As other commands have them.
    pub fn files(&self) -> OutputArgs {
        OutputArgs {
            json: self.json.clone(),
            markdown: self.markdown.clone(),
            svg: self.svg.clone(),
            csv: self.csv.clone(),
            verbose: self.verbose,
            ..OutputArgs::default()
        }
    }
}

/// `linerate latency raw`
#[derive(Debug, Args)]
pub struct RawArgs {
    /// A port, given twice: frames go out of the first and come in at the second. Any port of docs/ports.md, or socket:IFACE for
    /// AF_PACKET sockets with a system call a frame. Default: the software cable.
    #[arg(long = "port", value_name = "PORT")]
    pub ports: Vec<String>,
    /// From where to where a time counts.
    #[arg(long, short, value_enum, default_value = "loopback")]
    pub mode: ModeArg,
    /// What is timed when a frame is sent.
    #[arg(long, short = 'T', value_enum)]
    pub tx: Option<TxArg>,
    /// What is timed when a frame is received.
    #[arg(long, short = 'R', value_enum)]
    pub rx: Option<RxArg>,
    /// Bytes of a frame without FCS: 60, 60,128,1514, 60..1514 (eight, evenly), or 60..1514/100.
    #[arg(long, short, value_name = "BYTES", value_parser = RawSizes::read)]
    pub sizes: Option<RawSizes>,
    /// End when so many times were measured.
    #[arg(long, short, value_name = "N", default_value_t = 1_000_000, value_parser = clap::value_parser!(u64).range(1..))]
    pub count: u64,
    /// Frames before the times count.
    #[arg(long, short, value_name = "N", default_value_t = 100_000)]
    pub warmups: u64,
    /// End at the latest after this, for each size, 10ms to 24h.
    #[arg(long, value_name = "TIME", default_value = "10s")]
    pub duration: String,
    /// End before that when median and 99th percentile are known this precisely: ci=1%.
    #[arg(long, value_name = "ci=PERCENT", value_parser = precision)]
    pub until: Option<f64>,
    /// Time frames by time stamps instead of the clock of the program: those of the kernel in the drivers, or of the NIC. With
    /// socket: ports.
    #[arg(long, value_enum, value_name = "WHOSE")]
    pub stamps: Option<StampsArg>,
    /// Refuse AF_XDP ports whose driver copies frames.
    #[arg(long)]
    pub zero_copy: bool,
    /// As --stamps hardware.
    #[arg(long, conflicts_with = "stamps")]
    pub hw: bool,
    /// Frames of the same size on the same way beside: frames a second, 100k, or bits a second of them, 1Gbps.
    #[arg(long, value_name = "RATE", value_parser = background_rate)]
    pub background: Option<BackgroundRate>,
    /// A measurement of the low-latency document, with its figures beside: latency-raw-loopback or latency-raw-preloaded.
    #[arg(long, value_name = "NAME", value_parser = raw_plan, conflicts_with_all = ["tx", "rx", "sizes", "mode"])]
    pub plan: Option<&'static LatencyPlan>,
    /// Print the times one by one, in clocks, instead of the table: the first million.
    #[arg(long, short = 'a', conflicts_with = "layout")]
    pub cycles: bool,
    /// Print in the layout of another program.
    #[arg(long, value_enum, value_name = "LAYOUT")]
    pub layout: Option<RawLayout>,
    /// How long a port's link or peer may take to come up.
    #[arg(long, value_name = "TIME", default_value = "5s")]
    pub link_wait: String,
    /// Cores and memory.
    #[command(flatten)]
    pub machine: RawMachineArgs,
    /// Files.
    #[command(flatten)]
    pub output: LatencyOutput,
}

/// `linerate latency compare`
#[derive(Debug, Args)]
pub struct CompareArgs {
    /// How long each method is measured, 10ms to 1h.
    #[arg(long, value_name = "TIME", default_value = "1s")]
    pub duration: String,
    /// Cores and memory. The server of UDP and TCP takes the first other CPU.
    #[command(flatten)]
    pub machine: RawMachineArgs,
    /// Files.
    #[command(flatten)]
    pub output: LatencyOutput,
}

/// Sizes to measure one after the other.
#[derive(Debug, Clone)]
pub struct RawSizes(pub Vec<usize>);

impl RawSizes {
    fn read(text: &str) -> Result<Self, String> {
        frame_sizes(text).map(Self)
    }
}

fn raw_plan(name: &str) -> Result<&'static LatencyPlan, String> {
    plan_for(name, |what| matches!(what, What::Raw { .. }))
}

/// The plan of this name, if it is for this command.
fn plan_for(name: &str, fits: fn(What) -> bool) -> Result<&'static LatencyPlan, String> {
    plan(name).filter(|plan| fits(plan.what)).ok_or_else(|| {
        let names: Vec<&str> = PLANS.iter().filter(|plan| fits(plan.what)).map(|plan| plan.name).collect();
        format!("must be {}", names.join(" or "))
    })
}

/// From where to where.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ModeArg {
    /// From sending to receiving, one frame after the other.
    Loopback,
    /// From when a frame is there to when it is handed over again: what a forwarder costs. Frames come from outside, or over the
    /// software cable.
    Forward,
}

/// Whose time stamps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum StampsArg {
    /// The kernel's.
    Software,
    /// The NIC's.
    Hardware,
}

impl RawArgs {
    /// Whose time stamps count.
    pub fn stamps(&self) -> Option<Stamps> {
        match (self.hw, self.stamps) {
            (true, _) | (false, Some(StampsArg::Hardware)) => Some(Stamps::Nic),
            (false, Some(StampsArg::Software)) => Some(Stamps::Kernel),
            (false, None) => None,
        }
    }
}

/// How frames are sent.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub enum TxArg {
    /// Made anew each time.
    Frame,
    /// Ready: handing it over is timed only.
    Preloaded,
}

/// How frames are received.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub enum RxArg {
    /// Copied out.
    #[value(alias = "frame")]
    Copy,
    /// Looked at where it lies.
    #[value(alias = "chunk_inplace")]
    InPlace,
}

impl From<TxArg> for TxMode {
    fn from(arg: TxArg) -> Self {
        match arg {
            TxArg::Frame => Self::Frame,
            TxArg::Preloaded => Self::Preloaded,
        }
    }
}

impl From<RxArg> for RxMode {
    fn from(arg: RxArg) -> Self {
        match arg {
            RxArg::Copy => Self::Copy,
            RxArg::InPlace => Self::InPlace,
        }
    }
}

/// Layouts of others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum RawLayout {
    /// The lines of exanic_perf_test.
    Exanic,
}

/// How long messages go that count, and those before them.
const DURATION: &str = "10s";
const WARM_UP: &str = "200ms";

/// What both have.
#[derive(Debug, Args)]
pub struct SocketArgs {
    /// The server: an address or a name, and a port: `10.0.0.2:11111`, `[fd00::2]:11111`, `host:11111`.
    #[arg(value_name = "ADDRESS:PORT", value_parser = address, required_unless_present = "server", conflicts_with = "server")]
    pub address: Option<SocketAddr>,
    /// Be the server, until Ctrl-C: answer what asks.
    #[arg(long, value_name = "ADDRESS:PORT", value_parser = address)]
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
    #[arg(long, value_name = "TIME", default_value = DURATION)]
    pub duration: String,
    /// How long messages go before their times count, 0 to 1min.
    #[arg(long, value_name = "TIME", default_value = WARM_UP)]
    pub warm_up: String,
    /// End before that when so many replies were timed, of all clients together.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub samples: Option<u64>,
    /// End before that when median and 99th percentile are known this precisely: ci=1%.
    #[arg(long, value_name = "ci=PERCENT", value_parser = precision)]
    pub until: Option<f64>,
    /// Send at a rate, whatever the replies do, and count from the moment at which each message was due: messages a second, or a
    /// share of what a closed loop does, 50%.
    #[arg(long, value_name = "RATE|PERCENT", value_parser = open_rate, conflicts_with_all = ["burst", "samples", "until"])]
    pub open_loop: Option<OpenRate>,
    /// Each Nth message asks for a reply; the others are load.
    #[arg(long, value_name = "N", default_value = "1", requires = "open_loop", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub reply_every: u32,
    /// Send as fast as it can: messages a second. A few of them ask for a reply, which shows how many arrive.
    #[arg(long, conflicts_with_all = ["burst", "samples", "until", "open_loop", "verify", "full_log", "time_stamps", "background", "plan", "server"])]
    pub throughput: bool,
    /// CPU that the receiving thread of an open loop is pinned to.
    #[arg(long, value_name = "CPU", requires = "open_loop")]
    pub receiver_cpu: Option<u32>,
    /// How long a call that receives polls the device, with --wait busy-poll, us.
    #[arg(long, value_name = "US", default_value = "50", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub busy_poll_us: u32,
    /// Clients at once, each with a socket and a thread of its own, 1 to 64.
    #[arg(long, value_name = "N", default_value = "1", value_parser = clap::value_parser!(u32).range(1..=64), conflicts_with_all = ["open_loop", "server"])]
    pub clients: u32,
    /// Load beside: messages a second to the same server that ask for no reply, or bits a second of them, 100Mbps.
    #[arg(long, value_name = "RATE", value_parser = background_rate, conflicts_with = "server")]
    pub background: Option<BackgroundRate>,
    /// Bytes of a message of that load.
    #[arg(long, value_name = "BYTES", default_value = "1400", requires = "background", value_parser = clap::value_parser!(u32).range(14..=65507))]
    pub background_size: u32,
    /// Split round trips by time stamps of the kernel, for a second behind the measurement.
    #[arg(long, conflicts_with = "server")]
    pub time_stamps: bool,
    /// Write when the first million messages went out and came back, in the layout of sockperf's --full-log.
    #[arg(long, value_name = "FILE", conflicts_with = "server")]
    pub full_log: Option<PathBuf>,
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
    /// Start the other end here, for this measurement: with an address sockperf's server, with --server its client, which measures.
    #[arg(long, value_enum, value_name = "PROGRAM", conflicts_with = "open_loop")]
    pub peer: Option<PeerArg>,
    /// A measurement of the low-latency document, with its figures beside: latency-udp or latency-tcp. Its messages have 14 bytes.
    #[arg(long, value_name = "NAME", value_parser = socket_plan, conflicts_with_all = ["size", "server", "open_loop"])]
    pub plan: Option<&'static LatencyPlan>,
    /// Files.
    #[command(flatten)]
    pub output: LatencyOutput,
}

impl SocketArgs {
    /// What the flags ask for together: none is passed over in silence.
    ///
    /// # Errors
    ///
    /// Which flag does not go with the others, in a line.
    pub fn check(&self, transport: Transport) -> Result<(), String> {
        let of = |transport| if transport == Transport::Udp { "udp" } else { "tcp" };
        if let Some(plan) = self.plan.filter(|plan| !plan.command().starts_with(of(transport))) {
            return Err(format!("--plan {0}: linerate latency {1} --plan {0}", plan.name, plan.command()));
        }
        if self.full_log.as_ref().is_some_and(|file| file.as_os_str() == "-") {
            return Err("--full-log -: the table goes to standard output: name a file".to_owned());
        }
        if self.server.is_none() {
            return Ok(());
        }
        let with_client = self.peer.is_some();
        let files = self.output.named().map(|(flag, file)| (flag, file.is_some() && (with_client || flag != "--json")));
        let flags = [
            ("--layout", self.layout.is_some()),
            ("--samples", self.samples.is_some()),
            ("--until", self.until.is_some()),
            ("--open-loop", self.open_loop.is_some()),
            ("--verify", self.verify),
            ("--burst", self.burst != 1),
            ("--warm-up", self.warm_up != WARM_UP),
            ("--duration", self.duration != DURATION && !with_client),
            ("--size", self.size != (14..=14) && !with_client),
        ];
        let who =
            if with_client { "sockperf's client measures" } else { "its clients measure, and it ends with Ctrl-C" };
        match files.into_iter().chain(flags).find(|(_, given)| *given) {
            Some((flag, _)) => Err(format!("{flag}: not with --server: {who}")),
            None => Ok(()),
        }
    }
}

fn socket_plan(name: &str) -> Result<&'static LatencyPlan, String> {
    plan_for(name, |what| matches!(what, What::Udp | What::Tcp))
}

/// Programs that may be the other end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum PeerArg {
    /// sockperf 3.x.
    Sockperf,
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
    /// The call that receives polls the device before it sleeps (SO_BUSY_POLL).
    BusyPoll,
    /// The same with the device's interrupts off meanwhile (SO_PREFER_BUSY_POLL).
    PreferBusyPoll,
}

impl From<WaitArg> for Wait {
    fn from(arg: WaitArg) -> Self {
        match arg {
            WaitArg::Block => Self::Block,
            WaitArg::Spin => Self::Spin,
            WaitArg::Epoll => Self::Epoll,
            WaitArg::BusyPoll => Self::BusyPoll,
            WaitArg::PreferBusyPoll => Self::PreferBusyPoll,
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
    "Exit codes: 0 measured; 1 the server or the frames went away, what was measured is printed; 2 the command is wrong; \
4 nobody answers, or a right is missing; 130 stopped by Ctrl-C, with what was measured so far. Page: docs/latency.md";
