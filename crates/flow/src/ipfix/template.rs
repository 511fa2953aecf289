//! The form of our data records: one list of fields for both templates and records.

use std::net::IpAddr;

use super::{
    element::{self as e, Element},
    time::to_ntp,
};
use crate::{Distinguish, Record};

const ICMP: u8 = 1;
const ICMPV6: u8 = 58;

/// A form of records: one of the templates.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Shape {
    pub v6: bool,
    /// ICMP type and code instead of ports. A collector that gets both takes the ports from the wrong field.
    pub icmp: bool,
    /// With the counts of the other direction (RFC 5103).
    pub biflow: bool,
    pub distinguish: Distinguish,
}

impl Shape {
    /// All forms that one exporter uses, in the order of [`Shape::index`].
    pub fn all(biflow: bool, distinguish: Distinguish) -> [Self; 4] {
        [(false, false), (true, false), (false, true), (true, true)].map(|(v6, icmp)| Self {
            v6,
            icmp,
            biflow,
            distinguish,
        })
    }

    /// The index of the form, 0 to 3.
    pub fn index(record: &Record) -> usize {
        let v6 = record.key.addresses.src().is_ipv6();
        usize::from(v6) | usize::from(record.key.protocol == if v6 { ICMPV6 } else { ICMP }) << 1
    }

    /// The template ID. Every form has its own ID.
    pub fn id(self) -> u16 {
        let scope = match self.distinguish {
            Distinguish::None => 0,
            Distinguish::Vlan => 1,
            Distinguish::Vni => 2,
            Distinguish::Label => 3,
        };
        super::FIRST_DATA + (u16::from(self.v6) | u16::from(self.icmp) << 1 | u16::from(self.biflow) << 2 | scope << 3)
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
            Field::iana(e::TCP_FLAGS, 2, Item::TcpFlags),
        ];
        if self.icmp {
            fields.push(Field::iana(icmp, 2, Item::Dport));
        } else {
            fields.push(Field::iana(e::SPORT, 2, Item::Sport));
            fields.push(Field::iana(e::DPORT, 2, Item::Dport));
        }
        fields.push(Field::iana(e::INGRESS, 4, Item::Ingress));
        fields.push(Field::iana(e::PACKETS, 8, Item::Packets));
        fields.push(Field::iana(e::OCTETS, 8, Item::Octets));
        if self.biflow {
            // Other fields of a record have no direction. nfcapd reads an unknown reverse element as the forward element: check
            // nfcapd before adding one here.
            fields.push(Field { element: Element::reverse(e::PACKETS), length: 8, item: Item::BackPackets });
            fields.push(Field { element: Element::reverse(e::OCTETS), length: 8, item: Item::BackOctets });
        }
        fields.push(Field::iana(e::START_MS, 8, Item::FirstMs));
        fields.push(Field::iana(e::END_MS, 8, Item::LastMs));
        fields.push(Field::iana(e::START_NS, 8, Item::FirstNs));
        fields.push(Field::iana(e::END_NS, 8, Item::LastNs));
        fields.push(Field::iana(e::END_REASON, 1, Item::EndReason));
        fields.extend(match self.distinguish {
            Distinguish::None => None,
            Distinguish::Vlan => Some(Field::iana(e::VLAN, 2, Item::Vlan)),
            Distinguish::Vni => Some(Field::iana(e::SEGMENT, 8, Item::Vni)),
            Distinguish::Label => Some(Field::iana(e::LABEL, 3, Item::Label)),
        });
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

/// A field specifier (RFC 7011 3.2).
pub(super) fn specify(element: Element, length: u16, out: &mut Vec<u8>) {
    let bit = u16::from(element.enterprise != 0) << 15;
    out.extend((element.id | bit).to_be_bytes());
    out.extend(length.to_be_bytes());
    if element.enterprise != 0 {
        out.extend(element.enterprise.to_be_bytes());
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
    Sport,
    Dport,
    Ingress,
    Packets,
    Octets,
    BackPackets,
    BackOctets,
    FirstMs,
    LastMs,
    FirstNs,
    LastNs,
    EndReason,
    Vlan,
    Vni,
    Label,
}

impl Item {
    /// Writes the field with the length from [`Shape::fields`].
    pub fn write(self, r: &Record, out: &mut Vec<u8>) {
        let address = |address, out: &mut Vec<u8>| match address {
            IpAddr::V4(address) => out.extend(address.octets()),
            IpAddr::V6(address) => out.extend(address.octets()),
        };
        match self {
            Self::Src => address(r.key.addresses.src(), out),
            Self::Dst => address(r.key.addresses.dst(), out),
            Self::Protocol => out.push(r.key.protocol),
            Self::Tos => out.push(r.tos),
            Self::TcpFlags => out.extend(u16::from(r.tcp_flags).to_be_bytes()),
            Self::Sport => out.extend(r.key.sport.to_be_bytes()),
            Self::Dport => out.extend(r.key.dport.to_be_bytes()),
            Self::Ingress => out.extend(u32::from(r.ingress).to_be_bytes()),
            Self::Packets => out.extend(r.forward.packets.to_be_bytes()),
            Self::Octets => out.extend(r.forward.bytes.to_be_bytes()),
            Self::BackPackets => out.extend(r.back.packets.to_be_bytes()),
            Self::BackOctets => out.extend(r.back.bytes.to_be_bytes()),
            Self::FirstMs => out.extend((r.first / 1_000_000).to_be_bytes()),
            Self::LastMs => out.extend((r.last / 1_000_000).to_be_bytes()),
            Self::FirstNs => out.extend(to_ntp(r.first).to_be_bytes()),
            Self::LastNs => out.extend(to_ntp(r.last).to_be_bytes()),
            Self::EndReason => out.push(r.end.map_or(0, |reason| reason as u8)),
            // The low 16 bits; the identifier has twelve.
            Self::Vlan => out.extend_from_slice(&r.key.scope.to_be_bytes()[2..]),
            Self::Vni => out.extend((1 << 56 | u64::from(r.key.scope & 0xff_ffff)).to_be_bytes()),
            // 20 bits of label, then 3 of traffic class and the bottom-of-stack bit, which we do not know.
            Self::Label => out.extend_from_slice(&(r.key.scope << 4).to_be_bytes()[1..]),
        }
    }
}
