//! Two hosts on one machine, joined by a veth pair of our own: for programs that talk over sockets.
//!
//! Both are network namespaces without a name, so that nobody else sees them and the kernel removes them with the process.

use std::{
    fs::File,
    net::{IpAddr, Ipv4Addr},
    sync::mpsc,
    thread,
};

use failure::Failure;
use nix::{
    sched::{setns, unshare, CloneFlags},
    unistd::gettid,
};

use crate::veth::{cannot, in_thread, ip, NAMES};

/// Addresses of the two (RFC 5737: for documentation, routed nowhere).
pub const ADDRESSES: [IpAddr; 2] = [IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1)), IpAddr::V4(Ipv4Addr::new(192, 0, 2, 2))];

/// Two joined network namespaces. They go when it is dropped and nothing of them is used.
#[derive(Debug)]
pub struct Hosts {
    namespaces: [File; 2],
}

impl Hosts {
    /// Makes them, each with an address of [`ADDRESSES`].
    ///
    /// # Errors
    ///
    /// (machine) when `ip` is missing, or the right to make a network namespace.
    pub fn new() -> Result<Self, Failure> {
        let own = || -> Result<File, Failure> {
            unshare(CloneFlags::CLONE_NEWNET).map_err(|e| cannot(&format!("a network namespace for it: {e}")))?;
            File::open("/proc/thread-self/ns/net").map_err(|e| cannot(&e.to_string()))
        };
        let configure = |n: usize| -> Result<(), Failure> {
            let address = format!("{}/30", ADDRESSES[n]);
            ip(&["address", "add", &address, "dev", NAMES[n]])?;
            ip(&["link", "set", "dev", NAMES[n], "up"])
        };
        thread::scope(|scope| {
            let (tell_thread, thread_of_other) = mpsc::channel();
            let (tell_joined, joined) = mpsc::channel();
            let other = scope.spawn(move || {
                let namespace = own()?;
                // The pair is made from the other side, which names this thread.
                tell_thread.send(gettid().to_string()).map_err(Failure::failed)?;
                joined.recv().map_err(|_| cannot("the other end was not made"))?;
                configure(1)?;
                Ok(namespace)
            });
            // What it holds goes when it fails, and the other thread waits no longer.
            let near = in_thread(move || {
                let namespace = own()?;
                let thread = thread_of_other.recv().map_err(|_| cannot("a network namespace for its other end"))?;
                let [a, b] = NAMES;
                ip(&["link", "add", "name", a, "type", "veth", "peer", "name", b, "netns", &thread])?;
                configure(0)?;
                tell_joined.send(()).map_err(Failure::failed)?;
                Ok(namespace)
            });
            let far = other.join().unwrap_or_else(|_| Err(Failure::failed("the thread of a host ended early")));
            Ok(Self { namespaces: [near?, far?] })
        })
    }

    /// Runs this on the first of them (0) or the second.
    ///
    /// # Errors
    ///
    /// (machine) when its namespace cannot be entered; else those of `what`.
    pub fn inside<T: Send>(&self, host: usize, what: impl FnOnce() -> Result<T, Failure> + Send) -> Result<T, Failure> {
        let namespace = &self.namespaces[host.min(1)];
        in_thread(|| {
            setns(namespace, CloneFlags::CLONE_NEWNET).map_err(|e| cannot(&format!("its namespace: {e}")))?;
            what()
        })
    }
}

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;

    use super::*;

    #[test]
    fn two_hosts_talk_and_nobody_else_sees_them() {
        let hosts = match Hosts::new() {
            Ok(hosts) => hosts,
            // Not root: said in a line, and nothing more can be tried.
            Err(e) => return assert_eq!(e.exit, failure::Exit::Machine, "{e:?}"),
        };
        let server = hosts.inside(1, || UdpSocket::bind((ADDRESSES[1], 0)).map_err(Failure::machine)).unwrap();
        let to = server.local_addr().unwrap();
        let send = || {
            let socket = UdpSocket::bind((ADDRESSES[0], 0)).map_err(Failure::machine)?;
            socket.send_to(b"hello", to).map_err(Failure::machine)
        };
        assert_eq!(hosts.inside(0, send).unwrap(), 5);
        let mut bytes = [0; 16];
        server.set_read_timeout(Some(std::time::Duration::from_secs(5))).unwrap();
        assert_eq!(server.recv_from(&mut bytes).unwrap().1.ip(), ADDRESSES[0]);
        assert!(!std::path::Path::new("/sys/class/net").join(NAMES[0]).exists());
    }
}
