//! Where records are exported to, and how.

use std::{fmt, path::PathBuf, str::FromStr, time::Duration};

use net::{client_tls, TlsSpec, TlsTrust};

use crate::{
    ipfix::{Port, Version},
    Distinguish, Sampling,
};

/// Where records go, and how.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExportSpec {
    /// Sinks; each gets every record.
    pub sinks: Vec<SinkSpec>,
    /// Observation domain ID of IPFIX messages.
    pub domain: u32,
    /// Whether records are biflows, with two directions (RFC 5103).
    pub biflow: bool,
    /// What [`Key::scope`](crate::Key) is.
    pub distinguish: Distinguish,
    /// The ports of the logger, as collectors see them.
    pub ports: Vec<Port>,
    /// Which packets the records are of; none: of all.
    pub sampling: Option<Sampling>,
    /// Whether records have [`Details`](crate::Details).
    pub details: bool,
    /// Capacity of the queue of each sink in records (about 190 bytes each, allocated when needed).
    pub queue: usize,
    /// Largest UDP message in bytes, 1200 to 65507, without IP and UDP headers. Messages above the MTU of the path are
    /// fragmented. None: 1400, and 7680 to a loopback address.
    pub message_bytes: Option<usize>,
    /// Templates (UDP) and statistics are sent this often.
    pub refresh: Duration,
    /// Templates (UDP) are also sent after this number of messages.
    pub refresh_messages: u64,
}

impl Default for ExportSpec {
    fn default() -> Self {
        Self {
            sinks: Vec::new(),
            domain: 0,
            biflow: false,
            distinguish: Distinguish::None,
            ports: Vec::new(),
            sampling: None,
            details: false,
            queue: 1 << 18,
            message_bytes: None,
            refresh: Duration::from_secs(60),
            refresh_messages: 4096,
        }
    }
}

/// A place that records are exported to: `udp:HOST:PORT`, `netflow9:HOST:PORT`, `tcp:HOST:PORT`, `sctp:HOST:PORT`,
/// `json:FILE`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SinkSpec {
    /// IPFIX or NetFlow v9 over UDP.
    Udp(UdpSpec),
    /// IPFIX over TCP, TLS or SCTP.
    Tcp(TcpSpec),
    /// JSON lines in a file.
    Json(FileSpec),
}

/// A collector of IPFIX or NetFlow v9 over UDP.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UdpSpec {
    /// The version of the messages.
    pub version: Version,
    /// `HOST:PORT`, looked up whenever the session begins.
    pub address: String,
    /// Most records a second. A collector that gets more loses records without a count. None: no limit.
    pub records_per_s: Option<u64>,
    /// Instead of [`ExportSpec::message_bytes`].
    pub message_bytes: Option<usize>,
    /// Instead of [`ExportSpec::refresh`].
    pub refresh: Option<Duration>,
    /// Whether the names of interfaces are sent. nfcapd (1.7.1) does not count these records, and reports a sequence failure
    /// after them.
    pub names: bool,
    /// Whether TCP flags are the low eight in one byte: nfacctd (1.7.7) reads the first byte only. NetFlow v9 always has it.
    pub short_flags: bool,
}

impl UdpSpec {
    /// What a collector with default settings takes: its socket buffer holds about 1500 records (2200 in the large messages of
    /// loopback), and an interruption of a few milliseconds must not fill it (docs/flowlog.md).
    pub const RECORDS_PER_S: u64 = 200_000;

    /// Paced at [`Self::RECORDS_PER_S`].
    pub fn new(address: impl Into<String>) -> Self {
        let records_per_s = Some(Self::RECORDS_PER_S);
        Self {
            version: Version::Ipfix,
            address: address.into(),
            records_per_s,
            message_bytes: None,
            refresh: None,
            names: true,
            short_flags: false,
        }
    }
}

/// A collector of IPFIX over TCP or SCTP.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TcpSpec {
    /// `HOST:PORT`, looked up whenever the session begins.
    pub address: String,
    /// What carries the session.
    pub transport: Transport,
    /// Whom to trust, for TLS (RFC 7011 11), over TCP; none: in clear.
    pub tls: Option<TlsSinkSpec>,
}

/// What carries a session that has a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Transport {
    /// TCP (RFC 7011 10.4).
    #[default]
    Tcp,
    /// SCTP (RFC 7011 10.2): each message is one of SCTP, all in one stream and in order.
    Sctp,
}

/// TLS towards a collector.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TlsSinkSpec {
    /// The authority that the collector's certificate must be of.
    pub trust: TlsTrust,
    /// Our own certificate, for collectors that ask for one (RFC 7011 11.3).
    pub own: Option<TlsSpec>,
}

impl TcpSpec {
    /// In clear.
    pub fn new(address: impl Into<String>) -> Self {
        Self { address: address.into(), transport: Transport::Tcp, tls: None }
    }

    /// Checks the files of TLS. Errors when one cannot be read, or holds something else.
    pub fn check(&self) -> Result<(), net::TrustError> {
        self.tls.as_ref().map_or(Ok(()), |tls| client_tls(&tls.trust, tls.own.as_ref(), &self.address).map(drop))
    }
}

/// A file of JSON lines: one [`Record`](crate::Record) a line.
///
/// Lines are appended whole, many in one write, and a line counts when its newline is there. After a kill or a crash the
/// last line may lack it; it is cut off when the file is opened again. Rotation renames `FILE` to `FILE.1`, that to
/// `FILE.2` and so on: those are never written again. A kill between two renames leaves a number free, nothing lost.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileSpec {
    /// The file being written. Its directory has to be there.
    pub path: PathBuf,
    /// Rotated before it becomes larger than this, in bytes.
    pub max_bytes: u64,
    /// Rotated when it is this old, if something is in it. The age counts from when we opened it.
    pub max_age: Duration,
    /// Number of rotated files kept; the oldest is removed. With 0, a full file is removed.
    pub keep: u32,
}

impl FileSpec {
    /// At most 256 MiB and a day per file; eight rotated files are kept.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into(), max_bytes: 256 << 20, max_age: Duration::from_secs(24 * 3600), keep: 8 }
    }

    /// Checks that records can be appended to the file, if it exists. Changes nothing. Errors when it does not hold JSON lines
    /// or another process writes to it.
    pub fn check(&self) -> std::io::Result<()> {
        super::json_file::check(&self.path)
    }
}

impl fmt::Display for SinkSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Udp(UdpSpec { version: Version::NetFlow9, address, .. }) => write!(f, "netflow9:{address}"),
            Self::Udp(to) => write!(f, "udp:{}", to.address),
            Self::Tcp(to) => {
                let kind = match to.transport {
                    Transport::Sctp => "sctp",
                    Transport::Tcp if to.tls.is_some() => "tls",
                    Transport::Tcp => "tcp",
                };
                write!(f, "{kind}:{}", to.address)
            }
            Self::Json(file) => write!(f, "json:{}", file.path.display()),
        }
    }
}

/// The text is not a sink.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("export \"{0}\": must be udp:HOST:PORT, netflow9:HOST:PORT, tcp:HOST:PORT, sctp:HOST:PORT or json:FILE")]
pub struct SinkError(String);

impl FromStr for SinkSpec {
    type Err = SinkError;

    fn from_str(text: &str) -> Result<Self, SinkError> {
        let sink = match text.split_once(':') {
            Some(("udp", to)) if address(to) => Self::Udp(UdpSpec::new(to)),
            Some(("netflow9", to)) if address(to) => {
                Self::Udp(UdpSpec { version: Version::NetFlow9, ..UdpSpec::new(to) })
            }
            Some(("tcp", to)) if address(to) => Self::Tcp(TcpSpec::new(to)),
            Some(("sctp", to)) if address(to) => Self::Tcp(TcpSpec { transport: Transport::Sctp, ..TcpSpec::new(to) }),
            Some(("json", path)) if !path.is_empty() => Self::Json(FileSpec::new(path)),
            _ => return Err(SinkError(text.into())),
        };
        Ok(sink)
    }
}

/// Whether the text looks like `HOST:PORT`, with an IPv6 address in brackets.
fn address(text: &str) -> bool {
    let Some((host, port)) = text.rsplit_once(':') else { return false };
    let bare = host.contains(':') && !(host.starts_with('[') && host.ends_with(']'));
    !host.is_empty() && !bare && port.parse::<u16>().is_ok_and(|port| port != 0)
}
