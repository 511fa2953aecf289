//! Groups of flags that several commands share.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use failure::Failure;
use host::{core_plan::CorePlan, cpu_set::CpuSet};
use rig::{device::DeviceOptions, host_plan::read_core_plan, MachineOptions, MemoryChoice, RealtimeChoice};
use units::{LinkSpeed, Load, Ratio};

use super::flows_arg::FlowsArg;

/// Which CPU polls which queue of which port, and when frames leave.
#[derive(Debug, Args, Default)]
pub struct QueueArgs {
    /// CPUs that poll, an lcore on each. Default: the last but one allowed, since a tester takes the last.
    #[arg(long, value_name = "CPU,...", value_delimiter = ',', help_heading = "Queues")]
    pub cpus: Vec<u32>,
    /// Receive queues of each port. On a NIC, RSS spreads flows over the queues and keeps each flow on one. Default: 1.
    #[arg(long, value_name = "N", allow_hyphen_values = true, value_parser = clap::value_parser!(u16).range(1..=64), help_heading = "Queues")]
    pub rx_queues: Option<u16>,
    /// Which CPU polls which queue: PORT:QUEUE=CPU for each queue. Default: queue n of each port by the nth CPU; ports
    /// with one queue in turn (for a flow logger, pairs of ports).
    #[arg(long, value_name = "PORT:QUEUE=CPU,...", value_delimiter = ',', help_heading = "Queues")]
    pub queue_map: Vec<String>,
    /// When frames leave: `now`, or `small=4,polls=2`: bursts of fewer than 4 frames are held for up to 2 polls.
    /// Default: now.
    #[arg(long, value_name = "POLICY", help_heading = "Queues")]
    pub tx: Option<String>,
}

impl QueueArgs {
    /// Replaces values of a file by the flags given.
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

/// The device under test and the ports to it.
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
    /// Impair the built-in data plane: work=200,rate=1Mpps,burst=128,queue=1ms,loss=0.1%,dup=0.05%,reorder=0.1%,distance=3,delay=10us,jitter=5us,seed=7
    #[arg(long, value_name = "SPEC", conflicts_with = "ports")]
    pub impair: Option<String>,
    /// When frames leave the built-in data plane: `now`, or `small=4,polls=2` (see `linerate forward --help`).
    #[arg(long, value_name = "POLICY", conflicts_with = "ports")]
    pub dut_tx_policy: Option<String>,
    /// The `linerate forward` behind the ports, by its name or its socket. Each trial then includes its counters.
    #[arg(long, value_name = "NAME|SOCKET", requires = "ports")]
    pub dut_control: Option<PathBuf>,
    #[command(flatten)]
    pub lab: super::lab::LabChoice,
    /// Speed of the links, for percentages and as the highest load: 10G.
    #[arg(long, value_name = "BITS")]
    pub link: Option<LinkSpeed>,
    /// How long to wait for the ports' links to come up.
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, default_value = "10s")]
    pub link_wait: String,
}

impl PortArgs {
    /// The name of the device.
    pub fn options(&self) -> Result<DeviceOptions, Failure> {
        Ok(DeviceOptions {
            ports: self.ports.clone(),
            dut: self.dut.clone(),
            impair: self.impair.clone(),
            tx_policy: self.dut_tx_policy.clone(),
            control: self.dut_control.clone(),
            lab: self.lab.inside.is_some(),
            link_wait: units::parse_duration(&self.link_wait)?,
        })
    }
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
    #[arg(long, value_name = "N|PROGRAM", allow_hyphen_values = true)]
    pub flows: Option<FlowsArg>,
    /// IP version.
    #[arg(long, value_enum, value_name = "VERSION")]
    pub ip: Option<IpArg>,
    /// Transport header; none: the payload follows the IP header (protocol 253).
    #[arg(long, value_enum, value_name = "PROTOCOL")]
    pub l4: Option<L4Arg>,
    /// VLAN id; twice for QinQ, outer first.
    #[arg(long, value_name = "ID", allow_hyphen_values = true)]
    pub vlan: Vec<u16>,
    /// MPLS label; repeat for a stack, top first.
    #[arg(long, value_name = "LABEL", allow_hyphen_values = true)]
    pub mpls: Vec<u32>,
    /// Source address of the first flow.
    #[arg(long, value_name = "ADDRESS")]
    pub src_ip: Option<String>,
    /// Destination address of the first flow.
    #[arg(long, value_name = "ADDRESS")]
    pub dst_ip: Option<String>,
    /// Source port of the first flow.
    #[arg(long, value_name = "PORT", allow_hyphen_values = true)]
    pub src_port: Option<u16>,
    /// Destination port of the first flow.
    #[arg(long, value_name = "PORT", allow_hyphen_values = true)]
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
    #[arg(long, value_name = "N", allow_hyphen_values = true)]
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
    /// mlrsearch: sending time of a warm-up trial, which does not count.
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    pub warmup: Option<String>,
    /// Loss that still counts as passing: 0, 0.1%.
    #[arg(long, value_name = "RATIO", allow_hyphen_values = true)]
    pub tolerated_loss: Option<Ratio>,
    /// Stop when the bounds are this close, relative to the upper bound: 0.1%.
    #[arg(long, value_name = "RATIO", allow_hyphen_values = true)]
    pub precision: Option<Ratio>,
    /// Sending time of each trial: 60s.
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    pub duration: Option<String>,
    /// Lowest load of the search.
    #[arg(long, value_name = "LOAD", allow_hyphen_values = true)]
    pub lower: Option<Load>,
    /// Highest load of the search. Default: the line rate of the link, or the maximum of the tester.
    #[arg(long, value_name = "LOAD", allow_hyphen_values = true)]
    pub upper: Option<Load>,
    /// tst009: how often a trial with loss is repeated.
    #[arg(long, value_name = "N", allow_hyphen_values = true)]
    pub retries: Option<u32>,
    /// What a search goes by: slices of trials in which nobody was away, or whole trials, as the standard has
    /// it.
    #[arg(long, value_enum, value_name = "RULE")]
    pub evidence: Option<EvidenceArg>,
    /// How long to wait for the first frame each way through an outside device, before the first trial.
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    pub ready_timeout: Option<String>,
    /// How often an invalid trial is repeated before the answer is inconclusive.
    #[arg(long, value_name = "N", allow_hyphen_values = true)]
    pub max_repeats: Option<u32>,
    /// Sending time of the latency trial at the throughput found.
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    pub latency_duration: Option<String>,
    /// Leave out the latency trial.
    #[arg(long)]
    pub no_latency: bool,
}

/// What a search goes by.
#[derive(Debug, Clone, Copy, ValueEnum, PartialEq, Eq)]
pub enum EvidenceArg {
    Slices,
    WholeTrial,
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
    /// CPU of the tester's polling core. Default: the last allowed CPU.
    #[arg(long, value_name = "CPU", allow_hyphen_values = true)]
    pub tester_cpu: Option<u32>,
    /// CPU of the built-in data plane. For another device on this machine: the CPU whose distance from the tester is
    /// probed. Default: the CPU before the tester's.
    #[arg(long, value_name = "CPU", allow_hyphen_values = true)]
    pub dut_cpu: Option<u32>,
    /// Processes of a device on this machine, up to eight busy threads of them: time in which they wait for a CPU is set
    /// aside. Default: those whose threads are pinned to `--dut-cpu`.
    #[arg(long, value_name = "PID,...", value_delimiter = ',', allow_hyphen_values = true)]
    pub dut_pid: Vec<u32>,
    /// Which core does what: a plan of `linerate host plan --out FILE`. Flags for CPUs go before it.
    #[arg(long, value_name = "FILE")]
    pub core_plan: Option<PathBuf>,
    /// Measure only if `linerate host audit` has no bad finding for these cores and ports.
    #[arg(long)]
    pub require_audit: bool,
    /// Real-time priority of the polling cores, so that no ordinary thread takes them away.
    #[arg(long, value_enum, default_value = "auto")]
    pub realtime: RealtimeArg,
    /// Where packets live.
    #[arg(long, value_enum, default_value = "auto")]
    pub memory: MemoryArg,
    /// Memory for packets in MiB.
    #[arg(long, value_name = "MIB", allow_hyphen_values = true, default_value_t = 256, value_parser = clap::value_parser!(u32).range(64..=65536))]
    pub memory_mib: u32,
    /// Receive and transmit descriptors of each port, and the depth of a software cable: a power of two.
    #[arg(long, value_name = "N", allow_hyphen_values = true, default_value_t = 2048, value_parser = clap::value_parser!(u32).range(64..=32768))]
    pub descriptors: u32,
}

/// When polling cores have real-time priority.
#[derive(Debug, Clone, Copy, ValueEnum, PartialEq, Eq, Default)]
pub enum RealtimeArg {
    /// In trials of up to 0.8 s, when the rights allow it.
    #[default]
    Auto,
    /// In every trial, or an error.
    On,
    /// Never.
    Off,
}

impl RealtimeArg {
    /// The chosen kind.
    pub fn choice(self) -> RealtimeChoice {
        match self {
            Self::Auto => RealtimeChoice::Auto,
            Self::On => RealtimeChoice::On,
            Self::Off => RealtimeChoice::Off,
        }
    }
}

/// Kinds of packet memory.
#[derive(Debug, Clone, Copy, ValueEnum, PartialEq, Eq, Default)]
pub enum MemoryArg {
    /// Hugepages when enough are free, ordinary pages otherwise.
    #[default]
    Auto,
    /// Hugepages or an error.
    Hugepages,
    /// Ordinary pages.
    NoHugepages,
}

impl MemoryArg {
    /// The chosen kind.
    pub fn choice(self) -> MemoryChoice {
        match self {
            Self::Auto => MemoryChoice::Auto,
            Self::Hugepages => MemoryChoice::Hugepages,
            Self::NoHugepages => MemoryChoice::NoHugepages,
        }
    }
}

impl MachineArgs {
    /// The options of the rig.
    ///
    /// # Errors
    ///
    /// (usage) for a plan of the cores that cannot be read or does not fit this machine.
    pub fn options(&self) -> Result<MachineOptions, Failure> {
        let core_plan = self.core_plan.as_deref().map(read_core_plan).transpose()?;
        if let (Some(file), Some(plan), None) = (&self.core_plan, &core_plan, self.tester_cpu) {
            if plan.tester.is_empty() {
                let file = file.display();
                return Err(Failure::usage(format!(
                    "--core-plan {file}: it has no core for the tester: make one with linerate host plan --for bench, or give \
                     --tester-cpu"
                )));
            }
        }
        let first = |of: fn(&CorePlan) -> &CpuSet| core_plan.as_ref().and_then(|plan| of(plan).first().copied());
        Ok(MachineOptions {
            tester_cpu: self.tester_cpu.or_else(|| first(|plan| &plan.tester)),
            dut_cpu: self.dut_cpu.or_else(|| first(|plan| &plan.data_plane)),
            dut_pids: self.dut_pid.clone(),
            realtime: self.realtime.choice(),
            memory: self.memory.choice(),
            memory_mib: self.memory_mib,
            descriptors: self.descriptors,
            require_audit: self.require_audit,
            core_plan,
        })
    }
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
    /// Write CSV with one line for each frame size.
    #[arg(long, value_name = "FILE")]
    pub csv: Option<PathBuf>,
    /// Write CSV with one line for each figure of the tests other than throughput.
    #[arg(long, value_name = "FILE")]
    pub csv_tests: Option<PathBuf>,
    /// Print every statement: each departure, warning, placement and percentile. Files always hold all of them.
    #[arg(long, short)]
    pub verbose: bool,
    /// Name of the device in tables, pictures and files.
    #[arg(long, value_name = "NAME")]
    pub dut_name: Option<String>,
    /// Hide the progress line.
    #[arg(long, short)]
    pub quiet: bool,
}
