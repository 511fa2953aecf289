//! Pages of flows, read from the live table.

use std::{
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use net::lock;

use super::{walks::Board, Matcher};
use crate::{
    protocol::{Page, Row},
    Source,
};

/// Most places walked for one page, once it has a flow.
const WALK: u64 = 1 << 18;
/// Most places walked for a page that is still empty.
const LONG_WALK: u64 = 1 << 21;
/// Fewest places walked at once.
const STEP: u64 = 256;

/// Pages of the live table. One client reads at a time, so that at most one reads the memory of the packet path.
pub(crate) struct Pages {
    source: Arc<dyn Source>,
    turn: Mutex<()>,
}

impl Pages {
    pub(crate) fn new(source: Arc<dyn Source>) -> Self {
        Self { source, turn: Mutex::new(()) }
    }

    pub(crate) fn source(&self) -> &dyn Source {
        &*self.source
    }

    /// Where a page begins. A cursor is the number of a place, so it stays good while flows come and go.
    pub(crate) fn start(&self, cursor: Option<&str>) -> Result<u64, String> {
        let Some(text) = cursor else { return Ok(0) };
        let number = Some(text).filter(|t| t.len() <= 20 && t.bytes().all(|b| b.is_ascii_digit()));
        match number.and_then(|t| t.parse().ok()) {
            Some(place) if place <= self.source.places() => Ok(place),
            _ => Err(format!(
                "cursor {:?}: must be the `next` of a page of this logger, or absent to start",
                text.chars().take(40).collect::<String>()
            )),
        }
    }

    /// The page from a cursor on, and how long the walk took.
    pub(crate) fn page(&self, from: u64, limit: usize, filter: &Matcher, rates: Option<&Board>) -> (Page, Duration) {
        let turn = lock(&self.turn);
        let begun = Instant::now();
        let places = self.source.places();
        let [enough, end] = [WALK, LONG_WALK].map(|walk| places.min(from.saturating_add(walk)));
        let mut rows: Vec<(u64, Row)> = Vec::new();
        let mut place = from;
        while place < if rows.is_empty() { end } else { enough } && rows.len() < limit {
            // A place has at most one flow, so this many places give hardly more flows than wanted.
            let to = end.min(place + STEP.max((limit - rows.len()) as u64));
            let known = rows.len();
            self.source.scan(place, to, &mut |at, record| {
                if filter.matches(record) {
                    rows.push((at, Row { record: *record, packet_rate: 0.0, bit_rate: 0.0 }));
                }
            });
            if let Some(new) = rows.get_mut(known..) {
                new.sort_unstable_by_key(|(at, _)| *at);
            }
            place = match rows.get(limit) {
                Some((beyond, _)) => *beyond,
                None => to,
            };
            rows.truncate(limit);
        }
        let took = begun.elapsed();
        drop(turn);
        if let Some(board) = rates {
            board.rates(&mut rows);
        }
        let flows = rows.into_iter().map(|(_, row)| row).collect();
        (Page { flows, next: (place < places).then(|| place.to_string()), matching: None }, took)
    }
}
