//! The other side: answers what asks, in the words of sockperf.

mod datagrams;

use std::{
    io::{self, ErrorKind, Read, Write},
    net::{SocketAddr, TcpListener, TcpStream, UdpSocket},
    os::fd::{AsFd, BorrowedFd},
    sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
    thread,
    time::{Duration, Instant},
};

use datagrams::Datagrams;
use rustix::event::{poll, PollFd, PollFlags, Timespec};
use serde::Serialize;

use crate::{
    message::{self, Stream, MOST_TCP, MOST_UDP},
    socket::{Epoll, Transport, Wait},
};

/// How often a thread that waits looks whether it is to end.
const GLANCE: Duration = Duration::from_millis(100);
/// Connections at once.
const CONNECTIONS: usize = 64;
/// A client that takes no answer for so long is cut off.
const SLOW: Duration = Duration::from_secs(5);
/// A client that sends no whole message for so long is cut off.
const IDLE: Duration = Duration::from_secs(120);
/// The same once another client found no place.
const IDLE_IN_A_CROWD: Duration = Duration::from_secs(5);
/// Looks at a socket between two questions whether to go on, where the thread spins.
const SPINS: u32 = 1024;

/// What a server has done.
#[derive(Debug, Default)]
pub struct Served {
    received: AtomicU64,
    answered: AtomicU64,
    ignored: AtomicU64,
    refused: AtomicU64,
    turned_away: AtomicU64,
}

/// The same as figures.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct ServedCounts {
    /// Datagrams or messages that came.
    pub received: u64,
    /// Answers sent.
    pub answered: u64,
    /// Messages that asked for no answer, or were none.
    pub ignored: u64,
    /// Messages that could not be answered: the client was gone, or the way refused the datagram.
    pub refused: u64,
    /// Connections above the limit, or cut off: they sent something else, took no answers, or were silent.
    pub turned_away: u64,
}

impl Served {
    /// So far.
    pub fn counts(&self) -> ServedCounts {
        let of = |count: &AtomicU64| count.load(Ordering::Relaxed);
        ServedCounts {
            received: of(&self.received),
            answered: of(&self.answered),
            ignored: of(&self.ignored),
            refused: of(&self.refused),
            turned_away: of(&self.turned_away),
        }
    }
}

fn count(what: &AtomicU64) {
    what.fetch_add(1, Ordering::Relaxed);
}

impl std::fmt::Display for ServedCounts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { received, answered, ignored, refused, turned_away } = self;
        write!(
            f,
            "{received} messages came: {answered} answered, {ignored} asked for no answer or were none, {refused} could not \
             be answered"
        )?;
        match turned_away {
            0 => Ok(()),
            1 => write!(f, "; 1 client was turned away or cut off"),
            clients => write!(f, "; {clients} clients were turned away or cut off"),
        }
    }
}

/// How a thread waits for a question.
#[derive(Debug)]
enum Idle {
    /// In the call that receives, for a glance.
    InTheCall,
    Spins,
    Sleeps(Epoll),
}

impl Idle {
    fn of(wait: Wait, socket: BorrowedFd<'_>) -> io::Result<Self> {
        Ok(match wait {
            Wait::Block | Wait::BusyPoll | Wait::PreferBusyPoll => Self::InTheCall,
            Wait::Spin => Self::Spins,
            Wait::Epoll => Self::Sleeps(Epoll::of(socket)?),
        })
    }

    /// Before the call that receives: whether there is something, as far as that is known.
    fn has(&self) -> io::Result<bool> {
        match self {
            Self::InTheCall | Self::Spins => Ok(true),
            Self::Sleeps(poll) => poll.wait(GLANCE),
        }
    }

    fn spins(&self) -> bool {
        matches!(self, Self::Spins)
    }
}

/// A server that is bound and does not answer yet.
#[derive(Debug)]
pub struct Server {
    socket: Socket,
    wait: Wait,
    served: Served,
    /// A client found no place since one was cut off for it.
    crowded: AtomicBool,
}

#[derive(Debug)]
enum Socket {
    Udp(UdpSocket),
    Tcp(TcpListener),
}

impl Server {
    /// Binds to an address.
    ///
    /// # Errors
    ///
    /// As the system says: the port is in use, the address is not here.
    pub fn bind(transport: Transport, address: SocketAddr, wait: Wait) -> io::Result<Self> {
        let socket = match transport {
            Transport::Udp => Socket::Udp(UdpSocket::bind(address)?),
            Transport::Tcp => Socket::Tcp(TcpListener::bind(address)?),
        };
        Ok(Self { socket, wait, served: Served::default(), crowded: AtomicBool::new(false) })
    }

    /// Where it listens.
    ///
    /// # Errors
    ///
    /// As the system says.
    pub fn address(&self) -> io::Result<SocketAddr> {
        match &self.socket {
            Socket::Udp(socket) => socket.local_addr(),
            Socket::Tcp(listener) => listener.local_addr(),
        }
    }

    /// The socket itself, for options; connections take them over from the one that listens.
    pub fn as_fd(&self) -> BorrowedFd<'_> {
        match &self.socket {
            Socket::Udp(socket) => socket.as_fd(),
            Socket::Tcp(listener) => listener.as_fd(),
        }
    }

    /// What it has done.
    pub fn counts(&self) -> ServedCounts {
        self.served.counts()
    }

    /// Answers as long as it may.
    ///
    /// # Errors
    ///
    /// As the system says; what a client does wrong is counted.
    pub fn run(&self, go_on: &(dyn Fn() -> bool + Sync)) -> io::Result<()> {
        match &self.socket {
            Socket::Udp(socket) => self.datagrams(socket, go_on),
            Socket::Tcp(listener) => self.connections(listener, go_on),
        }
    }

    fn datagrams(&self, socket: &UdpSocket, go_on: &(dyn Fn() -> bool + Sync)) -> io::Result<()> {
        let idle = Idle::of(self.wait, socket.as_fd())?;
        match idle {
            Idle::InTheCall => socket.set_read_timeout(Some(GLANCE))?,
            Idle::Spins | Idle::Sleeps(_) => socket.set_nonblocking(true)?,
        }
        socket.set_write_timeout(Some(GLANCE))?;
        let mut buffer = vec![0; MOST_UDP + 1];
        let mut looks = 0u32;
        let mut datagrams = Datagrams::of(socket)?;
        loop {
            if !idle.has()? {
                if !go_on() {
                    return Ok(());
                }
                continue;
            }
            match datagrams.receive(&mut buffer) {
                Ok((read, asker)) => {
                    count(&self.served.received);
                    let asks = asker.can_be_answered() && message::answer(&mut buffer[..read]);
                    match asks.then(|| datagrams.send(&buffer[..read], &asker)) {
                        None => count(&self.served.ignored),
                        Some(Ok(())) => count(&self.served.answered),
                        Some(Err(_)) => count(&self.served.refused),
                    }
                }
                Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                    looks = looks.wrapping_add(1);
                    if (!idle.spins() || looks.is_multiple_of(SPINS)) && !go_on() {
                        return Ok(());
                    }
                    continue;
                }
                // Of an answer that nobody took; or a signal.
                Err(e) if matches!(e.kind(), ErrorKind::ConnectionRefused | ErrorKind::Interrupted) => {}
                Err(e) => return Err(e),
            }
            looks = looks.wrapping_add(1);
            if looks.is_multiple_of(SPINS) && !go_on() {
                return Ok(());
            }
        }
    }

    fn connections(&self, listener: &TcpListener, go_on: &(dyn Fn() -> bool + Sync)) -> io::Result<()> {
        listener.set_nonblocking(true)?;
        let open = AtomicUsize::new(0);
        thread::scope(|s| loop {
            if !go_on() {
                return Ok(());
            }
            match listener.accept() {
                Ok((stream, _)) if open.load(Ordering::Relaxed) < CONNECTIONS => {
                    open.fetch_add(1, Ordering::Relaxed);
                    let open = &open;
                    let serve = move || {
                        let ended = self.connection(stream, go_on);
                        if ended.is_err_and(|e| !is_end_of_a_client(&e)) {
                            count(&self.served.turned_away);
                        }
                        open.fetch_sub(1, Ordering::Relaxed);
                    };
                    // A system that has no thread to spare refuses this client, and goes on with the others.
                    if thread::Builder::new().name("latency-client".to_owned()).spawn_scoped(s, serve).is_err() {
                        count(&self.served.turned_away);
                        open.fetch_sub(1, Ordering::Relaxed);
                    }
                }
                Ok(_) => {
                    count(&self.served.turned_away);
                    self.crowded.store(true, Ordering::Relaxed);
                }
                // Asleep until somebody knocks: a thread that woke up now and then would take the CPU from those that answer.
                Err(e) if e.kind() == ErrorKind::WouldBlock => wait_for_a_knock(listener),
                // A client that was gone before it was taken; too many open files, no memory, a device that is down: for a
                // moment, and those that are connected go on.
                Err(_) => thread::sleep(GLANCE),
            }
        })
    }

    /// Answers one client until it closes.
    fn connection(&self, mut stream: TcpStream, go_on: &(dyn Fn() -> bool + Sync)) -> io::Result<()> {
        stream.set_nodelay(true)?;
        stream.set_write_timeout(Some(GLANCE))?;
        let idle = Idle::of(self.wait, stream.as_fd())?;
        match idle {
            Idle::Spins | Idle::Sleeps(_) => stream.set_nonblocking(true)?,
            Idle::InTheCall => {
                stream.set_nonblocking(false)?;
                stream.set_read_timeout(Some(GLANCE))?;
            }
        }
        let mut buffer = vec![0; 1 << 16];
        let mut messages = Stream::new(MOST_TCP);
        let mut looks = 0u32;
        let mut heard = Instant::now();
        loop {
            looks = looks.wrapping_add(1);
            let came = match idle.has()? {
                true => stream.read(&mut buffer),
                false => Err(ErrorKind::WouldBlock.into()),
            };
            match came {
                Ok(0) => return Ok(()),
                Ok(read) => messages.add(&buffer[..read]),
                Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                    if !idle.spins() || looks.is_multiple_of(SPINS) {
                        if !go_on() {
                            return Ok(());
                        }
                        let silent = heard.elapsed();
                        // One place is made for the one who found none.
                        let in_the_way = silent > IDLE_IN_A_CROWD && self.crowded.swap(false, Ordering::Relaxed);
                        if silent > IDLE || in_the_way {
                            return Err(ErrorKind::TimedOut.into());
                        }
                    }
                    continue;
                }
                Err(e) if e.kind() == ErrorKind::Interrupted => continue,
                Err(e) => return Err(e),
            }
            while let Some(message) = messages.take().map_err(|_| io::Error::from(ErrorKind::InvalidData))? {
                count(&self.served.received);
                heard = Instant::now();
                if message::answer(message) {
                    let sent = send_all(&mut stream, message, go_on);
                    count(if sent.is_ok() { &self.served.answered } else { &self.served.refused });
                    sent?;
                } else {
                    count(&self.served.ignored);
                }
            }
            if looks.is_multiple_of(SPINS) && !go_on() {
                return Ok(());
            }
        }
    }
}

/// A client that had enough may end its connection with answers unread, as sockperf does.
fn is_end_of_a_client(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::ConnectionReset | ErrorKind::BrokenPipe | ErrorKind::ConnectionAborted)
}

/// Sleeps until a client wants to connect, or for a moment.
fn wait_for_a_knock(listener: &TcpListener) {
    let timeout = Timespec { tv_sec: 0, tv_nsec: GLANCE.subsec_nanos().into() };
    // An error is met by the call that accepts.
    if poll(&mut [PollFd::new(listener, PollFlags::IN)], Some(&timeout)).is_err() {
        thread::sleep(GLANCE);
    }
}

/// Writes all of it, also to a socket that does not wait, unless the client takes nothing for long.
fn send_all(stream: &mut TcpStream, mut bytes: &[u8], go_on: &(dyn Fn() -> bool + Sync)) -> io::Result<()> {
    let begun = Instant::now();
    loop {
        match stream.write(bytes) {
            Ok(0) if !bytes.is_empty() => return Err(ErrorKind::WriteZero.into()),
            Ok(written) => bytes = &bytes[written..],
            Err(e) if matches!(e.kind(), ErrorKind::Interrupted | ErrorKind::WouldBlock) => std::hint::spin_loop(),
            Err(e) => return Err(e),
        }
        if bytes.is_empty() {
            return Ok(());
        }
        if begun.elapsed() >= SLOW || !go_on() {
            return Err(ErrorKind::TimedOut.into());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;
    use crate::{
        message::{reply, Header, Reply, CLIENT, HEADER, PONG, WARM_UP},
        socket::{Came, Client},
        testing::with_server,
    };

    fn message(sequence: u64, flags: u16, length: usize) -> Vec<u8> {
        let mut bytes = vec![7; length];
        Header { sequence, flags, length: length as u32 }.write(&mut bytes);
        bytes
    }

    fn soon() -> Instant {
        Instant::now() + Duration::from_secs(10)
    }

    #[test]
    fn what_asks_is_answered_and_nothing_else() {
        for wait in [Wait::Block, Wait::Spin, Wait::Epoll] {
            let ((), counts) = with_server(Transport::Udp, wait, |server| {
                let mut client = Client::open(Transport::Udp, server, Wait::Block).unwrap();
                for hostile in [
                    &message(1, PONG, 64)[..],
                    &message(2, CLIENT, 64),
                    &message(3, CLIENT | PONG | WARM_UP, 64),
                    &message(4, CLIENT | PONG, 64)[..63],
                    &message(5, CLIENT | PONG, 14)[..HEADER - 1],
                    &[],
                ] {
                    client.send(hostile).unwrap();
                }
                client.send(&message(6, CLIENT | PONG, 1472)).unwrap();
                let Came::Message(bytes) = client.receive(Instant::now(), soon()).unwrap() else { panic!("{wait:?}") };
                assert_eq!(
                    (reply(bytes), bytes.len()),
                    (Reply::To(6), 1472),
                    "the first answer is to the last message"
                );
            });
            assert_eq!(
                counts,
                ServedCounts { received: 7, answered: 1, ignored: 6, ..ServedCounts::default() },
                "{wait:?}"
            );
        }
    }

    #[test]
    fn several_connections_are_answered_and_garbage_is_cut_off() {
        for wait in [Wait::Block, Wait::Spin, Wait::Epoll] {
            let ((), counts) = with_server(Transport::Tcp, wait, |server| {
                let mut one = Client::open(Transport::Tcp, server, Wait::Block).unwrap();
                let mut two = Client::open(Transport::Tcp, server, Wait::Spin).unwrap();
                let mut bad = Client::open(Transport::Tcp, server, Wait::Block).unwrap();
                bad.send(&message(1, CLIENT | PONG, 14)[..10]).unwrap();
                bad.send(&[0xff; 40]).unwrap();
                assert_eq!(bad.receive(Instant::now(), soon()).unwrap(), Came::Closed);
                for (client, sequence) in [(&mut one, 8), (&mut two, 9)] {
                    client.send(&message(sequence, CLIENT | PONG, 100_000)).unwrap();
                    let Came::Message(bytes) = client.receive(Instant::now(), soon()).unwrap() else {
                        panic!("{wait:?}")
                    };
                    assert_eq!((reply(bytes), bytes.len()), (Reply::To(sequence), 100_000));
                }
            });
            assert_eq!((counts.received, counts.answered, counts.turned_away), (2, 2, 1), "{wait:?}: {counts:?}");
        }
    }

    #[test]
    fn a_silent_client_makes_place_for_one_that_found_none() {
        with_server(Transport::Tcp, Wait::Block, |server| {
            let silent: Vec<_> = (0..CONNECTIONS).map(|_| TcpStream::connect(server).unwrap()).collect();
            let until = soon() + IDLE_IN_A_CROWD;
            loop {
                let mut late = Client::open(Transport::Tcp, server, Wait::Block).unwrap();
                // The server may close it before or behind the message.
                let sent = late.send(&message(1, CLIENT | PONG, 14));
                if sent.is_ok() && matches!(late.receive(Instant::now(), soon()), Ok(Came::Message(_))) {
                    break;
                }
                assert!(Instant::now() < until, "no place in time");
                thread::sleep(GLANCE);
            }
            // The others stay.
            let closed = silent.iter().filter(|stream| {
                stream.set_nonblocking(true).unwrap();
                matches!(stream.peek(&mut [0]), Ok(0))
            });
            assert!(closed.count() <= 2);
        });
    }

    #[test]
    fn a_flood_ends_when_the_server_is_to() {
        let ((), counts) = with_server(Transport::Udp, Wait::Block, |server| {
            let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
            (0..2000).for_each(|n| {
                let _ = socket.send_to(&message(n, CLIENT | PONG, 64), server);
            });
        });
        assert_eq!(counts.received, counts.answered + counts.ignored + counts.refused);
    }
}
