//! TCP and TLS streams with deadlines.

use std::{
    io::{self, Read, Write},
    net::{Shutdown, TcpStream},
    time::{Duration, Instant},
};

use rustls::{ClientConnection, ServerConnection, StreamOwned};

use crate::deadline::within;

/// Longest time that [`Stream::finish`] takes.
const GOODBYE: Duration = Duration::from_millis(200);
/// Most bytes that [`Stream::finish`] reads and discards.
const UNREAD: usize = 1 << 20;

/// A TCP stream. Each read and write ends at the deadline, however slow the other side is.
#[derive(Debug)]
pub struct Timed {
    tcp: TcpStream,
    deadline: Instant,
}

impl Timed {
    fn left(&self) -> io::Result<Duration> {
        let left = self.deadline.saturating_duration_since(Instant::now());
        // The kernel counts in microseconds, and zero means no time-out.
        if left < Duration::from_micros(1) {
            return Err(io::ErrorKind::TimedOut.into());
        }
        Ok(left)
    }
}

/// Linux reports "would block" after a time-out.
fn late(error: io::Error) -> io::Error {
    match error.kind() {
        io::ErrorKind::WouldBlock => io::ErrorKind::TimedOut.into(),
        _ => error,
    }
}

/// Whether the error is a passed deadline.
pub fn timed_out(error: &io::Error) -> bool {
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
pub enum Stream {
    /// TCP.
    Plain(Timed),
    /// TLS, as the server.
    Server(Box<StreamOwned<ServerConnection, Timed>>),
    /// TLS, as the client.
    Client(Box<StreamOwned<ClientConnection, Timed>>),
}

impl Stream {
    /// A TCP stream with this deadline.
    pub fn plain(tcp: TcpStream, deadline: Instant) -> Self {
        // Answers are whole lines: the kernel need not wait for more.
        let _ = tcp.set_nodelay(true);
        Self::Plain(Timed { tcp, deadline })
    }

    /// Makes a plain stream the server side of TLS. The handshake happens at the first read or write.
    pub fn server(self, tls: ServerConnection) -> Self {
        match self {
            Self::Plain(timed) => Self::Server(Box::new(StreamOwned::new(tls, timed))),
            other => other,
        }
    }

    /// Makes a plain stream the client side of TLS.
    pub fn client(self, tls: ClientConnection) -> Self {
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

    /// Sets the deadline of reads and writes. Past it they fail with an error for which [`timed_out`] holds.
    pub fn set_deadline(&mut self, deadline: Instant) {
        self.timed().deadline = deadline;
    }

    /// Writes all `bytes` within `patience`. Errors: the deadline passed, or the connection broke.
    pub fn send(&mut self, bytes: &[u8], patience: Duration) -> io::Result<()> {
        self.set_deadline(within(patience));
        self.write_all(bytes)?;
        self.flush()
    }

    /// Closes the stream so that the other side can read the last line: it sends the end of the stream and reads and
    /// discards what still arrives, for at most 200 ms and 1 MiB. A socket closed with unread bytes would be reset.
    pub fn finish(mut self) {
        let moment = Instant::now() + GOODBYE;
        self.set_deadline(moment);
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
