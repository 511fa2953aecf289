use std::{
    io,
    net::{Shutdown, SocketAddr, TcpListener, TcpStream},
    os::unix::net::UnixStream,
    sync::{Arc, Mutex, Weak},
    thread::{self, JoinHandle},
    time::Duration,
};

use rustix::event::{poll, PollFd, PollFlags};

use super::{stop::lock, Stop};

/// So many more than the limit are told that there is no room; any beyond them are closed at once.
const TURNED_AWAY: usize = 8;

/// Who came.
#[derive(Debug)]
pub(crate) struct Guest {
    /// The connection.
    pub(crate) tcp: TcpStream,
    /// Beyond the limit: to be told so and let go.
    pub(crate) beyond: bool,
}

/// A listening socket and one thread for each who connects, up to a limit. Dropped, it ends them all and waits for them.
#[derive(Debug)]
pub(crate) struct Acceptor {
    address: SocketAddr,
    stop: Arc<Stop>,
    /// Closed to wake the listening thread.
    waker: Option<UnixStream>,
    thread: Option<JoinHandle<()>>,
    guests: Arc<Mutex<Vec<Served>>>,
}

#[derive(Debug)]
struct Served {
    /// A second handle on the connection, to end what the thread waits for; the thread's, so that it closes with it.
    tcp: Weak<TcpStream>,
    thread: JoinHandle<()>,
    beyond: bool,
}

impl Acceptor {
    /// Listens and serves until dropped. `stop` is set then, before the connections are shut down.
    pub(crate) fn start(
        listen: SocketAddr,
        name: &'static str,
        limit: usize,
        stop: Arc<Stop>,
        serve: impl Fn(Guest) + Send + Sync + 'static,
    ) -> io::Result<Self> {
        let listener = TcpListener::bind(listen)?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let (waker, woken) = UnixStream::pair()?;
        let guests = Arc::new(Mutex::new(Vec::new()));
        let (seen, theirs) = (Arc::clone(&stop), Arc::clone(&guests));
        let serve: Arc<dyn Fn(Guest) + Send + Sync> = Arc::new(serve);
        let accept = move || accept(&listener, &woken, name, limit, &seen, &theirs, &serve);
        let thread = thread::Builder::new().name(name.into()).spawn(accept)?;
        Ok(Self { address, stop, waker: Some(waker), thread: Some(thread), guests })
    }

    /// Where it listens.
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// How many are served now.
    pub(crate) fn guests(&self) -> usize {
        lock(&self.guests).iter().filter(|g| !g.thread.is_finished() && !g.beyond).count()
    }
}

impl Drop for Acceptor {
    fn drop(&mut self) {
        self.stop.stop();
        self.waker = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
        let guests = std::mem::take(&mut *lock(&self.guests));
        for tcp in guests.iter().filter_map(|guest| guest.tcp.upgrade()) {
            let _ = tcp.shutdown(Shutdown::Both);
        }
        for guest in guests {
            let _ = guest.thread.join();
        }
    }
}

fn accept(
    listener: &TcpListener,
    woken: &UnixStream,
    name: &str,
    limit: usize,
    stop: &Stop,
    guests: &Mutex<Vec<Served>>,
    serve: &Arc<dyn Fn(Guest) + Send + Sync>,
) {
    while !stop.stopped() {
        let mut ready = [PollFd::new(listener, PollFlags::IN), PollFd::new(woken, PollFlags::IN)];
        let _ = poll(&mut ready, None);
        if stop.stopped() {
            return;
        }
        let tcp = match listener.accept() {
            Ok((tcp, _)) => tcp,
            // Nobody after all, or no file descriptors left: those that there are will be given back.
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => continue,
            Err(_) => {
                stop.sleep(Duration::from_millis(50));
                continue;
            }
        };
        let mut guests = lock(guests);
        guests.retain(|g| !g.thread.is_finished());
        let beyond = guests.iter().filter(|g| !g.beyond).count() >= limit;
        if beyond && guests.len() >= limit + TURNED_AWAY {
            continue;
        }
        let Ok(second) = tcp.set_nonblocking(false).and_then(|()| tcp.try_clone()) else { continue };
        let second = Arc::new(second);
        let (serve, weak) = (Arc::clone(serve), Arc::downgrade(&second));
        let run = move || {
            serve(Guest { tcp, beyond });
            drop(second);
        };
        if let Ok(thread) = thread::Builder::new().name(format!("{name}-guest")).spawn(run) {
            guests.push(Served { tcp: weak, thread, beyond });
        }
    }
}
