//! IPFIX over TCP, TLS and SCTP.

use std::{
    collections::VecDeque,
    io::{self, ErrorKind},
    sync::Arc,
    time::{Duration, Instant},
};

use super::{
    connection::Connection,
    counters::Counters,
    delivery::Delivery,
    event::Change,
    output::{Output, Trouble},
    resolve::{no_address, resolve},
    spec::{ExportSpec, TcpSpec, Transport},
};
use crate::{
    ipfix::{EncodeSpec, Encoder, Message},
    unix_time::unix_s,
    Record,
};

/// Largest message; TCP has no datagram limit.
const MESSAGE_BYTES: usize = 16 << 10;
/// Interval of the checks whether the collector has closed the connection, and how much it has read.
const LOOK: Duration = Duration::from_millis(200);
/// Messages that are sent again at once.
const RESENDS: usize = 64;
/// How long the last records of a session have until the collector has read them.
const LAST: Duration = Duration::from_millis(900);

/// IPFIX over TCP (RFC 7011 10.4), TLS (11.1) or SCTP (10.2): a connection is a session, with templates at its begin.
///
/// Records count as sent when the kernel has the whole message. When a connection breaks, those that the collector may not
/// have read ([`Delivery`]) count as uncertain, and are sent again in the next session by templates of their own. A message that
/// was cut off is sent again as a whole.
pub(super) struct Tcp {
    to: TcpSpec,
    encoder: Encoder,
    counters: Arc<Counters>,
    log: Box<dyn Fn(Change) + Send>,
    refresh: Duration,
    connection: Option<Connection>,
    /// The current message, its contents, and how much of it is written. Empty when it is with the kernel.
    out: Vec<u8>,
    message: Message,
    written: usize,
    /// The records of the current message; whether they are sent again.
    records: Vec<Record>,
    resends: bool,
    delivery: Delivery,
    /// Records of earlier sessions, to be sent again before all others; how many there were.
    again: VecDeque<Record>,
    to_resend: usize,
    refreshed: Instant,
    looked: Instant,
}

impl Tcp {
    pub fn new(
        to: TcpSpec,
        encode: EncodeSpec,
        spec: &ExportSpec,
        counters: Arc<Counters>,
        log: Box<dyn Fn(Change) + Send>,
    ) -> Self {
        let delivery = match to.transport {
            Transport::Tcp => Delivery::default(),
            Transport::Sctp => Delivery::without_window(),
        };
        Self {
            to,
            encoder: Encoder::new(EncodeSpec { message_bytes: MESSAGE_BYTES, ..encode }),
            counters,
            log,
            refresh: spec.refresh,
            connection: None,
            out: Vec::new(),
            message: Message::default(),
            written: 0,
            records: Vec::new(),
            resends: false,
            delivery,
            again: VecDeque::new(),
            to_resend: 0,
            refreshed: Instant::now(),
            looked: Instant::now(),
        }
    }

    fn under_way(&self) -> bool {
        !self.out.is_empty()
    }

    fn make(&mut self, records: &[Record], templates: bool, statistics: bool) {
        let statistics = statistics.then(|| self.counters.statistics());
        self.message = self.encoder.message(unix_s(), templates, statistics.as_ref(), records, &mut self.out);
        self.records.clear();
        self.records.extend_from_slice(records.get(..self.message.records).unwrap_or_default());
        self.resends = false;
        self.written = 0;
        if statistics.is_some() {
            self.refreshed = Instant::now();
        }
    }

    /// A message of records that are sent again.
    fn make_again(&mut self) {
        let records = self.again.make_contiguous();
        self.message = self.encoder.message_again(unix_s(), records, &mut self.out);
        self.records.clear();
        self.records.extend(self.again.drain(..self.message.records.min(self.again.len())));
        self.resends = true;
        self.written = 0;
    }

    /// Writes as much of the current message as possible. Returns whether the kernel has all of it.
    fn write(&mut self) -> Result<bool, Trouble> {
        let connection = self.connection.as_mut().ok_or(ErrorKind::NotConnected)?;
        while let Some(rest) = self.out.get(self.written..).filter(|rest| !rest.is_empty()) {
            match connection.write(rest)? {
                Some(0) => return Err(closed()),
                Some(n) => self.written += n,
                None => return Ok(false),
            }
        }
        if !connection.flush()? {
            return Ok(false);
        }
        let written = connection.written();
        if !self.under_way() {
            return Ok(true);
        }
        self.encoder.sent(&self.message);
        self.counters.out(self.out.len());
        self.delivery.sent(written, self.records.drain(..));
        if self.resends {
            self.counters.resent(self.message.records);
            self.counters.uncertain(self.again.len());
            if self.again.is_empty() {
                (self.log)(Change::Resent { records: self.to_resend as u64 });
            }
        } else {
            self.counters.sent(self.message.records);
        }
        self.out.clear();
        self.written = 0;
        Ok(true)
    }

    /// Sends what earlier sessions may not have delivered. Returns whether nothing of it is left.
    fn resend(&mut self) -> Result<bool, Trouble> {
        if self.under_way() && self.resends && !self.write()? {
            return Ok(false);
        }
        if self.again.is_empty() {
            return Ok(true);
        }
        if !self.under_way() {
            self.make_again();
            self.write()?;
        }
        Ok(!self.under_way() && self.again.is_empty())
    }

    /// Looks how much the collector has read, and whether it has closed the connection.
    fn look(&mut self) -> Result<(), Trouble> {
        let connection = self.connection.as_mut().ok_or(ErrorKind::NotConnected)?;
        if let Some(state) = connection.state() {
            self.delivery.seen(state.acknowledged, state.window);
        }
        if connection.has_ended()? {
            return Err(closed());
        }
        Ok(())
    }

    /// The session has broken: what it may not have delivered is for the next one.
    fn broken(&mut self, error: Trouble) -> Trouble {
        let Some(connection) = self.connection.take() else { return error };
        // "Broken pipe" is of a connection that the collector had ended before.
        if matches!(error.kind(), ErrorKind::ConnectionAborted | ErrorKind::BrokenPipe) {
            if let Some(arrived) = connection.arrived() {
                self.delivery.ended(arrived);
            }
        }
        let mut again = self.delivery.end();
        let uncertain = again.len();
        if self.under_way() && self.resends {
            again.extend(self.records.drain(..));
        }
        again.append(&mut self.again);
        self.again = again;
        self.to_resend = self.again.len();
        self.out.clear();
        self.written = 0;
        self.counters.uncertain(self.again.len());
        if uncertain > 0 {
            (self.log)(Change::Uncertain { records: uncertain as u64 });
        }
        error
    }

    fn connect(&mut self) -> Result<(), Trouble> {
        let mut result = Err(no_address(&self.to.address));
        for to in resolve(&self.to.address)? {
            result = Connection::open(to, &self.to);
            if result.is_ok() {
                break;
            }
        }
        self.connection = Some(result?);
        self.encoder.restart();
        self.make(&[], true, true);
        self.write().map(drop)
    }

    fn try_send(&mut self, records: &[Record]) -> Result<usize, Trouble> {
        // First what is under way without records of this call, and what is sent again.
        if self.under_way() && !self.resends && self.message.records == 0 && !self.write()? || !self.resend()? {
            return Ok(0);
        }
        if !self.under_way() {
            // What follows a collector's end would make its kernel forget that it had read everything.
            if self.connection.as_mut().ok_or(ErrorKind::NotConnected)?.has_ended()? {
                return Err(closed());
            }
            self.make(records, false, false);
        }
        Ok(if self.write()? { self.message.records } else { 0 })
    }

    fn try_tick(&mut self) -> Result<(), Trouble> {
        if self.looked.elapsed() >= LOOK {
            self.looked = Instant::now();
            self.look()?;
        }
        if !self.under_way() && self.refreshed.elapsed() >= self.refresh {
            self.make(&[], false, true);
        }
        // `send` continues a message with records.
        if self.under_way() && !self.resends && self.message.records == 0 {
            self.write()?;
        }
        for _ in 0..RESENDS {
            if self.under_way() && !self.resends || self.resend()? || self.under_way() {
                break;
            }
        }
        Ok(())
    }

    /// Waits until the collector has ended the connection too: then it has read everything.
    fn settle(&mut self, connection: &mut Connection) {
        let by = Instant::now() + LAST;
        while Instant::now() < by {
            match connection.read() {
                Ok(Some(0)) => {
                    let acknowledged = connection.state().map_or(connection.written(), |state| state.acknowledged);
                    return self.delivery.ended(acknowledged);
                }
                Ok(_) => {
                    if let Some(state) = connection.state() {
                        self.delivery.seen(state.acknowledged, state.window);
                    }
                }
                Err(_) => return,
            }
        }
    }
}

fn closed() -> Trouble {
    io::Error::new(ErrorKind::ConnectionAborted, "closed by the collector")
}

impl Output for Tcp {
    fn open(&mut self) -> Result<(), Trouble> {
        self.connect().map_err(|error| self.broken(error))
    }

    fn send(&mut self, records: &[Record]) -> Result<usize, Trouble> {
        self.try_send(records).map_err(|error| self.broken(error))
    }

    fn tick(&mut self) -> Result<(), Trouble> {
        self.try_tick().map_err(|error| self.broken(error))
    }

    fn has_pending(&self) -> bool {
        !self.again.is_empty() || self.under_way() && self.resends
    }

    fn close(&mut self) {
        if !self.under_way() {
            self.make(&[], false, true);
            let _ = self.write();
        }
        let Some(mut connection) = self.connection.take() else { return };
        connection.end();
        // The wait may be cut short.
        let left = if self.resends { self.records.len() } else { 0 } + self.again.len();
        self.counters.uncertain(left + self.delivery.uncertain());
        self.settle(&mut connection);
        let uncertain = self.delivery.uncertain();
        self.counters.uncertain(left + uncertain);
        if uncertain > 0 {
            (self.log)(Change::Unread { records: uncertain as u64 });
        }
    }
}
