//! A listening socket and the threads that serve its connections.

use std::{
    io,
    net::{IpAddr, Shutdown, SocketAddr, TcpListener, TcpStream},
    os::unix::net::UnixStream,
    sync::{
        atomic::{AtomicBool, Ordering},
        Arc, Mutex, Weak,
    },
    thread::{self, JoinHandle},
    time::Duration,
};

use rustix::event::{poll, PollFd, PollFlags};

use crate::{
    limits::{Limit, Limits},
    stop::{lock, Stop},
};

/// Connections over a limit that are answered at once; further ones are closed without an answer.
const MAX_REFUSALS: usize = 8;

/// An accepted connection.
#[derive(Debug)]
pub struct Connection {
    /// Its socket.
    pub tcp: TcpStream,
    /// The limit it exceeds, if any. The server then answers with the reason and ends the connection.
    pub over_limit: Option<Limit>,
    /// The server sets it when the client has shown the token.
    pub authenticated: Arc<AtomicBool>,
}

/// A listening socket and one thread for each connection, up to a limit. Dropping it ends all connections and waits for
/// their threads.
#[derive(Debug)]
pub struct Acceptor {
    address: SocketAddr,
    stop: Arc<Stop>,
    /// Closing it wakes the listening thread.
    waker: Option<UnixStream>,
    thread: Option<JoinHandle<()>>,
    connections: Arc<Mutex<Vec<Served>>>,
}

#[derive(Debug)]
struct Served {
    /// A second handle on the socket, to end a read or write in the thread. The thread owns it, so it closes with it.
    tcp: Weak<TcpStream>,
    thread: JoinHandle<()>,
    peer: IpAddr,
    authenticated: Arc<AtomicBool>,
    over_limit: bool,
}

impl Acceptor {
    /// Binds `listen` and calls `serve` for each connection, on a thread of its own named after `name`. When dropped, it sets
    /// `stop` before it shuts the connections down. Errors: the address cannot be bound, or the system allows no thread.
    pub fn start(
        listen: SocketAddr,
        name: &'static str,
        limits: Limits,
        stop: Arc<Stop>,
        serve: impl Fn(Connection) + Send + Sync + 'static,
    ) -> io::Result<Self> {
        let listener = TcpListener::bind(listen)?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let (waker, woken) = UnixStream::pair()?;
        let connections = Arc::new(Mutex::new(Vec::new()));
        let (seen, open) = (Arc::clone(&stop), Arc::clone(&connections));
        let serve: Arc<dyn Fn(Connection) + Send + Sync> = Arc::new(serve);
        let accept = move || accept(&listener, &woken, name, limits, &seen, &open, &serve);
        let thread = thread::Builder::new().name(name.into()).spawn(accept)?;
        Ok(Self { address, stop, waker: Some(waker), thread: Some(thread), connections })
    }

    /// The address it listens on, with the port that was chosen.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// How many connections are served now; those over a limit do not count.
    pub fn connections(&self) -> usize {
        lock(&self.connections).iter().filter(|c| !c.thread.is_finished() && !c.over_limit).count()
    }
}

impl Drop for Acceptor {
    fn drop(&mut self) {
        self.stop.stop();
        self.waker = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
        let connections = std::mem::take(&mut *lock(&self.connections));
        for tcp in connections.iter().filter_map(|c| c.tcp.upgrade()) {
            let _ = tcp.shutdown(Shutdown::Both);
        }
        for connection in connections {
            let _ = connection.thread.join();
        }
    }
}

fn accept(
    listener: &TcpListener,
    woken: &UnixStream,
    name: &str,
    limits: Limits,
    stop: &Stop,
    connections: &Mutex<Vec<Served>>,
    serve: &Arc<dyn Fn(Connection) + Send + Sync>,
) {
    while !stop.stopped() {
        let mut ready = [PollFd::new(listener, PollFlags::IN), PollFd::new(woken, PollFlags::IN)];
        let _ = poll(&mut ready, None);
        if stop.stopped() {
            return;
        }
        let (tcp, peer) = match listener.accept() {
            Ok((tcp, peer)) => (tcp, peer.ip()),
            // The client left again, or no file descriptor is free: ended connections will free some.
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => continue,
            Err(_) => {
                stop.sleep(Duration::from_millis(50));
                continue;
            }
        };
        let mut connections = lock(connections);
        connections.retain(|c| !c.thread.is_finished());
        let open: Vec<_> = connections
            .iter()
            .filter(|c| !c.over_limit)
            .map(|c| (c.peer, c.authenticated.load(Ordering::Relaxed)))
            .collect();
        let over_limit = limits.exceeded(&open, peer);
        if over_limit.is_some() && connections.iter().filter(|c| c.over_limit).count() >= MAX_REFUSALS {
            continue;
        }
        let Ok(second) = tcp.set_nonblocking(false).and_then(|()| tcp.try_clone()) else { continue };
        let second = Arc::new(second);
        let (serve, weak) = (Arc::clone(serve), Arc::downgrade(&second));
        let authenticated = Arc::new(AtomicBool::new(false));
        let connection = Connection { tcp, over_limit, authenticated: Arc::clone(&authenticated) };
        let run = move || {
            serve(connection);
            drop(second);
        };
        if let Ok(thread) = thread::Builder::new().name(format!("{name}-client")).spawn(run) {
            connections.push(Served { tcp: weak, thread, peer, authenticated, over_limit: over_limit.is_some() });
        }
    }
}
