//! The checks of [`plain_ip4`](super::input::plain_ip4) for a whole burst at once: faults of its frames are gathered
//! without branches and checked at the end. It takes a little over half the instructions for the usual burst, in which
//! nothing does; any other is looked at frame by frame.

use packet::{Buffer, Burst, BURST};
use wide::u8x16;

use super::{
    framing::ETHERNET,
    input::{quotient, Header, LARGEST, PLAIN},
};
use crate::{pass::PREFETCH_AHEAD, tables::MacFilter};

/// Frames looked at before the next ones are fetched.
const STRIDE: usize = 8;

/// Of a stride of frames: destinations, lengths in network byte order, bytes that there are.
type Places<'a> = (&'a mut [u32; STRIDE], &'a mut [u16; STRIDE], &'a mut [u16; STRIDE]);

/// The faults of the frames so far.
struct Doubts {
    /// The first 16 bytes: bits that differ from what is wanted.
    differ: u8x16,
    /// The 16 from byte 14 on: the least of each, the largest, and whether any was 127.
    least: u8x16,
    largest: u8x16,
    loopback: u8x16,
    /// The largest [`quotient`] of a checksum.
    sum: u64,
    /// A frame too short for any packet.
    runt: bool,
}

impl Doubts {
    const NONE: Self = Self {
        differ: u8x16::ZERO,
        least: u8x16::MAX,
        largest: u8x16::ZERO,
        loopback: u8x16::ZERO,
        sum: 0,
        runt: false,
    };

    /// Adds a frame's. Returns its destination, and its length in network byte order.
    #[inline(always)]
    fn add(&mut self, data: &[u8], wanted: u8x16) -> (u32, u16) {
        let Some(frame) = data.first_chunk::<PLAIN>() else {
            self.runt = true;
            return (0, 0);
        };
        let vector = |at: usize| u8x16::new(frame[at..].first_chunk().copied().unwrap_or_default());
        self.differ |= vector(0) ^ wanted;
        let header = vector(ETHERNET);
        self.least = self.least.min(header);
        self.largest = self.largest.max(header);
        self.loopback |= header.cmp_eq(u8x16::splat(127));
        let header = Header::from_frame(frame);
        self.sum = self.sum.max(quotient(header.sum()));
        (header.dst(), (header.first >> 16) as u16)
    }

    /// Adds those of up to a stride of frames; what is told of each goes to its place.
    #[inline(always)]
    fn add_all<B: Buffer>(&mut self, frames: &[B], wanted: u8x16, (dst, lens, room): Places<'_>) {
        for (frame, ((dst, len), room)) in frames.iter().zip(dst.iter_mut().zip(lens).zip(room)) {
            let data = frame.data();
            (*dst, *len) = self.add(data, wanted);
            *room = data.len() as u16;
        }
    }

    /// Whether there are none: the port's address, EtherType, version and header length, TTL, source, checksum.
    #[inline(always)]
    fn none(&self, macs: MacFilter) -> bool {
        let [m0, m1, m2, m3, m4, m5, m6, m7, _, _, _, _, e0, e1, ..] = self.differ.to_array();
        let [version, .., _, _, _, ttl, _, _, _, source, _, _, _] = self.least.to_array();
        let [version_most, .., source_most, _, _, _] = self.largest.to_array();
        let [.., loopback, _, _, _] = self.loopback.to_array();
        macs.same(u64::from_le_bytes([m0, m1, m2, m3, m4, m5, m6, m7]))
            & (e0 | e1 == 0)
            & (version == 0x45)
            & (version_most == 0x45)
            & (ttl > 1)
            & (source > 0)
            & (source_most <= 223)
            & (loopback == 0)
            & (self.sum <= LARGEST)
            & !self.runt
    }
}

/// Whether all of a burst are untagged IPv4 packets without options in which nothing is wrong. If so, their destinations
/// and lengths are written, and the largest length is returned. By itself, so that the loop has all registers.
#[inline(never)]
pub(super) fn all_plain_ip4<B: Buffer>(
    burst: &Burst<B>,
    macs: MacFilter,
    dst: &mut [u32; BURST],
    lens: &mut [u16; BURST],
) -> Option<u16> {
    let mut doubts = Doubts::NONE;
    let mut wanted = [0; 16];
    wanted[..8].copy_from_slice(&macs.wanted().to_le_bytes());
    wanted[12] = 8;
    let wanted = u8x16::new(wanted);
    let mut room = [0u16; BURST];
    burst.iter().take(PREFETCH_AHEAD).for_each(Buffer::prefetch);
    // As many at a time as make loops without a counter: fetching ahead has one of its own, and the checks the registers.
    let (strides, rest) = burst.as_chunks::<STRIDE>();
    let mut places = dst
        .as_chunks_mut::<STRIDE>()
        .0
        .iter_mut()
        .zip(lens.as_chunks_mut::<STRIDE>().0)
        .zip(room.as_chunks_mut::<STRIDE>().0);
    for (i, (frames, ((dst, lens), room))) in strides.iter().zip(&mut places).enumerate() {
        match strides.get(i + PREFETCH_AHEAD / STRIDE) {
            Some(ahead) => ahead.iter().for_each(Buffer::prefetch),
            None => rest.iter().for_each(Buffer::prefetch),
        }
        doubts.add_all(frames, wanted, (dst, lens, room));
    }
    if let Some(((dst, lens), room)) = places.next() {
        doubts.add_all(rest, wanted, (dst, lens, room));
    }
    let n = burst.len().min(BURST);
    let (mut over, mut longest) = (0, 0);
    for (len, room) in lens[..n].iter_mut().zip(&room) {
        *len = len.swap_bytes();
        longest = longest.max(*len);
        // A frame of more than 64 KiB counts as a short one, and is looked at again.
        over |= len.wrapping_sub(20).saturating_sub(room.saturating_sub(PLAIN as u16));
    }
    (doubts.none(macs) & (over == 0)).then_some(longest)
}

#[cfg(test)]
mod tests {
    use packet::{
        checksum,
        heap::{HeapBuf, HeapPool},
        Alloc, MacAddr,
    };

    use super::{super::input::plain_ip4, *};

    /// A right frame; the sum is made right again after a change to the header.
    fn frame(i: u8) -> [u8; 60] {
        let mut f = [0; 60];
        f[..14].copy_from_slice(&[2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, i, 8, 0]);
        f[14..34].copy_from_slice(&[0x45, i, 0, 46, i, 0, 0x40, 0, 64, 17, 0, 0, 10, 0, 0, i, 192, 0, 2, i]);
        mend(&mut f);
        f
    }

    fn mend(f: &mut [u8; 60]) {
        f[24..26].fill(0);
        let sum = checksum::fold(f[14..34].chunks(2).map(|w| u64::from(u16::from_be_bytes([w[0], w[1]]))).sum());
        f[24..26].copy_from_slice(&(!sum).to_be_bytes());
    }

    fn burst(frames: &[Vec<u8>]) -> Burst<HeapBuf> {
        let mut burst = Burst::new();
        for data in frames {
            let mut one = Burst::new();
            assert_eq!(HeapPool::new(1, 60).alloc(&mut one, 1, data.len()), 1);
            let mut buf = one.pop().unwrap();
            buf.data_mut().copy_from_slice(data);
            burst.push(buf);
        }
        burst
    }

    /// What it says of these frames is what is said of them one by one.
    fn check(frames: &[Vec<u8>], macs: MacFilter) -> bool {
        let one_by_one: Option<Vec<_>> = frames.iter().map(|f| plain_ip4(f, macs)).collect();
        let (mut dst, mut lens) = ([0; BURST], [0; BURST]);
        let longest = all_plain_ip4(&burst(frames), macs, &mut dst, &mut lens);
        assert_eq!(longest.is_some(), one_by_one.is_some(), "{frames:x?}");
        if let (Some(longest), Some(each)) = (longest, &one_by_one) {
            assert!(dst.iter().zip(&lens).zip(each).all(|((dst, len), one)| (*dst, *len) == *one));
            assert_eq!(Some(longest), each.iter().map(|(_, len)| *len).max());
        }
        longest.is_some()
    }

    #[test]
    fn a_burst_passes_when_each_of_its_frames_does() {
        let only = MacFilter::only(MacAddr([2, 0, 0, 0, 0, 1]));
        let mut passed = [0; 2];
        for macs in [only, MacFilter::UNICAST] {
            for at in 0..PLAIN {
                for value in 0..=u8::MAX {
                    let mut odd = frame(3);
                    odd[at] = value;
                    let unsummed = odd.to_vec();
                    mend(&mut odd);
                    let pair = |odd| check(&[frame(1).to_vec(), odd, frame(2).to_vec()], macs);
                    for sound in [pair(unsummed), pair(odd.to_vec())] {
                        passed[usize::from(sound)] += 1;
                    }
                }
            }
        }
        assert!(passed.iter().all(|&n| n > 1000), "{passed:?}");
    }

    #[test]
    fn every_place_and_every_length_counts() {
        let macs = MacFilter::UNICAST;
        for n in [1, 15, 16, 17, 18, 63, 64] {
            let good: Vec<_> = (0..n).map(|i| frame(i as u8).to_vec()).collect();
            assert!(check(&good, macs));
            for at in [0, 1, n / 2, n - 1].into_iter().filter(|&at| at < n) {
                for len in 0..60 {
                    let mut frames = good.clone();
                    frames[at].truncate(len);
                    check(&frames, macs);
                }
                let mut frames = good.clone();
                frames[at][22] = 1;
                assert!(!check(&frames, macs));
            }
        }
    }
}
