//! One sink: takes records from its queue and keeps its output open.

use std::{
    sync::{atomic::Ordering, Arc},
    thread,
    time::{Duration, Instant},
};

use super::{
    counters::Counters,
    event::{Change, ExportEvent, Log},
    output::{Output, Trouble},
    queue::Queue,
};
use crate::Record;

/// Records taken from the queue at once.
const BATCH: usize = 1024;
/// Longest wait for records before other checks.
const LOOK: Duration = Duration::from_millis(50);
/// The first wait after a sink went down; each further one is twice as long.
const BACK_OFF: Duration = Duration::from_millis(100);
/// A sink that was down counts as up after this long without an error.
const BELIEVED: Duration = Duration::from_secs(1);
/// After being up for this long, a sink begins with the first wait again.
const STEADY: Duration = Duration::from_secs(10);
/// The longest wait.
const BACK_OFF_MOST: Duration = Duration::from_secs(5);

/// A sink: takes records from its queue and sends them to its output, which it opens again after errors.
pub(super) struct Sink {
    name: String,
    queue: Arc<Queue>,
    counters: Arc<Counters>,
    log: Log,
    output: Box<dyn Output>,
    state: State,
    back_off: Duration,
    /// The error that was logged last, until the sink is up again. Each error is logged once.
    logged: Option<Change>,
    ending: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Up { since: Instant },
    Down { until: Instant },
}

impl Sink {
    pub fn new(name: String, queue: Arc<Queue>, counters: Arc<Counters>, log: Log, output: Box<dyn Output>) -> Self {
        let state = State::Down { until: Instant::now() };
        Self { name, queue, counters, log, output, state, back_off: BACK_OFF, logged: None, ending: false }
    }

    /// Runs until the queue has ended and is empty, or its deadline has passed.
    pub fn run(mut self) {
        let mut batch: Vec<Record> = Vec::with_capacity(BATCH);
        let mut done = 0;
        loop {
            let end = self.queue.ends();
            if end.is_some() && !self.ending {
                // One more time, without waiting.
                self.ending = true;
                self.back_off = BACK_OFF;
                if !self.is_up() {
                    self.state = State::Down { until: Instant::now() };
                }
            }
            self.open();
            if done == batch.len() {
                batch.clear();
                done = 0;
                if self.is_up() {
                    self.queue.take(&mut batch, BATCH, LOOK);
                }
            }
            let all_sent = batch.is_empty() && self.queue.len() == 0 && !self.output.has_pending();
            if end.is_some_and(|by| all_sent || Instant::now() >= by) {
                break;
            }
            if self.is_up() {
                let result = match batch.get(done..) {
                    Some(rest) if !rest.is_empty() => self.output.send(rest),
                    _ => Ok(0),
                };
                let result = result.and_then(|n| {
                    done += n;
                    self.output.tick().map(|()| n > 0)
                });
                self.check(result);
            } else {
                thread::sleep(LOOK.min(Duration::from_millis(20)));
            }
        }
        if self.is_up() {
            self.output.close();
        }
        // Too late for these records.
        self.counters.dropped(batch.get(done..).unwrap_or_default());
        loop {
            batch.clear();
            self.queue.take(&mut batch, BATCH, Duration::ZERO);
            if batch.is_empty() {
                break;
            }
            self.counters.dropped(&batch);
        }
        self.counters.up.store(false, Ordering::Relaxed);
    }

    fn log(&self, change: Change) {
        (self.log)(&ExportEvent { sink: self.name.clone(), change });
    }

    fn is_up(&self) -> bool {
        matches!(self.state, State::Up { .. })
    }

    /// Opens the output if it is down and the next try is due.
    fn open(&mut self) {
        if matches!(self.state, State::Down { until } if Instant::now() >= until) {
            let result = self.output.open();
            if result.is_ok() {
                self.state = State::Up { since: Instant::now() };
            }
            // A sink that was down counts as up after a successful send.
            let believed = self.logged.is_none();
            self.check(result.map(|()| believed));
        }
    }

    /// Handles the result of a call: success with or without a send, or an error.
    fn check(&mut self, result: Result<bool, Trouble>) {
        let trouble = match result {
            Ok(through) => {
                let believed = matches!(self.state, State::Up { since } if through || since.elapsed() >= BELIEVED);
                if believed && !self.counters.up.swap(true, Ordering::Relaxed) {
                    self.counters.down.store(false, Ordering::Relaxed);
                    self.logged = None;
                    self.log(Change::Up);
                }
                return;
            }
            Err(trouble) => trouble,
        };
        if matches!(self.state, State::Up { since } if since.elapsed() >= STEADY) {
            self.back_off = BACK_OFF;
        }
        self.counters.up.store(false, Ordering::Relaxed);
        self.counters.down.store(true, Ordering::Relaxed);
        let down = Change::Down { kind: trouble.kind(), why: trouble.to_string() };
        if self.logged.as_ref() != Some(&down) {
            self.log(down.clone());
            self.logged = Some(down);
        }
        self.state = State::Down { until: Instant::now() + self.back_off };
        self.back_off = (self.back_off * 2).min(BACK_OFF_MOST);
    }
}
