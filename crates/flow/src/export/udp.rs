//! IPFIX over UDP.

use std::{
    io,
    net::{Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket},
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

use rustix::net::sockopt::{set_ip_mtu_discover, set_ipv6_mtu_discover, Ipv4PathMtuDiscovery, Ipv6PathMtuDiscovery};

use super::{
    counters::{Counters, Lost},
    output::{Output, Trouble},
    pace::{Floor, Pace},
    resolve::{no_address, resolve},
    spec::{ExportSpec, UdpSpec},
};
use crate::{
    ipfix::{EncodeSpec, Encoder, Message},
    unix_time::unix_s,
    Record,
};

/// The largest UDP payload over IPv4.
const MOST_BYTES: usize = 65507;
/// The usual message, which an Ethernet frame carries.
pub(super) const MESSAGE_BYTES: usize = 1400;
/// The usual message to a loopback address: the loopback interface carries 64 KiB in one piece, and every message costs
/// one call, whatever its length. But collectors read into buffers of their own: nfacctd of 10,000 bytes, GoFlow of 9,000.
/// Linux keeps this message in an allocation of 8 KiB. One of 8 KiB takes 16 KiB of the collector's socket.
const LOOPBACK_BYTES: usize = 7680;
/// Number of further messages with templates at the start of a session. If the first message is lost, the collector could
/// read nothing for a minute (RFC 7011 8.4). So often, too, a template is repeated that comes with the records that need it.
pub(super) const TEMPLATES_AGAIN: u32 = 2;
/// Time in which an ICMP refusal arrives: a message counts as sent after this time, or with the next message.
const REFUSAL: Duration = Duration::from_millis(100);

/// IPFIX over UDP (RFC 7011 10.3).
///
/// Only ICMP tells whether a collector listens, and the kernel reports it at a later call. So a session begins with the
/// templates and a short wait, and each message counts as sent when the next one is not refused.
pub(super) struct Udp {
    to: String,
    message_bytes: Option<usize>,
    encoder: Encoder,
    counters: Arc<Counters>,
    refresh: Duration,
    refresh_messages: u64,
    pace: Option<Pace>,
    socket: Option<UdpSocket>,
    out: Vec<u8>,
    /// Time of the last templates and statistics, and the messages since then.
    refreshed: Instant,
    messages: u64,
    /// Remaining messages at the start of the session that repeat the templates.
    again: u32,
    unconfirmed: Option<(Lost, Instant)>,
}

impl Udp {
    pub fn new(to: &UdpSpec, floor: Floor, encode: EncodeSpec, spec: &ExportSpec, counters: Arc<Counters>) -> Self {
        Self {
            to: to.address.clone(),
            message_bytes: to.message_bytes.or(spec.message_bytes).map(|bytes| bytes.min(MOST_BYTES)),
            encoder: Encoder::new(encode),
            counters,
            refresh: to.refresh.unwrap_or(spec.refresh),
            refresh_messages: spec.refresh_messages.max(1),
            pace: to.records_per_s.map(|per_s| Pace::new(per_s, floor)),
            socket: None,
            out: Vec::new(),
            refreshed: Instant::now(),
            messages: 0,
            again: 0,
            unconfirmed: None,
        }
    }

    /// Sends one message, with templates and statistics when they are due (or asked for).
    fn message(&mut self, records: &[Record], refresh: bool) -> Result<Message, Trouble> {
        let due = refresh || self.refreshed.elapsed() >= self.refresh;
        let templates = due || self.again > 0 || self.messages >= self.refresh_messages;
        let statistics = due.then(|| self.counters.statistics());
        let message = self.encoder.message(unix_s(), templates, statistics.as_ref(), records, &mut self.out);
        let socket = self.socket.as_ref().ok_or(io::ErrorKind::NotConnected)?;
        if let Err(error) = socket.send(&self.out) {
            // This message was not sent. If the error is an ICMP refusal, the message before did not arrive either.
            self.settle(!is_refusal(&error));
            return Err(error);
        }
        self.settle(true);
        let mut lost = Lost::default();
        records.iter().take(message.records).for_each(|record| lost.add(record));
        self.unconfirmed = Some((lost, Instant::now()));
        self.encoder.sent(&message);
        self.counters.out(self.out.len());
        self.messages += 1;
        if templates {
            self.messages = 0;
            self.again = self.again.saturating_sub(1);
        }
        if due {
            self.refreshed = Instant::now();
        }
        Ok(message)
    }

    /// Counts the message that was not yet known to be sent.
    fn settle(&mut self, arrived: bool) {
        match self.unconfirmed.take() {
            Some((message, _)) if arrived => self.counters.sent(usize::try_from(message.records).unwrap_or(0)),
            Some((message, _)) => self.counters.lost(&message),
            None => {}
        }
    }

    /// Checks whether a refusal has arrived.
    fn confirm(&mut self) -> Result<(), Trouble> {
        let error = self.socket.as_ref().and_then(|socket| socket.take_error().ok().flatten());
        self.settle(!error.as_ref().is_some_and(is_refusal));
        error.map_or(Ok(()), Err)
    }

    /// A new session to one of the addresses.
    fn begin(&mut self, to: SocketAddr) -> Result<(), Trouble> {
        self.socket = Some(connected(to)?);
        let usual = if to.ip().is_loopback() { LOOPBACK_BYTES } else { MESSAGE_BYTES };
        self.encoder.restart();
        self.encoder.set_message_bytes(self.message_bytes.unwrap_or(usual));
        self.again = 1 + TEMPLATES_AGAIN;
        self.message(&[], true)?;
        thread::sleep(REFUSAL);
        self.confirm()
    }
}

impl Output for Udp {
    fn open(&mut self) -> Result<(), Trouble> {
        let mut result = Err(no_address(&self.to));
        for to in resolve(&self.to)? {
            result = self.begin(to);
            if result.is_ok() {
                break;
            }
        }
        result
    }

    fn send(&mut self, records: &[Record]) -> Result<usize, Trouble> {
        if self.pace.as_ref().is_some_and(|pace| !pace.ready()) {
            return Ok(0);
        }
        let message = self.message(records, false)?;
        if let Some(pace) = &mut self.pace {
            pace.sent(message.records);
        }
        Ok(message.records)
    }

    fn tick(&mut self) -> Result<(), Trouble> {
        if self.unconfirmed.is_some_and(|(_, at)| at.elapsed() >= REFUSAL) {
            self.confirm()?;
        }
        if self.refreshed.elapsed() >= self.refresh {
            self.message(&[], true)?;
        }
        Ok(())
    }

    fn close(&mut self) {
        // The last statistics count the last records.
        if self.unconfirmed.is_some_and(|(message, _)| message.records > 0) {
            thread::sleep(REFUSAL);
            if self.confirm().is_err() {
                return;
            }
        }
        // An error cannot be reported any more.
        let _ = self.message(&[], true);
        self.settle(true);
    }
}

/// A socket to this address. Messages above the MTU of the path are fragmented: with path MTU discovery, the router drops one,
/// and the kernel reports that as an error of a later message.
fn connected(to: SocketAddr) -> io::Result<UdpSocket> {
    let socket = match to {
        SocketAddr::V4(_) => {
            let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))?;
            set_ip_mtu_discover(&socket, Ipv4PathMtuDiscovery::DONT)?;
            socket
        }
        SocketAddr::V6(_) => {
            let socket = UdpSocket::bind((Ipv6Addr::UNSPECIFIED, 0))?;
            set_ipv6_mtu_discover(&socket, Ipv6PathMtuDiscovery::DONT)?;
            socket
        }
    };
    socket.connect(to).map(|()| socket)
}

/// Whether the error is an ICMP answer to an earlier message, not a local error of this one (no buffer, no route, a firewall).
fn is_refusal(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::ConnectionRefused | io::ErrorKind::HostUnreachable)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_fragments_and_reports_no_path_mtu() {
        use rustix::net::sockopt::{ip_mtu_discover, ipv6_mtu_discover};

        let socket = connected((Ipv4Addr::LOCALHOST, 9).into()).unwrap();
        assert_eq!(ip_mtu_discover(socket).unwrap(), Ipv4PathMtuDiscovery::DONT);
        // Machines without IPv6 have nothing to check.
        if UdpSocket::bind((Ipv6Addr::LOCALHOST, 0)).is_ok() {
            let socket = connected((Ipv6Addr::LOCALHOST, 9).into()).unwrap();
            assert_eq!(ipv6_mtu_discover(socket).unwrap(), Ipv6PathMtuDiscovery::DONT);
        }
    }

    #[test]
    fn what_our_own_kernel_refuses_says_nothing_of_the_message_before() {
        let of = |errno| is_refusal(&io::Error::from_raw_os_error(errno));
        // ECONNREFUSED, EHOSTUNREACH; ENOBUFS, ENETUNREACH, EPERM, EMSGSIZE.
        assert!(of(111) && of(113));
        assert!(![105, 101, 1, 90].into_iter().any(of));
    }
}
