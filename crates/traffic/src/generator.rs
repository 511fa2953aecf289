//! Writes the frames of a stream: the hot path of sending.
//!
//! A burst is made column by column: for each varying field one tight loop works out the values of all frames, puts
//! them into header rows kept from burst to burst, and adds them to running one's complement sums; then each row is
//! copied to its frame in fixed-size chunks with its stamp. No field is looked at by kind for each frame, and no row
//! is read just after it was written, which would stall on store forwarding.
//!
//! The frames of a mix of sizes go another way: what of a frame goes by its size is in `generator/mix.rs`.

mod mix;
mod rows;

use std::sync::Arc;

use self::{
    mix::Mix,
    rows::{put_checksums, with_uppers, Row, Sums},
};
use crate::{
    flows::{Departures, Program},
    program::{compile, compile_flows, smallest, Op},
    stream::{StreamError, StreamSpec, VARIABLE_BYTES},
};
use packet::{
    checksum,
    frame::Template,
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
    scratch: Box<BurstRows>,
    /// What goes by the size of a frame, when there are several.
    mix: Option<Box<Mix>>,
    /// When frames left, of a stream whose flows are known.
    departures: Option<Departures>,
}

#[derive(Debug, Clone)]
struct BurstRows {
    rows: [Row; BURST],
    values: [u64; BURST],
    ip: [u64; BURST],
    l4: [u64; BURST],
}

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
        let scratch = BurstRows { rows: [row; BURST], values: [0; BURST], ip: [0; BURST], l4: [0; BURST] };
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
        let BurstRows { rows, values, ip, l4 } = &mut *self.scratch;
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
