//! IPv4 and IPv6 routing with a static FIB: the checks of RFC 1812, one TTL less, new MAC addresses.

mod config;
mod input;
mod rewrite;
#[cfg(test)]
mod tests;

use packet::{Buffer, Burst, Clock, MacAddr, BURST};

pub use config::{L3Config, Route};
use input::{Dst, MacFilter};
use rewrite::Adjacency;

use crate::{
    fib::{Fib4, Fib6, Lookup4, Lookup6},
    node::{Laps, NodeStats},
    pass::PREFETCH_AHEAD,
    DropReason, Function, Outputs, Prefix, SpecError, Verdict,
};

/// Destinations that are never routed, whatever the routes say of shorter prefixes (RFC 1812 5.3.7, RFC 6890).
const MARTIANS: [&str; 8] =
    ["0.0.0.0/8", "127.0.0.0/8", "224.0.0.0/4", "240.0.0.0/4", "::/128", "::1/128", "fe80::/10", "ff00::/8"];

/// The L3 function: three nodes, `l3-input` (checks), `l3-lookup` (FIB) and `l3-rewrite` (TTL, MAC addresses).
///
/// Ethernet frames, untagged or with one VLAN tag, which is kept. A burst whose frames all leave by one port is
/// rewritten in place and never sorted.
#[derive(Debug)]
pub struct L3<T4 = Fib4, T6 = Fib6> {
    fib4: T4,
    fib6: T6,
    adjacencies: Vec<Adjacency>,
    filters: Vec<MacFilter>,
    scratch: Box<Scratch>,
    nodes: [NodeStats; 3],
}

/// What the nodes tell each other about the frames of a burst, by their place in it; masks have bit 0 for the first.
#[derive(Debug)]
struct Scratch {
    dst4: [u32; BURST],
    dst6: [[u8; 16]; BURST],
    hops: [u64; BURST],
    hops6: [u64; BURST],
    reasons: [DropReason; BURST],
    ports: [u16; BURST],
    bad: u64,
    tagged: u64,
    ip6: u64,
    /// IPv6 frames gathered.
    n6: usize,
}

impl L3 {
    /// Routes by this configuration between ports with these MAC addresses. Errors name the route that is wrong.
    pub fn new(config: &L3Config, port_macs: &[MacAddr]) -> Result<Self, SpecError> {
        Self::with_fibs(config, port_macs, Fib4::new, Fib6::new)
    }
}

impl<T4: Lookup4, T6: Lookup6> L3<T4, T6> {
    /// As [`L3::new`] with other tables: each is made from (prefix, next hop) pairs of both families, and takes
    /// those of its own.
    pub fn with_fibs(
        config: &L3Config,
        port_macs: &[MacAddr],
        fib4: impl FnOnce(&[(Prefix, u32)]) -> T4,
        fib6: impl FnOnce(&[(Prefix, u32)]) -> T6,
    ) -> Result<Self, SpecError> {
        config.validate(port_macs.len())?;
        let mut adjacencies =
            vec![Adjacency::drop(DropReason::NoRoute), Adjacency::drop(DropReason::MartianDestination)];
        let mut routes = Vec::new();
        for prefix in MARTIANS {
            routes.push((prefix.parse()?, 1));
        }
        for route in &config.routes {
            let own = port_macs.get(route.port).copied().unwrap_or_default();
            let adjacency = Adjacency::new(route.port as u16, route.dst_mac, route.src_mac.unwrap_or(own));
            let known = adjacencies.iter().position(|a| *a == adjacency);
            let hop = known.unwrap_or_else(|| {
                adjacencies.push(adjacency);
                adjacencies.len() - 1
            });
            routes.push((route.prefix, hop as u32));
        }
        let filter = |mac: &MacAddr| if config.check_mac { MacFilter::only(mac.0) } else { MacFilter::UNICAST };
        Ok(Self {
            fib4: fib4(&routes),
            fib6: fib6(&routes),
            adjacencies,
            filters: port_macs.iter().map(filter).collect(),
            scratch: Box::new(Scratch {
                dst4: [0; BURST],
                dst6: [[0; 16]; BURST],
                hops: [0; BURST],
                hops6: [0; BURST],
                reasons: [DropReason::NoRoute; BURST],
                ports: [0; BURST],
                bad: 0,
                tagged: 0,
                ip6: 0,
                n6: 0,
            }),
            nodes: [NodeStats::new("l3-input"), NodeStats::new("l3-lookup"), NodeStats::new("l3-rewrite")],
        })
    }
}

impl Scratch {
    /// Checks every frame and gathers the destinations.
    #[inline]
    fn input<B: Buffer>(&mut self, burst: &Burst<B>, macs: MacFilter) {
        (self.bad, self.tagged, self.ip6, self.n6) = (0, 0, 0, 0);
        burst.iter().take(PREFETCH_AHEAD).for_each(Buffer::prefetch);
        for (i, frame) in burst.iter().enumerate() {
            if let Some(ahead) = burst.get(i + PREFETCH_AHEAD) {
                ahead.prefetch();
            }
            let data = frame.data();
            if let Some(dst) = input::plain_ip4(data, macs) {
                self.dst4[i] = dst;
            } else if let Some(dst) = input::plain_ip6(data, macs) {
                self.add_ip6(i, dst);
            } else {
                self.other(i, data, macs);
            }
        }
    }

    #[inline]
    fn add_ip6(&mut self, i: usize, dst: [u8; 16]) {
        self.dst6[self.n6] = dst;
        self.n6 += 1;
        self.ip6 |= 1 << i;
    }

    #[inline(never)]
    fn other(&mut self, i: usize, data: &[u8], macs: MacFilter) {
        self.dst4[i] = 0;
        match input::parse(data, macs) {
            Ok(parsed) => {
                self.tagged |= u64::from(parsed.tagged) << i;
                match parsed.dst {
                    Dst::V4(dst) => self.dst4[i] = dst,
                    Dst::V6(dst) => self.add_ip6(i, dst),
                }
            }
            Err(reason) => self.fail(i, reason),
        }
    }

    /// Marks a frame as dropped; the first reason stands.
    #[inline]
    fn fail(&mut self, i: usize, reason: DropReason) {
        if self.bad >> i & 1 == 0 {
            self.bad |= 1 << i;
            self.reasons[i] = reason;
        }
    }

    /// Looks up the next hop of every frame.
    #[inline]
    fn lookup(&mut self, n: usize, fib4: &impl Lookup4, fib6: &impl Lookup6) {
        let all = u64::MAX >> (BURST - n.clamp(1, BURST));
        if (self.bad | self.ip6) & all != all {
            fib4.lookup(&self.dst4[..n], &mut self.hops[..n]);
        }
        if self.ip6 != 0 {
            fib6.lookup(&self.dst6[..self.n6], &mut self.hops6[..self.n6]);
            let mut left = self.ip6;
            for &hop in &self.hops6[..self.n6] {
                self.hops[left.trailing_zeros() as usize] = hop;
                left &= left - 1;
            }
        }
    }
}

impl<B: Buffer, T4: Lookup4, T6: Lookup6> Function<B> for L3<T4, T6> {
    #[inline]
    fn process<C: Clock>(
        &mut self,
        ingress: usize,
        burst: &mut Burst<B>,
        out: &mut Outputs<B>,
        laps: &mut Laps<'_, C>,
    ) -> Verdict {
        let Self { fib4, fib6, adjacencies, filters, scratch, nodes: [input, lookup, rewrite] } = self;
        let Some(&macs) = filters.get(ingress) else {
            out.trash.drop_all(burst, DropReason::NoPort);
            return Verdict::Split;
        };
        let n = burst.len();
        scratch.input(burst, macs);
        laps.lap(input, n);
        scratch.lookup(n, fib4, fib6);
        laps.lap(lookup, n);
        let verdict = match scratch.rewrite(burst, adjacencies) {
            Some(port) => out.all(port, burst),
            None => {
                scratch.sort(burst, out);
                Verdict::Split
            }
        };
        laps.lap(rewrite, n);
        verdict
    }

    fn nodes(&self, visit: &mut dyn FnMut(&NodeStats)) {
        self.nodes.iter().for_each(visit);
    }
}
