//! Captures: what is read, and what is refused.

use std::{borrow::Cow, time::Duration};

use pcap_file::{
    pcapng::{
        blocks::{
            enhanced_packet::EnhancedPacketBlock,
            interface_description::{InterfaceDescriptionBlock, InterfaceDescriptionOption},
            simple_packet::SimplePacketBlock,
        },
        PcapNgBlock, PcapNgWriter,
    },
    Endianness,
};
use proptest::prelude::*;

use super::*;

/// A classic capture of frames of these lengths, the n-th holding n, at these seconds and parts of one.
fn classic(little: bool, magic: u32, frames: &[(usize, u32, u32)]) -> Vec<u8> {
    let word = |x: u32| if little { x.to_le_bytes() } else { x.to_be_bytes() };
    let half = |x: u16| if little { x.to_le_bytes() } else { x.to_be_bytes() };
    let mut file = [word(magic).as_slice(), &half(2), &half(4), &[0; 8], &word(65_535), &word(1)].concat();
    for (n, &(len, seconds, parts)) in frames.iter().enumerate() {
        file.extend([seconds, parts, len as u32, len as u32].map(word).concat());
        file.extend(vec![n as u8; len]);
    }
    file
}

/// The same as pcapng, with times in units of this resolution; none said for microseconds.
fn next_generation(endianness: Endianness, resolution: Option<u8>, frames: &[(usize, u64)]) -> Vec<u8> {
    let mut writer = PcapNgWriter::with_endianness(Vec::new(), endianness).unwrap();
    let mut interface = InterfaceDescriptionBlock::new(DataLink::ETHERNET, 0);
    interface.options.extend(resolution.map(InterfaceDescriptionOption::IfTsResol));
    writer.write_block(&interface.into_block()).unwrap();
    for (n, &(len, units)) in frames.iter().enumerate() {
        let block = EnhancedPacketBlock {
            interface_id: 0,
            timestamp: Duration::from_nanos(units),
            original_len: len as u32,
            data: Cow::Owned(vec![n as u8; len]),
            options: vec![],
        };
        writer.write_block(&block.into_block()).unwrap();
    }
    writer.into_inner()
}

const FRAMES: [(usize, u32, u32); 3] = [(60, 7, 5), (1514, 7, 6), (61, 3, 999_999)];

#[test]
fn every_kind_of_file_gives_the_same_frames_and_times() {
    let seconds = |s: u64, parts: u64, unit: u64| s * 1_000_000_000 + parts * unit;
    for little in [true, false] {
        for (magic, unit) in [(0xa1b2_c3d4, 1000), (0xa1b2_3c4d, 1)] {
            let capture = Capture::read(&classic(little, magic, &FRAMES)[..]).unwrap();
            assert_eq!(capture.times(), FRAMES.map(|(_, s, parts)| seconds(s.into(), parts.into(), unit)));
            for (n, (len, ..)) in FRAMES.into_iter().enumerate() {
                assert_eq!(capture.frame(n), vec![n as u8; len]);
            }
            assert_eq!((capture.len(), capture.longest(), capture.total_bytes()), (3, 1514, 1635 + 12));
            assert!(capture.frame(3).is_empty());
        }
    }
    let frames = [(60, 3_000_000), (61, 5_000_001)];
    for endianness in [Endianness::Little, Endianness::Big] {
        for (resolution, unit) in [(None, 1000), (Some(6), 1000), (Some(9), 1), (Some(3), 1_000_000)] {
            let capture = Capture::read(&next_generation(endianness, resolution, &frames)[..]).unwrap();
            assert_eq!(capture.times(), [3_000_000 * unit, 5_000_001 * unit]);
            assert_eq!((capture.frame(0), capture.frame(1)), (&[0; 60][..], &[1; 61][..]));
        }
    }
    // Two to the power of -20, and a resolution that no clock has.
    assert_eq!(nanoseconds(3 << 20, 0x80 | 20), 3_000_000_000);
    assert_eq!((nanoseconds(u64::MAX, 0x7f), nanoseconds(u64::MAX, 0)), (0, u64::MAX));
}

#[test]
fn a_capture_that_ends_early_is_refused_at_the_frame() {
    let whole = classic(true, 0xa1b2_c3d4, &FRAMES);
    let ends = [24, 24 + 76, 24 + 76 + 1530, whole.len()];
    for len in 0..whole.len() {
        let error = Capture::read(&whole[..len]).map(|c| c.len());
        let broken = ends.iter().filter(|&&end| end <= len).count().max(1);
        match error {
            Ok(frames) => assert_eq!(len, ends[frames]),
            Err(CaptureError::Unknown(_)) => assert!(len < 4),
            Err(CaptureError::Empty) => assert_eq!(len, 24),
            Err(CaptureError::Broken(frame)) => assert_eq!(frame, broken, "{len}"),
            Err(other) => panic!("{len}: {other}"),
        }
    }
    let whole = next_generation(Endianness::Little, None, &[(60, 1), (61, 2)]);
    let found: Vec<_> = (0..whole.len()).filter_map(|len| Capture::read(&whole[..len]).ok()).collect();
    assert!(found.iter().all(|c| c.len() == 1) && found.len() == 1, "only between the two frames");
}

#[test]
fn what_cannot_be_sent_is_said_in_one_line() {
    let one = |len| classic(true, 0xa1b2_c3d4, &[(60, 0, 0), (len, 0, 0)]);
    let edited = |at: usize, to: u8| {
        let mut file = one(60);
        file[at] = to;
        file
    };
    let mut simple = PcapNgWriter::new(Vec::new()).unwrap();
    simple.write_block(&InterfaceDescriptionBlock::new(DataLink::ETHERNET, 0).into_block()).unwrap();
    let block = SimplePacketBlock { original_len: 60, data: Cow::Owned(vec![0; 60]) };
    simple.write_block(&block.into_block()).unwrap();
    let mut wlan = PcapNgWriter::new(Vec::new()).unwrap();
    wlan.write_block(&InterfaceDescriptionBlock::new(DataLink::IEEE802_11, 0).into_block()).unwrap();
    let block = EnhancedPacketBlock {
        interface_id: 0,
        timestamp: Duration::ZERO,
        original_len: 60,
        data: Cow::Owned(vec![0; 60]),
        options: vec![],
    };
    wlan.write_block(&block.into_block()).unwrap();
    let mut shown = String::new();
    for (file, kind) in [
        (vec![], "Unknown"),
        (b"root:x:0:0".to_vec(), "Unknown"),
        (classic(true, 0xa1b2_cd34, &[]), "Unknown"),
        (classic(true, 0xa1b2_c3d4, &[]), "Empty"),
        (one(9213), "Length"),
        (one(13), "Length"),
        (edited(20, 101), "LinkType"),
        // The first frame was longer than what there is of it.
        (edited(24 + 13, 5), "Partial"),
        // The second says that it is of 3 GiB.
        (edited(24 + 76 + 11, 0xc0), "Broken"),
        (simple.into_inner(), "NoTime"),
        (wlan.into_inner(), "LinkType"),
    ] {
        let error = Capture::read(&file[..]).unwrap_err();
        assert!(format!("{error:?}").starts_with(kind), "{kind}: {error:?}");
        assert_eq!(error.to_string().lines().count(), 1);
        shown += &format!("{error}\n");
    }
    insta::assert_snapshot!("errors", shown);
}

#[test]
fn what_is_no_capture_is_said() {
    for captures in [&[0xd4, 0xc3, 0xb2, 0xa1, 2][..], &[0xa1, 0xb2, 0x3c, 0x4d], &[0x0a, 0x0d, 0x0d, 0x0a]] {
        assert_eq!(not_a_capture(captures), None);
    }
    for (head, looks) in [
        (&b""[..], "empty"),
        (b"root:x:0:0:root:/root:/bin/bash\ndaemon", "text that begins with \"root:x:0:0:root:/root:/b\""),
        (b"a\n\nb", "text that begins with \"a\""),
        (&[0x1f, 0x8b, 8, 0], "packed by gzip: unpack it first"),
        (&[0x7f, b'E', b'L', b'F', 2], "something that begins with the bytes 7f 45 4c 46"),
        (&[0xa1, 0xb2], "something that begins with the bytes a1 b2"),
    ] {
        assert_eq!(not_a_capture(head).unwrap(), looks);
    }
}

proptest! {
    #[test]
    fn hostile_bytes_are_survived(bytes in proptest::collection::vec(any::<u8>(), 0..300), kind in 0..3, at: usize) {
        let mut file = match kind {
            0 => classic(true, 0xa1b2_3c4d, &FRAMES),
            1 => next_generation(Endianness::Big, Some(9), &[(60, 1), (61, 2), (62, 3)]),
            _ => next_generation(Endianness::Little, None, &[(60, 1)]),
        };
        // Its own bytes as far as there, then others.
        file.truncate(at % file.len());
        file.extend(bytes);
        if let Ok(capture) = Capture::read(&file[..]) {
            prop_assert!((1..=20).contains(&capture.len()) && capture.longest() >= MIN_FRAME);
        }
    }
}
