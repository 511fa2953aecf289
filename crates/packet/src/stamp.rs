//! The 18 bytes at the very end of every test frame: who sent it, which one it is, and when it left.
//!
//! At the end, so that headers a DUT adds or removes in front do not move it; 18 bytes, so that it fits a 64-byte
//! IPv4/UDP frame (14 + 20 + 8 + 18 + FCS).
//!
//! | offset | bytes | what |
//! |---|---|---|
//! | 0 | 3 | magic `LR` 0xB7 |
//! | 3 | 1 | epoch: the low byte of the trial's number, so that a late frame of another trial is foreign |
//! | 4 | 2 | stream, little endian |
//! | 6 | 4 | sequence within the stream, little endian, wrapping |
//! | 10 | 8 | departure, in ticks of the tester's clock, little endian |

/// Length of a stamp in bytes.
pub const LEN: usize = 18;

/// The first bytes of every stamp.
pub const MARK: [u8; 3] = [b'L', b'R', 0xB7];

const MAGIC: u32 = u32::from_le_bytes([MARK[0], MARK[1], MARK[2], 0]);

/// A stamp as read from, or about to be written to, a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stamp {
    /// The trial's number modulo 256.
    pub epoch: u8,
    /// The stream within the trial.
    pub stream: u16,
    /// Count of frames of this stream sent before, modulo 2^32.
    pub sequence: u32,
    /// Departure in ticks.
    pub departure: u64,
}

impl Stamp {
    /// The bytes as they stand in the frame.
    #[inline]
    pub fn to_bytes(self) -> [u8; LEN] {
        Stamper::new(self.epoch, self.stream).to_bytes(self.sequence, self.departure)
    }

    /// Writes the stamp over the last 18 bytes. `false`, and nothing written, when the frame is shorter.
    #[inline]
    #[must_use]
    pub fn write(self, frame: &mut [u8]) -> bool {
        match frame.last_chunk_mut::<LEN>() {
            Some(tail) => {
                *tail = self.to_bytes();
                true
            }
            None => false,
        }
    }

    /// Reads the last 18 bytes. `None` when there is no stamp: the frame is foreign.
    #[inline]
    pub fn read(frame: &[u8]) -> Option<Self> {
        let tail = frame.last_chunk::<LEN>()?;
        let [h0, h1, h2, h3, h4, h5, h6, h7, s2, s3, departure @ ..] = *tail;
        let head = u64::from_le_bytes([h0, h1, h2, h3, h4, h5, h6, h7]);
        if head as u32 & 0x00ff_ffff != MAGIC {
            return None;
        }
        Some(Self {
            epoch: (head >> 24) as u8,
            stream: (head >> 32) as u16,
            sequence: (head >> 48) as u32 | u32::from(u16::from_le_bytes([s2, s3])) << 16,
            departure: u64::from_le_bytes(departure),
        })
    }
}

/// Writes the stamps of one stream, with what they have in common worked out before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stamper {
    head: u64,
}

impl Stamper {
    /// Stamps of this stream and epoch.
    pub fn new(epoch: u8, stream: u16) -> Self {
        Self { head: u64::from(MAGIC | u32::from(epoch) << 24) | u64::from(stream) << 32 }
    }

    /// Stamps without the magic, which every checker takes for foreign: for learning frames.
    pub fn blank() -> Self {
        Self { head: 0 }
    }

    /// The stamp's bytes.
    #[inline(always)]
    pub fn to_bytes(self, sequence: u32, departure: u64) -> [u8; LEN] {
        let head = self.head | u64::from(sequence) << 48;
        let mut out = [0; LEN];
        out[..8].copy_from_slice(&head.to_le_bytes());
        out[8..10].copy_from_slice(&((sequence >> 16) as u16).to_le_bytes());
        out[10..].copy_from_slice(&departure.to_le_bytes());
        out
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_layout_is_the_documented_one() {
        let stamp = Stamp { epoch: 9, stream: 0x0102, sequence: 0x0a0b_0c0d, departure: 0x1122_3344_5566_7788 };
        let want = [b'L', b'R', 0xB7, 9, 2, 1, 0x0d, 0x0c, 0x0b, 0x0a, 0x88, 0x77, 0x66, 0x55, 0x44, 0x33, 0x22, 0x11];
        assert_eq!(stamp.to_bytes(), want);
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(epoch: u8, stream: u16, sequence: u32, departure: u64, pad in 0usize..100) {
            let stamp = Stamp { epoch, stream, sequence, departure };
            let mut frame = vec![0xee; pad + LEN];
            prop_assert!(stamp.write(&mut frame));
            prop_assert_eq!(Stamp::read(&frame), Some(stamp));
            prop_assert!(frame[..pad].iter().all(|&b| b == 0xee));
        }

        #[test]
        fn any_bytes_are_survived(frame in proptest::collection::vec(any::<u8>(), 0..64)) {
            let _ = Stamp::read(&frame);
        }
    }

    #[test]
    fn short_frames_hold_no_stamp() {
        let stamp = Stamp { epoch: 0, stream: 0, sequence: 0, departure: 0 };
        for len in 0..LEN {
            assert!(!stamp.write(&mut vec![0; len]));
            assert_eq!(Stamp::read(&vec![0; len]), None);
        }
    }
}
