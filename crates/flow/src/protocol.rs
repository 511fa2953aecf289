//! The read protocol: newline-delimited JSON over TCP. One request a line, one or more answers a line each.
//!
//! An answer to request `id` carries that `id`. The server sends the first line: a [`Hello`], or a
//! [`What::Error`] before it closes the connection. Unknown fields in requests are errors. Clients ignore unknown fields.

use std::collections::BTreeMap;

use serde::{de::Error as _, Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};

use crate::Record;

/// The value of [`Hello::server`].
pub const SERVER: &str = "linerate-flowlog";
/// The protocol's version, [`Hello::version`].
pub const VERSION: u32 = 2;
/// Longest request line, in bytes, its end included.
pub const MAX_REQUEST: usize = 64 << 10;
/// Most flows in a [`Page`].
pub const MAX_LIMIT: usize = 1000;
/// Longest time between two of a subscription, in seconds.
pub const MAX_EVERY_S: u32 = 3600;

/// The first line a server sends.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Hello {
    /// [`SERVER`].
    pub server: String,
    /// [`VERSION`].
    pub version: u32,
    /// Name of the logger (`--name`).
    pub name: String,
    /// Whether [`Ask::Auth`] has to come first.
    pub auth: bool,
}

/// A line that a client sends.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Request {
    /// Chosen by the client, repeated in the answer; zero when absent.
    pub id: u64,
    /// The request.
    #[serde(flatten)]
    pub ask: Ask,
}

// By hand, because derived code accepts unknown fields next to flattened fields and plain variants.
impl<'de> Deserialize<'de> for Request {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let mut map = Map::deserialize(from)?;
        let id = match map.remove("id") {
            None => 0,
            Some(id) => {
                id.as_u64().ok_or_else(|| D::Error::custom(format!("id {id}: must be a whole number from 0")))?
            }
        };
        let fields = map.len();
        let ask = Ask::deserialize(Value::Object(map)).map_err(D::Error::custom)?;
        if fields > 1 && matches!(ask, Ask::Totals | Ask::Unsubscribe) {
            return Err(D::Error::custom("totals and unsubscribe have no fields but `id`"));
        }
        Ok(Self { id, ask })
    }
}

/// The requests.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "ask", rename_all = "snake_case", deny_unknown_fields)]
pub enum Ask {
    /// Shows the token. The answer is [`What::Ok`].
    Auth {
        /// The token.
        token: String,
    },
    /// [`Totals`].
    Totals,
    /// A [`Page`] of flows in no particular order. A page may hold fewer flows than `limit`, even none, and still have a
    /// next one: only a part of the table is read for a page.
    Flows {
        /// [`Page::next`] of the page before; absent: from the start.
        #[serde(default)]
        cursor: Option<String>,
        /// Most flows in the page; at most 1,000.
        #[serde(default = "limit")]
        limit: usize,
        /// Only these.
        #[serde(default)]
        filter: Filter,
        /// Whether to fill in rates; they are zero otherwise.
        #[serde(default)]
        rates: bool,
    },
    /// A [`Page`] of the largest flows, largest first, with their rates. The answer takes up to one second plus
    /// the time to read the table; twice as long when no client has asked for some seconds.
    Top {
        /// What the flows are sorted by.
        #[serde(default)]
        by: By,
        /// Number of flows, at most 1,000.
        #[serde(default = "limit")]
        limit: usize,
        /// Only these.
        #[serde(default)]
        filter: Filter,
    },
    /// [`Totals`] and, when `top` is given, a [`Page`] of the largest flows, the first at once (the page as soon as rates
    /// are known) and then once every interval, until the connection ends or [`Ask::Unsubscribe`]. A connection has one
    /// subscription; a new one replaces it.
    Subscribe {
        /// Interval in seconds, 1 to 3600.
        #[serde(default = "second")]
        every_s: u32,
        /// Number of largest flows, at most 1,000.
        #[serde(default)]
        top: Option<usize>,
        /// What the flows are sorted by.
        #[serde(default)]
        by: By,
        /// Only these flows.
        #[serde(default)]
        filter: Filter,
    },
    /// Ends the subscription. The answer is [`What::Ok`].
    Unsubscribe,
}

fn limit() -> usize {
    100
}

fn second() -> u32 {
    1
}

/// What flows are sorted by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum By {
    /// Packets since its start.
    Packets,
    /// Bytes since its start.
    #[default]
    Bytes,
    /// Packets a second, over the last second.
    #[serde(rename = "packets_per_s")]
    PacketRate,
    /// Bits a second, over the last second.
    #[serde(rename = "bits_per_s")]
    BitRate,
}

/// Which flows; all given parts must match.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Filter {
    /// Source or destination in this prefix (`10.0.0.0/8`, `2001:db8::/32`, an address).
    pub prefix: Option<String>,
    /// Source or destination port.
    pub port: Option<u16>,
    /// IP protocol number.
    pub protocol: Option<u8>,
    /// Ingress port of the logger.
    pub ingress: Option<u8>,
}

/// A line that a server sends after the hello.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Answer {
    /// The `id` of the request; zero for a request that could not be read.
    pub id: u64,
    /// The answer.
    #[serde(flatten)]
    pub what: What,
}

/// The answers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum What {
    /// Counters.
    Totals(Totals),
    /// Flows.
    Page(Page),
    /// Done.
    Ok(bool),
    /// Why the request was refused: one line.
    Error(String),
}

/// Everything counted so far, at one instant.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Totals {
    /// Nanoseconds since the Unix epoch.
    #[serde(rename = "at_unix_ns")]
    pub at: u64,
    /// Seconds since the logger started.
    pub uptime_s: f64,
    /// Each interface.
    pub interfaces: Vec<Interface>,
    /// The table.
    pub table: TableTotals,
    /// Export, all collectors and files together.
    pub export: ExportTotals,
    /// Each of them.
    #[serde(default)]
    pub sinks: Vec<Sink>,
}

/// One interface (a port of the logger).
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Interface {
    /// Its number, as in [`Record::ingress`].
    pub port: u8,
    /// Its devargs or kernel name.
    pub name: String,
    /// The number of its interface in records for collectors: of the kernel where it has one, otherwise from 1.
    #[serde(default)]
    pub index: u32,
    /// Frames received, exact.
    pub packets: u64,
    /// Their bytes without FCS, exact.
    pub bytes: u64,
    /// Frames received that are not IP. With sampling this, the kinds, `malformed` and `cut` are of the sampled frames only.
    pub not_ip: u64,
    /// These frames by kind, without the kinds that did not come.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub not_ip_kinds: BTreeMap<String, u64>,
    /// Frames with an IP EtherType that cannot be read.
    pub malformed: u64,
    /// Frames of which the port gave only the beginning. Their bytes are those that their IP header says.
    #[serde(default)]
    pub cut: u64,
    /// Frames that the port dropped because its receive queue was full.
    pub missed: u64,
    /// Frames received that could not be transmitted.
    pub tx_dropped: u64,
    /// Packets a second over the last full second.
    #[serde(rename = "packets_per_s")]
    pub packet_rate: f64,
    /// Bits a second (layer 2 without FCS) over the last full second.
    #[serde(rename = "bits_per_s")]
    pub bit_rate: f64,
    /// Whether the link is up.
    pub up: bool,
}

/// The flow tables of all lcores together.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct TableTotals {
    /// Flows in it now.
    pub flows: u64,
    /// Flows that the table has room for.
    pub capacity: u64,
    /// Memory of the tables in bytes.
    #[serde(rename = "memory_bytes")]
    pub memory: u64,
    /// Flows begun since the start.
    pub created: u64,
    /// Flows ended since the start, by reason: idle, active, end of flow, forced, lack of resources.
    pub ended: [u64; 5],
    /// Packets of flows that were not recorded because the table was full (policy `drop-new`).
    pub refused_packets: u64,
    /// Flows evicted for others (policy `evict`).
    pub evicted: u64,
    /// New flows a second over the last full second.
    #[serde(rename = "created_per_s")]
    pub new_rate: f64,
}

/// What happened to the records of ended flows.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct ExportTotals {
    /// Given to export.
    pub records: u64,
    /// Sent or written.
    pub sent: u64,
    /// Lost: a queue was full, the collector down or slow, or the disk full.
    pub dropped: u64,
    /// Of those sent, how many may not have been read when a connection broke, and were not sent again yet.
    #[serde(default)]
    pub uncertain: u64,
    /// How many were sent again since, marked. They do not count twice in `sent`.
    #[serde(default)]
    pub resent: u64,
}

/// What happened to the records given to one collector or file.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Sink {
    /// Its text form: `udp:HOST:PORT`.
    pub name: String,
    /// Whether it takes records now, as far as is known.
    pub up: bool,
    /// Records in its queue.
    pub queued: u64,
    /// Its records.
    #[serde(flatten)]
    pub totals: ExportTotals,
}

/// A list of flows.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Page {
    /// The flows.
    pub flows: Vec<Row>,
    /// The cursor of the next page; none after the last.
    pub next: Option<String>,
    /// How many flows match in all; known for top lists only.
    pub matching: Option<u64>,
}

/// One flow, with its rates.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// What was counted of it.
    #[serde(flatten)]
    pub record: Record,
    /// Packets a second, both ways, between the last two walks of the table: about a second, longer for tables of
    /// millions of flows.
    #[serde(rename = "packets_per_s")]
    pub packet_rate: f64,
    /// Bits a second (layer 2 without FCS), both ways, over the same time.
    #[serde(rename = "bits_per_s")]
    pub bit_rate: f64,
}
