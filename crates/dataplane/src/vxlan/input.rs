//! Whose frame is it: an access link's, a tunnel's, or the router's.

use packet::{
    headers::{ethertype, vlan},
    Alloc, Buffer, Burst,
};

use super::{
    parse::{self, Plain, Tunnelled, UnderlayKind},
    work::{Context, Work},
};
use crate::{pass::PREFETCH_AHEAD, tables::NOWHERE, DropReason};

/// Where the last plain frame of a burst belonged whose tunnel is known.
struct Last<const N: usize> {
    what: Plain<N>,
    domain: u16,
    tunnel: u16,
    learn: bool,
}

impl<const N: usize> Last<N> {
    const NONE: Self = Self { what: Plain::NONE, domain: 0, tunnel: NOWHERE, learn: false };
}

impl<A: Alloc> Work<A> {
    /// Finds the frames that are VXLAN for us, bad ones included, and where they belong.
    #[inline]
    pub(super) fn classify(&mut self, cx: Context<'_>, ingress: usize, burst: &Burst<A::Buf>) -> u64 {
        (self.bad, self.learn, self.unknown) = (0, 0, 0);
        let Some(port) = cx.tables.ports.get(ingress) else { return 0 };
        let mut mine = 0;
        let (mut last4, mut last6) = (Last::NONE, Last::NONE);
        burst.iter().take(PREFETCH_AHEAD).for_each(Buffer::prefetch);
        for (i, frame) in burst.iter().enumerate() {
            if let Some(ahead) = burst.get(i + PREFETCH_AHEAD) {
                ahead.prefetch();
            }
            let data = frame.data();
            let is_mine = if let Some((what, end)) = parse::plain4(data, port.macs) {
                self.classify_plain(cx, i, what, end, &mut last4, || true)
            } else if let Some((what, end)) = parse::plain6(data, port.macs) {
                self.classify_plain(cx, i, what, end, &mut last6, || parse::sound6(data, end))
            } else {
                self.classify_kind(cx, i, parse::parse(data, port, &cx.overlay.ends)).0
            };
            if is_mine {
                mine |= 1 << i;
                // While the line is at hand; of a frame already dropped nothing of this counts.
                self.look::<true>(i, data, usize::from(self.inner[i].0));
            }
        }
        mine
    }

    /// As [`Self::classify`], for a plain frame that is ours if its addresses are; `sound` tells of its checksum.
    #[inline(always)]
    fn classify_plain<const N: usize>(
        &mut self,
        cx: Context<'_>,
        i: usize,
        what: Plain<N>,
        end: usize,
        last: &mut Last<N>,
        sound: impl FnOnce() -> bool,
    ) -> bool {
        if what == last.what {
            if !sound() {
                self.fail(i, DropReason::VxlanOuter);
                return true;
            }
            self.learn |= u64::from(last.learn) << i;
            (self.domains[i], self.from[i]) = (last.domain, last.tunnel);
            self.inner[i] = (Plain::<N>::INNER as u16, end as u16);
            return true;
        }
        let mut kind = what.kind(&cx.overlay.ends, end);
        if kind != UnderlayKind::Underlay && !sound() {
            kind = UnderlayKind::Bad(DropReason::VxlanOuter);
        }
        let (mine, known) = self.classify_kind(cx, i, kind);
        if known {
            let learn = self.learn >> i & 1 != 0;
            *last = Last { what, domain: self.domains[i], tunnel: self.from[i], learn };
        }
        mine
    }

    /// Whether a frame is ours, and whether its tunnel is known.
    #[inline(never)]
    fn classify_kind(&mut self, cx: Context<'_>, i: usize, kind: UnderlayKind) -> (bool, bool) {
        let admitted = match kind {
            UnderlayKind::Underlay => return (false, false),
            UnderlayKind::Bad(reason) => Err(reason),
            UnderlayKind::Tunnelled(frame) => self.admit(cx, i, frame),
        };
        (
            true,
            admitted.unwrap_or_else(|reason| {
                self.fail(i, reason);
                false
            }),
        )
    }

    /// Notes where a frame belongs; whether its tunnel is known.
    fn admit(&mut self, cx: Context<'_>, i: usize, frame: Tunnelled) -> Result<bool, DropReason> {
        let domain = cx.overlay.network(frame.vni, frame.end).ok_or(DropReason::VxlanVni)?;
        let learn = cx.overlay.domain(domain).is_some_and(|network| network.learn);
        let tunnel = cx.overlay.peer(domain, frame.src);
        if tunnel.is_none() {
            if !learn {
                return Err(DropReason::VxlanRemote);
            }
            self.reporter.report(frame.vni, frame.src, cx.now_s);
        }
        self.learn |= u64::from(learn && tunnel.is_some()) << i;
        self.domains[i] = domain;
        self.from[i] = tunnel.unwrap_or(NOWHERE);
        self.inner[i] = (frame.inner.0 as u16, frame.inner.1 as u16);
        Ok(tunnel.is_some())
    }

    /// Moves the frames in `mine` to `own`, and what is known of them to their new places.
    #[inline(never)]
    pub(super) fn part(&mut self, mine: u64, burst: &mut Burst<A::Buf>, own: &mut Burst<A::Buf>) {
        let (bad, learn, unknown) = (self.bad, self.learn, self.unknown);
        (self.bad, self.learn, self.unknown) = (0, 0, 0);
        let mut kept = Burst::new();
        for (i, frame) in burst.drain(..).enumerate() {
            if mine >> i & 1 == 0 {
                kept.push(frame);
                continue;
            }
            let to = own.len();
            self.bad |= (bad >> i & 1) << to;
            self.learn |= (learn >> i & 1) << to;
            self.unknown |= (unknown >> i & 1) << to;
            self.keys[to] = self.keys[i];
            self.to[to] = self.to[i];
            self.domains[to] = self.domains[i];
            self.from[to] = self.from[i];
            self.inner[to] = self.inner[i];
            self.reasons[to] = self.reasons[i];
            own.push(frame);
        }
        *burst = kept;
    }

    /// Takes the outer headers off, and the padding.
    #[inline]
    pub(super) fn strip(&mut self, burst: &mut Burst<A::Buf>) {
        for (i, frame) in burst.iter_mut().enumerate() {
            if self.bad >> i & 1 != 0 {
                continue;
            }
            let (begin, end) = (usize::from(self.inner[i].0), usize::from(self.inner[i].1));
            if !((end == frame.len() || frame.set_len(end)) && frame.trim_front(begin)) {
                self.fail(i, DropReason::Runt);
            }
        }
        self.counts.decapsulated += (burst.len() - self.bad.count_ones() as usize) as u64;
    }

    /// All frames of the burst are this access link's.
    #[inline]
    pub(super) fn label(&mut self, cx: Context<'_>, link: u16) {
        let domain = cx.overlay.access(link).map_or(0, |access| access.domain);
        (self.bad, self.unknown) = (0, 0);
        self.learn = if cx.overlay.domain(domain).is_some_and(|network| network.learn) { u64::MAX } else { 0 };
        self.domains.fill(domain);
        self.from.fill(link);
    }

    /// Notes whose the frames are and takes their tags off.
    pub(super) fn label_vlans(
        &mut self,
        cx: Context<'_>,
        untagged: u16,
        by_vid: &[u16; 4096],
        burst: &mut Burst<A::Buf>,
    ) {
        (self.bad, self.learn, self.unknown) = (0, 0, 0);
        for (i, frame) in burst.iter_mut().enumerate() {
            let link = access(frame.data(), untagged, by_vid);
            let Some(access) = cx.overlay.access(link) else {
                self.fail(i, DropReason::VlanUnknown);
                continue;
            };
            if access.vlan.is_some() {
                let data = frame.data_mut();
                data.copy_within(..12, vlan::LEN);
                if !frame.trim_front(vlan::LEN) {
                    self.fail(i, DropReason::Runt);
                }
            }
            self.domains[i] = access.domain;
            self.from[i] = link;
            self.learn |= u64::from(cx.overlay.domain(access.domain).is_some_and(|network| network.learn)) << i;
        }
    }
}

/// Moves the frames of access links to `own`.
pub(super) fn part_vlans<B: Buffer>(untagged: u16, by_vid: &[u16; 4096], burst: &mut Burst<B>, own: &mut Burst<B>) {
    let mut kept = Burst::new();
    burst.iter().for_each(Buffer::prefetch);
    for frame in burst.drain(..) {
        let to = if access(frame.data(), untagged, by_vid) == NOWHERE { &mut kept } else { &mut *own };
        to.push(frame);
    }
    *burst = kept;
}

/// The access link a frame of the port belongs to.
#[inline]
fn access(data: &[u8], untagged: u16, by_vid: &[u16; 4096]) -> u16 {
    let Some(&[.., t0, t1, c0, c1]) = data.first_chunk::<16>() else { return untagged };
    if u16::from_be_bytes([t0, t1]) != ethertype::VLAN {
        return untagged;
    }
    match by_vid[usize::from(u16::from_be_bytes([c0 & 0x0f, c1]))] {
        NOWHERE => untagged,
        link => link,
    }
}
