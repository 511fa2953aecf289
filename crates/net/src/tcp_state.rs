//! What the kernel knows of a TCP connection of ours: `sock_diag` of netlink, as `ss -ti` asks for it.

use std::{
    io,
    net::{IpAddr, SocketAddr, TcpStream},
    os::fd::OwnedFd,
};

use rustix::net::{netlink, recv, send, socket_with, AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType};

/// Message types (linux/sock_diag.h, linux/netlink.h), and the flag of a request.
const SOCK_DIAG_BY_FAMILY: u16 = 20;
const NLMSG_ERROR: u16 = 2;
const NLM_F_REQUEST: u16 = 1;
/// Address families, the protocol, and the attribute that holds `struct tcp_info` (linux/inet_diag.h).
const AF_INET: u8 = 2;
const AF_INET6: u8 = 10;
const IPPROTO_TCP: u8 = 6;
const INET_DIAG_INFO: u16 = 2;
/// Bytes of a netlink header, of `struct inet_diag_req_v2`, and of `struct inet_diag_msg`.
const HEADER: usize = 16;
const REQUEST: usize = 56;
const MESSAGE: usize = 72;
/// Places in `struct tcp_info` (linux/tcp.h): tcpi_bytes_acked since Linux 4.1, tcpi_snd_wnd since 5.4.
const BYTES_ACKED: usize = 120;
const SND_WND: usize = 228;

/// A moment of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TcpState {
    /// Bytes that the other side's kernel has acknowledged.
    pub acknowledged: u64,
    /// Bytes that the other side has room for, as it said last.
    pub window: u64,
}

/// Asks for the state of one connection.
#[derive(Debug)]
pub struct TcpProbe {
    netlink: OwnedFd,
    request: [u8; HEADER + REQUEST],
}

impl TcpProbe {
    /// Of this connection. Errors: it is not connected, or no socket can be made.
    pub fn new(tcp: &TcpStream) -> io::Result<Self> {
        let (own, other) = (tcp.local_addr()?, tcp.peer_addr()?);
        let netlink =
            socket_with(AddressFamily::NETLINK, SocketType::DGRAM, SocketFlags::CLOEXEC, Some(netlink::SOCK_DIAG))?;
        Ok(Self { netlink, request: request(own, other) })
    }

    /// The state now. Errors: the connection is gone (it was reset), or the kernel does not tell (no `tcp_diag`, or before
    /// Linux 5.4). Never waits.
    pub fn read(&self) -> io::Result<TcpState> {
        send(&self.netlink, &self.request, SendFlags::DONTWAIT)?;
        let mut answer = [0; 2048];
        let (read, _) = recv(&self.netlink, &mut answer[..], RecvFlags::DONTWAIT)?;
        state(answer.get(..read).unwrap_or_default())
    }
}

fn request(own: SocketAddr, other: SocketAddr) -> [u8; HEADER + REQUEST] {
    let family = if own.is_ipv4() { AF_INET } else { AF_INET6 };
    let mut bytes = Vec::with_capacity(HEADER + REQUEST);
    bytes.extend(((HEADER + REQUEST) as u32).to_ne_bytes());
    bytes.extend(SOCK_DIAG_BY_FAMILY.to_ne_bytes());
    bytes.extend(NLM_F_REQUEST.to_ne_bytes());
    bytes.extend([0; 8]);
    bytes.extend([family, IPPROTO_TCP, 1 << (INET_DIAG_INFO - 1), 0]);
    // In any state.
    bytes.extend(u32::MAX.to_ne_bytes());
    bytes.extend(own.port().to_be_bytes());
    bytes.extend(other.port().to_be_bytes());
    for address in [own.ip(), other.ip()] {
        let mut place = [0; 16];
        match address {
            IpAddr::V4(v4) => place[..4].copy_from_slice(&v4.octets()),
            IpAddr::V6(v6) => place = v6.octets(),
        }
        bytes.extend(place);
    }
    // The interface of a link-local address, and no cookie.
    let scope = if let SocketAddr::V6(v6) = other { v6.scope_id() } else { 0 };
    bytes.extend(scope.to_ne_bytes());
    bytes.extend([0xff; 8]);
    let mut request = [0; HEADER + REQUEST];
    request.copy_from_slice(&bytes);
    request
}

/// Reads an answer.
fn state(answer: &[u8]) -> io::Result<TcpState> {
    let short = || io::Error::new(io::ErrorKind::InvalidData, "the kernel does not tell the state of the connection");
    let kind = number::<2>(answer, 4).map(u16::from_ne_bytes).ok_or_else(short)?;
    if kind == NLMSG_ERROR {
        let errno = number::<4>(answer, HEADER).map(i32::from_ne_bytes).ok_or_else(short)?;
        return Err(io::Error::from_raw_os_error(errno.saturating_neg()));
    }
    let mut at = HEADER + MESSAGE;
    while let (Some(length), Some(kind)) = (number::<2>(answer, at), number::<2>(answer, at + 2)) {
        let length = usize::from(u16::from_ne_bytes(length)).max(4);
        if u16::from_ne_bytes(kind) == INET_DIAG_INFO {
            let info = answer.get(at + 4..(at + length).min(answer.len())).unwrap_or_default();
            let acknowledged = number::<8>(info, BYTES_ACKED).map(u64::from_ne_bytes).ok_or_else(short)?;
            let window = number::<4>(info, SND_WND).map(u32::from_ne_bytes).ok_or_else(short)?;
            // The first one acknowledged is the SYN.
            return Ok(TcpState { acknowledged: acknowledged.saturating_sub(1), window: window.into() });
        }
        at += length.next_multiple_of(4);
    }
    Err(short())
}

fn number<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..)?.first_chunk().copied()
}

#[cfg(test)]
mod tests {
    use std::{
        io::{Read, Write},
        net::TcpListener,
        time::{Duration, Instant},
    };

    use super::*;

    /// A connection over this loopback address, if there is one.
    fn pair(address: &str) -> Option<(TcpStream, TcpStream)> {
        let listener = TcpListener::bind(address).ok()?;
        let ours = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        Some((ours, listener.accept().unwrap().0))
    }

    /// What `is` holds for soon.
    fn soon(probe: &TcpProbe, is: impl Fn(TcpState) -> bool) -> TcpState {
        let by = Instant::now() + Duration::from_secs(10);
        loop {
            let state = probe.read().unwrap();
            if is(state) || Instant::now() > by {
                return state;
            }
        }
    }

    #[test]
    fn bytes_are_acknowledged_and_the_window_closes_where_nobody_reads() {
        let pairs: Vec<_> = ["127.0.0.1:0", "[::1]:0"].into_iter().filter_map(pair).collect();
        assert!(!pairs.is_empty());
        for (mut ours, mut theirs) in pairs {
            let probe = TcpProbe::new(&ours).unwrap();
            assert_eq!(probe.read().unwrap().acknowledged, 0);
            ours.write_all(&[7; 1000]).unwrap();
            let open = soon(&probe, |state| state.acknowledged == 1000);
            assert!(open.acknowledged == 1000 && open.window > 10_000, "{open:?}");
            theirs.read_exact(&mut [0; 1000]).unwrap();
            ours.set_nonblocking(true).unwrap();
            while ours.write(&[7; 65_536]).is_ok() {}
            let closed = soon(&probe, |state| state.window < open.window / 2);
            assert!(closed.acknowledged > 10_000 && closed.window < open.window / 2, "{closed:?} {open:?}");
            // Closed with bytes unread: reset, and nothing is known any more.
            drop(theirs);
            while ours.write(&[7]).is_ok() {}
            assert!(probe.read().is_err());
        }
    }

    #[test]
    fn answers_that_are_short_or_strange_are_errors() {
        let kind = |bytes: &[u8]| state(bytes).unwrap_err().kind();
        let mut answer = vec![0; HEADER + MESSAGE];
        answer[4] = SOCK_DIAG_BY_FAMILY as u8;
        for length in [0, 5, HEADER, HEADER + MESSAGE] {
            assert_eq!(kind(&answer[..length]), io::ErrorKind::InvalidData);
        }
        // An attribute of no length, and one that ends early.
        answer.extend([0; 8]);
        assert_eq!(kind(&answer), io::ErrorKind::InvalidData);
        answer.extend([200, 0, INET_DIAG_INFO as u8, 0]);
        answer.extend([0; 200]);
        assert_eq!(kind(&answer), io::ErrorKind::InvalidData);
        let mut refused = vec![0; HEADER];
        refused[4] = NLMSG_ERROR as u8;
        refused.extend((-2i32).to_ne_bytes());
        assert_eq!(kind(&refused), io::ErrorKind::NotFound);
    }
}
