//! What `flowlog` runs: flags over a TOML file, checked.

use std::{
    net::{SocketAddr, ToSocketAddrs},
    path::PathBuf,
    time::Duration,
};

use dataplane::TxPolicy;
use flow::{
    decode::{self, DecodeSpec},
    export::SinkSpec,
    serve::token_from_file,
    table::{self, TableSpec},
};
use serde::{de, Deserialize, Deserializer, Serialize};

use super::sinks;
use crate::{
    cli::flowlog::{Directions, Distinguish, FlowlogArgs, Full, Layer},
    cmd::forward::config::{file, number, placement, Placement},
};
use failure::Failure;
use rig::{
    device::{LogSpec, Polled, NODE_SAMPLE},
    MachineOptions, MemoryChoice,
};

/// Where clients read flows unless told otherwise.
pub const LISTEN: &str = "127.0.0.1:9395";
/// Fewest and most flows of an lcore.
const FLOWS: std::ops::RangeInclusive<u64> = 1_000..=1 << 24;
/// The most ports: their numbers are a byte of the key.
const MAX_PORTS: usize = 64;

/// The configuration as written.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// The ports, counted from 0, in pairs.
    pub ports: Vec<String>,
    /// A port alone sends back what it receives.
    pub reflect: bool,
    /// Ends when every capture has been read.
    pub once: bool,
    /// How long to run; empty: until told to end.
    #[serde(deserialize_with = "time")]
    pub duration: String,
    /// The logger's name; empty: `flowlog`.
    pub name: String,
    /// Flows each lcore has room for.
    #[serde(deserialize_with = "count")]
    pub flows: String,
    /// Idle timeout.
    #[serde(deserialize_with = "time")]
    pub idle: String,
    /// Active timeout.
    #[serde(deserialize_with = "time")]
    pub active: String,
    /// When there is no room.
    pub full: Full,
    /// Both ways one flow or two.
    pub directions: Directions,
    /// Below MPLS labels or not.
    pub mpls: Layer,
    /// Inside VXLAN or not.
    pub vxlan: Layer,
    /// UDP port of VXLAN.
    pub vxlan_port: u16,
    /// What tells flows apart.
    pub distinguish: Distinguish,
    /// Where clients read flows; `off`: nowhere.
    pub listen: String,
    /// File of the token; empty: none is asked for.
    pub token_file: PathBuf,
    /// Certificate chain; empty: no TLS.
    pub tls_cert: PathBuf,
    /// Private key.
    pub tls_key: PathBuf,
    /// Collectors.
    pub ipfix: Vec<String>,
    /// Observation domain of IPFIX; absent: made of the name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub domain: Option<u32>,
    /// Files of ended flows.
    pub json: Vec<String>,
    /// Where Prometheus reads; `off`: nowhere.
    pub metrics: String,
    /// CPUs that poll; empty: the last one allowed.
    pub cpus: Vec<u32>,
    /// Receive queues of each port.
    pub rx_queues: u16,
    /// `PORT:QUEUE=CPU` for each queue; empty: in turn.
    pub queue_map: Vec<String>,
    /// When frames leave.
    pub tx: String,
    /// Largest IP packet.
    pub mtu: u16,
    /// Where packets live.
    pub memory: MemoryChoice,
    /// Memory for packets in MiB.
    pub memory_mib: u32,
    /// Descriptors of each queue.
    pub descriptors: u32,
    /// Nodes do not read the clock.
    pub no_clocks: bool,
    /// No live view.
    pub quiet: bool,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            ports: Vec::new(),
            reflect: false,
            once: false,
            duration: String::new(),
            name: String::new(),
            flows: "1M".into(),
            idle: "30s".into(),
            active: "5m".into(),
            full: Full::Refuse,
            directions: Directions::Joined,
            mpls: Layer::Inner,
            vxlan: Layer::Outer,
            vxlan_port: 4789,
            distinguish: Distinguish::None,
            listen: LISTEN.into(),
            token_file: PathBuf::new(),
            tls_cert: PathBuf::new(),
            tls_key: PathBuf::new(),
            ipfix: Vec::new(),
            domain: None,
            json: Vec::new(),
            metrics: "off".into(),
            cpus: Vec::new(),
            rx_queues: 1,
            queue_map: Vec::new(),
            tx: TxPolicy::default().to_string(),
            mtu: 1500,
            memory: MemoryChoice::Auto,
            memory_mib: 256,
            descriptors: 2048,
            no_clocks: false,
            quiet: false,
        }
    }
}

/// A text, or an error that says what it has to be.
struct Quoted(&'static str);

impl de::Visitor<'_> for Quoted {
    type Value = String;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.0)
    }

    fn visit_str<E>(self, text: &str) -> Result<String, E> {
        Ok(text.to_owned())
    }
}

fn time<'de, D: Deserializer<'de>>(from: D) -> Result<String, D::Error> {
    from.deserialize_str(Quoted("a time in quotes, such as \"30s\""))
}

fn count<'de, D: Deserializer<'de>>(from: D) -> Result<String, D::Error> {
    from.deserialize_str(Quoted("a count in quotes, such as \"64k\""))
}

/// The configuration, checked.
#[derive(Debug)]
pub struct Settings {
    /// As written, with every default.
    pub config: Config,
    /// CPUs that poll, the first lcore's first.
    pub cpus: Vec<u32>,
    /// Who polls what.
    pub polled: Vec<Polled>,
    /// Flows of each lcore, a power of two.
    pub flows: usize,
    /// Idle timeout.
    pub idle: Duration,
    /// Active timeout.
    pub active: Duration,
    /// Where clients read flows.
    pub listen: Option<SocketAddr>,
    /// Where Prometheus reads.
    pub metrics: Option<SocketAddr>,
    /// Where ended flows go.
    pub sinks: Vec<SinkSpec>,
    /// What clients have to show.
    pub token: Option<String>,
    /// When frames leave.
    pub tx: TxPolicy,
    /// How long to run.
    pub duration: Option<Duration>,
}

impl Config {
    /// The file, if one was named, with the flags over it.
    pub fn read(args: &FlowlogArgs) -> Result<Self, Failure> {
        let mut config: Self = args.config.as_deref().map(file).transpose()?.unwrap_or_default();
        config.ports.extend_from_slice(&args.ports);
        config.ipfix.extend_from_slice(&args.ipfix);
        config.json.extend_from_slice(&args.json);
        config.reflect |= args.reflect;
        config.once |= args.once;
        config.no_clocks |= args.no_clocks;
        config.quiet |= args.quiet;
        macro_rules! over {
            ($from:ident: $($field:ident),*) => {
                $(if let Some(value) = &$from.$field { config.$field.clone_from(value); })*
            };
        }
        over!(args: duration, name, flows, idle, active, full, directions, mpls, vxlan, vxlan_port, distinguish, listen, token_file);
        over!(args: tls_cert, tls_key, metrics, mtu);
        config.domain = args.domain.or(config.domain);
        let memory = &args.memory;
        if let Some(kind) = memory.memory {
            config.memory = kind.choice();
        }
        over!(memory: memory_mib, descriptors);
        args.queues.over(&mut config.cpus, &mut config.rx_queues, &mut config.queue_map, &mut config.tx);
        Ok(config)
    }

    /// As a file would hold it.
    pub fn to_toml(&self) -> Result<String, Failure> {
        toml::to_string(self).map_err(Failure::failed)
    }

    /// Checks everything that can be wrong before a port is opened.
    pub fn check(self, allowed: &[u32]) -> Result<Settings, Failure> {
        let ports = self.ports.len();
        if ports == 0 || ports > MAX_PORTS {
            return Err(Failure::usage(format!(
                "{} --port given: one that only receives, or pairs between which frames pass, up to {MAX_PORTS}",
                number(ports)
            )));
        }
        if !(576..=9600).contains(&self.mtu) {
            return Err(Failure::usage(format!("mtu {}: must be 576 to 9600 bytes of IP packet", self.mtu)));
        }
        if !(1..=64).contains(&self.rx_queues) {
            return Err(Failure::usage(format!("rx_queues {}: must be 1 to 64", self.rx_queues)));
        }
        for (key, value, legal) in
            [("memory_mib", self.memory_mib, 64..=65_536), ("descriptors", self.descriptors, 64..=32_768)]
        {
            if !legal.contains(&value) {
                return Err(Failure::usage(format!("{key} {value}: must be {} to {}", legal.start(), legal.end())));
            }
        }
        rig::check_descriptors(self.descriptors)?;
        let duration = Some(&self.duration).filter(|text| !text.is_empty());
        let duration = duration.map(|text| units::parse_duration(text).map_err(|e| format!("duration: {e}")));
        let placed = placement(&self.cpus, &self.queue_map, ports, self.rx_queues, allowed)?;
        let (idle, active) = (timeout("idle", &self.idle)?, timeout("active", &self.active)?);
        if idle > active {
            return Err(Failure::usage(format!(
                "idle {}: must not be longer than the active timeout, {}",
                self.idle, self.active
            )));
        }
        let polled = if self.queue_map.is_empty() && self.rx_queues == 1 {
            // Both ways of a conversation are counted by one lcore.
            by_pair(&placed, ports)?
        } else {
            placed.polled
        };
        let token = self.token()?;
        let sinks = self.ipfix.iter().map(|text| sinks::collector(text));
        let sinks = sinks.chain(self.json.iter().map(|text| sinks::file(text))).collect::<Result<Vec<_>, _>>()?;
        let sinks = sinks::once_each(sinks)?;
        let listen = address("listen", &self.listen)?;
        let metrics = address("metrics", &self.metrics)?;
        for (what, address) in [("listen", listen), ("metrics", metrics)] {
            if let Some(open) = address.filter(|a| !a.ip().to_canonical().is_loopback() && token.is_none()) {
                return Err(Failure::usage(format!(
                    "{what} {open}: whoever reaches it reads everything: give a --token-file, or an address of loopback"
                )));
            }
        }
        if self.tls_cert.as_os_str().is_empty() != self.tls_key.as_os_str().is_empty() {
            return Err(Failure::usage("tls_cert and tls_key: both or neither"));
        }
        if self.vxlan_port == 0 {
            return Err(Failure::usage("vxlan_port 0: must be 1 to 65535"));
        }
        Ok(Settings {
            sinks,
            cpus: placed.cpus,
            polled,
            flows: flows(&self.flows)?,
            idle,
            active,
            listen,
            metrics,
            token,
            tx: self.tx.parse().map_err(Failure::usage)?,
            duration: duration.transpose().map_err(Failure::usage)?,
            config: self,
        })
    }

    fn token(&self) -> Result<Option<String>, Failure> {
        let asked = !self.token_file.as_os_str().is_empty();
        Ok(asked.then(|| token_from_file(&self.token_file)).transpose()?)
    }
}

impl Settings {
    /// What the loops are made of.
    pub fn spec(&self) -> LogSpec {
        let layer = |layer| match layer {
            Layer::Inner => decode::Layer::Inner,
            Layer::Outer => decode::Layer::Outer,
        };
        let full = match self.config.full {
            Full::Refuse => table::TableFull::DropNew,
            Full::Evict => table::TableFull::Evict,
        };
        LogSpec {
            table: TableSpec {
                idle: self.idle,
                active: self.active,
                full,
                biflow: self.joined(),
                ..TableSpec::new(self.flows)
            },
            decode: DecodeSpec {
                mpls: layer(self.config.mpls),
                vxlan: layer(self.config.vxlan),
                vxlan_port: self.config.vxlan_port,
                distinguish: self.distinguish(),
                biflow: self.joined(),
            },
            reflect: self.config.reflect,
            settings: dataplane::Settings {
                tx_policy: self.tx,
                node_clocks: !self.config.no_clocks,
                node_sample: NODE_SAMPLE,
                ..dataplane::Settings::default()
            },
        }
    }

    /// Memory and descriptors. The CPUs are `cpus`.
    pub fn machine(&self) -> MachineOptions {
        let Config { memory, memory_mib, descriptors, .. } = self.config;
        MachineOptions { tester_cpu: None, dut_cpu: None, memory, memory_mib, descriptors }
    }

    /// Whether both ways are one flow.
    pub fn joined(&self) -> bool {
        self.config.directions == Directions::Joined
    }

    /// What tells flows apart.
    pub fn distinguish(&self) -> flow::Distinguish {
        match self.config.distinguish {
            Distinguish::None => flow::Distinguish::None,
            Distinguish::Vlan => flow::Distinguish::Vlan,
            Distinguish::Vni => flow::Distinguish::Vni,
            Distinguish::Label => flow::Distinguish::Label,
        }
    }

    /// Whether the two ways of a conversation may meet different lcores though they are to be one flow.
    pub fn splits_conversations(&self) -> bool {
        self.joined() && self.config.ports.len() > 1 && self.config.rx_queues > 1 && self.cpus.len() > 1
    }
}

/// Pairs of ports in turn over the lcores.
fn by_pair(placed: &Placement, ports: usize) -> Result<Vec<Polled>, Failure> {
    let (lcores, pairs) = (placed.cpus.len(), ports.div_ceil(2));
    if lcores > pairs {
        return Err(Failure::usage(format!(
            "{lcores} CPUs for {pairs} pairs of ports with one queue each: fewer --cpus, or more --rx-queues on a NIC \
             whose RSS keeps flows together"
        )));
    }
    Ok((0..ports).map(|port| Polled { port, queue: 0, lcore: port / 2 % lcores }).collect())
}

fn timeout(name: &str, text: &str) -> Result<Duration, Failure> {
    let time = units::parse_duration(text).map_err(|e| Failure::usage(format!("{name}: {e}")))?;
    let legal = Duration::from_secs(1)..=Duration::from_secs(24 * 3600);
    if legal.contains(&time) {
        Ok(time)
    } else {
        Err(Failure::usage(format!("{name} {text}: must be 1s to 24h")))
    }
}

fn address(name: &str, text: &str) -> Result<Option<SocketAddr>, Failure> {
    if matches!(text, "off" | "") {
        return Ok(None);
    }
    let found = text.to_socket_addrs().ok().and_then(|mut all| all.next());
    let form = || Failure::usage(format!("{name} {text:?}: must be ADDRESS:PORT, such as {LISTEN}, or off"));
    found.map(Some).ok_or_else(form)
}

/// `65536`, `500k`, `4M`: rounded up to a power of two.
fn flows(text: &str) -> Result<usize, Failure> {
    let (digits, unit) = match text.trim().split_at_checked(text.trim().len().saturating_sub(1)) {
        Some((digits, "k")) => (digits, 1_000.0),
        Some((digits, "M")) => (digits, 1_000_000.0),
        _ => (text.trim(), 1.0),
    };
    let count = digits.parse::<f64>().ok().map(|n| (n * unit).round()).filter(|n| n.is_finite() && *n >= 0.0);
    match count.map(|n| n as u64) {
        Some(n) if FLOWS.contains(&n) => Ok(n.next_power_of_two() as usize),
        _ => Err(Failure::usage(format!("flows {text}: must be 1k to 16M (at most {}), for each lcore", FLOWS.end()))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flows_are_rounded_up_and_bounded() {
        for (text, want) in [("1k", 1024), ("1M", 1 << 20), ("16M", 1 << 24), ("65536", 65536), ("1.5k", 2048)] {
            assert_eq!(flows(text).unwrap(), want, "{text}");
        }
        for bad in ["", "k", "999", "17M", "-5", "nan", "1e99", "5x", "16777217"] {
            assert!(flows(bad).unwrap_err().text.contains("1k to 16M"), "{bad}");
        }
    }

    #[test]
    fn a_pair_of_ports_stays_on_one_lcore() {
        let placed = Placement { cpus: vec![0, 1], polled: Vec::new() };
        let lcores: Vec<_> = by_pair(&placed, 6).unwrap().iter().map(|p| p.lcore).collect();
        assert_eq!(lcores, [0, 0, 1, 1, 0, 0]);
        assert!(by_pair(&placed, 2).unwrap_err().text.contains("--rx-queues"));
    }

    #[test]
    fn the_help_names_every_default() {
        let command = <crate::cli::Cli as clap::CommandFactory>::command();
        let flowlog = command.find_subcommand("flowlog").unwrap();
        let defaults = toml::Table::try_from(Config::default()).unwrap();
        for (key, value) in defaults {
            let text = match value {
                toml::Value::String(text) if !text.is_empty() => text,
                toml::Value::Integer(n) => n.to_string(),
                _ => continue,
            };
            let help = flowlog.get_arguments().find(|a| a.get_id() == &key).unwrap().get_help().unwrap().to_string();
            assert!(help.ends_with(&format!("Default: {text}")), "{key}: {help}");
        }
        for name in ["flowlog", "flows"] {
            let text = command.find_subcommand(name).unwrap().get_after_help().unwrap().to_string();
            assert!(text.contains("Exit codes:") && text.lines().all(|line| line.len() < 80), "{text}");
        }
    }

    #[test]
    fn addresses_are_checked() {
        assert_eq!(address("listen", "off").unwrap(), None);
        assert!(address("listen", "127.0.0.1:0").unwrap().is_some());
        assert!(address("listen", "127.0.0.1").unwrap_err().text.contains("ADDRESS:PORT"));
    }
}
