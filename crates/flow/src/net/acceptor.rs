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

use super::{stop::lock, Stop};

/// So many more than the limit are told that there is no room; any beyond them are closed at once.
const TURNED_AWAY: usize = 8;

/// Who came.
#[derive(Debug)]
pub(crate) struct Guest {
    /// The connection.
    pub(crate) tcp: TcpStream,
    /// Beyond a limit: to be told so and let go.
    pub(crate) beyond: Option<Beyond>,
    /// To be set when the guest has shown that it may be here.
    pub(crate) trusted: Arc<AtomicBool>,
}

/// Which limit is reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Beyond {
    /// So many are here.
    All(usize),
    /// So many are here from one address.
    Peer(usize),
    /// So many are here from one address that have not shown that they may.
    Doubted(usize),
}

/// How many may be here at once.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Room {
    /// In all.
    all: usize,
    /// From one address that is not of this machine, so that one peer cannot shut out the others.
    peer: usize,
    /// Of these, not trusted yet.
    doubted: usize,
}

impl Room {
    /// For so many, a quarter of them from one peer; with `proof` only a sixteenth that have yet to give it.
    pub(crate) fn of(all: usize, proof: bool) -> Self {
        let peer = all.div_ceil(4);
        Self { all, peer, doubted: if proof { all.div_ceil(16) } else { peer } }
    }

    /// Why one more from `peer` is one too many, beside those who are here: from where, and whether they are trusted.
    fn beyond(&self, here: &[(IpAddr, bool)], peer: IpAddr) -> Option<Beyond> {
        if here.len() >= self.all {
            return Some(Beyond::All(here.len()));
        }
        if peer.to_canonical().is_loopback() {
            return None;
        }
        let same = here.iter().filter(|(from, _)| *from == peer).count();
        let doubted = here.iter().filter(|(from, trusted)| *from == peer && !trusted).count();
        match same >= self.peer {
            true => Some(Beyond::Peer(same)),
            false => (doubted >= self.doubted).then_some(Beyond::Doubted(doubted)),
        }
    }
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
    peer: IpAddr,
    trusted: Arc<AtomicBool>,
    beyond: bool,
}

impl Acceptor {
    /// Listens and serves until dropped. `stop` is set then, before the connections are shut down.
    pub(crate) fn start(
        listen: SocketAddr,
        name: &'static str,
        room: Room,
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
        let accept = move || accept(&listener, &woken, name, room, &seen, &theirs, &serve);
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
    room: Room,
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
        let (tcp, peer) = match listener.accept() {
            Ok((tcp, peer)) => (tcp, peer.ip()),
            // Nobody after all, or no file descriptors left: those that there are will be given back.
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => continue,
            Err(_) => {
                stop.sleep(Duration::from_millis(50));
                continue;
            }
        };
        let mut guests = lock(guests);
        guests.retain(|g| !g.thread.is_finished());
        let here: Vec<_> =
            guests.iter().filter(|g| !g.beyond).map(|g| (g.peer, g.trusted.load(Ordering::Relaxed))).collect();
        let beyond = room.beyond(&here, peer);
        if beyond.is_some() && guests.iter().filter(|g| g.beyond).count() >= TURNED_AWAY {
            continue;
        }
        let Ok(second) = tcp.set_nonblocking(false).and_then(|()| tcp.try_clone()) else { continue };
        let second = Arc::new(second);
        let (serve, weak) = (Arc::clone(serve), Arc::downgrade(&second));
        let trusted = Arc::new(AtomicBool::new(false));
        let guest = Guest { tcp, beyond, trusted: Arc::clone(&trusted) };
        let run = move || {
            serve(guest);
            drop(second);
        };
        if let Ok(thread) = thread::Builder::new().name(format!("{name}-guest")).spawn(run) {
            guests.push(Served { tcp: weak, thread, peer, trusted, beyond: beyond.is_some() });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_peer_cannot_take_the_room_of_others() {
        let [here, far, other] = ["127.0.0.1", "192.0.2.1", "192.0.2.2"].map(|a| a.parse::<IpAddr>().unwrap());
        let room = Room::of(64, true);
        let beyond = |guests: &[(IpAddr, bool, usize)], peer| {
            let all: Vec<_> = guests.iter().flat_map(|&(from, trusted, n)| vec![(from, trusted); n]).collect();
            room.beyond(&all, peer)
        };
        assert_eq!(beyond(&[(far, false, 3)], far), None);
        assert_eq!(beyond(&[(far, false, 4)], far), Some(Beyond::Doubted(4)));
        assert_eq!(beyond(&[(far, false, 4)], other), None);
        assert_eq!(beyond(&[(far, true, 15), (far, false, 1)], far), Some(Beyond::Peer(16)));
        assert_eq!(beyond(&[(far, true, 16)], other), None);
        assert_eq!(beyond(&[(here, false, 63)], here), None);
        assert_eq!(beyond(&[(here, false, 63), (far, true, 1)], other), Some(Beyond::All(64)));
        assert_eq!(Room::of(64, false).beyond(&[(far, false); 15], far), None, "nobody is asked for a proof");
    }
}
