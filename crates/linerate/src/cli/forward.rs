//! `linerate forward`: the data plane, and requests to a running one.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

use super::groups::{MachineArgs, QueueArgs};

/// `linerate forward`
#[derive(Debug, Args, Default)]
#[command(args_conflicts_with_subcommands = true, subcommand_value_name = "show|route|...", after_help = EXAMPLES)]
pub struct ForwardArgs {
    /// Show or change a running data plane.
    #[command(subcommand)]
    pub control: Option<Control>,
    /// null (or pass), l2 (cross-connect), l2:macswap, bridge, l3, mpls or vxlan.
    #[arg(value_name = "FUNCTION")]
    pub function: Option<String>,
    /// Everything below from a TOML file; flags are added to its lists and replace its values.
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Print the effective configuration as TOML, with every default, and end.
    #[arg(long)]
    pub print_config: bool,
    /// A port; two or more, counted from 0 (see `linerate bench --help` for the forms).
    #[arg(long = "port", value_name = "PORT")]
    pub ports: Vec<String>,
    /// An address of the router on a link: "0 192.0.2.1/24", or "1.100 2001:db8::1/64" for VLAN 100 of port 1.
    #[arg(long = "address", value_name = "LINK ADDR/LEN", help_heading = "Tables")]
    pub addresses: Vec<String>,
    /// A route: "203.0.113.0/24 via 192.0.2.9", "198.19.0.0/16 port 1 mac 02:00:00:00:00:02", "0.0.0.0/0 drop"; several
    /// paths share the load by flow: "... via A weight 2 via B"; "labels 16/17" pushes MPLS labels.
    #[arg(long = "route", value_name = "PREFIX PATH", help_heading = "Tables")]
    pub routes: Vec<String>,
    /// A static neighbour: "0 192.0.2.9 02:00:00:00:00:09".
    #[arg(long = "neighbour", value_name = "LINK ADDR MAC", help_heading = "Tables")]
    pub neighbours: Vec<String>,
    /// An MPLS label: "16 swap 17 via 192.0.2.9", "16 pop PATH", "16 lookup", "16 drop".
    #[arg(long = "label", value_name = "LABEL ACTION", help_heading = "Tables")]
    pub labels: Vec<String>,
    /// A VXLAN network: "10 local 192.0.2.1 access 0" (more: port UDP, learn off).
    #[arg(long = "network", value_name = "VNI local ADDR access LINK", help_heading = "Tables")]
    pub networks: Vec<String>,
    /// A remote tunnel end, for unknown and broadcast frames: "10 192.0.2.2".
    #[arg(long = "remote", value_name = "VNI ADDR", help_heading = "Tables")]
    pub remotes: Vec<String>,
    /// A static station: "10 02:00:00:00:00:09 192.0.2.2" behind a tunnel, "02:00:00:00:00:09 1" behind
    /// a port of a bridge.
    #[arg(long = "fdb", value_name = "ENTRY", help_heading = "Tables")]
    pub fdb: Vec<String>,
    /// MAC addresses of the stations at ports 0 and 1 in the benchmark tables. Without any table flag, the benchmark tables
    /// route 198.18.0.0/16 and 2001:2:0:1::/64 to port 0, 198.19.0.0/16 and 2001:2:0:2::/64 to port 1; labels 16 and 17.
    #[arg(long, value_name = "MAC,MAC", value_delimiter = ',', help_heading = "Tables")]
    pub stations: Vec<String>,
    #[command(flatten)]
    pub queues: QueueArgs,
    /// Largest IP packet of each port in bytes: one number for all, or one for each port.
    #[arg(long, value_name = "BYTES,...", value_delimiter = ',', help_heading = "Queues")]
    pub mtu: Vec<u16>,
    /// Impair what is forwarded: work=200,rate=1Mpps,burst=128,queue=1ms,loss=0.1%,dup=0.05%,reorder=0.1%,distance=3,delay=10us,jitter=5us,seed=7;
    /// place=before for received frames
    #[arg(long, value_name = "SPEC")]
    pub impair: Option<String>,
    /// Count calls and vectors of nodes only, without reading the clock.
    #[arg(long)]
    pub no_clocks: bool,
    /// The name of the control socket (`forward show --name`). Default: forward, with the process id if the name is taken.
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,
    /// Stop after this long; without it, run until Ctrl-C.
    #[arg(long, value_name = "TIME")]
    pub duration: Option<String>,
    /// Print the final counters as JSON.
    #[arg(long)]
    pub json: bool,
    /// At the end, fail unless every frame buffer is back in its pool (for tests).
    #[arg(long, hide = true)]
    pub check_pools: bool,
    /// No live view.
    #[arg(long, short)]
    pub quiet: bool,
    #[command(flatten)]
    pub machine: MachineArgs,
}

const EXAMPLES: &str = "Examples:
  linerate forward l3 --port eth:veth0 --port eth:veth1 --address \"0 192.0.2.1/24\" --address \"1 198.51.100.1/24\"
  linerate forward --config router.toml
  linerate forward show runtime                        what each node costs, from another terminal
  linerate forward route add 203.0.113.0/24 via 198.51.100.9
  linerate forward load routes.txt                     many changes at once, all or none";

/// Selects a running data plane.
#[derive(Debug, Clone, Args, Default)]
pub struct Target {
    /// The name of the data plane; needed when several run.
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,
    /// The control socket.
    #[arg(long, value_name = "PATH", conflicts_with = "name")]
    pub socket: Option<PathBuf>,
}

/// What to do with a running data plane.
#[derive(Debug, Subcommand)]
pub enum Control {
    /// Show counters or tables.
    Show {
        /// What.
        #[arg(value_enum)]
        what: What,
        /// Print JSON instead of a table.
        #[arg(long)]
        json: bool,
        /// Interval over which rates are measured, up to 60s; 0 for the sums since the start.
        #[arg(long, value_name = "TIME", default_value = "1s")]
        interval: String,
        /// Most rows of a table shown.
        #[arg(long, value_name = "N", default_value_t = 1000)]
        limit: usize,
        #[command(flatten)]
        target: Target,
    },
    /// add|replace|del an address: add 0 192.0.2.1/24
    Address(Change),
    /// add|replace|del a route: add 203.0.113.0/24 via 192.0.2.9
    Route(Change),
    /// add|replace|del a neighbour: add 0 192.0.2.9 02:00:00:00:00:09
    Neighbour(Change),
    /// add|replace|del an MPLS label: add 16 swap 17 via 192.0.2.9
    Label(Change),
    /// add|replace|del a VXLAN network: add 10 local 192.0.2.1 access 0
    Network(Change),
    /// add|replace|del a remote tunnel end: add 10 192.0.2.2
    Remote(Change),
    /// add|replace|del a static station: add 02:00:00:00:00:09 1 (bridge), add 10 02:00:00:00:00:09 192.0.2.2 (vxlan)
    Fdb(Change),
    /// Apply a file of changes (`route add ...`), all or none; `-` reads standard input.
    Load {
        /// The file.
        file: PathBuf,
        #[command(flatten)]
        target: Target,
    },
    /// End the data plane cleanly; return when its process has ended.
    Stop {
        #[command(flatten)]
        target: Target,
    },
}

/// A change of a table.
#[derive(Debug, Args)]
pub struct Change {
    /// add, replace or del, and what.
    #[arg(value_name = "WORD")]
    pub words: Vec<String>,
    #[command(flatten)]
    pub target: Target,
}

/// What can be shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum What {
    /// Calls, vectors and clocks of each node, by lcore; busy and idle.
    Runtime,
    /// Ports and queues: frames, rates, missed, no buffer; JSON has the drivers' own counters too.
    Ports,
    /// Frames dropped, by reason.
    Drops,
    /// The router's interfaces and addresses.
    Interfaces,
    /// Routes.
    Routes,
    /// Neighbours, static and learned.
    Neighbours,
    /// MPLS labels.
    Labels,
    /// VXLAN networks and their tunnel ends.
    Networks,
    /// Stations of a bridge or of VXLAN networks.
    Fdb,
}

impl What {
    /// Its name on the wire.
    pub fn name(self) -> &'static str {
        match self {
            Self::Runtime => "runtime",
            Self::Ports => "ports",
            Self::Drops => "drops",
            Self::Interfaces => "interfaces",
            Self::Routes => "routes",
            Self::Neighbours => "neighbours",
            Self::Labels => "labels",
            Self::Networks => "networks",
            Self::Fdb => "fdb",
        }
    }
}
