use packet::{headers::ethertype, Buffer, Burst, BURST};

use super::counters::BridgeCounters;
use crate::{
    fdb::{Fdb, Learned, Place},
    pass::PREFETCH_AHEAD,
    Dispatch, DropReason, Outputs,
};

/// The bits of a MAC address in a key, and the one that says it is of a group.
const MAC: u64 = 0xffff_ffff_ffff;
const GROUP: u64 = 1 << 40;

/// 01:80:c2:00:00:00 to 0f, without its last four bits (IEEE 802.1Q table 8-1).
const RESERVED: u64 = 0x0180_c200_0000 >> 4;

/// What the nodes tell each other about the frames of a burst, by their place in it; masks have bit 0 for the first.
#[derive(Debug)]
pub(super) struct BridgeScratch {
    src: [Place; BURST],
    dst: [Place; BURST],
    ports: [u16; BURST],
    reasons: [DropReason; BURST],
    /// To be dropped.
    bad: u64,
    /// To a group address.
    group: u64,
    /// To every other port.
    pub flood: u64,
}

impl Default for BridgeScratch {
    fn default() -> Self {
        Self {
            src: [Place::default(); BURST],
            dst: [Place::default(); BURST],
            ports: [0; BURST],
            reasons: [DropReason::Runt; BURST],
            bad: 0,
            group: 0,
            flood: 0,
        }
    }
}

/// The keys of a frame's destination and source in the FDB; `None` when it is too short.
#[inline]
fn keys(data: &[u8]) -> Option<(u64, u64)> {
    let &[a, b, c, d, e, f, g, h, i, j, k, l, t, u] = data.first_chunk()?;
    let dst = u64::from_be_bytes([a, b, c, d, e, f, g, h]) >> 16;
    let src = u64::from_be_bytes([e, f, g, h, i, j, k, l]) & MAC;
    match u16::from_be_bytes([t, u]) {
        ethertype::VLAN | ethertype::QINQ => {
            // The tag and the EtherType behind it.
            let &[tci, vid, _, _] = data.get(14..)?.first_chunk()?;
            let domain = u64::from(u16::from_be_bytes([tci, vid]) & 0xfff) << 48;
            Some((domain | dst, domain | src))
        }
        _ => Some((dst, src)),
    }
}

impl BridgeScratch {
    /// Checks every frame and hashes its addresses.
    #[inline]
    pub fn gather<B: Buffer>(&mut self, burst: &Burst<B>, fdb: &Fdb) {
        (self.bad, self.group, self.flood) = (0, 0, 0);
        burst.iter().take(PREFETCH_AHEAD).for_each(Buffer::prefetch);
        let places = self.src.iter_mut().zip(&mut self.dst).zip(&mut self.reasons);
        for (i, (frame, ((src, dst), reason))) in burst.iter().zip(places).enumerate() {
            if let Some(ahead) = burst.get(i + PREFETCH_AHEAD) {
                ahead.prefetch();
            }
            let Some((to, from)) = keys(frame.data()) else {
                self.bad |= 1 << i;
                *reason = DropReason::Runt;
                continue;
            };
            (*src, *dst) = (fdb.place_key(from), fdb.place_key(to));
            if (to | from) & GROUP != 0 {
                if from & GROUP != 0 {
                    self.bad |= 1 << i;
                    *reason = DropReason::BridgeSource;
                } else if (to & MAC) >> 4 == RESERVED {
                    self.bad |= 1 << i;
                    *reason = DropReason::BridgeReserved;
                } else {
                    self.group |= 1 << i;
                }
            }
        }
        for (&src, &dst) in self.src.iter().zip(&self.dst).take(burst.len()) {
            fdb.warm(src);
            fdb.warm(dst);
        }
    }

    /// Learns every source, runs of frames from the same one once.
    #[inline]
    pub fn learn(&mut self, n: usize, fdb: &Fdb, ingress: usize, now_s: u32, counters: &mut BridgeCounters) {
        let mut before = None;
        for (i, &src) in self.src.iter().enumerate().take(n) {
            if self.bad >> i & 1 != 0 || before == Some(src) {
                continue;
            }
            before = Some(src);
            match fdb.learn_at(src, ingress as u16, now_s) {
                Learned::Known => {}
                Learned::New => counters.learned += 1,
                Learned::Moved => counters.moved += 1,
                Learned::Full => counters.fdb_full += 1,
            }
        }
    }

    /// Finds the port of every destination, for runs of frames to the same one once.
    #[inline]
    pub fn lookup(&mut self, n: usize, fdb: &Fdb, ingress: usize, now_s: u32) {
        let mut before = None;
        let mut found = None;
        let skip = self.bad | self.group;
        let frames = self.dst.iter().zip(&mut self.ports).zip(&mut self.reasons).take(n);
        for (i, ((&dst, to), reason)) in frames.enumerate() {
            if skip >> i & 1 != 0 {
                continue;
            }
            if before != Some(dst) {
                (before, found) = (Some(dst), fdb.lookup_at(dst, now_s));
            }
            match found {
                Some(port) if usize::from(port) == ingress => {
                    self.bad |= 1 << i;
                    *reason = DropReason::SamePort;
                }
                Some(port) => *to = port,
                None => self.flood |= 1 << i,
            }
        }
        self.flood |= self.group;
    }

    /// The port that all frames of the burst go to, when they do, and none of them has to be copied.
    #[inline]
    pub fn only_port(&self, n: usize) -> Option<usize> {
        let (&first, rest) = self.ports.get(..n)?.split_first()?;
        let differ = rest.iter().fold(0, |differ, port| differ | (port ^ first));
        (self.bad | self.flood == 0 && differ == 0).then_some(usize::from(first))
    }

    /// Moves every frame to its port, or drops it.
    pub fn sort<B: Buffer>(&self, burst: &mut Burst<B>, out: &mut Outputs<B>) -> Dispatch {
        for (i, frame) in burst.drain(..).enumerate() {
            self.place(i, frame, out);
        }
        Dispatch::Split
    }

    /// Moves one frame, which is not flooded.
    #[inline]
    pub fn place<B: Buffer>(&self, i: usize, frame: B, out: &mut Outputs<B>) {
        if self.bad >> i & 1 == 0 {
            out.push(usize::from(self.ports[i]), frame);
        } else {
            out.drops.drop(frame, self.reasons[i]);
        }
    }

    /// Settles the flooded frames of a bridge of one or two ports: they are not copied.
    pub fn aim(&mut self, n: usize, ingress: usize, ports: usize) {
        if ports > 2 {
            return;
        }
        for i in (0..n.min(BURST)).filter(|i| self.flood >> i & 1 != 0) {
            if ports < 2 {
                self.bad |= 1 << i;
                self.reasons[i] = DropReason::NoMember;
            } else {
                self.ports[i] = ingress as u16 ^ 1;
            }
        }
        self.flood = 0;
    }
}
