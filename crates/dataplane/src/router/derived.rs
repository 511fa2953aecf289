//! What follows from the addresses of a router: networks on its links, its own addresses, and what is never routed.

use std::{
    collections::{BTreeMap, BTreeSet},
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
};

use packet::MacAddr;

use super::links::Links;
use crate::{tables::Interface, Prefix};

/// What a host prefix of the router's own is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Own {
    /// One of its addresses.
    Address,
    /// The broadcast address of one of its networks (RFC 1812 5.3.5).
    Broadcast,
}

/// What follows from the router's addresses.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Derived {
    /// Addresses of its own.
    pub(super) own: BTreeMap<Prefix, Own>,
    /// The networks on its links, and the interface of each.
    pub(super) connected: BTreeMap<Prefix, u16>,
    /// Lengths that connected prefixes have, IPv4 and IPv6.
    lengths: [BTreeSet<u8>; 2],
    /// Interfaces with their addresses.
    pub(super) interfaces: Vec<Interface>,
}

/// Destinations that are never routed, whatever the routes say of shorter prefixes (RFC 1812 5.3.7, RFC 6890): this
/// network, loopback, multicast, reserved and limited broadcast; unspecified, loopback, link-local, multicast.
pub(super) fn martians() -> [Prefix; 8] {
    let four = |a, len| Prefix::around(IpAddr::V4(Ipv4Addr::new(a, 0, 0, 0)), len);
    let six = |a, z, len| Prefix::around(IpAddr::V6(Ipv6Addr::new(a, 0, 0, 0, 0, 0, 0, z)), len);
    [
        four(0, 8),
        four(127, 8),
        four(224, 4),
        four(240, 4),
        six(0, 0, 128),
        six(0, 1, 128),
        six(0xfe80, 0, 10),
        six(0xff00, 0, 8),
    ]
}

/// Whether an address is only good on its link, fe80::/10.
pub(super) fn is_link_local(addr: IpAddr) -> bool {
    matches!(addr, IpAddr::V6(addr) if addr.segments()[0] & 0xffc0 == 0xfe80)
}

/// The link-local address of a station: fe80::/64 and the modified EUI-64 of its MAC address (RFC 4291 2.5.6).
pub(super) fn link_local(mac: MacAddr) -> Ipv6Addr {
    let [a, b, c, d, e, f] = mac.0;
    Ipv6Addr::from([0xfe, 0x80, 0, 0, 0, 0, 0, 0, a ^ 2, b, c, 0xff, 0xfe, d, e, f])
}

impl Derived {
    /// From the addresses, by address and interface, with their prefix lengths.
    pub(super) fn new(addresses: &BTreeMap<(IpAddr, u16), u8>, links: &Links) -> Self {
        let mut derived = Self { interfaces: links.bare(), ..Self::default() };
        for (&(addr, number), &len) in addresses {
            let network = Prefix::around(addr, len);
            derived.own.insert(Prefix::host(addr), Own::Address);
            derived.connected.entry(network).or_insert(number);
            let Some(interface) = derived.interfaces.get_mut(usize::from(number)) else { continue };
            match addr {
                IpAddr::V4(addr) => {
                    interface.ip4.push((addr, len));
                    derived.lengths[0].insert(len);
                    if len <= 30 {
                        let last = u32::from(addr) | u32::MAX.checked_shr(len.into()).unwrap_or(0);
                        derived.own.entry(Prefix::host(IpAddr::V4(last.into()))).or_insert(Own::Broadcast);
                    }
                }
                IpAddr::V6(addr) => {
                    if interface.ip6.is_empty() {
                        interface.ip6.push((link_local(interface.mac), 64));
                        let own = IpAddr::V6(link_local(interface.mac));
                        derived.own.insert(Prefix::host(own), Own::Address);
                    }
                    interface.ip6.push((addr, len));
                    derived.lengths[1].insert(len);
                }
            }
        }
        derived
    }

    /// The interface whose network holds an address: of several that of the longest prefix.
    pub(super) fn interface_of(&self, addr: IpAddr) -> Option<u16> {
        let lengths = &self.lengths[usize::from(addr.is_ipv6())];
        lengths.iter().rev().find_map(|&len| self.connected.get(&Prefix::around(addr, len)).copied())
    }

    /// Whether a host with this address can be a neighbour on the interface.
    pub(super) fn on_link(&self, number: u16, addr: IpAddr) -> bool {
        let Some(interface) = self.interfaces.get(usize::from(number)) else { return false };
        let covers = |own: IpAddr, len| Prefix::around(own, len).contains(addr);
        interface.ip4.iter().any(|&(own, len)| covers(own.into(), len))
            || interface.ip6.iter().any(|&(own, len)| covers(own.into(), len))
    }

    /// Whether an address is one of the router's own.
    pub(super) fn is_own(&self, addr: IpAddr) -> bool {
        self.own.contains_key(&Prefix::host(addr))
    }

    /// Prefixes that are not the same in both.
    pub(super) fn differences<'a>(&'a self, other: &'a Self) -> impl Iterator<Item = Prefix> + 'a {
        let one_way = |a: &'a Self, b: &'a Self| {
            let own = a.own.iter().filter(|&(prefix, own)| b.own.get(prefix) != Some(own)).map(|(prefix, _)| *prefix);
            let connected = a.connected.iter().filter(|&(prefix, n)| b.connected.get(prefix) != Some(n));
            own.chain(connected.map(|(prefix, _)| *prefix))
        };
        one_way(self, other).chain(one_way(other, self))
    }
}
