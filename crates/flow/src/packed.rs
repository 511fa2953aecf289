//! Keys as whole words for the packet path and the table, so that comparing and hashing take few instructions.
//!
//! The words are in host order with the first field highest, so that addresses compare as numbers.

use crate::{Addresses, Key};

/// ICMP and ICMPv6 have their type and code in place of the destination port. Reversing the key does not move them.
pub(crate) const ICMP: u8 = 1;
pub(crate) const ICMPV6: u8 = 58;

/// In the word of the scope: there is one; it is a label at the bottom of its stack.
pub(crate) const SCOPED: u32 = 1 << 31;
pub(crate) const BOTTOM: u32 = 1 << 30;

/// The [`Key`] of an IPv4 flow.
///
/// Word 0 is the source (high half) and the destination, word 1 from the top the source port (16 bits), the destination
/// port (16), the protocol (8), the port it was seen on (8) and 16 zeros, word 2 the scope with the bit 2^31, or zero
/// without one; 2^30 is that of the bottom of a stack.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Key4(pub [u64; 3]);

/// The [`Key`] of an IPv6 flow: two words of the source, two of the destination, then as the last two of [`Key4`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Key6(pub [u64; 6]);

impl Key4 {
    /// Packs a key; `None` when it is not an IPv4 key.
    pub fn from_key(key: &Key) -> Option<Self> {
        let Addresses::V4 { src, dst } = key.addresses else { return None };
        Some(Self([u64::from(src.to_bits()) << 32 | u64::from(dst.to_bits()), tail(key), scope(key)]))
    }

    /// The key of the other direction: addresses and ports change places. The type and code of ICMP stay.
    #[inline]
    pub fn flipped(self) -> Self {
        let Self([addresses, tail, scope]) = self;
        Self([addresses.rotate_left(32), flipped(tail, ICMP), scope])
    }
}

impl Key6 {
    /// Packs a key; `None` when it is not an IPv6 key.
    pub fn from_key(key: &Key) -> Option<Self> {
        let Addresses::V6 { src, dst } = key.addresses else { return None };
        let ([s0, s1], [d0, d1]) = (halves(src.to_bits()), halves(dst.to_bits()));
        Some(Self([s0, s1, d0, d1, tail(key), scope(key)]))
    }

    /// The key of the other direction: addresses and ports change places. The type and code of ICMPv6 stay.
    #[inline]
    pub fn flipped(self) -> Self {
        let Self([s0, s1, d0, d1, tail, scope]) = self;
        Self([d0, d1, s0, s1, flipped(tail, ICMPV6), scope])
    }
}

impl From<Key4> for Key {
    fn from(Key4([addresses, tail, scope]): Key4) -> Self {
        let [src, dst] = [addresses >> 32, addresses].map(|half| (half as u32).into());
        unpacked(Addresses::V4 { src, dst }, tail, scope)
    }
}

impl From<Key6> for Key {
    fn from(Key6([s0, s1, d0, d1, tail, scope]): Key6) -> Self {
        let [src, dst] = [(s0, s1), (d0, d1)].map(|(high, low)| (u128::from(high) << 64 | u128::from(low)).into());
        unpacked(Addresses::V6 { src, dst }, tail, scope)
    }
}

/// The two words of an IPv6 address.
#[inline(always)]
pub(crate) fn halves(address: u128) -> [u64; 2] {
    [(address >> 64) as u64, address as u64]
}

fn tail(key: &Key) -> u64 {
    u64::from(key.sport) << 48 | u64::from(key.dport) << 32 | u64::from(key.protocol) << 24 | u64::from(key.port) << 16
}

fn scope(key: &Key) -> u64 {
    let bottom = if key.bottom { BOTTOM } else { 0 };
    key.scope.map_or(0, |scope| scope | SCOPED | bottom).into()
}

fn flipped(tail: u64, icmp: u8) -> u64 {
    if (tail >> 24) as u8 == icmp {
        return tail;
    }
    tail & 0xffff_ffff | u64::from(((tail >> 32) as u32).rotate_left(16)) << 32
}

fn unpacked(addresses: Addresses, tail: u64, scope: u64) -> Key {
    Key {
        addresses,
        sport: (tail >> 48) as u16,
        dport: (tail >> 32) as u16,
        protocol: (tail >> 24) as u8,
        port: (tail >> 16) as u8,
        scope: (scope as u32 & SCOPED != 0).then_some(scope as u32 & !(SCOPED | BOTTOM)),
        bottom: scope as u32 & BOTTOM != 0,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_words_are_as_said() {
        let key = Key {
            addresses: Addresses::V4 { src: [10, 0, 0, 1].into(), dst: [192, 0, 2, 9].into() },
            sport: 0x1234,
            dport: 0x5678,
            protocol: 6,
            port: 3,
            scope: Some(0xabcde),
            bottom: false,
        };
        assert_eq!(Key4::from_key(&key), Some(Key4([0x0a00_0001_c000_0209, 0x1234_5678_0603_0000, 0x800a_bcde])));
        assert_eq!(Key6::from_key(&key), None);
        let addresses = Addresses::V6 { src: "2001:db8::1".parse().unwrap(), dst: "2001:db8:0:7::2".parse().unwrap() };
        let six = Key { addresses, ..key };
        let words = [0x2001_0db8_0000_0000, 1, 0x2001_0db8_0000_0007, 2, 0x1234_5678_0603_0000, 0x800a_bcde];
        assert_eq!(Key6::from_key(&six), Some(Key6(words)));
        assert_eq!(Key4::from_key(&six), None);
    }

    #[test]
    fn icmp_has_no_port_to_flip() {
        let key = Key4([1 << 32 | 2, 0x0800_0100_0000, 7]);
        assert_eq!(key.flipped(), Key4([2 << 32 | 1, 0x0800_0100_0000, 7]));
        let key = Key6([1, 2, 3, 4, 0x8000_3a00_0000, 0]);
        assert_eq!(key.flipped(), Key6([3, 4, 1, 2, 0x8000_3a00_0000, 0]));
        // Each IP version has its own ICMP; under the number of the other version, the field may hold ports.
        assert_eq!(Key4([0, 0x0001_0002_3a00_0000, 0]).flipped().0[1], 0x0002_0001_3a00_0000);
    }

    proptest! {
        #[test]
        fn keys_come_back_as_they_were(
            (a, b) in any::<(u128, u128)>(), (sport, dport) in any::<(u16, u16)>(),
            (protocol, port) in any::<(u8, u8)>(), scope in prop::option::of(0..1u32 << 24), (six, last) in any::<(bool, bool)>(),
        ) {
            let addresses = if six {
                Addresses::V6 { src: a.into(), dst: b.into() }
            } else {
                Addresses::V4 { src: (a as u32).into(), dst: (b as u32).into() }
            };
            let key = Key { addresses, sport, dport, protocol, port, scope, bottom: last && scope.is_some() };
            if six {
                let packed = Key6::from_key(&key).unwrap();
                prop_assert_eq!(Key::from(packed), key);
                prop_assert_eq!(packed.flipped().flipped(), packed);
            } else {
                let packed = Key4::from_key(&key).unwrap();
                prop_assert_eq!(Key::from(packed), key);
                prop_assert_eq!(packed.flipped().flipped(), packed);
                let other = Key::from(packed.flipped());
                prop_assert_eq!((other.addresses.src(), other.addresses.dst()), (addresses.dst(), addresses.src()));
                let ports = if protocol == ICMP { (sport, dport) } else { (dport, sport) };
                prop_assert_eq!((other.sport, other.dport, other.scope), (ports.0, ports.1, scope));
            }
        }
    }
}
