//! What lcores read of the overlay: networks, access links and tunnels by number, and the ends that are ours.

use std::{
    collections::{HashMap, HashSet},
    net::IpAddr,
};

use packet::{headers::vlan::MAX_VID, MacAddr};

use super::{numbers::Numbers, seeded::Seeded, tunnel::Template};
use crate::{
    fdb::{Fdb, Flush},
    model::{Link, Network, OverlayConfig},
};

/// The endpoint number of the first tunnel; those of access links are below.
pub(crate) const TUNNEL: u16 = 0x8000;
/// No endpoint.
pub(crate) const NOWHERE: u16 = u16::MAX;
/// Networks that a table of stations tells apart.
const MAX_NETWORKS: u16 = 4096;

/// The overlay tables that lcores read.
///
/// Networks, access links and tunnels have numbers, by which the [`Fdb`] names them and which stay the same from one
/// overlay to the next: a network is known by its VNI, a tunnel by its VNI and its other end.
#[derive(Debug, Default)]
pub struct Overlay {
    domains: Vec<Option<Domain>>,
    access: Vec<Option<Access>>,
    tunnels: Vec<Option<Tunnel>>,
    ports: Vec<Role>,
    /// Our own tunnel addresses with their UDP ports.
    pub(crate) ends: Vec<(IpAddr, u16)>,
    /// Networks by VNI and place in `ends`.
    vnis: HashMap<(u32, usize), u16, Seeded>,
    /// Tunnels by network and other end ([`bits`]).
    peers: HashMap<(u16, u128), u16, Seeded>,
    statics: Vec<(u16, MacAddr, u16)>,
    domain_numbers: Numbers<u32>,
    access_numbers: Numbers<Link>,
    tunnel_numbers: Numbers<(u32, IpAddr)>,
}

/// A network.
#[derive(Debug)]
pub(crate) struct Domain {
    pub learn: bool,
    /// Its access links.
    pub access: Box<[u16]>,
    /// The tunnels unknown destinations are copied to.
    pub flood: Box<[u16]>,
}

impl Domain {
    /// Its access link, when there is only one: all frames out of tunnels go there, known or not.
    pub(crate) fn sole(&self) -> Option<u16> {
        match *self.access {
            [link] => Some(link),
            _ => None,
        }
    }
}

/// A link whose frames belong to a network.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Access {
    pub domain: u16,
    pub port: u16,
    pub vlan: Option<u16>,
}

/// A way to another end of a network.
#[derive(Debug)]
pub(crate) struct Tunnel {
    pub domain: u16,
    addr: IpAddr,
    /// Adjacency or group.
    pub next_hop: u32,
    pub template: Template,
}

/// What frames of a port are.
#[derive(Debug, Clone, Default)]
pub(crate) enum Role {
    /// All of the underlay.
    #[default]
    Underlay,
    /// All of this access link.
    Access(u16),
    /// Those with some VIDs of access links (by VID; [`NOWHERE`] elsewhere); the others as the first says.
    Vlans(u16, Box<[u16; 4096]>),
}

impl Overlay {
    /// Bytes that the outer Ethernet, IPv4, UDP and VXLAN headers add to a frame (14 + 20 + 8 + 8). It is also how much
    /// larger the IP MTU of the underlay must be than that of the stations: there the inner Ethernet header counts and
    /// the outer one does not. An outer or inner VLAN tag adds 4.
    pub const OVERHEAD4: usize = 50;
    /// The same over IPv6 (14 + 40 + 8 + 8).
    pub const OVERHEAD6: usize = 70;

    /// Compiles the tables. `resolve` gives the next hop number (adjacency or group) of an underlay destination; what the
    /// number stands for may change later without another overlay. `before` is the overlay this one replaces, from which
    /// numbers are taken over, so that learned stations stay.
    ///
    /// What makes no sense is left out: a second network of the same VNI, a link already in another network, a remote of
    /// an unknown network or of the other address family than the network's own address, and what is beyond 4096
    /// networks or 32767 links or tunnels.
    pub fn new(config: &OverlayConfig, resolve: &mut dyn FnMut(IpAddr) -> u32, before: Option<&Self>) -> Self {
        let mut vnis = HashSet::new();
        let networks: Vec<&Network> = config.networks.iter().filter(|n| vnis.insert(n.vni)).collect();
        let by_vni: HashMap<u32, &Network> = networks.iter().map(|n| (n.vni, *n)).collect();
        let fits = |vni: u32, addr: IpAddr| {
            by_vni.get(&vni).is_some_and(|n| n.local.is_ipv4() == addr.is_ipv4() && n.local != addr)
        };
        let learned = config.learned.iter().filter(|r| by_vni.get(&r.vni).is_some_and(|n| n.learn));
        let remotes = config.remotes.iter().map(|r| (r.vni, r.addr));
        let others = config.entries.iter().map(|e| (e.vni, e.addr)).chain(learned.map(|r| (r.vni, r.addr)));
        let tunnels = remotes.clone().chain(others).filter(|&(vni, addr)| fits(vni, addr));

        let links = networks.iter().flat_map(|n| n.access.iter().map(|link| (*link, n.vni)));
        let mut link_vni = HashMap::new();
        let links: Vec<Link> =
            links.filter(|&(link, vni)| link_vni.insert(link, vni).is_none()).map(|(link, _)| link).collect();

        let mut overlay = Self {
            domain_numbers: Numbers::renew(
                before.map(|b| &b.domain_numbers),
                networks.iter().map(|n| n.vni),
                MAX_NETWORKS,
            ),
            access_numbers: Numbers::renew(before.map(|b| &b.access_numbers), links.iter().copied(), TUNNEL - 1),
            tunnel_numbers: Numbers::renew(before.map(|b| &b.tunnel_numbers), tunnels, TUNNEL - 1),
            ..Self::default()
        };
        for network in &networks {
            overlay.add_network(network);
        }
        for link in links {
            let network = networks.iter().find(|n| n.access.contains(&link));
            if let Some(network) = network {
                overlay.add_access(link, network.vni);
            }
        }
        let mut hops = HashMap::new();
        for ((vni, addr), number) in overlay.tunnel_numbers.of.clone() {
            let (Some(network), Some(domain)) = (by_vni.get(&vni), overlay.domain_numbers.get(&vni)) else { continue };
            let Some(template) = Template::new(network.local, addr, network.udp_port, vni) else { continue };
            let next_hop = *hops.entry(addr).or_insert_with(|| resolve(addr));
            set_at(&mut overlay.tunnels, number, Tunnel { domain, addr, next_hop, template });
            overlay.peers.insert((domain, bits(addr)), TUNNEL + number);
        }
        let mut flood = HashSet::new();
        for (vni, addr) in remotes.filter(|r| flood.insert(*r)) {
            overlay.add_remote(vni, addr);
        }
        for entry in &config.entries {
            let domain = overlay.domain_numbers.get(&entry.vni);
            let tunnel = overlay.tunnel_numbers.get(&(entry.vni, entry.addr));
            if let (Some(domain), Some(tunnel)) = (domain, tunnel) {
                overlay.statics.push((domain, entry.mac, TUNNEL + tunnel));
            }
        }
        overlay
    }

    fn add_network(&mut self, network: &Network) {
        let Some(domain) = self.domain_numbers.get(&network.vni) else { return };
        let end = (network.local, network.udp_port);
        let place = self.ends.iter().position(|e| *e == end).unwrap_or_else(|| {
            self.ends.push(end);
            self.ends.len() - 1
        });
        self.vnis.insert((network.vni, place), domain);
        set_at(&mut self.domains, domain, Domain { learn: network.learn, access: [].into(), flood: [].into() });
    }

    fn add_access(&mut self, link: Link, vni: u32) {
        let (Some(number), Some(domain)) = (self.access_numbers.get(&link), self.domain_numbers.get(&vni)) else {
            return;
        };
        let Ok(port) = u16::try_from(link.port) else { return };
        if link.vlan.is_some_and(|vid| vid > MAX_VID) {
            return;
        }
        set_at(&mut self.access, number, Access { domain, port, vlan: link.vlan });
        if let Some(Some(network)) = self.domains.get_mut(usize::from(domain)) {
            append(&mut network.access, number);
        }
        if self.ports.len() <= link.port {
            self.ports.resize(link.port + 1, Role::default());
        }
        let Some(role) = self.ports.get_mut(link.port) else { return };
        match (link.vlan, &mut *role) {
            (None, Role::Vlans(untagged, _)) => *untagged = number,
            (None, _) => *role = Role::Access(number),
            (Some(vid), _) => {
                if !matches!(role, Role::Vlans(..)) {
                    let untagged = if let Role::Access(number) = role { *number } else { NOWHERE };
                    *role = Role::Vlans(untagged, Box::new([NOWHERE; 4096]));
                }
                if let Role::Vlans(_, by_vid) = role {
                    by_vid[usize::from(vid & 0xfff)] = number;
                }
            }
        }
    }

    fn add_remote(&mut self, vni: u32, addr: IpAddr) {
        let (Some(domain), Some(tunnel)) = (self.domain_numbers.get(&vni), self.tunnel_numbers.get(&(vni, addr)))
        else {
            return;
        };
        if let Some(Some(network)) = self.domains.get_mut(usize::from(domain)) {
            append(&mut network.flood, TUNNEL + tunnel);
        }
    }

    /// Makes the table of stations follow: sets the static stations of this overlay, removes those that only `before` has,
    /// and forgets what was learned of networks, links and tunnels that are gone. For the control side, after
    /// publishing; a gone number is in the meantime as good as an unknown station.
    ///
    /// Returns how many static stations the table had no room for.
    pub fn program(&self, fdb: &Fdb, before: Option<&Self>) -> usize {
        if let Some(before) = before {
            let now: HashSet<_> = self.statics.iter().map(|(domain, mac, _)| (*domain, *mac)).collect();
            for (domain, mac, _) in before.statics.iter().filter(|(d, m, _)| !now.contains(&(*d, *m))) {
                fdb.remove(*domain, *mac);
            }
            for domain in before.domain_numbers.gone(&self.domain_numbers) {
                fdb.flush(Flush::Domain(domain));
            }
            let access = before.access_numbers.gone(&self.access_numbers);
            for endpoint in access.chain(before.tunnel_numbers.gone(&self.tunnel_numbers).map(|n| TUNNEL + n)) {
                fdb.flush(Flush::Endpoint(endpoint));
            }
        }
        self.statics.iter().filter(|(domain, mac, endpoint)| !fdb.set_static(*domain, *mac, *endpoint)).count()
    }

    /// Whether nothing is configured.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// The number of a network in the table of stations.
    pub fn domain_of(&self, vni: u32) -> Option<u16> {
        self.domain_numbers.get(&vni)
    }

    /// The access link or the tunnel with this number in the table of stations.
    pub fn endpoint(&self, number: u16) -> Option<Endpoint> {
        match number.checked_sub(TUNNEL) {
            None => self.access(number).map(|a| Endpoint::Access(Link { port: a.port.into(), vlan: a.vlan })),
            Some(_) => self.tunnel(number).map(|tunnel| Endpoint::Tunnel(tunnel.addr)),
        }
    }

    /// The tunnels: next hop number and other end of each.
    pub(super) fn tunnel_ends(&self) -> impl Iterator<Item = (u32, IpAddr)> + '_ {
        self.tunnels.iter().flatten().map(|tunnel| (tunnel.next_hop, tunnel.addr))
    }

    #[inline]
    pub(crate) fn role(&self, port: usize) -> &Role {
        self.ports.get(port).unwrap_or(&Role::Underlay)
    }

    #[inline]
    pub(crate) fn domain(&self, number: u16) -> Option<&Domain> {
        self.domains.get(usize::from(number))?.as_ref()
    }

    #[inline]
    pub(crate) fn access(&self, number: u16) -> Option<Access> {
        *self.access.get(usize::from(number))?
    }

    /// The tunnel with this endpoint number.
    #[inline]
    pub(crate) fn tunnel(&self, number: u16) -> Option<&Tunnel> {
        self.tunnels.get(usize::from(number.checked_sub(TUNNEL)?))?.as_ref()
    }

    /// The network with this VNI at one of our ends.
    #[inline]
    pub(crate) fn network(&self, vni: u32, end: usize) -> Option<u16> {
        self.vnis.get(&(vni, end)).copied()
    }

    /// The endpoint number of the tunnel to this address.
    #[inline]
    pub(crate) fn peer(&self, domain: u16, addr: IpAddr) -> Option<u16> {
        self.peers.get(&(domain, bits(addr))).copied()
    }
}

/// What an endpoint number of the table of stations stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Endpoint {
    /// An access link.
    Access(Link),
    /// The tunnel to this address.
    Tunnel(IpAddr),
}

/// An address of either family.
#[inline]
fn bits(addr: IpAddr) -> u128 {
    match addr {
        IpAddr::V4(addr) => addr.to_bits().into(),
        IpAddr::V6(addr) => addr.to_bits(),
    }
}

fn set_at<T>(to: &mut Vec<Option<T>>, number: u16, item: T) {
    let at = usize::from(number);
    if to.len() <= at {
        to.resize_with(at + 1, || None);
    }
    if let Some(slot) = to.get_mut(at) {
        *slot = Some(item);
    }
}

fn append(to: &mut Box<[u16]>, number: u16) {
    let mut list = std::mem::take(to).into_vec();
    list.push(number);
    *to = list.into();
}
