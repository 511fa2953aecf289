//! A way over AF_PACKET sockets with a system call a frame: what a program without DPDK has (packet(7)).

use std::{io, os::fd::AsRawFd, os::fd::OwnedFd};

use nix::{
    ifaddrs::getifaddrs,
    sys::socket::{bind, recv, send, socket, AddressFamily, LinkAddr, MsgFlags, SockFlag, SockProtocol, SockType},
};

use packet::MacAddr;

use super::{frame::LONGEST, way::Way};

/// Two sockets: one sends on an interface, the other receives on another.
#[derive(Debug)]
pub struct PacketSockets {
    tx: OwnedFd,
    rx: OwnedFd,
    loaded: Vec<u8>,
    received: Vec<u8>,
    /// Bytes of the frame that is held.
    held: usize,
}

impl PacketSockets {
    /// Sockets on these interfaces of this thread's network namespace.
    ///
    /// # Errors
    ///
    /// `NotFound` without such an interface; `PermissionDenied` without CAP_NET_RAW; what the kernel says else.
    pub fn open(tx: &str, rx: &str) -> io::Result<Self> {
        // A socket without a protocol receives nothing: nobody reads the one that sends.
        let (tx, rx) = (raw_socket(tx, None)?, raw_socket(rx, Some(SockProtocol::EthAll))?);
        let received = vec![0; LONGEST + 4];
        Ok(Self { tx, rx, loaded: Vec::with_capacity(LONGEST), received, held: 0 })
    }

    fn sent(&self, frame: &[u8]) -> bool {
        send(self.tx.as_raw_fd(), frame, MsgFlags::MSG_DONTWAIT) == Ok(frame.len())
    }
}

fn raw_socket(iface: &str, protocol: Option<SockProtocol>) -> io::Result<OwnedFd> {
    let address = link_address(iface)?;
    let fd = socket(AddressFamily::Packet, SockType::Raw, SockFlag::SOCK_CLOEXEC, protocol)?;
    bind(fd.as_raw_fd(), &address)?;
    Ok(fd)
}

fn link_address(iface: &str) -> io::Result<LinkAddr> {
    let mut addresses = getifaddrs()?.filter(|address| address.interface_name == iface);
    let link = addresses.find_map(|address| address.address?.as_link_addr().copied());
    link.ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, format!("no interface {iface}")))
}

/// The MAC address of an interface of this thread's network namespace; all zero if it has none.
///
/// # Errors
///
/// As [`PacketSockets::open`].
pub fn mac_of(iface: &str) -> io::Result<MacAddr> {
    Ok(MacAddr(link_address(iface)?.addr().unwrap_or_default()))
}

impl Way for PacketSockets {
    #[inline]
    fn load(&mut self, frame: &[u8]) -> bool {
        self.loaded.clear();
        self.loaded.extend_from_slice(frame);
        true
    }

    #[inline]
    fn fire(&mut self) -> bool {
        !self.loaded.is_empty() && self.sent(&self.loaded)
    }

    #[inline]
    fn poll(&mut self) -> usize {
        self.held = recv(self.rx.as_raw_fd(), &mut self.received, MsgFlags::MSG_DONTWAIT).unwrap_or(0);
        usize::from(self.held > 0)
    }

    #[inline]
    fn frame(&self, n: usize) -> &[u8] {
        match n {
            0 => self.received.get(..self.held).unwrap_or_default(),
            _ => &[],
        }
    }

    #[inline]
    fn pass(&mut self) -> usize {
        let sent = self.held > 0 && self.sent(&self.received[..self.held]);
        self.held = 0;
        usize::from(sent)
    }

    #[inline]
    fn release(&mut self) {
        self.held = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interface_that_is_not_there_is_named() {
        let none = PacketSockets::open("none-such0", "lo").unwrap_err();
        assert_eq!((none.kind(), none.to_string().as_str()), (io::ErrorKind::NotFound, "no interface none-such0"));
        assert_eq!(mac_of("lo").unwrap(), MacAddr::default());
    }
}
