use packet::{
    heap::{HeapBuf, HeapPool},
    Buffer, FakeClock,
};
use proptest::prelude::*;

use super::*;
use crate::fdb::{Flush, Learned};

const A: [u8; 6] = [2, 0, 0, 0, 0, 0xa];
const B: [u8; 6] = [2, 0, 0, 0, 0, 0xb];
const C: [u8; 6] = [2, 0, 0, 0, 0, 0xc];
const ALL: [u8; 6] = [0xff; 6];

fn frame(dst: [u8; 6], src: [u8; 6], tags: &[u16]) -> Vec<u8> {
    let mut bytes = [dst, src].concat();
    for tci in tags {
        bytes.extend([0x81, 0]);
        bytes.extend(tci.to_be_bytes());
    }
    bytes.extend([8, 0]);
    bytes.resize(60, bytes.len() as u8);
    bytes
}

/// A bridge, the frames of its copies, and everything that went in and came out.
struct Bench {
    bridge: Bridge<HeapPool>,
    out: Outputs<HeapBuf>,
    clock: FakeClock,
    pool: HeapPool,
    copies: HeapPool,
    received: u64,
    sent: u64,
}

impl Bench {
    fn new(ports: usize) -> Self {
        let copies = HeapPool::new(1000, 256);
        Self {
            bridge: Bridge::new(Arc::new(Fdb::new(1)), ports, copies.clone(), 1_000),
            out: Outputs::new(ports),
            clock: FakeClock::new(1_000),
            pool: HeapPool::new(64, 256),
            copies,
            received: 0,
            sent: 0,
        }
    }

    /// What comes out of each port when these frames come in at `ingress`; the books are checked.
    fn run(&mut self, ingress: usize, frames: &[Vec<u8>]) -> Vec<Vec<Vec<u8>>> {
        let mut burst: Burst<_> = frames.iter().filter_map(|f| self.pool.frame(f)).collect();
        assert_eq!(burst.len(), frames.len());
        let mut timer = NodeTimer::start(&self.clock, self.clock.now(), true);
        let dispatch = self.bridge.process(ingress, &mut burst, &mut self.out, &mut timer);
        if let Dispatch::All(port) = dispatch {
            std::mem::swap(&mut burst, self.out.port(port).unwrap());
        }
        assert!(burst.is_empty());
        let bytes = |burst: &mut Burst<HeapBuf>| burst.drain(..).map(|f| f.data().to_vec()).collect();
        let sent: Vec<Vec<Vec<u8>>> = self.out.ports.iter_mut().map(bytes).collect();
        self.out.drops.empty();
        self.received += frames.len() as u64;
        self.sent += sent.iter().map(|frames| frames.len() as u64).sum::<u64>();
        let drops = self.out.drops.counters().total();
        assert_eq!((self.received + self.out.originated, self.out.punted), (self.sent + drops, 0));
        assert_eq!((self.pool.in_use(), self.copies.in_use()), (0, 0), "a buffer leaked");
        sent
    }

    /// The ports one frame comes out of, unchanged.
    fn ports(&mut self, ingress: usize, frame: Vec<u8>) -> Vec<usize> {
        let sent = self.run(ingress, std::slice::from_ref(&frame));
        assert!(sent.iter().flatten().all(|bytes| *bytes == frame));
        assert!(sent.iter().all(|frames| frames.len() < 2));
        (0..sent.len()).filter(|&port| !sent[port].is_empty()).collect()
    }

    fn drops(&self) -> Vec<(DropReason, u64)> {
        self.out.drops.counters().iter().filter(|&(_, n)| n > 0).collect()
    }

    fn counted(&self) -> [u64; 5] {
        let mut counts = Vec::new();
        Function::<HeapBuf>::counters(&self.bridge, &mut |_, n| counts.push(n));
        counts.try_into().unwrap()
    }

    fn vectors(&self) -> Vec<(u64, u64)> {
        let mut nodes = Vec::new();
        Function::<HeapBuf>::nodes(&self.bridge, &mut |node| nodes.push((node.calls, node.vectors)));
        nodes
    }
}

#[test]
fn two_ports_learn_each_other_and_copy_nothing() {
    let mut b = Bench::new(2);
    assert_eq!(b.ports(0, frame(B, A, &[])), [1], "unknown");
    assert_eq!(b.ports(1, frame(A, B, &[])), [0]);
    assert_eq!(b.ports(0, frame(B, A, &[])), [1]);
    assert_eq!(b.ports(1, frame(ALL, B, &[])), [0]);
    assert_eq!(b.ports(1, frame([1, 0, 0x5e, 0, 0, 1], B, &[])), [0]);
    assert_eq!((b.counted(), b.drops(), b.out.originated), ([2, 0, 3, 0, 0], vec![], 0));
    assert_eq!(b.vectors(), [(5, 5), (5, 5), (3, 3)]);
    assert_eq!(b.bridge.fdb().len(0), 2);
}

#[test]
fn a_flood_reaches_every_other_port_once() {
    for ports in [3, 4] {
        let mut b = Bench::new(ports);
        for ingress in 0..ports {
            let others: Vec<_> = (0..ports).filter(|&port| port != ingress).collect();
            assert_eq!(b.ports(ingress, frame(ALL, A, &[])), others);
            assert_eq!(b.ports(ingress, frame(C, A, &[])), others);
        }
        let frames = 2 * ports as u64;
        assert_eq!(b.counted(), [1, ports as u64 - 1, frames, 0, 0]);
        assert_eq!((b.out.originated, b.drops()), (frames * (ports as u64 - 2), vec![]));
    }
}

#[test]
fn a_whole_burst_is_flooded_and_sorted_in_order() {
    let mut b = Bench::new(4);
    b.ports(2, frame(ALL, B, &[]));
    // 32 to everyone, 30 to B on port 2, one to its own port, one runt.
    let mut frames: Vec<_> = (0..62).map(|i| frame(if i & 1 == 0 || i > 59 { ALL } else { B }, A, &[])).collect();
    for (i, frame) in frames.iter_mut().enumerate() {
        frame[20] = i as u8;
    }
    frames.push(frame(A, C, &[]));
    frames.push(vec![0; 13]);
    let sent = b.run(1, &frames);
    let numbers = |port: usize| sent[port].iter().map(|frame| frame[20]).collect::<Vec<_>>();
    let flooded: Vec<u8> = (0..62).filter(|i| i & 1 == 0 || *i > 59).collect();
    assert_eq!((numbers(0), numbers(1), numbers(3)), (flooded.clone(), vec![], flooded));
    assert_eq!(numbers(2), (0..62).collect::<Vec<_>>(), "frames to one port keep their order");
    assert_eq!(b.drops(), [(DropReason::Runt, 1), (DropReason::SamePort, 1)]);
    assert_eq!((b.counted(), b.out.originated), ([3, 0, 1 + 32, 0, 0], 2 * 33));
    let full = vec![frame(ALL, A, &[]); 64];
    assert!(b.run(1, &full).iter().enumerate().all(|(port, sent)| sent.len() == if port == 1 { 0 } else { 64 }));
    assert_eq!(b.drops().len(), 2, "nothing overflowed");
}

#[test]
fn copies_that_cannot_be_made_are_counted_and_the_frame_still_goes() {
    let mut b = Bench::new(4);
    let hoard: Vec<_> = (0..999).map(|_| b.copies.clone().frame(&[])).collect();
    let mut burst: Burst<_> = (0..3).filter_map(|_| b.pool.frame(&frame(ALL, A, &[]))).collect();
    let mut timer = NodeTimer::start(&b.clock, 0, true);
    assert_eq!(b.bridge.process(3, &mut burst, &mut b.out, &mut timer), Dispatch::Split);
    let sent: Vec<_> = b.out.ports.iter().map(Burst::len).collect();
    assert_eq!((sent, b.out.originated, b.drops()), (vec![1, 0, 3, 0], 1, vec![]));
    assert_eq!(b.counted(), [1, 0, 3, 0, 5]);
    b.out.ports.iter_mut().for_each(|burst| burst.clear());
    drop(hoard);
    assert_eq!((b.pool.in_use(), b.copies.in_use()), (0, 0));
}

#[test]
fn a_station_moves_and_its_frames_follow() {
    let mut b = Bench::new(3);
    b.ports(1, frame(ALL, B, &[]));
    assert_eq!(b.ports(0, frame(B, A, &[])), [1]);
    b.ports(2, frame(ALL, B, &[]));
    assert_eq!(b.ports(0, frame(B, A, &[])), [2]);
    assert_eq!(b.ports(2, frame(B, A, &[])), [] as [usize; 0], "A has moved to B's port");
    assert_eq!((b.counted(), b.drops()), ([2, 2, 2, 0, 0], vec![(DropReason::SamePort, 1)]));
}

#[test]
fn a_static_station_stays_where_it_was_put() {
    let mut b = Bench::new(3);
    let fdb = Arc::clone(&b.bridge.fdb);
    assert!(fdb.set_static(0, packet::MacAddr(B), 1) && fdb.set_static(0, packet::MacAddr(C), 9));
    b.ports(2, frame(ALL, B, &[]));
    b.clock.advance(1_000_000_000);
    assert_eq!(b.ports(0, frame(B, A, &[])), [1]);
    assert_eq!(b.ports(0, frame(C, A, &[])), [] as [usize; 0]);
    assert_eq!((b.counted(), b.drops()), ([1, 0, 1, 0, 0], vec![(DropReason::NoPort, 1)]));
}

#[test]
fn stations_age_by_the_clock() {
    let mut b = Bench::new(3);
    b.ports(1, frame(ALL, B, &[]));
    b.clock.advance(300_999);
    assert_eq!(b.ports(0, frame(B, A, &[])), [1]);
    b.clock.advance(1);
    assert_eq!(b.ports(0, frame(B, A, &[])), [1, 2]);
    b.ports(1, frame(A, B, &[]));
    b.clock.advance(200_000);
    assert_eq!(b.ports(1, frame(A, B, &[])), [0]);
    b.clock.advance(200_000);
    assert_eq!(b.ports(0, frame(B, A, &[])), [1], "refreshed");
    assert_eq!(b.counted(), [4, 0, 2, 0, 0], "B learned twice, A learned again after 400 s");
    b.bridge.fdb().flush(Flush::Endpoint(1));
    assert_eq!(b.ports(0, frame(B, A, &[])), [1, 2]);
}

#[test]
fn vlans_learn_apart_and_keep_their_tags() {
    let mut b = Bench::new(3);
    for (tags, port) in [(&[][..], 0), (&[7], 1), (&[8, 7], 2), (&[4095], 1)] {
        b.ports(port, frame(ALL, B, tags));
    }
    for (tags, ports) in [
        (&[][..], &[0][..]),
        (&[0xe000], &[0]),
        (&[7], &[1]),
        (&[0xb007], &[1]),
        (&[8], &[2]),
        (&[8, 9], &[2]),
        (&[9], &[0, 1, 2]),
        (&[4095], &[1]),
    ] {
        for ingress in 0..3 {
            let want: Vec<_> = ports.iter().copied().filter(|&port| port != ingress).collect();
            assert_eq!(b.ports(ingress, frame(B, A, tags)), want, "{tags:?} from {ingress}");
        }
    }
    let mut qinq = frame(B, A, &[7, 9]);
    qinq[12..14].copy_from_slice(&[0x88, 0xa8]);
    assert_eq!(b.ports(0, qinq), [1], "a service tag's VID counts, too");
}

#[test]
fn group_sources_and_reserved_groups_are_dropped_unlearned() {
    let mut b = Bench::new(2);
    for last in 0..16 {
        assert_eq!(b.ports(0, frame([1, 0x80, 0xc2, 0, 0, last], A, &[])), [] as [usize; 0]);
        assert_eq!(b.ports(0, frame([1, 0x80, 0xc2, 0, 0, last], A, &[7])), [] as [usize; 0]);
    }
    assert_eq!(b.ports(0, frame(B, [3, 0, 0, 0, 0, 1], &[])), [] as [usize; 0]);
    assert_eq!(b.ports(0, frame(ALL, ALL, &[])), [] as [usize; 0]);
    assert_eq!((b.counted(), b.bridge.fdb().len(0)), ([0; 5], 0));
    assert_eq!(b.drops(), [(DropReason::BridgeReserved, 32), (DropReason::BridgeSource, 2)]);
    assert_eq!(b.ports(0, frame([1, 0x80, 0xc2, 0, 0, 16], A, &[])), [1]);
}

#[test]
fn what_one_lcore_learns_all_know() {
    let (mut one, mut other) = (Bench::new(3), Bench::new(3));
    other.bridge.fdb = Arc::clone(&one.bridge.fdb);
    one.ports(1, frame(ALL, B, &[]));
    assert_eq!(other.ports(0, frame(B, A, &[])), [1]);
    assert_eq!((one.counted(), other.counted()), ([1, 0, 1, 0, 0], [1, 0, 0, 0, 0]));
}

#[test]
fn every_truncation_is_forwarded_or_a_runt() {
    for (tags, needs) in [(&[][..], 14), (&[7], 18), (&[7, 8], 18)] {
        let mut b = Bench::new(3);
        let whole = frame(ALL, A, tags);
        for len in 0..=whole.len() {
            let want: &[usize] = if len < needs { &[] } else { &[0, 2] };
            assert_eq!(b.ports(1, whole[..len].to_vec()), want, "{len} of {tags:?}");
        }
        assert_eq!(b.drops(), [(DropReason::Runt, needs as u64)]);
    }
}

#[test]
fn bridges_without_another_port_drop_what_they_would_flood() {
    let mut b = Bench::new(1);
    assert_eq!(b.ports(0, frame(B, A, &[])), [] as [usize; 0]);
    assert_eq!(b.ports(0, frame(A, B, &[])), [] as [usize; 0]);
    assert_eq!(b.run(5, &[frame(A, B, &[])]), [[[0_u8; 0]; 0]]);
    let mut empty = Bench::new(2);
    assert_eq!(empty.run(0, &[]), [[[0_u8; 0]; 0], [[0_u8; 0]; 0]]);
    assert_eq!(b.drops(), [(DropReason::SamePort, 1), (DropReason::NoMember, 1), (DropReason::NoPort, 1)]);
}

#[test]
fn stations_for_which_there_is_no_room_are_flooded() {
    let mut b = Bench::new(3);
    let fdb = Arc::clone(&b.bridge.fdb);
    let mac = |i: u32| {
        let [x, y, z, w] = i.to_be_bytes();
        packet::MacAddr([2, 0, x, y, z, w])
    };
    // Fill until one is refused; that one is then heard on port 1.
    let refused = (0..).map(mac).find(|&mac| fdb.learn(0, mac, 0, 0) == Learned::Full).unwrap();
    assert_eq!(b.ports(1, frame(ALL, refused.0, &[])), [0, 2]);
    assert_eq!(b.ports(0, frame(refused.0, mac(0).0, &[])), [1, 2]);
    assert_eq!(b.counted(), [0, 0, 2, 1, 0]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Bytes from the wire, mostly near what a bridge knows: nothing panics, leaks or goes missing ([`Bench::run`]),
    /// and nothing comes back out of the port it came from.
    #[test]
    fn hostile_bytes(
        ports in 1..5usize,
        bursts in proptest::collection::vec((0..5usize, proptest::collection::vec(
            prop_oneof![
                proptest::collection::vec(any::<u8>(), 0..80),
                (0..4u8, 0..4u8, proptest::collection::vec(0..3u16, 0..3), 0..60usize).prop_map(|near| {
                    let (dst, src, tags, len) = near;
                    let mut bytes = frame([2, 0, 0, 0, 0, dst], [2, 0, 0, 0, 0, src], &tags);
                    bytes[0] |= dst >> 1 & src & 1;
                    bytes.truncate(len);
                    bytes
                }),
            ], 0..64)), 1..12),
    ) {
        let mut b = Bench::new(ports);
        for (ingress, frames) in bursts {
            let sent = b.run(ingress, &frames);
            prop_assert!(sent.get(ingress).is_none_or(Vec::is_empty));
            prop_assert!(sent.iter().flatten().all(|bytes| frames.contains(bytes)));
            b.clock.advance(90_000);
        }
        prop_assert_eq!(b.counted()[4], 0);
    }
}
