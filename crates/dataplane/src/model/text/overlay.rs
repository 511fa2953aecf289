//! Text forms of VXLAN networks, remote ends and stations.

use std::fmt;

use packet::MacAddr;

use super::words::{join, text_form, Words};
use crate::{
    model::{
        entry::{BridgeEntry, Fdb},
        overlay::{Network, Remote, StaticEntry},
        path::Link,
    },
    SpecError,
};

const NETWORK: &str =
    "VNI local ADDR access LINK[,LINK...] [port UDP] [learn on|off], like 10 local 192.0.2.1 access 0";
const REMOTE: &str = "VNI ADDR, like 10 192.0.2.2";
const STATION: &str = "VNI MAC ADDR, like 10 02:00:00:00:00:01 192.0.2.2";
const BRIDGE: &str = "MAC LINK, like 02:00:00:00:00:01 1";
const FDB: &str = "VNI MAC ADDR (vxlan) or MAC LINK (bridge)";

/// UDP port of VXLAN (RFC 7348 8).
const UDP_PORT: u16 = 4789;

/// Reads a network identifier.
pub(in crate::model) fn vni(words: &mut Words<'_>) -> Result<u32, SpecError> {
    words.number("VNI", 0, (1 << 24) - 1)
}

fn network(words: &mut Words<'_>) -> Result<Network, SpecError> {
    let vni = vni(words)?;
    if !words.eat("local") {
        return Err(words.unexpected());
    }
    let local = words.addr("local address")?;
    if !words.eat("access") {
        return Err(words.unexpected());
    }
    let links: String = words.read("access links", "must be links like 0,1.100")?;
    let access = links.split(',').map(str::parse).collect::<Result<Vec<Link>, _>>()?;
    if (1..access.len()).any(|i| access[..i].contains(&access[i])) {
        return Err(words.bad("access links", &links, "hold a link twice: keep one"));
    }
    let udp_port = if words.eat("port") { words.number("port", 1, 65_535)? as u16 } else { UDP_PORT };
    let mut learn = true;
    if words.eat("learn") {
        learn = words.eat("on");
        if !learn && !words.eat("off") {
            return Err(words.unexpected());
        }
    }
    Ok(Network { vni, local, access, udp_port, learn })
}

/// Reads a remote end.
pub(in crate::model) fn remote(words: &mut Words<'_>) -> Result<Remote, SpecError> {
    Ok(Remote { vni: vni(words)?, addr: words.addr("remote address")? })
}

fn station(words: &mut Words<'_>) -> Result<StaticEntry, SpecError> {
    Ok(StaticEntry { vni: vni(words)?, mac: words.mac("MAC address")?, addr: words.addr("remote address")? })
}

fn bridge(words: &mut Words<'_>) -> Result<BridgeEntry, SpecError> {
    Ok(BridgeEntry { mac: words.mac("MAC address")?, link: words.link()? })
}

/// Reads what an entry is found by: the network, none for the bridge, and the station.
pub(in crate::model) fn station_key(words: &mut Words<'_>) -> Result<(Option<u32>, MacAddr), SpecError> {
    let network = if is_mac(words) { None } else { Some(vni(words)?) };
    Ok((network, words.mac("MAC address")?))
}

fn is_mac(words: &Words<'_>) -> bool {
    words.peek().is_some_and(|word| word.contains([':', '-']))
}

fn fdb(words: &mut Words<'_>) -> Result<Fdb, SpecError> {
    Ok(if is_mac(words) { Fdb::Bridge(bridge(words)?) } else { Fdb::Vxlan(station(words)?) })
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} local {} access ", self.vni, self.local)?;
        join(f, &self.access, ",")?;
        if self.udp_port != UDP_PORT {
            write!(f, " port {}", self.udp_port)?;
        }
        f.write_str(if self.learn { "" } else { " learn off" })
    }
}

impl fmt::Display for Remote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.vni, self.addr)
    }
}

impl fmt::Display for StaticEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {}", self.vni, self.mac, self.addr)
    }
}

impl fmt::Display for BridgeEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.mac, self.link)
    }
}

impl fmt::Display for Fdb {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Vxlan(entry) => fmt::Display::fmt(entry, f),
            Self::Bridge(entry) => fmt::Display::fmt(entry, f),
        }
    }
}

text_form! {
    Network, "network", NETWORK, network;
    Remote, "remote", REMOTE, remote;
    StaticEntry, "fdb", STATION, station;
    BridgeEntry, "fdb", BRIDGE, bridge;
    Fdb, "fdb", FDB, fdb;
}
