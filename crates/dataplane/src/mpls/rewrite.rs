//! Labels swapped, popped and pushed.

use packet::{
    checksum,
    headers::{ethertype, ipv4, ipv6},
    Buffer, Burst, BURST,
};

use super::input::{flow_hash, Parsed, BOTTOM, ENTRY, ETHERNET, VLAN};
use crate::{
    model::MAX_PUSH,
    tables::{Action, Adjacency, Entry, Next, PortTable, Tables, Tag, FIRST_LABEL, GROUP},
    DropReason,
};

/// Most labels of one frame that are looked up.
const DEPTH: usize = 8;

/// What becomes of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LabelOutcome {
    /// It leaves by this port.
    Port(u16),
    /// It is not, or no longer, a frame of labels.
    Inner,
    /// It is dropped.
    Drop(DropReason),
}

/// Whether an untagged frame needs new addresses and nothing else to leave by this adjacency.
#[inline(always)]
pub(super) fn is_simple(to: &Adjacency) -> bool {
    to.next == Next::Forward && to.push == 0 && !matches!(to.tag, Tag::Vid(_))
}

/// Whether the link takes an untagged frame of `len` bytes.
#[inline(always)]
pub(super) fn fits(len: usize, to: &Adjacency) -> bool {
    len <= usize::from(to.mtu) + ETHERNET
}

/// Swaps the one label that all frames of a burst have, towards a simple adjacency.
#[inline]
pub(super) fn swap_one<B: Buffer>(
    burst: &mut Burst<B>,
    words: &[u32; BURST],
    entry: Entry,
    to: &Adjacency,
) -> LabelOutcome {
    for (frame, &word) in burst.iter_mut().zip(words) {
        swap_plain(frame.data_mut(), word, entry, to);
    }
    LabelOutcome::Port(to.port)
}

/// Swaps the labels of all frames of a burst towards a simple adjacency.
#[inline]
pub(super) fn swap_all<B: Buffer>(
    burst: &mut Burst<B>,
    words: &[u32; BURST],
    entries: &[Entry; BURST],
    to: &Adjacency,
) -> LabelOutcome {
    for ((frame, &word), &entry) in burst.iter_mut().zip(words).zip(entries) {
        swap_plain(frame.data_mut(), word, entry, to);
    }
    LabelOutcome::Port(to.port)
}

/// The top label stack entry is `word`, and its TTL above one.
#[inline(always)]
fn swap_plain(data: &mut [u8], word: u32, entry: Entry, to: &Adjacency) {
    if let Some(frame) = data.first_chunk_mut::<{ ETHERNET + ENTRY }>() {
        frame[..12].copy_from_slice(&to.macs);
        frame[ETHERNET..].copy_from_slice(&entry.swapped(word, (word as u8).wrapping_sub(1)).to_be_bytes());
    }
}

/// Where an entry leads a frame with this stack; `None` when the table names an adjacency that is not there.
#[inline(always)]
fn adjacency<'t>(entry: Entry, stack: &[u8], tables: &'t Tables) -> Option<&'t Adjacency> {
    let mut hop = entry.hop();
    if hop & GROUP != 0 {
        hop = tables.pick(hop, flow_hash(stack));
    }
    tables.adjacencies.get(hop as usize)
}

/// Swaps the top label, `word`, or pops the only one, of an untagged frame that leaves by a simple adjacency. `None`, and
/// nothing changed, for all others, which are for [`any`].
#[inline]
pub(super) fn plain<B: Buffer>(frame: &mut B, word: u32, entry: Entry, tables: &Tables) -> Option<LabelOutcome> {
    let to = adjacency(entry, frame.data().get(ETHERNET..)?, tables).filter(|to| is_simple(to))?;
    match entry.action() {
        Action::Swap if fits(frame.len(), to) => swap_plain(frame.data_mut(), word, entry, to),
        Action::Pop if word & BOTTOM != 0 && fits(frame.len().saturating_sub(ENTRY), to) => {
            let data = frame.data_mut();
            let kind = uncover(data.get_mut(ETHERNET + ENTRY..)?, (word as u8).wrapping_sub(1))?;
            // The new header ends where the label ended.
            let head = data.get_mut(ENTRY..ENTRY + ETHERNET)?;
            head[..12].copy_from_slice(&to.macs);
            head[12..].copy_from_slice(&kind.to_be_bytes());
            if !frame.trim_front(ENTRY) {
                return Some(LabelOutcome::Drop(DropReason::Runt));
            }
        }
        _ => return None,
    }
    Some(LabelOutcome::Port(to.port))
}

/// Gives the IP packet that comes out from under the labels its TTL; `None` when there is none.
///
/// Returns its EtherType. The TTL the packet has does not count, nor in Linux, even where it is the lower one.
#[inline]
fn uncover(packet: &mut [u8], ttl: u8) -> Option<u16> {
    match packet.first()? >> 4 {
        4 => {
            let [.., old, protocol, c0, c1] = packet.first_chunk_mut::<{ ipv4::LEN }>()?.first_chunk_mut::<12>()?;
            let word = |ttl| u16::from_be_bytes([ttl, *protocol]);
            if *old != ttl {
                [*c0, *c1] = checksum::update(u16::from_be_bytes([*c0, *c1]), word(*old), word(ttl)).to_be_bytes();
                *old = ttl;
            }
            Some(ethertype::IPV4)
        }
        6 => {
            packet.first_chunk_mut::<{ ipv6::LEN }>()?[7] = ttl;
            Some(ethertype::IPV6)
        }
        _ => None,
    }
}

/// Everything [`plain`] does, and every other case of a frame of labels.
#[inline(never)]
pub(super) fn any<B: Buffer>(frame: &mut B, tables: &Tables, port: &PortTable) -> Result<LabelOutcome, DropReason> {
    let parsed = Parsed::new(frame.data(), port)?;
    let stack = frame.data().get(parsed.stack..).ok_or(DropReason::MplsStack)?;
    let ttl = stack.get(3).copied().ok_or(DropReason::MplsStack)?;
    for (depth, bytes) in stack.chunks_exact(ENTRY).enumerate().take(DEPTH) {
        let word = bytes.first_chunk().map_or(0, |bytes| u32::from_be_bytes(*bytes));
        let (label, bottom) = (word >> 12, word & BOTTOM != 0);
        let entry = tables.labels.entry(label);
        // An IP version, where only one will do.
        let version = match (label, entry.action()) {
            (0, _) => Some(4),
            (2, _) => Some(6),
            (..FIRST_LABEL, _) => return Err(DropReason::MplsReserved),
            (_, Action::None) => return Err(DropReason::MplsNoLabel),
            (_, Action::Drop) => return Err(DropReason::BlackHole),
            (_, Action::Lookup) => None,
            (_, Action::Swap | Action::Pop) => {
                let to = adjacency(entry, stack, tables).ok_or(DropReason::NoRoute)?;
                let gone = (depth + 1) * ENTRY;
                let top = Top { word, ttl, swap: (entry.action() == Action::Swap).then_some(entry) };
                return leave(frame, &parsed, gone, top, to, tables);
            }
        };
        if bottom {
            return route(frame, &parsed, ttl, version);
        }
    }
    Err(DropReason::MplsStack)
}

/// Takes all labels off, for the inner function, which takes one off the TTL.
fn route<B: Buffer>(frame: &mut B, parsed: &Parsed, ttl: u8, version: Option<u8>) -> Result<LabelOutcome, DropReason> {
    let packet = frame.data_mut().get_mut(parsed.payload..).ok_or(DropReason::MplsPayload)?;
    if version.is_some_and(|version| packet.first().map(|first| first >> 4) != Some(version)) {
        return Err(DropReason::MplsPayload);
    }
    let kind = uncover(packet, ttl).ok_or(DropReason::MplsPayload)?;
    let macs = *frame.data().first_chunk::<12>().ok_or(DropReason::Runt)?;
    let mut head = Head::new(macs, parsed.tag);
    head.append(kind.to_be_bytes());
    head.replace(frame, parsed.payload)?;
    Ok(LabelOutcome::Inner)
}

/// The last of the labels that go.
struct Top {
    word: u32,
    /// The frame's on arrival.
    ttl: u8,
    /// The entry, when another label takes its place.
    swap: Option<Entry>,
}

/// Takes `gone` bytes of labels off, puts the new ones on, and hands the frame to an adjacency.
fn leave<B: Buffer>(
    frame: &mut B,
    parsed: &Parsed,
    gone: usize,
    top: Top,
    to: &Adjacency,
    tables: &Tables,
) -> Result<LabelOutcome, DropReason> {
    match to.next {
        Next::Forward => {}
        Next::Drop(reason) => return Err(reason),
        Next::Local => return Err(DropReason::MplsPayload),
        Next::Glean | Next::Unresolved => return Err(DropReason::NoNeighbour),
    }
    if top.ttl <= 1 {
        return Err(DropReason::MplsTtl);
    }
    let ttl = top.ttl - 1;
    let pushed = tables.labels.pushed(to.push).ok_or(DropReason::MplsNoLabel)?;
    let swapped = top.swap.map(|entry| entry.swapped(top.word, ttl));
    let labels = (pushed.len() + usize::from(swapped.is_some())) * ENTRY;
    let old = parsed.stack + gone;
    if labels + frame.len().saturating_sub(old) > usize::from(to.mtu) {
        return Err(DropReason::Mtu);
    }
    let below = frame.data_mut().get_mut(old..).ok_or(DropReason::MplsStack)?;
    let bottom = top.word & BOTTOM != 0;
    let kind = match below.get_mut(3) {
        _ if labels > 0 => ethertype::MPLS,
        Some(next) if !bottom => {
            *next = ttl;
            ethertype::MPLS
        }
        _ => uncover(below, ttl).ok_or(DropReason::MplsPayload)?,
    };
    let tag = match to.tag {
        Tag::Keep => parsed.tag,
        Tag::None => None,
        // The priority stays.
        Tag::Vid(vid) => Some([parsed.tag.map_or(0, |tci| tci[0] & 0xf0) | (vid >> 8) as u8 & 0xf, vid as u8]),
    };
    let mut head = Head::new(to.macs, tag);
    head.append(kind.to_be_bytes());
    for (i, entry) in pushed.iter().enumerate() {
        let last = swapped.is_none() && i + 1 == pushed.len();
        let bits = top.word & 0xe00 | if last { top.word & BOTTOM } else { 0 };
        head.append((u32::from_be_bytes(*entry) & 0xffff_f000 | bits | u32::from(ttl)).to_be_bytes());
    }
    if let Some(word) = swapped {
        head.append(word.to_be_bytes());
    }
    head.replace(frame, old)?;
    Ok(LabelOutcome::Port(to.port))
}

/// The new front of a frame: Ethernet header, tag and labels.
struct Head {
    bytes: [u8; ETHERNET + VLAN + (MAX_PUSH + 1) * ENTRY],
    len: usize,
}

impl Head {
    fn new(macs: [u8; 12], tag: Option<[u8; 2]>) -> Self {
        let mut head = Self { bytes: [0; ETHERNET + VLAN + (MAX_PUSH + 1) * ENTRY], len: 0 };
        head.append(macs);
        if let Some(tci) = tag {
            head.append(ethertype::VLAN.to_be_bytes());
            head.append(tci);
        }
        head
    }

    fn append<const N: usize>(&mut self, bytes: [u8; N]) {
        if let Some(slot) = self.bytes.get_mut(self.len..self.len + N) {
            slot.copy_from_slice(&bytes);
            self.len += N;
        }
    }

    /// Puts it in the place of the first `old` bytes of the frame.
    fn replace<B: Buffer>(self, frame: &mut B, old: usize) -> Result<(), DropReason> {
        if !frame.trim_front(old) || !frame.prepend(self.len) {
            return Err(DropReason::NoBuffer);
        }
        match (frame.data_mut().get_mut(..self.len), self.bytes.get(..self.len)) {
            (Some(to), Some(from)) => to.copy_from_slice(from),
            _ => return Err(DropReason::NoBuffer),
        }
        Ok(())
    }
}
