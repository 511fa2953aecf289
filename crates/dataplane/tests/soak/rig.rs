//! One data plane between three cables, and what is done to it.

use std::{collections::VecDeque, fmt, time::Duration};

use dataplane::{
    fib::Small, impair::Impair, spec::FunctionKind, DropCounters, Forwarder, Function, Input, Plane, PortInfo,
    Settings, Snapshot,
};
use packet::{
    checksum,
    heap::{HeapBuf, HeapPool, HeapWire},
    Alloc, Buffer, Burst, FakeClock, Rx, Tx,
};

use super::{dice::Dice, frames::port_mac, mutate, plans, repair::repair};

const PORTS: usize = 3;
const HZ: u64 = 1_000_000;
/// The MTU of each port; frames in may be longer.
const MTU: [u16; PORTS] = [1500, 1500, 600];
const IMPAIRMENTS: [&str; 5] = [
    "",
    "",
    "rate=100kpps,burst=64,loss=5%,dup=20%,reorder=5%,delay=3ms,jitter=5ms,hold=300,place=before",
    "loss=1%,dup=10%,delay=10ms,hold=200,place=after",
    "rate=50kpps,dup=30%,reorder=10%,distance=7,jitter=200us,hold=64,place=after",
];

/// A pool that now and then has nothing to give.
#[derive(Debug, Clone)]
struct Scarce {
    pool: HeapPool,
    dice: Dice,
    one_in: usize,
}

impl Alloc for Scarce {
    type Buf = HeapBuf;
    fn alloc(&mut self, burst: &mut Burst<HeapBuf>, n: usize, len: usize) -> usize {
        if self.dice.one_in(self.one_in) {
            return 0;
        }
        let before = burst.len();
        let made = self.pool.alloc(burst, n, len);
        // What is in new buffers is nobody's to count on.
        for frame in burst.iter_mut().skip(before) {
            frame.data_mut().fill(self.dice.byte());
        }
        made
    }
}

/// What all rounds saw.
#[derive(Default)]
pub struct Totals {
    pub received: u64,
    pub sent: u64,
    pub punted: u64,
    pub originated: u64,
    pub changes: u64,
    pub learned: u64,
    pub drops: DropCounters,
}

impl fmt::Display for Totals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { received, sent, punted, originated, changes, learned, drops } = self;
        writeln!(f, "received {received}, sent {sent}, punted {punted}, originated {originated}")?;
        write!(f, "changes {changes}, stations learned {learned}; dropped {}:", drops.total())?;
        drops.iter().try_for_each(|(reason, n)| write!(f, " {} {n}", reason.name()))
    }
}

impl Totals {
    pub fn add(&mut self, other: &Self) {
        self.received += other.received;
        self.sent += other.sent;
        self.punted += other.punted;
        self.originated += other.originated;
        self.changes += other.changes;
        self.learned += other.learned;
        other.drops.iter().for_each(|(reason, n)| self.drops.add(reason, n as usize));
    }
}

/// A data plane of this kind and `frames` frames, from its start to its end.
pub fn round(kind: FunctionKind, dice: &mut Dice, frames: usize) -> Totals {
    let spec = plans::spec(kind, dice);
    let ports: Vec<_> = (0..PORTS).map(|port| PortInfo { mac: port_mac(port), mtu: MTU[port] }).collect();
    let mut plane = Plane::new(&spec, &ports, Box::new(Small)).unwrap();
    let pool = HeapPool::new(dice.pick(&[200, 500, 3000]), mutate::ROOM);
    let alloc = Scarce { pool: pool.clone(), dice: dice.clone(), one_in: dice.pick(&[3, 50, usize::MAX]) };
    let impairment = dice.pick(&IMPAIRMENTS).parse().unwrap();
    let function = Impair::new(plane.function(alloc.clone(), HZ, 0), &impairment, PORTS, alloc, HZ);
    let mut rig = Rig::new(function, pool, dice);
    rig.routed = kind == FunctionKind::L3;
    let mut totals = Totals::default();
    while rig.fed < frames {
        rig.step(dice);
        if dice.one_in(8) {
            plane.tick(Duration::from_micros(rig.now));
        }
        if dice.one_in(20) {
            totals.changes += plans::change(dice, &mut plane, &spec) as u64;
        }
    }
    let last = rig.end();
    totals.learned =
        ["arp-learned", "nd-learned", "bridge-learned", "vxlan-learned"].map(|name| last.counter(name)).iter().sum();
    totals.received = last.received();
    totals.sent = last.sent();
    totals.punted = last.punted;
    totals.originated = last.originated;
    totals.drops = last.drops;
    totals
}

struct Rig<F> {
    pool: HeapPool,
    clock: FakeClock,
    now: u64,
    ends: Vec<HeapWire>,
    forwarder: Forwarder<F, HeapWire, HeapWire, FakeClock>,
    /// Frames put on the cables, and taken off at the other end.
    fed: usize,
    taken: usize,
    /// Frames that came out lately, to be made into others.
    seen: VecDeque<Vec<u8>>,
    polls: usize,
    before: Snapshot,
    /// Whether what comes out has been through a router's checks.
    routed: bool,
}

impl<F: Function<HeapBuf>> Rig<F> {
    fn new(function: F, pool: HeapPool, dice: &mut Dice) -> Self {
        let clock = FakeClock::new(HZ);
        let depth = dice.pick(&[20, 64, 200]);
        let (ends, near): (Vec<_>, Vec<_>) = (0..PORTS).map(|_| HeapWire::pair(depth)).unzip();
        let inputs = near.iter().enumerate().map(|(port, queue)| Input { port, queue_id: 0, queue: queue.clone() });
        let settings = Settings {
            tx_retries: dice.below(2) as u32,
            tx_policy: dice.pick(&["now", "small=8,polls=3"]).parse().unwrap(),
            node_sample: 1 + dice.below(4) as u32,
            ..Settings::default()
        };
        let forwarder = Forwarder::new(function, inputs.collect(), near, clock.clone(), settings);
        let before = forwarder.snapshot();
        let seen = VecDeque::from([Vec::new()]);
        Self { pool, clock, now: 0, ends, forwarder, fed: 0, taken: 0, seen, polls: 0, before, routed: false }
    }

    /// Frames in, one poll, frames out, some time.
    fn step(&mut self, dice: &mut Dice) {
        for port in 0..PORTS {
            let n = dice.pick(&[0, 1, 5, 20, 64]);
            let mut burst = Burst::new();
            for _ in 0..n {
                let other = &self.seen[dice.below(self.seen.len())];
                let bytes = mutate::next(dice, port, other);
                burst.extend(if dice.one_in(32) { cramped(&self.pool, dice, &bytes) } else { self.pool.frame(&bytes) });
            }
            self.fed += self.ends[port].tx(&mut burst);
        }
        self.forwarder.poll_once();
        for port in 0..PORTS {
            if dice.one_in(3) {
                continue;
            }
            let mut burst = Burst::new();
            self.taken += self.ends[port].rx(&mut burst);
            for frame in &burst {
                if self.routed {
                    sound(frame.data());
                }
                if dice.one_in(4) {
                    self.seen.push_back(reply(dice, frame.data()));
                }
            }
        }
        while self.seen.len() > 64 {
            self.seen.pop_front();
        }
        let ticks = dice.pick(&[10, 100, 1000, 1000, 20_000]) * if dice.one_in(100) { 100 } else { 1 };
        self.clock.advance(ticks);
        self.now += ticks;
        self.polls += 1;
        if self.polls.is_multiple_of(16) {
            let now = self.forwarder.snapshot();
            self.check(now);
        }
    }

    /// Everything adds up, and nothing goes backwards.
    fn check(&mut self, now: Snapshot) {
        assert_eq!(now.balance(), Ok(()));
        let on_cables = self.fed as u64 - now.received() + now.sent() - self.taken as u64;
        assert_eq!(self.pool.in_use() as u64, now.held + on_cables, "buffers are held, on the cables, or in the pool");
        let (new, old) = (numbers(&now), numbers(&self.before));
        assert!(new.iter().zip(&old).all(|(new, old)| new >= old), "{:#?}\n{now:#?}", self.before);
        self.before = now;
    }

    fn end(mut self) -> Snapshot {
        let mut last = self.forwarder.finish();
        // What the poll at the end did not get room for is dropped, not kept.
        assert_eq!(last.held, 0);
        self.check(last.clone());
        // The frames still on their way in are let in, too.
        for _ in 0..1000 {
            self.ends.iter_mut().for_each(|end| self.taken += end.rx(&mut Burst::new()));
            self.clock.advance(HZ);
            if self.forwarder.poll_once() == 0 {
                break;
            }
        }
        last = self.forwarder.finish();
        self.check(last.clone());
        assert_eq!((last.held, last.received()), (0, self.fed as u64));
        for end in &mut self.ends {
            while end.rx(&mut Burst::new()) > 0 {}
        }
        assert_eq!(self.pool.in_use(), 0, "the pool is full again");
        drop(self.forwarder);
        assert_eq!(self.pool.in_use(), 0);
        last
    }
}

/// A frame with little room in front of it.
fn cramped(pool: &HeapPool, dice: &mut Dice, bytes: &[u8]) -> Option<HeapBuf> {
    let (front, back) = bytes.split_at(bytes.len().min(80 + dice.below(49)));
    let mut frame = pool.frame(back)?;
    assert!(frame.prepend(front.len()));
    frame.data_mut()[..front.len()].copy_from_slice(front);
    Some(frame)
}

/// What a router sends is well-formed, if it is IPv4 without labels: so much was checked on the way in.
fn sound(frame: &[u8]) {
    let at = if frame.get(12..14) == Some(&[0x81, 0]) { 18 } else { 14 };
    if frame.get(at - 2..at) == Some(&[8, 0]) {
        let header = &frame[at..at + usize::from(frame[at] & 0xf) * 4];
        assert!(header.len() >= 20 && checksum::fold(checksum::sum(header)) == 0xffff, "{frame:02x?}");
        let total = usize::from(u16::from_be_bytes([header[2], header[3]]));
        assert!(header[8] > 0 && total >= header.len() && total <= frame.len() - at, "{frame:02x?}");
    }
}

/// Every counter that only grows.
fn numbers(seen: &Snapshot) -> Vec<u64> {
    let mut numbers =
        vec![seen.busy_polls, seen.idle_polls, seen.punted, seen.originated, seen.busy_clocks, seen.taken_at];
    numbers.extend(seen.rx.iter().flat_map(|rx| [rx.frames, rx.polls()]));
    numbers.extend(seen.tx.iter().flat_map(|tx| [tx.frames, tx.calls, tx.refused]));
    numbers.extend(seen.nodes.iter().flat_map(|node| [node.calls, node.vectors, node.clocks]));
    numbers.extend(seen.drops.iter().map(|(_, n)| n));
    numbers.extend(seen.counters.iter().filter(|(name, _)| *name != "frames-waiting").map(|(_, n)| *n));
    numbers
}

/// The answer that a station would give to ARP and neighbour solicitations; other frames as they are.
fn reply(dice: &mut Dice, frame: &[u8]) -> Vec<u8> {
    let mut frame = frame.to_vec();
    let at = if frame.get(12..14) == Some(&[0x81, 0]) { 18 } else { 14 };
    let Some(kind) = frame.get(at - 2..at) else { return frame };
    let mac = [2, 0, 0, 0, dice.below(3) as u8, dice.below(6) as u8];
    match kind {
        [8, 6] if frame.len() >= at + 28 => {
            let (ours, theirs) = (frame[at + 8..at + 18].to_vec(), frame[at + 24..at + 28].to_vec());
            frame[at + 7] = 2;
            frame[at + 8..at + 14].copy_from_slice(&mac);
            frame[at + 14..at + 18].copy_from_slice(&theirs);
            frame[at + 18..at + 28].copy_from_slice(&ours);
            frame.copy_within(6..12, 0);
            frame[6..12].copy_from_slice(&mac);
        }
        [0x86, 0xdd] if frame.len() >= at + 72 && frame[at + 6] == 58 && frame[at + 40] == 135 => {
            let (asker, target) = (frame[at + 8..at + 24].to_vec(), frame[at + 48..at + 64].to_vec());
            frame[at + 8..at + 24].copy_from_slice(&target);
            frame[at + 24..at + 40].copy_from_slice(&asker);
            frame[at + 40] = 136;
            frame[at + 44] = 0x60;
            frame[at + 64] = 2;
            frame[at + 66..at + 72].copy_from_slice(&mac);
            frame.copy_within(6..12, 0);
            frame[6..12].copy_from_slice(&mac);
            repair(&mut frame);
        }
        _ => {}
    }
    frame
}
