//! Text forms of addresses, routes and neighbours.

use std::{fmt, net::IpAddr};

use super::{
    path::{begins, path},
    words::{text_form, Words},
};
use crate::{
    model::{
        entry::{Address, Neighbour, Route},
        path::{Hop, Link, Path},
        prefix::Prefix,
    },
    SpecError,
};

const ADDRESS: &str = "LINK ADDR/LEN, like 0 192.0.2.1/24";
const ROUTE: &str =
    "PREFIX PATH [PATH...], like 10.0.0.0/8 via 192.0.2.1, ... port 1 mac 02:00:00:00:00:01 or ... drop";
const NEIGHBOUR: &str = "LINK ADDR MAC, like 0 192.0.2.7 02:00:00:00:00:07";
const PREFIX: &str =
    "must be an address and a length like 198.19.0.0/16 (0 to 32) or 2001:2::/48 (0 to 128), no bits beyond it";

/// Most paths of one route.
const MAX_PATHS: usize = 64;

/// Reads an address.
pub(in crate::model) fn address(words: &mut Words<'_>) -> Result<Address, SpecError> {
    const LEGAL: &str = "must be a host's address and a length like 192.0.2.1/24 or 2001:db8::1/64";
    let link = words.link()?;
    let word = words.next().ok_or_else(|| words.missing("address"))?;
    let read = || {
        let (addr, len) = word.split_once('/')?;
        Some((addr.parse().ok()?, len.parse().ok()?))
    };
    let address = read().map(|(addr, len)| Address { link, addr, len });
    address.filter(is_host).ok_or_else(|| words.bad("address", word, LEGAL))
}

/// Whether a router can have this address: unicast, not link-local (that one is made of the MAC address), and neither
/// the network's own nor its broadcast address.
fn is_host(address: &Address) -> bool {
    match address.addr {
        IpAddr::V4(addr) => {
            let hosts = u32::MAX.checked_shr(address.len.into()).unwrap_or(0);
            let host = u32::from(addr) & hosts;
            let special = addr.octets()[0] == 0 || addr.is_loopback() || addr.octets()[0] >= 224;
            (1..=32).contains(&address.len) && !special && (address.len > 30 || (host != 0 && host != hosts))
        }
        IpAddr::V6(addr) => {
            let special = addr.is_unspecified() || addr.is_loopback() || addr.is_multicast();
            (1..=128).contains(&address.len) && !special && addr.segments()[0] & 0xffc0 != 0xfe80
        }
    }
}

/// Reads a prefix.
pub(in crate::model) fn prefix(words: &mut Words<'_>) -> Result<Prefix, SpecError> {
    words.read("prefix", PREFIX)
}

fn route(words: &mut Words<'_>) -> Result<Route, SpecError> {
    let prefix = prefix(words)?;
    let mut paths = Vec::with_capacity(1);
    paths.push(path(words)?);
    while begins(words) && paths.len() < MAX_PATHS {
        paths.push(path(words)?);
    }
    Ok(Route { prefix, paths })
}

/// Reads what a neighbour is found by.
pub(in crate::model) fn neighbour_key(words: &mut Words<'_>) -> Result<(Link, IpAddr), SpecError> {
    let link = words.link()?;
    let addr = words.addr("address")?;
    if addr.is_multicast() || addr.is_unspecified() || addr.is_loopback() {
        return Err(words.bad("address", &addr.to_string(), "must be a host's"));
    }
    Ok((link, addr))
}

fn neighbour(words: &mut Words<'_>) -> Result<Neighbour, SpecError> {
    let (link, addr) = neighbour_key(words)?;
    Ok(Neighbour { link, addr, mac: words.mac("MAC address")? })
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}/{}", self.link, self.addr, self.len)
    }
}

impl fmt::Display for Route {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.prefix)?;
        for (i, path) in self.paths.iter().enumerate() {
            write!(f, " {path}")?;
            // `port LINK` behind a gateway would be read as the gateway's link: a weight ends the gateway's path.
            let open = matches!(path.hop, Hop::Via { link: None, .. }) && path.labels.is_empty() && path.weight == 1;
            if open && matches!(self.paths.get(i + 1), Some(Path { hop: Hop::Connected { .. }, .. })) {
                f.write_str(" weight 1")?;
            }
        }
        Ok(())
    }
}

impl fmt::Display for Neighbour {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {}", self.link, self.addr, self.mac)
    }
}

text_form! {
    Address, "address", ADDRESS, address;
    Route, "route", ROUTE, route;
    Neighbour, "neighbour", NEIGHBOUR, neighbour;
}
