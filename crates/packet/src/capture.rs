//! A whole capture in memory, to be sent again. Reading it is not for the packet path; [`Capture::frame`] is.

mod frames;
mod link;
mod times;

use std::io::{self, Cursor, ErrorKind, Read};

use pcap_file::{
    pcap::PcapReader,
    pcapng::{Block, PcapNgReader},
    DataLink, PcapError, TsResolution,
};
use units::{FrameSize, FCS_BYTES};

pub use frames::{FrameFacts, Frames};
pub use link::{not_ethernet, EthernetHeader, Link};
use times::{nanoseconds, resolution};

/// The most frames of a capture.
pub const MAX_FRAMES: usize = 10_000_000;
/// The most bytes of all its frames: 1 GiB.
pub const MAX_BYTES: usize = 1 << 30;
/// The shortest frame: an Ethernet header.
pub const MIN_FRAME: usize = 14;
/// Bytes that tell what a file is.
pub const HEAD: usize = 64;

/// What is wrong with a capture, and what to do about it: one line, to stand behind its name.
#[derive(Debug, thiserror::Error)]
pub enum CaptureError {
    /// Neither pcap nor pcapng.
    #[error("must be a capture, pcap or pcapng, and is {0}")]
    Unknown(String),
    /// Cannot be read.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// Ends or breaks in a frame.
    #[error("is cut short or damaged at frame {0}: save what is whole first (tcpdump -r FILE -w WHOLE)")]
    Broken(usize),
    /// Not of Ethernet frames.
    #[error("link type {0:?}: must be a capture of Ethernet frames")]
    LinkType(DataLink),
    /// Of links whose frames are not read: their name and number.
    #[error("link type {0:?} ({1}): must be Ethernet, Linux cooked (SLL, SLL2), raw IP, or BSD loopback (NULL, LOOP)")]
    NoEthernet(DataLink, u32),
    /// No frame of Ethernet.
    #[error("frame {frame} has {len} bytes: must be {MIN_FRAME} to {} without FCS", FrameSize::MAX.without_fcs())]
    Length {
        /// Number of the frame, from 1.
        frame: usize,
        /// Its length in bytes.
        len: usize,
    },
    /// Only the beginning of a frame was captured.
    #[error("frame {frame} was captured in part, {kept} of {len} bytes: capture whole frames (tcpdump -s 0)")]
    Partial {
        /// Number of the frame, from 1.
        frame: usize,
        /// Bytes in the file.
        kept: usize,
        /// Bytes on the wire.
        len: usize,
    },
    /// A block of pcapng that does not say when.
    #[error("frame {0} has no time or no interface: must be enhanced packet blocks of pcapng, or pcap")]
    NoTime(usize),
    /// Nothing to send.
    #[error("holds no frame: must hold at least one")]
    Empty,
    /// More than fits.
    #[error("is too large: must hold at most {MAX_FRAMES} frames of {MAX_BYTES} bytes in all: cut it (editcap -c)")]
    TooLarge,
}

/// Ethernet frames and when they were captured.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Capture {
    bytes: Vec<u8>,
    /// Where each frame ends in `bytes`, which is where the next begins.
    ends: Vec<usize>,
    /// ns since the Unix epoch, in the order of the file: they may run backwards.
    times: Vec<u64>,
    longest: usize,
}

impl Capture {
    /// Reads a pcap (of micro- or nanoseconds, in either byte order) or pcapng to its end.
    pub fn read(mut from: impl Read) -> Result<Self, CaptureError> {
        let mut capture = Self { bytes: Vec::new(), ends: Vec::new(), times: Vec::new(), longest: 0 };
        let mut head = Vec::new();
        from.by_ref().take(HEAD as u64).read_to_end(&mut head)?;
        if let Some(looks) = not_a_capture(&head) {
            return Err(CaptureError::Unknown(looks));
        }
        let known = |magic: u32| matches!(magic, 0xa1b2_c3d4 | 0xa1b2_3c4d);
        match head.first_chunk().map(|&magic| u32::from_be_bytes(magic)) {
            Some(0x0a0d_0d0a) => capture.next_generation(Cursor::new(head).chain(from))?,
            Some(n) if known(n) || known(n.swap_bytes()) => capture.classic(Cursor::new(head).chain(from))?,
            _ => return Err(CaptureError::Unknown("of another dialect: convert it first (editcap IN OUT)".into())),
        }
        match capture.is_empty() {
            true => Err(CaptureError::Empty),
            false => Ok(capture),
        }
    }

    fn classic(&mut self, from: impl Read) -> Result<(), CaptureError> {
        let mut reader = PcapReader::new(from).map_err(|e| self.broken(e))?;
        let header = reader.header();
        if header.datalink != DataLink::ETHERNET {
            return Err(CaptureError::LinkType(header.datalink));
        }
        let unit_ns = if header.ts_resolution == TsResolution::NanoSecond { 1 } else { 1000 };
        // What the header says of lengths and times is not always kept to; the frames are what counts.
        while let Some(packet) = reader.next_raw_packet() {
            let packet = packet.map_err(|e| self.broken(e))?;
            let ns = u64::from(packet.ts_sec) * 1_000_000_000 + u64::from(packet.ts_frac) * unit_ns;
            self.push(ns, &packet.data, packet.orig_len)?;
        }
        Ok(())
    }

    fn next_generation(&mut self, from: impl Read) -> Result<(), CaptureError> {
        let mut reader = PcapNgReader::new(from).map_err(|e| self.broken(e))?;
        let mut interfaces: Vec<(DataLink, u8)> = Vec::new();
        while let Some(block) = reader.next_block() {
            match block.map_err(|e| self.broken(e))? {
                Block::SectionHeader(_) => interfaces.clear(),
                Block::InterfaceDescription(interface) => interfaces.push((interface.linktype, resolution(&interface))),
                Block::EnhancedPacket(packet) => {
                    let frame = self.len() + 1;
                    let interface = interfaces.get(packet.interface_id as usize);
                    let &(link, resolution) = interface.ok_or(CaptureError::NoTime(frame))?;
                    if link != DataLink::ETHERNET {
                        return Err(CaptureError::LinkType(link));
                    }
                    // The crate takes every unit for a nanosecond.
                    let units = u64::try_from(packet.timestamp.as_nanos()).unwrap_or(u64::MAX);
                    self.push(nanoseconds(units, resolution), &packet.data, packet.original_len)?;
                }
                Block::SimplePacket(_) | Block::Packet(_) => return Err(CaptureError::NoTime(self.len() + 1)),
                _ => {}
            }
        }
        Ok(())
    }

    /// What an error means behind the frames read so far.
    fn broken(&self, error: PcapError) -> CaptureError {
        match error {
            PcapError::IoError(e) if e.kind() != ErrorKind::UnexpectedEof => CaptureError::Io(e),
            _ => CaptureError::Broken(self.len() + 1),
        }
    }

    fn push(&mut self, ns: u64, data: &[u8], on_wire: u32) -> Result<(), CaptureError> {
        let (frame, len) = (self.len() + 1, on_wire as usize);
        if data.len() < len {
            return Err(CaptureError::Partial { frame, kept: data.len(), len });
        }
        if !(MIN_FRAME..=FrameSize::MAX.without_fcs()).contains(&data.len()) {
            return Err(CaptureError::Length { frame, len: data.len() });
        }
        if frame > MAX_FRAMES || self.bytes.len() + data.len() > MAX_BYTES {
            return Err(CaptureError::TooLarge);
        }
        self.bytes.extend_from_slice(data);
        self.ends.push(self.bytes.len());
        self.times.push(ns);
        self.longest = self.longest.max(data.len());
        Ok(())
    }

    /// Frames.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether it has no frame: never, once read.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// A frame by its number from 0, without FCS; empty when there is no such.
    #[inline]
    pub fn frame(&self, number: usize) -> &[u8] {
        let start = number.checked_sub(1).map_or(0, |before| self.ends.get(before).copied().unwrap_or(0));
        self.ends.get(number).and_then(|&end| self.bytes.get(start..end)).unwrap_or_default()
    }

    /// When each frame was captured, ns since the Unix epoch.
    pub fn times(&self) -> &[u64] {
        &self.times
    }

    /// Bytes of the longest frame, without FCS.
    pub fn longest(&self) -> usize {
        self.longest
    }

    /// Bytes of all frames, each with its FCS.
    pub fn total_bytes(&self) -> u64 {
        self.bytes.len() as u64 + u64::from(FCS_BYTES) * self.len() as u64
    }
}

/// What a file that begins so looks like, if libpcap does not read such files: give it the first [`HEAD`] bytes.
pub fn not_a_capture(head: &[u8]) -> Option<String> {
    // pcap with microseconds and nanoseconds, its dialects, pcapng.
    const MAGIC: [u32; 7] = [0xa1b2_c3d4, 0xa1b2_3c4d, 0xa1b2_cd34, 0xa1b2_34cd, 0x1c00_01ac, 0x1c00_01ab, 0x0a0d_0d0a];
    let magic = head.first_chunk().map(|&word| u32::from_le_bytes(word));
    if magic.is_some_and(|word| MAGIC.contains(&word) || MAGIC.contains(&word.swap_bytes())) {
        return None;
    }
    let shown = |byte: &u8| byte.is_ascii_graphic() || matches!(byte, b' ' | b'\t' | b'\r' | b'\n');
    Some(match head {
        [] => "empty".into(),
        [0x1f, 0x8b, ..] => "packed by gzip: unpack it first".into(),
        [0x28, 0xb5, 0x2f, 0xfd, ..] => "packed by zstd: unpack it first".into(),
        [0xfd, b'7', b'z', b'X', b'Z', ..] => "packed by xz: unpack it first".into(),
        text if text.iter().all(shown) => {
            let line = text.split(|&byte| byte == b'\n').next().unwrap_or_default();
            let line = String::from_utf8_lossy(line.get(..24).unwrap_or(line)).into_owned();
            format!("text that begins with {line:?}")
        }
        other => {
            let bytes: Vec<String> = other.iter().take(4).map(|byte| format!("{byte:02x}")).collect();
            format!("something that begins with the bytes {}", bytes.join(" "))
        }
    })
}

#[cfg(test)]
mod tests;
