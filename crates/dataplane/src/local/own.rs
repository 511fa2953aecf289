//! Which addresses are the router's own, and which are on its links.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use packet::MacAddr;

use super::ingress::Ingress;
use crate::tables::{Interface, Next, Tables};

/// The link-local address that an interface with this MAC address has (RFC 4291 2.5.6 and appendix A).
pub fn link_local(mac: MacAddr) -> Ipv6Addr {
    let [a, b, c, d, e, f] = mac.0;
    Ipv6Addr::from([0xfe, 0x80, 0, 0, 0, 0, 0, 0, a ^ 2, b, c, 0xff, 0xfe, d, e, f])
}

/// fe80::/10.
pub(super) fn is_link_local(addr: Ipv6Addr) -> bool {
    addr.segments()[0] & 0xffc0 == 0xfe80
}

fn inside4(addr: Ipv4Addr, (network, len): (Ipv4Addr, u8)) -> bool {
    (addr.to_bits() ^ network.to_bits()).checked_shr(32 - u32::from(len.min(32))).unwrap_or(0) == 0
}

fn inside6(addr: Ipv6Addr, (network, len): (Ipv6Addr, u8)) -> bool {
    (addr.to_bits() ^ network.to_bits()).checked_shr(128 - u32::from(len.min(128))).unwrap_or(0) == 0
}

/// Whether the address is one of this interface's.
pub(super) fn owns(interface: &Interface, addr: IpAddr) -> bool {
    match addr {
        IpAddr::V4(addr) => interface.ip4.iter().any(|&(own, _)| own == addr),
        IpAddr::V6(addr) => {
            interface.ip6.iter().any(|&(own, _)| own == addr)
                || (!interface.ip6.is_empty() && addr == link_local(interface.mac))
        }
    }
}

/// Whether a packet to this address that came in here is for the router: it may be sent to any interface's address, but
/// link-local ones only mean something on their own link.
pub(super) fn is_ours(interface: &Interface, tables: &Tables, addr: IpAddr) -> bool {
    owns(interface, addr) || {
        let hop = match addr {
            IpAddr::V4(addr) => tables.route4(addr, 0),
            IpAddr::V6(addr) if is_link_local(addr) => return false,
            IpAddr::V6(addr) => tables.route6(addr, 0),
        };
        let next = tables.adjacencies.get(hop as usize).map(|to| to.next);
        next == Some(Next::Local)
    }
}

/// The network's own or its broadcast address (RFC 1122 3.2.1.3), which no host has; never in a /31 or /32 (RFC 3021).
pub(super) fn is_broadcast(interface: &Interface, addr: Ipv4Addr) -> bool {
    interface.ip4.iter().any(|&(own, len)| {
        let host = u32::MAX.checked_shr(len.into()).unwrap_or(0);
        let bits = addr.to_bits() & host;
        len < 31 && inside4(addr, (own, len)) && (bits == 0 || bits == host)
    })
}

/// Whether the address may be that of a neighbour: in a prefix of the interface, routed to the link as a whole, or asked
/// for by the control side.
pub(super) fn on_link(at: Ingress, interface: &Interface, tables: &Tables, addr: IpAddr) -> bool {
    let (covered, hop) = match addr {
        IpAddr::V4(addr) => {
            if is_broadcast(interface, addr) || !is_host4(addr) {
                return false;
            }
            (interface.ip4.iter().any(|&prefix| inside4(addr, prefix)), tables.route4(addr, 0))
        }
        IpAddr::V6(addr) => {
            if !is_host6(addr) {
                return false;
            }
            let covered = is_link_local(addr) || interface.ip6.iter().any(|&prefix| inside6(addr, prefix));
            (covered, tables.route6(addr, 0))
        }
    };
    let gleaned = |hop: u32| {
        let to = tables.adjacencies.get(hop as usize);
        to.is_some_and(|to| to.next == Next::Glean && to.interface == at.interface)
    };
    covered || gleaned(hop) || tables.probes.iter().any(|probe| probe.addr == addr && probe.interface == at.interface)
}

/// Whether a host can have this IPv4 address: not this network, loopback, multicast, reserved or broadcast.
pub(super) fn is_host4(addr: Ipv4Addr) -> bool {
    !matches!(addr.octets()[0], 0 | 127 | 224..)
}

/// Whether a host can have this IPv6 address: not unspecified, loopback or multicast.
pub(super) fn is_host6(addr: Ipv6Addr) -> bool {
    addr.to_bits() > 1 && !addr.is_multicast()
}

/// The interface's address to speak to `peer` with: one whose prefix covers it, or the first.
pub(super) fn source4(interface: &Interface, peer: Ipv4Addr) -> Option<Ipv4Addr> {
    let covering = interface.ip4.iter().find(|&&prefix| inside4(peer, prefix));
    covering.or(interface.ip4.first()).map(|&(addr, _)| addr)
}

/// As [`source4`]: one whose prefix covers the peer, or the first global one, or the link-local one, which is also the
/// one for link-local peers.
pub(super) fn source6(interface: &Interface, peer: Ipv6Addr) -> Option<Ipv6Addr> {
    let local = || (!interface.ip6.is_empty()).then(|| link_local(interface.mac));
    if is_link_local(peer) {
        return local();
    }
    let covering = interface.ip6.iter().find(|&&prefix| inside6(peer, prefix));
    let global = || interface.ip6.iter().find(|(addr, _)| !is_link_local(*addr));
    covering.or_else(global).map(|&(addr, _)| addr).or_else(local)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn interface() -> Interface {
        Interface {
            port: 0,
            vlan: None,
            mac: MacAddr([0x02, 0, 0x5e, 0x10, 0, 1]),
            mtu: 1500,
            ip4: vec![([10, 0, 0, 1].into(), 24), ([10, 1, 0, 1].into(), 31), ([10, 2, 0, 1].into(), 32)],
            ip6: vec![("2001:db8::1".parse().unwrap(), 64), ("2001:db8:1::1".parse().unwrap(), 128)],
        }
    }

    #[test]
    fn the_link_local_address_is_made_of_the_mac() {
        assert_eq!(link_local(interface().mac), "fe80::5eff:fe10:1".parse::<Ipv6Addr>().unwrap());
        assert!(owns(&interface(), IpAddr::V6(link_local(interface().mac))));
        let none = Interface { ip6: Vec::new(), ..interface() };
        assert!(!owns(&none, IpAddr::V6(link_local(none.mac))));
        assert_eq!(source6(&none, "fe80::1".parse().unwrap()), None);
    }

    #[test]
    fn who_is_spoken_to_decides_who_speaks() {
        for (peer, want) in
            [([10, 0, 0, 7], [10, 0, 0, 1]), ([10, 1, 0, 0], [10, 1, 0, 1]), ([9, 9, 9, 9], [10, 0, 0, 1])]
        {
            assert_eq!(source4(&interface(), peer.into()), Some(want.into()));
        }
        for (peer, want) in [
            ("2001:db8::7", "2001:db8::1"),
            ("2001:db8:1::1", "2001:db8:1::1"),
            ("2001:db8:1::2", "2001:db8::1"),
            ("fe80::7", "fe80::5eff:fe10:1"),
        ] {
            assert_eq!(source6(&interface(), peer.parse().unwrap()), Some(want.parse().unwrap()), "{peer}");
        }
    }

    #[test]
    fn neighbours_are_hosts_of_the_link() {
        let (mut tables, at) = (Tables::bare(&[interface().mac]), Ingress { port: 0, interface: 0 });
        let ask = |tables: &Tables, addr: &str| on_link(at, &interface(), tables, addr.parse().unwrap());
        for (addr, want) in [
            ("10.0.0.7", true),
            ("10.0.0.0", false),
            ("10.0.0.255", false),
            ("10.0.1.7", false),
            ("10.1.0.0", true),
            ("10.2.0.2", false),
            ("127.0.0.1", false),
            ("224.0.0.1", false),
            ("2001:db8::7", true),
            ("2001:db8:1::2", false),
            ("fe80::7", true),
            ("ff02::1", false),
            ("::", false),
        ] {
            assert_eq!(ask(&tables, addr), want, "{addr}");
        }
        let probe = crate::tables::Probe { interface: 0, addr: "10.0.1.7".parse().unwrap() };
        tables.probes.push(probe);
        assert!(ask(&tables, "10.0.1.7"));
        tables.probes[0].interface = 1;
        assert!(!ask(&tables, "10.0.1.7"));
    }
}
