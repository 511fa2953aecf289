//! What the nodes tell each other about the frames of a burst, by their place in it.

use std::net::IpAddr;

use packet::{Buffer, Burst, BURST};

use super::{
    flow_hash,
    framing::Framing,
    input::{self, Dst, Parsed},
    quick,
};
use crate::{
    local::Fault,
    pass::PREFETCH_AHEAD,
    tables::{Interface, MacFilter, PortTable, Tables, ADJ_NO_ROUTE, GROUP},
    DropReason,
};

/// What becomes of a frame that does not leave.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RouteOutcome {
    Drop(DropReason),
    Deliver,
    Refuse(DropReason, Fault),
    /// To this adjacency, once its MAC address is known.
    Resolve(u32),
}

/// Notes on a burst. Masks have bit 0 for the first frame.
#[derive(Debug)]
pub(super) struct RouteScratch {
    dst4: [u32; BURST],
    dst6: [[u8; 16]; BURST],
    pub(super) hops: [u64; BURST],
    hops6: [u64; BURST],
    /// Lengths of the packets in bytes, zero for what is none.
    pub(super) lens: [u16; BURST],
    fates: [RouteOutcome; BURST],
    /// Frames that need a closer look before they leave, if they do.
    pub(super) rough: u64,
    /// Of these, the frames whose fate is known.
    pub(super) gone: u64,
    /// Frames that leave with more done to them than [`super::rewrite`] does to plain ones.
    pub(super) edited: u64,
    /// Behind a VLAN tag.
    pub(super) tagged: u64,
    /// TTL used up.
    pub(super) spent: u64,
    /// From a link-local address.
    pub(super) near: u64,
    pub(super) ip6: u64,
    /// IPv6 frames gathered.
    n6: usize,
    /// The last burst was not all plain IPv4.
    mixed: bool,
    /// Bits in which the next hops of the burst are not like the first.
    pub(super) differ: u64,
    /// Length of the longest packet, in bytes.
    pub(super) longest: u16,
}

impl Default for RouteScratch {
    fn default() -> Self {
        Self {
            dst4: [0; BURST],
            dst6: [[0; 16]; BURST],
            hops: [0; BURST],
            hops6: [0; BURST],
            lens: [0; BURST],
            fates: [RouteOutcome::Drop(DropReason::NoRoute); BURST],
            rough: 0,
            gone: 0,
            edited: 0,
            tagged: 0,
            spent: 0,
            near: 0,
            ip6: 0,
            n6: 0,
            mixed: false,
            differ: 0,
            longest: 0,
        }
    }
}

/// The mask of the first `n` frames.
pub(super) fn first(n: usize) -> u64 {
    if n == 0 {
        0
    } else {
        u64::MAX >> (BURST - n.min(BURST))
    }
}

/// The interface a frame came in by.
pub(super) fn interface<B: Buffer>(frame: &B, ingress: usize, tables: &Tables) -> u16 {
    let port = tables.ports.get(ingress);
    let found = port.and_then(|port| Framing::read(frame.data()).and_then(|framing| framing.interface(port)));
    found.or(port.map(|port| port.untagged)).unwrap_or(0)
}

impl RouteScratch {
    /// Checks every frame and gathers the destinations.
    #[inline]
    pub(super) fn input<B: Buffer>(&mut self, burst: &Burst<B>, port: &PortTable, interfaces: &[Interface]) {
        (self.rough, self.gone, self.tagged, self.spent, self.near, self.ip6, self.n6) = (0, 0, 0, 0, 0, 0, 0);
        if !self.mixed {
            if let Some(longest) = quick::all_plain_ip4(burst, port.macs, &mut self.dst4, &mut self.lens) {
                self.longest = longest;
                return;
            }
        }
        self.input_mixed(burst, port, interfaces);
    }

    /// The same for a burst that is not all plain IPv4, as the one before it tells.
    #[inline(never)]
    fn input_mixed<B: Buffer>(&mut self, burst: &Burst<B>, port: &PortTable, interfaces: &[Interface]) {
        let mut rest = self.sift(burst, port.macs);
        self.mixed = rest != 0;
        // A loop of its own: with the code of all kinds in one, the registers do not suffice for the most frequent one.
        while rest != 0 {
            let i = rest.trailing_zeros() as usize;
            rest &= rest - 1;
            let data = burst.get(i).map_or(&[][..], Buffer::data);
            if let Some((dst, len)) = input::plain_ip6(data, port.macs) {
                self.lens[i] = len;
                self.add_ip6(i, dst);
            } else {
                self.other(i, data, port, interfaces);
            }
        }
        self.longest = self.lens[..burst.len()].iter().fold(0, |longest, &len| longest.max(len));
    }

    /// Finds the frames of plain IPv4 in a burst. Returns the others.
    #[inline]
    fn sift<B: Buffer>(&mut self, burst: &Burst<B>, macs: MacFilter) -> u64 {
        let mut rest = 0;
        let places = self.dst4.iter_mut().zip(&mut self.lens).enumerate();
        for (frame, (i, (dst4, len4))) in burst.iter().zip(places) {
            if let Some(ahead) = burst.get(i + PREFETCH_AHEAD) {
                ahead.prefetch();
            }
            match input::plain_ip4(frame.data(), macs) {
                Some((dst, len)) => (*dst4, *len4) = (dst, len),
                None => rest |= 1 << i,
            }
        }
        rest
    }

    #[inline]
    fn add_ip6(&mut self, i: usize, dst: [u8; 16]) {
        self.dst6[self.n6] = dst;
        self.n6 += 1;
        self.ip6 |= 1 << i;
    }

    /// Any other frame.
    #[inline(never)]
    fn other(&mut self, i: usize, data: &[u8], port: &PortTable, interfaces: &[Interface]) {
        if let Some((dst, len)) = input::tagged_ip4(data, port) {
            (self.dst4[i], self.lens[i]) = (dst, len);
            self.tagged |= 1 << i;
            return;
        }
        (self.dst4[i], self.lens[i]) = (0, 0);
        match input::parse(data, port, interfaces) {
            Ok(Parsed::Packet(packet)) => {
                self.rough |= u64::from(packet.spent | packet.near) << i;
                self.tagged |= u64::from(packet.tagged) << i;
                self.spent |= u64::from(packet.spent) << i;
                self.near |= u64::from(packet.near) << i;
                match packet.dst {
                    Dst::V4(dst) => self.dst4[i] = dst,
                    Dst::V6(dst) => self.add_ip6(i, dst),
                }
                self.lens[i] = packet.len;
            }
            Ok(Parsed::Deliver) => self.seal(i, RouteOutcome::Deliver),
            Err(reason) => self.seal(i, RouteOutcome::Drop(reason)),
        }
    }

    /// Says what becomes of a frame that does not leave.
    #[inline]
    pub(super) fn seal(&mut self, i: usize, fate: RouteOutcome) {
        self.rough |= 1 << i;
        self.gone |= 1 << i;
        self.fates[i] = fate;
    }

    /// What becomes of a frame whose bit is set in `gone`.
    #[inline]
    pub(super) fn fate(&self, i: usize) -> RouteOutcome {
        self.fates.get(i).copied().unwrap_or(RouteOutcome::Drop(DropReason::NoRoute))
    }

    /// The places of the frames that `local` gets.
    pub(super) fn set_aside(&self) -> impl Iterator<Item = usize> + '_ {
        let gone = (0..BURST).filter(|i| self.gone >> i & 1 != 0);
        gone.filter(|&i| !matches!(self.fate(i), RouteOutcome::Drop(_)))
    }

    /// The destination of a frame that was looked up.
    pub(super) fn dst(&self, i: usize) -> IpAddr {
        if self.ip6 >> i & 1 == 0 {
            return IpAddr::V4(self.dst4.get(i).copied().unwrap_or(0).into());
        }
        let rank = (self.ip6 & first(i)).count_ones() as usize;
        IpAddr::V6(self.dst6.get(rank).copied().unwrap_or_default().into())
    }

    /// Looks up the next hop of every frame.
    #[inline]
    pub(super) fn lookup<B: Buffer>(&mut self, burst: &Burst<B>, tables: &Tables) {
        let n = burst.len();
        if (self.gone | self.ip6) != first(n) {
            tables.fib4.lookup(&self.dst4[..n], &mut self.hops[..n]);
        }
        if self.ip6 != 0 {
            tables.fib6.lookup(&self.dst6[..self.n6], &mut self.hops6[..self.n6]);
            let mut left = self.ip6;
            for &hop in &self.hops6[..self.n6] {
                self.hops[left.trailing_zeros() as usize] = hop;
                left &= left - 1;
            }
        }
        let first = self.unlike(n);
        if (first | self.differ) & u64::from(GROUP) != 0 {
            self.spread(burst, tables);
            self.unlike(n);
        }
    }

    /// Compares the next hops of a burst. Returns the first.
    #[inline]
    fn unlike(&mut self, n: usize) -> u64 {
        let first = self.hops[0];
        self.differ = self.hops[..n].iter().fold(0, |differ, hop| differ | hop ^ first);
        first
    }

    /// Picks one of the equal paths for each frame that has some.
    #[inline(never)]
    fn spread<B: Buffer>(&mut self, burst: &Burst<B>, tables: &Tables) {
        for (i, (hop, frame)) in self.hops.iter_mut().zip(burst).enumerate() {
            if *hop & u64::from(GROUP) == 0 || self.gone >> i & 1 != 0 {
                continue;
            }
            let at = Framing::read(frame.data()).map_or(0, Framing::len);
            let packet = frame.data().get(at..).unwrap_or_default();
            // A table from outside may hold numbers that mean nothing here.
            *hop = u32::try_from(*hop).map_or(ADJ_NO_ROUTE, |hop| tables.pick(hop, flow_hash(packet))).into();
        }
    }
}
