//! Forwarding tables: the longest prefix that covers an address, looked up for a whole burst at once.
//!
//! A FIB maps a destination to the number of a next hop. [`NO_ROUTE`] is number 0; what the others mean is the
//! caller's business. [`Fib4`] and [`Fib6`] are the default for a static set of routes; the binary may plug in
//! another table (DPDK's `rte_fib`) through the traits; [`Linear`] is the oracle in tests.

use std::{collections::BTreeMap, fmt, net::IpAddr, sync::Arc};

use crate::{trie::Trie, Prefix};

/// The next hop of an address that no prefix covers.
pub const NO_ROUTE: u32 = 0;

/// The largest next hop number a default FIB holds.
pub const MAX_NEXT_HOP: u32 = (1 << 31) - 1;

/// Bulk longest-prefix match over IPv4 destinations.
pub trait Lookup4: fmt::Debug + Send + Sync {
    /// Writes the next hop of each destination (host byte order), or [`NO_ROUTE`], as far as both slices reach.
    fn lookup(&self, dst: &[u32], next_hop: &mut [u64]);

    /// Adds or replaces (`Some`) and removes (`None`) IPv4 routes; those of IPv6 are passed over. There are no lookups
    /// meanwhile. After an error the table is in no particular state and must not be used.
    fn update(&mut self, changes: &[(Prefix, Option<u32>)]) -> Result<(), FibError>;
}

/// Bulk longest-prefix match over IPv6 destinations.
pub trait Lookup6: fmt::Debug + Send + Sync {
    /// Writes the next hop of each destination, or [`NO_ROUTE`], as far as both slices reach.
    fn lookup(&self, dst: &[[u8; 16]], next_hop: &mut [u64]);

    /// As [`Lookup4::update`], for IPv6.
    fn update(&mut self, changes: &[(Prefix, Option<u32>)]) -> Result<(), FibError>;
}

/// A table did not take the routes.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the {family} forwarding table: {why}")]
pub struct FibError {
    /// `IPv4` or `IPv6`.
    pub family: &'static str,
    /// What is wrong, and what mends it.
    pub why: String,
}

/// Makes empty tables: small ones in Rust, large ones in DPDK's memory.
pub trait FibMaker: fmt::Debug + Send {
    /// An IPv4 table for up to so many routes.
    fn make4(&self, routes: usize) -> Result<Arc<dyn Lookup4>, FibError>;
    /// An IPv6 table for up to so many routes.
    fn make6(&self, routes: usize) -> Result<Arc<dyn Lookup6>, FibError>;
}

/// A static IPv4 FIB: a trie of strides 16, 8 and 8 bits: two loads for most routes, up to a /24.
#[derive(Debug, Clone)]
pub struct Fib4 {
    trie: Trie,
    routes: BTreeMap<Prefix, u32>,
}

/// A static IPv6 FIB: a trie of one 16-bit stride and then bytes.
#[derive(Debug, Clone)]
pub struct Fib6 {
    trie: Trie,
    routes: BTreeMap<Prefix, u32>,
}

/// Tables in Rust's own memory, remade at each update: for some thousand routes.
#[derive(Debug, Clone, Copy, Default)]
pub struct Small;

impl FibMaker for Small {
    fn make4(&self, _routes: usize) -> Result<Arc<dyn Lookup4>, FibError> {
        Ok(Arc::new(Fib4::new(&[])))
    }
    fn make6(&self, _routes: usize) -> Result<Arc<dyn Lookup6>, FibError> {
        Ok(Arc::new(Fib6::new(&[])))
    }
}

/// Applies changes of one family to a map of routes.
fn merge(routes: &mut BTreeMap<Prefix, u32>, changes: &[(Prefix, Option<u32>)], ip4: bool) {
    for &(prefix, hop) in changes.iter().filter(|(prefix, _)| prefix.addr().is_ipv4() == ip4) {
        match hop {
            Some(hop) => routes.insert(prefix, hop),
            None => routes.remove(&prefix),
        };
    }
}

impl Fib4 {
    /// A FIB of the IPv4 prefixes among these; of equal prefixes the last one stands. Next hops are below 2^31.
    pub fn new(routes: &[(Prefix, u32)]) -> Self {
        Self::from_map(routes.iter().copied().filter(|(prefix, _)| prefix.addr().is_ipv4()).collect())
    }

    fn from_map(routes: BTreeMap<Prefix, u32>) -> Self {
        let trie = Trie::new(routes.iter().filter_map(|(prefix, &hop)| match prefix.addr() {
            IpAddr::V4(addr) => Some((addr.octets(), prefix.len(), hop)),
            IpAddr::V6(_) => None,
        }));
        Self { trie, routes }
    }
}

impl Fib6 {
    /// A FIB of the IPv6 prefixes among these; of equal prefixes the last one stands. Next hops are below 2^31.
    pub fn new(routes: &[(Prefix, u32)]) -> Self {
        Self::from_map(routes.iter().copied().filter(|(prefix, _)| prefix.addr().is_ipv6()).collect())
    }

    fn from_map(routes: BTreeMap<Prefix, u32>) -> Self {
        let trie = Trie::new(routes.iter().filter_map(|(prefix, &hop)| match prefix.addr() {
            IpAddr::V6(addr) => Some((addr.octets(), prefix.len(), hop)),
            IpAddr::V4(_) => None,
        }));
        Self { trie, routes }
    }
}

impl Lookup4 for Fib4 {
    #[inline]
    fn lookup(&self, dst: &[u32], next_hop: &mut [u64]) {
        for (&dst, hop) in dst.iter().zip(next_hop) {
            *hop = u64::from(self.trie.lookup((dst >> 16) as u16, &[(dst >> 8) as u8, dst as u8]).0);
        }
    }

    fn update(&mut self, changes: &[(Prefix, Option<u32>)]) -> Result<(), FibError> {
        merge(&mut self.routes, changes, true);
        *self = Self::from_map(std::mem::take(&mut self.routes));
        Ok(())
    }
}

impl Lookup6 for Fib6 {
    #[inline]
    fn lookup(&self, dst: &[[u8; 16]], next_hop: &mut [u64]) {
        // A walk down to a /64 is seven loads, and most of a burst goes where the frame before went: the last walk
        // also answers for every address that shares the bits it looked at.
        let (mut mask, mut shared, mut last) = (0, 1, NO_ROUTE);
        for (dst, hop) in dst.iter().zip(next_hop) {
            let address = u128::from_be_bytes(*dst);
            if address & mask != shared {
                let [a, b, rest @ ..] = dst;
                let (found, seen) = self.trie.lookup(u16::from_be_bytes([*a, *b]), rest);
                mask = u128::MAX << (8 * (rest.len() - seen));
                (shared, last) = (address & mask, found);
            }
            *hop = u64::from(last);
        }
    }

    fn update(&mut self, changes: &[(Prefix, Option<u32>)]) -> Result<(), FibError> {
        merge(&mut self.routes, changes, false);
        *self = Self::from_map(std::mem::take(&mut self.routes));
        Ok(())
    }
}

/// The definition of longest-prefix match, and as slow as it reads: the oracle.
#[derive(Debug, Clone)]
pub struct Linear(BTreeMap<Prefix, u32>);

impl Linear {
    /// A table of these routes; of equal prefixes the last one stands.
    pub fn new(routes: &[(Prefix, u32)]) -> Self {
        Self(routes.iter().copied().collect())
    }

    fn find(&self, addr: IpAddr) -> u32 {
        let covering = self.0.iter().filter(|(prefix, _)| prefix.contains(addr));
        covering.max_by_key(|(prefix, _)| prefix.len()).map_or(NO_ROUTE, |(_, &hop)| hop)
    }
}

impl Lookup4 for Linear {
    fn lookup(&self, dst: &[u32], next_hop: &mut [u64]) {
        for (&dst, hop) in dst.iter().zip(next_hop) {
            *hop = u64::from(self.find(IpAddr::V4(dst.into())));
        }
    }

    fn update(&mut self, changes: &[(Prefix, Option<u32>)]) -> Result<(), FibError> {
        merge(&mut self.0, changes, true);
        Ok(())
    }
}

impl Lookup6 for Linear {
    fn lookup(&self, dst: &[[u8; 16]], next_hop: &mut [u64]) {
        for (&dst, hop) in dst.iter().zip(next_hop) {
            *hop = u64::from(self.find(IpAddr::V6(dst.into())));
        }
    }

    fn update(&mut self, changes: &[(Prefix, Option<u32>)]) -> Result<(), FibError> {
        merge(&mut self.0, changes, false);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Prefixes that crowd into few bits, so that they nest and collide.
    fn crowded4() -> impl Strategy<Value = (u32, u8)> {
        (prop::bits::u32::masked(0x8101_8181), 0u8..=32)
    }

    fn crowded6() -> impl Strategy<Value = (u128, u8)> {
        let bits = 0x8001_0100_0000_0180_0000_0000_0000_0081u128;
        (any::<u128>(), 0u8..=128).prop_map(move |(a, len)| (a & bits, len))
    }

    fn cut4(addr: u32, len: u8) -> Prefix {
        let keep = u32::MAX.checked_shl(32 - u32::from(len)).unwrap_or(0);
        Prefix::new(IpAddr::V4((addr & keep).into()), len).unwrap()
    }

    fn cut6(addr: u128, len: u8) -> Prefix {
        let keep = u128::MAX.checked_shl(128 - u32::from(len)).unwrap_or(0);
        Prefix::new(IpAddr::V6((addr & keep).into()), len).unwrap()
    }

    proptest! {
        #[test]
        fn ipv4_agrees_with_the_linear_scan(
            routes in prop::collection::vec(crowded4(), 0..40),
            dst in prop::collection::vec(prop::bits::u32::masked(0xc101_81c1), 64),
        ) {
            let routes: Vec<_> = routes.iter().zip(1..).map(|(&(a, len), hop)| (cut4(a, len), hop)).collect();
            let (mut got, mut want) = ([9; 64], [9; 64]);
            Fib4::new(&routes).lookup(&dst, &mut got);
            Lookup4::lookup(&Linear::new(&routes), &dst, &mut want);
            prop_assert_eq!(got, want);
        }

        #[test]
        fn ipv6_agrees_with_the_linear_scan(
            routes in prop::collection::vec(crowded6(), 0..40),
            extra in prop::collection::vec(crowded6(), 24),
        ) {
            let dst: Vec<_> = routes.iter().chain(&extra).map(|&(a, _)| a.to_be_bytes()).collect();
            let routes: Vec<_> = routes.iter().zip(1..).map(|(&(a, len), hop)| (cut6(a, len), hop)).collect();
            let (mut got, mut want) = ([9; 64], [9; 64]);
            Fib6::new(&routes).lookup(&dst, &mut got);
            Lookup6::lookup(&Linear::new(&routes), &dst, &mut want);
            prop_assert_eq!(got, want);
        }
    }

    #[test]
    fn an_empty_fib_has_no_route() {
        let mut hop = [7; 2];
        Fib4::new(&[]).lookup(&[0, u32::MAX], &mut hop);
        assert_eq!(hop, [u64::from(NO_ROUTE); 2]);
    }
}
