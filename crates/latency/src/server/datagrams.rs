//! Datagrams that are answered from the address that was asked: a machine with several would otherwise answer from the one of
//! its route, and a client that listens to one address hears nothing.

use std::{
    io::{self, IoSlice, IoSliceMut},
    net::{SocketAddr, UdpSocket},
    os::fd::AsRawFd,
};

use nix::{
    cmsg_space, libc,
    sys::socket::{
        recvmsg, sendmsg, setsockopt,
        sockopt::{Ipv4PacketInfo, Ipv6RecvPacketInfo},
        ControlMessage, ControlMessageOwned, MsgFlags, SockaddrIn, SockaddrIn6, SockaddrLike, SockaddrStorage,
    },
};

/// A socket whose datagrams are answered.
pub(super) struct Datagrams<'a> {
    socket: &'a UdpSocket,
    /// For the address that a datagram came to; empty of a socket that has only one.
    control: Vec<u8>,
}

/// Who sent a datagram, and to which address of ours.
pub(super) struct Asker {
    from: SocketAddr,
    to: Option<To>,
}

enum To {
    V4(libc::in_pktinfo),
    V6(libc::in6_pktinfo),
}

impl Asker {
    /// Whether it can be answered: nobody has port 0.
    pub(super) fn can_be_answered(&self) -> bool {
        self.from.port() != 0
    }
}

impl<'a> Datagrams<'a> {
    /// Of a socket that is bound.
    ///
    /// # Errors
    ///
    /// As the system says.
    pub(super) fn of(socket: &'a UdpSocket) -> io::Result<Self> {
        let local = socket.local_addr()?;
        let control = match local {
            local if !local.ip().is_unspecified() => Vec::new(),
            SocketAddr::V4(_) => {
                setsockopt(socket, Ipv4PacketInfo, &true)?;
                cmsg_space!(libc::in_pktinfo)
            }
            SocketAddr::V6(_) => {
                setsockopt(socket, Ipv6RecvPacketInfo, &true)?;
                cmsg_space!(libc::in6_pktinfo)
            }
        };
        Ok(Self { socket, control })
    }

    /// The next datagram.
    ///
    /// # Errors
    ///
    /// As the system says.
    pub(super) fn receive(&mut self, buffer: &mut [u8]) -> io::Result<(usize, Asker)> {
        if self.control.is_empty() {
            let (read, from) = self.socket.recv_from(buffer)?;
            return Ok((read, Asker { from, to: None }));
        }
        let mut parts = [IoSliceMut::new(buffer)];
        let control = Some(self.control.as_mut_slice());
        let message = recvmsg::<SockaddrStorage>(self.socket.as_raw_fd(), &mut parts, control, MsgFlags::empty())?;
        let to = message.cmsgs().into_iter().flatten().find_map(|part| match part {
            // From the address, and by the way that the route says.
            ControlMessageOwned::Ipv4PacketInfo(info) => Some(To::V4(libc::in_pktinfo { ipi_ifindex: 0, ..info })),
            ControlMessageOwned::Ipv6PacketInfo(info) => Some(To::V6(info)),
            _ => None,
        });
        let from = message.address.as_ref().and_then(address).ok_or(io::ErrorKind::InvalidData)?;
        Ok((message.bytes, Asker { from, to }))
    }

    /// Answers.
    ///
    /// # Errors
    ///
    /// As the system says.
    pub(super) fn send(&self, bytes: &[u8], asker: &Asker) -> io::Result<()> {
        let Some(to) = &asker.to else { return self.socket.send_to(bytes, asker.from).map(drop) };
        let control = match to {
            To::V4(info) => ControlMessage::Ipv4PacketInfo(info),
            To::V6(info) => ControlMessage::Ipv6PacketInfo(info),
        };
        let parts = [IoSlice::new(bytes)];
        let to = SockaddrStorage::from(asker.from);
        sendmsg(self.socket.as_raw_fd(), &parts, &[control], MsgFlags::empty(), Some(&to))?;
        Ok(())
    }
}

fn address(storage: &SockaddrStorage) -> Option<SocketAddr> {
    let v4 = |sin: &SockaddrIn| SocketAddr::from((sin.ip(), sin.port()));
    let v6 = |sin: &SockaddrIn6| {
        SocketAddr::V6(std::net::SocketAddrV6::new(sin.ip(), sin.port(), sin.flowinfo(), sin.scope_id()))
    };
    match storage.family()? {
        nix::sys::socket::AddressFamily::Inet => storage.as_sockaddr_in().map(v4),
        nix::sys::socket::AddressFamily::Inet6 => storage.as_sockaddr_in6().map(v6),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use std::{net::Ipv4Addr, time::Duration};

    use super::*;

    #[test]
    fn the_answer_comes_from_the_address_that_was_asked() {
        for (any, asked) in
            [("0.0.0.0:0", "127.0.0.7"), ("[::]:0", "::1"), ("[::]:0", "127.0.0.9"), ("127.0.0.1:0", "127.0.0.1")]
        {
            let server = UdpSocket::bind(any).unwrap();
            server.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
            let mut datagrams = Datagrams::of(&server).unwrap();
            let port = server.local_addr().unwrap().port();
            let here = if asked.contains(':') { "[::1]:0" } else { "127.0.0.1:0" };
            let client = UdpSocket::bind(here).unwrap();
            client.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
            let asked: std::net::IpAddr = asked.parse().unwrap();
            client.connect((asked, port)).unwrap();
            client.send(b"hello").unwrap();
            let mut buffer = [0; 64];
            let (read, asker) = datagrams.receive(&mut buffer).unwrap();
            assert!(asker.can_be_answered());
            datagrams.send(&buffer[..read], &asker).unwrap();
            // A connected socket hears no other address.
            let mut back = [0; 64];
            assert_eq!(client.recv(&mut back).unwrap(), 5, "{any} {asked}");
            assert_eq!(&back[..5], b"hello");
        }
        let nobody = Asker { from: (Ipv4Addr::LOCALHOST, 0).into(), to: None };
        assert!(!nobody.can_be_answered());
    }
}
