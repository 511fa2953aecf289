//! The frames of a capture, to be known again.

use packet::capture::Capture;

/// Bytes at the end of a frame by which it is known: routers and tunnels change what stands before.
const TAIL: usize = 24;
/// Places for each frame: of 32 foreign frames one is mistaken for one of a large capture, of a small one's none.
const PLACES: usize = 32;
const LEAST_PLACES: usize = 1 << 16;
/// The shortest frame on Ethernet, without FCS: a port pads shorter ones with zeros.
const PADDED: usize = 60;

/// The frames of a capture by their last bytes, to see which of those that came cannot be among them.
#[derive(Debug)]
pub struct Known {
    bits: Box<[u64]>,
}

impl Known {
    /// Of every frame, as it is and as a port pads it.
    pub fn new(capture: &Capture) -> Self {
        let places = (capture.len() * PLACES).next_power_of_two().max(LEAST_PLACES);
        let mut known = Self { bits: vec![0; places / 64].into_boxed_slice() };
        for frame in (0..capture.len()).map(|number| capture.frame(number)) {
            known.add(frame);
            if frame.len() < PADDED {
                let mut padded = [0; PADDED];
                padded.iter_mut().zip(frame).for_each(|(to, from)| *to = *from);
                known.add(&padded);
            }
        }
        known
    }

    fn add(&mut self, frame: &[u8]) {
        let (word, bit) = self.place(frame);
        if let Some(word) = self.bits.get_mut(word) {
            *word |= bit;
        }
    }

    /// Whether it may be one of them.
    #[inline]
    pub fn has(&self, frame: &[u8]) -> bool {
        let (word, bit) = self.place(frame);
        self.bits.get(word).is_some_and(|word| word & bit != 0)
    }

    #[inline]
    fn place(&self, frame: &[u8]) -> (usize, u64) {
        let tail = frame.get(frame.len().saturating_sub(TAIL)..).unwrap_or_default();
        let mut hash = 0x9e37_79b9_7f4a_7c15_u64;
        for chunk in tail.chunks(8) {
            let mut word = [0; 8];
            word.iter_mut().zip(chunk).for_each(|(to, from)| *to = *from);
            hash = (hash ^ u64::from_le_bytes(word)).wrapping_mul(0xff51_afd7_ed55_8ccd);
            hash ^= hash >> 32;
        }
        // A power of two of words.
        let at = hash as usize & (self.bits.len() * 64 - 1);
        (at / 64, 1 << (at % 64))
    }
}
