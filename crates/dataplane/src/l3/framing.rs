//! Link layers: reading what is in front of a packet, and putting something else there.

use packet::{headers::ethertype, Buffer};

use crate::{
    model::MAX_PUSH,
    tables::{Adjacency, PortTable, Stack, Tag, NO_INTERFACE},
};

/// Bytes of an Ethernet header.
pub(super) const ETHERNET: usize = 14;
/// Bytes of a VLAN tag.
const VLAN: usize = 4;
/// Bytes of a label stack entry.
const LABEL: usize = 4;

/// An Ethernet header with or without a customer tag, less its addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Framing {
    /// The tag's control information: priority, drop eligible, VID.
    pub(crate) tci: Option<u16>,
    /// EtherType of what follows.
    pub(crate) ether_type: u16,
}

impl Framing {
    /// That of a frame; `None` when it is too short to have one.
    #[inline]
    pub(crate) fn read(data: &[u8]) -> Option<Self> {
        let (&[.., t0, t1], rest) = data.split_first_chunk::<ETHERNET>()?;
        let ether_type = u16::from_be_bytes([t0, t1]);
        if ether_type != ethertype::VLAN {
            return Some(Self { tci: None, ether_type });
        }
        let &[c0, c1, t0, t1] = rest.first_chunk::<VLAN>()?;
        Some(Self { tci: Some(u16::from_be_bytes([c0, c1])), ether_type: u16::from_be_bytes([t0, t1]) })
    }

    /// Bytes in front of the packet.
    #[inline]
    pub(crate) fn len(self) -> usize {
        ETHERNET + if self.tci.is_some() { VLAN } else { 0 }
    }

    /// The interface a frame came in by; `None` when the port has none for its VID. VID 0 carries a priority
    /// and does not name a VLAN (IEEE 802.1Q 9.6).
    #[inline]
    pub(crate) fn interface(self, port: &PortTable) -> Option<u16> {
        match (&port.vlans, self.tci.map_or(0, |tci| tci & 0xfff)) {
            (None, _) | (_, 0) => Some(port.untagged),
            (Some(vlans), vid) => vlans.get(usize::from(vid)).copied().filter(|&interface| interface != NO_INTERFACE),
        }
    }

    /// The tag's control information when the frame leaves; a VID that is set leaves the priority.
    #[inline]
    pub(crate) fn egress_tci(self, to: &Adjacency) -> Option<u16> {
        match to.tag {
            Tag::Keep => self.tci,
            Tag::None => None,
            Tag::Vid(vid) => Some(self.tci.unwrap_or(0) & 0xf000 | vid & 0x0fff),
        }
    }

    /// Takes `strip` bytes off the front of a frame and puts this framing there, with the adjacency's addresses, its
    /// tag, and these label stack entries (at most [`MAX_PUSH`]) behind it. `false` when there is no headroom: then the
    /// frame is as it was.
    #[inline]
    #[must_use]
    pub(crate) fn replace<B: Buffer>(
        self,
        frame: &mut B,
        strip: usize,
        to: &Adjacency,
        labels: &[[u8; LABEL]],
    ) -> bool {
        let tci = self.egress_tci(to);
        let mut head = [0; ETHERNET + VLAN + MAX_PUSH * LABEL];
        head[..12].copy_from_slice(&to.macs);
        let mut len = 12;
        if let Some(tci) = tci {
            head[len..len + 2].copy_from_slice(&ethertype::VLAN.to_be_bytes());
            head[len + 2..len + 4].copy_from_slice(&tci.to_be_bytes());
            len += VLAN;
        }
        head[len..len + 2].copy_from_slice(&self.ether_type.to_be_bytes());
        len += 2;
        for entry in labels.iter().take(MAX_PUSH) {
            head[len..len + LABEL].copy_from_slice(entry);
            len += LABEL;
        }
        let fits = if len > strip { frame.prepend(len - strip) } else { frame.trim_front(strip - len) };
        match frame.data_mut().get_mut(..len) {
            Some(front) if fits => {
                front.copy_from_slice(&head[..len]);
                true
            }
            _ => false,
        }
    }
}

/// The label stack entries to push, and how many they are: all with this EXP (3 bits) and TTL. `bottom` marks the last one
/// as the bottom of the stack: there is an IP packet below, and not more labels.
#[inline]
pub(crate) fn entries(stack: &Stack, exp: u8, ttl: u8, bottom: bool) -> ([[u8; LABEL]; MAX_PUSH], usize) {
    let mut entries = stack.entries;
    let n = usize::from(stack.len).min(MAX_PUSH);
    for [_, _, low, time] in &mut entries[..n] {
        *low = *low & 0xf0 | (exp & 7) << 1;
        *time = ttl;
    }
    if let Some([_, _, low, _]) = entries[..n].last_mut().filter(|_| bottom) {
        *low |= 1;
    }
    (entries, n)
}

#[cfg(test)]
mod tests {
    use packet::{heap::HeapPool, MacAddr};

    use super::*;

    const PLAIN: Framing = Framing { tci: None, ether_type: 0x0800 };
    const TAGGED: Framing = Framing { tci: Some(0xa02a), ether_type: 0x0800 };

    #[test]
    fn a_framing_is_read_and_every_truncation_refused() {
        let frame = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 0x81, 0, 0xa0, 0x2a, 8, 0];
        assert_eq!(Framing::read(&frame), Some(TAGGED));
        assert!((0..18).all(|len| Framing::read(&frame[..len]).is_none()));
        assert_eq!((PLAIN.len(), TAGGED.len()), (14, 18));
    }

    #[test]
    fn no_headroom_leaves_the_frame_alone() {
        let pool = HeapPool::new(1, 64);
        let mut frame = pool.frame(&[7; 20]).unwrap();
        assert!(frame.prepend(128));
        let before = frame.data().to_vec();
        let to = Adjacency::forward(0, 0, MacAddr::default(), MacAddr::default());
        assert!(!PLAIN.replace(&mut frame, 14, &to, &[[1; 4]]));
        assert_eq!(frame.data(), before);
        assert!(!PLAIN.replace(&mut frame, 200, &to, &[]), "nor can more be taken off than there is");
        assert!(TAGGED.replace(&mut frame, 18, &to, &[]));
    }

    #[test]
    fn entries_get_exp_ttl_and_one_bottom() {
        let stack = Stack { entries: [[0, 1, 0x00, 0], [0, 1, 0x10, 0], [9; 4], [9; 4]], len: 2 };
        let (got, n) = entries(&stack, 5, 63, true);
        assert_eq!(got[..n], [[0, 1, 0x0a, 63], [0, 1, 0x1b, 63]]);
        assert_eq!(entries(&stack, 0, 1, false).0[1], [0, 1, 0x10, 1]);
    }
}
