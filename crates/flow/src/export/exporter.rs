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
    event::{Change, ExportEvent, Log},
    jsonl::JsonLines,
    output::Output,
    pace::Floor,
    queue::Queue,
    sink::Sink,
    spec::{ExportSpec, SinkSpec, UdpSpec},
    tcp::Tcp,
    udp::Udp,
};
use crate::{
    ipfix::{EncodeSpec, Version},
    protocol::ExportTotals,
    Record,
};

/// Records pulled at once.
const BATCH: usize = 4096;
/// Wait when the sources were empty. Sources do not notify.
const POLL_INTERVAL: Duration = Duration::from_millis(2);
/// Time that finishing may take beyond its deadline, for the last system call of a sink.
const SLACK: Duration = Duration::from_millis(500);

/// Where records of ended flows come from.
pub trait Records: Send {
    /// Appends up to `most` records to `into`. Never waits.
    fn pull(&mut self, into: &mut Vec<Record>, most: usize);

    /// Records lost so far because the queue to the exporter was full.
    fn missed(&self) -> u64 {
        0
    }
}

/// What happened to the records given to a sink.
#[derive(Debug, Clone, PartialEq)]
pub struct SinkStats {
    /// Its text form: `udp:HOST:PORT`.
    pub name: String,
    /// Records; those neither sent nor dropped are waiting. For UDP and TCP, sent means handed to the kernel; of TCP, those
    /// that a broken connection may have lost are uncertain until they are sent again.
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
    /// Limit of records per second, and the least rate near the end.
    pace: Option<u64>,
    floor: Floor,
    queue: Arc<Queue>,
    counters: Arc<Counters>,
    /// Closed when the thread ends.
    ended: Receiver<()>,
    thread: Option<JoinHandle<()>>,
}

impl Exporter {
    /// Starts all threads. Whether a sink is up is logged to `log` and in [`Exporter::stats`].
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

    /// For the time `within`, records wait in their sources instead of being dropped while the queue of a sink is full,
    /// unless the sink is down. For the end, when the packet path has stopped and a whole table of flows is exported.
    pub fn patient(&self, within: Duration) {
        let mut pulling = self.pulling.lock().unwrap_or_else(PoisonError::into_inner);
        pulling.patient = Some(Instant::now() + within);
    }

    /// Raises the rate of paced sinks so that all records are sent within about `within`. `in_all` is how many records each
    /// sink gets in all. Returns an event for each sink whose rate was raised.
    pub fn hasten(&self, in_all: u64, within: Duration) -> Vec<ExportEvent> {
        self.sinks.iter().filter_map(|sink| sink.hasten(in_all, within)).collect()
    }

    /// Exports the remaining records of the sources, waiting as in [`Exporter::patient`], and ends. Records not sent within
    /// `deadline` count as dropped, so that `records = sent + dropped` for every sink. Takes at most about half a second
    /// longer than `deadline`. Call it when the sources get no more records.
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
            // Ends when the sources are empty, or soon after the deadline.
            let _ = puller.join();
        }
        // Includes records pulled from the sources meanwhile.
        hasten(self);
        self.sinks.iter().for_each(|sink| sink.queue.end(by));
        for sink in &mut self.sinks {
            let left = by.saturating_duration_since(Instant::now()) + SLACK;
            match sink.ended.recv_timeout(left) {
                // Stuck in a system call (a dead NFS server, a name server): abandon the thread.
                Err(RecvTimeoutError::Timeout) => drop(sink.thread.take()),
                _ => _ = sink.thread.take().map(JoinHandle::join),
            }
            sink.counters.abandon();
        }
    }
}

impl Drop for Exporter {
    /// As [`Exporter::finish`] with a deadline of zero.
    fn drop(&mut self) {
        self.end(Duration::ZERO);
    }
}

impl Running {
    fn start(spec: &ExportSpec, sink: &SinkSpec, missed: &Arc<AtomicU64>, log: &Log) -> io::Result<Self> {
        let counters = Arc::new(Counters::new(missed));
        let queue = Arc::new(Queue::new(spec.queue));
        let encode = EncodeSpec {
            version: if let SinkSpec::Udp(to) = sink { to.version } else { Version::Ipfix },
            ports: spec.ports.clone(),
            names: !matches!(sink, SinkSpec::Udp(UdpSpec { names: false, .. })),
            sampling: spec.sampling,
            details: spec.details,
            short_flags: matches!(sink, SinkSpec::Udp(UdpSpec { short_flags: true, .. })),
            templates_again: if matches!(sink, SinkSpec::Udp(_)) { super::udp::TEMPLATES_AGAIN as usize } else { 0 },
            again: matches!(sink, SinkSpec::Tcp(_)),
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
            SinkSpec::Tcp(to) => {
                let name = sink.to_string();
                let log = Arc::clone(log);
                let log = Box::new(move |change| log(&ExportEvent { sink: name.clone(), change }));
                Box::new(Tcp::new(to.clone(), encode, spec, Arc::clone(&counters), log))
            }
            SinkSpec::Json(file) => {
                Box::new(JsonLines::new(file.clone(), &spec.ports, Arc::clone(&counters), Arc::clone(log)))
            }
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

    fn hasten(&self, in_all: u64, within: Duration) -> Option<ExportEvent> {
        let pace = self.pace?;
        let settled = self.counters.totals();
        let left = in_all.saturating_sub(settled.sent).saturating_sub(settled.dropped);
        // Plan with four fifths of the time: a busy machine is late.
        #[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        let rate = (left as f64 / (0.8 * within.as_secs_f64()).max(1e-3)).ceil() as u64;
        let before = self.floor.fetch_max(rate, Ordering::Relaxed);
        (rate > pace.max(before))
            .then(|| ExportEvent { sink: self.name.clone(), change: Change::RateRaised { left, from: pace, to: rate } })
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
    /// Whether the queue was full and is not half empty again, and the records dropped since then.
    dropping: Option<u64>,
}

impl Gate {
    fn new(sink: &Running, log: Log) -> Self {
        let (queue, counters) = (Arc::clone(&sink.queue), Arc::clone(&sink.counters));
        Self { name: sink.name.clone(), queue, counters, log, dropping: None }
    }

    fn log(&self, change: Change) {
        (self.log)(&ExportEvent { sink: self.name.clone(), change });
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
                self.log(Change::QueueFull { room });
            }
            *self.dropping.get_or_insert(0) += rest.len() as u64;
        } else if let Some(n) = self.dropping.filter(|_| queued <= self.queue.room() / 2) {
            self.dropping = None;
            self.log(Change::QueueDrained { dropped: n });
        }
    }
}

/// Instructions for the pulling thread.
#[derive(Debug, Clone, Copy, Default)]
struct Pulling {
    /// Leave records in the sources instead of dropping them, until this time.
    patient: Option<Instant>,
    /// End when the sources are empty, or at this time.
    stop: Option<Instant>,
}

fn pull(mut sources: Vec<Box<dyn Records>>, mut gates: Vec<Gate>, missed: &AtomicU64, pulling: &Mutex<Pulling>) {
    let mut batch = Vec::with_capacity(BATCH);
    loop {
        // Read before the sources, so that records from before the stop are seen.
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
                thread::sleep(POLL_INTERVAL);
            }
        }
        missed.store(sources.iter().map(|source| source.missed()).sum(), Ordering::Relaxed);
        if how.stop.is_some_and(|by| !any || Instant::now() >= by + SLACK) {
            return;
        }
        if !any {
            // Notices a queue that has emptied meanwhile.
            gates.iter_mut().for_each(|gate| gate.give(&[]));
            thread::sleep(POLL_INTERVAL);
        }
    }
}
