//! The configuration of `flowlog` as a file has it.

use std::path::PathBuf;

use dataplane::TxPolicy;
use failure::Failure;
use flow::table::TableFull;
use rig::MemoryChoice;
use serde::{de, Deserialize, Deserializer, Serialize};

use super::choices::{Biflow, Distinguish, Layer};
use crate::config::RenamedKey;

/// Where clients read flows by default.
pub(super) const LISTEN: &str = "127.0.0.1:9395";

/// Keys of older files.
pub const RENAMED_KEYS: &[RenamedKey] = &[
    RenamedKey { old: "directions", new: "biflow", values: &[("joined", "on"), ("apart", "off")] },
    RenamedKey { old: "full", new: "table_full", values: &[("refuse", "drop-new"), ("evict", "evict")] },
];

/// The configuration as written.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// The ports, counted from 0; frames pass between those of a pair.
    pub ports: Vec<String>,
    /// Whether a port without a second sends back what it receives.
    pub reflect: bool,
    /// Whether no frame passes from port to port.
    pub receive_only: bool,
    /// Whether the run ends when every capture has been read.
    pub once: bool,
    /// How long to run; empty: until stopped.
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
    /// What happens to a new flow when its table has no room.
    pub table_full: TableFull,
    /// Whether both directions of a conversation are one flow (RFC 5103).
    pub biflow: Biflow,
    /// The packet inside MPLS labels, or none.
    pub mpls: Layer,
    /// The frame inside VXLAN, or the tunnel.
    pub vxlan: Layer,
    /// UDP port of VXLAN.
    pub vxlan_port: u16,
    /// The packet inside GRE, or the tunnel.
    pub gre: Layer,
    /// The packet inside IPv4 or IPv6, or the tunnel.
    pub ipip: Layer,
    /// The packet inside GTP-U, or the tunnel.
    pub gtpu: Layer,
    /// What distinguishes flows besides their 5-tuple.
    pub distinguish: Distinguish,
    /// Which frames are counted in flows; empty: all.
    pub sample: String,
    /// Whether records have details of TTL, lengths, DSCP, the link layer and TCP.
    pub details: bool,
    /// Where clients read flows; `off`: nowhere.
    pub listen: String,
    /// File of the token; empty: clients need none.
    pub token_file: PathBuf,
    /// Certificate chain; empty: no TLS.
    pub tls_cert: PathBuf,
    /// Private key.
    pub tls_key: PathBuf,
    /// Collectors of IPFIX.
    pub ipfix: Vec<String>,
    /// Collectors of NetFlow v9.
    pub netflow9: Vec<String>,
    /// Observation domain of IPFIX; absent: derived from the name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub domain: Option<u32>,
    /// Files of ended flows.
    pub json: Vec<String>,
    /// Where Prometheus reads; `off`: nowhere.
    pub metrics: String,
    /// CPUs that poll; empty: the last but one allowed.
    pub cpus: Vec<u32>,
    /// Receive queues of each port.
    pub rx_queues: u16,
    /// `PORT:QUEUE=CPU` for each queue; empty: in turn.
    pub queue_map: Vec<String>,
    /// When frames leave.
    pub tx: String,
    /// Largest IP packet in bytes; absent: of each interface.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mtu: Option<u16>,
    /// Where packets live.
    pub memory: MemoryChoice,
    /// Memory for packets in MiB.
    pub memory_mib: u32,
    /// Descriptors of each queue.
    pub descriptors: u32,
    /// Whether nodes count without reading the clock.
    pub no_clocks: bool,
    /// Whether there is no live view.
    pub quiet: bool,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            ports: Vec::new(),
            reflect: false,
            receive_only: false,
            once: false,
            duration: String::new(),
            name: String::new(),
            flows: "1M".into(),
            idle: "30s".into(),
            active: "5m".into(),
            table_full: TableFull::DropNew,
            biflow: Biflow::Auto,
            mpls: Layer::Inner,
            vxlan: Layer::Outer,
            vxlan_port: 4789,
            gre: Layer::Outer,
            ipip: Layer::Outer,
            gtpu: Layer::Outer,
            distinguish: Distinguish::None,
            sample: String::new(),
            details: false,
            listen: LISTEN.into(),
            token_file: PathBuf::new(),
            tls_cert: PathBuf::new(),
            tls_key: PathBuf::new(),
            ipfix: Vec::new(),
            netflow9: Vec::new(),
            domain: None,
            json: Vec::new(),
            metrics: "off".into(),
            cpus: Vec::new(),
            rx_queues: 1,
            queue_map: Vec::new(),
            tx: TxPolicy::default().to_string(),
            mtu: None,
            memory: MemoryChoice::Auto,
            memory_mib: 256,
            descriptors: 2048,
            no_clocks: false,
            quiet: false,
        }
    }
}

/// Reads a text; the error says what it must be.
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

impl Config {
    /// As a file would hold it, with every default.
    ///
    /// # Errors
    ///
    /// (failed) for a value that TOML cannot hold.
    pub fn to_toml(&self) -> Result<String, Failure> {
        toml::to_string(self).map_err(Failure::failed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::parse;

    #[test]
    fn a_printed_configuration_is_read_back() {
        let config = Config::default();
        assert_eq!(parse::<Config>(&config.to_toml().unwrap(), RENAMED_KEYS).unwrap(), config);
    }

    #[test]
    fn old_keys_are_refused_with_the_new_ones() {
        let refused = |text: &str| parse::<Config>(text, RENAMED_KEYS).unwrap_err();
        insta::assert_snapshot!(refused("idle = \"3s\"\ndirections = \"apart\""), @r#"line 2: directions = "apart" is now biflow = "off""#);
        insta::assert_snapshot!(refused("full = \"refuse\""), @r#"line 1: full = "refuse" is now table_full = "drop-new""#);
        insta::assert_snapshot!(refused("table_full = \"panic\""), @"line 1: table_full: unknown variant `panic`, expected `drop-new` or `evict`");
        insta::assert_snapshot!(refused("biflow = true"), @r#"line 1: biflow: invalid type: boolean `true`, expected "auto", "on" or "off""#);
        insta::assert_snapshot!(refused("idle = 30"), @r#"line 1: idle: invalid type: integer `30`, expected a time in quotes, such as "30s""#);
    }
}
