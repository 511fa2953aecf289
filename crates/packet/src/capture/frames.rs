//! A capture of any kind of link, frame by frame, as Ethernet frames.

use std::io::{Cursor, Read};

use pcap_file::{
    pcap::PcapReader,
    pcapng::{
        blocks::interface_description::{InterfaceDescriptionBlock, InterfaceDescriptionOption},
        Block, PcapNgReader,
    },
    DataLink, Endianness, PcapError, TsResolution,
};

use super::{
    link::Link,
    not_a_capture,
    times::{nanoseconds, resolution},
    CaptureError, HEAD,
};

/// When a frame was captured, and how long it was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FrameFacts {
    /// ns since the Unix epoch.
    pub ns: u64,
    /// Bytes on the wire, as an Ethernet frame without FCS; the capture may hold fewer.
    pub on_wire: usize,
}

/// An interface of pcapng.
#[derive(Debug, Clone, Copy)]
struct Interface {
    link: Link,
    /// See [`resolution`].
    resolution: u8,
    /// Seconds to add to its times.
    offset_s: i64,
}

enum Format<R: Read> {
    Classic { reader: PcapReader<R>, link: Link, unit_ns: u64 },
    NextGeneration { reader: PcapNgReader<R>, interfaces: Vec<Interface> },
}

/// A capture under way: classic of any kind, or pcapng with any number of interfaces and sections.
pub struct Frames<R: Read> {
    format: Format<std::io::Chain<Cursor<Vec<u8>>, R>>,
    number: usize,
    /// The first frame of pcapng: it is read with the interfaces before it.
    first: Option<(FrameFacts, Vec<u8>)>,
}

impl<R: Read> std::fmt::Debug for Frames<R> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Frames(at {})", self.number)
    }
}

impl<R: Read> Frames<R> {
    /// Begins to read. Errors when it is not a capture, or one of links whose frames cannot be read; of pcapng also when its
    /// first frame is broken.
    pub fn open(mut from: R) -> Result<Self, CaptureError> {
        let mut head = Vec::new();
        from.by_ref().take(HEAD as u64).read_to_end(&mut head)?;
        if let Some(looks) = not_a_capture(&head) {
            return Err(CaptureError::Unknown(looks));
        }
        let is_next = head.starts_with(&[0x0a, 0x0d, 0x0d, 0x0a]);
        let from = Cursor::new(head).chain(from);
        let broken = |_| CaptureError::Broken(1);
        if is_next {
            let reader = PcapNgReader::new(from).map_err(broken)?;
            let format = Format::NextGeneration { reader, interfaces: Vec::new() };
            let mut frames = Self { format, number: 0, first: None };
            let mut bytes = Vec::new();
            frames.first = frames.next(&mut bytes).transpose()?.map(|facts| (facts, bytes));
            return Ok(frames);
        }
        let reader = PcapReader::new(from).map_err(|_| {
            CaptureError::Unknown("of another dialect, or ends in its header: convert it first (editcap IN OUT)".into())
        })?;
        let header = reader.header();
        // The upper bits say how long the FCS is, if frames have one.
        let number = u32::from(header.datalink) & 0xffff;
        let link = known(DataLink::from(number))?;
        let unit_ns = if header.ts_resolution == TsResolution::NanoSecond { 1 } else { 1000 };
        Ok(Self { format: Format::Classic { reader, link, unit_ns }, number: 0, first: None })
    }

    /// The next frame, its bytes in place of what `into` holds; `None` at the end. Nothing comes behind an error.
    pub fn next(&mut self, into: &mut Vec<u8>) -> Option<Result<FrameFacts, CaptureError>> {
        if let Some((facts, bytes)) = self.first.take() {
            *into = bytes;
            return Some(Ok(facts));
        }
        self.number += 1;
        let number = self.number;
        let broken = |error: PcapError| match error {
            PcapError::IoError(e) if e.kind() != std::io::ErrorKind::UnexpectedEof => CaptureError::Io(e),
            _ => CaptureError::Broken(number),
        };
        match &mut self.format {
            Format::Classic { reader, link, unit_ns } => Some(match reader.next_raw_packet()? {
                Err(e) => Err(broken(e)),
                Ok(packet) => {
                    let ns = u64::from(packet.ts_sec) * 1_000_000_000 + u64::from(packet.ts_frac) * *unit_ns;
                    Ok(FrameFacts { ns, on_wire: as_ethernet(*link, &packet.data, packet.orig_len, into) })
                }
            }),
            Format::NextGeneration { reader, interfaces } => {
                next_generation(reader, interfaces, number, broken, into).transpose()
            }
        }
    }

    /// Number of the frame read last, from 1.
    pub fn number(&self) -> usize {
        self.number
    }
}

fn next_generation<R: Read>(
    reader: &mut PcapNgReader<R>,
    interfaces: &mut Vec<Interface>,
    number: usize,
    broken: impl Fn(PcapError) -> CaptureError,
    into: &mut Vec<u8>,
) -> Result<Option<FrameFacts>, CaptureError> {
    loop {
        let is_little = reader.section().endianness == Endianness::Little;
        let Some(block) = reader.next_block() else { return Ok(None) };
        let (interface, units, data, len) = match block.map_err(&broken)? {
            Block::SectionHeader(_) => {
                interfaces.clear();
                continue;
            }
            Block::InterfaceDescription(interface) => {
                interfaces.push(Interface::of(&interface)?);
                continue;
            }
            // The crate takes every unit for a nanosecond.
            Block::EnhancedPacket(packet) => {
                let units = u64::try_from(packet.timestamp.as_nanos()).unwrap_or(u64::MAX);
                (packet.interface_id as usize, units, packet.data, packet.original_len)
            }
            Block::Packet(packet) => {
                // The high word is first in every byte order; the crate reads both as one number.
                let units = if is_little { packet.timestamp.rotate_left(32) } else { packet.timestamp };
                (usize::from(packet.interface_id), units, packet.data, packet.original_len)
            }
            Block::SimplePacket(_) => return Err(CaptureError::NoTime(number)),
            _ => continue,
        };
        let interface = interfaces.get(interface).ok_or(CaptureError::NoTime(number))?;
        let on_wire = as_ethernet(interface.link, &data, len, into);
        return Ok(Some(FrameFacts { ns: interface.ns(units), on_wire }));
    }
}

impl Interface {
    fn of(block: &InterfaceDescriptionBlock<'_>) -> Result<Self, CaptureError> {
        let offset = block.options.iter().find_map(|option| match option {
            InterfaceDescriptionOption::IfTsOffset(seconds) => Some(*seconds as i64),
            _ => None,
        });
        Ok(Self { link: known(block.linktype)?, resolution: resolution(block), offset_s: offset.unwrap_or(0) })
    }

    fn ns(self, units: u64) -> u64 {
        let offset_ns = i128::from(self.offset_s) * 1_000_000_000;
        let ns = i128::from(nanoseconds(units, self.resolution)) + offset_ns;
        u64::try_from(ns.max(0)).unwrap_or(u64::MAX)
    }
}

fn known(link: DataLink) -> Result<Link, CaptureError> {
    Link::of(link).ok_or(CaptureError::NoEthernet(link, u32::from(link)))
}

/// Puts a frame into `into` as one of Ethernet, and returns its length on the wire as such. A frame that ends in the header of
/// its link is empty.
fn as_ethernet(link: Link, data: &[u8], on_wire: u32, into: &mut Vec<u8>) -> usize {
    into.clear();
    let on_wire = (on_wire as usize).max(data.len());
    if link == Link::Ethernet {
        into.extend_from_slice(data);
        return on_wire;
    }
    let Some((skip, header)) = link.ethernet(data) else { return 0 };
    into.extend_from_slice(&header);
    into.extend_from_slice(data.get(skip..).unwrap_or_default());
    on_wire - skip + header.len()
}

#[cfg(test)]
mod tests {
    use std::{borrow::Cow, time::Duration};

    use pcap_file::pcapng::{blocks::enhanced_packet::EnhancedPacketBlock, PcapNgBlock, PcapNgWriter};
    use proptest::prelude::*;

    use super::*;

    fn all(file: &[u8]) -> Result<Vec<(FrameFacts, Vec<u8>)>, CaptureError> {
        let (mut frames, mut bytes, mut out) = (Frames::open(file)?, Vec::new(), Vec::new());
        while let Some(facts) = frames.next(&mut bytes) {
            out.push((facts?, bytes.clone()));
        }
        Ok(out)
    }

    fn classic(link: u32, frames: &[(&[u8], u32)]) -> Vec<u8> {
        let mut file = [0xa1b2_c3d4u32, 0x0002_0004, 0, 0, 65_535, link].map(u32::to_be_bytes).concat();
        for (data, on_wire) in frames {
            file.extend([7, 5, data.len() as u32, *on_wire].map(u32::to_be_bytes).concat());
            file.extend(*data);
        }
        file
    }

    #[test]
    fn frames_of_other_links_are_frames_of_ethernet() {
        let read = all(&classic(101, &[(&[0x45, 1, 2], 1500), (&[], 0)])).unwrap();
        let header = [&[0; 12][..], &[8, 0]].concat();
        let facts = |on_wire| FrameFacts { ns: 7_000_005_000, on_wire };
        assert_eq!(read, [(facts(1514), [&header[..], &[0x45, 1, 2]].concat()), (facts(0), vec![])]);
        let read = all(&classic(113, &[(&[0, 0, 0, 1, 0, 6, 2, 3, 4, 5, 6, 7, 0, 0, 8, 0, 0x45], 100)])).unwrap();
        assert_eq!(read, [(facts(98), vec![0, 0, 0, 0, 0, 0, 2, 3, 4, 5, 6, 7, 8, 0, 0x45])]);
        // The length of the FCS is in the upper bits.
        assert_eq!(all(&classic(0x1400_0001, &[(&[9; 60], 60)])).unwrap(), [(facts(60), vec![9; 60])]);
    }

    #[test]
    fn interfaces_of_pcapng_have_their_own_links_and_times() {
        let mut writer = PcapNgWriter::new(Vec::new()).unwrap();
        let interface = |link, options: &[InterfaceDescriptionOption<'static>]| {
            let mut block = InterfaceDescriptionBlock::new(DataLink::from(link), 0);
            block.options.extend(options.iter().cloned());
            block.into_block()
        };
        let options = [InterfaceDescriptionOption::IfTsResol(0x8a), InterfaceDescriptionOption::IfTsOffset(1000)];
        let before = [InterfaceDescriptionOption::IfTsOffset(-1i64 as u64)];
        for block in [interface(1, &[]), interface(101, &options), interface(228, &before)] {
            writer.write_block(&block).unwrap();
        }
        for (interface_id, units) in [(0, 5_000_000), (1, 3 * 1024 + 512), (2, 3_000_000)] {
            let data = Cow::Owned(vec![0x45; 20]);
            let timestamp = Duration::from_nanos(units);
            let block = EnhancedPacketBlock { interface_id, timestamp, original_len: 40, data, options: vec![] };
            writer.write_block(&block.into_block()).unwrap();
        }
        let read = all(&writer.into_inner()).unwrap();
        let facts: Vec<(u64, usize, usize)> = read.iter().map(|(f, bytes)| (f.ns, f.on_wire, bytes.len())).collect();
        assert_eq!(facts, [(5_000_000_000, 40, 20), (1_003_500_000_000, 54, 34), (2_000_000_000, 54, 34)]);
    }

    #[test]
    fn old_packet_blocks_have_the_high_word_of_their_time_first() {
        // 2023, in microseconds.
        let units: u64 = 1_700_000_000_000_005;
        let words = [(units >> 32) as u32, units as u32, 60, 61];
        for is_little in [true, false] {
            let word = |word: u32| if is_little { word.to_le_bytes() } else { word.to_be_bytes() };
            let half = |half: u16| if is_little { half.to_le_bytes() } else { half.to_be_bytes() };
            let block = |kind: u32, body: &[u8]| {
                let len = word(body.len() as u32 + 12);
                [&word(kind), &len, body, &len].concat()
            };
            let section = [&word(0x1a2b_3c4d)[..], &half(1), &half(0), &[0xff; 8]].concat();
            let interface = [&half(1)[..], &half(0), &word(0)].concat();
            let packet = [&half(0)[..], &half(0), &words.map(word).concat(), &[9; 60]].concat();
            let file = [block(0x0a0d_0d0a, &section), block(1, &interface), block(2, &packet)].concat();
            let wanted = FrameFacts { ns: units * 1000, on_wire: 61 };
            assert_eq!(all(&file).unwrap(), [(wanted, vec![9; 60])], "little: {is_little}");
        }
    }

    #[test]
    fn other_links_and_what_is_broken_are_refused() {
        assert!(matches!(all(&classic(127, &[])), Err(CaptureError::NoEthernet(_, 127))));
        assert!(matches!(all(b"text"), Err(CaptureError::Unknown(_))));
        let whole = classic(1, &[(&[9; 60], 60), (&[9; 60], 60)]);
        assert!(matches!(all(&whole[..whole.len() - 1]), Err(CaptureError::Broken(2))));
        assert_eq!(all(&classic(1, &[])).unwrap(), []);
        let mut writer = PcapNgWriter::new(Vec::new()).unwrap();
        writer.write_block(&InterfaceDescriptionBlock::new(DataLink::IEEE802_11, 0).into_block()).unwrap();
        assert!(matches!(all(&writer.into_inner()), Err(CaptureError::NoEthernet(_, 105))));
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(mut bytes in proptest::collection::vec(any::<u8>(), 0..200), kind in 0..3) {
            let head = match kind {
                0 => classic(113, &[]),
                1 => PcapNgWriter::new(Vec::new()).unwrap().into_inner(),
                _ => Vec::new(),
            };
            bytes.splice(0..0, head);
            let _ = all(&bytes);
        }
    }
}
