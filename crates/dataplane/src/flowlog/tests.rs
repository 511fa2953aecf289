//! The flow logger: frames are counted and passed on whole.

mod times;

use std::cell::RefCell;

use flow::{
    table::{table, EndedReader, Heap, NoPrefetch, Reader, TableFull, TableSpec, Timebase},
    EndReason, Record, Way,
};
use packet::{
    heap::{HeapBuf, HeapPool, HeapWire},
    FakeClock, Rx, Tx,
};
use proptest::prelude::*;

use super::*;
use crate::{Forwarder, Input, Settings};

const HZ: u64 = 1_000_000;

type Log = FlowLog<Heap, NoPrefetch>;

fn logger(ports: usize, reflect: bool, full: TableFull) -> (Log, Reader<Heap>, EndedReader) {
    let spec = TableSpec { full, ..TableSpec::new(1024) };
    let base = Timebase::new(0, 0, HZ);
    let (worker, reader, ended) = table(&spec, Heap::new(spec.words()), base, 4096).unwrap();
    let decode = DecodeSpec { biflow: true, ..DecodeSpec::default() };
    (FlowLog::new(ports, reflect, decode, worker, NoPrefetch), reader, ended)
}

/// An untagged UDP frame of 60 bytes, from host `a` to host `b`.
fn udp(a: u8, b: u8, port: u16) -> Vec<u8> {
    let mut frame = vec![2, 0, 0, 0, 0, b, 2, 0, 0, 0, 0, a, 8, 0, 0x45, 0, 0, 46, 0, 0, 0, 0, 64, 17, 0, 0];
    frame.extend([10, 0, 0, a, 10, 0, 0, b]);
    frame.extend(if a < b { [1000, port] } else { [port, 1000] }.map(u16::to_be_bytes).concat());
    frame.resize(60, a);
    frame
}

fn records(ended: &mut EndedReader) -> Vec<Record> {
    std::iter::from_fn(|| ended.pop()).collect()
}

/// Ports on cables, the tester's ends outside.
struct Bench {
    ends: Vec<HeapWire>,
    loops: Forwarder<Log, HeapWire, HeapWire, FakeClock>,
    pool: HeapPool,
    clock: FakeClock,
    counters: Vec<Arc<PortCounters>>,
    reader: Reader<Heap>,
    ended: EndedReader,
}

impl Bench {
    fn new(ports: usize, reflect: bool, full: TableFull) -> Self {
        let (function, reader, ended) = logger(ports, reflect, full);
        Self::with(ports, function, reader, ended)
    }

    fn with(ports: usize, function: Log, reader: Reader<Heap>, ended: EndedReader) -> Self {
        let counters = function.ports();
        let (ends, inner): (Vec<_>, Vec<_>) = (0..ports).map(|_| HeapWire::pair(10_000)).unzip();
        let clock = FakeClock::new(HZ);
        let inputs = inner.iter().cloned().enumerate().map(|(port, queue)| Input { port, queue_id: 0, queue });
        let loops = Forwarder::new(function, inputs.collect(), inner.clone(), clock.clone(), Settings::default());
        Self { ends, loops, pool: HeapPool::new(20_000, 2048), clock, counters, reader, ended }
    }

    fn send(&mut self, port: usize, frames: &[Vec<u8>]) {
        for frames in frames.chunks(32) {
            let mut burst: Burst<HeapBuf> = frames.iter().filter_map(|f| self.pool.frame(f)).collect();
            self.ends[port].tx(&mut burst);
            assert!(burst.is_empty());
        }
    }

    fn received(&mut self, port: usize) -> Vec<Vec<u8>> {
        let mut all = Vec::new();
        let mut burst = Burst::new();
        while self.ends[port].rx(&mut burst) > 0 {
            all.extend(burst.drain(..).map(|f: HeapBuf| f.data().to_vec()));
        }
        all
    }

    fn run(&mut self) {
        while self.loops.poll_once() > 0 {
            self.clock.advance(5);
        }
    }

    fn flows(&self) -> Vec<Record> {
        let all = RefCell::new(Vec::new());
        self.reader.scan(0, self.reader.places(), &mut |_, record| all.borrow_mut().push(*record));
        all.into_inner()
    }

    /// Every frame received was sent on or dropped with a reason.
    fn conserves(&self) {
        let s = self.loops.snapshot();
        let received: u64 = s.rx.iter().map(|r| r.frames).sum();
        let sent: u64 = s.tx.iter().map(|t| t.frames).sum();
        assert_eq!(received, sent + s.drops.total());
        assert_eq!(self.counters.iter().map(|c| c.read().packets).sum::<u64>(), received);
    }
}

#[test]
fn pairs_pass_both_ways_and_are_one_flow() {
    // Of 60 bytes, in which there are 46 of an IP packet.
    let way = |packets| Way { packets, ip_bytes: packets * 46, frame_bytes: packets * 60, tcp_flags: 0 };
    let mut bench = Bench::new(4, false, TableFull::DropNew);
    let (there, back) = (vec![udp(1, 2, 53); 70], vec![udp(2, 1, 53); 3]);
    bench.send(0, &there);
    bench.run();
    bench.send(1, &back);
    bench.send(2, &[udp(1, 2, 53)]);
    bench.run();
    assert_eq!((bench.received(1), bench.received(0), bench.received(3).len()), (there, back, 1));
    let mut flows = bench.flows();
    flows.sort_by_key(|f| f.key.port);
    let [first, second] = flows[..] else { panic!("{flows:?}") };
    assert_eq!((first.ingress, first.key.port, second.ingress, second.key.port), (0, 0, 2, 2));
    assert_eq!((first.key.sport, first.key.dport, first.key.protocol), (1000, 53, 17));
    assert_eq!((first.forward, first.back), (way(70), way(3)));
    assert_eq!((second.forward.packets, second.end), (1, None));
    assert!(first.last > first.first && first.first < 1_000_000_000);
    assert_eq!(bench.counters[0].read(), PortCounts { packets: 70, bytes: 4200, ..PortCounts::default() });
    bench.conserves();
}

#[test]
fn frames_of_a_capture_are_told_by_its_times() {
    const S: u64 = 1_000_000_000;
    let spec = TableSpec::new(1024);
    let (worker, reader, _ended) = table(&spec, Heap::new(spec.words()), Timebase::new(0, 0, S), 64).unwrap();
    let decode = DecodeSpec { biflow: true, ..DecodeSpec::default() };
    let times = Arc::new(Captured::default());
    (0..packet::BURST).for_each(|i| times.set(i, (i as u64 + 1) * S, 1000));
    let function = FlowLog::new(2, false, decode, worker, NoPrefetch).captured(0, times);
    let (ends, inner): (Vec<_>, Vec<_>) = (0..2).map(|_| HeapWire::pair(100)).unzip();
    let inputs = inner.iter().cloned().enumerate().map(|(port, queue)| Input { port, queue_id: 0, queue }).collect();
    let mut loops = Forwarder::new(function, inputs, inner.clone(), FakeClock::new(HZ), Settings::default());
    let pool = HeapPool::new(100, 2048);
    let mut arp = udp(1, 2, 1);
    arp[12..14].copy_from_slice(&[8, 6]);
    for (mut end, frames) in
        ends.into_iter().zip([vec![arp, udp(1, 2, 7), udp(1, 2, 9), udp(1, 2, 7)], vec![udp(2, 1, 9)]])
    {
        end.tx(&mut frames.iter().filter_map(|f| pool.frame(f)).collect());
        while loops.poll_once() > 0 {}
    }
    let mut flows = Vec::new();
    reader.scan(0, u64::MAX, &mut |_, f| {
        flows.push((f.key.dport, f.first, f.last, f.back.packets, f.forward.frame_bytes));
    });
    flows.sort_unstable();
    // The other port has no times: its frame has the latest of the capture. Bytes are those on the wire.
    assert_eq!(flows, [(7, 2 * S, 4 * S, 0, 2000), (9, 3 * S, 4 * S, 1, 1000)]);
}

#[test]
fn a_port_alone_counts_and_drops_or_sends_back() {
    for reflect in [false, true] {
        let mut bench = Bench::new(1, reflect, TableFull::DropNew);
        bench.send(0, &vec![udp(1, 2, 7); 5]);
        bench.run();
        let back = if reflect { vec![udp(1, 2, 7); 5] } else { vec![] };
        assert_eq!(bench.received(0), back);
        let dropped = bench.loops.snapshot().drops[DropReason::Logged];
        assert_eq!((dropped, bench.flows()[0].forward.packets), (if reflect { 0 } else { 5 }, 5));
        bench.conserves();
        assert_eq!(bench.pool.in_use(), 0);
    }
}

#[test]
fn ports_that_only_receive_are_apart() {
    let spec = TableSpec::new(1024);
    let (worker, reader, ended) = table(&spec, Heap::new(spec.words()), Timebase::new(0, 0, HZ), 4096).unwrap();
    let decode = DecodeSpec { biflow: true, ports_apart: true, ..DecodeSpec::default() };
    let mut bench = Bench::with(2, FlowLog::new(2, false, decode, worker, NoPrefetch).receive_only(), reader, ended);
    bench.send(0, &[udp(1, 2, 53), udp(2, 1, 53)]);
    bench.send(1, &[udp(1, 2, 53)]);
    bench.run();
    assert_eq!((bench.received(0).len(), bench.received(1).len()), (0, 0));
    let mut flows: Vec<_> =
        bench.flows().iter().map(|f| (f.key.port, f.ingress, f.forward.packets, f.back.packets)).collect();
    flows.sort_unstable();
    assert_eq!(flows, [(0, 0, 1, 1), (1, 1, 1, 0)]);
    bench.conserves();
}

#[test]
fn a_frame_that_the_port_has_cut_counts_with_the_length_of_its_packet() {
    const CUT: usize = 400;
    // A packet of 20,000 bytes, of which a frame has the beginning.
    let beginning = |len: usize| {
        let mut frame = udp(1, 2, 53);
        frame[16..18].copy_from_slice(&20_000_u16.to_be_bytes());
        frame.resize(len, 1);
        frame
    };
    for details in [false, true] {
        let spec = TableSpec { details, ..TableSpec::new(1024) };
        let (worker, _reader, _ended) = table(&spec, Heap::new(spec.words()), Timebase::new(0, 0, HZ), 4096).unwrap();
        let mut function = FlowLog::new(1, false, DecodeSpec::default(), worker, NoPrefetch).cut_length(0, CUT as u32);
        let counters = function.ports();
        let pool = HeapPool::new(8, 2048);
        let frames = [beginning(CUT), beginning(CUT - 1), udp(1, 2, 53)];
        let burst: Burst<HeapBuf> = frames.iter().filter_map(|frame| pool.frame(frame)).collect();
        let mut decode = |burst: &Burst<HeapBuf>| match details {
            false => function.decode::<_, false, false, false, false>(0, burst),
            true => function.decode::<_, false, false, true, true>(0, burst),
        };
        let counts = decode(&burst);
        // A shorter one is a frame that does not say the truth.
        let bytes = 14 + 20_000 + (CUT as u64 - 1) + 60;
        assert_eq!(counts, PortCounts { packets: 3, bytes, cut: 1, ..PortCounts::default() });
        counters[0].add(counts);
        assert_eq!(counters[0].read(), counts);
        let lengths: Vec<_> = function.packets.v4.iter().map(|p| flow::Facts::from(p.facts)).collect();
        let lengths: Vec<_> = lengths.iter().map(|facts| (facts.ip_bytes, facts.frame_bytes)).collect();
        assert_eq!(lengths, [(20_000, 20_014), (CUT as u32 - 15, CUT as u32 - 1), (46, 60)]);
    }
}

#[test]
fn the_first_sixteen_ether_types_that_are_not_decoded_are_counted_one_by_one() {
    let frame = |kind: u16, is_tagged: bool| {
        let mut frame = udp(1, 2, 1);
        let at = if is_tagged { 16 } else { 12 };
        frame[12..14].copy_from_slice(&[0x81, 0]);
        frame[at..at + 2].copy_from_slice(&kind.to_be_bytes());
        frame
    };
    for details in [false, true] {
        let spec = TableSpec { details, ..TableSpec::new(1024) };
        let (worker, reader, ended) = table(&spec, Heap::new(spec.words()), Timebase::new(0, 0, HZ), 4096).unwrap();
        let mut bench =
            Bench::with(1, FlowLog::new(1, false, DecodeSpec::default(), worker, NoPrefetch), reader, ended);
        bench.send(0, &[frame(0x88f7, false), frame(0x88f7, true), udp(1, 2, 7), frame(0x0806, false)]);
        // One more than there is room for.
        bench.send(0, &(0..16).map(|n| frame(0x9900 + n, n % 2 == 0)).collect::<Vec<_>>());
        bench.run();
        let wanted: Vec<_> = [(0x88f7, 2)].into_iter().chain((0x9900..0x990f).map(|kind| (kind, 1))).collect();
        assert_eq!(bench.counters[0].types().collect::<Vec<_>>(), wanted, "details: {details}");
        assert_eq!(bench.counters[0].read().not_ip[NotIp::Other as usize], 18);
    }
}

#[test]
fn what_is_no_flow_is_counted_and_passed() {
    let mut bench = Bench::new(2, false, TableFull::DropNew);
    let mut arp = udp(1, 2, 1);
    arp[12..14].copy_from_slice(&[8, 6]);
    let mut broken = udp(1, 2, 1);
    broken[14] = 0x42;
    let all = vec![arp, broken, vec![], vec![1; 13], vec![0xff; 1500]];
    bench.send(1, &all);
    bench.run();
    assert_eq!(bench.received(0), all);
    let bytes = all.iter().map(|f| f.len() as u64).sum();
    let mut kinds = [0; NotIp::KINDS];
    for (kind, n) in [(NotIp::Arp, 1), (NotIp::Short, 2), (NotIp::Other, 1)] {
        kinds[kind as usize] = n;
    }
    assert_eq!(bench.counters[1].read(), PortCounts { packets: 5, bytes, not_ip: kinds, malformed: 1, cut: 0 });
    assert!(bench.flows().is_empty());
    bench.conserves();
}

#[test]
fn flows_age_while_nothing_comes_and_the_rest_is_flushed() {
    let mut bench = Bench::new(2, false, TableFull::DropNew);
    bench.send(0, &(0..100).map(|i| udp(1, 2, i)).collect::<Vec<_>>());
    bench.run();
    for _ in 0..40_000 {
        bench.clock.advance(HZ / 1000);
        bench.loops.poll_once();
    }
    let aged = records(&mut bench.ended);
    assert_eq!((aged.len(), aged.iter().filter(|r| r.end == Some(EndReason::Idle)).count()), (100, 100));
    assert!(bench.flows().is_empty());
    assert_eq!(bench.loops.snapshot().busy_polls, 2, "ageing does not count as a busy poll");
    bench.send(0, &[udp(1, 2, 7)]);
    bench.run();
    bench.loops.finish();
    while !bench.loops.function_mut().flush(256) {}
    let forced = records(&mut bench.ended);
    assert_eq!((forced.len(), forced[0].end, forced[0].forward.packets), (1, Some(EndReason::Forced), 1));
    let nodes: Vec<_> = bench.loops.snapshot().nodes.iter().map(|n| (n.name, n.vectors)).collect();
    assert_eq!(nodes[1..3], [("flow-decode", 101), ("flow-table", 101)]);
    assert!(nodes[3].0 == "flow-age" && nodes[3].1 > 0);
}

#[test]
fn a_full_table_stops_no_frame() {
    for full in [TableFull::DropNew, TableFull::Evict] {
        let mut bench = Bench::new(2, false, full);
        let flood: Vec<_> = (0..5000).map(|i| udp(1, 2, i)).collect();
        bench.send(0, &flood);
        bench.run();
        assert_eq!(bench.received(1), flood);
        let counts = *bench.loops.function_mut().worker.counts();
        let kept: u64 = bench.flows().iter().map(|f| f.forward.packets).sum();
        let evicted: u64 = records(&mut bench.ended).iter().map(|f| f.forward.packets).sum();
        assert_eq!(kept + evicted + counts.refused_packets + counts.dropped_records, 5000);
        assert!(kept >= 1024 && (counts.refused_packets > 0) == (full == TableFull::DropNew), "{counts:?}");
        bench.conserves();
    }
}

proptest! {
    #[test]
    fn whatever_comes_leaves_unchanged_and_counted(
        frames in prop::collection::vec(prop_oneof![
            prop::collection::vec(any::<u8>(), 0..200),
            (1..5u8, 1..5u8, 0..3u16).prop_map(|(a, b, port)| udp(a, b, port)),
            (1..5u8, 1..5u8, 14..60usize, any::<u8>()).prop_map(|(a, b, at, byte)| {
                let mut frame = udp(a, b, 9);
                frame[at] = byte;
                frame
            }),
        ], 1..150),
        ingress in 0..2usize,
    ) {
        let mut bench = Bench::new(2, false, TableFull::Evict);
        bench.send(ingress, &frames);
        bench.run();
        prop_assert_eq!(bench.received(1 - ingress), frames.clone());
        let counts = bench.counters[ingress].read();
        prop_assert_eq!(counts.bytes, frames.iter().map(|f| f.len() as u64).sum::<u64>());
        let packets: u64 = bench.flows().iter().map(|f| f.forward.packets + f.back.packets).sum();
        let ended: u64 = records(&mut bench.ended).iter().map(|f| f.forward.packets + f.back.packets).sum();
        let not_ip: u64 = counts.not_ip.iter().sum();
        prop_assert_eq!(packets + ended + not_ip + counts.malformed, frames.len() as u64);
        bench.conserves();
        prop_assert_eq!(bench.pool.in_use(), 0);
    }
}
