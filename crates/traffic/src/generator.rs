//! Writes the frames of a stream: the hot path of sending.
//!
//! A burst is made column by column: for each varying field one tight loop works out the values of all frames, puts
//! them into header rows kept from burst to burst, and adds them to running one's complement sums; then each row is
//! copied to its frame in fixed-size chunks with its stamp. No field is looked at by kind for each frame, and no row
//! is read just after it was written, which would stall on store forwarding.
//!
//! The frames of a mix of sizes go another way: what of a frame goes by its size is in `generator/mix.rs`.

mod mix;

use std::sync::Arc;

use self::mix::Mix;
use crate::{
    flows::{Departures, Program},
    program::{compile, compile_flows, Op},
    stream::{StreamError, StreamSpec, VARIABLE_BYTES},
};
use packet::{
    checksum,
    frame::{IpSpec, L4Spec, Template},
    headers::{ipv4, ipv6},
    stamp::{self, Stamper},
    Buffer, BURST,
};

/// Frames of one stream in order, each a function of its number.
#[derive(Debug, Clone)]
pub struct Generator {
    template: Box<[u8]>,
    stamper: Stamper,
    next: u64,
    prefilled: bool,
    ops: Box<[Op]>,
    sums: Sums,
    /// Bytes of a row that are written: the headers and any raw field behind them, rounded up to 16.
    row_len: usize,
    scratch: Box<Scratch>,
    /// What goes by the size of a frame, when there are several.
    mix: Option<Box<Mix>>,
    /// When frames left, of a stream whose flows are known.
    departures: Option<Departures>,
}

/// What of the checksums does not vary, and where they go.
#[derive(Debug, Clone, Copy)]
struct Sums {
    ip_base: u64,
    l4_base: u64,
    /// Where the IPv4 header checksum stands; `None` for IPv6.
    ip_at: Option<usize>,
    /// Where the transport checksum stands; `None` without a transport header, and then its sum means nothing.
    l4_at: Option<usize>,
    udp: bool,
    /// Shift that brings a little-endian number in the stamp to its weight in the sum.
    stamp_shift: u32,
}

#[derive(Debug, Clone)]
struct Scratch {
    rows: [Row; BURST],
    values: [u64; BURST],
    ip: [u64; BURST],
    l4: [u64; BURST],
}

#[derive(Debug, Clone, Copy)]
#[repr(align(64))]
struct Row([u8; VARIABLE_BYTES]);

impl Generator {
    /// A generator at frame 0 of this stream.
    ///
    /// `prefilled` promises that every buffer handed to [`fill`](Self::fill) already holds the payload of
    /// [`template`](Self::template), so that only headers and stamp are written. Errors as [`StreamSpec::validate`].
    pub fn new(spec: &StreamSpec, stream_id: u16, epoch: u8, prefilled: bool) -> Result<Self, StreamError> {
        let ops = compile(spec, &smallest(spec)?)?;
        Self::compiled(spec, ops, stream_id, epoch, prefilled)
    }

    /// A generator at frame 0 of a flow program over this stream. Otherwise as [`new`](Self::new).
    pub fn with_flows(
        spec: &StreamSpec,
        program: &Arc<Program>,
        stream_id: u16,
        epoch: u8,
        prefilled: bool,
    ) -> Result<Self, StreamError> {
        let ops = compile_flows(spec, &smallest(spec)?, program)?;
        let generator = Self::compiled(spec, ops, stream_id, epoch, prefilled)?;
        Ok(Self { departures: Some(Departures::default()), ..generator })
    }

    fn compiled(
        spec: &StreamSpec,
        ops: Vec<Op>,
        stream_id: u16,
        epoch: u8,
        prefilled: bool,
    ) -> Result<Self, StreamError> {
        let template = Template::new(&spec.headers, spec.frame_size.largest())?;
        let at = *template.offsets();
        let bytes = with_uppers(&template, &ops);
        let end = ops.iter().map(|op| op.at + op.width).fold(at.payload, usize::max);
        let stamper = Stamper::new(epoch, stream_id);
        let mut row = Row([0; VARIABLE_BYTES]);
        row.0.iter_mut().zip(&bytes).for_each(|(to, from)| *to = *from);
        let scratch = Scratch { rows: [row; BURST], values: [0; BURST], ip: [0; BURST], l4: [0; BURST] };
        let row_len = end.next_multiple_of(16);
        Ok(Self {
            sums: Sums::new(spec, &template, bytes.clone(), &ops, stamper),
            mix: Mix::new(spec, &ops, stamper, row_len, prefilled)?,
            template: bytes.into(),
            stamper,
            next: 0,
            prefilled,
            ops: ops.into(),
            row_len,
            scratch: Box::new(scratch),
            departures: None,
        })
    }

    /// The frame that all frames are made from, the largest of a mix, without FCS: what a pool may be filled with.
    pub fn template(&self) -> &[u8] {
        &self.template
    }

    /// Length of every frame in bytes, without FCS; of a mix that of the largest.
    pub fn frame_len(&self) -> usize {
        self.template.len()
    }

    /// Frames made and not taken back.
    pub fn made(&self) -> u64 {
        self.next
    }

    /// When its frames left; only of a flow program.
    pub fn departures(&self) -> Option<&Departures> {
        self.departures.as_ref()
    }

    /// The same frames from number 0 with a stamp that every checker takes for foreign, to teach a DUT addresses
    /// before the trial (RFC 2544 §23 b).
    pub fn learning(&self) -> Self {
        let mut learning = self.clone();
        learning.next = 0;
        learning.departures = None;
        learning.stamper = Stamper::blank();
        learning.sums.restamp(self.stamper, learning.stamper, self.frame_len());
        if let Some(mix) = &mut learning.mix {
            mix.restamp(self.stamper, learning.stamper);
        }
        learning
    }

    /// Takes the last `n` frames back: the port refused them, and their numbers go to the frames filled next.
    pub fn unsent(&mut self, n: usize) {
        self.next = self.next.saturating_sub(n as u64);
    }

    /// Writes the next frames: headers, checksums, and stamps with this departure in ticks.
    ///
    /// Each buffer must be [`frame_len`](Self::frame_len) bytes long; one that is shorter is left half written. Of a mix it
    /// must have room for as many, and is made as long as its frame.
    #[inline]
    pub fn fill<B: Buffer>(&mut self, frames: &mut [B], departure: u64) {
        if let Some(departures) = &mut self.departures {
            departures.sent(self.next, frames.len() as u64, departure);
        }
        if self.mix.is_some() {
            return self.fill_mix(frames, departure);
        }
        for burst in frames.chunks_mut(BURST) {
            self.prepare::<false>(burst.len(), departure);
            match (self.prefilled, self.row_len) {
                (false, _) => self.emit_whole(burst, departure),
                (true, ..=48) => self.emit::<48, B>(burst, departure),
                (true, ..=64) => self.emit::<64, B>(burst, departure),
                (true, ..=80) => self.emit::<80, B>(burst, departure),
                (true, ..=96) => self.emit::<96, B>(burst, departure),
                (true, ..=112) => self.emit::<112, B>(burst, departure),
                (true, _) => self.emit::<128, B>(burst, departure),
            }
            self.next += burst.len() as u64;
        }
    }

    /// Brings the first `n` rows to the frames due next.
    #[inline]
    fn prepare<const MIX: bool>(&mut self, n: usize, departure: u64) {
        let Scratch { rows, values, ip, l4 } = &mut *self.scratch;
        let (Some(rows), Some(values), Some(ip), Some(l4)) =
            (rows.get_mut(..n), values.get_mut(..n), ip.get_mut(..n), l4.get_mut(..n))
        else {
            return;
        };
        let sums = &self.sums;
        if let (true, Some(mix)) = (MIX, &self.mix) {
            mix.prepare(self.next, departure, rows, ip, l4);
        } else {
            let shift = sums.stamp_shift;
            let constant = sums.l4_base + (((departure >> 32) + (departure & 0xffff_ffff)) << shift);
            let first = self.next as u32;
            for (i, sum) in l4.iter_mut().enumerate() {
                *sum = constant + (u64::from(first.wrapping_add(i as u32)) << shift);
            }
            ip.fill(sums.ip_base);
        }
        for op in &self.ops {
            op.source.values(self.next, values);
            op.write(values, rows);
            if op.in_ip_sum {
                op.add(values, ip);
            }
            if op.in_l4_sum {
                op.add(values, l4);
            }
        }
        if let Some(at) = sums.ip_at {
            put_checksums(rows, at, ip, checksum::finish);
        }
        match sums.l4_at {
            Some(at) if sums.udp => put_checksums(rows, at, l4, checksum::finish_udp),
            Some(at) => put_checksums(rows, at, l4, checksum::finish),
            None => {}
        }
    }

    #[inline]
    fn emit<const N: usize, B: Buffer>(&self, burst: &mut [B], departure: u64) {
        let mut sequence = self.next as u32;
        let stamper = self.stamper;
        for (frame, row) in burst.iter_mut().zip(&self.scratch.rows) {
            let data = frame.data_mut();
            if let (Some(front), Some(row)) = (data.first_chunk_mut::<N>(), row.0.first_chunk::<N>()) {
                *front = *row;
            }
            if let Some(tail) = data.last_chunk_mut::<{ stamp::LEN }>() {
                *tail = stamper.to_bytes(sequence, departure);
            }
            sequence = sequence.wrapping_add(1);
        }
    }

    /// Apart, so that frames of one size pay for it with one branch a call.
    #[inline(never)]
    fn fill_mix<B: Buffer>(&mut self, frames: &mut [B], departure: u64) {
        for burst in frames.chunks_mut(BURST) {
            self.prepare::<true>(burst.len(), departure);
            self.emit_mix(burst, departure);
            self.next += burst.len() as u64;
        }
    }

    /// Frames of a mix: as long as each is to be, the row, what another size may have left, and the stamp.
    #[inline]
    fn emit_mix<B: Buffer>(&self, burst: &mut [B], departure: u64) {
        let Some(mix) = &self.mix else { return };
        let mut sequence = self.next as u32;
        for ((frame, row), kind) in burst.iter_mut().zip(&self.scratch.rows).zip(mix.from(self.next)) {
            // A buffer that is too small keeps its length, and the checker tells.
            let _ = frame.set_len(kind.len);
            let data = frame.data_mut();
            if let (Some(front), Some(row)) = (data.get_mut(..self.row_len), row.0.get(..self.row_len)) {
                front.copy_from_slice(row);
            }
            for range in &kind.stale {
                if let (Some(to), Some(from)) = (data.get_mut(range.clone()), self.template.get(range.clone())) {
                    to.copy_from_slice(from);
                }
            }
            if let Some(tail) = data.last_chunk_mut::<{ stamp::LEN }>() {
                *tail = self.stamper.to_bytes(sequence, departure);
            }
            sequence = sequence.wrapping_add(1);
        }
    }

    #[inline]
    fn emit_whole<B: Buffer>(&self, burst: &mut [B], departure: u64) {
        let behind = self.template.get(self.row_len..).unwrap_or_default();
        let mut sequence = self.next as u32;
        for (frame, row) in burst.iter_mut().zip(&self.scratch.rows) {
            let data = frame.data_mut();
            if let (Some((front, rest)), Some(row)) =
                (data.split_at_mut_checked(self.row_len), row.0.get(..self.row_len))
            {
                front.copy_from_slice(row);
                if rest.len() == behind.len() {
                    rest.copy_from_slice(behind);
                }
            }
            if let Some(tail) = data.last_chunk_mut::<{ stamp::LEN }>() {
                *tail = self.stamper.to_bytes(sequence, departure);
            }
            sequence = sequence.wrapping_add(1);
        }
    }
}

/// The smallest frame of a stream: what fits it fits all.
pub(crate) fn smallest(spec: &StreamSpec) -> Result<Template, StreamError> {
    Ok(Template::new(&spec.headers, spec.frame_size.smallest())?)
}

/// The bytes of a frame, with the upper halves of addresses that vary in their lower.
fn with_uppers(template: &Template, ops: &[Op]) -> Vec<u8> {
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
    /// Another stamp on frames of so many bytes.
    fn restamp(&mut self, from: Stamper, to: Stamper, frame_len: usize) {
        self.l4_base = self.l4_base - stamp_sum(from, frame_len) + stamp_sum(to, frame_len);
    }

    /// Sums of everything that stays, over a copy of the frame whose varying bytes are zero.
    fn new(spec: &StreamSpec, template: &Template, mut bytes: Vec<u8>, ops: &[Op], stamper: Stamper) -> Self {
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

#[inline(always)]
fn put_checksums(rows: &mut [Row], at: usize, sums: &[u64], finish: impl Fn(u64) -> u16) {
    for (row, sum) in rows.iter_mut().zip(sums) {
        if let Some(to) = row.0.get_mut(at..at + 2) {
            to.copy_from_slice(&finish(*sum).to_be_bytes());
        }
    }
}

impl Op {
    #[inline]
    fn write(&self, values: &[u64], rows: &mut [Row]) {
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
    fn add(&self, values: &[u64], sums: &mut [u64]) {
        let weight = if (self.at + self.width).is_multiple_of(2) { 0 } else { 8 };
        for (sum, value) in sums.iter_mut().zip(values) {
            *sum += ((value >> 32) + (value & 0xffff_ffff)) << weight;
        }
    }
}
