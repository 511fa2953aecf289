//! A checked configuration of `flowlog`: what is run.

use std::{
    net::{SocketAddr, ToSocketAddrs},
    path::Path,
    time::Duration,
};

use dataplane::TxPolicy;
use dpdk::{EthDriver, PortSpec};
use failure::Failure;
use flow::{decode::DecodeSpec, export::SinkSpec, ipfix, serve::token_from_file, table::TableSpec, Sampling};
use rig::{
    device::{LogSpec, Polled, NODE_SAMPLE},
    MachineOptions,
};

use super::{
    choices::Biflow,
    config::{Config, LISTEN},
    interfaces::interfaces,
    sinks,
};
use crate::{
    ports::parse_ports,
    queues::{count, place_queues, QueuePlacement},
};

/// Fewest and most flows of an lcore.
const FLOWS: std::ops::RangeInclusive<u64> = 1_000..=1 << 24;
/// Most ports: the number of a port is a byte of the key.
const MAX_PORTS: usize = 64;

/// What is run, checked.
#[derive(Debug, Clone)]
pub struct FlowlogSpec {
    /// As written, with every default.
    pub config: Config,
    /// The ports.
    pub ports: Vec<PortSpec>,
    /// CPUs that poll; the first lcore's first.
    pub cpus: Vec<u32>,
    /// Which lcore polls which queue.
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
    /// Which frames are counted in flows; `None`: all.
    pub sampling: Option<Sampling>,
    /// The token that clients must send.
    pub token: Option<String>,
    /// When frames leave.
    pub tx: TxPolicy,
    /// How long to run; `None`: until stopped.
    pub duration: Option<Duration>,
    /// Whether the run fails when frame buffers are lost.
    pub check_pools: bool,
}

impl FlowlogSpec {
    /// Checks everything that can be wrong before a port is opened. `allowed` are the CPUs that this process may use.
    ///
    /// # Errors
    ///
    /// (usage) for a value that is not legal, and for a token file that cannot be read.
    pub fn check(config: Config, check_pools: bool, allowed: &[u32]) -> Result<Self, Failure> {
        let ports = config.ports.len();
        if ports == 0 || ports > MAX_PORTS {
            return Err(Failure::usage(format!(
                "{} --port given: must be one that only receives, or pairs between which frames pass, up to {MAX_PORTS}",
                count(ports)
            )));
        }
        if let Some(mtu) = config.mtu.filter(|mtu| !(576..=9600).contains(mtu)) {
            return Err(Failure::usage(format!("mtu {mtu}: must be 576 to 9600 bytes of IP packet")));
        }
        if config.receive_only && config.reflect {
            return Err(Failure::usage("--receive-only sends nothing, and --reflect sends back: give one of them"));
        }
        if !(1..=64).contains(&config.rx_queues) {
            return Err(Failure::usage(format!("rx_queues {}: must be 1 to 64", config.rx_queues)));
        }
        for (key, value, legal) in
            [("memory_mib", config.memory_mib, 64..=65_536), ("descriptors", config.descriptors, 64..=32_768)]
        {
            if !legal.contains(&value) {
                return Err(Failure::usage(format!("{key} {value}: must be {} to {}", legal.start(), legal.end())));
            }
        }
        rig::check_descriptors(config.descriptors)?;
        let duration = Some(&config.duration).filter(|text| !text.is_empty());
        let duration = duration.map(|text| units::parse_duration(text).map_err(|e| format!("duration: {e}")));
        let placed = place_queues(&config.cpus, &config.queue_map, ports, config.rx_queues, allowed)?;
        let (idle, active) = (timeout("idle", &config.idle)?, timeout("active", &config.active)?);
        if idle > active {
            return Err(Failure::usage(format!(
                "idle {}: must not be longer than the active timeout, {}",
                config.idle, config.active
            )));
        }
        let polled = if config.queue_map.is_empty() && config.rx_queues == 1 {
            // Both ways of a conversation are counted by one lcore.
            by_pair(&placed, ports)?
        } else {
            placed.polled
        };
        let token = token(&config.token_file)?;
        let sinks = config.ipfix.iter().map(|text| sinks::collector(text));
        let sinks = sinks.chain(config.netflow9.iter().map(|text| sinks::netflow9(text)));
        let sinks = sinks.chain(config.json.iter().map(|text| sinks::file(text))).collect::<Result<Vec<_>, _>>()?;
        let sinks = sinks::once_each(sinks)?;
        sinks::check_transports(&sinks)?;
        let listen = address("listen", &config.listen)?;
        let metrics = address("metrics", &config.metrics)?;
        for (what, address) in [("listen", listen), ("metrics", metrics)] {
            if let Some(open) = address.filter(|a| !a.ip().to_canonical().is_loopback() && token.is_none()) {
                return Err(Failure::usage(format!(
                    "{what} {open}: anyone who reaches this address reads everything: give a --token-file, or a loopback address"
                )));
            }
        }
        if config.tls_cert.as_os_str().is_empty() != config.tls_key.as_os_str().is_empty() {
            return Err(Failure::usage("tls_cert and tls_key: give both or neither"));
        }
        if config.vxlan_port == 0 {
            return Err(Failure::usage("vxlan_port 0: must be 1 to 65535"));
        }
        if config.biflow == Biflow::On && !config.netflow9.is_empty() {
            return Err(Failure::usage(
                "biflow on: NetFlow v9 has no records of two directions: send IPFIX (--ipfix), or leave --biflow out",
            ));
        }
        let sampling = Some(config.sample.as_str()).filter(|text| !text.is_empty());
        let sampling = sampling.map(|text| text.parse().map_err(|e| Failure::usage(format!("sample: {e}"))));
        Ok(Self {
            sampling: sampling.transpose()?,
            sinks,
            cpus: placed.cpus,
            polled,
            flows: flows(&config.flows)?,
            idle,
            active,
            listen,
            metrics,
            token,
            tx: config.tx.parse().map_err(Failure::usage)?,
            duration: duration.transpose().map_err(Failure::usage)?,
            check_pools,
            ports: port_specs(&config)?,
            config,
        })
    }

    /// The loops and their tables.
    pub fn logger(&self) -> LogSpec {
        LogSpec {
            table: TableSpec {
                idle: self.idle,
                active: self.active,
                full: self.config.table_full,
                biflow: self.is_biflow(),
                details: self.config.details,
                ..TableSpec::new(self.flows)
            },
            decode: DecodeSpec {
                mpls: self.config.mpls.into(),
                vxlan: self.config.vxlan.into(),
                vxlan_port: self.config.vxlan_port,
                gre: self.config.gre.into(),
                ipip: self.config.ipip.into(),
                gtpu: self.config.gtpu.into(),
                sampling: self.sampling,
                distinguish: self.config.distinguish.into(),
                biflow: self.is_biflow(),
                ports_apart: self.config.receive_only,
            },
            reflect: self.config.reflect,
            receive_only: self.config.receive_only,
            settings: dataplane::Settings {
                tx_policy: self.tx,
                node_clocks: !self.config.no_clocks,
                node_sample: NODE_SAMPLE,
                ..dataplane::Settings::default()
            },
        }
    }

    /// Memory and descriptors. The CPUs are in `cpus`.
    pub fn machine(&self) -> MachineOptions {
        let Config { memory, memory_mib, descriptors, .. } = self.config;
        MachineOptions { memory, memory_mib, descriptors, ..MachineOptions::default() }
    }

    /// Whether both directions of a conversation are one flow.
    pub fn is_biflow(&self) -> bool {
        let collectors = self.config.ipfix.len() + self.config.netflow9.len();
        match self.config.biflow {
            Biflow::Auto => collectors == 0,
            Biflow::On => true,
            Biflow::Off => false,
        }
    }

    /// Whether directions are apart only because records go to a collector.
    pub fn are_ways_apart(&self) -> bool {
        self.config.biflow == Biflow::Auto && !self.is_biflow()
    }

    /// The port at which frames leave that came in at this one.
    pub fn egress(&self, port: usize) -> Option<usize> {
        let Config { receive_only, reflect, .. } = self.config;
        dataplane::flowlog::egress(port, self.ports.len(), reflect).filter(|_| !receive_only)
    }

    /// The ports as collectors see them.
    pub fn interfaces(&self) -> Vec<ipfix::Port> {
        interfaces(&self.config.ports, &self.ports, |port| self.egress(port))
    }

    /// Whether the directions of a biflow may be polled by different lcores.
    pub fn may_split_biflows(&self) -> bool {
        self.is_biflow() && self.config.ports.len() > 1 && self.config.rx_queues > 1 && self.cpus.len() > 1
    }
}

/// Pairs of ports in turn over the lcores.
fn by_pair(placed: &QueuePlacement, ports: usize) -> Result<Vec<Polled>, Failure> {
    let (lcores, pairs) = (placed.cpus.len(), ports.div_ceil(2));
    if lcores > pairs {
        return Err(Failure::usage(format!(
            "{lcores} CPUs for {pairs} pairs of ports with one queue each: give fewer --cpus, or more --rx-queues on a NIC \
             whose RSS keeps flows together"
        )));
    }
    Ok((0..ports).map(|port| Polled { port, queue: 0, lcore: port / 2 % lcores }).collect())
}

fn timeout(name: &str, text: &str) -> Result<Duration, Failure> {
    let legal = Duration::from_secs(1)..=Duration::from_secs(24 * 3600);
    let time = units::parse_duration(text).ok().filter(|time| legal.contains(time));
    time.ok_or_else(|| Failure::usage(format!("{name} {text:?}: must be 1s to 24h, such as 30s or 5m")))
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

/// What clients must send, from its file; an empty path: nothing.
fn token(file: &Path) -> Result<Option<String>, Failure> {
    let asked = !file.as_os_str().is_empty();
    Ok(asked.then(|| token_from_file(file)).transpose()?)
}

/// The ports. With `once`, one of them must read a capture. With `receive_only`, interfaces keep their frames where the user
/// names no driver.
fn port_specs(config: &Config) -> Result<Vec<PortSpec>, Failure> {
    let mut specs = parse_ports(&config.ports)?;
    if config.receive_only {
        for spec in &mut specs {
            if let PortSpec::Eth { driver: driver @ EthDriver::Auto, .. } = spec {
                *driver = EthDriver::AfPacket;
            }
        }
    }
    if config.once && !specs.iter().any(reads_capture) {
        return Err(Failure::usage("--once: no port reads a file; pcap:FILE and pcap:rx=FILE,tx=FILE do"));
    }
    Ok(specs)
}

pub(super) fn reads_capture(spec: &PortSpec) -> bool {
    matches!(spec, PortSpec::Pcap { rx: Some(_), .. })
}

#[cfg(test)]
mod tests {
    use failure::Exit;

    use super::*;

    #[test]
    fn flows_are_rounded_up_and_bounded() {
        for (text, want) in [("1k", 1024), ("1M", 1 << 20), ("16M", 1 << 24), ("65536", 65536), ("1.5k", 2048)] {
            assert_eq!(flows(text).unwrap(), want, "{text}");
        }
        for bad in ["", "k", "999", "17M", "-5", "nan", "1e99", "5x", "16777217"] {
            assert_eq!(flows(bad).unwrap_err().exit, Exit::Usage, "{bad}");
        }
        insta::assert_snapshot!(flows("17M").unwrap_err(), @"flows 17M: must be 1k to 16M (at most 16777216), for each lcore");
    }

    #[test]
    fn timeouts_are_bounded() {
        for (text, seconds) in [("1s", 1), ("24h", 86_400)] {
            assert_eq!(timeout("idle", text).unwrap(), Duration::from_secs(seconds), "{text}");
        }
        for bad in ["", "0", "0.9s", "25h", "40d", "soon"] {
            assert_eq!(timeout("idle", bad).unwrap_err().exit, Exit::Usage, "{bad}");
        }
        insta::assert_snapshot!(timeout("idle", "0").unwrap_err(), @r#"idle "0": must be 1s to 24h, such as 30s or 5m"#);
    }

    #[test]
    fn a_pair_of_ports_stays_on_one_lcore() {
        let placed = QueuePlacement { cpus: vec![0, 1], polled: Vec::new() };
        let lcores: Vec<_> = by_pair(&placed, 6).unwrap().iter().map(|p| p.lcore).collect();
        assert_eq!(lcores, [0, 0, 1, 1, 0, 0]);
        insta::assert_snapshot!(by_pair(&placed, 2).unwrap_err(), @"2 CPUs for 1 pairs of ports with one queue each: give fewer --cpus, or more --rx-queues on a NIC whose RSS keeps flows together");
    }

    #[test]
    fn addresses_are_checked() {
        assert_eq!(address("listen", "off").unwrap(), None);
        assert!(address("listen", "127.0.0.1:0").unwrap().is_some());
        insta::assert_snapshot!(address("listen", "127.0.0.1").unwrap_err(), @r#"listen "127.0.0.1": must be ADDRESS:PORT, such as 127.0.0.1:9395, or off"#);
    }
}
