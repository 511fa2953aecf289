//! The form of our data records: one list of fields for both templates and records.

use std::net::IpAddr;

use super::{
    element::{self as e, Element},
    time::to_ntp,
    wire::{specify, Version},
    Port,
};
use crate::{Distinguish, Record, MOST_LABELS};

const ICMP: u8 = 1;
const ICMPV6: u8 = 58;

/// What the values of records depend on besides the record.
pub(super) struct Exporter<'a> {
    pub version: Version,
    pub ports: &'a [Port],
    /// When the exporter booted, as NetFlow v9 has it, in milliseconds since the Unix epoch.
    pub boot_ms: u64,
}

impl Exporter<'_> {
    /// The interfaces by which frames of this port came and went. Without a list they count from 1, and where frames go is
    /// not known.
    fn port(&self, port: u8) -> (u32, u32) {
        self.ports.get(usize::from(port)).map_or((u32::from(port) + 1, 0), |port| (port.index, port.egress))
    }

    /// The length of a packet, in as many bytes as the version has for it.
    fn length(&self, bytes: u16, out: &mut Vec<u8>) {
        match self.version {
            Version::Ipfix => out.extend(u64::from(bytes).to_be_bytes()),
            Version::NetFlow9 => out.extend(bytes.to_be_bytes()),
        }
    }

    /// Milliseconds from the boot to a time, as the header of a message has them: they wrap after 49.7 days (RFC 3954 5.1).
    /// Zero for times before the boot.
    pub fn uptime_ms(&self, unix_ns: u64) -> u32 {
        (unix_ns / 1_000_000).saturating_sub(self.boot_ms) as u32
    }
}

/// A form of records: one of the templates.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Shape {
    pub v6: bool,
    /// ICMP type and code instead of ports. A collector that gets both takes the ports from the wrong field.
    pub icmp: bool,
    /// With the counts of the other direction (RFC 5103).
    pub biflow: bool,
    /// With the identifier of this kind; flows without one have another form.
    pub distinguish: Distinguish,
    pub version: Version,
    /// With the low eight TCP flags in one byte, not all nine in two.
    pub short_flags: bool,
    /// With the least and the most of TTL and length, and MAC addresses.
    pub details: bool,
    /// With details: of frames with so many VLAN tags (two: or more), and with or without MPLS labels.
    pub tags: u8,
    pub labels: bool,
}

/// Forms by tags and labels: none, one, or more tags, each without and with labels.
const LINKS: usize = 6;
/// The first template ID of forms with tags or labels, and the distance of their kinds.
const LINKED: u16 = 1024;
const LINKED_STEP: u16 = 128;

impl Shape {
    /// All forms that one exporter uses, in the order of [`Shape::index`]: those without tags and labels are the first
    /// [`Shape::plain`].
    pub fn all(of: Self) -> Vec<Self> {
        let links = if of.details { LINKS } else { 1 };
        let link = |link: usize| Self { tags: (link % 3) as u8, labels: link >= 3, ..of };
        (0..links).flat_map(|number| Self::addressed(link(number))).collect()
    }

    /// Number of forms without tags and labels.
    pub fn plain(distinguished: bool) -> usize {
        if distinguished {
            8
        } else {
            4
        }
    }

    fn addressed(of: Self) -> Vec<Self> {
        let Self { distinguish, .. } = of;
        let scopes = if distinguish == Distinguish::None { vec![] } else { vec![distinguish] };
        let each = |distinguish| {
            let addresses = [(false, false), (true, false), (false, true), (true, true)];
            addresses.map(|(v6, icmp)| Self { v6, icmp, distinguish, ..of })
        };
        [Distinguish::None].into_iter().chain(scopes).flat_map(each).collect()
    }

    /// The index of the form, where flows may be distinguished or not.
    pub fn index(record: &Record, distinguished: bool) -> usize {
        let v6 = record.key.addresses.src().is_ipv6();
        let icmp = record.key.protocol == if v6 { ICMPV6 } else { ICMP };
        let scoped = distinguished && record.key.scope.is_some();
        let link = record.details.and_then(|details| details.forward.link);
        let link = link.map_or(0, |link| link.tags().len().min(2) + 3 * usize::from(link.labels().len() > 0));
        link * Self::plain(distinguished) + (usize::from(v6) | usize::from(icmp) << 1 | usize::from(scoped) << 2)
    }

    /// The template ID. Every form has its own ID.
    pub fn id(self) -> u16 {
        let scope = match self.distinguish {
            Distinguish::None => 0,
            Distinguish::Vlan => 1,
            Distinguish::Vni => 2,
            Distinguish::Label => 3,
        };
        let link = u16::from(self.tags) + 3 * u16::from(self.labels);
        let first = if link == 0 { super::FIRST_DATA } else { LINKED + (link - 1) * LINKED_STEP };
        first + (u16::from(self.v6) | u16::from(self.icmp) << 1 | u16::from(self.biflow) << 2 | scope << 3)
    }

    /// The fields, in order.
    pub fn fields(self) -> Vec<Field> {
        let (address, src, dst, icmp) =
            if self.v6 { (16, e::SRC6, e::DST6, e::ICMP6) } else { (4, e::SRC4, e::DST4, e::ICMP4) };
        let mut fields = vec![
            Field::iana(src, address, Item::Src),
            Field::iana(dst, address, Item::Dst),
            Field::iana(e::PROTOCOL, 1, Item::Protocol),
            Field::iana(e::TOS, 1, Item::Tos),
        ];
        if self.biflow {
            // In front of the forward flags: nfcapd reads reverse elements that it does not know as forward ones, and the
            // last one counts. Check nfcapd before adding another one.
            fields.push(match self.short_flags {
                false => Field { element: Element::reverse(e::TCP_FLAGS), length: 2, item: Item::BackTcpFlags },
                true => Field { element: Element::reverse(e::TCP_FLAGS), length: 1, item: Item::BackTcpFlags8 },
            });
        }
        // Of one byte in NetFlow v9 (RFC 3954 8).
        fields.push(match self.short_flags || self.version == Version::NetFlow9 {
            false => Field::iana(e::TCP_FLAGS, 2, Item::TcpFlags),
            true => Field::iana(e::TCP_FLAGS, 1, Item::TcpFlags8),
        });
        if self.icmp && self.version == Version::NetFlow9 {
            // By custom they are in the destination port too, where many collectors look.
            fields.push(Field::iana(e::SPORT, 2, Item::Sport));
            fields.push(Field::iana(e::DPORT, 2, Item::Dport));
            let (kind, code) = if self.v6 { (e::ICMP6_TYPE, e::ICMP6_CODE) } else { (e::ICMP4_TYPE, e::ICMP4_CODE) };
            fields.push(Field::iana(kind, 1, Item::IcmpType));
            fields.push(Field::iana(code, 1, Item::IcmpCode));
        } else if self.icmp {
            fields.push(Field::iana(icmp, 2, Item::Dport));
        } else {
            fields.push(Field::iana(e::SPORT, 2, Item::Sport));
            fields.push(Field::iana(e::DPORT, 2, Item::Dport));
        }
        fields.push(Field::iana(e::INGRESS, 4, Item::Ingress));
        fields.push(Field::iana(e::EGRESS, 4, Item::Egress));
        fields.push(Field::iana(e::PACKETS, 8, Item::Packets));
        fields.push(Field::iana(e::OCTETS, 8, Item::Octets));
        if self.version == Version::Ipfix {
            fields.push(Field::iana(e::LAYER2_OCTETS, 8, Item::FrameBytes));
        }
        if self.biflow {
            let reverse = |id, length, item| Field { element: Element::reverse(id), length, item };
            fields.push(reverse(e::PACKETS, 8, Item::BackPackets));
            fields.push(reverse(e::OCTETS, 8, Item::BackOctets));
            fields.push(reverse(e::LAYER2_OCTETS, 8, Item::BackFrameBytes));
        }
        if self.version == Version::NetFlow9 {
            // What RFC 3954 8 has. Collectors that know the milliseconds of the epoch read them after these.
            fields.push(Field::iana(e::START_UPTIME, 4, Item::FirstUptime));
            fields.push(Field::iana(e::END_UPTIME, 4, Item::LastUptime));
        }
        fields.push(Field::iana(e::START_MS, 8, Item::FirstMs));
        fields.push(Field::iana(e::END_MS, 8, Item::LastMs));
        if self.version == Version::Ipfix {
            fields.push(Field::iana(e::START_NS, 8, Item::FirstNs));
            fields.push(Field::iana(e::END_NS, 8, Item::LastNs));
        }
        fields.push(Field::iana(e::END_REASON, 1, Item::EndReason));
        if self.details {
            // Of the forward direction: collectors that do not know reverse elements take the last one.
            let length = if self.version == Version::Ipfix { 8 } else { 2 };
            fields.push(Field::iana(e::MIN_TTL, 1, Item::MinTtl));
            fields.push(Field::iana(e::MAX_TTL, 1, Item::MaxTtl));
            fields.push(Field::iana(e::MIN_LENGTH, length, Item::MinLength));
            fields.push(Field::iana(e::MAX_LENGTH, length, Item::MaxLength));
            fields.push(Field::iana(e::SRC_MAC, 6, Item::SrcMac));
            fields.push(Field::iana(e::DST_MAC, 6, Item::DstMac));
        }
        let vlan = if self.tags > 0 { Some(Field::iana(e::VLAN, 2, Item::LinkVlan)) } else { None };
        let label = if self.labels { Some(Field::iana(e::LABEL, 3, Item::LinkLabel(0))) } else { None };
        // What a flow is known by is its own field, whatever its first frame had: the same field twice misleads collectors.
        fields.extend(match self.distinguish {
            Distinguish::Vlan => Some(Field::iana(e::VLAN, 2, Item::Vlan)),
            Distinguish::None | Distinguish::Vni | Distinguish::Label => vlan,
        });
        fields.extend(match self.distinguish {
            Distinguish::Vni => Some(Field::iana(e::SEGMENT, 8, Item::Vni)),
            Distinguish::None | Distinguish::Vlan | Distinguish::Label => None,
        });
        fields.extend(match (self.distinguish, label) {
            (Distinguish::Label, None) => Some(Field::iana(e::LABEL, 3, Item::Label)),
            (_, label) => label,
        });
        if self.labels {
            // Behind the bottom of the stack they are zero.
            let below = 1..MOST_LABELS as u8;
            fields.extend(below.map(|depth| Field::iana(e::LABEL + u16::from(depth), 3, Item::LinkLabel(depth))));
        }
        if self.tags > 0 {
            fields.push(Field::iana(e::DOT1Q_VLAN, 2, Item::LinkVlan));
            fields.push(Field::iana(e::DOT1Q_PRIORITY, 1, Item::LinkPriority(0)));
        }
        if self.tags > 1 {
            fields.push(Field::iana(e::CUSTOMER_VLAN, 2, Item::CustomerVlan));
            fields.push(Field::iana(e::CUSTOMER_PRIORITY, 1, Item::LinkPriority(1)));
        }
        fields
    }
}

/// A field of a template, and the value of a record for it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Field {
    pub element: Element,
    pub length: u16,
    pub item: Item,
}

impl Field {
    const fn iana(id: u16, length: u16, item: Item) -> Self {
        Self { element: Element::iana(id), length, item }
    }

    /// Its specifier in a template (RFC 7011 3.2).
    pub fn specify(self, out: &mut Vec<u8>) {
        specify(self.element, self.length, out);
    }
}

/// A value of a record.
#[derive(Debug, Clone, Copy)]
pub(super) enum Item {
    Src,
    Dst,
    Protocol,
    Tos,
    TcpFlags,
    TcpFlags8,
    BackTcpFlags,
    BackTcpFlags8,
    Sport,
    Dport,
    IcmpType,
    IcmpCode,
    Ingress,
    Egress,
    Packets,
    Octets,
    FrameBytes,
    BackPackets,
    BackOctets,
    BackFrameBytes,
    FirstUptime,
    LastUptime,
    FirstMs,
    LastMs,
    FirstNs,
    LastNs,
    EndReason,
    Vlan,
    Vni,
    Label,
    MinTtl,
    MaxTtl,
    MinLength,
    MaxLength,
    SrcMac,
    DstMac,
    /// The outer tag's.
    LinkVlan,
    /// Of a tag.
    LinkPriority(u8),
    CustomerVlan,
    /// The label at a depth.
    LinkLabel(u8),
}

impl Item {
    /// Writes the field with the length from [`Shape::fields`].
    pub fn write(self, r: &Record, exporter: &Exporter<'_>, out: &mut Vec<u8>) {
        let address = |address, out: &mut Vec<u8>| match address {
            IpAddr::V4(address) => out.extend(address.octets()),
            IpAddr::V6(address) => out.extend(address.octets()),
        };
        let scope = r.key.scope.unwrap_or_default();
        let details = r.details.unwrap_or_default().forward;
        let link = details.link.unwrap_or_default();
        let tag = |depth: usize| link.tags().nth(depth).unwrap_or_default();
        match self {
            Self::Src => address(r.key.addresses.src(), out),
            Self::Dst => address(r.key.addresses.dst(), out),
            Self::Protocol => out.push(r.key.protocol),
            Self::Tos => out.push(r.tos),
            Self::TcpFlags => out.extend(r.forward.tcp_flags.to_be_bytes()),
            Self::TcpFlags8 => out.push(r.forward.tcp_flags as u8),
            Self::BackTcpFlags8 => out.push(r.back.tcp_flags as u8),
            Self::BackTcpFlags => out.extend(r.back.tcp_flags.to_be_bytes()),
            Self::Sport => out.extend(r.key.sport.to_be_bytes()),
            Self::Dport => out.extend(r.key.dport.to_be_bytes()),
            Self::IcmpType => out.push((r.key.dport >> 8) as u8),
            Self::IcmpCode => out.push(r.key.dport as u8),
            Self::Ingress => out.extend(exporter.port(r.ingress).0.to_be_bytes()),
            Self::Egress => out.extend(exporter.port(r.ingress).1.to_be_bytes()),
            Self::Packets => out.extend(r.forward.packets.to_be_bytes()),
            Self::Octets => out.extend(r.forward.ip_bytes.to_be_bytes()),
            Self::FrameBytes => out.extend(r.forward.frame_bytes.to_be_bytes()),
            Self::BackPackets => out.extend(r.back.packets.to_be_bytes()),
            Self::BackOctets => out.extend(r.back.ip_bytes.to_be_bytes()),
            Self::BackFrameBytes => out.extend(r.back.frame_bytes.to_be_bytes()),
            Self::FirstUptime => out.extend(exporter.uptime_ms(r.first).to_be_bytes()),
            Self::LastUptime => out.extend(exporter.uptime_ms(r.last).to_be_bytes()),
            Self::FirstMs => out.extend((r.first / 1_000_000).to_be_bytes()),
            Self::LastMs => out.extend((r.last / 1_000_000).to_be_bytes()),
            Self::FirstNs => out.extend(to_ntp(r.first).to_be_bytes()),
            Self::LastNs => out.extend(to_ntp(r.last).to_be_bytes()),
            Self::EndReason => out.push(r.end.map_or(0, |reason| reason as u8)),
            Self::MinTtl => out.push(details.min_ttl),
            Self::MaxTtl => out.push(details.max_ttl),
            Self::MinLength => exporter.length(details.min_ip_bytes, out),
            Self::MaxLength => exporter.length(details.max_ip_bytes, out),
            Self::SrcMac => out.extend(link.addresses()[1].0),
            Self::DstMac => out.extend(link.addresses()[0].0),
            Self::LinkVlan => out.extend((tag(0) & 0xfff).to_be_bytes()),
            Self::CustomerVlan => out.extend((tag(1) & 0xfff).to_be_bytes()),
            Self::LinkPriority(depth) => out.push((tag(depth.into()) >> 13) as u8),
            Self::LinkLabel(depth) => out.extend(link.labels().nth(depth.into()).unwrap_or_default()),
            // The low 16 bits; the identifier has twelve.
            Self::Vlan => out.extend_from_slice(&scope.to_be_bytes()[2..]),
            Self::Vni => out.extend((1 << 56 | u64::from(scope & 0xff_ffff)).to_be_bytes()),
            // 20 bits of label, 3 of traffic class, which differs from packet to packet, and the bit of the bottom of the stack.
            Self::Label => out.extend_from_slice(&(scope << 4 | u32::from(r.key.bottom)).to_be_bytes()[1..]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uptimes_of_flows_wrap_as_that_of_the_message_does() {
        let exporter = Exporter { version: Version::NetFlow9, ports: &[], boot_ms: 1_700_000_000_000 };
        let at = |ms: u64| exporter.uptime_ms((exporter.boot_ms + ms) * 1_000_000);
        assert_eq!([at(0), at(7), at((1 << 32) - 1)], [0, 7, u32::MAX]);
        assert_eq!([at(1 << 32), at((1 << 32) + 5000)], [0, 5000]);
        assert_eq!(exporter.uptime_ms(0), 0, "before the boot");
    }
}
