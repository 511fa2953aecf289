//! MAC addresses.

use std::{fmt, str::FromStr};

/// A 48-bit Ethernet address.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct MacAddr(pub [u8; 6]);

impl MacAddr {
    /// `ff:ff:ff:ff:ff:ff`.
    pub const BROADCAST: Self = Self([0xff; 6]);

    /// Whether the group bit is set: multicast or broadcast.
    pub const fn is_group(self) -> bool {
        self.0[0] & 1 != 0
    }
}

impl fmt::Display for MacAddr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c, d, e, g] = self.0;
        f.pad(&format!("{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{g:02x}"))
    }
}

impl fmt::Debug for MacAddr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A text that is not a MAC address.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("MAC address {0:?}: must be six pairs of hexadecimal digits, like 02:00:00:00:00:01")]
pub struct MacAddrError(String);

impl FromStr for MacAddr {
    type Err = MacAddrError;
    fn from_str(text: &str) -> Result<Self, MacAddrError> {
        let err = || MacAddrError(text.to_owned());
        let mut pairs = text.trim().split([':', '-']);
        let mut mac = [0; 6];
        for byte in &mut mac {
            let pair = pairs.next().filter(|p| p.len() == 2 && p.bytes().all(|b| b.is_ascii_hexdigit()));
            *byte = u8::from_str_radix(pair.ok_or_else(err)?, 16).map_err(|_| err())?;
        }
        match pairs.next() {
            None => Ok(Self(mac)),
            Some(_) => Err(err()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_survive_their_own_text() {
        let mac: MacAddr = "02:00:5E:10:fe-01".parse().unwrap();
        assert_eq!(mac, MacAddr([2, 0, 0x5e, 0x10, 0xfe, 1]));
        assert_eq!(mac.to_string().parse(), Ok(mac));
        assert!(!mac.is_group() && MacAddr::BROADCAST.is_group());
    }

    #[test]
    fn what_is_no_address_is_refused() {
        for bad in
            ["", "02:00:00:00:00", "02:00:00:00:00:01:02", "2:0:0:0:0:1", "+2:00:00:00:00:01", "gg:00:00:00:00:01"]
        {
            assert!(bad.parse::<MacAddr>().is_err(), "{bad}");
        }
    }
}
