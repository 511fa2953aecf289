//! The link-layer header: read from frames that come in, written in front of packets that leave.

use packet::{
    headers::{eth, ethertype, vlan},
    Buffer, MacAddr,
};

use crate::tables::{Adjacency, Tag};

/// Bytes of an Ethernet header without a tag.
pub(crate) const ETHERNET: usize = eth::LEN;
/// Bytes of one with a tag.
pub(crate) const TAGGED: usize = eth::LEN + vlan::LEN;

/// The link-layer header of a frame, with one VLAN tag or none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Layer2 {
    /// Its length: what follows starts here.
    pub(crate) len: usize,
    /// Destination.
    pub(crate) dst: MacAddr,
    /// Source.
    pub(crate) src: MacAddr,
    /// Tag control information, if there is a tag.
    pub(crate) tci: Option<u16>,
    /// EtherType of what follows.
    pub(crate) ethertype: u16,
}

impl Layer2 {
    /// Reads it off the front. `None` when the frame is too short.
    pub(crate) fn parse(frame: &[u8]) -> Option<Self> {
        let (eth::Eth { dst, src, ether_type }, rest) = eth::Eth::parse(frame)?;
        if ether_type != ethertype::VLAN {
            return Some(Self { len: ETHERNET, dst, src, tci: None, ethertype: ether_type });
        }
        let &[t0, t1, e0, e1] = rest.first_chunk()?;
        let (tci, ethertype) = (u16::from_be_bytes([t0, t1]), u16::from_be_bytes([e0, e1]));
        Some(Self { len: TAGGED, dst, src, tci: Some(tci), ethertype })
    }
}

/// Puts other addresses into a frame that leaves with the tag it came with.
pub(crate) fn readdress(frame: &mut [u8], dst: MacAddr, src: MacAddr) {
    if let Some(macs) = frame.first_chunk_mut::<12>() {
        *macs = pair(dst, src);
    }
}

fn pair(dst: MacAddr, src: MacAddr) -> [u8; 12] {
    let ([a, b, c, d, e, f], [g, h, i, j, k, l]) = (dst.0, src.0);
    [a, b, c, d, e, f, g, h, i, j, k, l]
}

/// Replaces the first `l2` bytes of the frame (its old link-layer header, or 0 when it begins with the packet) by the
/// header that `to` asks for. `tci` is that of the tag the frame came with, for [`Tag::Keep`]; a tag that is put on has
/// priority 0, as the kernel's. `false`, and the frame not fit to be sent, when there is no headroom or the frame is
/// shorter than `l2`.
#[must_use]
pub(crate) fn encapsulate<B: Buffer>(
    frame: &mut B,
    l2: usize,
    to: &Adjacency,
    ethertype: u16,
    tci: Option<u16>,
) -> bool {
    let tci = match to.tag {
        Tag::Keep => tci,
        Tag::None => None,
        Tag::Vid(vid) => Some(vid & 0xfff),
    };
    let len = if tci.is_some() { TAGGED } else { ETHERNET };
    if frame.len() < l2 || (len > l2 && !frame.prepend(len - l2)) || (len < l2 && !frame.trim_front(l2 - len)) {
        return false;
    }
    write(frame.data_mut(), to.macs, ethertype, tci)
}

/// Writes a header to the front; `false` when there is no room.
fn write(frame: &mut [u8], macs: [u8; 12], ethertype: u16, tci: Option<u16>) -> bool {
    let Some((addresses, rest)) = frame.split_first_chunk_mut::<12>() else { return false };
    *addresses = macs;
    let [e0, e1] = ethertype.to_be_bytes();
    match tci {
        None => rest.first_chunk_mut().map(|to| *to = [e0, e1]).is_some(),
        Some(tci) => {
            let ([v0, v1], [t0, t1]) = (ethertype::VLAN.to_be_bytes(), tci.to_be_bytes());
            rest.first_chunk_mut().map(|to| *to = [v0, v1, t0, t1, e0, e1]).is_some()
        }
    }
}

/// Writes the header of a frame made here, tagged with `vlan`; returns its length, or `None` when there is no room.
pub(super) fn start(frame: &mut [u8], dst: MacAddr, src: MacAddr, ethertype: u16, vlan: Option<u16>) -> Option<usize> {
    let len = if vlan.is_some() { TAGGED } else { ETHERNET };
    write(frame, pair(dst, src), ethertype, vlan).then_some(len)
}

#[cfg(test)]
mod tests {
    use packet::heap::HeapPool;

    use super::*;

    const TO: Adjacency = Adjacency { macs: *b"ABCDEFabcdef", ..Adjacency::LOCAL };

    #[test]
    fn a_header_is_put_on_exchanged_and_as_long_as_its_tag_asks() {
        let pool = HeapPool::new(1, 64);
        let untagged = b"ABCDEFabcdef\x08\x00packet".to_vec();
        let tagged = |tci: [u8; 2]| [b"ABCDEFabcdef\x81\x00", &tci[..], b"\x08\x00packet"].concat();
        for l2 in [0, 4, ETHERNET, TAGGED, 40] {
            let before = [vec![7; l2], b"packet".to_vec()].concat();
            for (tag, tci, want) in [
                (Tag::Keep, None, untagged.clone()),
                (Tag::Keep, Some(0xa02a), tagged([0xa0, 0x2a])),
                (Tag::None, Some(0xa02a), untagged.clone()),
                (Tag::Vid(7), None, tagged([0, 7])),
                (Tag::Vid(7), Some(0xa02a), tagged([0, 7])),
            ] {
                let mut frame = pool.frame(&before).unwrap();
                assert!(encapsulate(&mut frame, l2, &Adjacency { tag, ..TO }, ethertype::IPV4, tci));
                assert_eq!(frame.data(), want, "{l2} {tag:?} {tci:?}");
                let read = Layer2::parse(frame.data()).unwrap();
                assert_eq!((read.len, &frame.data()[read.len..]), (want.len() - 6, &b"packet"[..]));
                assert_eq!((read.dst.0, read.src.0, read.ethertype), (*b"ABCDEF", *b"abcdef", ethertype::IPV4));
            }
        }
    }

    #[test]
    fn without_room_nothing_is_pretended() {
        let pool = HeapPool::new(1, 64);
        let mut frame = pool.frame(&[0; 20]).unwrap();
        assert!(!encapsulate(&mut frame, 21, &TO, 0x800, None));
        assert!(frame.prepend(120));
        assert!(!encapsulate(&mut frame, 0, &TO, 0x800, None) && frame.len() == 140);
        for len in 0..TAGGED {
            let tagged = [&[0; 12][..], &[0x81, 0, 0, 1, 8, 0]].concat();
            assert!(Layer2::parse(&tagged[..len]).is_none(), "{len}");
        }
    }
}
