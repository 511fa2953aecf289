//! The frame that goes round: an Ethernet header, a mark, a number, and a payload that is known.

use packet::MacAddr;

use crate::noise::Noise;

/// Shortest frame without FCS (IEEE 802.3).
pub const SHORTEST: usize = 60;
/// Longest frame without FCS that is measured: a jumbo frame.
pub const LONGEST: usize = 9014;
/// EtherType for local experiments (IEEE 802): no host takes these frames for something else.
const ETHERTYPE: [u8; 2] = [0x88, 0xb5];
/// Behind the EtherType: what a frame of a run says of itself.
const MARK: usize = 14;
/// Where its number is.
const NUMBER: usize = MARK + 8;
/// Bytes with a meaning.
const HEAD: usize = NUMBER + 8;

/// The frame of a run.
#[derive(Debug, Clone)]
pub struct Frame {
    bytes: Vec<u8>,
    mark: [u8; 8],
}

impl Frame {
    /// A frame of `size` bytes without FCS, at least [`SHORTEST`]. Frames of runs with other marks are foreign.
    pub fn new(size: usize, from: MacAddr, to: MacAddr, mark: u64) -> Self {
        let mut bytes = vec![0; size.clamp(SHORTEST, LONGEST)];
        bytes[..6].copy_from_slice(&to.0);
        bytes[6..12].copy_from_slice(&from.0);
        bytes[12..MARK].copy_from_slice(&ETHERTYPE);
        let mark = mark.to_be_bytes();
        bytes[MARK..NUMBER].copy_from_slice(&mark);
        Noise::default().fill(&mut bytes[HEAD..]);
        Self { bytes, mark }
    }

    /// Gives it its number.
    #[inline]
    pub fn number(&mut self, number: u64) {
        self.bytes[NUMBER..HEAD].copy_from_slice(&number.to_be_bytes());
    }

    /// What goes out.
    #[inline]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The number of a received frame, if it is one of this run.
    #[inline]
    pub fn number_of(&self, received: &[u8]) -> Option<u64> {
        if received.get(MARK..NUMBER)? != self.mark {
            return None;
        }
        Some(u64::from_be_bytes(received.get(NUMBER..HEAD)?.try_into().ok()?))
    }

    /// Whether a received frame has the payload that was sent. A frame may be longer: short ones are padded on their way.
    pub fn is_whole(&self, received: &[u8]) -> bool {
        received.get(HEAD..self.bytes.len()).is_some_and(|payload| *payload == self.bytes[HEAD..])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ENDS: [MacAddr; 2] = [MacAddr([2, 0, 0, 0, 0, 1]), MacAddr([2, 0, 0, 0, 0, 2])];

    #[test]
    fn a_frame_is_known_again_by_its_mark_number_and_payload() {
        let mut frame = Frame::new(64, ENDS[0], ENDS[1], 77);
        frame.number(12);
        assert_eq!(frame.bytes().len(), 64);
        assert_eq!(&frame.bytes()[..14], [2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 0x88, 0xb5]);
        assert_eq!(frame.number_of(frame.bytes()), Some(12));
        assert!(frame.is_whole(frame.bytes()));
        let mut longer = frame.bytes().to_vec();
        longer.extend([0; 4]);
        assert!(frame.is_whole(&longer));
        longer[40] ^= 1;
        assert!(!frame.is_whole(&longer) && !frame.is_whole(&frame.bytes()[..63]));
        assert_eq!(Frame::new(64, ENDS[0], ENDS[1], 78).number_of(frame.bytes()), None, "of another run");
        for len in 0..HEAD {
            assert_eq!(frame.number_of(&frame.bytes()[..len]), None, "{len}");
        }
    }

    #[test]
    fn sizes_have_bounds() {
        assert_eq!(Frame::new(0, ENDS[0], ENDS[1], 0).bytes().len(), SHORTEST);
        assert_eq!(Frame::new(100_000, ENDS[0], ENDS[1], 0).bytes().len(), LONGEST);
    }
}
