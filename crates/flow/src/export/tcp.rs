//! IPFIX over TCP.

use std::{
    io::{self, ErrorKind, Write},
    net::{Shutdown, TcpStream},
    sync::Arc,
    time::{Duration, Instant},
};

use super::{
    counters::Counters,
    output::{Output, Trouble},
    resolve::{no_address, resolve},
    spec::ExportSpec,
};
use crate::{
    ipfix::{EncodeSpec, Encoder, Message},
    unix_time::unix_s,
    Record,
};

/// Largest message; TCP has no datagram limit.
const MESSAGE_BYTES: usize = 16 << 10;
const CONNECT: Duration = Duration::from_secs(1);
/// How long a write waits for room.
const WRITE: Duration = Duration::from_millis(100);
/// Interval of the checks whether the collector has closed the connection.
const LOOK: Duration = Duration::from_millis(200);

/// IPFIX over TCP (RFC 7011 10.4): a connection is a session, with templates at its begin.
///
/// Records count as sent when the kernel has the whole message. When a connection breaks, it is not known what was
/// delivered. A message that was cut off is sent again as a whole in the next session.
pub(super) struct Tcp {
    to: String,
    encoder: Encoder,
    counters: Arc<Counters>,
    refresh: Duration,
    stream: Option<TcpStream>,
    /// The current message, its contents, and how much of it is written.
    out: Vec<u8>,
    message: Message,
    written: usize,
    refreshed: Instant,
    looked: Instant,
}

impl Tcp {
    pub fn new(to: &str, encode: EncodeSpec, spec: &ExportSpec, counters: Arc<Counters>) -> Self {
        Self {
            to: to.into(),
            encoder: Encoder::new(EncodeSpec { message_bytes: MESSAGE_BYTES, ..encode }),
            counters,
            refresh: spec.refresh,
            stream: None,
            out: Vec::new(),
            message: Message::default(),
            written: 0,
            refreshed: Instant::now(),
            looked: Instant::now(),
        }
    }

    fn under_way(&self) -> bool {
        self.written < self.out.len()
    }

    fn make(&mut self, records: &[Record], templates: bool, statistics: bool) {
        let statistics = statistics.then(|| self.counters.statistics());
        self.message = self.encoder.message(unix_s(), templates, statistics.as_ref(), records, &mut self.out);
        self.written = 0;
        if statistics.is_some() {
            self.refreshed = Instant::now();
        }
    }

    /// Writes as much of the current message as possible; returns its records once it is complete.
    fn write(&mut self) -> Result<Option<usize>, Trouble> {
        let stream = self.stream.as_mut().ok_or(ErrorKind::NotConnected)?;
        while let Some(rest) = self.out.get(self.written..).filter(|rest| !rest.is_empty()) {
            match stream.write(rest) {
                Ok(0) => return Err(closed()),
                Ok(n) => self.written += n,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if is_wait(&error) => return Ok(None),
                Err(error) => return Err(error),
            }
        }
        if self.out.is_empty() {
            return Ok(Some(0));
        }
        self.encoder.sent(&self.message);
        self.counters.out(self.out.len());
        self.counters.sent(self.message.records);
        self.out.clear();
        self.written = 0;
        Ok(Some(self.message.records))
    }

    /// Checks whether the collector has closed the connection; collectors send nothing.
    fn look(&mut self) -> Result<(), Trouble> {
        let stream = self.stream.as_mut().ok_or(ErrorKind::NotConnected)?;
        let mut bytes = [0; 512];
        let read = stream.set_nonblocking(true).and_then(|()| io::Read::read(stream, &mut bytes));
        stream.set_nonblocking(false)?;
        match read {
            Ok(0) => Err(closed()),
            Ok(_) => Ok(()),
            Err(error) if is_wait(&error) => Ok(()),
            Err(error) => Err(error),
        }
    }
}

fn is_wait(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted)
}

fn closed() -> Trouble {
    io::Error::new(ErrorKind::ConnectionAborted, "closed by the collector")
}

impl Output for Tcp {
    fn open(&mut self) -> Result<(), Trouble> {
        self.stream = None;
        let mut result = Err(no_address(&self.to));
        for to in resolve(&self.to)? {
            result = TcpStream::connect_timeout(&to, CONNECT);
            if result.is_ok() {
                break;
            }
        }
        let stream = result?;
        stream.set_nodelay(true)?;
        stream.set_write_timeout(Some(WRITE))?;
        self.stream = Some(stream);
        self.encoder.restart();
        self.make(&[], true, true);
        self.write().map(drop)
    }

    fn send(&mut self, records: &[Record]) -> Result<usize, Trouble> {
        if self.under_way() && self.message.records == 0 && self.write()?.is_none() {
            return Ok(0);
        }
        if !self.under_way() {
            self.make(records, false, false);
        }
        Ok(self.write()?.unwrap_or(0))
    }

    fn tick(&mut self) -> Result<(), Trouble> {
        if self.looked.elapsed() >= LOOK {
            self.looked = Instant::now();
            self.look()?;
        }
        if !self.under_way() && self.refreshed.elapsed() >= self.refresh {
            self.make(&[], false, true);
        }
        // `send` continues a message with records.
        if self.under_way() && self.message.records == 0 {
            self.write()?;
        }
        Ok(())
    }

    fn close(&mut self) {
        if !self.under_way() {
            self.make(&[], false, true);
            let _ = self.write();
        }
        if let Some(stream) = self.stream.take() {
            let _ = stream.shutdown(Shutdown::Write);
        }
    }
}
