//! Sockets that exporters send to.

use std::{
    collections::HashMap,
    io::{self, Read},
    net::{SocketAddr, TcpListener, TcpStream, UdpSocket},
    sync::{
        atomic::{AtomicBool, AtomicUsize, Ordering},
        Arc, Mutex, PoisonError,
    },
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use super::{decode::Header, Counts, Decoder, Limits, HEADER};
use crate::Record;

/// Interval at which a waiting thread checks whether it must end.
const LOOK: Duration = Duration::from_millis(50);
/// How long already received bytes are still read after the stop.
const LINGER: Duration = Duration::from_secs(2);

/// Where a collector listens, and its limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CollectorSpec {
    /// UDP address.
    pub udp: Option<SocketAddr>,
    /// TCP address.
    pub tcp: Option<SocketAddr>,
    /// Exporters at once, over each of UDP and TCP. Over UDP a new exporter replaces the one that was silent longest;
    /// over TCP it is refused.
    pub sessions: usize,
    /// Limits of each session.
    pub limits: Limits,
    /// Receive buffer of the UDP socket, in bytes; the system may give less (`net.core.rmem_max`).
    pub buffer_bytes: usize,
}

impl Default for CollectorSpec {
    fn default() -> Self {
        Self { udp: None, tcp: None, sessions: 256, limits: Limits::default(), buffer_bytes: 64 << 20 }
    }
}

/// Listens for exporters until it is stopped.
#[derive(Debug)]
pub struct Collector {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
    udp: Option<SocketAddr>,
    tcp: Option<SocketAddr>,
}

/// Receives the flows of a message and the address of the exporter, on the thread that read the message.
type Take = dyn FnMut(SocketAddr, &[Record]) + Send;

struct Shared {
    stop: AtomicBool,
    spec: CollectorSpec,
    take: Mutex<Box<Take>>,
    counts: Mutex<Counts>,
    connections: AtomicUsize,
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shared").field("spec", &self.spec).finish_non_exhaustive()
    }
}

impl Collector {
    /// Binds, and starts a thread for each socket (and one for each TCP connection). `take` gets the flows of each
    /// message, under a lock. While `take` runs, messages wait in the buffers of the kernel, and UDP may lose some.
    ///
    /// # Errors
    ///
    /// The address cannot be bound.
    pub fn start(spec: CollectorSpec, take: impl FnMut(SocketAddr, &[Record]) + Send + 'static) -> io::Result<Self> {
        let udp = spec.udp.map(|address| udp_socket(address, spec.buffer_bytes)).transpose()?;
        let tcp = spec.tcp.map(TcpListener::bind).transpose()?;
        let shared = Arc::new(Shared {
            stop: AtomicBool::new(false),
            spec,
            take: Mutex::new(Box::new(take)),
            counts: Mutex::default(),
            connections: AtomicUsize::new(0),
        });
        let mut this = Self { shared, threads: Vec::new(), udp: None, tcp: None };
        if let Some(socket) = udp {
            this.udp = Some(socket.local_addr()?);
            let shared = Arc::clone(&this.shared);
            this.threads.push(thread::Builder::new().name("ipfix-udp".into()).spawn(move || shared.udp(&socket))?);
        }
        if let Some(listener) = tcp {
            this.tcp = Some(listener.local_addr()?);
            listener.set_nonblocking(true)?;
            let shared = Arc::clone(&this.shared);
            this.threads.push(thread::Builder::new().name("ipfix-tcp".into()).spawn(move || shared.tcp(&listener))?);
        }
        Ok(this)
    }

    /// Where it listens over UDP.
    pub fn udp(&self) -> Option<SocketAddr> {
        self.udp
    }

    /// Where it listens over TCP.
    pub fn tcp(&self) -> Option<SocketAddr> {
        self.tcp
    }

    /// Counts of all sessions so far.
    pub fn counts(&self) -> Counts {
        *self.shared.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads what has arrived, stops listening, and returns the counts.
    pub fn stop(mut self) -> Counts {
        self.end();
        self.counts()
    }

    fn end(&mut self) {
        self.shared.stop.store(true, Ordering::Release);
        for thread in self.threads.drain(..) {
            // A panic comes from `take` and has already been printed.
            let _ = thread.join();
        }
    }
}

impl Drop for Collector {
    fn drop(&mut self) {
        self.end();
    }
}

fn udp_socket(address: SocketAddr, buffer_bytes: usize) -> io::Result<UdpSocket> {
    let socket = UdpSocket::bind(address)?;
    // Above the limit of the system if allowed, otherwise up to the limit.
    if rustix::net::sockopt::set_socket_recv_buffer_size_force(&socket, buffer_bytes).is_err() {
        let _ = rustix::net::sockopt::set_socket_recv_buffer_size(&socket, buffer_bytes);
    }
    socket.set_read_timeout(Some(LOOK))?;
    Ok(socket)
}

/// One exporter.
struct Session {
    decoder: Decoder,
    counted: Counts,
    heard: Instant,
}

impl Session {
    fn new(limits: Limits) -> Self {
        Self { decoder: Decoder::new(limits), counted: Counts::default(), heard: Instant::now() }
    }

    fn over_udp(limits: Limits) -> Self {
        Self { decoder: Decoder::new(limits).over_udp(), ..Self::new(limits) }
    }
}

impl Shared {
    fn stopping(&self) -> bool {
        self.stop.load(Ordering::Acquire)
    }

    /// One message of a session.
    fn message(&self, from: SocketAddr, session: &mut Session, bytes: &[u8], flows: &mut Vec<Record>) {
        flows.clear();
        // The error is counted, and the session goes on.
        let _ = session.decoder.message(bytes, &mut |record| flows.push(*record));
        if !flows.is_empty() {
            (self.take.lock().unwrap_or_else(PoisonError::into_inner))(from, flows);
        }
        session.heard = Instant::now();
        self.count(session);
    }

    /// Adds the counts of a session since the last call.
    fn count(&self, session: &mut Session) {
        let now = session.decoder.counts();
        let mut all = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        all.add_since(now, session.counted);
        session.counted = now;
    }

    fn udp(&self, socket: &UdpSocket) {
        let mut sessions: HashMap<SocketAddr, Session> = HashMap::new();
        let mut bytes = vec![0; 65536];
        let mut flows = Vec::new();
        let mut end = End::default();
        while !end.passed(self) {
            let (n, from) = match socket.recv_from(&mut bytes) {
                Ok(received) => received,
                Err(_) if self.stopping() => return,
                Err(_) => continue,
            };
            if !sessions.contains_key(&from) && sessions.len() >= self.spec.sessions.max(1) {
                let oldest = sessions.iter().min_by_key(|(_, session)| session.heard).map(|(from, _)| *from);
                oldest.map(|from| sessions.remove(&from));
            }
            let session = sessions.entry(from).or_insert_with(|| Session::over_udp(self.spec.limits));
            self.message(from, session, bytes.get(..n).unwrap_or_default(), &mut flows);
        }
    }

    fn tcp(self: &Arc<Self>, listener: &TcpListener) {
        let mut connections: Vec<JoinHandle<()>> = Vec::new();
        while !self.stopping() {
            let Ok((stream, from)) = listener.accept() else {
                thread::sleep(Duration::from_millis(10));
                continue;
            };
            connections.retain(|thread| !thread.is_finished());
            if self.connections.load(Ordering::Acquire) >= self.spec.sessions {
                continue;
            }
            self.connections.fetch_add(1, Ordering::AcqRel);
            let shared = Arc::clone(self);
            let thread = thread::Builder::new().name("ipfix-session".into()).spawn(move || {
                // An error ends this session only.
                let _ = shared.connection(stream, from);
                shared.connections.fetch_sub(1, Ordering::AcqRel);
            });
            match thread {
                Ok(thread) => connections.push(thread),
                Err(_) => _ = self.connections.fetch_sub(1, Ordering::AcqRel),
            }
        }
        for thread in connections {
            let _ = thread.join();
        }
    }

    /// One TCP session: messages until the connection closes or breaks the format (the start of the next message would be
    /// unknown).
    fn connection(&self, mut stream: TcpStream, from: SocketAddr) -> io::Result<()> {
        stream.set_nonblocking(false)?;
        stream.set_read_timeout(Some(LOOK))?;
        let mut session = Session::new(self.spec.limits);
        self.count(&mut session);
        let (mut flows, mut held) = (Vec::new(), Vec::new());
        let mut bytes = vec![0; 65536];
        let mut end = End::default();
        while !end.passed(self) {
            let n = match stream.read(&mut bytes) {
                Ok(0) => return Ok(()),
                Ok(n) => n,
                Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => {
                    if self.stopping() {
                        return Ok(());
                    }
                    continue;
                }
                Err(error) => return Err(error),
            };
            // At most one message and one read.
            held.extend_from_slice(bytes.get(..n).unwrap_or_default());
            let mut rest = held.as_slice();
            while rest.len() >= HEADER {
                let Ok(header) = Header::read(rest) else {
                    self.message(from, &mut session, rest, &mut flows);
                    return Ok(());
                };
                let Some((message, behind)) = rest.split_at_checked(header.length) else { break };
                self.message(from, &mut session, message, &mut flows);
                rest = behind;
            }
            let done = held.len() - rest.len();
            held.drain(..done);
        }
        Ok(())
    }
}

/// When reading ends for one who never falls silent.
#[derive(Debug, Default)]
struct End(Option<Instant>);

impl End {
    fn passed(&mut self, shared: &Shared) -> bool {
        shared.stopping() && self.0.get_or_insert_with(Instant::now).elapsed() > LINGER
    }
}
