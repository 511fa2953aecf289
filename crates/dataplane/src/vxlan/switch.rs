//! Where frames go: stations learned and looked up, and one frame or a whole burst sent there.

use packet::{
    headers::{ethertype, vlan},
    Alloc, Buffer, Burst, MacAddr, BURST,
};

use super::{
    flow,
    outer::Outer,
    recent,
    work::{Context, Work},
};
use crate::{
    fdb::Learned,
    pass::PREFETCH_AHEAD,
    tables::{Access, Domain, Next, Tunnel, ETHERNET, GROUP, NOWHERE, TUNNEL},
    Dispatch, DropReason, Outputs,
};

/// An endpoint of the right network.
#[derive(Debug, Clone, Copy)]
pub(super) enum Exit<'a> {
    Access(Access),
    Tunnel(&'a Tunnel),
}

impl<'a> Context<'a> {
    /// What an endpoint number stands for; `None` when it is of another network or gone.
    #[inline]
    pub(super) fn exit(self, domain: u16, endpoint: u16) -> Option<Exit<'a>> {
        if endpoint < TUNNEL {
            self.overlay.access(endpoint).filter(|access| access.domain == domain).map(Exit::Access)
        } else {
            self.overlay.tunnel(endpoint).filter(|tunnel| tunnel.domain == domain).map(Exit::Tunnel)
        }
    }
}

impl<A: Alloc> Work<A> {
    /// Learns where each frame is from, finds where it goes, and sends it there or puts it aside to be flooded.
    /// `TUNNELLED` frames go to access links only.
    #[inline]
    pub(super) fn switch<const TUNNELLED: bool>(
        &mut self,
        cx: Context<'_>,
        burst: &mut Burst<A::Buf>,
        out: &mut Outputs<A::Buf>,
    ) -> Dispatch {
        self.outer_of = None;
        let longest = self.stations::<TUNNELLED>(cx, burst);
        match self.together::<TUNNELLED>(cx, burst, longest) {
            Some(port) => {
                // Nothing was wrong before: these found no headroom.
                if self.bad != 0 {
                    out.drops.drop_masked(burst, self.bad, DropReason::NoBuffer);
                }
                out.all(port, burst)
            }
            None => {
                self.each::<TUNNELLED>(cx, burst, out);
                Dispatch::Split
            }
        }
    }

    /// Fills in `to`. Returns the length of the longest frame; of `TUNNELLED` ones nobody asks for it.
    #[inline]
    fn stations<const TUNNELLED: bool>(&mut self, cx: Context<'_>, burst: &Burst<A::Buf>) -> usize {
        let mut longest = 0;
        if !TUNNELLED {
            burst.iter().take(PREFETCH_AHEAD).for_each(Buffer::prefetch);
            for (i, frame) in burst.iter().enumerate() {
                if let Some(ahead) = burst.get(i + PREFETCH_AHEAD) {
                    ahead.prefetch();
                }
                let data = frame.data();
                longest = longest.max(data.len());
                self.look::<false>(i, data, 0);
            }
        }
        let unknown = self.unknown & !self.bad;
        if unknown != 0 {
            self.look_up_all::<TUNNELLED>(cx, unknown);
        }
        longest
    }

    /// Fills in `to` when source and destination are remembered, or else notes that the table is to be asked. The frame
    /// begins at `at`.
    #[inline(always)]
    pub(super) fn look<const TUNNELLED: bool>(&mut self, i: usize, data: &[u8], at: usize) {
        let head = data.get(at..at + ETHERNET).and_then(|head| head.first_chunk::<ETHERNET>());
        let Some((dst, src)) = head.and_then(|head| head.first_chunk().zip(head.last_chunk())) else {
            return self.fail_first(i, DropReason::Runt);
        };
        let domain = self.domains[i];
        let (dst, src) = (recent::key(domain, *dst), recent::key(domain, *src));
        let new = !self.learned.is(src, self.from[i]);
        // Neither of these ever holds a group address.
        match self.known.get(dst) {
            Some(to) if !new => self.to[i] = to,
            None if TUNNELLED && !new => match self.sole.get(dst) {
                Some(to) => {
                    self.to[i] = to;
                    self.counts.flooded += u64::from(self.bad >> i & 1 == 0);
                }
                None => self.look_up(i, src, dst),
            },
            _ => self.look_up(i, src, dst),
        }
    }

    #[inline]
    fn look_up(&mut self, i: usize, src: u64, dst: u64) {
        self.keys[i] = [src, dst];
        self.unknown |= 1 << i;
    }

    /// Learns the sources and looks up the destinations of these frames.
    #[inline(never)]
    fn look_up_all<const TUNNELLED: bool>(&mut self, cx: Context<'_>, frames: u64) {
        let each = |mask: u64| (0..BURST).filter(move |i| mask >> i & 1 != 0);
        // The table may be larger than the cache: all reads are begun before the first is needed.
        for i in each(frames) {
            let places = self.keys[i].map(|key| cx.fdb.place(self.domains[i], recent::mac(key)));
            places.iter().for_each(|place| cx.fdb.warm(*place));
            self.places[i] = places;
        }
        for i in each(frames) {
            let ([src, dst], [src_place, dst_place]) = (self.keys[i], self.places[i]);
            let MacAddr([d0, d1, d2, d3, d4, d5]) = recent::mac(dst);
            if !TUNNELLED && [d0, d1, d2, d3, d4, d5 & 0xf0] == [0x01, 0x80, 0xc2, 0, 0, 0] {
                self.fail(i, DropReason::BridgeReserved);
                continue;
            }
            if recent::mac(src).is_group() {
                self.fail(i, DropReason::BridgeSource);
                continue;
            }
            if self.learn >> i & 1 != 0 {
                match cx.fdb.learn_at(src_place, self.from[i], cx.now_s) {
                    Learned::Known | Learned::Full => {}
                    Learned::New | Learned::Moved => {
                        self.counts.learned += 1;
                        self.known.remove(src);
                        self.sole.remove(src);
                    }
                }
            }
            self.learned.insert(src, self.from[i]);
            let to = if d0 & 1 != 0 { None } else { cx.fdb.lookup_at(dst_place, cx.now_s) };
            if let Some(to) = to {
                self.known.insert(dst, to);
            }
            let sole = || cx.overlay.domain(self.domains[i]).filter(|_| TUNNELLED).and_then(Domain::sole);
            self.to[i] = to.or_else(sole).unwrap_or(NOWHERE);
            if to.is_none() && self.to[i] != NOWHERE {
                self.sole.insert(dst, self.to[i]);
                self.counts.flooded += 1;
            }
        }
    }

    /// Marks a frame as dropped unless it already is.
    #[cold]
    fn fail_first(&mut self, i: usize, reason: DropReason) {
        if self.bad >> i & 1 == 0 {
            self.fail(i, reason);
        }
    }

    /// Sends a burst in which nothing is wrong and every frame goes to one and the same place: the egress port.
    #[inline]
    fn together<const TUNNELLED: bool>(
        &mut self,
        cx: Context<'_>,
        burst: &mut Burst<A::Buf>,
        longest: usize,
    ) -> Option<usize> {
        let n = burst.len();
        let (to, domain) = (*self.to.first()?, *self.domains.first()?);
        let same = self.to.iter().take(n).fold(0, |diff, t| diff | t ^ to)
            | self.domains.iter().take(n).fold(0, |diff, d| diff | d ^ domain);
        if n == 0 || self.bad != 0 || same != 0 {
            return None;
        }
        match cx.exit(domain, to)? {
            Exit::Access(access) => {
                let back = !TUNNELLED && self.from.iter().take(n).any(|from| *from == to);
                (access.vlan.is_none() && !back).then_some(access.port.into())
            }
            Exit::Tunnel(_) if TUNNELLED => None,
            Exit::Tunnel(tunnel) => {
                if tunnel.next_hop & GROUP != 0 {
                    return None;
                }
                let (mut unsent, mut id) = (0u64, self.id);
                let outer = self.outer(cx, to, tunnel, 0).ok()?;
                if longest > outer.max_frame {
                    return None;
                }
                let (port, plain) = (outer.port, outer.is_plain());
                for (i, frame) in burst.iter_mut().enumerate() {
                    id = id.wrapping_add(1);
                    let written = if plain { outer.write_plain(frame, id) } else { outer.write(frame, id) };
                    unsent |= u64::from(!written) << i;
                }
                (self.id, self.bad) = (id, unsent);
                self.counts.encapsulated += u64::from(unsent.count_zeros()) - (BURST - n) as u64;
                Some(port)
            }
        }
    }

    /// Sends each frame where it goes.
    #[inline(never)]
    fn each<const TUNNELLED: bool>(&mut self, cx: Context<'_>, burst: &mut Burst<A::Buf>, out: &mut Outputs<A::Buf>) {
        for (i, frame) in burst.drain(..).enumerate() {
            if self.bad >> i & 1 != 0 {
                out.drops.drop(frame, self.reasons[i]);
                continue;
            }
            let (domain, from, to) = (self.domains[i], self.from[i], self.to[i]);
            match cx.exit(domain, to) {
                // Split horizon: the other end reaches that station itself.
                Some(Exit::Tunnel(_)) if TUNNELLED => out.drops.drop(frame, DropReason::SamePort),
                Some(_) if to == from => out.drops.drop(frame, DropReason::SamePort),
                Some(exit) => self.send(cx, to, exit, frame, out),
                None => {
                    self.flood_of[self.floods.len()] = (domain, from);
                    self.floods.push(frame);
                }
            }
        }
    }

    /// Sends a frame to an endpoint.
    pub(super) fn send(
        &mut self,
        cx: Context<'_>,
        endpoint: u16,
        exit: Exit<'_>,
        mut frame: A::Buf,
        out: &mut Outputs<A::Buf>,
    ) {
        let hash = flow::hash(frame.data());
        let port = self.fits(cx, endpoint, exit, frame.len(), hash).and_then(|port| {
            let written = match exit {
                Exit::Access(access) => access.vlan.is_none_or(|vid| tag(&mut frame, vid)),
                Exit::Tunnel(_) => {
                    self.id = self.id.wrapping_add(1);
                    self.outer.write(&mut frame, self.id)
                }
            };
            if written {
                Ok(port)
            } else {
                Err(DropReason::NoBuffer)
            }
        });
        match port {
            Ok(port) => {
                self.counts.encapsulated += u64::from(matches!(exit, Exit::Tunnel(_)));
                out.push(port, frame);
            }
            Err(reason) => out.drops.drop(frame, reason),
        }
    }

    /// The egress port of a frame of this length and flow, when nothing stands in its way. For a tunnel, `outer` then
    /// holds its headers.
    pub(super) fn fits(
        &mut self,
        cx: Context<'_>,
        endpoint: u16,
        exit: Exit<'_>,
        len: usize,
        hash: u32,
    ) -> Result<usize, DropReason> {
        match exit {
            Exit::Access(access) => Ok(access.port.into()),
            Exit::Tunnel(tunnel) => {
                let outer = self.outer(cx, endpoint, tunnel, flow::path_bits(hash))?;
                let (port, packet) = (outer.port, len + outer.overhead);
                if len > outer.max_frame {
                    self.counts.mtu_exceeded = self.counts.mtu_exceeded.max(packet as u64);
                    return Err(DropReason::VxlanMtu);
                }
                Ok(port)
            }
        }
    }

    /// The headers of a tunnel, over the adjacency that this flow takes now.
    #[inline]
    fn outer(&mut self, cx: Context<'_>, endpoint: u16, tunnel: &Tunnel, path_bits: u32) -> Result<&Outer, DropReason> {
        let number = cx.tables.pick(tunnel.next_hop, path_bits);
        if self.outer_of != Some((endpoint, number)) {
            let adjacency = cx.tables.adjacencies.get(number as usize).ok_or(DropReason::VxlanNoRoute)?;
            match adjacency.next {
                Next::Forward => {}
                Next::Glean | Next::Unresolved => return Err(DropReason::NoNeighbour),
                Next::Local | Next::Drop(DropReason::NoRoute) => return Err(DropReason::VxlanNoRoute),
                Next::Drop(reason) => return Err(reason),
            }
            let outer = Outer::new(&tunnel.template, adjacency, &cx.tables.labels);
            self.outer = outer.ok_or(DropReason::VxlanNoRoute)?;
            self.outer_of = Some((endpoint, number));
        }
        Ok(&self.outer)
    }
}

/// Puts a VLAN tag behind the MAC addresses. `false`, and nothing changed, without headroom.
fn tag<B: Buffer>(frame: &mut B, vid: u16) -> bool {
    if !frame.prepend(vlan::LEN) {
        return false;
    }
    let data = frame.data_mut();
    if let Some(head) = data.first_chunk_mut::<16>() {
        head.copy_within(vlan::LEN.., 0);
        head[12..14].copy_from_slice(&ethertype::VLAN.to_be_bytes());
        head[14..].copy_from_slice(&(vid & 0xfff).to_be_bytes());
    }
    true
}
