//! Connections over SCTP (RFC 9260), one to one, as streams: a message is one write (RFC 6458 4).

use std::{
    fs, io,
    net::{SocketAddr, TcpStream},
    os::fd::OwnedFd,
    time::{Duration, Instant},
};

use rustix::{
    event::{poll, PollFd, PollFlags, Timespec},
    io::Errno,
    net::{connect, ipproto, socket_with, sockopt::socket_error, AddressFamily, SocketFlags, SocketType},
};

/// Where the kernel lists its associations.
const ASSOCIATIONS: &str = "/proc/net/sctp/assocs";

/// Connects over SCTP. The stream is one of the standard library, since all that it does is what every socket can do; but
/// nothing of TCP can be set on it.
///
/// Errors: nobody listens, no answer for so long ([`io::ErrorKind::TimedOut`]), or the kernel has no SCTP
/// ([`io::ErrorKind::Unsupported`]).
pub fn sctp_connect(to: SocketAddr, patience: Duration) -> io::Result<TcpStream> {
    let socket = socket(if to.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 })?;
    match connect(&socket, &to) {
        Ok(()) => {}
        Err(Errno::INPROGRESS) => {
            let by = Instant::now() + patience;
            while !can_write(&socket, by.saturating_duration_since(Instant::now()))? {
                if Instant::now() >= by {
                    return Err(io::ErrorKind::TimedOut.into());
                }
            }
            socket_error(&socket)??;
        }
        Err(error) => return Err(error.into()),
    }
    let stream = TcpStream::from(socket);
    stream.set_nonblocking(false)?;
    Ok(stream)
}

/// Whether the kernel has SCTP, which it loads where it can. Errors: it has not ([`io::ErrorKind::Unsupported`]).
pub fn has_sctp() -> io::Result<()> {
    socket(AddressFamily::INET).map(drop)
}

fn socket(family: AddressFamily) -> io::Result<OwnedFd> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    socket_with(family, SocketType::STREAM, flags, Some(ipproto::SCTP)).map_err(|error| match error {
        Errno::PROTONOSUPPORT | Errno::SOCKTNOSUPPORT | Errno::AFNOSUPPORT => io::Error::new(
            io::ErrorKind::Unsupported,
            "the kernel has no SCTP. Remedy: modprobe sctp, or a collector over tcp:// or tls://",
        ),
        error => error.into(),
    })
}

/// Whether a socket can be written to, or has failed, within this time.
fn can_write(socket: &OwnedFd, within: Duration) -> io::Result<bool> {
    let within = Timespec::try_from(within).map_err(|_| io::ErrorKind::InvalidInput)?;
    match poll(&mut [PollFd::new(socket, PollFlags::OUT)], Some(&within)) {
        Ok(ready) => Ok(ready > 0),
        Err(Errno::INTR) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// Asks how much of an association is on its way.
#[derive(Debug)]
pub struct SctpProbe {
    own: u16,
    other: u16,
}

impl SctpProbe {
    /// Of this connection. Errors: it is not connected.
    pub fn new(stream: &TcpStream) -> io::Result<Self> {
        Ok(Self { own: stream.local_addr()?.port(), other: stream.peer_addr()?.port() })
    }

    /// Bytes that the other side's kernel has not acknowledged, at most: the kernel counts its own headers with them.
    /// `None` if the association has ended. Errors: the kernel's list cannot be read.
    pub fn on_the_way(&self) -> io::Result<Option<u64>> {
        Ok(on_the_way(&fs::read_to_string(ASSOCIATIONS)?, self.own, self.other))
    }
}

/// Reads the kernel's list: a line of headers, then one for each association, with its addresses behind the ports.
fn on_the_way(list: &str, own: u16, other: u16) -> Option<u64> {
    let mut lines = list.lines();
    let heads: Vec<&str> = lines.next()?.split_whitespace().collect();
    let column = |name: &str| heads.iter().position(|&head| head == name);
    let (queue, lport, rport) = (column("TX_QUEUE")?, column("LPORT")?, column("RPORT")?);
    let number = |words: &[&str], at: usize| words.get(at).and_then(|word| word.parse::<u64>().ok());
    lines.find_map(|line| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let ports = [number(&words, lport)?, number(&words, rport)?];
        if ports == [own.into(), other.into()] {
            number(&words, queue)
        } else {
            None
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Linux 6.1: of a receiver and its sender, over loopback.
    const LIST: &str = "\
 ASSOC     SOCK   STY SST ST HBKT ASSOC-ID TX_QUEUE RX_QUEUE UID INODE LPORT RPORT LADDRS <-> RADDRS HBINT INS OUTS MAXRT T1X T2X RTXC wmema wmemq sndbuf rcvbuf
ffff8880052ae000 ffff888004abe080 0   7   3  0       1        0     2048       0 17019 4739  49152  *127.0.0.1 <-> *127.0.0.1 \t    7500    10    10   10    0    0        0        1        0   212992   212992
ffff888004cc4000 ffff888004abe900 2   1   3  0       2     1520        0       0 17024 49152 4739  *127.0.0.1 <-> *127.0.0.1 \t    7500    10    10   10    0    0        0     1521     1520   212992   212992
";

    #[test]
    fn what_is_on_the_way_is_told_of_the_right_association() {
        assert_eq!(on_the_way(LIST, 49152, 4739), Some(1520));
        assert_eq!(on_the_way(LIST, 4739, 49152), Some(0));
        assert_eq!(on_the_way(LIST, 49152, 4740), None);
        assert_eq!(on_the_way("", 49152, 4739), None);
        assert_eq!(on_the_way("what\n1 2 3\n", 49152, 4739), None);
    }

    #[test]
    fn a_kernel_without_sctp_says_so() {
        let to = "127.0.0.1:9".parse().unwrap();
        // With SCTP, nobody listens there.
        let error = sctp_connect(to, Duration::from_secs(5)).unwrap_err();
        assert!(matches!(error.kind(), io::ErrorKind::Unsupported | io::ErrorKind::ConnectionRefused), "{error:?}");
    }
}
