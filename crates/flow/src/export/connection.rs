//! A connection to a collector, over TCP, TLS or SCTP, with its bytes counted.

use std::{
    io::{self, ErrorKind, Read, Write},
    net::{Shutdown, SocketAddr, TcpStream},
    time::Duration,
};

use net::{client_tls, sctp_connect, SctpProbe, TcpProbe, TcpState};
use rustls::{ClientConnection, StreamOwned};

use super::spec::{TcpSpec, Transport};

const CONNECT: Duration = Duration::from_secs(1);
/// How long a write waits for room, and a read at the end for the collector.
const WAIT: Duration = Duration::from_millis(100);

/// A connection. Reads and writes wait for a tenth of a second at most.
#[derive(Debug)]
pub(super) struct Connection {
    stream: Stream,
    probe: Option<Probe>,
}

/// Who tells how much has arrived.
#[derive(Debug)]
enum Probe {
    Tcp(TcpProbe),
    Sctp(SctpProbe),
}

#[derive(Debug)]
enum Stream {
    Plain(Counted),
    Tls(Box<StreamOwned<ClientConnection, Counted>>),
}

/// A stream of TCP or SCTP that counts the bytes that the kernel took.
#[derive(Debug)]
struct Counted {
    tcp: TcpStream,
    written: u64,
}

impl Read for Counted {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.tcp.read(into)
    }
}

impl Write for Counted {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let n = self.tcp.write(bytes)?;
        self.written += n as u64;
        Ok(n)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Connection {
    /// Connects, and with TLS checks who the collector is. Errors: nobody listens, the files of TLS cannot be used, or the
    /// collector is not trusted.
    pub fn open(to: SocketAddr, spec: &TcpSpec) -> io::Result<Self> {
        let tls = spec.tls.as_ref().map(|tls| client_tls(&tls.trust, tls.own.as_ref(), &spec.address)).transpose();
        let tls = tls.map_err(|error| io::Error::new(ErrorKind::InvalidInput, error.to_string()))?;
        let tcp = match spec.transport {
            Transport::Sctp => sctp_connect(to, CONNECT)?,
            Transport::Tcp => {
                let tcp = TcpStream::connect_timeout(&to, CONNECT)?;
                tcp.set_nodelay(true)?;
                tcp
            }
        };
        // The handshake is a second's work on a far or a busy machine.
        tcp.set_write_timeout(Some(CONNECT))?;
        tcp.set_read_timeout(Some(CONNECT))?;
        // Without it, nothing is known to be read before the end.
        let probe = match spec.transport {
            Transport::Tcp => TcpProbe::new(&tcp).ok().map(Probe::Tcp),
            Transport::Sctp => SctpProbe::new(&tcp).ok().map(Probe::Sctp),
        };
        let mut counted = Counted { tcp, written: 0 };
        let stream = match tls {
            None => Stream::Plain(counted),
            Some(mut tls) => {
                while tls.is_handshaking() {
                    tls.complete_io(&mut counted).map_err(|error| match is_wait(&error) {
                        true => io::Error::new(ErrorKind::TimedOut, "no answer to the TLS handshake: does it use TLS?"),
                        // webpki's word for it.
                        false if error.to_string().contains("CaUsedAsEndEntity") => {
                            let why = "its certificate is that of an authority: sign one for it with that authority";
                            io::Error::new(error.kind(), why)
                        }
                        false => error,
                    })?;
                }
                Stream::Tls(Box::new(StreamOwned::new(tls, counted)))
            }
        };
        let this = Self { stream, probe };
        this.counted().tcp.set_write_timeout(Some(WAIT))?;
        this.counted().tcp.set_read_timeout(Some(WAIT))?;
        Ok(this)
    }

    fn counted(&self) -> &Counted {
        match &self.stream {
            Stream::Plain(counted) => counted,
            Stream::Tls(tls) => &tls.sock,
        }
    }

    /// Bytes of the session that the kernel took.
    pub fn written(&self) -> u64 {
        self.counted().written
    }

    /// What the kernel knows of it; `None` if it is gone, or on an old kernel. Of SCTP it does not tell the window.
    pub fn state(&self) -> Option<TcpState> {
        match self.probe.as_ref()? {
            Probe::Tcp(tcp) => tcp.read().ok(),
            Probe::Sctp(sctp) => {
                let on_the_way = sctp.on_the_way().ok()??;
                Some(TcpState { acknowledged: self.written().saturating_sub(on_the_way), window: 0 })
            }
        }
    }

    fn is_sctp(&self) -> bool {
        matches!(self.probe, Some(Probe::Sctp(_)))
    }

    /// Bytes that have arrived of a connection which the collector has ended, and did not reset. An association of SCTP that is
    /// gone then has delivered everything (RFC 9260 9.2).
    pub fn arrived(&self) -> Option<u64> {
        self.state().map(|state| state.acknowledged).or_else(|| self.is_sctp().then(|| self.written()))
    }

    /// Writes; `None`: no room for a tenth of a second.
    pub fn write(&mut self, bytes: &[u8]) -> io::Result<Option<usize>> {
        let wrote = match &mut self.stream {
            Stream::Plain(counted) => counted.write(bytes),
            Stream::Tls(tls) => tls.write(bytes),
        };
        waited(wrote)
    }

    /// Whether the kernel has everything that was written; waits a tenth of a second for room.
    pub fn flush(&mut self) -> io::Result<bool> {
        match &mut self.stream {
            Stream::Plain(_) => Ok(true),
            Stream::Tls(tls) => waited(tls.flush()).map(|done| done.is_some()),
        }
    }

    /// Whether the collector has ended the connection; without waiting. Collectors send nothing else.
    pub fn has_ended(&mut self) -> io::Result<bool> {
        self.counted().tcp.set_nonblocking(true)?;
        let read = self.read();
        self.counted().tcp.set_nonblocking(false)?;
        Ok(read? == Some(0))
    }

    /// Ends our side. The collector's side stays open for [`Self::read`].
    pub fn end(&mut self) {
        if let Stream::Tls(tls) = &mut self.stream {
            tls.conn.send_close_notify();
            let _ = tls.flush();
        }
        let _ = self.counted().tcp.shutdown(Shutdown::Write);
    }

    /// Reads and throws away; `None`: nothing for a tenth of a second, 0: the end.
    pub fn read(&mut self) -> io::Result<Option<usize>> {
        let mut bytes = [0; 512];
        let read = match &mut self.stream {
            Stream::Plain(counted) => counted.read(&mut bytes),
            Stream::Tls(tls) => tls.read(&mut bytes),
        };
        match read {
            // TLS without its own end: the connection has ended all the same.
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => Ok(Some(0)),
            // An association of SCTP has no half: when both kernels have agreed on its end, it is gone.
            Err(error) if error.kind() == ErrorKind::NotConnected && self.is_sctp() => Ok(Some(0)),
            other => waited(other),
        }
    }
}

fn waited<T>(result: io::Result<T>) -> io::Result<Option<T>> {
    match result {
        Ok(done) => Ok(Some(done)),
        Err(error) if is_wait(&error) => Ok(None),
        Err(error) => Err(error),
    }
}

fn is_wait(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted)
}
