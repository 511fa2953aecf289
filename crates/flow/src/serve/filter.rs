//! Filters of flows, ready for millions of records.

use std::net::IpAddr;

use crate::{protocol::Filter, Record};

/// A parsed [`Filter`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Matcher {
    prefix: Option<Prefix>,
    port: Option<u16>,
    protocol: Option<u8>,
    ingress: Option<u8>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Prefix {
    V4 { net: u32, mask: u32 },
    V6 { net: u128, mask: u128 },
}

impl Prefix {
    fn new(text: &str) -> Option<Self> {
        let (address, length) = text.split_once('/').map_or((text, None), |(a, l)| (a, Some(l)));
        // Digits alone: the parser would take a plus.
        let length = match length {
            None => None,
            Some(l) if (1..=3).contains(&l.len()) && l.bytes().all(|b| b.is_ascii_digit()) => Some(l.parse().ok()?),
            Some(_) => return None,
        };
        match address.parse().ok()? {
            IpAddr::V4(a) => {
                let length: u32 = length.unwrap_or(32);
                let mask = u32::MAX.checked_shl(32u32.checked_sub(length)?).unwrap_or(0);
                Some(Self::V4 { net: a.to_bits() & mask, mask })
            }
            IpAddr::V6(a) => {
                let length: u32 = length.unwrap_or(128);
                let mask = u128::MAX.checked_shl(128u32.checked_sub(length)?).unwrap_or(0);
                Some(Self::V6 { net: a.to_bits() & mask, mask })
            }
        }
    }

    fn has(self, address: IpAddr) -> bool {
        match (self, address) {
            (Self::V4 { net, mask }, IpAddr::V4(a)) => a.to_bits() & mask == net,
            (Self::V6 { net, mask }, IpAddr::V6(a)) => a.to_bits() & mask == net,
            _ => false,
        }
    }
}

impl Matcher {
    /// Parses a filter. The error says in one line what is wrong and what is legal.
    pub fn new(filter: &Filter) -> Result<Self, String> {
        let prefix = match &filter.prefix {
            None => None,
            Some(text) => Some(Prefix::new(text).ok_or_else(|| {
                format!(
                    "filter prefix {:?}: must be an address or a prefix like 10.0.0.0/8 or 2001:db8::/32",
                    text.chars().take(60).collect::<String>()
                )
            })?),
        };
        Ok(Self { prefix, port: filter.port, protocol: filter.protocol, ingress: filter.ingress })
    }

    /// Whether a record matches every given part.
    pub fn matches(&self, record: &Record) -> bool {
        let key = &record.key;
        self.ingress.is_none_or(|i| i == record.ingress)
            && self.protocol.is_none_or(|p| p == key.protocol)
            && self.port.is_none_or(|p| p == key.sport || p == key.dport)
            && self.prefix.is_none_or(|p| p.has(key.addresses.src()) || p.has(key.addresses.dst()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefixes() {
        let has = |prefix: &str, address: &str| Prefix::new(prefix).unwrap().has(address.parse().unwrap());
        for (prefix, inside, outside) in [
            ("10.0.0.0/8", "10.255.0.1", "11.0.0.0"),
            ("10.1.2.3/8", "10.9.9.9", "9.1.2.3"),
            ("192.0.2.7", "192.0.2.7", "192.0.2.6"),
            ("0.0.0.0/0", "203.0.113.1", "::"),
            ("2001:db8::/33", "2001:db8:7fff::1", "2001:db8:8000::1"),
            ("::/0", "2001:db8::1", "0.0.0.0"),
            ("::1/128", "::1", "::2"),
        ] {
            assert!(has(prefix, inside) && !has(prefix, outside), "{prefix}");
        }
        for bad in
            ["", "/", "10.0.0.0/", "10.0.0.0/33", "10.0.0.0/+8", "::/129", "10/8", "x", "10.0.0.0/8/8", "::/0128"]
        {
            assert_eq!(Prefix::new(bad), None, "{bad}");
        }
        let error = Matcher::new(&Filter { prefix: Some("x".repeat(1000)), ..Filter::default() }).unwrap_err();
        assert!(error.len() < 200, "{error}");
        insta::assert_snapshot!(error, @r#"filter prefix "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx": must be an address or a prefix like 10.0.0.0/8 or 2001:db8::/32"#);
    }
}
