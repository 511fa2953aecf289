//! What a frame of labels is, before any label is looked up (RFC 3032 2.1).

use packet::headers::ethertype;

use crate::{
    tables::{MacFilter, PortTable, NO_INTERFACE},
    DropReason,
};

/// Bytes of an Ethernet header.
pub(super) const ETHERNET: usize = 14;
/// Bytes of a VLAN tag.
pub(super) const VLAN: usize = 4;
/// Bytes of a label stack entry.
pub(super) const ENTRY: usize = 4;
/// Set in the bottom label stack entry.
pub(super) const BOTTOM: u32 = 0x100;

/// The EtherType of MPLS with labels that the sender's upstream assigned (RFC 5332), which are not ours.
const MPLS_UPSTREAM: u16 = 0x8848;

/// Whose frame it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FrameKind {
    Mpls,
    Other,
}

/// Tells frames of labels, right or wrong, from all others.
#[inline(always)]
pub(super) fn kind(data: &[u8]) -> FrameKind {
    match data.get(12..14) {
        Some([0x08, 0x00] | [0x86, 0xdd]) => FrameKind::Other,
        _ => other_kind(data),
    }
}

#[inline(never)]
fn other_kind(data: &[u8]) -> FrameKind {
    match ether_type(data) {
        Some((ethertype::MPLS | MPLS_UPSTREAM, _)) => FrameKind::Mpls,
        _ => FrameKind::Other,
    }
}

/// The EtherType, behind one VLAN tag if there is one, and where what it names begins.
fn ether_type(data: &[u8]) -> Option<(u16, usize)> {
    let at = |i: usize| Some(u16::from_be_bytes([*data.get(i)?, *data.get(i + 1)?]));
    match at(12)? {
        ethertype::VLAN => Some((at(16)?, ETHERNET + VLAN)),
        kind => Some((kind, ETHERNET)),
    }
}

/// The top label stack entry of an untagged frame with one label or two in which nothing is wrong. `None` says nothing:
/// [`kind`] and [`Parsed::new`] tell.
#[inline(always)]
pub(super) fn plain(data: &[u8], macs: MacFilter) -> Option<u32> {
    let frame: &[u8; ETHERNET + 2 * ENTRY] = data.first_chunk()?;
    let [m0, m1, m2, m3, m4, m5, m6, m7, .., w0, w1, w2, w3, _, _, below, _] = *frame;
    let word = u32::from_be_bytes([w0, w1, w2, w3]);
    // One branch for all: each check is a flag, and nearly every frame passes them all.
    let good = (frame[12..14] == ethertype::MPLS.to_be_bytes())
        & macs.takes([m0, m1, m2, m3, m4, m5, m6, m7])
        & ((w2 | below) & 1 != 0)
        & (word & 0xff > 1);
    good.then_some(word)
}

/// Where the parts of a frame of labels begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Parsed {
    /// Tag control information of the VLAN tag.
    pub(super) tag: Option<[u8; 2]>,
    /// The top label stack entry.
    pub(super) stack: usize,
    /// What is below the bottom one.
    pub(super) payload: usize,
}

impl Parsed {
    /// Takes a frame of labels apart, or says why not.
    pub(super) fn new(data: &[u8], port: &PortTable) -> Result<Self, DropReason> {
        let head: &[u8; 8] = data.first_chunk().ok_or(DropReason::Runt)?;
        let (kind, stack) = ether_type(data).ok_or(DropReason::Runt)?;
        if kind != ethertype::MPLS {
            return Err(DropReason::NotIp);
        }
        if !port.macs.takes(*head) {
            return Err(if head[0] & 1 != 0 { DropReason::LinkGroup } else { DropReason::NotOurMac });
        }
        let tag = match data.get(ETHERNET..ETHERNET + 2) {
            Some(&[hi, lo]) if stack > ETHERNET => Some([hi, lo]),
            _ => None,
        };
        if let (Some(tci), Some(vlans)) = (tag, &port.vlans) {
            if vlans[usize::from(u16::from_be_bytes(tci) & 0xfff)] == NO_INTERFACE {
                return Err(DropReason::VlanUnknown);
            }
        }
        let entries = data.get(stack..).unwrap_or_default().chunks_exact(ENTRY);
        let above = entries.clone().take_while(|entry| entry[2] & 1 == 0).count();
        if above == entries.len() {
            return Err(DropReason::MplsStack);
        }
        Ok(Self { tag, stack, payload: stack + (above + 1) * ENTRY })
    }
}

/// Mixes the labels of a stack, which ends in these bytes, and the IP addresses below it (RFC 4928, RFC 6790 2.1): what
/// belongs together takes one way.
pub(super) fn flow_hash(stack: &[u8]) -> u32 {
    let (mut hash, mut rest) = (0, stack);
    while let Some((&entry, below)) = rest.split_first_chunk::<ENTRY>() {
        let word = u32::from_be_bytes(entry);
        hash = mix(hash, u64::from(word >> 12));
        rest = below;
        if word & BOTTOM != 0 {
            break;
        }
    }
    let addresses = match rest.first().map(|first| first >> 4) {
        Some(4) => rest.get(12..20),
        Some(6) => rest.get(8..40),
        _ => None,
    };
    for part in addresses.unwrap_or_default().chunks_exact(8) {
        hash = mix(hash, part.first_chunk().map_or(0, |part| u64::from_le_bytes(*part)));
    }
    (hash >> 32) as u32
}

/// Multiplying moves each bit up, the shift brings the top ones down again.
#[inline(always)]
fn mix(hash: u64, value: u64) -> u64 {
    let product = (hash ^ value).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    product ^ product >> 29
}
