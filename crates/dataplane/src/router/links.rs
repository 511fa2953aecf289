//! Links and their interface numbers.

use std::collections::BTreeMap;

use crate::{
    model::{Link, PortInfo},
    tables::{Interface, MacFilter, PortTable, Tag, NO_INTERFACE},
    SpecError,
};

/// The links and their interface numbers: one for each port, always, and one for each VLAN that the configuration
/// mentions. A link keeps its number for good.
#[derive(Debug)]
pub(super) struct Links {
    ports: Vec<PortInfo>,
    numbers: BTreeMap<Link, u16>,
    links: Vec<Link>,
    users: Vec<u32>,
    /// VLAN interfaces in use, by port.
    vlans: Vec<u32>,
    /// A VLAN interface came into use or fell out of it.
    changed: bool,
}

impl Links {
    pub(super) fn new(ports: &[PortInfo]) -> Self {
        let links: Vec<_> = (0..ports.len()).map(|port| Link { port, vlan: None }).collect();
        Self {
            ports: ports.to_vec(),
            numbers: links.iter().copied().zip(0..).collect(),
            users: vec![0; links.len()],
            vlans: vec![0; links.len()],
            links,
            changed: false,
        }
    }

    /// The number of a link. Errors when there is no such port, or no number left.
    pub(super) fn number(&mut self, link: Link) -> Result<u16, SpecError> {
        if let Some(&number) = self.numbers.get(&link) {
            return Ok(number);
        }
        let ports = self.ports.len();
        if link.port >= ports {
            let legal = format!("must be a port from 0 to {}", ports.saturating_sub(1));
            return Err(SpecError::new("link", link, legal));
        }
        let number = u16::try_from(self.links.len()).ok().filter(|&number| number != NO_INTERFACE);
        let number = number.ok_or_else(|| SpecError::new("link", link, "is one link too many: at most 65535"))?;
        self.numbers.insert(link, number);
        self.links.push(link);
        self.users.push(0);
        Ok(number)
    }

    /// The number of a link that has one.
    pub(super) fn find(&self, link: Link) -> Option<u16> {
        self.numbers.get(&link).copied()
    }

    /// The link with this number; port 0 for a number that is none.
    pub(super) fn link(&self, number: u16) -> Link {
        self.links.get(usize::from(number)).copied().unwrap_or(Link { port: 0, vlan: None })
    }

    /// What is known of the port of an interface.
    pub(super) fn port(&self, number: u16) -> PortInfo {
        self.ports.get(self.link(number).port).copied().unwrap_or_default()
    }

    /// How many links have a number.
    pub(super) fn count_all(&self) -> usize {
        self.links.len()
    }

    /// One user more.
    pub(super) fn retain(&mut self, number: u16) {
        self.count(number, 1);
    }

    /// An entry that mentions the interface was (or was not) there, and now is (or is not).
    pub(super) fn exchange(&mut self, number: u16, was: bool, is: bool) {
        self.count(number, i32::from(is) - i32::from(was));
    }

    /// As [`Self::exchange`] for a link that has a number.
    pub(super) fn mention(&mut self, link: Link, is: bool) {
        if let Some(number) = self.find(link) {
            self.exchange(number, !is, is);
        }
    }

    fn count(&mut self, number: u16, by: i32) {
        let link = self.link(number);
        let (Some(users), Some(vlans)) = (self.users.get_mut(usize::from(number)), self.vlans.get_mut(link.port))
        else {
            return;
        };
        let before = *users;
        *users = before.saturating_add_signed(by);
        if link.vlan.is_some() && (before == 0) != (*users == 0) {
            *vlans = vlans.saturating_add_signed(by);
            self.changed = true;
        }
    }

    /// Whether the interfaces in use have changed since this was last asked.
    pub(super) fn take_changed(&mut self) -> bool {
        std::mem::take(&mut self.changed)
    }

    /// The tag of frames that leave by this interface.
    pub(super) fn tag(&self, number: u16) -> Tag {
        let link = self.link(number);
        match link.vlan {
            Some(vid) => Tag::Vid(vid),
            None if self.vlans.get(link.port).is_some_and(|&n| n > 0) => Tag::None,
            None => Tag::Keep,
        }
    }

    /// Whether the configuration mentions an interface; that of a port always counts as mentioned.
    pub(super) fn in_use(&self, number: u16) -> bool {
        self.link(number).vlan.is_none() || self.users.get(usize::from(number)).is_some_and(|&n| n > 0)
    }

    /// All interfaces, without addresses.
    pub(super) fn bare(&self) -> Vec<Interface> {
        let interface = |(number, link): (usize, &Link)| {
            let info = self.port(number as u16);
            let (ip4, ip6) = (Vec::new(), Vec::new());
            Interface { port: link.port as u16, vlan: link.vlan, mac: info.mac, mtu: info.mtu, ip4, ip6 }
        };
        self.links.iter().enumerate().map(interface).collect()
    }

    /// The ports' tables; `own_mac` says which take only their own address.
    pub(super) fn ports(&self, own_mac: &dyn Fn(usize) -> bool) -> Vec<PortTable> {
        let table = |(port, info): (usize, &PortInfo)| {
            let macs = if own_mac(port) { MacFilter::only(info.mac) } else { MacFilter::UNICAST };
            PortTable { macs, untagged: port as u16, vlans: None }
        };
        let mut tables: Vec<_> = self.ports.iter().enumerate().map(table).collect();
        for (&link, &number) in self.numbers.iter().filter(|&(_, &number)| self.in_use(number)) {
            let (Some(vid), Some(table)) = (link.vlan, tables.get_mut(link.port)) else { continue };
            let vlans = table.vlans.get_or_insert_with(|| Box::new([NO_INTERFACE; 4096]));
            if let Some(slot) = vlans.get_mut(usize::from(vid)) {
                *slot = number;
            }
        }
        tables
    }
}
