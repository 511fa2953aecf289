//! The command line. Only the form of a value is checked here; `measure::plan` validates the values.
// Comments on flags are the help texts. Brackets mean optional parts.
#![allow(rustdoc::broken_intra_doc_links)]

pub mod check;
pub mod flowlog;
pub mod flows;
pub mod flows_arg;
pub mod forward;
pub mod groups;
pub mod host;
pub mod lab;
pub mod latency;
pub mod layout;
pub mod parsing;
pub mod ports;
pub mod renamed;
pub mod replay;
pub mod score;
pub mod shape;
pub mod sweep;

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use measure::plan::Test;
use units::{FrameSize, Frames, Load};

pub use groups::{
    EvidenceArg, GoalsArg, IpArg, L4Arg, MachineArgs, MethodArg, OutputArgs, PortArgs, SearchArgs, TrafficArgs,
};

/// How fast a machine forwards packets, at which loss and latency, whether the number can be trusted, and why it is
/// not higher.
#[derive(Debug, Parser)]
#[command(name = "linerate", version, max_term_width = 110, arg_required_else_help = true, after_help = FIRST)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// Examples of first commands.
const FIRST: &str = "First commands:
  linerate check                           what this machine can measure, in ten seconds
  linerate bench                           the built-in router over a software cable, in about a minute
  linerate bench --port A --port B         the device between two ports (forms: linerate bench --help)
Exit codes: 0 done, 1 criterion missed or failed, 2 wrong usage, 3 not trustworthy, 4 the machine lacks something,
130 stopped. Pages: docs/";

/// The subcommands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run a plan: a whole test of a device under test. With no arguments: throughput and latency of the built-in L3 data
    /// plane over a software cable at the seven sizes of RFC 2544, in about a minute.
    Bench(Box<BenchArgs>),
    /// Say in ten seconds what this machine can measure: noise of its cores, highest clean load, precision, and what would
    /// improve it most.
    Check(check::CheckArgs),
    /// Run one trial and print its raw counts.
    Trial(Box<TrialArgs>),
    /// Measure what this tester can do on this machine, per frame size, with no device under test.
    Selftest(Box<SelftestArgs>),
    /// Run the reference data plane between ports, as a device under test for another tester; show or change a running
    /// one.
    Forward(Box<forward::ForwardArgs>),
    /// Run the flow logger: frames pass between ports unchanged, every flow is recorded.
    Flowlog(Box<flowlog::FlowlogArgs>),
    /// Watch flow loggers: their interfaces, their tables and their largest flows, live or as JSON.
    Flows(flows::FlowsArgs),
    /// Measure round trips from application to application: UDP and TCP, percentiles with intervals.
    Latency(Box<latency::LatencyArgs>),
    /// Show results stored with --json again, in the layout of a document, or compare them.
    Runs(layout::RunsArgs),
    /// Find what spoils figures on this machine, say what it costs, mend it and take the mend back.
    Host(host::HostArgs),
    /// List the NICs of this machine and how to use each; give them to drivers for user space, and back.
    Ports(ports::PortsArgs),
    /// Bring up a real system under test (Open vSwitch with DPDK, guests, the kernel), verify it, measure it hop by hop, and
    /// end it without a trace.
    Lab(Box<lab::LabArgs>),
    /// Hold a lab: the first process in its namespaces.
    #[command(name = ::lab::client::HOLD_COMMAND, hide = true)]
    LabHold {
        /// What to bring up, as JSON.
        spec: String,
    },
    /// Run one job of a suite or a sweep, from standard input.
    #[command(name = campaign::JOB_COMMAND, hide = true)]
    RunJob,
}

/// `linerate bench`
#[derive(Debug, Args)]
#[command(after_help = BENCH_EXAMPLES)]
pub struct BenchArgs {
    /// A plan: the name of an embedded one (`rfc2544`) or a TOML file; PLAN:RUN for one run of a plan that has several.
    /// Default: rfc2544 with --quick; `--plan rfc2544` is the full length of the standard.
    #[arg(long, value_name = "NAME|FILE")]
    pub plan: Option<String>,
    /// The tests to run at each frame size: throughput, latency, frame-loss, back-to-back, recovery, reset, bursty,
    /// forwarding-rate, latency-profile, pdv, soak; or, between three ports, address-caching, address-learning. Default:
    /// those of the plan.
    #[arg(long, value_name = "TEST,...", value_delimiter = ',')]
    pub tests: Vec<Test>,
    /// The throughput that the tests use, instead of searching for it.
    #[arg(long, value_name = "LOAD", allow_hyphen_values = true)]
    pub throughput: Option<Load>,
    /// Short trials (labelled so in the result), with any plan: seven sizes in about a minute.
    #[arg(long)]
    pub quick: bool,
    /// Run the whole plan this many times, 2 to 1000, and print median and spread of the figures.
    #[arg(long, value_name = "N", conflicts_with_all = ["list", "print_config", "dry_run"])]
    pub repeat: Option<i64>,
    /// Change the settings of this machine that `linerate host audit` finds wrong, and change them back after the run. As root.
    #[arg(long, conflicts_with_all = ["list", "print_config", "dry_run"])]
    pub tune: bool,
    /// List the embedded plans and those in ./plans/, with the requirements of each, and end.
    #[arg(long)]
    pub list: bool,
    /// Print the expected number of trials and duration of the plan, from a hundred runs against a simulated device, and
    /// end.
    #[arg(long, conflicts_with_all = ["list", "print_config"])]
    pub dry_run: bool,
    /// Print the effective plan as TOML, with every default, and end.
    #[arg(long)]
    pub print_config: bool,
    /// Frame sizes in bytes, FCS included; or mixes: imix (7 of 64, 4 of 570, 1 of 1518), imix=GENOME (RFC 6985: aaafg,
    /// aaz:z=9000, AAB:A=78:B=1400; counts, 7x64:1x1518; shares, 70%x64:30%x1518; a range, 64-1518:step=2), with a
    /// seed (:seed=7) drawn at random.
    #[arg(long, value_name = "BYTES|imix[=GENOME],...", allow_hyphen_values = true, value_delimiter = ',')]
    pub frame_sizes: Vec<Frames>,
    #[command(flatten)]
    pub ports: PortArgs,
    #[command(flatten)]
    pub traffic: TrafficArgs,
    #[command(flatten)]
    pub search: SearchArgs,
    #[command(flatten)]
    pub sweep: sweep::SweepArgs,
    #[command(flatten)]
    pub machine: MachineArgs,
    #[command(flatten)]
    pub output: OutputArgs,
    #[command(flatten)]
    pub tables: layout::LayoutArgs,
}

impl BenchArgs {
    /// The plan that is run.
    pub fn plan_name(&self) -> &str {
        self.plan.as_deref().unwrap_or(DEFAULT_PLAN)
    }

    /// Whether trials are short: asked for, or nothing names a plan.
    pub fn is_quick(&self) -> bool {
        self.quick || self.plan.is_none()
    }
}

/// The plan where none is named, with short trials.
const DEFAULT_PLAN: &str = "rfc2544";

const BENCH_EXAMPLES: &str = "Examples:
  linerate bench                                               the built-in L3 data plane, in about a minute
  linerate bench --plan rfc2544                                the same in the full length of the standard, in two hours
  linerate bench --dut l2 --impair rate=1Mpps --upper 4Mpps    find a known rate
  linerate bench --port memif:/run/a.sock --port memif:/run/b.sock --json result.json
  linerate bench --method mlrsearch --goals csit --frame-sizes 64
                                                               NDR and PDR in one search
  linerate bench --tests frame-loss,back-to-back,recovery --dut l2 --impair rate=1Mpps --upper 2Mpps
                                                               other tests of the standards
  linerate bench --dut sim:capacity=10M,stalls=0.05/s:2000     rehearse: a simulated device, in milliseconds
  linerate bench --frame-sizes 64 --sweep routes=1,1k --sweep flows=1,1k
                                                               a row for each combination
  linerate bench --frame-sizes 64 --repeat 10                  how far ten whole searches agree
  linerate bench --port eth:ens1f0 --port eth:ens1f1 --link 10G --both-ways

Exit codes: 0 done and criteria met; 1 done, a criterion was not met; 2 the command or a file is wrong;
3 measured, but not trustworthy; 4 the machine lacks something; 130 stopped by Ctrl-C, results so far kept.";

/// `linerate trial`
#[derive(Debug, Args)]
pub struct TrialArgs {
    /// Load per direction: frames (1Mpps), bits of layer 1 (1Gbps) or 2 (1GbpsL2), or a share of the link (50%).
    #[arg(long, value_name = "LOAD", allow_hyphen_values = true, required_unless_present = "replay")]
    pub load: Option<Load>,
    /// How long to send. Default: 5s; with --replay, once through the capture.
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    pub duration: Option<String>,
    /// Frame size in bytes, FCS included; or a mix: imix, imix=GENOME (RFC 6985).
    #[arg(long, value_name = "BYTES|imix[=GENOME]", default_value = "64")]
    pub frame_size: Frames,
    /// How long to wait for frames in flight.
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, default_value = "2s")]
    pub residual: String,
    /// Write the trial over time: slices of 0.1 to 1 ms, each with frames, delays and who was away. A picture in a file named
    /// .svg, CSV in any other.
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub slices: Option<PathBuf>,
    #[command(flatten)]
    pub shape: shape::ShapeArgs,
    #[command(flatten)]
    pub replay: replay::ReplayArgs,
    #[command(flatten)]
    pub ports: PortArgs,
    #[command(flatten)]
    pub traffic: TrafficArgs,
    #[command(flatten)]
    pub machine: MachineArgs,
    #[command(flatten)]
    pub output: OutputArgs,
}

/// What joins the two ports of a self-test.
#[derive(Debug, Clone, Copy, ValueEnum, PartialEq, Eq)]
pub enum PairArg {
    SoftwareCable,
    Memif,
    VhostUser,
    Veth,
}

/// `linerate selftest`
#[derive(Debug, Args)]
pub struct SelftestArgs {
    /// Frame sizes in bytes, FCS included; or mixes: imix, imix=GENOME (RFC 6985).
    #[arg(long, value_name = "BYTES|imix[=GENOME],...", allow_hyphen_values = true, value_delimiter = ',',
          default_values_t = FrameSize::RFC2544.map(Frames::Size))]
    pub frame_sizes: Vec<Frames>,
    /// Ports that are joined for the range, as bench does for ports of this kind.
    #[arg(long, value_enum, default_value = "software-cable")]
    pub pair: PairArg,
    #[command(flatten)]
    pub traffic: TrafficArgs,
    #[command(flatten)]
    pub machine: MachineArgs,
    /// Print JSON instead of a table.
    #[arg(long)]
    pub json: bool,
}
