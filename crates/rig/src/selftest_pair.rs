//! Two joined ports of one kind in this process, for the self-test.

use std::{
    path::{Path, PathBuf},
    sync::atomic::{AtomicU32, Ordering},
    time::{Duration, Instant},
};

use control::private_directory;
use dpdk::{Eal, EthDriver, Mempool, Port, PortConfig, PortSpec, Role};
use failure::Failure;
use measure::result::SelfTestKind;

use crate::{
    machine::{data_room, pool_size},
    tester_port::{TesterPort, STAMPED},
    veth::{Veth, NAMES},
};

/// How long the two ends may take to find each other.
const LINK_WAIT: Duration = Duration::from_secs(3);
/// Names of the sockets begin with this; the process id and a number follow.
const PREFIX: &str = "selftest-";

/// The pair of a rig: what it is to be, and its ports once it is open.
pub(crate) struct Pair {
    /// The two ends; none of the software cable, and none before it is open.
    pub(crate) ports: Vec<TesterPort>,
    /// Where the interfaces of a veth pair are.
    veth: Option<Veth>,
    /// Its kind; and why it is the software cable, where the ports are not.
    kind: Result<SelfTestKind, String>,
    /// The port it should be like.
    like: Option<PortSpec>,
    /// Longest frame, without FCS.
    max_frame: usize,
    /// Descriptors of each queue.
    descriptors: u32,
}

impl Pair {
    /// A pair like the first port of the tester; the software cable without a port.
    pub(crate) fn new(like: Option<PortSpec>, max_frame: usize, descriptors: u32) -> Self {
        let kind = like.as_ref().map_or(Ok(SelfTestKind::SoftwareCable), |spec| kind_for(spec).map_err(str::to_owned));
        Self { ports: Vec::new(), veth: None, kind, like, max_frame, descriptors }
    }

    /// Makes it a pair of this kind.
    pub(crate) fn choose(&mut self, kind: SelfTestKind) {
        self.close();
        (self.kind, self.like) = (Ok(kind), None);
    }

    fn close(&mut self) {
        let ports = std::mem::take(&mut self.ports);
        if let Some(veth) = self.veth.take() {
            // The driver takes its program off an interface by number: here that number is somebody else's.
            let _ = veth.inside(move || {
                drop(ports);
                Ok(())
            });
        }
    }

    /// Opens it, if it is not open. A pair that cannot be opened is the software cable from then on. Returns its kind; and
    /// why it is the software cable.
    pub(crate) fn open(&mut self, eal: &'static Eal) -> (SelfTestKind, Option<String>) {
        if let (Ok(kind), true) = (&self.kind, self.ports.is_empty()) {
            if *kind != SelfTestKind::SoftwareCable {
                let veth = (*kind == SelfTestKind::Veth).then(Veth::new).transpose();
                let joined = veth.and_then(|veth| {
                    let join = || join(eal, *kind, self.like.as_ref(), self.max_frame, self.descriptors);
                    let ports = match &veth {
                        Some(veth) => veth.inside(join),
                        None => join(),
                    };
                    Ok((ports?, veth))
                });
                match joined {
                    Ok((ports, veth)) => (self.ports, self.veth) = (ports, veth),
                    Err(e) => self.kind = Err(e.text),
                }
            }
        }
        match &self.kind {
            Ok(kind) => (*kind, None),
            Err(why) => (SelfTestKind::SoftwareCable, Some(why.clone())),
        }
    }
}

impl Drop for Pair {
    fn drop(&mut self) {
        self.close();
    }
}

/// The kind of pair that a port calls for, or why there is none.
fn kind_for(port: &PortSpec) -> Result<SelfTestKind, &'static str> {
    match port {
        PortSpec::Memif { .. } => Ok(SelfTestKind::Memif),
        PortSpec::Vhost { .. } | PortSpec::Virtio { .. } => Ok(SelfTestKind::VhostUser),
        PortSpec::Wire => Ok(SelfTestKind::SoftwareCable),
        PortSpec::Eth { .. } => Ok(SelfTestKind::Veth),
        PortSpec::Pci { .. } => Err("the driver of a NIC cannot be joined to itself"),
        PortSpec::Null { .. } | PortSpec::Pcap { .. } => Err("ports of this kind cannot be joined"),
        PortSpec::Raw { .. } => Err("how to join devices named by DPDK's names is not known"),
    }
}

/// Opens a pair. The first end is of the kind and role of `like`, with its options for the driver, where it is given.
///
/// # Errors
///
/// As [`Port::open`]; and (machine) when the ends do not find each other within three seconds.
fn join(
    eal: &'static Eal,
    kind: SelfTestKind,
    like: Option<&PortSpec>,
    max_frame: usize,
    descriptors: u32,
) -> Result<Vec<TesterPort>, Failure> {
    let dir = private_directory()?;
    remove_stale(&dir);
    static SERIAL: AtomicU32 = AtomicU32::new(0);
    let number = SERIAL.fetch_add(1, Ordering::Relaxed);
    let path = dir.join(format!("{PREFIX}{}-{number}", std::process::id()));
    let (server, client) = match kind {
        SelfTestKind::Memif => memif(&path, like),
        SelfTestKind::VhostUser => vhost_user(&path, like),
        SelfTestKind::Veth => interfaces(like),
        SelfTestKind::SoftwareCable => return Err(Failure::failed("a software cable has no socket")),
    };
    let end = |spec: &PortSpec, number: u8| -> Result<TesterPort, Failure> {
        let room = data_room(max_frame);
        let pool = Mempool::new(eal, "selftest", pool_size(descriptors, 2, 0), room, 512)?;
        let mut config = PortConfig::new(&pool);
        config.rx_desc = descriptors as u16;
        config.tx_desc = descriptors as u16;
        config.mtu = max_frame.saturating_sub(14).max(1500) as u16;
        config.peer_timeout = LINK_WAIT;
        config.own = Some(STAMPED);
        TesterPort::new(spec.to_string(), Port::open(eal, spec, &config)?, number)
    };
    // The listening end first.
    let (server, client) = (end(&server, 0x22)?, end(&client, 0x23)?);
    let until = Instant::now() + LINK_WAIT;
    while !(server.port.link().up && client.port.link().up) {
        if Instant::now() >= until {
            return Err(Failure::machine(format!("the two ends did not find each other in {LINK_WAIT:?}")));
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    let first_listens = match like {
        Some(PortSpec::Memif { role, .. }) => *role == Role::Server,
        Some(PortSpec::Virtio { .. }) => false,
        _ => true,
    };
    Ok(if first_listens { vec![server, client] } else { vec![client, server] })
}

/// A server and a client. Rings and buffers are the client's choice, so its options count.
fn memif(path: &Path, like: Option<&PortSpec>) -> (PortSpec, PortSpec) {
    let options = match like {
        Some(PortSpec::Memif { role: Role::Client, options, .. }) => {
            // Which of several devices behind a socket, and its secret, are of no use here.
            options.iter().filter(|(key, _)| !matches!(key.as_str(), "id" | "secret" | "mac")).cloned().collect()
        }
        _ => Vec::new(),
    };
    let path = path.to_path_buf();
    let server = PortSpec::Memif { path: path.clone(), role: Role::Server, options: Vec::new() };
    (server, PortSpec::Memif { path, role: Role::Client, options })
}

/// The switch's side, which listens, and the guest's.
fn vhost_user(path: &Path, like: Option<&PortSpec>) -> (PortSpec, PortSpec) {
    let of_vhost = match like {
        Some(PortSpec::Vhost { options, .. }) => options.clone(),
        _ => Vec::new(),
    };
    let of_virtio = match like {
        Some(PortSpec::Virtio { options, .. }) => options.clone(),
        _ => Vec::new(),
    };
    let path = path.to_path_buf();
    let server = PortSpec::Vhost { path: path.clone(), role: Role::Server, options: of_vhost };
    (server, PortSpec::Virtio { path, role: Role::Client, options: of_virtio })
}

/// Both ends by the driver of the port, with its options.
fn interfaces(like: Option<&PortSpec>) -> (PortSpec, PortSpec) {
    let (driver, options) = match like {
        Some(PortSpec::Eth { driver, options, .. }) => (*driver, options.clone()),
        _ => (EthDriver::Auto, Vec::new()),
    };
    let [a, b] = NAMES.map(|iface| PortSpec::Eth { iface: iface.to_owned(), driver, options: options.clone() });
    (a, b)
}

/// Removes the sockets of processes that were killed.
fn remove_stale(dir: &Path) {
    let Ok(entries) = std::fs::read_dir(dir) else { return };
    for path in entries.flatten().map(|entry| entry.path()) {
        let Some(pid) = pid_of(&path) else { continue };
        if !PathBuf::from(format!("/proc/{pid}")).exists() {
            let _ = std::fs::remove_file(&path);
        }
    }
}

fn pid_of(path: &Path) -> Option<u32> {
    path.file_name()?.to_str()?.strip_prefix(PREFIX)?.split('-').next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec(text: &str) -> PortSpec {
        text.parse().unwrap()
    }

    #[test]
    fn each_port_has_its_kind_or_a_reason() {
        for (port, kind) in [
            ("memif:/run/a.sock", Some(SelfTestKind::Memif)),
            ("vhost:/run/a.sock", Some(SelfTestKind::VhostUser)),
            ("virtio:/run/a.sock", Some(SelfTestKind::VhostUser)),
            ("eth:eth0", Some(SelfTestKind::Veth)),
            ("0000:37:00.0", None),
            ("null", None),
        ] {
            assert_eq!(kind_for(&spec(port)).ok(), kind, "{port}");
        }
    }

    #[test]
    fn options_of_the_driver_are_kept_and_those_of_the_peer_are_not() {
        let path = Path::new("/run/s");
        let (server, client) = memif(path, Some(&spec("memif:/a,id=3,zero-copy=yes,secret=x")));
        assert_eq!(client.to_string(), "memif:/run/s,zero-copy=yes");
        assert!(server.to_string().starts_with("memif:/run/s,role=server"), "{server}");
        let (_, client) = memif(path, Some(&spec("memif:/a,role=server,id=3")));
        assert_eq!(client.to_string(), "memif:/run/s");
        let (_, virtio) = vhost_user(path, Some(&spec("virtio:/a,packed_vq=1")));
        assert_eq!(virtio.to_string(), "virtio:/run/s,packed_vq=1");
    }

    #[test]
    fn sockets_of_killed_processes_are_removed() {
        let dir = tempfile::tempdir().unwrap();
        let own = dir.path().join(format!("{PREFIX}{}-0", std::process::id()));
        let other = dir.path().join("selftest-4194999-0");
        for path in [&own, &other, &dir.path().join("router.sock")] {
            std::fs::write(path, "").unwrap();
        }
        remove_stale(dir.path());
        assert!(own.exists() && !other.exists() && dir.path().join("router.sock").exists());
    }
}
