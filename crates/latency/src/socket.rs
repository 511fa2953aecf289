//! Sockets that messages go through, and how a reply is waited for.

use std::{
    io::{self, Read, Write},
    net::{SocketAddr, TcpStream, UdpSocket},
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    time::{Duration, Instant},
};

use rustix::event::epoll;
use serde::{Deserialize, Serialize};

use crate::message::{Stream, MOST_TCP, MOST_UDP};

/// How long a connection may take.
const CONNECT: Duration = Duration::from_secs(5);
/// How long a datagram may wait for the device.
const GLANCE: Duration = Duration::from_millis(100);
/// Looks at a socket between two readings of the clock, where the thread spins.
const SPINS: u32 = 64;

/// UDP or TCP.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Transport {
    /// A datagram a message.
    Udp,
    /// Messages one after the other in a connection.
    Tcp,
}

/// How a thread waits for a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Wait {
    /// It sleeps in the call that receives.
    Block,
    /// It asks the socket again and again.
    Spin,
    /// It sleeps in `epoll_wait`, and receives then.
    Epoll,
    /// The call that receives polls the device before it sleeps (SO_BUSY_POLL). Who opens the socket sets the option.
    BusyPoll,
    /// The same with the device's interrupts off meanwhile (SO_PREFER_BUSY_POLL).
    PreferBusyPoll,
}

impl Wait {
    /// Whether the kernel polls the device for the thread.
    pub fn is_busy_poll(self) -> bool {
        matches!(self, Self::BusyPoll | Self::PreferBusyPoll)
    }
}

/// A socket to one server.
#[derive(Debug)]
pub struct Client {
    socket: Socket,
    wait: Waiting,
    buffer: Vec<u8>,
}

#[derive(Debug)]
enum Socket {
    Udp(UdpSocket),
    Tcp { stream: TcpStream, messages: Stream },
}

/// How this socket is waited for.
#[derive(Debug)]
enum Waiting {
    /// The timeout that is set on the socket.
    Block(Option<Duration>),
    Spin,
    Epoll(Epoll),
}

/// Sleeps in `epoll_wait` until a socket has something to read.
#[derive(Debug)]
pub(crate) struct Epoll(OwnedFd);

impl Epoll {
    pub(crate) fn of(socket: BorrowedFd<'_>) -> io::Result<Self> {
        let poll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        epoll::add(&poll, socket, epoll::EventData::new_u64(0), epoll::EventFlags::IN)?;
        Ok(Self(poll))
    }

    /// Whether the socket is worth a look; false when the time is over.
    pub(crate) fn wait(&self, most: Duration) -> io::Result<bool> {
        let timeout = rustix::event::Timespec {
            tv_sec: i64::try_from(most.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: most.subsec_nanos().into(),
        };
        let mut events = [epoll::Event { flags: epoll::EventFlags::empty(), data: epoll::EventData::new_u64(0) }];
        match epoll::wait(&self.0, &mut events, Some(&timeout)) {
            Ok(ready) => Ok(ready > 0),
            Err(rustix::io::Errno::INTR) => Ok(true),
            Err(e) => Err(e.into()),
        }
    }
}

/// What came of waiting.
#[derive(Debug, PartialEq, Eq)]
pub enum Came<'a> {
    /// A message.
    Message(&'a mut [u8]),
    /// Nothing in time.
    Nothing,
    /// The other side has closed the connection.
    Closed,
    /// Something that is not of messages.
    Garbage,
}

impl Client {
    /// Opens a socket to a server.
    ///
    /// # Errors
    ///
    /// As the system says: nobody listens, no route, no right.
    pub fn open(transport: Transport, server: SocketAddr, wait: Wait) -> io::Result<Self> {
        let socket = match transport {
            Transport::Udp => {
                let any: SocketAddr = match server {
                    SocketAddr::V4(_) => ([0, 0, 0, 0], 0).into(),
                    SocketAddr::V6(_) => ([0u16; 8], 0).into(),
                };
                let socket = UdpSocket::bind(any)?;
                socket.set_write_timeout(Some(GLANCE))?;
                // Only what comes from there is received.
                socket.connect(server)?;
                Socket::Udp(socket)
            }
            Transport::Tcp => {
                let stream = TcpStream::connect_timeout(&server, CONNECT)?;
                stream.set_nodelay(true)?;
                stream.set_write_timeout(Some(CONNECT))?;
                Socket::Tcp { stream, messages: Stream::new(MOST_TCP) }
            }
        };
        let wait = match wait {
            Wait::Block | Wait::BusyPoll | Wait::PreferBusyPoll => Waiting::Block(None),
            Wait::Spin => {
                socket.set_nonblocking()?;
                Waiting::Spin
            }
            Wait::Epoll => {
                socket.set_nonblocking()?;
                Waiting::Epoll(Epoll::of(socket.as_fd())?)
            }
        };
        // A byte more than the longest message: a longer one is seen to be one.
        Ok(Self { socket, wait, buffer: vec![0; MOST_UDP + 1] })
    }

    /// The address of this end.
    ///
    /// # Errors
    ///
    /// As the system says.
    pub fn local(&self) -> io::Result<SocketAddr> {
        match &self.socket {
            Socket::Udp(socket) => socket.local_addr(),
            Socket::Tcp { stream, .. } => stream.local_addr(),
        }
    }

    /// Whether its messages are datagrams.
    pub fn is_udp(&self) -> bool {
        matches!(self.socket, Socket::Udp(_))
    }

    /// The socket itself, for options.
    pub fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    /// Another handle on the same socket, for a thread that sends.
    ///
    /// # Errors
    ///
    /// As the system says.
    pub fn sender(&self) -> io::Result<Sender> {
        Ok(match &self.socket {
            Socket::Udp(socket) => Sender::Udp(socket.try_clone()?),
            Socket::Tcp { stream, .. } => Sender::Tcp(stream.try_clone()?),
        })
    }

    /// Sends a message.
    ///
    /// # Errors
    ///
    /// As the system says; `ConnectionRefused` also where nobody listened for an earlier datagram.
    pub fn send(&mut self, message: &[u8]) -> io::Result<()> {
        match &mut self.socket {
            Socket::Udp(socket) => socket.send(message).map(drop),
            Socket::Tcp { stream, .. } => write_all(stream, message),
        }
    }

    /// The next message, until then. `now` is the moment at which it is asked for: a reading of the clock less where the time
    /// counts.
    ///
    /// # Errors
    ///
    /// As the system says.
    pub fn receive(&mut self, mut now: Instant, until: Instant) -> io::Result<Came<'_>> {
        let mut spins = 0u32;
        loop {
            if let Socket::Tcp { messages, .. } = &mut self.socket {
                match messages.waits() {
                    Ok(true) => break,
                    Ok(false) => {}
                    Err(_) => return Ok(Came::Garbage),
                }
            }
            if !self.wait.for_socket(&self.socket, until.saturating_duration_since(now))? {
                return Ok(Came::Nothing);
            }
            match self.socket.read(&mut self.buffer) {
                Ok(0) if matches!(self.socket, Socket::Tcp { .. }) => return Ok(Came::Closed),
                Ok(read) => match &mut self.socket {
                    Socket::Udp(_) => return Ok(Came::Message(&mut self.buffer[..read])),
                    Socket::Tcp { messages, .. } => {
                        messages.add(&self.buffer[..read]);
                        // A message that comes in drips has the same end as one that does not come.
                        now = Instant::now();
                        if now >= until && !messages.waits().unwrap_or(true) {
                            return Ok(Came::Nothing);
                        }
                    }
                },
                Err(e) if matches!(e.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => {
                    spins = spins.wrapping_add(1);
                    let look = !matches!(self.wait, Waiting::Spin) || spins.is_multiple_of(SPINS);
                    if look {
                        now = Instant::now();
                        if now >= until {
                            return Ok(Came::Nothing);
                        }
                    }
                }
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(e),
            }
        }
        let Socket::Tcp { messages, .. } = &mut self.socket else { return Ok(Came::Nothing) };
        match messages.take() {
            Ok(Some(message)) => Ok(Came::Message(message)),
            Ok(None) => Ok(Came::Nothing),
            Err(_) => Ok(Came::Garbage),
        }
    }
}

/// What an error of a [`Client`] means to who measures, and what to do.
pub fn explain(error: &io::Error, transport: Transport) -> String {
    let name = match transport {
        Transport::Udp => "udp",
        Transport::Tcp => "tcp",
    };
    let start = format!("start one there: linerate latency {name} --server ADDRESS:PORT, or sockperf server");
    match error.kind() {
        io::ErrorKind::ConnectionRefused => format!("nobody listens: {start}"),
        io::ErrorKind::TimedOut => format!("no answer: no server, or a firewall between; {start}"),
        io::ErrorKind::UnexpectedEof | io::ErrorKind::ConnectionReset => {
            format!("{error}: a server that has as many clients as it takes (64), or another program's; {start}")
        }
        io::ErrorKind::InvalidData => format!("{error}: another program's server; {start}"),
        io::ErrorKind::InvalidInput => {
            format!("{error}: a route that refuses it (ip route get), or a link-local address without its interface ([fe80::1%eth0]:PORT)")
        }
        io::ErrorKind::NetworkUnreachable | io::ErrorKind::HostUnreachable => format!("{error}: see ip route get"),
        _ => error.to_string(),
    }
}

/// The sending half of a [`Client`].
#[derive(Debug)]
pub enum Sender {
    /// Of datagrams.
    Udp(UdpSocket),
    /// Of a connection.
    Tcp(TcpStream),
}

impl Sender {
    /// Whether a message that was not sent is lost alone, and not the connection with it.
    pub fn is_udp(&self) -> bool {
        matches!(self, Self::Udp(_))
    }

    /// Ends a connection from another thread: a call that waits to send returns.
    pub fn end(&self) {
        if let Self::Tcp(stream) = self {
            // One that is gone already needs no end.
            let _ = stream.shutdown(std::net::Shutdown::Both);
        }
    }

    /// Sends a message.
    ///
    /// # Errors
    ///
    /// As [`Client::send`].
    pub fn send(&mut self, message: &[u8]) -> io::Result<()> {
        match self {
            Self::Udp(socket) => socket.send(message).map(drop),
            Self::Tcp(stream) => write_all(stream, message),
        }
    }
}

/// Writes all of it, also to a socket that does not wait.
fn write_all(stream: &mut TcpStream, mut bytes: &[u8]) -> io::Result<()> {
    let begun = Instant::now();
    loop {
        match stream.write(bytes) {
            Ok(0) if !bytes.is_empty() => return Err(io::ErrorKind::WriteZero.into()),
            Ok(written) => bytes = &bytes[written..],
            Err(e) if matches!(e.kind(), io::ErrorKind::Interrupted | io::ErrorKind::WouldBlock) => {
                std::hint::spin_loop();
            }
            Err(e) => return Err(e),
        }
        if bytes.is_empty() {
            return Ok(());
        }
        // A part of a message that went out cannot be taken back: the connection is of no use any more.
        if begun.elapsed() >= CONNECT {
            return Err(io::Error::new(io::ErrorKind::BrokenPipe, "it takes no messages any more"));
        }
    }
}

impl Socket {
    fn set_nonblocking(&self) -> io::Result<()> {
        match self {
            Self::Udp(socket) => socket.set_nonblocking(true),
            Self::Tcp { stream, .. } => stream.set_nonblocking(true),
        }
    }

    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Udp(socket) => socket.recv(buffer),
            Self::Tcp { stream, .. } => stream.read(buffer),
        }
    }

    fn set_timeout(&self, timeout: Duration) -> io::Result<()> {
        match self {
            Self::Udp(socket) => socket.set_read_timeout(Some(timeout)),
            Self::Tcp { stream, .. } => stream.set_read_timeout(Some(timeout)),
        }
    }
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Udp(socket) => socket.as_fd(),
            Self::Tcp { stream, .. } => stream.as_fd(),
        }
    }
}

impl Waiting {
    /// Whether the socket is worth a look; false when it is too late.
    fn for_socket(&mut self, socket: &Socket, left: Duration) -> io::Result<bool> {
        match self {
            Self::Spin => Ok(true),
            Self::Block(set) => {
                // A call a message would cost as much as the message: the timeout is set anew only when it changes much.
                if left.is_zero() {
                    return Ok(false);
                }
                if !set.is_some_and(|set| set / 2 <= left && left <= set) {
                    let timeout = left.saturating_mul(5) / 4;
                    socket.set_timeout(timeout)?;
                    *set = Some(timeout);
                }
                Ok(true)
            }
            Self::Epoll(poll) => {
                if left.is_zero() {
                    return Ok(false);
                }
                poll.wait(left)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, Ipv6Addr, TcpListener};

    use super::*;
    use crate::message::{answer, reply, Header, Reply, CLIENT, PONG};

    const WAITS: [Wait; 4] = [Wait::Block, Wait::Spin, Wait::Epoll, Wait::PreferBusyPoll];

    fn message(sequence: u64, length: usize) -> Vec<u8> {
        let mut bytes = vec![7; length];
        Header { sequence, flags: CLIENT | PONG, length: length as u32 }.write(&mut bytes);
        bytes
    }

    fn soon() -> Instant {
        Instant::now() + Duration::from_secs(10)
    }

    #[test]
    fn datagrams_come_back_however_they_are_waited_for() {
        for wait in WAITS {
            for server in [SocketAddr::from((Ipv4Addr::LOCALHOST, 0)), SocketAddr::from((Ipv6Addr::LOCALHOST, 0))] {
                let server = UdpSocket::bind(server).unwrap();
                let mut client = Client::open(Transport::Udp, server.local_addr().unwrap(), wait).unwrap();
                client.send(&message(3, 1000)).unwrap();
                let mut bytes = [0; 2000];
                let (read, from) = server.recv_from(&mut bytes).unwrap();
                assert_eq!(from.port(), client.local().unwrap().port());
                assert!(answer(&mut bytes[..read]));
                server.send_to(&bytes[..read], from).unwrap();
                let Came::Message(message) = client.receive(Instant::now(), soon()).unwrap() else {
                    panic!("{wait:?}")
                };
                assert_eq!(reply(message), Reply::To(3));
                let begun = Instant::now();
                assert_eq!(client.receive(begun, begun + Duration::from_millis(30)).unwrap(), Came::Nothing);
                assert!(begun.elapsed() >= Duration::from_millis(30), "{wait:?}");
                assert_eq!(client.receive(begun, begun).unwrap(), Came::Nothing, "too late already");
            }
        }
    }

    #[test]
    fn a_stream_of_messages_comes_back_in_pieces_and_an_end_is_seen() {
        for wait in WAITS {
            let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
            let mut client = Client::open(Transport::Tcp, listener.local_addr().unwrap(), wait).unwrap();
            let (mut server, _) = listener.accept().unwrap();
            client.send(&message(1, 20)).unwrap();
            client.send(&message(2, 14)).unwrap();
            let mut bytes = [0; 34];
            server.read_exact(&mut bytes).unwrap();
            answer(&mut bytes[..20]);
            answer(&mut bytes[20..]);
            server.write_all(&bytes[..25]).unwrap();
            let Came::Message(first) = client.receive(Instant::now(), soon()).unwrap() else { panic!("{wait:?}") };
            assert_eq!((reply(first), first.len()), (Reply::To(1), 20));
            assert_eq!(
                client.receive(Instant::now(), Instant::now() + Duration::from_millis(20)).unwrap(),
                Came::Nothing
            );
            server.write_all(&bytes[25..]).unwrap();
            let Came::Message(second) = client.receive(Instant::now(), soon()).unwrap() else { panic!("{wait:?}") };
            assert_eq!(reply(second), Reply::To(2));
            server.write_all(&[0; 14]).unwrap();
            assert_eq!(client.receive(Instant::now(), soon()).unwrap(), Came::Garbage, "a message of no length");
            let mut client = Client::open(Transport::Tcp, listener.local_addr().unwrap(), wait).unwrap();
            drop(listener.accept().unwrap());
            assert_eq!(client.receive(Instant::now(), soon()).unwrap(), Came::Closed);
        }
    }

    #[test]
    fn nobody_there_is_an_error_and_not_a_wait() {
        let port = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap();
        let refused = Client::open(Transport::Tcp, port, Wait::Block).unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::ConnectionRefused);
        let mut client = Client::open(Transport::Udp, port, Wait::Block).unwrap();
        client.send(&message(1, 14)).unwrap();
        assert_eq!(client.receive(Instant::now(), soon()).unwrap_err().kind(), io::ErrorKind::ConnectionRefused);
    }
}
