use std::net::{Ipv4Addr, Ipv6Addr};

use etherparse::{NetHeaders, PacketBuilder, PacketHeaders, TransportHeader};
use packet::{
    heap::{HeapBuf, HeapPool},
    FakeClock,
};
use proptest::prelude::*;

use super::*;
use crate::{fib::Linear, DropCounters};

const PORT_MACS: [MacAddr; 2] = [MacAddr([2, 0, 0, 0, 1, 0]), MacAddr([2, 0, 0, 0, 1, 1])];
const NEIGHBOURS: [MacAddr; 2] = [MacAddr([2, 0, 0, 0, 0, 1]), MacAddr([2, 0, 0, 0, 0, 2])];

fn l3() -> L3 {
    L3::new(&L3Config::benchmark(NEIGHBOURS), &PORT_MACS).unwrap()
}

/// An Ethernet frame of UDP, built by etherparse.
fn udp4(src: [u8; 4], dst: [u8; 4], ttl: u8) -> Vec<u8> {
    let builder = PacketBuilder::ethernet2([2, 0, 0, 0, 0, 9], PORT_MACS[0].0).ipv4(src, dst, ttl).udp(1024, 7);
    let mut frame = Vec::new();
    builder.write(&mut frame, &[0xab; 18]).unwrap();
    frame
}

fn udp6(src: &str, dst: &str, hop_limit: u8) -> Vec<u8> {
    let [src, dst] = [src, dst].map(|a| a.parse::<Ipv6Addr>().unwrap().octets());
    let builder = PacketBuilder::ethernet2([2, 0, 0, 0, 0, 9], PORT_MACS[0].0).ipv6(src, dst, hop_limit).udp(1024, 7);
    let mut frame = Vec::new();
    builder.write(&mut frame, &[0xab; 18]).unwrap();
    frame
}

fn good4() -> Vec<u8> {
    udp4([198, 18, 1, 2], [198, 19, 1, 2], 64)
}

fn good6() -> Vec<u8> {
    udp6("2001:2:0:1::2", "2001:2:0:2::2", 64)
}

/// The same frame with a VLAN tag put in.
fn tagged(mut frame: Vec<u8>) -> Vec<u8> {
    frame.splice(12..12, [0x81, 0x00, 0xa0, 0x2a]);
    frame
}

/// The same IPv4 frame with a router alert option and its header checksum right.
fn with_options(mut frame: Vec<u8>) -> Vec<u8> {
    frame.splice(34..34, [0x94, 4, 0, 0]);
    frame[14] = 0x46;
    let total = (frame.len() - 14) as u16;
    frame[16..18].copy_from_slice(&total.to_be_bytes());
    set_checksum(&mut frame);
    frame
}

fn set_checksum(frame: &mut [u8]) {
    let header = 14..14 + usize::from(frame[14] & 0xf) * 4;
    frame[24..26].fill(0);
    let sum = packet::checksum::finish(packet::checksum::sum(&frame[header]));
    frame[24..26].copy_from_slice(&sum.to_be_bytes());
}

struct Ran {
    /// Frames out by port.
    out: [Vec<Vec<u8>>; 2],
    drops: DropCounters,
    verdict: Verdict,
}

/// One burst through the function, and the books balanced.
fn run<F: Function<HeapBuf>>(function: &mut F, ingress: usize, frames: &[Vec<u8>]) -> Ran {
    let pool = HeapPool::new(BURST, 2048);
    let clock = FakeClock::new(1_000_000_000);
    let mut out = Outputs::new(2);
    let mut burst: Burst<_> = frames.iter().map(|f| pool.frame(f).unwrap()).collect();
    let verdict = function.process(ingress, &mut burst, &mut out, &mut Laps::start(&clock, 0, true));
    if let Verdict::All(port) = verdict {
        assert!(out.ports.iter().all(Burst::is_empty));
        out.ports[port] = burst;
    } else {
        assert!(burst.is_empty());
    }
    let drops = out.trash.counters().clone();
    out.trash.empty();
    let sent = out.ports.iter().map(Burst::len).sum::<usize>();
    assert_eq!(frames.len(), sent + drops.total() as usize, "rx = tx + drops");
    assert_eq!(pool.in_use(), sent);
    let bytes = |port: usize| out.ports[port].iter().map(|f| f.data().to_vec()).collect();
    let ran = Ran { out: [bytes(0), bytes(1)], drops, verdict };
    drop(out);
    assert_eq!(pool.in_use(), 0);
    ran
}

/// What a router makes of a good frame: etherparse takes it apart, ages it and sums it.
fn routed(frame: &[u8], port: usize) -> Vec<u8> {
    let mut headers = PacketHeaders::from_ethernet_slice(frame).unwrap();
    let mut bytes = Vec::new();
    let mut ethernet = match headers.link.take().unwrap() {
        etherparse::LinkHeader::Ethernet2(ethernet) => ethernet,
        other => panic!("{other:?}"),
    };
    (ethernet.destination, ethernet.source) = (NEIGHBOURS[port].0, PORT_MACS[port].0);
    ethernet.write(&mut bytes).unwrap();
    if let Some(vlan) = headers.vlan.take() {
        vlan.write(&mut bytes).unwrap();
    }
    match headers.net.take().unwrap() {
        NetHeaders::Ipv4(mut ip, _) => {
            ip.time_to_live -= 1;
            ip.write(&mut bytes).unwrap();
        }
        NetHeaders::Ipv6(mut ip, _) => {
            ip.hop_limit -= 1;
            ip.write(&mut bytes).unwrap();
        }
    }
    if let Some(TransportHeader::Udp(udp)) = headers.transport.take() {
        udp.write(&mut bytes).unwrap();
    }
    bytes.extend(headers.payload.slice());
    bytes
}

fn dropped(ran: &Ran) -> Vec<(DropReason, u64)> {
    ran.drops.iter().filter(|&(_, n)| n > 0).collect()
}

#[test]
fn every_good_kind_is_rewritten_as_etherparse_would() {
    for frame in [good4(), good6(), tagged(good4()), tagged(good6()), with_options(good4())] {
        let ran = run(&mut l3(), 0, std::slice::from_ref(&frame));
        assert_eq!(ran.out[1], [routed(&frame, 1)]);
        assert_eq!((ran.verdict, dropped(&ran)), (Verdict::All(1), vec![]));
    }
    let back = udp4([198, 19, 1, 2], [198, 18, 200, 2], 2);
    assert_eq!(run(&mut l3(), 1, std::slice::from_ref(&back)).out[0], [routed(&back, 0)]);
}

#[test]
fn a_burst_of_one_direction_is_never_sorted() {
    let frames: Vec<_> = (0..64).map(|i| if i % 3 == 0 { good6() } else { tagged(good4()) }).collect();
    let mut function = l3();
    let ran = run(&mut function, 0, &frames);
    assert_eq!(ran.verdict, Verdict::All(1));
    assert_eq!(ran.out[1], frames.iter().map(|f| routed(f, 1)).collect::<Vec<_>>());
    for (node, name) in function.nodes.iter().zip(["l3-input", "l3-lookup", "l3-rewrite"]) {
        assert_eq!((node.name, node.calls, node.vectors), (name, 1, 64));
    }
}

#[test]
fn a_mixed_burst_is_sorted_in_order() {
    let back = udp4([198, 19, 1, 2], [198, 18, 0, 1], 9);
    let none = udp4([198, 18, 1, 2], [10, 0, 0, 1], 9);
    let ran = run(&mut l3(), 0, &[good4(), back.clone(), none, good6(), back.clone()]);
    assert_eq!(ran.out, [vec![routed(&back, 0); 2], vec![routed(&good4(), 1), routed(&good6(), 1)]]);
    assert_eq!((ran.verdict, dropped(&ran)), (Verdict::Split, vec![(DropReason::NoRoute, 1)]));
}

/// A good frame with some bytes changed and, if IPv4, its checksum made right again.
fn patched(mut frame: Vec<u8>, patches: &[(usize, u8)]) -> Vec<u8> {
    patches.iter().for_each(|&(at, byte)| frame[at] = byte);
    if frame[12..14] == [8, 0] && frame[14] & 0xf >= 5 {
        set_checksum(&mut frame);
    }
    frame
}

#[test]
fn each_fault_moves_its_own_counter_alone() {
    let from = |src: [u8; 4]| udp4(src, [198, 19, 1, 2], 64);
    let to = |dst: [u8; 4]| udp4([198, 18, 1, 2], dst, 64);
    let mut wrong_sum = good4();
    wrong_sum[24] ^= 1;
    let short_header = patched(good4(), &[(14, 0x44)]);
    let mut arp = good4();
    arp[12..14].copy_from_slice(&[0x08, 0x06]);
    let cases = [
        (vec![0; 13], DropReason::Runt),
        (good4()[..33].to_vec(), DropReason::Runt),
        (good6()[..53].to_vec(), DropReason::Runt),
        (tagged(good4())[..17].to_vec(), DropReason::Runt),
        (patched(good4(), &[(0, 0xff)]), DropReason::LinkGroup),
        (arp, DropReason::NotIp),
        (tagged(tagged(good4())), DropReason::NotIp),
        (patched(good4(), &[(14, 0x65)]), DropReason::Ip4Header),
        (short_header, DropReason::Ip4Header),
        (patched(good4(), &[(17, 19)]), DropReason::Ip4Length),
        (patched(good4(), &[(17, 47)]), DropReason::Ip4Length),
        (wrong_sum, DropReason::Ip4Checksum),
        (udp4([198, 18, 1, 2], [198, 19, 1, 2], 1), DropReason::Ip4Ttl),
        (udp4([198, 18, 1, 2], [198, 19, 1, 2], 0), DropReason::Ip4Ttl),
        (from([0, 1, 2, 3]), DropReason::MartianSource),
        (from([127, 0, 0, 1]), DropReason::MartianSource),
        (from([224, 0, 0, 1]), DropReason::MartianSource),
        (from([255; 4]), DropReason::MartianSource),
        (to([127, 0, 0, 1]), DropReason::MartianDestination),
        (to([239, 0, 0, 1]), DropReason::MartianDestination),
        (to([255; 4]), DropReason::MartianDestination),
        (to([198, 20, 0, 1]), DropReason::NoRoute),
        (patched(good6(), &[(14, 0x50)]), DropReason::Ip6Header),
        (patched(good6(), &[(19, 27)]), DropReason::Ip6Length),
        (udp6("2001:2:0:1::2", "2001:2:0:2::2", 1), DropReason::Ip6HopLimit),
        (udp6("fe80::1", "2001:2:0:2::2", 64), DropReason::MartianSource),
        (udp6("::", "2001:2:0:2::2", 64), DropReason::MartianSource),
        (udp6("ff02::1", "2001:2:0:2::2", 64), DropReason::MartianSource),
        (udp6("2001:2:0:1::2", "fe80::1", 64), DropReason::MartianDestination),
        (udp6("2001:2:0:1::2", "ff02::1", 64), DropReason::MartianDestination),
        (udp6("2001:2:0:1::2", "2001:2:0:3::2", 64), DropReason::NoRoute),
    ];
    for (frame, reason) in cases {
        let ran = run(&mut l3(), 0, &[good4(), frame.clone()]);
        assert_eq!(dropped(&ran), [(reason, 1)], "{frame:02x?}");
        assert_eq!(ran.out[1], [routed(&good4(), 1)]);
    }
    assert_eq!(dropped(&run(&mut l3(), 2, &[good4()])), [(DropReason::NoPort, 1)]);
}

#[test]
fn only_frames_to_the_port_itself_are_routed_when_asked() {
    let config = L3Config { check_mac: true, ..L3Config::benchmark(NEIGHBOURS) };
    let mut function = L3::new(&config, &PORT_MACS).unwrap();
    let broadcast = patched(good4(), &[(0, 0xff)]);
    let ran = run(&mut function, 0, &[good4(), patched(good4(), &[(5, 7)]), broadcast]);
    assert_eq!(ran.out[1], [routed(&good4(), 1)]);
    assert_eq!(dropped(&ran), [(DropReason::LinkGroup, 1), (DropReason::NotOurMac, 1)]);
    // The same frame at the other port is another station's.
    assert_eq!(dropped(&run(&mut function, 1, &[good4()])), [(DropReason::NotOurMac, 1)]);
}

#[test]
fn a_source_address_may_be_given() {
    let mut config = L3Config::benchmark(NEIGHBOURS);
    config.routes[1].src_mac = Some(MacAddr([2, 9, 9, 9, 9, 9]));
    let ran = run(&mut L3::new(&config, &PORT_MACS).unwrap(), 0, &[good4()]);
    assert_eq!(ran.out[1][0][6..12], [2, 9, 9, 9, 9, 9]);
}

#[test]
fn a_foreign_table_with_unknown_next_hops_routes_nothing() {
    #[derive(Debug)]
    struct Wild;
    impl Lookup4 for Wild {
        fn lookup(&self, _: &[u32], next_hop: &mut [u64]) {
            next_hop.fill(u64::MAX);
        }
        fn update(&mut self, _: &[(Prefix, Option<u32>)]) -> Result<(), crate::fib::FibError> {
            Ok(())
        }
    }
    let config = L3Config::benchmark(NEIGHBOURS);
    let mut function = L3::with_fibs(&config, &PORT_MACS, |_| Wild, Linear::new).unwrap();
    let ran = run(&mut function, 0, &[good4(), good6()]);
    assert_eq!(dropped(&ran), [(DropReason::NoRoute, 1)]);
    assert_eq!(ran.out[1], [routed(&good6(), 1)]);
}

#[test]
fn every_truncation_is_routed_whole_or_counted() {
    for frame in [good4(), good6(), tagged(good4()), tagged(good6()), with_options(good4())] {
        for len in 0..frame.len() {
            let ran = run(&mut l3(), 0, &[frame[..len].to_vec()]);
            assert_eq!(ran.drops.total(), 1, "{len} of {frame:02x?}");
        }
        // Bytes behind the packet are padding, and stay.
        let padded = [&frame[..], &[0; 9]].concat();
        let want = [&routed(&frame, 1)[..], &[0; 9]].concat();
        assert_eq!(run(&mut l3(), 0, &[padded]).out[1], [want]);
    }
}

#[test]
fn the_checksum_stays_right_through_all_its_values() {
    // The identification walks the checksum through every value; the wrap at 0xfeff is where RFC 1141 went wrong.
    let mut function = l3();
    for id in (0..=u16::MAX).collect::<Vec<_>>().chunks(BURST) {
        let frames: Vec<_> = id
            .iter()
            .map(|id| {
                let [hi, lo] = id.to_be_bytes();
                patched(good4(), &[(18, hi), (19, lo)])
            })
            .collect();
        for frame in &run(&mut function, 0, &frames).out[1] {
            let sum = packet::checksum::fold(packet::checksum::sum(&frame[14..34]));
            assert!(sum == 0xffff && frame[24..26] != [0xff, 0xff], "{frame:02x?}");
        }
    }
}

proptest! {
    #[test]
    fn random_bytes_never_panic_and_are_counted(
        frames in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..100), 1..8),
        kind in prop::sample::select(vec![[8u8, 0, 0x45], [8, 0, 0x4f], [0x86, 0xdd, 0x60], [0x81, 0, 0]]),
    ) {
        let frames: Vec<_> = frames
            .into_iter()
            .map(|mut frame| {
                if let Some(head) = frame.get_mut(12..15) {
                    head.copy_from_slice(&kind);
                }
                frame
            })
            .collect();
        run(&mut l3(), 0, &frames);
    }

    #[test]
    fn a_changed_bit_gives_the_same_verdict_on_either_path(
        bit in 0usize..8 * 42, six: bool, tag: bool, src: u32, dst: u32, mac: bool,
    ) {
        let mut frame = if six { good6() } else {
            udp4(Ipv4Addr::from(src).octets(), Ipv4Addr::from(dst).octets(), 64)
        };
        frame[bit / 8] ^= 1 << (bit % 8);
        let macs = if mac { MacFilter::only(PORT_MACS[0].0) } else { MacFilter::UNICAST };
        let frame = if tag { tagged(frame) } else { frame };
        let whole = input::parse(&frame, macs);
        if let Some(dst) = input::plain_ip4(&frame, macs) {
            prop_assert_eq!(whole, Ok(input::Parsed { tagged: false, dst: Dst::V4(dst) }));
        } else if let Some(dst) = input::plain_ip6(&frame, macs) {
            prop_assert_eq!(whole, Ok(input::Parsed { tagged: false, dst: Dst::V6(dst) }));
        } else if let Ok(parsed) = whole {
            prop_assert!(parsed.tagged || frame[14] & 0xf > 5);
        }
    }
}
