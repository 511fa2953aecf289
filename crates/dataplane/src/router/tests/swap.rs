use std::{
    sync::{
        atomic::{AtomicUsize, Ordering},
        Mutex,
    },
    thread,
};

use super::*;
use crate::{model::OpErrorKind, router::FibMemory, Prefix};

/// What a maker has been asked for, and whether it refuses.
#[derive(Debug, Clone, Default)]
struct Watched {
    made: Arc<Mutex<Vec<usize>>>,
    refuse: Arc<AtomicUsize>,
}

#[derive(Debug)]
struct Table(Linear, Arc<AtomicUsize>);

const REFUSE_TABLE: usize = 1;
const REFUSE_ROUTE: usize = 2;

fn full() -> FibError {
    FibError { family: "IPv4", why: "no memory left: give --socket-mem more".to_owned() }
}

impl FibMaker for Watched {
    fn make4(&self, routes: usize) -> Result<Arc<dyn Lookup4>, FibError> {
        if self.refuse.load(Ordering::Relaxed) == REFUSE_TABLE {
            return Err(full());
        }
        self.made.lock().unwrap().push(routes);
        Ok(Arc::new(Table(Linear::new(&[]), Arc::clone(&self.refuse))))
    }
    fn make6(&self, _: usize) -> Result<Arc<dyn Lookup6>, FibError> {
        Err(FibError { family: "IPv6", why: "none".to_owned() })
    }
}

impl Lookup4 for Table {
    fn lookup(&self, dst: &[u32], next_hop: &mut [u64]) {
        Lookup4::lookup(&self.0, dst, next_hop);
    }
    fn update(&mut self, changes: &[(Prefix, Option<u32>)]) -> Result<(), FibError> {
        Lookup4::update(&mut self.0, changes)?;
        if self.1.load(Ordering::Relaxed) == REFUSE_ROUTE {
            return Err(full());
        }
        Ok(())
    }
}

/// `count` routes from 16.0.0.0 up, all to one station.
fn load(router: &mut Router, from: u32, count: u32) -> Result<(), OpError> {
    let line =
        |n| format!("route add {}/24 port 1 mac 02:00:00:00:00:05", std::net::Ipv4Addr::from(0x1000_0000 + n * 256));
    router.apply(&(from..from + count).map(|n| line(n).parse().unwrap()).collect::<Vec<_>>())
}

#[test]
fn tables_are_made_as_the_routes_grow_and_twice_only_for_a_change() {
    let watched = Watched::default();
    let mut router = with_maker(Box::new(watched.clone()));
    load(&mut router, 0, 4000).unwrap();
    assert_eq!((router.counts().fib4.0, watched.made.lock().unwrap().len()), (FibMemory::Small, 0));
    load(&mut router, 4000, 1000).unwrap();
    // Four martian prefixes are there too.
    assert_eq!(router.counts().fib4, (FibMemory::Large, 9100));
    assert_eq!(*watched.made.lock().unwrap(), [9100]);
    load(&mut router, 5000, 10).unwrap();
    load(&mut router, 5010, 10).unwrap();
    load(&mut router, 5020, 10).unwrap();
    assert_eq!(*watched.made.lock().unwrap(), [9100, 9100]);
    assert_eq!((mac(&router, "16.0.5.1"), mac(&router, "16.19.165.1")), (Some(5), Some(5)));
    load(&mut router, 5030, 5000).unwrap();
    assert_eq!(*watched.made.lock().unwrap(), [9100, 9100, 14_130]);
    assert_eq!(router.counts().fib6.0, FibMemory::Small);
}

#[test]
fn a_table_that_refuses_changes_nothing() {
    let watched = Watched::default();
    let mut router = with_maker(Box::new(watched.clone()));
    load(&mut router, 0, 4000).unwrap();
    watched.refuse.store(REFUSE_TABLE, Ordering::Relaxed);
    let error = load(&mut router, 4000, 1000).unwrap_err();
    assert_eq!((error.kind, error.why), (OpErrorKind::Table, full().to_string()));
    assert_eq!((router.counts().routes, router.counts().ip4, mac(&router, "16.15.170.1")), (4000, 4004, None));
    watched.refuse.store(0, Ordering::Relaxed);
    load(&mut router, 4000, 1000).unwrap();
    load(&mut router, 5000, 1).unwrap();
    for refuse in [REFUSE_ROUTE, REFUSE_TABLE] {
        watched.refuse.store(refuse, Ordering::Relaxed);
        load(&mut router, 5001, 1).unwrap_err();
        load(&mut router, 5001, 1).unwrap_err();
        assert_eq!(
            (router.counts().routes, mac(&router, "16.19.137.1"), mac(&router, "16.19.136.1")),
            (5001, None, Some(5))
        );
    }
    watched.refuse.store(0, Ordering::Relaxed);
    load(&mut router, 5001, 1).unwrap();
    assert_eq!(mac(&router, "16.19.137.1"), Some(5));
}

#[test]
fn a_neighbour_that_the_table_refuses_is_tried_again() {
    let watched = Watched::default();
    let mut router = with_maker(Box::new(watched.clone()));
    apply(&mut router, &["address add 0 192.0.2.1/24"]).unwrap();
    load(&mut router, 0, 5000).unwrap();
    let (sender, events) = std::sync::mpsc::sync_channel(4);
    let (addr, mac_addr) = ("192.0.2.2".parse().unwrap(), MacAddr([2, 0, 0, 0, 0, 2]));
    sender.send(crate::model::Event::Neighbour { interface: 0, addr, mac: mac_addr }).unwrap();
    watched.refuse.store(REFUSE_TABLE, Ordering::Relaxed);
    router.tick(SECOND, &events);
    assert_eq!((router.trouble(), to(&router, "192.0.2.2").next), (Some(&full()), Next::Glean));
    watched.refuse.store(0, Ordering::Relaxed);
    router.tick(2 * SECOND, &events);
    assert_eq!(router.trouble(), Some(&full()), "not so soon");
    router.tick(6 * SECOND, &events);
    assert_eq!((router.trouble(), mac(&router, "192.0.2.2")), (None, Some(2)));
}

#[test]
fn readers_that_lag_behind_see_whole_tables() {
    let mut router = router();
    load(&mut router, 0, 10).unwrap();
    let mut reader = router.reader();
    reader.get();
    let done = AtomicUsize::new(0);
    thread::scope(|scope| {
        scope.spawn(|| {
            // A route to 16.0.n.0 is there only while all before it are.
            while done.load(Ordering::Relaxed) == 0 {
                let tables = reader.get();
                let there: Vec<_> =
                    (0..30u8).map(|n| by(tables, &format!("16.0.{n}.1"), 0).next == Next::Forward).collect();
                assert!(there.is_sorted_by(|a, b| a >= b), "{there:?}");
                thread::sleep(Duration::from_millis(7));
            }
        });
        for n in 10..30 {
            load(&mut router, n, 1).unwrap();
        }
        done.store(1, Ordering::Relaxed);
    });
}

#[test]
fn a_reader_that_never_lets_go_costs_a_table_and_not_the_change() {
    let mut router = router();
    let mut stuck = router.reader();
    load(&mut router, 0, 1).unwrap();
    assert_eq!(by(stuck.get(), "16.0.0.1", 0).macs[5], 5);
    for n in 1..4 {
        load(&mut router, n, 1).unwrap();
    }
    assert_eq!(mac(&router, "16.0.3.1"), Some(5));
}
