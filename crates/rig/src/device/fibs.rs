//! The data plane's large forwarding tables, in DPDK's memory (`rte_fib`).

use std::{net::IpAddr, sync::Arc};

use dataplane::{
    fib::{FibError, FibMaker, Lookup4, Lookup6},
    router::SMALL_FIB,
    Prefix,
};
use dpdk::{DpdkError, Eal, Fib4, Fib6, FibConfig};

/// Makes tables of at least 64 MiB. 1,000 routes take 65 MiB (IPv6: 77 MiB). A million IPv4 routes take 513 MiB and load in
/// 0.3 s; 200,000 IPv6 routes take 731 MiB and load in 1 s.
#[derive(Debug, Clone, Copy)]
pub struct RteFibs {
    eal: &'static Eal,
}

impl RteFibs {
    /// Makes tables in the memory of this DPDK.
    pub fn new(eal: &'static Eal) -> Self {
        Self { eal }
    }
}

impl FibMaker for RteFibs {
    fn make4(&self, routes: usize) -> Result<Arc<dyn Lookup4>, FibError> {
        let table = Fib4::new(self.eal, &config(routes)).map_err(|e| error("IPv4", e))?;
        Ok(Arc::new(Large(table)))
    }

    fn make6(&self, routes: usize) -> Result<Arc<dyn Lookup6>, FibError> {
        let table = Fib6::new(self.eal, &config(routes)).map_err(|e| error("IPv6", e))?;
        Ok(Arc::new(Large(table)))
    }
}

/// A table of DPDK's. An address without a route has next hop 0, [`dataplane::fib::NO_ROUTE`].
#[derive(Debug)]
struct Large<T>(T);

impl Lookup4 for Large<Fib4> {
    #[inline]
    fn lookup(&self, dst: &[u32], next_hop: &mut [u64]) {
        self.0.lookup_bulk(dst, next_hop);
    }

    fn update(&mut self, changes: &[(Prefix, Option<u32>)]) -> Result<(), FibError> {
        for &(prefix, hop) in in_order(changes) {
            let IpAddr::V4(addr) = prefix.addr() else { continue };
            let done = match hop {
                Some(hop) => self.0.add(addr, prefix.len(), hop),
                None => self.0.remove(addr, prefix.len()).map(drop),
            };
            done.map_err(|e| error("IPv4", e))?;
        }
        Ok(())
    }
}

impl Lookup6 for Large<Fib6> {
    #[inline]
    fn lookup(&self, dst: &[[u8; 16]], next_hop: &mut [u64]) {
        self.0.lookup_bulk(dst, next_hop);
    }

    fn update(&mut self, changes: &[(Prefix, Option<u32>)]) -> Result<(), FibError> {
        for &(prefix, hop) in in_order(changes) {
            let IpAddr::V6(addr) = prefix.addr() else { continue };
            let done = match hop {
                Some(hop) => self.0.add(addr, prefix.len(), hop),
                None => self.0.remove(addr, prefix.len()).map(drop),
            };
            done.map_err(|e| error("IPv6", e))?;
        }
        Ok(())
    }
}

/// MiB for a table of `routes` IPv4 routes (see `RteFibs`) with room to grow; 0 for few routes, whose table is not in
/// DPDK's memory.
pub fn tables_mib(routes: usize) -> u32 {
    // A quarter more routes, 64 MiB for the first level, 48 MiB for groups.
    let grown = routes as f64 * 1.25;
    if routes > SMALL_FIB {
        (112.0 + grown * 450e-6) as u32
    } else {
        0
    }
}

fn config(routes: usize) -> FibConfig {
    FibConfig::new(u32::try_from(routes.max(1)).unwrap_or(u32::MAX))
}

/// Sorts by prefix, because neighbouring routes are together in memory: in random order a million take ten times as long.
/// Several changes of one route keep their order.
fn in_order(changes: &[(Prefix, Option<u32>)]) -> Vec<&(Prefix, Option<u32>)> {
    let mut sorted: Vec<_> = changes.iter().collect();
    sorted.sort_by_key(|(prefix, _)| *prefix);
    sorted
}

fn error(family: &'static str, e: DpdkError) -> FibError {
    let why = match e {
        DpdkError::NoMemory { what, reason } => {
            format!("no memory for {what} ({reason}); give more memory (--memory-mib)")
        }
        DpdkError::Fib { what, reason, .. } => format!("{what}: {reason}"),
        other => other.to_string(),
    };
    FibError { family, why }
}

#[cfg(test)]
mod tests {
    use dataplane::fib::{Linear, NO_ROUTE};
    use dpdk::{EalOptions, Memory};

    use super::*;

    fn prefix(text: &str) -> Prefix {
        text.parse().unwrap()
    }

    #[test]
    fn only_large_tables_take_memory_of_dpdk() {
        assert_eq!([0, SMALL_FIB, SMALL_FIB + 1, 1_000_000].map(tables_mib), [0, 0, 114, 674]);
    }

    /// DPDK starts once in a process, so all of it is one test.
    #[test]
    fn large_tables_agree_with_the_linear_scan_while_routes_come_and_go() {
        let memory = Memory::NoHuge { mib: 320 };
        let eal = Eal::init(EalOptions { memory, ..EalOptions::default() }).unwrap_or_else(|e| panic!("{e}"));
        let fibs = RteFibs::new(eal);
        let before = eal.memory_used();
        let (mut four, mut six) = (fibs.make4(4097).unwrap(), fibs.make6(4097).unwrap());
        assert!(eal.memory_used() > before + (128 << 20));
        let mut linear = Linear::new(&[]);
        let hops = |n: u32| (1..=n).map(|i| (i, 1 << 31 >> (i % 31 + 1)));
        let routes: Vec<(Prefix, Option<u32>)> = hops(300)
            .flat_map(|(i, hop)| {
                let four = format!("10.{}.{}.0/{}", i % 7, i & 0xf8, 21 + i % 4);
                let six = format!("2001:db8:{:x}::/{}", i % 97, 48 + 16 * (i % 2));
                [(prefix(&four), Some(hop)), (prefix(&six), Some(hop))]
            })
            .chain([(prefix("0.0.0.0/0"), Some(5)), (prefix("10.1.8.77/32"), Some(6)), (prefix("::/0"), Some(7))])
            .collect();
        // Put in; of one, several times; half of them and some that are not there taken out; put in again.
        let out: Vec<_> = routes.iter().step_by(2).map(|(p, _)| (*p, None)).collect();
        let strange = vec![(prefix("192.0.2.0/24"), None), (prefix("3fff::/20"), None)];
        for changes in [routes.clone(), out, strange, routes] {
            for _ in 0..2 {
                Arc::get_mut(&mut four).unwrap().update(&changes).unwrap();
                Arc::get_mut(&mut six).unwrap().update(&changes).unwrap();
                Lookup4::update(&mut linear, &changes).unwrap();
                // Linear keeps one map for both families, and each of its updates passes the other over.
                Lookup6::update(&mut linear, &changes).unwrap();
            }
            let dst: Vec<u32> = (0..2000u32).map(|i| 0x0a00_0000 + (i % 8) * 0x1_0000 + i * 0x25).collect();
            let (mut got, mut want) = (vec![9; 2000], vec![8; 2000]);
            four.lookup(&dst, &mut got);
            Lookup4::lookup(&linear, &dst, &mut want);
            assert_eq!(got, want);
            let dst: Vec<[u8; 16]> =
                (0..2000u128).map(|i| (0x2001_0db8 << 96 | (i % 101) << 80 | (i % 3) << 64).to_be_bytes()).collect();
            six.lookup(&dst, &mut got);
            Lookup6::lookup(&linear, &dst, &mut want);
            assert_eq!(got, want);
        }
        let mut hop = [9];
        fibs.make4(1).unwrap().lookup(&[1], &mut hop);
        assert_eq!(hop, [u64::from(NO_ROUTE)]);

        insta::assert_snapshot!(fibs.make6(1_000_000).unwrap_err(), @"the IPv6 forwarding table: no memory for the IPv6 table for 1000000 routes and 3000000 groups (Cannot allocate memory); give more memory (--memory-mib)");
        let Err(many) = fibs.make4(1 << 25) else { panic!("too many") };
        insta::assert_snapshot!(many, @"the IPv4 forwarding table: the IPv4 table for 33554432 routes: must be 1 to 16777216 routes");
        let crowd: Vec<_> =
            (0..20_000u32).map(|i| (Prefix::new(IpAddr::V4((i << 12).into()), 32).unwrap(), Some(1))).collect();
        insta::assert_snapshot!(Arc::get_mut(&mut four).unwrap().update(&crowd).unwrap_err(), @"the IPv4 forwarding table: route 0.240.96.0/32: the table is full: it was made for 4097 routes and 4097 groups of long ones");
        drop((four, six));
        assert_eq!(eal.memory_used(), before);
        Eal::cleanup();
    }
}
