//! How to read the records of a template.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::{
    element::{self as e, Element, REVERSE},
    from_ntp, take, VARIABLE,
};
use crate::{Addresses, EndReason, Key, Record, Way};

/// What a field of a record means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Meaning {
    Skip,
    Src4,
    Dst4,
    Src6,
    Dst6,
    Protocol,
    Tos,
    TcpFlags,
    BackTcpFlags,
    Sport,
    Dport,
    Ingress,
    Packets,
    Octets,
    BackPackets,
    BackOctets,
    Frame,
    BackFrame,
    Start(Time),
    End(Time),
    EndReason,
    IcmpTypeCode,
    IcmpType,
    IcmpCode,
    Vlan,
    Segment,
    Label,
    InitMs,
}

/// Forms of a time, in rising order of quality.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Time {
    /// Milliseconds since the exporter began.
    Uptime,
    /// Seconds since the Unix epoch.
    Seconds,
    /// Milliseconds since the Unix epoch.
    Milliseconds,
    /// Microseconds before the export time.
    Ago,
    /// NTP, to the microsecond.
    Microseconds,
    /// NTP.
    Nanoseconds,
}

impl Meaning {
    fn from_element(element: Element) -> Self {
        match (element.enterprise, element.id) {
            (0, e::OCTETS | e::OCTETS_TOTAL | e::INITIATOR_OCTETS) => Self::Octets,
            (0, e::PACKETS | e::PACKETS_TOTAL | e::INITIATOR_PACKETS) => Self::Packets,
            (0, e::RESPONDER_OCTETS) | (REVERSE, e::OCTETS | e::OCTETS_TOTAL) => Self::BackOctets,
            (0, e::RESPONDER_PACKETS) | (REVERSE, e::PACKETS | e::PACKETS_TOTAL) => Self::BackPackets,
            (0, e::LAYER2_OCTETS) => Self::Frame,
            (REVERSE, e::LAYER2_OCTETS) => Self::BackFrame,
            (0, e::TCP_FLAGS) => Self::TcpFlags,
            (REVERSE, e::TCP_FLAGS) => Self::BackTcpFlags,
            (0, e::PROTOCOL) => Self::Protocol,
            (0, e::TOS) => Self::Tos,
            (0, e::SPORT) => Self::Sport,
            (0, e::DPORT) => Self::Dport,
            (0, e::SRC4) => Self::Src4,
            (0, e::DST4) => Self::Dst4,
            (0, e::SRC6) => Self::Src6,
            (0, e::DST6) => Self::Dst6,
            (0, e::INGRESS) => Self::Ingress,
            (0, e::ICMP4 | e::ICMP6) => Self::IcmpTypeCode,
            (0, e::ICMP4_TYPE | e::ICMP6_TYPE) => Self::IcmpType,
            (0, e::ICMP4_CODE | e::ICMP6_CODE) => Self::IcmpCode,
            (0, e::VLAN | e::DOT1Q_VLAN) => Self::Vlan,
            (0, e::SEGMENT) => Self::Segment,
            (0, e::LABEL) => Self::Label,
            (0, e::END_REASON) => Self::EndReason,
            (0, e::INIT_MS) => Self::InitMs,
            (0 | REVERSE, e::START_UPTIME) => Self::Start(Time::Uptime),
            (0 | REVERSE, e::END_UPTIME) => Self::End(Time::Uptime),
            (0 | REVERSE, e::START_S) => Self::Start(Time::Seconds),
            (0 | REVERSE, e::END_S) => Self::End(Time::Seconds),
            (0 | REVERSE, e::START_MS) => Self::Start(Time::Milliseconds),
            (0 | REVERSE, e::END_MS) => Self::End(Time::Milliseconds),
            (0 | REVERSE, e::START_AGO_US) => Self::Start(Time::Ago),
            (0 | REVERSE, e::END_AGO_US) => Self::End(Time::Ago),
            (0 | REVERSE, e::START_US) => Self::Start(Time::Microseconds),
            (0 | REVERSE, e::END_US) => Self::End(Time::Microseconds),
            (0 | REVERSE, e::START_NS) => Self::Start(Time::Nanoseconds),
            (0 | REVERSE, e::END_NS) => Self::End(Time::Nanoseconds),
            _ => Self::Skip,
        }
    }
}

/// One field to read or to skip. Neighbouring fields of fixed length that we skip are merged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Step {
    meaning: Meaning,
    length: Length,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Length {
    Fixed(usize),
    /// The record holds the length.
    Carried,
}

/// How to read the records of one template.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Plan {
    steps: Vec<Step>,
    /// Bytes of the shortest record, at least one.
    pub least: usize,
    /// Whether records describe the exporter, not flows.
    pub options: bool,
}

impl Plan {
    /// A plan without fields.
    pub fn new(options: bool) -> Self {
        Self { options, ..Self::default() }
    }

    /// Adds a field of a template.
    pub fn push(&mut self, element: Element, length: u16) {
        if length == VARIABLE {
            self.least += 1;
            self.steps.push(Step { meaning: Meaning::from_element(element), length: Length::Carried });
            return;
        }
        // Empty fields carry nothing, and many of them would make short records costly to read.
        if length == 0 {
            return;
        }
        let length = usize::from(length);
        self.least += length;
        let meaning = Meaning::from_element(element);
        if let (Meaning::Skip, Some(Step { meaning: Meaning::Skip, length: Length::Fixed(before) })) =
            (meaning, self.steps.last_mut())
        {
            *before += length;
            return;
        }
        self.steps.push(Step { meaning, length: Length::Fixed(length) });
    }

    /// Reads one record at the front of `bytes` and moves on; `None` when the record is incomplete.
    pub fn read(&self, bytes: &mut &[u8], context: Context) -> Option<Reading> {
        let mut reading = Reading::new(context);
        for step in &self.steps {
            let length = match step.length {
                Length::Fixed(length) => length,
                Length::Carried => carried(bytes)?,
            };
            let (field, rest) = bytes.split_at_checked(length)?;
            *bytes = rest;
            reading.set(step.meaning, field);
        }
        Some(reading)
    }
}

/// The length of a variable-length field (RFC 7011 7).
fn carried(bytes: &mut &[u8]) -> Option<usize> {
    let [short] = take(bytes)?;
    if short < 255 {
        return Some(usize::from(short));
    }
    take(bytes).map(u16::from_be_bytes).map(usize::from)
}

/// Times that the times of a record may be relative to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Context {
    /// Export time of the message, in seconds since the Unix epoch.
    pub export_s: u32,
    /// Start of the exporter in milliseconds since the Unix epoch; zero: unknown.
    pub init_ms: u64,
}

/// A record being read.
#[derive(Debug)]
pub(super) struct Reading {
    pub context: Context,
    src: Option<IpAddr>,
    dst: Option<IpAddr>,
    icmp: Option<u16>,
    first: Option<(Time, u64)>,
    last: Option<(Time, u64)>,
    record: Record,
}

impl Reading {
    fn new(context: Context) -> Self {
        let none = Ipv4Addr::UNSPECIFIED;
        let addresses = Addresses::V4 { src: none, dst: none };
        let key = Key { addresses, sport: 0, dport: 0, protocol: 0, port: 0, scope: None, bottom: false };
        let way = Way::default();
        let record =
            Record { key, ingress: 0, tos: 0, forward: way, back: way, first: 0, last: 0, end: None, details: None };
        Self { context, src: None, dst: None, icmp: None, first: None, last: None, record }
    }

    // Numbers may be shorter than their type (RFC 7011 6.2). Longer numbers keep their low bits.
    #[allow(clippy::cast_possible_truncation)]
    fn set(&mut self, meaning: Meaning, field: &[u8]) {
        let r = &mut self.record;
        let n = number(field);
        match meaning {
            Meaning::Skip => {}
            Meaning::Src4 => self.src = ip4(field).or(self.src),
            Meaning::Dst4 => self.dst = ip4(field).or(self.dst),
            Meaning::Src6 => self.src = ip6(field).or(self.src),
            Meaning::Dst6 => self.dst = ip6(field).or(self.dst),
            Meaning::Protocol => r.key.protocol = n as u8,
            Meaning::Tos => r.tos = n as u8,
            Meaning::TcpFlags => r.forward.tcp_flags = n as u16 & 0xfff,
            Meaning::BackTcpFlags => r.back.tcp_flags = n as u16 & 0xfff,
            Meaning::Sport => r.key.sport = n as u16,
            Meaning::Dport => r.key.dport = n as u16,
            Meaning::Ingress => r.ingress = n as u8,
            Meaning::Packets => r.forward.packets = n,
            Meaning::Octets => r.forward.ip_bytes = n,
            Meaning::BackPackets => r.back.packets = n,
            Meaning::BackOctets => r.back.ip_bytes = n,
            Meaning::Frame => r.forward.frame_bytes = n,
            Meaning::BackFrame => r.back.frame_bytes = n,
            Meaning::EndReason => r.end = end_reason(n),
            Meaning::IcmpTypeCode => self.icmp = Some(n as u16),
            Meaning::IcmpType => self.icmp = Some(self.icmp.unwrap_or(0) & 0x00ff | (n as u16) << 8),
            Meaning::IcmpCode => self.icmp = Some(self.icmp.unwrap_or(0) & 0xff00 | n as u16 & 0x00ff),
            Meaning::Vlan => r.key.scope = Some(n as u32 & 0xffff),
            Meaning::Segment => r.key.scope = Some(n as u32 & 0xff_ffff),
            Meaning::Label => (r.key.scope, r.key.bottom) = (Some(n as u32 >> 4 & 0xf_ffff), n & 1 == 1),
            Meaning::InitMs => self.context.init_ms = n,
            Meaning::Start(time) => better(&mut self.first, time, n, |old, new| new < old),
            Meaning::End(time) => better(&mut self.last, time, n, |old, new| new > old),
        }
    }

    /// The flow, with zeros for missing fields.
    pub fn flow(&self) -> Record {
        let mut r = self.record;
        let any4 = IpAddr::V4(Ipv4Addr::UNSPECIFIED);
        r.key.addresses = match (self.src.unwrap_or(any4), self.dst.unwrap_or(any4)) {
            (IpAddr::V4(src), IpAddr::V4(dst)) => Addresses::V4 { src, dst },
            (src, dst) => {
                let v6 = |address| match address {
                    IpAddr::V4(_) => Ipv6Addr::UNSPECIFIED,
                    IpAddr::V6(address) => address,
                };
                Addresses::V6 { src: v6(src), dst: v6(dst) }
            }
        };
        r.key.port = r.ingress;
        if let (1 | 58, Some(icmp)) = (r.key.protocol, self.icmp) {
            (r.key.sport, r.key.dport) = (0, icmp);
        }
        r.first = self.time(self.first);
        r.last = self.time(self.last);
        r
    }

    /// In nanoseconds since the Unix epoch.
    fn time(&self, time: Option<(Time, u64)>) -> u64 {
        let Some((kind, n)) = time else { return 0 };
        match kind {
            Time::Uptime => self.context.init_ms.wrapping_add(n).saturating_mul(1_000_000),
            Time::Seconds => n.saturating_mul(1_000_000_000),
            Time::Milliseconds => n.saturating_mul(1_000_000),
            Time::Ago => (u64::from(self.context.export_s) * 1_000_000_000).saturating_sub(n.saturating_mul(1000)),
            // The eleven low bits of the fraction count as zero (RFC 7011 6.1.9).
            Time::Microseconds => from_ntp(n & !0x7ff),
            Time::Nanoseconds => from_ntp(n),
        }
    }
}

/// Keeps the better form. `over` chooses between times of the same form, because the reverse direction has times too.
fn better(kept: &mut Option<(Time, u64)>, time: Time, n: u64, over: impl Fn(u64, u64) -> bool) {
    if kept.is_none_or(|(old, value)| time > old || time == old && n != 0 && over(value, n)) {
        *kept = Some((time, n));
    }
}

/// Big-endian, of any length; the low eight bytes if it is longer.
fn number(field: &[u8]) -> u64 {
    field.iter().rev().take(8).rev().fold(0, |n, &byte| n << 8 | u64::from(byte))
}

fn ip4(field: &[u8]) -> Option<IpAddr> {
    <[u8; 4]>::try_from(field).ok().map(IpAddr::from)
}

fn ip6(field: &[u8]) -> Option<IpAddr> {
    <[u8; 16]>::try_from(field).ok().map(IpAddr::from)
}

fn end_reason(n: u64) -> Option<EndReason> {
    Some(match n {
        1 => EndReason::Idle,
        2 => EndReason::Active,
        3 => EndReason::EndOfFlow,
        4 => EndReason::Forced,
        5 => EndReason::LackOfResources,
        _ => return None,
    })
}
