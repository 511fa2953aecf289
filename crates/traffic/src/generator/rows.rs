//! Header rows kept from burst to burst, and the checksums of what is in them.

use packet::{
    checksum,
    frame::{IpSpec, L4Spec, Template},
    headers::{ipv4, ipv6},
    stamp::Stamper,
};

use crate::{
    program::Op,
    stream::{StreamSpec, VARIABLE_BYTES},
};

/// The first bytes of a frame.
#[derive(Debug, Clone, Copy)]
#[repr(align(64))]
pub(super) struct Row(pub(super) [u8; VARIABLE_BYTES]);

/// What of the checksums does not vary, and where they go.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sums {
    pub(super) ip_base: u64,
    pub(super) l4_base: u64,
    /// Where the IPv4 header checksum stands; `None` for IPv6.
    pub(super) ip_at: Option<usize>,
    /// Where the transport checksum stands; `None` without a transport header, and then its sum means nothing.
    pub(super) l4_at: Option<usize>,
    pub(super) udp: bool,
    /// Shift that brings a little-endian number in the stamp to its weight in the sum.
    pub(super) stamp_shift: u32,
}

/// The bytes of a frame, with the upper halves of addresses that vary in their lower.
pub(super) fn with_uppers(template: &Template, ops: &[Op]) -> Vec<u8> {
    let mut bytes = template.bytes().to_vec();
    for op in ops {
        let Some(upper) = op.upper else { continue };
        if let Some(to) = op.at.checked_sub(8).and_then(|from| bytes.get_mut(from..op.at)) {
            to.copy_from_slice(&upper.to_be_bytes());
        }
    }
    bytes
}

impl Sums {
    /// Replaces the stamp on frames of `frame_len` bytes.
    pub(super) fn restamp(&mut self, from: Stamper, to: Stamper, frame_len: usize) {
        self.l4_base = self.l4_base - stamp_sum(from, frame_len) + stamp_sum(to, frame_len);
    }

    /// Sums of everything that stays, over a copy of the frame whose varying bytes are zero.
    pub(super) fn new(
        spec: &StreamSpec,
        template: &Template,
        mut bytes: Vec<u8>,
        ops: &[Op],
        stamper: Stamper,
    ) -> Self {
        let at = template.offsets();
        let mut clear = |range: std::ops::Range<usize>| {
            if let Some(bytes) = bytes.get_mut(range) {
                bytes.fill(0);
            }
        };
        for op in ops {
            clear(op.at..op.at + op.width);
        }
        let v4 = matches!(spec.headers.ip, IpSpec::V4 { .. });
        let ip_at = v4.then_some(at.l3 + ipv4::CHECKSUM);
        if let Some(at) = ip_at {
            clear(at..at + 2);
        }
        if let Some(at) = at.l4_checksum {
            clear(at..at + 2);
        }
        let sum = |from: usize, to: usize| checksum::sum(bytes.get(from..to).unwrap_or_default());
        let addresses = at.l3 + if v4 { ipv4::SRC } else { ipv6::SRC };
        let l4_len = bytes.len() - at.l4;
        let pseudo = sum(addresses, at.l4) + u64::from(spec.headers.l4.protocol()) + l4_len as u64;
        Self {
            ip_base: sum(at.l3, at.l4),
            l4_base: pseudo + sum(at.l4, bytes.len()) + stamp_sum(stamper, bytes.len()),
            ip_at,
            l4_at: at.l4_checksum,
            udp: matches!(spec.headers.l4, L4Spec::Udp { .. }),
            // 256 swaps the bytes of a word modulo 2^16 - 1.
            stamp_shift: if bytes.len().is_multiple_of(2) { 8 } else { 0 },
        }
    }
}

/// What a stamp whose sequence and departure are zero adds to the transport sum.
fn stamp_sum(stamper: Stamper, frame_len: usize) -> u64 {
    let sum = checksum::sum(&stamper.to_bytes(0, 0));
    // At an odd offset every byte weighs as its neighbour would.
    if frame_len.is_multiple_of(2) {
        sum
    } else {
        sum << 8
    }
}

/// Writes the finished sums into the rows.
#[inline(always)]
pub(super) fn put_checksums(rows: &mut [Row], at: usize, sums: &[u64], finish: impl Fn(u64) -> u16) {
    for (row, sum) in rows.iter_mut().zip(sums) {
        if let Some(to) = row.0.get_mut(at..at + 2) {
            to.copy_from_slice(&finish(*sum).to_be_bytes());
        }
    }
}

impl Op {
    /// Writes the values into the rows.
    #[inline]
    pub(super) fn write(&self, values: &[u64], rows: &mut [Row]) {
        match self.width {
            1 => self.write_width::<1>(values, rows),
            2 => self.write_width::<2>(values, rows),
            4 => self.write_width::<4>(values, rows),
            6 => self.write_width::<6>(values, rows),
            _ => self.write_width::<8>(values, rows),
        }
    }

    #[inline(always)]
    fn write_width<const W: usize>(&self, values: &[u64], rows: &mut [Row]) {
        let (at, base, shift) = (self.at, self.base, self.shift);
        for (row, value) in rows.iter_mut().zip(values) {
            let word = (base | value << shift).to_be_bytes();
            if let (Some(to), Some(from)) = (row.0.get_mut(at..at + W), word.last_chunk::<W>()) {
                to.copy_from_slice(from);
            }
        }
    }

    /// Adds the values with their weight: a number of any width is its own sum modulo 2^16 - 1, times 256 when its
    /// last byte stands at an even offset.
    #[inline(always)]
    pub(super) fn add(&self, values: &[u64], sums: &mut [u64]) {
        let weight = if (self.at + self.width).is_multiple_of(2) { 0 } else { 8 };
        for (sum, value) in sums.iter_mut().zip(values) {
            *sum += ((value >> 32) + (value & 0xffff_ffff)) << weight;
        }
    }
}
