//! Frames of other links as frames of Ethernet.

use std::io::{Cursor, Read};

use pcap_file::{
    pcapng::{Block, PcapNgReader},
    DataLink,
};

use crate::headers::ethertype;

/// Bytes of the header of a classic capture.
const HEADER: usize = 24;

/// An Ethernet header.
pub type EthernetHeader = [u8; 14];

/// A link whose frames can be told as Ethernet frames, by the name and number that captures give it
/// (<https://www.tcpdump.org/linktypes.html>).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Link {
    /// EN10MB, 1.
    Ethernet,
    /// RAW, 101 (also 12 and 14), IPV4, 228, and IPV6, 229: IP packets alone.
    Ip,
    /// NULL, 0, and LOOP, 108: a protocol family of the capturing machine, in four bytes.
    Loopback,
    /// LINUX_SLL, 113: the kernel's own header of 16 bytes, of `any` and of links without one.
    Cooked,
    /// LINUX_SLL2, 276: the same in 20 bytes.
    Cooked2,
}

impl Link {
    /// The link of this number; `None` of one whose frames hold no Ethernet header and no IP packet at a known place.
    pub fn of(link: DataLink) -> Option<Self> {
        match u32::from(link) {
            1 => Some(Self::Ethernet),
            12 | 14 | 101 | 228 | 229 => Some(Self::Ip),
            0 | 108 => Some(Self::Loopback),
            113 => Some(Self::Cooked),
            276 => Some(Self::Cooked2),
            _ => None,
        }
    }

    /// How many bytes of its own stand in front of a frame, and the Ethernet header to put in their place. None of Ethernet,
    /// and of a frame that ends in its own header. An EtherType of zero stands for what Ethernet has no number for.
    pub fn ethernet(self, frame: &[u8]) -> Option<(usize, EthernetHeader)> {
        match self {
            Self::Ethernet => None,
            Self::Ip => {
                let kind = match frame.first()? >> 4 {
                    4 => ethertype::IPV4,
                    6 => ethertype::IPV6,
                    _ => 0,
                };
                Some((0, header([0; 6], kind)))
            }
            Self::Loopback => {
                let family = *frame.first_chunk()?;
                // The byte order is that of the machine of the capture; LOOP has the network's. Families are small numbers.
                let kind = match u32::from_le_bytes(family).min(u32::from_be_bytes(family)) {
                    2 => ethertype::IPV4,
                    // Linux, Windows, the BSDs, Darwin.
                    10 | 23 | 24 | 28 | 30 => ethertype::IPV6,
                    _ => 0,
                };
                Some((4, header([0; 6], kind)))
            }
            // Packet type, kind of device, length of the address, address, protocol.
            Self::Cooked => {
                let &[_, _, _, _, _, _, a, b, c, d, e, f, _, _, p0, p1] = frame.first_chunk::<16>()?;
                Some((16, header([a, b, c, d, e, f], u16::from_be_bytes([p0, p1]))))
            }
            // Protocol, two of nothing, interface, kind of device, packet type, length of the address, address.
            Self::Cooked2 => {
                let &[p0, p1, _, _, _, _, _, _, _, _, _, _, a, b, c, d, e, f, _, _] = frame.first_chunk::<20>()?;
                Some((20, header([a, b, c, d, e, f], u16::from_be_bytes([p0, p1]))))
            }
        }
    }
}

/// What is wrong with a capture that libpcap is to replay as frames of Ethernet: it has another link type. Of pcapng, the first
/// interface counts, as libpcap refuses others beside it. `None` also for what cannot be read: that is for libpcap to refuse.
pub fn not_ethernet(mut from: impl Read) -> Option<String> {
    let mut head = Vec::new();
    from.by_ref().take(HEADER as u64).read_to_end(&mut head).ok()?;
    let link = match head.first_chunk::<HEADER>()? {
        [0x0a, 0x0d, 0x0d, 0x0a, ..] => first_interface(Cursor::new(head).chain(from))?,
        &[magic, .., a, b, c, d] => {
            // All classic formats begin with this half of a word, or its like.
            let is_big = matches!(magic, 0xa1 | 0x1c);
            let number = if is_big { u32::from_be_bytes([a, b, c, d]) } else { u32::from_le_bytes([a, b, c, d]) };
            // The upper bits say how long the FCS is, if frames have one.
            DataLink::from(number & 0xffff)
        }
    };
    let mend = match Link::of(link) {
        Some(Link::Ethernet) => return None,
        Some(_) => "; flowlog --once reads this link type",
        None => "",
    };
    Some(format!("link type {link:?} ({}): must be Ethernet to be replayed{mend}", u32::from(link)))
}

/// The link type of the first interface of pcapng.
fn first_interface(from: impl Read) -> Option<DataLink> {
    let mut reader = PcapNgReader::new(from).ok()?;
    loop {
        if let Block::InterfaceDescription(interface) = reader.next_block()?.ok()? {
            return Some(interface.linktype);
        }
    }
}

/// The destination is not known. Protocols below 1536 are none of Ethernet, but lengths.
fn header(source: [u8; 6], kind: u16) -> EthernetHeader {
    let [k0, k1] = if kind < 1536 { [0, 0] } else { kind.to_be_bytes() };
    let [a, b, c, d, e, f] = source;
    [0, 0, 0, 0, 0, 0, a, b, c, d, e, f, k0, k1]
}

#[cfg(test)]
mod tests {
    use pcap_file::pcapng::{blocks::interface_description::InterfaceDescriptionBlock, PcapNgBlock as _, PcapNgWriter};

    use super::*;

    fn kind(link: u32, frame: &[u8]) -> Option<(usize, u16)> {
        let (skip, header) = Link::of(DataLink::from(link))?.ethernet(frame)?;
        Some((skip, u16::from_be_bytes([header[12], header[13]])))
    }

    #[test]
    fn each_link_tells_its_protocol() {
        for link in [101, 12, 14, 228, 229] {
            assert_eq!(
                [0x45, 0x60, 0x10].map(|first| kind(link, &[first])),
                [(0, 0x800), (0, 0x86dd), (0, 0)].map(Some)
            );
        }
        for (family, wanted) in
            [(2u32, 0x800), (10, 0x86dd), (23, 0x86dd), (24, 0x86dd), (28, 0x86dd), (30, 0x86dd), (7, 0)]
        {
            assert_eq!(kind(0, &family.to_le_bytes()), Some((4, wanted)), "{family}");
            assert_eq!(kind(108, &family.to_be_bytes()), Some((4, wanted)), "{family}");
        }
        let cooked = [0, 0, 0, 1, 0, 6, 2, 3, 4, 5, 6, 7, 0, 0, 8, 0];
        assert_eq!(Link::Cooked.ethernet(&cooked), Some((16, [0, 0, 0, 0, 0, 0, 2, 3, 4, 5, 6, 7, 8, 0])));
        let cooked = [0x86, 0xdd, 0, 0, 0, 0, 0, 2, 0, 1, 4, 6, 2, 3, 4, 5, 6, 7, 0, 0];
        assert_eq!(Link::Cooked2.ethernet(&cooked), Some((20, [0, 0, 0, 0, 0, 0, 2, 3, 4, 5, 6, 7, 0x86, 0xdd])));
        // 802.2 inside, by the kernel's own number.
        assert_eq!(kind(113, &[0, 0, 0, 1, 0, 6, 2, 3, 4, 5, 6, 7, 0, 0, 0, 4]), Some((16, 0)));
    }

    #[test]
    fn a_replay_of_another_link_is_refused_by_name() {
        let classic = |magic: u32, link: u32, is_big: bool| {
            let word = |word: u32| if is_big { word.to_be_bytes() } else { word.to_le_bytes() };
            [magic, 0, 0, 0, 65_535, link].map(word).concat()
        };
        let next = |links: &[u32]| {
            let mut writer = PcapNgWriter::new(Vec::new()).unwrap();
            for &link in links {
                let block = InterfaceDescriptionBlock::new(DataLink::from(link), 0);
                writer.write_block(&block.into_block()).unwrap();
            }
            writer.into_inner()
        };
        for is_big in [true, false] {
            for magic in [0xa1b2_c3d4, 0xa1b2_3c4d, 0xa1b2_cd34] {
                let of = |link| not_ethernet(&classic(magic, link, is_big)[..]);
                // The length of the FCS is in the upper bits.
                assert_eq!((of(1), of(0x1400_0001)), (None, None), "{magic:x} {is_big}");
                assert!(of(101).unwrap().contains("(101)"), "{magic:x} {is_big}");
            }
        }
        assert_eq!((not_ethernet(&next(&[1])[..]), not_ethernet(&next(&[])[..])), (None, None));
        assert_eq!((not_ethernet(&b"text"[..]), not_ethernet(&classic(0xa1b2_c3d4, 101, true)[..23])), (None, None));
        let told = [113, 105].map(|link| not_ethernet(&next(&[link])[..]).unwrap());
        insta::assert_snapshot!(told.join("\n"), @r"
        link type LINUX_SLL (113): must be Ethernet to be replayed; flowlog --once reads this link type
        link type IEEE802_11 (105): must be Ethernet to be replayed
        ");
    }

    #[test]
    fn others_have_none_and_short_frames_no_header() {
        for link in [9, 105, 127, 189, 4711] {
            assert_eq!(Link::of(DataLink::from(link)), None, "{link}");
        }
        assert_eq!(Link::Ethernet.ethernet(&[0; 60]), None);
        for (link, len) in [(Link::Ip, 0), (Link::Loopback, 3), (Link::Cooked, 15), (Link::Cooked2, 19)] {
            assert_eq!(link.ethernet(&vec![0x45; len]), None, "{link:?}");
        }
    }
}
