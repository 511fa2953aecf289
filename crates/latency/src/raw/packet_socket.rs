//! A way over AF_PACKET sockets with a system call a frame: what a program without DPDK has (packet(7)).

use std::{
    io::{self, IoSliceMut},
    os::fd::{AsRawFd, OwnedFd},
    time::{Duration, Instant},
};

use nix::{
    cmsg_space,
    ifaddrs::getifaddrs,
    sys::socket::{
        bind, recv, recvmsg, send, setsockopt, socket, sockopt::Timestamping, AddressFamily, ControlMessageOwned,
        LinkAddr, MsgFlags, SockFlag, SockProtocol, SockType, TimestampingFlag, Timestamps,
    },
};

use packet::MacAddr;

use super::{
    frame::LONGEST,
    way::{Stamped, Way},
};

/// How long the stamp of a frame that came back already may take: it comes by itself.
const STAMP: Duration = Duration::from_millis(20);

/// Whose time stamps count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stamps {
    /// The kernel's, in the drivers.
    Kernel,
    /// The NIC's. Its driver has been told to make them.
    Nic,
}

/// Two sockets: one sends on an interface, the other receives on another.
#[derive(Debug)]
pub struct PacketSockets {
    tx: OwnedFd,
    rx: OwnedFd,
    loaded: Vec<u8>,
    received: Vec<u8>,
    /// Bytes of the frame that is held.
    held: usize,
    stamps: Option<Stamps>,
    /// The stamp of the frame that is held.
    came: Option<u64>,
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
        Ok(Self { tx, rx, loaded: Vec::with_capacity(LONGEST), received, held: 0, stamps: None, came: None })
    }

    /// Times frames by time stamps instead of the clock of the program.
    ///
    /// # Errors
    ///
    /// As the kernel says, when it knows no such stamps.
    pub fn with_stamps(mut self, stamps: Stamps) -> io::Result<Self> {
        let (report, tx, rx) = match stamps {
            Stamps::Kernel => (
                TimestampingFlag::SOF_TIMESTAMPING_SOFTWARE,
                TimestampingFlag::SOF_TIMESTAMPING_TX_SOFTWARE,
                TimestampingFlag::SOF_TIMESTAMPING_RX_SOFTWARE,
            ),
            Stamps::Nic => (
                TimestampingFlag::SOF_TIMESTAMPING_RAW_HARDWARE,
                TimestampingFlag::SOF_TIMESTAMPING_TX_HARDWARE,
                TimestampingFlag::SOF_TIMESTAMPING_RX_HARDWARE,
            ),
        };
        setsockopt(&self.tx, Timestamping, &(report | tx | TimestampingFlag::SOF_TIMESTAMPING_OPT_TSONLY))?;
        setsockopt(&self.rx, Timestamping, &(report | rx))?;
        self.stamps = Some(stamps);
        Ok(self)
    }

    /// The next stamp of a frame that went out, if there is one.
    fn sent_stamp(&self, stamps: Stamps) -> Option<u64> {
        let mut control = cmsg_space!(Timestamps, [u8; 128]);
        let mut none = [0; 1];
        let mut parts = [IoSliceMut::new(&mut none)];
        let flags = MsgFlags::MSG_ERRQUEUE | MsgFlags::MSG_DONTWAIT;
        let message = recvmsg::<()>(self.tx.as_raw_fd(), &mut parts, Some(&mut control), flags).ok()?;
        // A frame without one is told as well.
        Some(message.cmsgs().into_iter().flatten().find_map(|part| stamp_of(part, stamps)).unwrap_or(0))
    }

    fn receive_with(&mut self, stamps: Stamps) -> usize {
        let mut control = cmsg_space!(Timestamps);
        let mut parts = [IoSliceMut::new(&mut self.received)];
        let flags = MsgFlags::MSG_DONTWAIT;
        let Ok(message) = recvmsg::<()>(self.rx.as_raw_fd(), &mut parts, Some(&mut control), flags) else { return 0 };
        self.came = message.cmsgs().into_iter().flatten().find_map(|part| stamp_of(part, stamps));
        message.bytes
    }

    fn sent(&self, frame: &[u8]) -> bool {
        send(self.tx.as_raw_fd(), frame, MsgFlags::MSG_DONTWAIT) == Ok(frame.len())
    }
}

/// A stamp in ns.
fn stamp_of(part: ControlMessageOwned, stamps: Stamps) -> Option<u64> {
    let ControlMessageOwned::ScmTimestampsns(all) = part else { return None };
    let time = match stamps {
        Stamps::Kernel => all.system,
        Stamps::Nic => all.hw_raw,
    };
    u64::try_from(Duration::from(time).as_nanos()).ok().filter(|&ns| ns > 0)
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
        if let Some(stamps) = self.stamps {
            // Of frames that were given up.
            while self.sent_stamp(stamps).is_some() {}
        }
        !self.loaded.is_empty() && self.sent(&self.loaded)
    }

    #[inline]
    fn poll(&mut self) -> usize {
        self.held = match self.stamps {
            None => recv(self.rx.as_raw_fd(), &mut self.received, MsgFlags::MSG_DONTWAIT).unwrap_or(0),
            Some(stamps) => self.receive_with(stamps),
        };
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

    fn stamped(&mut self) -> Stamped {
        let Some(stamps) = self.stamps else { return Stamped::Unused };
        let until = Instant::now() + STAMP;
        let sent = loop {
            match self.sent_stamp(stamps) {
                None if Instant::now() < until => std::hint::spin_loop(),
                stamp => break stamp.filter(|&ns| ns > 0),
            }
        };
        match (sent, self.came.take()) {
            (Some(sent), Some(came)) if came >= sent => Stamped::Ns(came - sent),
            _ => Stamped::Missing,
        }
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
