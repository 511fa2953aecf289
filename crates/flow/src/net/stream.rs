use std::{
    io::{self, Read, Write},
    net::{Shutdown, TcpStream},
    time::{Duration, Instant},
};

use rustls::{ClientConnection, ServerConnection, StreamOwned};

/// What a goodbye may take, and how much is read of what the other side still sends, bytes.
const GOODBYE: Duration = Duration::from_millis(200);
const UNREAD: usize = 1 << 20;

/// A TCP stream whose every read and write ends by a deadline, however slowly the other side moves.
#[derive(Debug)]
pub(crate) struct Timed {
    tcp: TcpStream,
    deadline: Instant,
}

impl Timed {
    fn left(&self) -> io::Result<Duration> {
        let left = self.deadline.saturating_duration_since(Instant::now());
        // The kernel counts in microseconds, and zero means for ever.
        if left < Duration::from_micros(1) {
            return Err(io::ErrorKind::TimedOut.into());
        }
        Ok(left)
    }
}

/// Linux says "would block" when a time-out has passed.
fn late(error: io::Error) -> io::Error {
    match error.kind() {
        io::ErrorKind::WouldBlock => io::ErrorKind::TimedOut.into(),
        _ => error,
    }
}

/// Whether the deadline passed, and nothing else is wrong.
pub(crate) fn timed_out(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::TimedOut
}

impl Read for Timed {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.tcp.set_read_timeout(Some(self.left()?))?;
        self.tcp.read(buffer).map_err(late)
    }
}

impl Write for Timed {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.tcp.set_write_timeout(Some(self.left()?))?;
        self.tcp.write(bytes).map_err(late)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A stream, plain or over TLS, with a deadline.
#[derive(Debug)]
pub(crate) enum Stream {
    Plain(Timed),
    Server(Box<StreamOwned<ServerConnection, Timed>>),
    Client(Box<StreamOwned<ClientConnection, Timed>>),
}

impl Stream {
    /// A plain one.
    pub(crate) fn plain(tcp: TcpStream, deadline: Instant) -> Self {
        // Answers are whole lines: none has to wait for another.
        let _ = tcp.set_nodelay(true);
        Self::Plain(Timed { tcp, deadline })
    }

    /// The server's side of TLS over a plain one; the handshake comes with the first read or write.
    pub(crate) fn server(self, tls: ServerConnection) -> Self {
        match self {
            Self::Plain(timed) => Self::Server(Box::new(StreamOwned::new(tls, timed))),
            other => other,
        }
    }

    /// The client's side of TLS over a plain one.
    pub(crate) fn client(self, tls: ClientConnection) -> Self {
        match self {
            Self::Plain(timed) => Self::Client(Box::new(StreamOwned::new(tls, timed))),
            other => other,
        }
    }

    fn timed(&mut self) -> &mut Timed {
        match self {
            Self::Plain(timed) => timed,
            Self::Server(tls) => &mut tls.sock,
            Self::Client(tls) => &mut tls.sock,
        }
    }

    /// Reads and writes from now on end by then, with [`timed_out`].
    pub(crate) fn deadline(&mut self, deadline: Instant) {
        self.timed().deadline = deadline;
    }

    /// Writes all of it within so long.
    pub(crate) fn send(&mut self, bytes: &[u8], patience: Duration) -> io::Result<()> {
        self.deadline(super::within(patience));
        self.write_all(bytes)?;
        self.flush()
    }

    /// Says goodbye and waits a moment for the other side to have read it: a socket closed with unread bytes in it is
    /// reset, and the last line would be lost. Who goes on sending meanwhile is read no further, and made to wait.
    pub(crate) fn finish(mut self) {
        let moment = Instant::now() + GOODBYE;
        self.deadline(moment);
        match &mut self {
            Self::Plain(_) => {}
            Self::Server(tls) => {
                tls.conn.send_close_notify();
                let _ = tls.flush();
            }
            Self::Client(tls) => {
                tls.conn.send_close_notify();
                let _ = tls.flush();
            }
        }
        let timed = self.timed();
        let _ = timed.tcp.shutdown(Shutdown::Write);
        let (mut rest, mut read) = ([0; 4096], 0);
        while read < UNREAD {
            match timed.read(&mut rest) {
                Ok(n) if n > 0 => read += n,
                _ => return,
            }
        }
        std::thread::sleep(moment.saturating_duration_since(Instant::now()));
    }
}

impl Read for Stream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Plain(timed) => timed.read(buffer),
            Self::Server(tls) => tls.read(buffer),
            Self::Client(tls) => tls.read(buffer),
        }
    }
}

impl Write for Stream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Plain(timed) => timed.write(bytes),
            Self::Server(tls) => tls.write(bytes),
            Self::Client(tls) => tls.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Plain(timed) => timed.flush(),
            Self::Server(tls) => tls.flush(),
            Self::Client(tls) => tls.flush(),
        }
    }
}
