//! Ports without huge pages.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use common::{content, eal_with, full, open, pass, pool, refused};
use dpdk::{DpdkError, Eal, EalOptions, Mbuf, Memory, MemoryKind, Mempool, Port, PortConfig, Wire};
use packet::{Alloc, Buffer, Burst, Rx, Tx};
use std::time::{Duration, Instant};

fn test_eal() -> &'static Eal {
    eal_with(Memory::NoHuge { mib: 256 })
}

#[test]
fn dpdk_starts_once_and_quietly() {
    let eal = test_eal();
    assert_eq!(eal.memory_kind(), MemoryKind::NoHuge);
    assert!(Eal::version().starts_with("DPDK "));
    assert!(matches!(Eal::init(EalOptions::default()), Err(DpdkError::AlreadyInitialised)));
    assert!(dpdk::log_tail().contains("EAL:"));
}

#[test]
fn a_wire_passes_everything_both_ways_and_the_pool_is_full_again() {
    let eal = test_eal();
    let pool = pool(eal, 1023);
    let (mut a, mut b) = Wire::pair(eal, "t", 64, &PortConfig::new(&pool)).unwrap();
    assert!(a.link().up && a.link().bps.is_none());
    let (mut at, mut ar, mut bt, mut br) =
        (a.take_tx(0).unwrap(), a.take_rx(0).unwrap(), b.take_tx(0).unwrap(), b.take_rx(0).unwrap());
    pass(&pool, &mut at, &mut br, 1000, 1514);
    pass(&pool, &mut bt, &mut ar, 1000, 1514);
    let stats = a.stats().unwrap();
    assert_eq!((stats.opackets, stats.ipackets), (1000, 1000));
    a.reset_stats().unwrap();
    assert_eq!(a.stats().unwrap().opackets, 0);
    assert!(a.xstats().unwrap().iter().any(|(name, _)| name == "rx_good_packets"));
    full(&pool);
}

#[test]
fn a_full_wire_leaves_the_unsent_in_front_and_owned() {
    let eal = test_eal();
    let pool = pool(eal, 255);
    let (mut a, mut b) = Wire::pair(eal, "t", 20, &PortConfig::new(&pool)).unwrap();
    let (mut tx, mut rx) = (a.take_tx(0).unwrap(), b.take_rx(0).unwrap());
    let mut burst: Burst<Mbuf> = Burst::new();
    assert_eq!(pool.handle().alloc(&mut burst, 32, 60), 32);
    for (i, frame) in burst.iter_mut().enumerate() {
        frame.data_mut()[0] = i as u8;
    }
    assert_eq!(tx.tx(&mut burst), 20);
    assert_eq!(burst.iter().map(|f| f.data()[0]).collect::<Vec<_>>(), (20..32).collect::<Vec<u8>>());
    assert_eq!(tx.tx(&mut burst), 0);
    let mut got = Burst::new();
    assert_eq!(rx.rx(&mut got), 20);
    assert_eq!(tx.tx(&mut burst), 12);
    // Received behind what is there already.
    assert_eq!(rx.rx(&mut got), 12);
    assert_eq!(got.iter().map(|f| f.data()[0]).collect::<Vec<_>>(), (0..32).collect::<Vec<u8>>());
    assert_eq!(tx.tx(&mut got), 20);
    drop(got);
    assert_eq!(pool.avail(), 255 - 20);
    // The queues keep the ports open; the cable's contents go home with the last of them.
    drop((a, b, tx));
    assert_eq!(pool.avail(), 255 - 20);
    drop(rx);
    assert_eq!(pool.avail(), 255);
}

#[test]
fn queues_are_handed_out_once() {
    let eal = test_eal();
    let pool = pool(eal, 255);
    let mut port = open(eal, "null", &pool);
    assert_eq!(port.driver(), "net_null");
    let _rx = port.take_rx(0).unwrap();
    assert!(matches!(port.take_rx(0).err(), Some(DpdkError::Queue { direction: "receive", queue: 0, .. })));
    assert!(matches!(port.take_tx(1).err(), Some(DpdkError::Queue { direction: "transmit", queue: 1, .. })));
}

#[test]
fn null_receives_out_of_nothing_and_sends_to_nothing() {
    let eal = test_eal();
    let pool = pool(eal, 255);
    let mut port = open(eal, "null,size=100", &pool);
    let (mut rx, mut tx) = (port.take_rx(0).unwrap(), port.take_tx(0).unwrap());
    let mut burst = Burst::new();
    assert_eq!(rx.rx(&mut burst), 64);
    assert!(burst.iter().all(|f| f.len() == 100 && f.frame_len() == 100 && f.segments() == 1));
    assert_eq!(pool.avail(), 255 - 64);
    assert_eq!(tx.tx(&mut burst), 64);
    assert_eq!(pool.avail(), 255);
    let mut silent = open(eal, "null,no-rx=1", &pool);
    assert_eq!(silent.take_rx(0).unwrap().rx(&mut burst), 0);
}

#[test]
fn a_pool_runs_dry_without_harm() {
    let eal = test_eal();
    let pool = pool(eal, 63);
    let (mut alloc, mut burst, mut more) = (pool.handle(), Burst::new(), Burst::new());
    assert_eq!(alloc.alloc(&mut burst, 64, 60), 0);
    assert_eq!(alloc.alloc(&mut burst, 60, 2048), 60);
    assert_eq!(alloc.alloc(&mut more, 4, 60), 0);
    assert_eq!(alloc.alloc(&mut more, 3, 2049), 0);
    assert_eq!(alloc.alloc(&mut more, 3, 60), 3);
    assert_eq!(alloc.alloc(&mut burst, 5, 60), 0);
    drop(more.pop());
    Mbuf::discard(&mut burst);
    assert_eq!((burst.len(), pool.avail()), (0, 61));
}

#[test]
fn a_frame_grows_into_its_headroom_and_tailroom_and_no_further() {
    let eal = test_eal();
    let pool = pool(eal, 63);
    let mut burst = Burst::new();
    pool.handle().alloc(&mut burst, 1, 60);
    let frame = &mut burst[0];
    assert!(!frame.prepend(129) && frame.prepend(128) && frame.len() == 188);
    assert!(frame.trim_front(100) && frame.len() == 88 && !frame.trim_front(89));
    assert!(frame.set_len(2048 + 28) && !frame.set_len(2048 + 29));
    assert_eq!(frame.frame_len(), 2076);
    frame.data_mut().fill(7);
    Mbuf::discard(&mut burst);
    // A used mbuf comes back with its headroom.
    let all = 63;
    let mut alloc = pool.handle();
    let mut again = Burst::new();
    assert_eq!(alloc.alloc(&mut again, all, 64), all);
    assert!(again.iter_mut().all(|f| f.len() == 64 && f.prepend(128) && !f.prepend(1)));
}

#[test]
fn a_template_is_in_every_frame() {
    let eal = test_eal();
    let pool = Mempool::new(eal, "fill", 100, 512, 0).unwrap();
    let template: Vec<u8> = (0..200).collect();
    pool.fill_all(&template).unwrap();
    let (mut a, mut b) = (Burst::new(), Burst::new());
    assert_eq!(pool.handle().alloc(&mut a, 64, 200) + pool.handle().alloc(&mut b, 36, 100), 100);
    assert!(a.iter().all(|f| f.data() == template) && b.iter().all(|f| f.data() == &template[..100]));
    assert!(matches!(pool.fill_all(&template), Err(DpdkError::Config { .. })), "100 frames are in flight");
    assert!(matches!(pool.fill_all(&[0; 513]), Err(DpdkError::Config { .. })), "512 fit");
}

#[test]
fn a_capture_is_replayed_for_ever_and_written() {
    use pcap_file::pcap::{PcapPacket, PcapReader, PcapWriter};
    let eal = test_eal();
    let dir = tempfile::tempdir().unwrap();
    let (from, to) = (dir.path().join("in.pcap"), dir.path().join("out.pcap"));
    let mut writer = PcapWriter::new(std::fs::File::create(&from).unwrap()).unwrap();
    for i in 0..5 {
        let bytes = content(i, 1514);
        writer.write_packet(&PcapPacket::new(Duration::from_secs(1), bytes.len() as u32, &bytes)).unwrap();
    }
    drop(writer);
    let pool = pool(eal, 511);
    let mut port = open(eal, &format!("pcap:{}", from.display()), &pool);
    let (mut rx, mut burst) = (port.take_rx(0).unwrap(), Burst::new());
    let mut seen = 0;
    while seen < 100 {
        rx.rx(&mut burst);
        for frame in &burst {
            assert_eq!(frame.data(), content(seen % 5, 1514));
            seen += 1;
        }
        Mbuf::discard(&mut burst);
    }
    drop((port, rx));
    full(&pool);

    let mut port = open(eal, &format!("pcap:rx={},tx={}", from.display(), to.display()), &pool);
    let (mut rx, mut tx) = (port.take_rx(0).unwrap(), port.take_tx(0).unwrap());
    while rx.rx(&mut burst) > 0 {}
    assert_eq!(tx.tx(&mut burst), 5);
    drop((port, rx, tx));
    let mut reader = PcapReader::new(std::fs::File::open(&to).unwrap()).unwrap();
    for i in 0..5 {
        assert_eq!(reader.next_packet().unwrap().unwrap().data, content(i, 1514));
    }
    full(&pool);
}

#[test]
fn memif_joins_two_ports_and_leaves_no_socket() {
    let eal = test_eal();
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("m.sock");
    let pool = pool(eal, 4095);
    let mut server = open(eal, &format!("memif:{},role=server", path.display()), &pool);
    assert!(!server.link().up);
    let busy = refused(eal, &format!("memif:{},role=server,id=1", path.display()), &pool);
    assert!(busy.machine_lacks() && matches!(busy, DpdkError::SocketBusy { .. }), "{busy}");
    let mut client = open(eal, &format!("memif:{}", path.display()), &pool);
    assert!(server.wait_link_up(Duration::from_secs(10)) && client.wait_link_up(Duration::from_secs(10)));
    assert_eq!(client.link().bps, None);
    let (mut st, mut sr) = (server.take_tx(0).unwrap(), server.take_rx(0).unwrap());
    let (mut ct, mut cr) = (client.take_tx(0).unwrap(), client.take_rx(0).unwrap());
    pass(&pool, &mut st, &mut cr, 3000, 1514);
    pass(&pool, &mut ct, &mut sr, 3000, 1514);
    drop((ct, cr, client));
    drop((st, sr, server));
    full(&pool);
    assert!(!path.exists());
}

#[test]
fn memif_does_not_wait_for_a_peer_that_lets_nobody_in() {
    use rustix::net::{bind, connect, listen, socket, AddressFamily, SocketAddrUnix, SocketType};
    let eal = test_eal();
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("m.sock");
    let unix = || socket(AddressFamily::UNIX, SocketType::SEQPACKET, None).unwrap();
    let (address, listener, first) = (SocketAddrUnix::new(&path).unwrap(), unix(), unix());
    bind(&listener, &address).unwrap();
    listen(&listener, 0).unwrap();
    // It is let in by nobody, and a further one would wait for that.
    connect(&first, &address).unwrap();
    let begun = Instant::now();
    let refused = refused(eal, &format!("memif:{}", path.display()), &pool(eal, 4095));
    assert!(matches!(refused, DpdkError::Driver { .. }), "{refused}");
    assert!(begun.elapsed() < Duration::from_secs(60), "{:?}", begun.elapsed());
    // DPDK's one interrupt thread goes on: others join.
    let other = dir.path().join("o.sock");
    let server = open(eal, &format!("memif:{},role=server", other.display()), &pool(eal, 4095));
    let client = open(eal, &format!("memif:{}", other.display()), &pool(eal, 4095));
    assert!(server.wait_link_up(Duration::from_secs(20)) && client.wait_link_up(Duration::from_secs(20)));
}

#[test]
fn vhost_and_virtio_join_two_ports_and_leave_no_socket() {
    let eal = test_eal();
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("v.sock");
    let pool = pool(eal, 8191);
    let mut a = open(eal, &format!("vhost:{}", path.display()), &pool);
    let mut b = open(eal, &format!("virtio:{}", path.display()), &pool);
    assert!(a.wait_link_up(Duration::from_secs(10)) && b.wait_link_up(Duration::from_secs(10)));
    let (mut at, mut ar) = (a.take_tx(0).unwrap(), a.take_rx(0).unwrap());
    let (mut bt, mut br) = (b.take_tx(0).unwrap(), b.take_rx(0).unwrap());
    pass(&pool, &mut at, &mut br, 3000, 1514);
    pass(&pool, &mut bt, &mut ar, 3000, 1514);
    drop((bt, br, b));
    drop((at, ar, a));
    full(&pool);
    assert!(!path.exists());
}

/// Sends to every queue of one end a frame of its own and finds it in the same queue of the other.
fn queues_match(pool: &Mempool, from: &mut Port, to: &mut Port, queues: u16) {
    let mut pairs: Vec<_> = (0..queues).map(|q| (from.take_tx(q).unwrap(), to.take_rx(q).unwrap())).collect();
    let end = Instant::now() + Duration::from_secs(10);
    let mut burst: Burst<Mbuf> = Burst::new();
    for i in 0..100 {
        let number = |q: usize| i * 64 + q;
        for (q, (tx, rx)) in pairs.iter_mut().enumerate() {
            let mut out: Burst<Mbuf> = Burst::new();
            let bytes = content(number(q), 1514);
            assert_eq!(pool.handle().alloc(&mut out, 1, bytes.len()), 1);
            out[0].data_mut().copy_from_slice(&bytes);
            // A receiver that has not polled yet may have given no room.
            while tx.tx(&mut out) == 0 {
                assert!(Instant::now() < end, "queue {q} of {to:?} takes nothing");
                assert_eq!(rx.rx(&mut burst), 0);
            }
            tx.tx_done_cleanup();
        }
        for (q, (_, rx)) in pairs.iter_mut().enumerate().rev() {
            while rx.rx(&mut burst) == 0 {
                assert!(Instant::now() < end, "queue {q} of {to:?} gets nothing");
            }
            assert_eq!(burst.len(), 1);
            assert_eq!(burst[0].data(), content(number(q), 1514), "queue {q} of {to:?}");
            Mbuf::discard(&mut burst);
        }
    }
}

#[test]
fn what_goes_into_a_queue_comes_out_of_the_same_one() {
    let eal = test_eal();
    let dir = tempfile::tempdir().unwrap();
    let pool = pool(eal, 16383);
    let config = PortConfig { rx_queues: 3, tx_queues: 3, ..PortConfig::new(&pool) };
    let (mut a, mut b) = Wire::pair(eal, "t", 64, &config).unwrap();
    assert_eq!((a.max_queues(), a.rss().is_on()), ((3, 3), false));
    queues_match(&pool, &mut a, &mut b, 3);
    queues_match(&pool, &mut b, &mut a, 3);
    drop((a, b));

    let config = PortConfig { rx_queues: 2, tx_queues: 2, ..PortConfig::new(&pool) };
    let open = |text: String| Port::open(eal, &text.parse().unwrap(), &config).unwrap_or_else(|e| panic!("{e}"));
    for (server, client) in [("memif:{},role=server", "memif:{}"), ("vhost:{}", "virtio:{}")] {
        let path = dir.path().join(&server[..4]).display().to_string();
        let mut a = open(server.replace("{}", &path));
        let mut b = open(client.replace("{}", &path));
        assert!(a.wait_link_up(Duration::from_secs(10)) && b.wait_link_up(Duration::from_secs(10)), "{server}");
        // The switch's side may learn of the second queue after the link is up.
        std::thread::sleep(Duration::from_millis(200));
        queues_match(&pool, &mut a, &mut b, 2);
        queues_match(&pool, &mut b, &mut a, 2);
        drop(b);
        drop(a);
    }
    full(&pool);
}

#[test]
fn more_queues_than_there_are_is_said_with_the_limit() {
    let eal = test_eal();
    let dir = tempfile::tempdir().unwrap();
    let pool = pool(eal, 1023);
    let is_config = |text: &str, queues: u16| {
        let config = PortConfig { rx_queues: queues, tx_queues: queues, ..PortConfig::new(&pool) };
        let error = Port::open(eal, &text.parse().unwrap(), &config).unwrap_err();
        assert!(!error.machine_lacks());
        matches!(error, DpdkError::Config { .. })
    };
    let path = dir.path().join("v").display().to_string();
    assert!(is_config(&format!("vhost:{path},queues=1"), 2));
    assert!(is_config("null", 65));
    let config = PortConfig { rx_queues: 65, ..PortConfig::new(&pool) };
    assert!(matches!(Wire::pair(eal, "t", 8, &config).err(), Some(DpdkError::Config { .. })));
    // A null port has queues, and what it says of spreading is not believed.
    let config = PortConfig { rx_queues: 4, tx_queues: 2, ..PortConfig::new(&pool) };
    let null = Port::open(eal, &"null".parse().unwrap(), &config).unwrap();
    assert!(null.max_queues().0 >= 4 && null.rss().to_string() == "off");
    full(&pool);
}

#[test]
fn an_mtu_is_read_and_set_where_the_driver_can() {
    let eal = test_eal();
    let pool = pool(eal, 1023);
    let port = open(eal, "null", &pool);
    assert_eq!(port.mtu().unwrap(), 1500);
    insta::assert_snapshot!(port.set_mtu(3000).unwrap_err().to_string(), @"port null: MTU 3000: must be 68 to 2026 with the data room of this pool");
    // net_null takes any, a wire none.
    port.set_mtu(1400).unwrap();
    assert_eq!(port.mtu().unwrap(), 1400);
    let (a, _b) = Wire::pair(eal, "t", 8, &PortConfig { mtu: 1000, ..PortConfig::new(&pool) }).unwrap();
    assert_eq!(a.mtu().unwrap(), 1000);
    assert!(matches!(a.set_mtu(900), Err(DpdkError::Driver { .. })));
}

#[test]
fn a_large_capture_brings_its_own_pool_and_every_queue_replays_it() {
    let eal = test_eal();
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("many.pcap");
    let mut writer = packet::pcap::Writer::new(std::fs::File::create(&path).unwrap()).unwrap();
    for i in 0..1000 {
        writer.write(Duration::from_secs(1), &content(i, 200)).unwrap();
    }
    drop(writer);
    let pool = pool(eal, 511);
    let config = PortConfig { rx_queues: 2, tx_queues: 1, ..PortConfig::new(&pool) };
    let mut port = Port::open(eal, &format!("pcap:{}", path.display()).parse().unwrap(), &config).unwrap();
    assert_eq!(port.max_queues(), (2, 2));
    for q in 0..2 {
        let (mut rx, mut burst, mut seen) = (port.take_rx(q).unwrap(), Burst::new(), 0);
        while seen < 2500 {
            assert!(rx.rx(&mut burst) > 0);
            for frame in &burst {
                assert_eq!(frame.data(), content(seen % 1000, 200));
                seen += 1;
            }
            Mbuf::discard(&mut burst);
        }
    }
    assert_eq!(pool.avail(), 511);
}

#[test]
fn a_virtio_server_does_not_wait_for_ever() {
    let eal = test_eal();
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("nobody.sock");
    let pool = pool(eal, 255);
    let spec = format!("virtio:{},server=1", path.display()).parse().unwrap();
    let config = PortConfig { peer_timeout: Duration::from_millis(50), ..PortConfig::new(&pool) };
    let error = dpdk::Port::open(eal, &spec, &config).unwrap_err();
    assert!(error.machine_lacks() && matches!(error, DpdkError::NoPeer { .. }), "{error}");
    let cancel = Some(std::sync::Arc::new(true.into()));
    let error = dpdk::Port::open(eal, &spec, &PortConfig { cancel, ..PortConfig::new(&pool) }).unwrap_err();
    assert!(matches!(&error, DpdkError::NoPeer { after, .. } if after == "interrupted"), "{error}");
    assert!(!path.exists());
}

#[test]
fn what_cannot_be_opened_is_said_in_one_line() {
    let eal = test_eal();
    let pool = pool(eal, 255);
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name).display().to_string();
    std::fs::write(at("text"), "not a capture").unwrap();
    let is_spec = |e: &DpdkError| matches!(e, DpdkError::Spec { .. });
    let is_file = |e: &DpdkError| matches!(e, DpdkError::File { .. });
    type Kind<'a> = &'a dyn Fn(&DpdkError) -> bool;
    let all: [(String, Kind<'_>, bool); 12] = [
        ("wire".to_string(), &is_spec, false),
        ("eth:nosuch0".to_string(), &|e| matches!(e, DpdkError::NoInterface { .. }), false),
        ("0000:ff:1f.7".to_string(), &|e| matches!(e, DpdkError::NoPciDevice { .. }), false),
        (
            format!("memif:{}", at("none")),
            &|e| matches!(e, DpdkError::SocketMissing { server: "role=server", .. }),
            true,
        ),
        (format!("virtio:{}", at("none")), &|e| matches!(e, DpdkError::SocketMissing { server: "server=1", .. }), true),
        (format!("memif:{},role=server", at("no/x")), &is_file, false),
        (format!("vhost:{}", at("text")), &is_file, false),
        (format!("pcap:{}", at("none")), &is_file, false),
        (format!("pcap:{}", at("text")), &is_file, false),
        (format!("pcap:rx={},tx=/dev/null", at("text")), &is_file, false),
        ("null,size=4000".to_string(), &is_spec, false),
        ("raw:net_nosuch0".to_string(), &|e| matches!(e, DpdkError::Driver { .. }), true),
    ];
    for (text, is_kind, lacks) in all {
        let error = refused(eal, &text, &pool);
        assert!(is_kind(&error), "{text}: {error}");
        assert_eq!(error.machine_lacks(), lacks, "{error}");
    }
    let big = PortConfig { mtu: 9000, ..PortConfig::new(&pool) };
    assert!(matches!(Wire::pair(eal, "t", 64, &big).err(), Some(DpdkError::Config { .. })));
    let none = PortConfig { rx_queues: 0, tx_queues: 0, ..PortConfig::new(&pool) };
    let error = dpdk::Port::open(eal, &"null".parse().unwrap(), &none).unwrap_err();
    assert!(matches!(error, DpdkError::Config { .. }), "{error}");
    let huge = Mempool::new(eal, "big", 1 << 20, 2048, 0).unwrap_err();
    assert!(huge.machine_lacks() && matches!(huge, DpdkError::NoMemory { .. }), "{huge}");
    assert!(matches!(Mempool::new(eal, "bad", 10, 2048, 256), Err(DpdkError::Config { .. })));
    let error = Wire::pair(eal, "t", 0, &PortConfig::new(&pool)).err();
    assert!(matches!(error, Some(DpdkError::Config { .. })));
    full(&pool);
}
