//! What can be typed. Nothing here is validated beyond its own form; `measure::plan` does that.
// Comments on flags are the help texts a user reads, where brackets mean what is optional.
#![allow(rustdoc::broken_intra_doc_links)]

pub mod flowlog;
pub mod flows;
pub mod flows_arg;
pub mod forward;
pub mod layout;
pub mod replay;
pub mod score;
pub mod shape;
pub mod sweep;

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use failure::Failure;
use measure::plan::Test;
use rig::{device::DeviceOptions, MachineOptions, MemoryChoice};
use units::{FrameSize, Frames, LinkSpeed, Load, Ratio};

/// How fast a machine forwards packets, at which loss and latency, whether the number can be trusted, and why it is
/// not higher.
#[derive(Debug, Parser)]
#[command(name = "linerate", version, max_term_width = 110, arg_required_else_help = true)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// The subcommands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run a plan: a whole test of a device under test. With no arguments: RFC 2544 throughput and latency of the
    /// built-in L3 data plane over a software cable.
    Bench(Box<BenchArgs>),
    /// Run one trial and print its raw counts.
    Trial(Box<TrialArgs>),
    /// Measure what this tester can do on this machine, per frame size, with no device under test.
    Selftest(Box<SelftestArgs>),
    /// Run the reference data plane between ports, as a device under test for another tester; ask and change one that
    /// runs.
    Forward(Box<forward::ForwardArgs>),
    /// Run the flow logger: frames pass between ports unchanged, every flow is recorded.
    Flowlog(Box<flowlog::FlowlogArgs>),
    /// Watch flow loggers: their interfaces, their tables and their largest flows, live or as JSON.
    Flows(flows::FlowsArgs),
    /// Results stored with --json: show them again, in a document's layout, or one against another.
    Runs(layout::RunsArgs),
    /// Run one job of a suite or a sweep, from standard input.
    #[command(name = campaign::JOB_COMMAND, hide = true)]
    RunJob,
}

/// `linerate bench`
#[derive(Debug, Args)]
#[command(after_help = BENCH_EXAMPLES)]
pub struct BenchArgs {
    /// A plan: the name of an embedded one (`rfc2544`) or a TOML file; PLAN:RUN for one run of a plan that has several.
    #[arg(long, value_name = "NAME|FILE", default_value = "rfc2544")]
    pub plan: String,
    /// The tests to run at each frame size: throughput, latency, frame-loss, back-to-back, recovery, reset, bursty,
    /// forwarding-rate, latency-profile, pdv, soak; or, between three ports, address-caching, address-learning. Default:
    /// those of the plan.
    #[arg(long, value_name = "TEST,...", value_delimiter = ',')]
    pub tests: Vec<Test>,
    /// The throughput that tests go by, instead of a search for it.
    #[arg(long, value_name = "LOAD")]
    pub throughput: Option<Load>,
    /// Short trials (labelled so in the result): the whole default in under two minutes.
    #[arg(long)]
    pub quick: bool,
    /// List the plans, embedded and in plans/ here, with what each needs, and end.
    #[arg(long)]
    pub list: bool,
    /// Print how many trials and how long the plan may be expected to take, from a hundred runs against a simulated
    /// device, and end.
    #[arg(long, conflicts_with_all = ["list", "print_config"])]
    pub dry_run: bool,
    /// Print the effective plan as TOML, with every default, and end.
    #[arg(long)]
    pub print_config: bool,
    /// Frame sizes in bytes, FCS included; or mixes: imix (7 of 64, 4 of 570, 1 of 1518), imix=GENOME (RFC 6985: aaafg,
    /// aaz:z=9000, AAB:A=78:B=1400; counts, 7x64:1x1518; shares, 70%x64:30%x1518; a range, 64-1518:step=2), with a
    /// seed (:seed=7) drawn at random.
    #[arg(long, value_name = "BYTES|imix[=GENOME],...", value_delimiter = ',')]
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

const BENCH_EXAMPLES: &str = "Examples:
  linerate bench --quick                                       the built-in L3 data plane, in under two minutes
  linerate bench --quick --dut l2 --impair rate=1Mpps --upper 4Mpps
                                                               find a known rate
  linerate bench --port memif:/run/a.sock --port memif:/run/b.sock --quick --json result.json
  linerate bench --method mlrsearch --goals csit --frame-sizes 64
                                                               NDR and PDR in one search
  linerate bench --tests frame-loss,back-to-back,recovery --quick --dut l2 --impair rate=1Mpps --upper 2Mpps
                                                               other tests of the standards
  linerate bench --dut sim:capacity=10M,stalls=0.05/s:2000     rehearse: a simulated device, in milliseconds
  linerate bench --quick --frame-sizes 64 --sweep routes=1,1k --sweep flows=1,1k
                                                               a row for each combination
  linerate bench --port eth:ens1f0 --port eth:ens1f1 --link 10G --both-ways

Exit codes: 0 done and criteria met; 1 done, a criterion was not met; 2 the command or a file is wrong;
3 measured, but not trustworthy; 4 the machine lacks something; 130 stopped by Ctrl-C, results so far kept.";

/// `linerate trial`
#[derive(Debug, Args)]
pub struct TrialArgs {
    /// Load per direction: frames (1Mpps), bits of layer 1 (1Gbps) or 2 (1GbpsL2), or a share of the link (50%).
    #[arg(long, value_name = "LOAD", required_unless_present = "replay")]
    pub load: Option<Load>,
    /// How long to send. Default: 5s; a capture: once through.
    #[arg(long, value_name = "TIME")]
    pub duration: Option<String>,
    /// Frame size in bytes, FCS included; or a mix: imix, imix=GENOME (RFC 6985).
    #[arg(long, value_name = "BYTES|imix[=GENOME]", default_value = "64")]
    pub frame_size: Frames,
    /// How long to wait for frames still under way.
    #[arg(long, value_name = "TIME", default_value = "2s")]
    pub residual: String,
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

/// `linerate selftest`
#[derive(Debug, Args)]
pub struct SelftestArgs {
    /// Frame sizes in bytes, FCS included; or mixes: imix, imix=GENOME (RFC 6985).
    #[arg(long, value_name = "BYTES|imix[=GENOME],...", value_delimiter = ',',
          default_values_t = FrameSize::RFC2544.map(Frames::Size))]
    pub frame_sizes: Vec<Frames>,
    #[command(flatten)]
    pub traffic: TrafficArgs,
    #[command(flatten)]
    pub machine: MachineArgs,
    /// Print JSON instead of a table.
    #[arg(long)]
    pub json: bool,
}

/// Who polls which queue of which port, and when frames leave.
#[derive(Debug, Args, Default)]
pub struct QueueArgs {
    /// CPUs that poll, an lcore on each. Default: the last one allowed.
    #[arg(long, value_name = "CPU,...", value_delimiter = ',', help_heading = "Queues")]
    pub cpus: Vec<u32>,
    /// Receive queues of each port; over a NIC, RSS spreads flows over them and keeps each together. Default: 1.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=64), help_heading = "Queues")]
    pub rx_queues: Option<u16>,
    /// Which CPU polls which queue: PORT:QUEUE=CPU for each queue. Default: queue n of each port by the nth CPU; ports
    /// with one queue (a flow logger's: pairs of them) in turn.
    #[arg(long, value_name = "PORT:QUEUE=CPU,...", value_delimiter = ',', help_heading = "Queues")]
    pub queue_map: Vec<String>,
    /// When frames leave: `now`, or `small=4,polls=2`: fewer than 4 for a port wait up to 2 polls for company.
    /// Default: now.
    #[arg(long, value_name = "POLICY", help_heading = "Queues")]
    pub tx: Option<String>,
}

impl QueueArgs {
    /// What was typed, over what a file says.
    pub fn over(&self, cpus: &mut Vec<u32>, rx_queues: &mut u16, queue_map: &mut Vec<String>, tx: &mut String) {
        if !self.cpus.is_empty() {
            cpus.clone_from(&self.cpus);
        }
        if let Some(n) = self.rx_queues {
            *rx_queues = n;
        }
        if !self.queue_map.is_empty() {
            queue_map.clone_from(&self.queue_map);
        }
        if let Some(policy) = &self.tx {
            tx.clone_from(policy);
        }
    }
}

/// What is tested, and through which ports.
#[derive(Debug, Args, Default)]
#[command(next_help_heading = "Device under test")]
pub struct PortArgs {
    /// A port of the tester; give two. A PCI address, eth:IF, memif:SOCKET, vhost:SOCKET, virtio:SOCKET[,server=1],
    /// null, pcap:FILE, or DPDK devargs.
    #[arg(long = "port", value_name = "PORT")]
    pub ports: Vec<String>,
    /// The built-in data plane, joined to the tester by software cables: null, l2, l2:macswap, bridge, l3, mpls, vxlan or
    /// flowlog (the flow logger). With bench also sim:capacity=10M,queue=1024,...: a simulated device in virtual time.
    #[arg(long, value_name = "FUNCTION", conflicts_with = "ports")]
    pub dut: Option<String>,
    /// Impair the built-in data plane: rate=1Mpps,burst=128,loss=0.1%,dup=0.05%,reorder=0.1%,distance=3,delay=10us,jitter=5us,seed=7
    #[arg(long, value_name = "SPEC", conflicts_with = "ports")]
    pub impair: Option<String>,
    /// When frames leave the built-in data plane: `now`, or `small=4,polls=2` (see `linerate forward --help`).
    #[arg(long, value_name = "POLICY", conflicts_with = "ports")]
    pub dut_tx: Option<String>,
    /// The `linerate forward` behind the ports, by its name or its socket: each trial then carries its counters.
    #[arg(long, value_name = "NAME|SOCKET", requires = "ports")]
    pub dut_control: Option<PathBuf>,
    /// Speed of the links, for percentages and as the highest load: 10G.
    #[arg(long, value_name = "BITS")]
    pub link: Option<LinkSpeed>,
    /// How long to wait for the ports' links to come up.
    #[arg(long, value_name = "TIME", default_value = "10s")]
    pub link_wait: String,
}

/// What is sent.
#[derive(Debug, Args, Default)]
#[command(next_help_heading = "Traffic")]
pub struct TrafficArgs {
    /// Send both ways at once (each direction at the load).
    #[arg(long)]
    pub both_ways: bool,
    /// Distinct 5-tuples per direction. For flowlog score a program: constant:N, zipf:N[,s=S],
    /// churn:RATE[,packets=K][,life=TIME] (RATE may be max: search for it) or scan:HOSTS,PORTS.
    #[arg(long, value_name = "N|PROGRAM")]
    pub flows: Option<flows_arg::FlowsArg>,
    /// IP version.
    #[arg(long, value_enum, value_name = "VERSION")]
    pub ip: Option<IpArg>,
    /// Transport header; none: the payload follows the IP header (protocol 253).
    #[arg(long, value_enum, value_name = "PROTOCOL")]
    pub l4: Option<L4Arg>,
    /// VLAN id; twice for QinQ, outer first.
    #[arg(long, value_name = "ID")]
    pub vlan: Vec<u16>,
    /// MPLS label; repeat for a stack, top first.
    #[arg(long, value_name = "LABEL")]
    pub mpls: Vec<u32>,
    /// Source address of the first flow.
    #[arg(long, value_name = "ADDRESS")]
    pub src_ip: Option<String>,
    /// Destination address of the first flow.
    #[arg(long, value_name = "ADDRESS")]
    pub dst_ip: Option<String>,
    /// Source port of the first flow.
    #[arg(long, value_name = "PORT")]
    pub src_port: Option<u16>,
    /// Destination port of the first flow.
    #[arg(long, value_name = "PORT")]
    pub dst_port: Option<u16>,
    /// Destination MAC of frames sent by the first port and, after a comma, by the second: a router's own MACs.
    /// Default: the other tester port's, which suits bridges.
    #[arg(long, value_name = "MAC[,MAC]", value_delimiter = ',')]
    pub dst_mac: Vec<String>,
    /// Source MAC of the first port and, after a comma, of the second. Default: the ports' own.
    #[arg(long, value_name = "MAC[,MAC]", value_delimiter = ',')]
    pub src_mac: Vec<String>,
    /// Vary a field per frame: NAME:increment:START:COUNT[:STEP], NAME:random:START:COUNT, NAME:mask:BITS (0, 1 and X
    /// for a random bit), NAME:list:A/B/C. NAME is src_mac, dst_mac, src_ip, dst_ip, src_port, dst_port, vlan, mpls or
    /// raw@OFFSET (mask only). Repeat for more.
    #[arg(long = "field", value_name = "SPEC")]
    pub fields: Vec<String>,
    /// Seed of everything random.
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
}

/// IP versions.
#[derive(Debug, Clone, Copy, ValueEnum, PartialEq, Eq)]
pub enum IpArg {
    V4,
    V6,
}

/// Transport headers.
#[derive(Debug, Clone, Copy, ValueEnum, PartialEq, Eq)]
pub enum L4Arg {
    Udp,
    Tcp,
    None,
}

/// How the answer is searched for.
#[derive(Debug, Args, Default)]
#[command(next_help_heading = "Search")]
pub struct SearchArgs {
    /// rfc2544: binary search. tst009: the same with loss verification. mlrsearch: several goals at once (RFC 9971).
    #[arg(long, value_enum, value_name = "METHOD")]
    pub method: Option<MethodArg>,
    /// mlrsearch: a set of goals by name (csit: without loss and with 0.5 %). A plan can list its own.
    #[arg(long, value_enum, value_name = "GOALS")]
    pub goals: Option<GoalsArg>,
    /// mlrsearch: sending time of a first trial that counts for nothing.
    #[arg(long, value_name = "TIME")]
    pub warmup: Option<String>,
    /// Loss that still counts as passing: 0, 0.1%.
    #[arg(long, value_name = "RATIO")]
    pub tolerated_loss: Option<Ratio>,
    /// Stop when the bounds are this near, relative to the upper: 0.1%.
    #[arg(long, value_name = "RATIO")]
    pub precision: Option<Ratio>,
    /// Sending time of each trial: 60s.
    #[arg(long, value_name = "TIME")]
    pub duration: Option<String>,
    /// Lowest load of the search.
    #[arg(long, value_name = "LOAD")]
    pub lower: Option<Load>,
    /// Highest load of the search. Default: the link's line rate, or what the tester can do.
    #[arg(long, value_name = "LOAD")]
    pub upper: Option<Load>,
    /// tst009: how often a lossy load is tried again.
    #[arg(long, value_name = "N")]
    pub retries: Option<u32>,
    /// How often an invalid trial is repeated before the answer is inconclusive.
    #[arg(long, value_name = "N")]
    pub max_repeats: Option<u32>,
    /// Sending time of the latency trial at the throughput found.
    #[arg(long, value_name = "TIME")]
    pub latency_duration: Option<String>,
    /// Leave out the latency trial.
    #[arg(long)]
    pub no_latency: bool,
}

/// Search methods.
#[derive(Debug, Clone, Copy, ValueEnum, PartialEq, Eq)]
pub enum MethodArg {
    Rfc2544,
    Tst009,
    Mlrsearch,
}

/// Sets of search goals.
#[derive(Debug, Clone, Copy, ValueEnum, PartialEq, Eq)]
pub enum GoalsArg {
    Csit,
    Rfc2544,
    Tst009,
}

/// Cores and memory.
#[derive(Debug, Args, Default)]
#[command(next_help_heading = "Machine")]
pub struct MachineArgs {
    /// CPU of the tester's polling core. Default: the last allowed.
    #[arg(long, value_name = "CPU")]
    pub tester_cpu: Option<u32>,
    /// CPU of the built-in data plane; for an outside one on this machine, the CPU to probe the way to. Default: the
    /// one before the tester's.
    #[arg(long, value_name = "CPU")]
    pub dut_cpu: Option<u32>,
    /// Where packets live.
    #[arg(long, value_enum, default_value = "auto")]
    pub memory: MemoryArg,
    /// Memory for packets in MiB.
    #[arg(long, value_name = "MIB", default_value_t = 256, value_parser = clap::value_parser!(u32).range(64..=65536))]
    pub memory_mib: u32,
    /// Receive and transmit descriptors of each port, and the depth of a software cable: a power of two.
    #[arg(long, value_name = "N", default_value_t = 2048, value_parser = clap::value_parser!(u32).range(64..=32768))]
    pub descriptors: u32,
}

/// Kinds of packet memory.
#[derive(Debug, Clone, Copy, ValueEnum, PartialEq, Eq, Default)]
pub enum MemoryArg {
    /// Hugepages when enough are free, ordinary pages otherwise.
    #[default]
    Auto,
    /// Hugepages or nothing.
    Hugepages,
    /// Ordinary pages.
    NoHugepages,
}

/// Where results go.
#[derive(Debug, Clone, Args, Default)]
#[command(next_help_heading = "Output")]
pub struct OutputArgs {
    /// Write the whole result, every trial with raw counts, as JSON (`-` for standard output, without tables).
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// Write the report as Markdown.
    #[arg(long, value_name = "FILE")]
    pub markdown: Option<PathBuf>,
    /// Write the pictures as SVG.
    #[arg(long, value_name = "FILE")]
    pub svg: Option<PathBuf>,
    /// Write one line a frame size as CSV.
    #[arg(long, value_name = "FILE")]
    pub csv: Option<PathBuf>,
    /// Write one line a figure of each test beside the throughput as CSV.
    #[arg(long, value_name = "FILE")]
    pub csv_tests: Option<PathBuf>,
    /// Print every statement: each departure, warning, placement and percentile. The files hold them anyway.
    #[arg(long, short)]
    pub verbose: bool,
    /// What tables, pictures and files call the device.
    #[arg(long, value_name = "NAME")]
    pub dut_name: Option<String>,
    /// No progress.
    #[arg(long, short)]
    pub quiet: bool,
}

impl MemoryArg {
    /// The choice itself.
    pub fn choice(self) -> MemoryChoice {
        match self {
            Self::Auto => MemoryChoice::Auto,
            Self::Hugepages => MemoryChoice::Hugepages,
            Self::NoHugepages => MemoryChoice::NoHugepages,
        }
    }
}

impl MachineArgs {
    /// As the rig takes them.
    pub fn options(&self) -> MachineOptions {
        MachineOptions {
            tester_cpu: self.tester_cpu,
            dut_cpu: self.dut_cpu,
            memory: self.memory.choice(),
            memory_mib: self.memory_mib,
            descriptors: self.descriptors,
        }
    }
}

impl PortArgs {
    /// The words that name a device.
    pub fn options(&self) -> Result<DeviceOptions, Failure> {
        Ok(DeviceOptions {
            ports: self.ports.clone(),
            dut: self.dut.clone(),
            impair: self.impair.clone(),
            tx_policy: self.dut_tx.clone(),
            control: self.dut_control.clone(),
            link_wait: units::parse_duration(&self.link_wait)?,
        })
    }
}
