//! The exporter: pulls records from their sources and gives them to every sink.

use std::{
    io,
    sync::{
        atomic::{AtomicU64, Ordering},
        mpsc::{channel, Receiver, RecvTimeoutError, Sender},
        Arc, Mutex, PoisonError,
    },
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use super::{
    counters::Counters,
    jsonl::JsonLines,
    output::{Log, Output},
    pace::Floor,
    queue::Queue,
    sink::Sink,
    spec::{ExportSpec, SinkSpec},
    tcp::Tcp,
    udp::Udp,
};
use crate::{ipfix::EncodeSpec, protocol::ExportTotals, Record};

/// Records pulled at once.
const BATCH: usize = 4096;
/// How long to wait when there was nothing to pull. The sources are rings without a bell.
const NAP: Duration = Duration::from_millis(2);
/// What finishing may take beyond its deadline: a sink's last system call.
const SLACK: Duration = Duration::from_millis(500);

/// Where records of ended flows come from.
pub trait Records: Send {
    /// Moves up to `most` records behind those in `into`. Never waits.
    fn pull(&mut self, into: &mut Vec<Record>, most: usize);

    /// Records that found no room on their way to here, so far.
    fn missed(&self) -> u64 {
        0
    }
}

/// What became of the records given to a sink.
#[derive(Debug, Clone, PartialEq)]
pub struct SinkStats {
    /// Which, as it is written: `udp:HOST:PORT`.
    pub name: String,
    /// Records; those neither sent nor dropped are under way. For UDP and TCP sent means given to the network.
    pub totals: ExportTotals,
    /// Whether it takes records now, as far as is known.
    pub up: bool,
    /// Records in its queue.
    pub queued: u64,
    /// Messages sent, or writes.
    pub messages: u64,
    /// Their bytes.
    pub octets: u64,
}

/// Exports records until it is finished.
#[derive(Debug)]
pub struct Exporter {
    sinks: Vec<Running>,
    pulling: Arc<Mutex<Pulling>>,
    puller: Option<JoinHandle<()>>,
}

/// A sink with its thread.
#[derive(Debug)]
struct Running {
    name: String,
    /// Records a second it is held to, and what it is to make at least.
    pace: Option<u64>,
    floor: Floor,
    queue: Arc<Queue>,
    counters: Arc<Counters>,
    /// Hangs up when the thread ends.
    ended: Receiver<()>,
    thread: Option<JoinHandle<()>>,
}

impl Exporter {
    /// Starts all threads. Sinks come up, or do not, on their own: see `log` and [`Exporter::stats`].
    ///
    /// # Errors
    ///
    /// A thread cannot be started.
    pub fn start(spec: &ExportSpec, sources: Vec<Box<dyn Records>>, log: Log) -> io::Result<Self> {
        let pulling = Arc::new(Mutex::new(Pulling::default()));
        let mut this = Self { sinks: Vec::new(), pulling: Arc::clone(&pulling), puller: None };
        let missed = Arc::new(AtomicU64::new(0));
        for sink in &spec.sinks {
            this.sinks.push(Running::start(spec, sink, &missed, &log)?);
        }
        let gates = this.sinks.iter().map(|sink| Gate::new(sink, Arc::clone(&log))).collect();
        this.puller =
            Some(thread::Builder::new().name("export".into()).spawn(move || pull(sources, gates, &missed, &pulling))?);
        Ok(this)
    }

    /// Each sink, in the order of [`ExportSpec::sinks`].
    pub fn stats(&self) -> Vec<SinkStats> {
        self.sinks.iter().map(Running::stats).collect()
    }

    /// From now on, for `within`, records stay in their sources rather than be dropped when a sink that is not down has no
    /// room at the moment. For the end, when the packet path has stopped and a whole table of flows is written out.
    pub fn patient(&self, within: Duration) {
        let mut pulling = self.pulling.lock().unwrap_or_else(PoisonError::into_inner);
        pulling.patient = Some(Instant::now() + within);
    }

    /// Has what is left leave within about `within`, if the pace of a collector is slower: records that leave faster than
    /// it may like can still arrive, those that wait too long cannot. `in_all` is how many records each sink will have been
    /// given by then. One line for each sink that is hastened.
    pub fn hasten(&self, in_all: u64, within: Duration) -> Vec<String> {
        self.sinks.iter().filter_map(|sink| sink.hasten(in_all, within)).collect()
    }

    /// Exports what the sources still have, with the patience of [`Exporter::patient`], and ends. What could not be sent
    /// within `deadline` counts as dropped: then `records = sent + dropped` for every sink. Takes half a second or so
    /// longer than `deadline` at most. Call it when the sources get no more.
    pub fn finish(mut self, deadline: Duration) -> Vec<SinkStats> {
        self.end(deadline);
        self.stats()
    }

    fn end(&mut self, deadline: Duration) {
        let by = Instant::now() + deadline;
        *self.pulling.lock().unwrap_or_else(PoisonError::into_inner) = Pulling { patient: Some(by), stop: Some(by) };
        let hasten = |this: &Self| {
            for sink in &this.sinks {
                let in_all = sink.counters.totals().records;
                let _ = sink.hasten(in_all, by.saturating_duration_since(Instant::now()));
            }
        };
        hasten(self);
        if let Some(puller) = self.puller.take() {
            // Ends when its sources are empty, and not much behind the deadline if they never are.
            let _ = puller.join();
        }
        // With what came out of the sources meanwhile.
        hasten(self);
        self.sinks.iter().for_each(|sink| sink.queue.end(by));
        for sink in &mut self.sinks {
            let left = by.saturating_duration_since(Instant::now()) + SLACK;
            match sink.ended.recv_timeout(left) {
                // Stuck in a system call (a dead NFS server, a name server): left behind.
                Err(RecvTimeoutError::Timeout) => drop(sink.thread.take()),
                _ => _ = sink.thread.take().map(JoinHandle::join),
            }
            sink.counters.abandon();
        }
    }
}

impl Drop for Exporter {
    /// As [`Exporter::finish`] with no time given; nothing is left to do behind that.
    fn drop(&mut self) {
        self.end(Duration::ZERO);
    }
}

impl Running {
    fn start(spec: &ExportSpec, sink: &SinkSpec, missed: &Arc<AtomicU64>, log: &Log) -> io::Result<Self> {
        let counters = Arc::new(Counters::new(missed));
        let queue = Arc::new(Queue::new(spec.queue));
        let encode = EncodeSpec {
            domain: spec.domain,
            biflow: spec.biflow,
            distinguish: spec.distinguish,
            message_bytes: spec.message_bytes.unwrap_or(super::udp::MESSAGE_BYTES),
        };
        let (floor, mut pace) = (Floor::default(), None);
        let output: Box<dyn Output> = match sink {
            SinkSpec::Udp(to) => {
                pace = to.records_per_s;
                Box::new(Udp::new(to, Arc::clone(&floor), encode, spec, Arc::clone(&counters)))
            }
            SinkSpec::Tcp(to) => Box::new(Tcp::new(to, encode, spec, Arc::clone(&counters))),
            SinkSpec::Json(file) => Box::new(JsonLines::new(file.clone(), Arc::clone(&counters), Arc::clone(log))),
        };
        let name = sink.to_string();
        let sink = Sink::new(name.clone(), Arc::clone(&queue), Arc::clone(&counters), Arc::clone(log), output);
        let (end, ended): (Sender<()>, _) = channel();
        let thread = thread::Builder::new().name("export-sink".into()).spawn(move || {
            sink.run();
            drop(end);
        })?;
        Ok(Self { name, pace, floor, queue, counters, ended, thread: Some(thread) })
    }

    fn hasten(&self, in_all: u64, within: Duration) -> Option<String> {
        let pace = self.pace?;
        let settled = self.counters.totals();
        let left = in_all.saturating_sub(settled.sent).saturating_sub(settled.dropped);
        // A fifth less than there is: a machine that is busy is late.
        #[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        let rate = (left as f64 / (0.8 * within.as_secs_f64()).max(1e-3)).ceil() as u64;
        let before = self.floor.fetch_max(rate, Ordering::Relaxed);
        (rate > pace.max(before)).then(|| {
            format!(
                "export to {}: {left} records left at the end: sent at {rate}/s, not {pace}/s, to be done",
                self.name
            )
        })
    }

    fn stats(&self) -> SinkStats {
        let (messages, octets) = self.counters.messages();
        SinkStats {
            name: self.name.clone(),
            totals: self.counters.totals(),
            up: self.counters.up.load(Ordering::Relaxed),
            queued: self.queue.len() as u64,
            messages,
            octets,
        }
    }
}

/// Where the pulling thread puts records for a sink.
struct Gate {
    name: String,
    queue: Arc<Queue>,
    counters: Arc<Counters>,
    log: Log,
    /// The queue was full and has not become half empty since; and what was dropped since then.
    dropping: Option<u64>,
}

impl Gate {
    fn new(sink: &Running, log: Log) -> Self {
        let (queue, counters) = (Arc::clone(&sink.queue), Arc::clone(&sink.counters));
        Self { name: sink.name.clone(), queue, counters, log, dropping: None }
    }

    fn is_down(&self) -> bool {
        self.counters.down.load(Ordering::Relaxed)
    }

    fn room(&self) -> usize {
        self.queue.room().saturating_sub(self.queue.len())
    }

    fn give(&mut self, records: &[Record]) {
        self.counters.given(records.len());
        let (taken, queued) = self.queue.push(records);
        let rest = records.get(taken..).unwrap_or_default();
        if !rest.is_empty() {
            self.counters.dropped(rest);
            let room = self.queue.room();
            if self.dropping.is_none() {
                (self.log)(&format!("export to {}: its queue of {room} records is full; dropping records", self.name));
            }
            *self.dropping.get_or_insert(0) += rest.len() as u64;
        } else if let Some(n) = self.dropping.filter(|_| queued <= self.queue.room() / 2) {
            self.dropping = None;
            (self.log)(&format!("export to {}: its queue has room again; {n} records were dropped", self.name));
        }
    }
}

/// How the pulling thread is to go on.
#[derive(Debug, Clone, Copy, Default)]
struct Pulling {
    /// Rather leave records in the sources than drop them, until then.
    patient: Option<Instant>,
    /// End when there are none, or at this time.
    stop: Option<Instant>,
}

fn pull(mut sources: Vec<Box<dyn Records>>, mut gates: Vec<Gate>, missed: &AtomicU64, pulling: &Mutex<Pulling>) {
    let mut batch = Vec::with_capacity(BATCH);
    loop {
        // Before the look at the sources: what came before the stop is seen.
        let how = *pulling.lock().unwrap_or_else(PoisonError::into_inner);
        let patient = how.patient.is_some_and(|until| Instant::now() < until);
        let mut any = false;
        for source in &mut sources {
            let room = gates.iter().filter(|gate| patient && !gate.is_down()).map(Gate::room).min();
            let most = BATCH.min(room.unwrap_or(BATCH));
            any |= most == 0;
            batch.clear();
            source.pull(&mut batch, most);
            if !batch.is_empty() {
                any = true;
                gates.iter_mut().for_each(|gate| gate.give(&batch));
            } else if most == 0 {
                thread::sleep(NAP);
            }
        }
        missed.store(sources.iter().map(|source| source.missed()).sum(), Ordering::Relaxed);
        if how.stop.is_some_and(|by| !any || Instant::now() >= by + SLACK) {
            return;
        }
        if !any {
            // So that a queue that has emptied meanwhile is noticed.
            gates.iter_mut().for_each(|gate| gate.give(&[]));
            thread::sleep(NAP);
        }
    }
}
