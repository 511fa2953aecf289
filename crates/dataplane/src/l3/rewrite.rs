use packet::{headers::ethertype, Buffer, Burst};

use super::{
    framing::{entries, Framing, ETHERNET},
    scratch::{RouteOutcome, RouteScratch},
};
use crate::{
    local::Fault,
    tables::{Adjacency, Next, Stack, Tables, Tag},
    DropBatch, DropReason, Outputs,
};

/// Where next hop numbers lead that no adjacency has: a table from outside may hold any.
static NOWHERE: Adjacency = Adjacency::drop(DropReason::NoRoute);

#[inline(always)]
fn adjacency(tables: &Tables, hop: u64) -> &Adjacency {
    tables.adjacencies.get(hop as usize).unwrap_or(&NOWHERE)
}

/// Whether a packet of up to this length leaves with no more than new addresses, another tag and one TTL less.
#[inline(always)]
fn plain(to: &Adjacency, longest: u16) -> bool {
    (to.next == Next::Forward) & (to.push == 0) & (to.mtu >= longest)
}

impl RouteScratch {
    /// Rewrites the burst in place when all its frames leave by the port that is returned. Otherwise nothing is written
    /// yet: [`Self::split`] does it.
    #[inline]
    pub(super) fn rewrite<B: Buffer>(
        &mut self,
        burst: &mut Burst<B>,
        tables: &Tables,
        drops: &mut DropBatch<B>,
    ) -> Option<usize> {
        let first = *self.hops[..burst.len()].first()?;
        if self.differ | self.rough | self.tagged == 0 {
            let to = *adjacency(tables, first);
            if plain(&to, self.longest) & !matches!(to.tag, Tag::Vid(_)) {
                if self.ip6 == 0 {
                    let macs = Macs::of(&to);
                    burst.iter_mut().for_each(|frame| plain_ip4(frame.data_mut(), macs));
                } else {
                    for (i, frame) in burst.iter_mut().enumerate() {
                        plain_either(frame.data_mut(), &to, self.ip6 >> i & 1 != 0);
                    }
                }
                return Some(usize::from(to.port));
            }
        }
        self.rewrite_each(burst, tables, drops)
    }

    fn rewrite_each<B: Buffer>(
        &mut self,
        burst: &mut Burst<B>,
        tables: &Tables,
        drops: &mut DropBatch<B>,
    ) -> Option<usize> {
        // All adjacencies are read before any is used, so that their cache lines come together.
        let (mut odd, mut differ) = (self.rough | self.tagged != 0, 0);
        let first = adjacency(tables, self.hops[0]).port;
        for &hop in &self.hops[..burst.len()] {
            let to = adjacency(tables, hop);
            odd |= !plain(to, self.longest) | matches!(to.tag, Tag::Vid(_));
            differ |= to.port ^ first;
        }
        self.edited = 0;
        if odd {
            self.judge(burst, tables);
        }
        if self.gone != 0 || differ != 0 {
            return None;
        }
        let mut stuck = 0;
        for (i, frame) in burst.iter_mut().enumerate() {
            stuck |= u64::from(!self.rewrite_one(i, frame, tables)) << i;
        }
        if stuck != 0 {
            drops.drop_masked(burst, stuck, DropReason::NoBuffer);
        }
        Some(usize::from(first))
    }

    /// Rewrites a frame that leaves. `false` when it cannot, for want of headroom.
    #[inline(always)]
    fn rewrite_one<B: Buffer>(&self, i: usize, frame: &mut B, tables: &Tables) -> bool {
        let to = adjacency(tables, self.hops[i]);
        if self.edited >> i & 1 != 0 {
            return leave(frame, to, tables);
        }
        plain_either(frame.data_mut(), to, self.ip6 >> i & 1 != 0);
        true
    }

    /// Decides which frames leave, and which of those with more than new addresses.
    #[inline(never)]
    fn judge<B: Buffer>(&mut self, burst: &Burst<B>, tables: &Tables) {
        self.edited = self.tagged;
        for (i, frame) in burst.iter().enumerate() {
            let (to, bit) = (adjacency(tables, self.hops[i]), 1 << i);
            if matches!(to.tag, Tag::Vid(_)) | (to.push != 0) {
                self.edited |= bit;
            }
            let doubtful = self.rough & bit != 0 || !plain(to, self.longest);
            if doubtful && self.gone & bit == 0 {
                if let Some(fate) = self.fate_of(i, frame.data(), tables) {
                    self.seal(i, fate);
                }
            }
        }
    }

    /// In the order of a host's stack: the route, then the TTL, then the length (RFC 1812 5.2.1). `None`: it leaves.
    #[inline(never)]
    fn fate_of(&self, i: usize, data: &[u8], tables: &Tables) -> Option<RouteOutcome> {
        let hop = self.hops[i];
        let to = adjacency(tables, hop);
        let ip6 = self.ip6 >> i & 1 != 0;
        if to.next == Next::Local {
            return Some(RouteOutcome::Deliver);
        }
        if self.near >> i & 1 != 0 {
            return Some(RouteOutcome::Drop(DropReason::MartianSource));
        }
        match to.next {
            Next::Drop(DropReason::NoRoute) => return Some(RouteOutcome::Refuse(DropReason::NoRoute, Fault::NoRoute)),
            Next::Drop(reason) => return Some(RouteOutcome::Drop(reason)),
            Next::Local | Next::Forward | Next::Glean | Next::Unresolved => {}
        }
        if self.spent >> i & 1 != 0 {
            let reason = if ip6 { DropReason::Ip6HopLimit } else { DropReason::Ip4Ttl };
            return Some(RouteOutcome::Refuse(reason, Fault::TimeExceeded));
        }
        if to.next != Next::Forward {
            return Some(RouteOutcome::Resolve(hop as u32));
        }
        let Ok(stack) = stack(to, tables) else { return Some(RouteOutcome::Drop(DropReason::NoRoute)) };
        let room = to.mtu.saturating_sub(stack.map_or(0, |stack| u16::from(stack.len) * 4));
        if self.lens[i] <= room {
            return None;
        }
        let flags = Framing::read(data).and_then(|framing| data.get(framing.len() + 6));
        let whole = ip6 || flags.is_some_and(|flags| flags & 0x40 != 0);
        Some(if whole {
            RouteOutcome::Refuse(DropReason::Mtu, Fault::TooBig(room))
        } else {
            RouteOutcome::Drop(DropReason::Mtu)
        })
    }

    /// Rewrites each frame that leaves and moves all to where they go: an egress port, `aside`, or the drops.
    pub(super) fn split<B: Buffer>(
        &self,
        burst: &mut Burst<B>,
        tables: &Tables,
        out: &mut Outputs<B>,
        aside: &mut Burst<B>,
    ) {
        if self.gone | self.edited == 0 {
            for ((i, mut frame), &hop) in burst.drain(..).enumerate().zip(&self.hops) {
                let to = adjacency(tables, hop);
                plain_either(frame.data_mut(), to, self.ip6 >> i & 1 != 0);
                send(out, to.port, frame);
            }
            return;
        }
        for (i, mut frame) in burst.drain(..).enumerate() {
            if self.gone >> i & 1 == 0 {
                if self.rewrite_one(i, &mut frame, tables) {
                    send(out, adjacency(tables, self.hops[i]).port, frame);
                } else {
                    out.drops.drop(frame, DropReason::NoBuffer);
                }
            } else if let RouteOutcome::Drop(reason) = self.fate(i) {
                out.drops.drop(frame, reason);
            } else {
                aside.push(frame);
            }
        }
    }
}

/// As [`Outputs::push`], which stays out of the loop: what it does with a frame that finds no room is long.
#[inline(always)]
fn send<B: Buffer>(out: &mut Outputs<B>, port: u16, frame: B) {
    let port = usize::from(port);
    match out.port(port).filter(|burst| !burst.is_full()) {
        Some(burst) => burst.push(frame),
        None => lost(out, port, frame),
    }
}

#[cold]
#[inline(never)]
fn lost<B: Buffer>(out: &mut Outputs<B>, port: usize, frame: B) {
    out.push(port, frame);
}

/// The labels an adjacency pushes; an error when it names some that are not there.
fn stack<'a>(to: &Adjacency, tables: &'a Tables) -> Result<Option<&'a Stack>, ()> {
    match to.push.checked_sub(1) {
        None => Ok(None),
        Some(push) => tables.labels.stacks.get(usize::from(push)).map(Some).ok_or(()),
    }
}

/// All that may be done to a frame that leaves: one TTL less, labels, the tag, the addresses. `false` without headroom.
/// Labels get the packet's TTL (RFC 3443 3.1, uniform) and the upper three bits of its traffic class (RFC 3270 3.3).
#[inline(never)]
fn leave<B: Buffer>(frame: &mut B, to: &Adjacency, tables: &Tables) -> bool {
    let data = frame.data_mut();
    let (Some(framing), Ok(stack)) = (Framing::read(data), stack(to, tables)) else { return false };
    let (ttl, exp) = match data.get_mut(framing.len()..) {
        Some([head, tos, _, _, _, _, _, hop_limit, ..]) if *head >> 4 == 6 => {
            *hop_limit = hop_limit.saturating_sub(1);
            (*hop_limit, (*head & 0xf) << 4 | *tos >> 4)
        }
        Some([_, tos, _, _, _, _, _, _, ttl, _, c0, c1, ..]) => {
            age_ip4(ttl, c0, c1);
            (*ttl, *tos)
        }
        _ => return false,
    };
    match stack {
        // A header as long as before needs no new one put together.
        None if framing.egress_tci(to).is_some() == framing.tci.is_some() => {
            if let (Some([_, _, c0, c1]), Some(tci)) = (data[12..].first_chunk_mut(), framing.egress_tci(to)) {
                [*c0, *c1] = tci.to_be_bytes();
            }
            data[..12].copy_from_slice(&to.macs);
            true
        }
        None => framing.replace(frame, framing.len(), to, &[]),
        Some(stack) => {
            let (labels, n) = entries(stack, exp >> 5, ttl, true);
            let mpls = Framing { ether_type: ethertype::MPLS, ..framing };
            mpls.replace(frame, framing.len(), to, &labels[..n])
        }
    }
}

/// The first twelve bytes of a frame, as numbers: these stay in registers, which an array behind a reference does not, since
/// the frames written to might overlap it as far as can be told.
#[derive(Clone, Copy)]
struct Macs(u64, u32);

impl Macs {
    #[inline(always)]
    fn of(to: &Adjacency) -> Self {
        let [a, b, c, d, e, f, g, h, i, j, k, l] = to.macs;
        Self(u64::from_le_bytes([a, b, c, d, e, f, g, h]), u32::from_le_bytes([i, j, k, l]))
    }

    #[inline(always)]
    fn write(self, frame: &mut [u8; ETHERNET + 20]) {
        frame[..8].copy_from_slice(&self.0.to_le_bytes());
        frame[8..12].copy_from_slice(&self.1.to_le_bytes());
    }
}

/// An untagged IPv4 frame.
#[inline(always)]
fn plain_ip4(data: &mut [u8], macs: Macs) {
    if let Some(frame) = data.first_chunk_mut::<{ ETHERNET + 20 }>() {
        macs.write(frame);
        frame[22] = frame[22].wrapping_sub(1);
        let sum = u16::from_le_bytes([frame[24], frame[25]]);
        frame[24..26].copy_from_slice(&raised(sum).to_le_bytes());
    }
}

/// A header checksum, as it lies in memory, after one TTL less (RFC 1624): the word that holds the TTL falls by 0x0100, so
/// the checksum rises by that, in ones' complement and never to 0xffff (equation 3).
#[inline(always)]
fn raised(sum: u16) -> u16 {
    sum.wrapping_add(if sum < 0xfffe { 1 } else { 2 })
}

/// An untagged frame.
#[inline(always)]
fn plain_either(data: &mut [u8], to: &Adjacency, ip6: bool) {
    if !ip6 {
        return plain_ip4(data, Macs::of(to));
    }
    if let Some(frame) = data.first_chunk_mut::<{ ETHERNET + 40 }>() {
        frame[..12].copy_from_slice(&to.macs);
        frame[21] = frame[21].saturating_sub(1);
    }
}

/// One TTL less, and the header checksum with it.
#[inline(always)]
fn age_ip4(ttl: &mut u8, c0: &mut u8, c1: &mut u8) {
    *ttl = ttl.wrapping_sub(1);
    [*c0, *c1] = raised(u16::from_le_bytes([*c0, *c1])).to_le_bytes();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_checksum_follows_the_ttl() {
        for other in 0..=u16::MAX {
            let header = |ttl: u8| {
                [0x45, 0, 0, 46, 0, 0, 0, 0, ttl, 17, 0, 0, 10, 0, 0, 1, (other >> 8) as u8, other as u8, 0, 9]
            };
            let sum = |header: &[u8]| {
                let words = header.chunks(2).map(|w| u64::from(u16::from_be_bytes([w[0], w[1]])));
                !packet::checksum::fold(words.sum())
            };
            for ttl in [2, 64, 255] {
                let before = u16::from_le_bytes(sum(&header(ttl)).to_be_bytes());
                assert_eq!(raised(before).to_le_bytes(), sum(&header(ttl - 1)).to_be_bytes(), "{other:#x} {ttl}");
            }
        }
    }
}
