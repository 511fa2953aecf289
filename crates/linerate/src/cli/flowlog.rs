//! `linerate flowlog`: the flow logger, and requests to one that runs.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

use super::{
    forward::{Target, What},
    groups::{MemoryArg, QueueArgs},
    score::ScoreArgs,
};

/// `linerate flowlog`
#[derive(Debug, Args, Default)]
#[command(args_conflicts_with_subcommands = true, subcommand_value_name = "show|score|stop", after_help = EXAMPLES)]
pub struct FlowlogArgs {
    /// Show or end a running logger.
    #[command(subcommand)]
    pub control: Option<Control>,
    /// Everything below from a TOML file; flags are added to its lists and replace its values.
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Print the effective configuration as TOML, with every default, and end.
    #[arg(long)]
    pub print_config: bool,
    /// A port; frames pass between the first and the second, the third and the fourth, ...; a last one alone only
    /// receives (see `linerate bench --help` for the forms).
    #[arg(long = "port", value_name = "PORT")]
    pub ports: Vec<String>,
    /// Send received frames back on a port without a partner, instead of dropping them.
    #[arg(long)]
    pub reflect: bool,
    /// Log each port by itself and forward nothing. `eth:` ports without a driver use AF_PACKET: the host still receives.
    #[arg(long, conflicts_with = "reflect")]
    pub receive_only: bool,
    /// End when every port that reads a file (`pcap:FILE` or `pcap:rx=FILE,tx=FILE`) or a pipe (`pcap:-`) has been read to
    /// its end.
    #[arg(long)]
    pub once: bool,
    /// Stop after this long; without it, run until Ctrl-C.
    #[arg(long, value_name = "TIME")]
    pub duration: Option<String>,
    /// The name of the logger for clients and for `flowlog show --name`. Default: flowlog, with the process id if the name
    /// is taken.
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,
    /// Capacity of each lcore in flows, 1k to 16M; rounded up to a power of two. Default: 1M.
    #[arg(long, value_name = "N", help_heading = "Flows")]
    pub flows: Option<String>,
    /// A flow without packets for this long has ended: 1s to 24h. Default: 30s.
    #[arg(long, value_name = "TIME", help_heading = "Flows")]
    pub idle: Option<String>,
    /// A flow that lasts this long is recorded, and its counters restart at 0: 1s to 24h. Default: 5m.
    #[arg(long, value_name = "TIME", help_heading = "Flows")]
    pub active: Option<String>,
    /// What happens to a new flow when the table is full. Default: drop-new.
    #[arg(long, value_enum, value_name = "POLICY", help_heading = "Flows")]
    pub table_full: Option<TableFull>,
    /// Whether both directions of a conversation are one flow, a biflow (RFC 5103). auto: on, but off with --ipfix or
    /// --netflow9, because many collectors read only the forward direction of a biflow. nfcapd reads both. Default: auto.
    #[arg(long, value_enum, value_name = "auto|on|off", help_heading = "Flows")]
    pub biflow: Option<Biflow>,
    /// For MPLS, key on the packet inside the labels, or count the frame as not IP (outer). Default: inner.
    #[arg(long, value_enum, value_name = "WHICH", help_heading = "Flows")]
    pub mpls: Option<Layer>,
    /// For VXLAN, key on the inner frame or on the tunnel. Default: outer.
    #[arg(long, value_enum, value_name = "WHICH", help_heading = "Flows")]
    pub vxlan: Option<Layer>,
    /// UDP port of VXLAN. Default: 4789.
    #[arg(long, value_name = "PORT", help_heading = "Flows")]
    pub vxlan_port: Option<u16>,
    /// For GRE (also ERSPAN), key on the inner packet or on the tunnel. Default: outer.
    #[arg(long, value_enum, value_name = "WHICH", help_heading = "Flows")]
    pub gre: Option<Layer>,
    /// For IPv4 and IPv6 directly inside IP, key on the inner packet or on the tunnel. Default: outer.
    #[arg(long, value_enum, value_name = "WHICH", help_heading = "Flows")]
    pub ipip: Option<Layer>,
    /// For GTP-U, key on the user's packet or on the tunnel. Default: outer.
    #[arg(long, value_enum, value_name = "WHICH", help_heading = "Flows")]
    pub gtpu: Option<Layer>,
    /// Count one frame in N in flows: 1/N takes every N-th, 1/N,random a random one of each N. Collectors are told, and
    /// scale. Without it, all frames count.
    #[arg(long, value_name = "1/N", help_heading = "Flows")]
    pub sample: Option<String>,
    /// Record more of each flow: least and greatest TTL and packet length, changes of the DSCP, MAC addresses, VLAN tags and
    /// MPLS labels of the first frame, and of TCP the round trips of the handshake (with --biflow on), retransmissions and
    /// packets out of order. Takes 116 bytes more a flow, with --biflow on 168. JSON has all of it, IPFIX and NetFlow v9 have
    /// TTL, length, addresses, tags and labels.
    #[arg(long, help_heading = "Flows")]
    pub details: bool,
    /// What distinguishes flows besides their 5-tuple. Default: none.
    #[arg(long, value_enum, value_name = "WHAT", help_heading = "Flows")]
    pub distinguish: Option<Distinguish>,
    /// Where clients read flows (`linerate flows`): ADDRESS:PORT, or `off`. An address other than loopback needs a
    /// token. Default: 127.0.0.1:9395.
    #[arg(long, value_name = "ADDR:PORT", help_heading = "Reading and export")]
    pub listen: Option<String>,
    /// A file with the token that clients must send, on its first line.
    #[arg(long, value_name = "FILE", help_heading = "Reading and export")]
    pub token_file: Option<PathBuf>,
    /// Certificate chain (PEM); clients then use TLS.
    #[arg(long, value_name = "FILE", requires = "tls_key", help_heading = "Reading and export")]
    pub tls_cert: Option<PathBuf>,
    /// Private key (PEM) of the certificate.
    #[arg(long, value_name = "FILE", requires = "tls_cert", help_heading = "Reading and export")]
    pub tls_key: Option<PathBuf>,
    /// A collector of IPFIX: udp://HOST:PORT[,rate=RECORDS][,refresh=TIME][,mtu=BYTES][,names=on|off][,flags=8|9], tcp://HOST:PORT, sctp://HOST:PORT or
    /// tls://HOST:PORT,ca=FILE[,name=NAME][,cert=FILE,key=FILE]; repeat for more.
    /// rate: most records a second, or unlimited (default 200k). refresh: how often the templates are sent again (default
    /// 60s). mtu: of the path (default 1428 for IPv4). names: whether the names of interfaces are sent (default on). flags: how
    /// many TCP flags; 8 are in one byte, for collectors that read one (default 9; NetFlow v9 has 8). ca: the
    /// certificate of the authority to trust (PEM). name: the name in the collector's certificate (default HOST). cert, key: our
    /// own, for collectors that ask.
    #[arg(long = "ipfix", value_name = "URL", help_heading = "Reading and export")]
    pub ipfix: Vec<String>,
    /// A collector of NetFlow v9: udp://HOST:PORT with the options of --ipfix; repeat for more.
    #[arg(long = "netflow9", value_name = "URL", help_heading = "Reading and export")]
    pub netflow9: Vec<String>,
    /// Observation domain ID of IPFIX (source ID of NetFlow v9). Default: derived from the name, so that a collector can distinguish the loggers of this machine.
    #[arg(long, value_name = "ID", help_heading = "Reading and export")]
    pub domain: Option<u32>,
    /// A file of ended flows, one JSON object a line: FILE[,rotate=SIZE][,rotate=TIME][,keep=N]; repeat for more. The file
    /// is rotated when it is that large or that old, and N old files are kept. Default: rotate=256M,rotate=1d,keep=8.
    #[arg(long = "json", value_name = "FILE[,...]", help_heading = "Reading and export")]
    pub json: Vec<String>,
    /// Where Prometheus reads metrics over HTTP. Default: off.
    #[arg(long, value_name = "ADDR:PORT", help_heading = "Reading and export")]
    pub metrics: Option<String>,
    #[command(flatten)]
    pub queues: QueueArgs,
    /// Which core does what: a plan of `linerate host plan --for flowlog --out FILE`. `--cpus` goes before it.
    #[arg(long, value_name = "FILE", help_heading = "Queues")]
    pub core_plan: Option<PathBuf>,
    /// Largest IP packet of all ports in bytes, 576 to 9600. Default: the MTU of each interface; 1500 for other ports.
    #[arg(long, value_name = "BYTES", help_heading = "Queues")]
    pub mtu: Option<u16>,
    /// Count calls and vectors of nodes only, without reading the clock.
    #[arg(long)]
    pub no_clocks: bool,
    /// At the end, fail unless every frame buffer is back in its pool (for tests).
    #[arg(long, hide = true)]
    pub check_pools: bool,
    /// No live view.
    #[arg(long, short)]
    pub quiet: bool,
    #[command(flatten)]
    pub memory: MemoryArgs,
}

/// Memory of packets, without defaults, because a file may set them.
#[derive(Debug, Args, Default)]
#[command(next_help_heading = "Machine")]
pub struct MemoryArgs {
    /// Where packets live. Default: auto.
    #[arg(long, value_enum)]
    pub memory: Option<MemoryArg>,
    /// Memory for packets in MiB, 64 to 65536, in addition to the memory for flows. Default: 256.
    #[arg(long, value_name = "MIB")]
    pub memory_mib: Option<u32>,
    /// Receive and transmit descriptors of each queue, 64 to 32768: a power of two. Default: 2048.
    #[arg(long, value_name = "N")]
    pub descriptors: Option<u32>,
}

const EXAMPLES: &str = "Examples:
  linerate flowlog --port eth:veth0 --port eth:veth1
                                           then, elsewhere: linerate flows
  linerate flowlog --port 0000:37:00.0 --port 0000:37:00.1 \\
                   --flows 4M --ipfix udp://127.0.0.1:4739
  linerate flowlog --port pcap:in.pcap --once --json flows.jsonl
  linerate flowlog --receive-only --port eth:eth0 --port eth:eth1
                                           listen on two interfaces
  linerate flowlog show runtime            what each node costs

Exit codes:
  0 ended by a signal, stop, --duration or --once
  1 --once: a capture is cut or damaged, or records were lost
  2 the command line or a file is wrong
  4 an address is taken, or a port cannot be opened
  130 a second Ctrl-C ended it at once";

/// What to do with a running logger.
#[derive(Debug, Subcommand)]
pub enum Control {
    /// Show counters: runtime, ports or drops.
    Show {
        /// What.
        #[arg(value_enum)]
        what: Counters,
        /// Print JSON instead of a table.
        #[arg(long)]
        json: bool,
        /// Interval over which rates are measured, up to 60s; 0 for the sums since the start.
        #[arg(long, value_name = "TIME", default_value = "1s")]
        interval: String,
        #[command(flatten)]
        target: Target,
    },
    /// End the logger cleanly; return when its process has ended.
    Stop {
        #[command(flatten)]
        target: Target,
    },
    /// Score a logger: send known flows, and compare its records with them.
    Score(Box<ScoreArgs>),
}

/// What a logger can show.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Counters {
    /// Calls, vectors and clocks of each node, by lcore; busy and idle.
    Runtime,
    /// Ports and queues: frames, rates, missed, no buffer; JSON has the drivers' own counters too.
    Ports,
    /// Frames dropped, by reason.
    Drops,
}

impl From<Counters> for What {
    fn from(what: Counters) -> Self {
        match what {
            Counters::Runtime => Self::Runtime,
            Counters::Ports => Self::Ports,
            Counters::Drops => Self::Drops,
        }
    }
}

/// An enum of the flags, converted to the enum of the same name in `runner::flowlog`.
macro_rules! words {
    ($(#[$doc:meta])* $name:ident: $($(#[$help:meta])* $variant:ident),*) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
        pub enum $name { $($(#[$help])* $variant),* }

        impl From<$name> for runner::flowlog::$name {
            fn from(value: $name) -> Self {
                match value { $($name::$variant => Self::$variant),* }
            }
        }
    };
}

words!(
    /// What happens to a new flow when the table is full.
    TableFull:
    /// It is not recorded; its packets are forwarded and counted
    DropNew,
    /// The longest idle flow of its buckets ends early
    Evict
);
words!(
    /// Whether both directions of a conversation are one flow.
    Biflow:
    /// Yes, unless records go to a collector
    Auto,
    /// Yes
    On,
    /// No
    Off
);
words!(
    /// Which headers.
    Layer:
    /// Inner headers
    Inner,
    /// Outer headers
    Outer
);
words!(
    /// What distinguishes flows.
    Distinguish:
    /// Nothing else
    None,
    /// The outer VLAN identifier
    Vlan,
    /// The VXLAN network identifier
    Vni,
    /// The top MPLS label
    Label
);
