//! Text forms of ports.

use std::{
    fmt,
    path::{Path, PathBuf},
    str::FromStr,
};

use host::{PciDevice, Roots};

use crate::DpdkError;

/// A port as the user writes it.
///
/// | written | is |
/// |---|---|
/// | `0000:37:00.0[,devargs]` | a NIC bound to vfio-pci or uio_pci_generic |
/// | `eth:IFACE[,driver=af_xdp\|af_packet][,…]` | a kernel interface over AF_XDP, else AF_PACKET |
/// | `memif:PATH[,role=server\|client][,id=N][,…]` | shared memory to another process; default: client |
/// | `vhost:PATH[,client=1][,queues=N][,…]` | the switch side of vhost-user; default: server |
/// | `virtio:PATH[,server=1][,queues=N][,queue_size=N][,…]` | the guest side of vhost-user; default: client |
/// | `wire` | a software cable inside the process, made by [`crate::Wire::pair`] |
/// | `null[,size=N][,no-rx=1]` | drops what is sent, receives generated frames |
/// | `pcap:FILE`, `pcap:rx=FILE,tx=FILE` | replays a capture in a loop; records what is sent. `pcap:-`: of standard input |
/// | `raw:DEVARGS`, `net_…`, `virtio_user…` | any DPDK virtual device |
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PortSpec {
    /// A NIC: its full address and the driver's options.
    Pci {
        /// Domain, bus, device and function.
        address: String,
        /// Options for the driver.
        options: Options,
    },
    /// A kernel interface.
    Eth {
        /// Its name.
        iface: String,
        /// Through which socket.
        driver: EthDriver,
        /// Options for either driver.
        options: Options,
    },
    /// Shared memory to another process.
    Memif {
        /// The control socket.
        path: PathBuf,
        /// Who listens.
        role: Role,
        /// Options for the driver.
        options: Options,
    },
    /// The switch's side of vhost-user.
    Vhost {
        /// The control socket.
        path: PathBuf,
        /// Who listens.
        role: Role,
        /// Options for the driver.
        options: Options,
    },
    /// The guest's side of vhost-user.
    Virtio {
        /// The control socket.
        path: PathBuf,
        /// Who listens.
        role: Role,
        /// Options for the driver.
        options: Options,
    },
    /// One end of a software cable.
    Wire,
    /// Nothing at all, at full speed.
    Null {
        /// Options for the driver.
        options: Options,
    },
    /// Captures.
    Pcap {
        /// Replayed for ever.
        rx: Option<PathBuf>,
        /// Written; frames go nowhere without it.
        tx: Option<PathBuf>,
    },
    /// A virtual device as DPDK names it.
    Raw {
        /// `net_…` or `virtio_user…`, with its number.
        name: String,
        /// The rest.
        args: String,
    },
}

/// `key=value` pairs for a driver.
pub type Options = Vec<(String, String)>;

/// The socket behind an `eth:` port.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EthDriver {
    /// AF_XDP, and AF_PACKET when that cannot be opened.
    Auto,
    /// AF_XDP or an error.
    AfXdp,
    /// AF_PACKET.
    AfPacket,
}

/// Which side of a socket listens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// We do.
    Server,
    /// The peer does.
    Client,
}

const LEGAL: &str = "legal are 0000:37:00.0 (a NIC), eth:IFACE, memif:PATH, vhost:PATH, virtio:PATH, null, \
                     pcap:FILE, and raw:DEVARGS such as raw:net_tap0,iface=t0";
pub(crate) const XDP_KEYS: &[&str] =
    &["start_queue", "queue_count", "shared_umem", "xdp_prog", "busy_budget", "force_copy"];
pub(crate) const PACKET_KEYS: &[&str] = &["qpairs", "blocksz", "framesz", "framecnt", "qdisc_bypass"];
const MEMIF_KEYS: &[&str] = &["id", "bsize", "rsize", "mac", "zero-copy", "secret", "socket-abstract"];
const VHOST_KEYS: &[&str] = &["queues", "iommu-support", "tso", "linear-buffer", "ext-buffer", "postcopy-support"];
const VIRTIO_KEYS: &[&str] = &["queue_size", "queues", "mac", "mrg_rxbuf", "in_order", "packed_vq", "vectorized"];
const NULL_KEYS: &[&str] = &["size", "copy", "no-rx"];

impl FromStr for PortSpec {
    type Err = DpdkError;

    fn from_str(text: &str) -> Result<Self, DpdkError> {
        let fail = |why: String| DpdkError::Spec { text: text.to_string(), why };
        let (head, rest) = text.split_once(',').unwrap_or((text, ""));
        if let Some(address) = pci_address(head) {
            return Ok(Self::Pci { address, options: options(rest).map_err(fail)? });
        }
        let (kind, target) = head.split_once(':').unwrap_or((head, ""));
        let parsed = match kind {
            "eth" => eth(target, rest),
            "memif" => socket(target, rest, "role", MEMIF_KEYS).map(|(path, role, options)| Self::Memif {
                path,
                role: role.unwrap_or(Role::Client),
                options,
            }),
            "vhost" => socket(target, rest, "client", VHOST_KEYS).map(|(path, role, options)| Self::Vhost {
                path,
                role: role.unwrap_or(Role::Server),
                options,
            }),
            "virtio" => socket(target, rest, "server", VIRTIO_KEYS).map(|(path, role, options)| Self::Virtio {
                path,
                role: role.unwrap_or(Role::Client),
                options,
            }),
            "wire" if head == "wire" && rest.is_empty() => Ok(Self::Wire),
            "null" if target.is_empty() => check_keys(options(rest), NULL_KEYS).map(|options| Self::Null { options }),
            "pcap" => pcap(text.strip_prefix("pcap:").unwrap_or_default()),
            "raw" => raw(text.strip_prefix("raw:").unwrap_or_default()),
            _ if is_vdev(head) => raw(text),
            _ => Err(unknown(text)),
        };
        parsed.map_err(fail)
    }
}

/// What a text may have meant that has no kind of port.
fn unknown(text: &str) -> String {
    let (name, rest) = text.split_once(',').map_or((text, ""), |(name, _)| (name, &text[name.len()..]));
    if has_interface(name) {
        return format!("not a port: for the interface {name}, write eth:{name}{rest}");
    }
    if Path::new(text).is_file() {
        return format!("not a port: for the capture {text}, write pcap:rx={text}");
    }
    format!("not a port: {LEGAL}")
}

/// Whether this network namespace has such an interface.
fn has_interface(name: &str) -> bool {
    let text = std::fs::read_to_string("/proc/thread-self/net/dev").unwrap_or_default();
    text.lines().any(|line| line.split_once(':').is_some_and(|(found, _)| found.trim() == name))
}

fn is_vdev(name: &str) -> bool {
    name.starts_with("net_") || name.starts_with("virtio_user") || name.starts_with("eth_")
}

fn options(text: &str) -> Result<Options, String> {
    let pairs = text.split(',').filter(|part| !part.is_empty());
    pairs
        .map(|pair| match pair.split_once('=') {
            Some((key, value)) if !key.is_empty() && !value.is_empty() => Ok((key.to_string(), value.to_string())),
            _ => Err(format!("option {pair:?}: must be key=value")),
        })
        .collect()
}

fn check_keys(options: Result<Options, String>, keys: &[&str]) -> Result<Options, String> {
    let options = options?;
    match options.iter().find(|(key, _)| !keys.contains(&key.as_str())) {
        Some((key, _)) => Err(format!("unknown option {key:?}: legal are {}", keys.join(", "))),
        None => Ok(options),
    }
}

/// Takes an option out of the list.
fn take(options: &mut Options, key: &str) -> Option<String> {
    let at = options.iter().position(|(k, _)| k == key)?;
    Some(options.remove(at).1)
}

fn eth(iface: &str, rest: &str) -> Result<PortSpec, String> {
    // IFNAMSIZ counts the NUL.
    if iface.is_empty() || iface.len() > 15 || iface.contains('/') {
        return Err("needs the name of an interface, 1 to 15 characters, as in eth:ens1f0".into());
    }
    let mut options = options(rest)?;
    let driver = match take(&mut options, "driver").as_deref() {
        None => EthDriver::Auto,
        Some("af_xdp") => EthDriver::AfXdp,
        Some("af_packet") => EthDriver::AfPacket,
        Some(other) => return Err(format!("driver {other:?}: legal are af_xdp and af_packet")),
    };
    if options.iter().any(|(key, _)| key == "driver") {
        return Err("driver is given twice: give it once".into());
    }
    let options = check_keys(Ok(options), &[&["driver"], XDP_KEYS, PACKET_KEYS].concat())?;
    Ok(PortSpec::Eth { iface: iface.to_string(), driver, options })
}

/// Longest path of a socket in bytes: what sockaddr_un holds, without its NUL.
pub(crate) const MOST_PATH: usize = 107;

fn socket(path: &str, rest: &str, role_key: &str, keys: &[&str]) -> Result<(PathBuf, Option<Role>, Options), String> {
    if path.is_empty() || path.len() > MOST_PATH {
        return Err("needs the path of a socket, 1 to 107 bytes, as in memif:/run/x.sock".into());
    }
    let mut options = options(rest)?;
    let role = match (role_key, take(&mut options, role_key).as_deref()) {
        (_, None) => None,
        ("role", Some("server")) | ("server", Some("1")) | ("client", Some("0")) => Some(Role::Server),
        ("role", Some("client")) | ("server", Some("0")) | ("client", Some("1")) => Some(Role::Client),
        ("role", Some(other)) => return Err(format!("role {other:?}: legal are server and client")),
        (key, Some(other)) => return Err(format!("{key}={other}: legal are 0 and 1")),
    };
    let legal = [&[role_key], keys].concat();
    Ok((PathBuf::from(path), role, check_keys(Ok(options), &legal)?))
}

fn pcap(rest: &str) -> Result<PortSpec, String> {
    // `-` is standard input, as for other programs.
    let input = |text: &str| PathBuf::from(if text == "-" { "/dev/stdin" } else { text });
    let spec = if rest.contains('=') {
        let mut options = check_keys(options(rest), &["rx", "tx"])?;
        PortSpec::Pcap {
            rx: take(&mut options, "rx").map(|rx| input(&rx)),
            tx: take(&mut options, "tx").map(Into::into),
        }
    } else {
        PortSpec::Pcap { rx: Some(input(rest)).filter(|_| !rest.is_empty()), tx: None }
    };
    match spec {
        PortSpec::Pcap { rx: None, tx: None } => Err("needs a file, as in pcap:FILE or pcap:rx=FILE,tx=FILE".into()),
        spec => Ok(spec),
    }
}

fn raw(text: &str) -> Result<PortSpec, String> {
    let (name, args) = text.split_once(',').unwrap_or((text, ""));
    if !is_vdev(name) || name.contains(['=', ':']) {
        return Err("needs a DPDK virtual device, as in raw:net_tap0,iface=t0".into());
    }
    // DPDK finds the driver by prefix and wants a name of its own for every device.
    let numbered = name.ends_with(|c: char| c.is_ascii_digit());
    let name = if numbered { name.to_string() } else { format!("{name}0") };
    Ok(PortSpec::Raw { name, args: args.to_string() })
}

/// The full form `dddd:bb:dd.f` of a PCI address, if it is one.
pub(crate) fn pci_address(text: &str) -> Option<String> {
    let (bus, function) = text.rsplit_once('.')?;
    let parts: Vec<&str> = bus.split(':').collect();
    let hex = |part: &&str, len: usize| part.len() == len && part.bytes().all(|b| b.is_ascii_hexdigit());
    let legal = match parts.as_slice() {
        [domain, bus, device] => hex(domain, 4) && hex(bus, 2) && hex(device, 2),
        [bus, device] => hex(bus, 2) && hex(device, 2),
        _ => false,
    };
    let function_legal = matches!(function.as_bytes(), [b'0'..=b'7']);
    (legal && function_legal).then(|| match parts.len() {
        2 => format!("0000:{text}"),
        _ => text.to_string(),
    })
}

/// The device at this address.
///
/// # Errors
///
/// When it is not there or belongs to a kernel driver that DPDK cannot share.
pub(crate) fn check_pci(address: &str, roots: &Roots) -> Result<PciDevice, DpdkError> {
    let Some(address) = pci_address(address) else {
        let why = "not a PCI address: must be dddd:bb:dd.f, such as 0000:37:00.0".into();
        return Err(DpdkError::Spec { text: address.to_string(), why });
    };
    match PciDevice::read(roots, &address) {
        None => Err(DpdkError::NoPciDevice { address }),
        Some(device) if device.is_free() => Ok(device),
        Some(PciDevice { driver, .. }) => {
            Err(DpdkError::PciNotBound { address, driver: driver.unwrap_or_else(|| "no driver".into()) })
        }
    }
}

impl fmt::Display for PortSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = |f: &mut fmt::Formatter<'_>, kind: &str, path: &PathBuf| write!(f, "{kind}:{}", path.display());
        let options = match self {
            Self::Wire => return f.write_str("wire"),
            Self::Raw { name, args } if args.is_empty() => return write!(f, "raw:{name}"),
            Self::Raw { name, args } => return write!(f, "raw:{name},{args}"),
            Self::Pcap { rx: Some(rx), tx: None } => return path(f, "pcap", rx),
            Self::Pcap { rx, tx } => {
                let part = |k: &str, p: &Option<PathBuf>| p.as_ref().map(|p| format!("{k}={}", p.display()));
                let parts: Vec<String> = [part("rx", rx), part("tx", tx)].into_iter().flatten().collect();
                return write!(f, "pcap:{}", parts.join(","));
            }
            Self::Pci { address, options } => {
                f.write_str(address)?;
                options
            }
            Self::Null { options } => {
                f.write_str("null")?;
                options
            }
            Self::Eth { iface, driver, options } => {
                write!(f, "eth:{iface}")?;
                match driver {
                    EthDriver::Auto => {}
                    EthDriver::AfXdp => f.write_str(",driver=af_xdp")?,
                    EthDriver::AfPacket => f.write_str(",driver=af_packet")?,
                }
                options
            }
            Self::Memif { path: p, role, options } => {
                path(f, "memif", p)?;
                f.write_str(if *role == Role::Server { ",role=server" } else { "" })?;
                options
            }
            Self::Vhost { path: p, role, options } => {
                path(f, "vhost", p)?;
                f.write_str(if *role == Role::Client { ",client=1" } else { "" })?;
                options
            }
            Self::Virtio { path: p, role, options } => {
                path(f, "virtio", p)?;
                f.write_str(if *role == Role::Server { ",server=1" } else { "" })?;
                options
            }
        };
        options.iter().try_for_each(|(key, value)| write!(f, ",{key}={value}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> PortSpec {
        text.parse().unwrap()
    }

    #[test]
    fn an_interface_and_a_capture_without_their_kind_are_recognised() {
        let said = |text: &str| text.parse::<PortSpec>().unwrap_err().to_string();
        insta::assert_snapshot!(said("lo"), @r#"port "lo": not a port: for the interface lo, write eth:lo"#);
        insta::assert_snapshot!(said("lo,driver=af_packet"), @r#"port "lo,driver=af_packet": not a port: for the interface lo, write eth:lo,driver=af_packet"#);
        // The tests of a package run in its directory.
        insta::assert_snapshot!(said("Cargo.toml"), @r#"port "Cargo.toml": not a port: for the capture Cargo.toml, write pcap:rx=Cargo.toml"#);
        assert!(said("nosuch0").contains("legal are"), "{}", said("nosuch0"));
    }

    #[test]
    fn every_legal_form_is_read_and_written_back() {
        for text in [
            "0000:37:00.0",
            "0000:37:00.1,rx_vec_en=1",
            "eth:ens1f0",
            "eth:t0,driver=af_packet",
            "eth:t0,driver=af_xdp,busy_budget=0",
            "memif:/run/x.sock",
            "memif:/run/x.sock,role=server,id=3",
            "vhost:/run/y.sock",
            "vhost:/run/y.sock,client=1,queues=2",
            "virtio:/run/y.sock",
            "virtio:/run/y.sock,server=1,queue_size=1024",
            "wire",
            "null",
            "null,size=128",
            "pcap:/tmp/a.pcap",
            "pcap:rx=/tmp/a.pcap,tx=/tmp/b.pcap",
            "raw:net_tap0,iface=t0",
        ] {
            assert_eq!(parse(text).to_string(), text);
        }
        assert_eq!(parse("37:00.0"), parse("0000:37:00.0"));
        assert_eq!(parse("net_null3,size=90").to_string(), "raw:net_null3,size=90");
        assert_eq!(parse("raw:net_tap").to_string(), "raw:net_tap0");
        assert_eq!(parse("pcap:-"), parse("pcap:/dev/stdin"));
        assert_eq!(parse("pcap:rx=-,tx=/x"), parse("pcap:rx=/dev/stdin,tx=/x"));
        assert!(matches!(parse("memif:/x"), PortSpec::Memif { role: Role::Client, .. }));
        assert!(matches!(parse("vhost:/x"), PortSpec::Vhost { role: Role::Server, .. }));
        assert!(matches!(parse("virtio:/x"), PortSpec::Virtio { role: Role::Client, .. }));
    }

    #[test]
    fn what_is_wrong_is_said_with_what_is_legal() {
        let mut lines = Vec::new();
        for text in [
            "",
            "ens1f0",
            "wire,x=1",
            "eth:",
            "eth:a-name-much-too-long",
            "eth:t0,driver=xdp",
            "eth:t0,speed=9",
            "memif:",
            "memif:/x,role=master",
            "virtio:/x,server=yes",
            "null,size",
            "pcap:",
            "raw:mlx5",
            "0000:37:00.9",
        ] {
            let error = text.parse::<PortSpec>().unwrap_err();
            assert!(matches!(&error, DpdkError::Spec { text: given, .. } if given == text) && !error.machine_lacks());
            lines.push(error.to_string());
        }
        assert!(lines.iter().all(|line| !line.contains('\n')));
        insta::assert_snapshot!(lines.join("\n"));
    }

    #[test]
    fn pci_devices_are_looked_at_first() {
        let error = check_pci("ffff:ff:1f.7", &Roots::default()).unwrap_err();
        assert!(matches!(error, DpdkError::NoPciDevice { .. }), "{error}");
        assert!(!error.machine_lacks());
    }
}
