//! Frames of several sizes in turn: what of a frame goes by its size, by the frame's number.

use std::ops::Range;

use packet::{
    frame::{IpSpec, L4Spec, Template},
    stamp::Stamper,
};
use units::FrameSize;

use super::rows::{with_uppers, Row, Sums};
use crate::{
    program::Op,
    stream::{StreamError, StreamSpec},
};

/// Where lengths stand in their headers (RFC 791 §3.1, RFC 8200 §3, RFC 768).
const IPV4_TOTAL_LEN: usize = 2;
const IPV6_PAYLOAD_LEN: usize = 4;
const UDP_LEN: usize = 4;

/// The sizes of a stream that has several.
#[derive(Debug, Clone)]
pub(super) struct Mix {
    /// Each size once, smallest first.
    kinds: Box<[Kind]>,
    /// Which of them frame `n` is: entry `n mod len`.
    order: Box<[u16]>,
    /// Where the IP header says how long the packet is.
    ip_len_at: usize,
    /// Where the UDP header does.
    udp_len_at: Option<usize>,
}

/// Frames of one size.
#[derive(Debug, Clone)]
pub(super) struct Kind {
    /// Length without FCS.
    pub(super) len: usize,
    /// Bytes behind the row to be copied from the template: where a smaller frame in the same buffer may have left its
    /// stamp, or all when the buffer does not hold the payload.
    pub(super) stale: Box<[Range<usize>]>,
    sums: Sums,
    ip_len: [u8; 2],
    udp_len: [u8; 2],
}

impl Mix {
    /// `None` of a stream of one size.
    pub(super) fn new(
        spec: &StreamSpec,
        ops: &[Op],
        stamper: Stamper,
        row_len: usize,
        prefilled: bool,
    ) -> Result<Option<Box<Self>>, StreamError> {
        let Some(mix) = spec.frame_size.mix() else { return Ok(None) };
        let mut sizes: Vec<FrameSize> = mix.sizes().to_vec();
        sizes.sort_unstable();
        sizes.dedup();
        let templates: Vec<Template> =
            sizes.iter().map(|&size| Template::new(&spec.headers, size)).collect::<Result<_, _>>()?;
        let v4 = matches!(spec.headers.ip, IpSpec::V4 { .. });
        let smaller = |at: usize| templates.iter().take(at).map(|t| t.offsets().stamp..t.bytes().len());
        let kind = |(i, template): (usize, &Template)| {
            let (at, len) = (template.offsets(), template.bytes().len());
            let ip_payload = if v4 { at.l3 } else { at.l4 };
            let all = row_len..len;
            Kind {
                len,
                stale: if prefilled { merged(smaller(i)) } else { [all].into() },
                sums: Sums::new(spec, template, with_uppers(template, ops), ops, stamper),
                ip_len: ((len - ip_payload) as u16).to_be_bytes(),
                udp_len: ((len - at.l4) as u16).to_be_bytes(),
            }
        };
        let at = templates.first().map(|template| *template.offsets());
        let (l3, l4) = at.map_or((0, 0), |at| (at.l3, at.l4));
        Ok(Some(Box::new(Self {
            order: mix.sizes().iter().map(|size| sizes.partition_point(|s| s < size) as u16).collect(),
            kinds: templates.iter().enumerate().map(kind).collect(),
            ip_len_at: l3 + if v4 { IPV4_TOTAL_LEN } else { IPV6_PAYLOAD_LEN },
            udp_len_at: matches!(spec.headers.l4, L4Spec::Udp { .. }).then_some(l4 + UDP_LEN),
        })))
    }

    /// The kinds of frames `n`, `n + 1`, ...
    #[inline]
    pub(super) fn from(&self, n: u64) -> impl Iterator<Item = &Kind> {
        let first = (n % self.order.len().max(1) as u64) as usize;
        let behind = self.order.get(first..).unwrap_or_default();
        behind.iter().chain(self.order.iter().cycle()).filter_map(|&kind| self.kinds.get(usize::from(kind)))
    }

    /// Brings rows to the sizes of frames `n`, `n + 1`, ..., and their sums to what does not vary of them.
    #[inline]
    pub(super) fn prepare(&self, n: u64, departure: u64, rows: &mut [Row], ip: &mut [u64], l4: &mut [u64]) {
        let departure = (departure >> 32) + (departure & 0xffff_ffff);
        let mut sequence = n as u32;
        for (((row, ip), l4), kind) in rows.iter_mut().zip(ip).zip(l4).zip(self.from(n)) {
            let Sums { ip_base, l4_base, stamp_shift, .. } = kind.sums;
            *ip = ip_base;
            *l4 = l4_base + (departure << stamp_shift) + (u64::from(sequence) << stamp_shift);
            sequence = sequence.wrapping_add(1);
            if let Some(to) = row.0.get_mut(self.ip_len_at..self.ip_len_at + 2) {
                to.copy_from_slice(&kind.ip_len);
            }
            if let Some(to) = self.udp_len_at.and_then(|at| row.0.get_mut(at..at + 2)) {
                to.copy_from_slice(&kind.udp_len);
            }
        }
    }

    /// The same frames with another stamp.
    pub(super) fn restamp(&mut self, from: Stamper, to: Stamper) {
        for kind in &mut self.kinds {
            kind.sums.restamp(from, to, kind.len);
        }
    }
}

/// The same bytes in as few ranges as there are gaps between them.
fn merged(ranges: impl Iterator<Item = Range<usize>>) -> Box<[Range<usize>]> {
    let mut merged: Vec<Range<usize>> = Vec::new();
    for range in ranges {
        match merged.last_mut() {
            Some(last) if range.start <= last.end => last.end = last.end.max(range.end),
            _ => merged.push(range),
        }
    }
    merged.into()
}
