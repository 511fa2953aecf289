//! One thread walks the table for all clients that want rates or the largest flows.
//!
//! It walks at most once a second, rests three times as long as a walk took, and sleeps when no client has asked for some
//! seconds, because the packet path writes the same memory. While clients ask, it keeps 24 bytes of each flow: 400 MB for
//! 16 million.

use std::{
    io,
    sync::{Arc, Condvar, Mutex, PoisonError, RwLock, Weak},
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use net::{lock, Stop};

use super::{
    sampler::rate,
    top::{Best, Query, Wanted},
};
use crate::{protocol::Page, Addresses, Record, Source};

/// Places per segment. A segment is walked at once.
const SEGMENT: u64 = 1 << OFFSET_BITS;
const OFFSET_BITS: u32 = 12;
/// Least time between the starts of two walks.
const PERIOD: Duration = Duration::from_secs(1);
/// Rates are kept this long after the last request.
const LINGER: Duration = Duration::from_secs(5);
/// A list is updated for this long after a request, so that a client that asks each second does not wait for a walk. The
/// number of such lists is limited.
const RECENT: Duration = Duration::from_millis(2500);
const RECENTS: usize = 64;
/// Longest wait for a list.
const PATIENCE: Duration = Duration::from_secs(60);

/// What is kept of a flow between walks.
#[derive(Debug, Clone, Copy)]
struct Cell {
    /// Place in the segment, and some bits of the key.
    tag: u32,
    /// Low bits of the packet count, enough for the difference between two walks.
    packets: u32,
    bytes: u64,
    packet_rate: f32,
    bit_rate: f32,
}

/// What is kept of a segment between walks, in order of places.
#[derive(Debug, Default)]
struct Segment {
    /// When the segment was walked.
    walked: Option<Instant>,
    cells: Vec<Cell>,
}

fn tag(place: u64, record: &Record) -> u32 {
    let key = &record.key;
    let (a, b) = match key.addresses {
        Addresses::V4 { src, dst } => (src.to_bits().into(), u128::from(dst.to_bits())),
        Addresses::V6 { src, dst } => (src.to_bits(), dst.to_bits()),
    };
    let rest = u128::from(key.sport) | u128::from(key.dport) << 16 | u128::from(key.protocol) << 32;
    let rest = rest
        | u128::from(key.port) << 40
        | u128::from(key.scope.map_or(0, |scope| scope + 1)) << 48
        | u128::from(key.bottom) << 80;
    // A collision is harmless: one wrong rate for a second.
    let mixed = [a, b, rest]
        .iter()
        .fold(0u128, |h, &w| (h ^ w ^ w >> 64).wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835).rotate_left(61));
    let offset = place as u32 & (SEGMENT as u32 - 1);
    (mixed >> 64) as u32 >> OFFSET_BITS | offset << (32 - OFFSET_BITS)
}

impl Segment {
    fn find(&self, tag: u32) -> Option<&Cell> {
        self.cells.binary_search_by_key(&tag, |cell| cell.tag).ok().and_then(|at| self.cells.get(at))
    }

    /// What to keep of the flow, and its rates since the last walk of the segment.
    fn see(&self, place: u64, record: &Record, now: Instant) -> (Cell, f64, f64) {
        let packets = record.forward.packets.saturating_add(record.back.packets);
        let bytes = record.frame_bytes();
        let tag = tag(place, record);
        let (packet_rate, bit_rate) = self.walked.map_or((0.0, 0.0), |then| {
            let over = now.saturating_duration_since(then);
            let (new_packets, new_bytes) = match self.find(tag) {
                Some(cell) if bytes >= cell.bytes => {
                    (u64::from((packets as u32).wrapping_sub(cell.packets)), bytes - cell.bytes)
                }
                // Its counts restarted from zero after the active timeout.
                Some(_) => (packets, bytes),
                // The flow is new, or the worker was writing it at every try of the last walk.
                None if u128::from(record.last.saturating_sub(record.first)) <= over.as_nanos() => (packets, bytes),
                None => (0, 0),
            };
            (rate(new_packets, over), rate(new_bytes.saturating_mul(8), over))
        });
        let cell =
            Cell { tag, packets: packets as u32, bytes, packet_rate: packet_rate as f32, bit_rate: bit_rate as f32 };
        (cell, packet_rate, bit_rate)
    }
}

/// Requested lists, and the results of the last walk.
#[derive(Debug)]
pub(crate) struct Board {
    state: Mutex<State>,
    changed: Condvar,
    memory: RwLock<Vec<Mutex<Segment>>>,
    stop: Arc<Stop>,
}

#[derive(Debug, Default)]
struct State {
    queries: Vec<Weak<Query>>,
    /// Lists that were requested once and may be requested again.
    recent: Vec<(Instant, Arc<Query>)>,
    /// When the last request came.
    asked: Option<Instant>,
    /// Whether two consecutive walks are done, so that rates are known.
    warm: bool,
}

impl State {
    fn live(&mut self) -> Vec<Arc<Query>> {
        self.recent.retain(|(at, _)| at.elapsed() < RECENT);
        self.queries.retain(|q| q.strong_count() > 0);
        self.queries.iter().filter_map(Weak::upgrade).collect()
    }

    fn wanted(&mut self) -> bool {
        !self.live().is_empty() || self.asked.is_some_and(|at| at.elapsed() < LINGER)
    }
}

impl Board {
    /// Requests a list from the next walk on, for as long as the caller holds the query.
    pub(crate) fn want(&self, wanted: Wanted) -> Arc<Query> {
        let mut state = lock(&self.state);
        state.asked = Some(Instant::now());
        let same = state.live().into_iter().find(|q| q.wanted == wanted);
        let query = same.unwrap_or_else(|| {
            let new = Arc::new(Query::new(wanted));
            state.queries.push(Arc::downgrade(&new));
            new
        });
        self.changed.notify_all();
        query
    }

    /// Waits for a list.
    pub(crate) fn wait(&self, query: &Query) -> Result<Arc<Page>, String> {
        self.until(|_| query.result())
    }

    /// A list, once: from the last walk if it made the list, otherwise from the next.
    pub(crate) fn once(&self, wanted: Wanted) -> Result<Arc<Page>, String> {
        let query = self.want(wanted);
        let page = self.wait(&query)?;
        let recent = &mut lock(&self.state).recent;
        recent.retain(|(_, q)| !Arc::ptr_eq(q, &query));
        if recent.len() < RECENTS {
            recent.push((Instant::now(), query));
        }
        Ok(page)
    }

    /// Waits until rates are known.
    pub(crate) fn warm(&self) -> Result<(), String> {
        self.until(|state| state.warm.then_some(()))
    }

    fn until<T>(&self, mut ready: impl FnMut(&State) -> Option<T>) -> Result<T, String> {
        let patience = Instant::now() + PATIENCE;
        let mut state = lock(&self.state);
        state.asked = Some(Instant::now());
        self.changed.notify_all();
        loop {
            if let Some(found) = ready(&state) {
                return Ok(found);
            }
            if self.stop.stopped() {
                return Err("the logger is ending".into());
            }
            // Walks go on while a client waits.
            state.asked = Some(Instant::now());
            if Instant::now() > patience {
                return Err(format!("the flow table could not be read within {} s: try again", PATIENCE.as_secs()));
            }
            let tick = Duration::from_millis(100);
            state = self.changed.wait_timeout(state, tick).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Fills the rates of the last walk into the rows at these places.
    pub(crate) fn rates(&self, rows: &mut [(u64, crate::protocol::Row)]) {
        let memory = self.memory.read().unwrap_or_else(PoisonError::into_inner);
        for (place, row) in rows {
            let Some(segment) = memory.get((*place / SEGMENT) as usize) else { continue };
            if let Some(cell) = lock(segment).find(tag(*place, &row.record)) {
                (row.packet_rate, row.bit_rate) = (cell.packet_rate.into(), cell.bit_rate.into());
            }
        }
    }

    /// Walks the whole table once.
    fn walk(&self, source: &dyn Source, queries: &[Arc<Query>]) -> Vec<Page> {
        let places = source.places();
        let segments = usize::try_from(places.div_ceil(SEGMENT)).unwrap_or(0);
        {
            let mut memory = self.memory.write().unwrap_or_else(PoisonError::into_inner);
            memory.resize_with(segments, Mutex::default);
        }
        let memory = self.memory.read().unwrap_or_else(PoisonError::into_inner);
        let mut best: Vec<_> = queries.iter().map(|q| Best::new(q.wanted)).collect();
        let mut cells = Vec::with_capacity(SEGMENT as usize);
        for (number, segment) in memory.iter().enumerate() {
            if self.stop.stopped() {
                break;
            }
            let from = number as u64 * SEGMENT;
            let mut segment = lock(segment);
            let now = Instant::now();
            source.scan(from, places.min(from + SEGMENT), &mut |place, record| {
                let (cell, packet_rate, bit_rate) = segment.see(place, record, now);
                cells.push(cell);
                for best in &mut best {
                    best.offer(place, record, packet_rate, bit_rate);
                }
            });
            cells.sort_unstable_by_key(|cell: &Cell| cell.tag);
            segment.walked = Some(now);
            segment.cells.clear();
            segment.cells.reserve_exact(cells.len());
            segment.cells.append(&mut cells);
        }
        best.into_iter().map(Best::page).collect()
    }

    fn run(&self, source: &dyn Source) {
        let mut state = lock(&self.state);
        loop {
            while !self.stop.stopped() && !state.wanted() {
                state.warm = false;
                if !self.cold() {
                    *self.memory.write().unwrap_or_else(PoisonError::into_inner) = Vec::new();
                }
                state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
            }
            if self.stop.stopped() {
                return;
            }
            let (queries, first) = (state.live(), self.cold());
            drop(state);
            let begun = Instant::now();
            // A list needs rates, so the first walk only prepares the second.
            let pages = self.walk(source, if first { &[] } else { &queries });
            queries.iter().zip(pages).for_each(|(query, page)| query.publish(page));
            drop(queries);
            lock(&self.state).warm = !first;
            self.changed.notify_all();
            let took = begun.elapsed();
            self.stop.sleep_until((begun + PERIOD).max(begun + took * 4));
            state = lock(&self.state);
        }
    }

    fn cold(&self) -> bool {
        self.memory.read().unwrap_or_else(PoisonError::into_inner).is_empty()
    }
}

/// The thread that walks. Ends when dropped.
#[derive(Debug)]
pub(crate) struct Walks {
    board: Arc<Board>,
    thread: Option<JoinHandle<()>>,
}

impl Walks {
    pub(crate) fn start(source: Arc<dyn Source>, stop: &Arc<Stop>) -> io::Result<Self> {
        let stop = Arc::clone(stop);
        let board = Board { state: Mutex::default(), changed: Condvar::new(), memory: RwLock::default(), stop };
        let board = Arc::new(board);
        let own = Arc::clone(&board);
        let thread = thread::Builder::new().name("flows-walk".into()).spawn(move || own.run(&*source))?;
        Ok(Self { board, thread: Some(thread) })
    }

    pub(crate) fn board(&self) -> Arc<Board> {
        Arc::clone(&self.board)
    }
}

impl Drop for Walks {
    fn drop(&mut self) {
        self.board.stop.stop();
        // Under the lock, the thread cannot miss the notification: it has not checked yet, or it sleeps.
        drop(lock(&self.board.state));
        self.board.changed.notify_all();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
