//! Frames from and to pcap files. Not for the packet path.

use std::{
    io::{Read, Write},
    time::Duration,
};

use pcap_file::{
    pcap::{PcapHeader, PcapPacket, PcapReader, PcapWriter},
    DataLink,
};
use units::FrameSize;

/// What is wrong with a capture.
#[derive(Debug, thiserror::Error)]
pub enum PcapError {
    /// Not a pcap file, cut short, or not readable or writable.
    #[error("pcap: {0}")]
    File(#[from] pcap_file::PcapError),
    /// Not a capture of Ethernet frames.
    #[error("pcap: link type {0:?}: must be Ethernet")]
    LinkType(DataLink),
    /// A frame that no port could have carried.
    #[error("pcap: frame {number} of {len} bytes: must be 1 to {} bytes, without FCS", FrameSize::MAX.without_fcs())]
    Length {
        /// Number of the frame, from 1.
        number: usize,
        /// Its length in bytes.
        len: usize,
    },
}

/// One captured frame.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Captured {
    /// Time since the epoch.
    pub at: Duration,
    /// Bytes without FCS.
    pub bytes: Vec<u8>,
}

/// Reads a capture frame by frame. Ends after the first error.
pub fn read<R: Read>(from: R) -> Result<impl Iterator<Item = Result<Captured, PcapError>>, PcapError> {
    let mut reader = PcapReader::new(from)?;
    match reader.header().datalink {
        DataLink::ETHERNET => {}
        other => return Err(PcapError::LinkType(other)),
    }
    let (mut number, mut broken) = (0, false);
    Ok(std::iter::from_fn(move || {
        if broken {
            return None;
        }
        number += 1;
        let frame = reader.next_packet()?.map_err(PcapError::File).and_then(|packet| {
            let len = packet.data.len();
            if (1..=FrameSize::MAX.without_fcs()).contains(&len) {
                Ok(Captured { at: packet.timestamp, bytes: packet.data.into_owned() })
            } else {
                Err(PcapError::Length { number, len })
            }
        });
        broken = frame.is_err();
        Some(frame)
    }))
}

/// Writes Ethernet frames to a capture, with microsecond time stamps.
#[derive(Debug)]
pub struct Writer<W: Write>(PcapWriter<W>);

impl<W: Write> Writer<W> {
    /// Writes the file's header. Errors when the sink does.
    pub fn new(to: W) -> Result<Self, PcapError> {
        let header = PcapHeader { datalink: DataLink::ETHERNET, ..PcapHeader::default() };
        Ok(Self(PcapWriter::with_header(to, header)?))
    }

    /// Appends a frame (without FCS) seen at this time since the epoch. Errors when the sink does.
    pub fn write(&mut self, at: Duration, frame: &[u8]) -> Result<(), PcapError> {
        let len = u32::try_from(frame.len()).unwrap_or(u32::MAX);
        self.0.write_packet(&PcapPacket::new(at, len, frame))?;
        Ok(())
    }

    /// The sink, to flush or to keep.
    pub fn into_inner(self) -> W {
        self.0.into_writer()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn capture(frames: &[Vec<u8>]) -> Vec<u8> {
        let mut writer = Writer::new(Vec::new()).unwrap();
        for (i, frame) in frames.iter().enumerate() {
            writer.write(Duration::from_micros(i as u64), frame).unwrap();
        }
        writer.into_inner()
    }

    #[test]
    fn what_is_written_is_read() {
        let frames = [vec![1; 60], vec![2; 1514], vec![3; 9212]];
        let read: Vec<_> = read(&capture(&frames)[..]).unwrap().map(Result::unwrap).collect();
        assert_eq!(read.len(), 3);
        for (i, (captured, frame)) in read.iter().zip(&frames).enumerate() {
            assert_eq!((captured.at, &captured.bytes), (Duration::from_micros(i as u64), frame));
        }
    }

    #[test]
    fn other_links_and_giants_are_refused() {
        let mut file = capture(&[vec![0; 60]]);
        file[20..24].fill(0x33);
        assert!(matches!(read(&file[..]).err(), Some(PcapError::LinkType(_))));
        let giant = capture(&[vec![0; 60], vec![0; 9213], vec![0; 60]]);
        let got: Vec<_> = read(&giant[..]).unwrap().collect();
        assert_eq!(got.len(), 2);
        assert!(matches!(got[1], Err(PcapError::Length { number: 2, len: 9213 })));
    }

    #[test]
    fn every_truncation_ends_with_an_error_or_fewer_frames() {
        let whole = capture(&[vec![7; 60], vec![8; 60]]);
        for len in 0..whole.len() {
            match read(&whole[..len]) {
                Err(_) => assert!(len < 24),
                Ok(frames) => {
                    let good = frames.filter(Result::is_ok).count();
                    assert_eq!(good, (len - 24) / 76);
                }
            }
        }
    }

    proptest! {
        #[test]
        fn hostile_bytes_are_survived(mut bytes in proptest::collection::vec(any::<u8>(), 0..300), magic: bool) {
            if magic && bytes.len() > 24 {
                bytes[..24].copy_from_slice(&capture(&[])[..24]);
            }
            if let Ok(frames) = read(&bytes[..]) {
                prop_assert!(frames.count() <= 20);
            }
        }
    }
}
