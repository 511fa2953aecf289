//! A raw port on an interface of a namespace: what goes in and comes out on the wire, byte by byte.

use std::fs::File;
use std::os::fd::{AsRawFd, OwnedFd};
use std::time::{Duration, Instant};

use nix::ifaddrs::getifaddrs;
use nix::sched::{setns, CloneFlags};
use nix::sys::socket::{
    bind, recvfrom, setsockopt, socket, sockopt, AddressFamily, LinkAddr, MsgFlags, SockFlag, SockProtocol, SockType,
};

use super::{run, Netns};

/// Runs `job` in a thread of its own inside the namespace. Sockets it makes belong to the namespace for good.
#[track_caller]
pub fn inside<T: Send>(netns: &Netns, job: impl FnOnce() -> T + Send) -> T {
    let path = format!("/run/netns/{}", netns.name());
    let run = || {
        let file = File::open(&path).unwrap_or_else(|e| panic!("{path}: {e}"));
        setns(file, CloneFlags::CLONE_NEWNET).unwrap_or_else(|e| panic!("{path}: {e}"));
        job()
    };
    std::thread::scope(|s| s.spawn(run).join()).unwrap_or_else(|e| std::panic::resume_unwind(e))
}

/// An interface opened with a packet socket: it sends frames as they are and sees those that arrive, but not what it
/// sent itself.
#[derive(Debug)]
pub struct RawPort {
    socket: OwnedFd,
}

impl RawPort {
    /// Opens `interface` of the namespace, which must be up.
    #[track_caller]
    pub fn open(netns: &Netns, interface: &str) -> Self {
        let socket = inside(netns, || {
            let find = |link: &LinkAddr| link.ifindex() != 0;
            let links = getifaddrs().expect("interfaces can be listed").filter(|i| i.interface_name == interface);
            let link = links.filter_map(|i| i.address?.as_link_addr().copied()).find(find);
            let link = link.unwrap_or_else(|| panic!("no interface {interface}"));
            let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
            let socket = socket(AddressFamily::Packet, SockType::Raw, flags, SockProtocol::EthAll);
            let socket = socket.unwrap_or_else(|e| panic!("a packet socket: {e}"));
            setsockopt(&socket, sockopt::RcvBufForce, &(16 << 20)).expect("a receive buffer");
            bind(socket.as_raw_fd(), &link).unwrap_or_else(|e| panic!("bind to {interface}: {e}"));
            socket
        });
        let port = Self { socket };
        // What arrived between making and binding it came from other interfaces.
        while port.recv().is_some() {}
        port
    }

    /// Sends one frame.
    #[track_caller]
    pub fn send(&self, frame: &[u8]) {
        let sent = nix::sys::socket::send(self.socket.as_raw_fd(), frame, MsgFlags::empty());
        assert_eq!(sent, Ok(frame.len()), "a frame of {} bytes", frame.len());
    }

    /// The next frame that has arrived, if any. Frames this namespace's kernel sends are not among them.
    pub fn recv(&self) -> Option<Vec<u8>> {
        const OUTGOING: u8 = 4;
        let mut buffer = [0; 10_000];
        loop {
            let (len, from) = recvfrom::<LinkAddr>(self.socket.as_raw_fd(), &mut buffer).ok()?;
            if from.is_none_or(|from| from.pkttype() != OUTGOING) {
                return Some(buffer[..len].to_vec());
            }
        }
    }

    /// Collects what arrives until a frame satisfies `last` (which is left out); `None` when it does not come in time.
    pub fn collect_until(&self, limit: Duration, last: impl Fn(&[u8]) -> bool, into: &mut Vec<Vec<u8>>) -> Option<()> {
        let end = Instant::now() + limit;
        loop {
            match self.recv() {
                Some(frame) if last(&frame) => return Some(()),
                Some(frame) => into.push(frame),
                None if Instant::now() > end => return None,
                None => std::thread::sleep(Duration::from_micros(200)),
            }
        }
    }

    /// The first frame within `limit` that satisfies `want`. Other frames are discarded.
    #[track_caller]
    pub fn expect(&self, what: &str, limit: Duration, want: impl Fn(&[u8]) -> bool) -> Vec<u8> {
        let end = Instant::now() + limit;
        let mut seen = Vec::new();
        loop {
            match self.recv() {
                Some(frame) if want(&frame) => return frame,
                Some(frame) => seen.push(super::frames::hex(&frame)),
                None if Instant::now() > end => panic!("{what}: not within {limit:?}; other frames: {seen:#?}"),
                None => std::thread::sleep(Duration::from_micros(200)),
            }
        }
    }
}

/// Joins two namespaces by a veth pair without offloads: frames arrive as they were sent.
pub fn cable(a: (&Netns, &str, &str), b: (&Netns, &str, &str)) {
    let [(ns_a, name_a, mac_a), (ns_b, name_b, mac_b)] = [a, b];
    let (in_a, in_b) = (ns_a.name(), ns_b.name());
    run(&[
        "ip", "link", "add", name_a, "netns", in_a, "address", mac_a, "type", "veth", "peer", "name", name_b, "netns",
        in_b, "address", mac_b,
    ]);
    for (ns, name, _) in [a, b] {
        ns.run(&["ethtool", "-K", name, "tso", "off", "gso", "off", "gro", "off", "tx", "off", "rx", "off"]);
        ns.ip(&format!("link set {name} up"));
    }
}
