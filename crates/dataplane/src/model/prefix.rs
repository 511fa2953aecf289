//! IPv4 and IPv6 prefixes.

use std::{fmt, net::IpAddr, str::FromStr};

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::SpecError;

/// An IPv4 or IPv6 prefix: an address whose bits beyond the length are zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Prefix {
    addr: IpAddr,
    len: u8,
}

const LEGAL: &str = "must be an address and a length like 198.19.0.0/16 (0 to 32) or 2001:2::/48 (0 to 128)";

impl Prefix {
    /// A prefix. Errors when the length is over 32 (IPv4) or 128 (IPv6), or the address has bits beyond it.
    pub fn new(addr: IpAddr, len: u8) -> Result<Self, SpecError> {
        let shown = || format!("{addr}/{len}");
        if len > Self::width(addr) {
            return Err(SpecError::new("prefix", shown(), LEGAL));
        }
        let network = Self { addr: mask(addr, len), len };
        if network.addr != addr {
            return Err(SpecError::new("prefix", shown(), format!("has bits beyond its length: write {network}")));
        }
        Ok(network)
    }

    /// The prefix of this length that an address is in; a length beyond the address is the address itself.
    pub(crate) fn around(addr: IpAddr, len: u8) -> Self {
        let len = len.min(Self::width(addr));
        Self { addr: mask(addr, len), len }
    }

    /// The prefix of one address.
    pub(crate) fn host(addr: IpAddr) -> Self {
        Self { addr, len: Self::width(addr) }
    }

    /// The one address, of a prefix that is as long as that.
    pub(crate) fn as_host(&self) -> Option<IpAddr> {
        (self.len == Self::width(self.addr)).then_some(self.addr)
    }

    /// The network address.
    pub fn addr(&self) -> IpAddr {
        self.addr
    }

    /// Bits that count.
    #[allow(clippy::len_without_is_empty)]
    pub fn len(&self) -> u8 {
        self.len
    }

    /// Whether the address is inside.
    pub fn contains(&self, addr: IpAddr) -> bool {
        addr.is_ipv4() == self.addr.is_ipv4() && mask(addr, self.len) == self.addr
    }

    fn width(addr: IpAddr) -> u8 {
        if addr.is_ipv4() {
            32
        } else {
            128
        }
    }
}

/// The address with all bits beyond `len` cleared.
fn mask(addr: IpAddr, len: u8) -> IpAddr {
    match addr {
        IpAddr::V4(a) => {
            let keep = u32::MAX.checked_shl(32 - u32::from(len.min(32))).unwrap_or(0);
            IpAddr::V4((u32::from(a) & keep).into())
        }
        IpAddr::V6(a) => {
            let keep = u128::MAX.checked_shl(128 - u32::from(len.min(128))).unwrap_or(0);
            IpAddr::V6((u128::from(a) & keep).into())
        }
    }
}

impl FromStr for Prefix {
    type Err = SpecError;
    fn from_str(text: &str) -> Result<Self, SpecError> {
        let err = || SpecError::new("prefix", text, LEGAL);
        let (addr, len) = text.trim().split_once('/').ok_or_else(err)?;
        Self::new(addr.parse().map_err(|_| err())?, len.parse().map_err(|_| err())?)
    }
}

impl fmt::Display for Prefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.addr, self.len)
    }
}

impl Serialize for Prefix {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Prefix {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        String::deserialize(d)?.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefixes_survive_their_text() {
        for text in ["0.0.0.0/0", "198.19.0.0/16", "198.18.1.7/32", "::/0", "2001:2:0:1::/64", "2001:2::1/128"] {
            assert_eq!(text.parse::<Prefix>().unwrap().to_string(), text);
        }
        for bad in ["", "1.2.3.4", "1.2.3.0/33", "1.2.3/24", "::/129", "2001:2::/-1", "1.2.3.0/x"] {
            let error = bad.parse::<Prefix>().unwrap_err();
            assert_eq!((error.what.as_str(), error.value.as_str()), ("prefix", bad));
        }
    }

    #[test]
    fn stray_host_bits_are_shown_cleared() {
        let error = "198.19.1.1/24".parse::<Prefix>().unwrap_err();
        insta::assert_snapshot!(error, @r#"prefix "198.19.1.1/24": has bits beyond its length: write 198.19.1.0/24"#);
    }

    #[test]
    fn families_never_match_each_other() {
        let all: Prefix = "0.0.0.0/0".parse().unwrap();
        assert!(all.contains("255.255.255.255".parse().unwrap()) && !all.contains("::".parse().unwrap()));
    }
}
