//! The 5-tuples of flows.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use packet::frame::{HeaderSpec, IpSpec, L4Spec};

/// The 5-tuple of a flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Tuple {
    /// Source address.
    pub src: IpAddr,
    /// Destination address.
    pub dst: IpAddr,
    /// Source port.
    pub sport: u16,
    /// Destination port.
    pub dport: u16,
    /// IP protocol number.
    pub protocol: u8,
}

/// Which 5-tuple a flow has, and which flow a 5-tuple: arithmetic both ways, so that no table of keys is needed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Keys {
    /// What flow 0 has, before anything varies.
    base: Tuple,
    varies: Varies,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Varies {
    /// The low 16 bits of the source address and the source port, scattered over all 2^32 by a bijection.
    Source { seed: u32 },
    /// Destination address, destination port, and the source port for each sweep. The port just below the first stays
    /// free, for frames that are not of the scan.
    Scan { hosts: u64, ports: u64 },
}

/// Values of the four columns of a flow.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Columns {
    pub src: u64,
    pub dst: u64,
    pub sport: u64,
    pub dport: u64,
}

const ODD: u32 = 0x7feb_352d;
const ODD2: u32 = 0x846c_a68b;

/// A bijection of 32 bits with good mixing (two rounds of xorshift and multiply).
#[inline(always)]
fn scatter(x: u32, seed: u32) -> u32 {
    let x = x ^ seed;
    let x = (x ^ x >> 16).wrapping_mul(ODD);
    let x = (x ^ x >> 15).wrapping_mul(ODD2);
    x ^ x >> 16
}

/// Undoes [`scatter`].
fn gather(x: u32, seed: u32) -> u32 {
    let x = x ^ x >> 16;
    let x = x.wrapping_mul(inverse(ODD2));
    let x = x ^ x >> 15 ^ x >> 30;
    let x = x.wrapping_mul(inverse(ODD));
    (x ^ x >> 16) ^ seed
}

/// The inverse of an odd number modulo 2^32, by Newton's iteration.
const fn inverse(odd: u32) -> u32 {
    let mut x = odd;
    let mut i = 0;
    while i < 4 {
        x = x.wrapping_mul(2u32.wrapping_sub(odd.wrapping_mul(x)));
        i += 1;
    }
    x
}

/// Source ports of a scan.
const SWEEPS: u64 = 0xffff;
/// Bits of the source address that vary.
const SOURCE_MASK: u64 = 0xffff;

impl Keys {
    /// Flows that differ in source address and port, from the /16 (or /112) of these headers' source. `None` without
    /// a transport header.
    pub(crate) fn by_source(headers: &HeaderSpec, seed: u64) -> Option<Self> {
        let seed = (seed ^ seed >> 32) as u32;
        let mut base = tuple(headers)?;
        base.src = with_low(base.src, low(base.src) & !SOURCE_MASK);
        Some(Self { base, varies: Varies::Source { seed } })
    }

    /// Flows of a scan of `hosts` hosts, from the destination of these headers upwards. `None` without a transport header.
    pub(crate) fn scan(headers: &HeaderSpec, hosts: u64, ports: u64) -> Option<Self> {
        Some(Self { base: tuple(headers)?, varies: Varies::Scan { hosts, ports } })
    }

    /// Number of 5-tuples there are.
    pub(crate) fn room(&self) -> u64 {
        match self.varies {
            Varies::Source { .. } => 1 << 32,
            Varies::Scan { hosts, ports } => hosts * ports * SWEEPS,
        }
    }

    /// Low bits of the highest destination address.
    pub(crate) fn last_destination(&self) -> u128 {
        let hosts = match self.varies {
            Varies::Source { .. } => 1,
            Varies::Scan { hosts, .. } => hosts,
        };
        u128::from(low(self.base.dst)) + u128::from(hosts) - 1
    }

    /// The columns of a flow; the low 64 bits of addresses.
    #[inline(always)]
    pub(crate) fn columns(&self, flow: u64) -> Columns {
        let base = &self.base;
        let (src, dst) = (low(base.src), low(base.dst));
        match self.varies {
            Varies::Source { seed } => {
                let word = u64::from(scatter(flow as u32, seed));
                Columns { src: src | word >> 16, dst, sport: word & 0xffff, dport: base.dport.into() }
            }
            Varies::Scan { hosts, ports } => {
                let (host, rest) = (flow % hosts, flow / hosts);
                let (port, sweep) = (rest % ports, rest / ports);
                Columns { src, dst: dst + host, sport: (u64::from(base.sport) + sweep) & 0xffff, dport: 1 + port }
            }
        }
    }

    /// The 5-tuple of a flow.
    pub fn tuple(&self, flow: u64) -> Tuple {
        let Columns { src, dst, sport, dport } = self.columns(flow);
        Tuple {
            src: with_low(self.base.src, src),
            dst: with_low(self.base.dst, dst),
            sport: sport as u16,
            dport: dport as u16,
            protocol: self.base.protocol,
        }
    }

    /// The flow that has this 5-tuple, sent or not; `None` for one that no flow of this program ever has.
    pub fn find(&self, tuple: &Tuple) -> Option<u64> {
        let base = &self.base;
        let flow = match self.varies {
            Varies::Source { seed } => {
                let word = (low(tuple.src) << 16) & 0xffff_0000 | u64::from(tuple.sport);
                u64::from(gather(word as u32, seed))
            }
            Varies::Scan { hosts, ports } => {
                let host = low(tuple.dst).wrapping_sub(low(base.dst));
                let port = u64::from(tuple.dport).wrapping_sub(1);
                let sweep = u64::from(tuple.sport.wrapping_sub(base.sport));
                if host >= hosts || port >= ports || sweep >= SWEEPS {
                    return None;
                }
                (sweep * ports + port) * hosts + host
            }
        };
        // What does not vary must be as it is: the way back is the proof.
        (self.tuple(flow) == *tuple).then_some(flow)
    }
}

fn tuple(headers: &HeaderSpec) -> Option<Tuple> {
    let (src, dst) = match headers.ip {
        IpSpec::V4 { src, dst, .. } => (IpAddr::V4(src), IpAddr::V4(dst)),
        IpSpec::V6 { src, dst, .. } => (IpAddr::V6(src), IpAddr::V6(dst)),
    };
    let (sport, dport) = match headers.l4 {
        L4Spec::Udp { src, dst } | L4Spec::Tcp { src, dst, .. } => (src, dst),
        L4Spec::None => return None,
    };
    Some(Tuple { src, dst, sport, dport, protocol: headers.l4.protocol() })
}

#[inline(always)]
fn low(address: IpAddr) -> u64 {
    match address {
        IpAddr::V4(a) => a.to_bits().into(),
        IpAddr::V6(a) => a.to_bits() as u64,
    }
}

/// The address with other low bits.
fn with_low(address: IpAddr, low: u64) -> IpAddr {
    match address {
        IpAddr::V4(_) => Ipv4Addr::from_bits(low as u32).into(),
        IpAddr::V6(a) => Ipv6Addr::from_bits(a.to_bits() >> 64 << 64 | u128::from(low)).into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scattering_is_undone() {
        for i in (0..u32::MAX).step_by(1_000_003).chain([0, 1, u32::MAX]) {
            assert_eq!(gather(scatter(i, 77), 77), i);
            assert_eq!(scatter(gather(i, 1), 1), i);
        }
    }
}
