//! Many routes at once.

use super::*;
use crate::{fib::NO_ROUTE, router::FibMemory, tables::GROUP, Prefix};

/// A table that holds nothing, to see what all the rest takes.
#[derive(Debug)]
struct Nothing;

impl FibMaker for Nothing {
    fn make4(&self, _: usize) -> Result<Arc<dyn Lookup4>, FibError> {
        Ok(Arc::new(Nothing))
    }
    fn make6(&self, _: usize) -> Result<Arc<dyn Lookup6>, FibError> {
        Ok(Arc::new(Nothing))
    }
}

impl Lookup4 for Nothing {
    fn lookup(&self, _: &[u32], next_hop: &mut [u64]) {
        next_hop.fill(NO_ROUTE.into());
    }
    fn update(&mut self, _: &[(Prefix, Option<u32>)]) -> Result<(), FibError> {
        Ok(())
    }
}

impl Lookup6 for Nothing {
    fn lookup(&self, _: &[[u8; 16]], next_hop: &mut [u64]) {
        next_hop.fill(NO_ROUTE.into());
    }
    fn update(&mut self, _: &[(Prefix, Option<u32>)]) -> Result<(), FibError> {
        Ok(())
    }
}

fn lines(count: u32) -> impl Iterator<Item = String> {
    (0..count).map(move |n| {
        // Scattered, so that the order of the lines is not that of the table.
        let net = std::net::Ipv4Addr::from(0x1000_0000 + n * 7 % count * 256);
        format!("route add {net}/24 via 192.0.2.{}", 2 + n % 200)
    })
}

/// How long this thread has run: what else the machine does does not count.
fn on_cpu() -> Duration {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    Duration::from_nanos(text.split(' ').next().and_then(|ns| ns.parse().ok()).unwrap_or(0))
}

/// Routes from text to tables, in batches; returns how long reading and applying took on the CPU.
fn load(count: u32, batch: usize) -> (Router, Duration, Duration) {
    let mut router = with_maker(Box::new(Nothing));
    apply(&mut router, &["address add 0 192.0.2.1/24"]).unwrap();
    let lines: Vec<_> = lines(count).collect();
    let start = on_cpu();
    let ops: Vec<Op> = lines.iter().map(|line| line.parse().unwrap()).collect();
    let read = on_cpu() - start;
    let start = on_cpu();
    ops.chunks(batch).for_each(|batch| router.apply(batch).unwrap());
    (router, read, on_cpu() - start)
}

#[test]
fn many_routes_share_few_next_hops() {
    // `LINERATE_BULK=1000000 cargo test -- --nocapture many_routes` tells how long a bulk load takes.
    let count = std::env::var("LINERATE_BULK").ok().and_then(|n| n.parse().ok()).unwrap_or(50_000);
    for batch in [65_536, usize::MAX] {
        let (mut router, read, applied) = load(count, batch);
        println!("{count} routes in batches of {batch}: read in {read:?}, applied in {applied:?}");
        let counts = router.counts();
        // 4 martians, the connected network, its broadcast and the router's own address.
        assert_eq!((counts.routes, counts.ip4, counts.fib4.0), (count as usize, count as usize + 7, FibMemory::Large));
        assert_eq!((counts.adjacencies, counts.groups), (3 + 1 + 200, 0));
        assert!(router.installed.values().all(|hop| hop & GROUP == 0));
        let ops: Vec<Op> = lines(count)
            .map(|line| line.replace("add", "del").split(" via").next().unwrap().parse().unwrap())
            .collect();
        router.apply(&ops).unwrap();
        assert_eq!((router.counts().routes, router.counts().ip4), (0, 7));
        apply(&mut router, &["route add 10.0.0.0/8 via 192.0.2.250"]).unwrap();
        assert_eq!(router.counts().adjacencies, 204, "numbers are used again");
    }
}
