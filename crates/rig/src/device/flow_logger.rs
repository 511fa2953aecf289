//! The flow logger over DPDK ports: one loop and one table for each lcore, and what other threads read of them.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use dataplane::{
    flowlog::{FlowLog, PortCounters, PortCounts},
    Forwarder, Settings, Snapshot,
};
use dpdk::{Eal, Port, RxQueue, SharedWords, Tsc, TxQueue};
use flow::{
    decode::{DecodeSpec, NotIp},
    export::{ExportEvent, Exporter, Records, SinkStats},
    ipfix,
    protocol::{ExportTotals, Interface, Sink, TableTotals, Totals},
    table::{table, EndedReader, Prefetch, Reader, TableSpec, Timebase},
    Record, Source,
};
use packet::{since_1970, Captured, Clock, ClockPair};

use failure::Failure;

use super::plane::{queues, Polled};

/// A logging loop over DPDK ports.
pub type LogLoop = Forwarder<FlowLog<SharedWords, Fetch>, RxQueue, TxQueue, Tsc>;

/// Records of ended flows that can wait for export, for each lcore and IP version: more than 0.1 s at a million flows a
/// second.
pub(crate) const ENDED: usize = 1 << 17;

/// Prefetches by the processor's instruction.
#[derive(Debug, Clone, Copy)]
pub struct Fetch;

impl Prefetch for Fetch {
    #[inline(always)]
    fn prefetch<T>(&self, at: &T) {
        dpdk::prefetch(at);
    }
}

/// What a flow logger is built from.
#[derive(Debug, Clone)]
pub struct LogSpec {
    /// The table of each lcore.
    pub table: TableSpec,
    /// How frames are read.
    pub decode: DecodeSpec,
    /// Whether a port without a second sends back what it receives.
    pub reflect: bool,
    /// Whether no frame passes from port to port.
    pub receive_only: bool,
    /// How the loops behave.
    pub settings: Settings,
}

impl LogSpec {
    /// MiB of the tables of `lcores` lcores, with the overhead of DPDK's heap.
    pub fn tables_mib(&self, lcores: usize) -> u32 {
        let each = (self.table.words() * 8).div_ceil(1 << 20) + 4;
        u32::try_from(each * lcores).unwrap_or(u32::MAX)
    }
}

/// The loops, the ports, and what other threads read.
pub struct Logger {
    /// The loops, each for an lcore of its own.
    pub loops: Vec<LogLoop>,
    /// The open ports. Their queues are in the loops.
    pub ports: Vec<Port>,
    /// What other threads read.
    pub logged: Arc<Logged>,
    /// Records of ended flows, for export.
    pub ended: Vec<Box<dyn Records>>,
}

impl Logger {
    /// Builds the loops over these open ports, which `interfaces` names for collectors and whose transmit queue `n` is for lcore `n`.
    ///
    /// # Errors
    ///
    /// (machine) when the memory for a table is lacking; (usage) for a queue that a port does not have.
    pub fn new(
        eal: &'static Eal,
        spec: &LogSpec,
        mut ports: Vec<Port>,
        names: &[String],
        interfaces: Vec<ipfix::Port>,
        polled: &[Polled],
    ) -> Result<Self, Failure> {
        let clock = Tsc::new(eal);
        let captured = captured(&ports);
        // For a capture, ticks are nanoseconds since the Unix epoch.
        let is_captured = captured.len() == 1;
        let timebase = if is_captured { Timebase::new(0, 0, 1_000_000_000) } else { anchor(&clock) };
        let timebase = Arc::new(Mutex::new(timebase));
        let (mut loops, mut readers, mut counters) = (Vec::new(), Vec::new(), Vec::new());
        let mut ended: Vec<Box<dyn Records>> = Vec::new();
        for lcore in 0..polled.iter().map(|p| p.lcore + 1).max().unwrap_or(1) {
            let memory = SharedWords::new(eal, spec.table.words())?;
            let (worker, reader, records) = table(&spec.table, memory, *lock(&timebase), ENDED)?;
            let mut function = FlowLog::new(ports.len(), spec.reflect, spec.decode, worker, Fetch);
            if spec.receive_only {
                function = function.receive_only();
            }
            for (port, captured) in &captured {
                let captured = Arc::clone(captured);
                function = match is_captured {
                    true => function.captured(*port, captured),
                    false => function.captured_lengths(*port, captured),
                };
            }
            for (port, length) in ports.iter().enumerate().filter_map(|(n, port)| Some((n, port.cut_length()?))) {
                function = function.cut_length(port, length);
            }
            counters.push(function.ports());
            ended.push(Box::new(Ended::new(records, reader.clone(), Arc::clone(&timebase))));
            readers.push(reader);
            let (inputs, tx) = queues(&mut ports, polled, lcore)?;
            loops.push(Forwarder::new(function, inputs, tx, clock, spec.settings));
        }
        let logged = Logged {
            clock,
            timebase,
            is_captured,
            begun: Instant::now(),
            names: names.to_vec(),
            interfaces,
            readers: Mutex::new(readers),
            counters,
            seen: Mutex::default(),
            exporter: Mutex::default(),
            exported: Mutex::default(),
        };
        Ok(Self { loops, ports, logged: Arc::new(logged), ended })
    }
}

/// The ports whose captures Linerate itself reads, and what those say of their frames. Only of a single one flows have the
/// times: the frames of several are not read in the order of their times.
fn captured(ports: &[Port]) -> Vec<(usize, Arc<Captured>)> {
    let captured = |(n, port): (usize, &Port)| Some((n, Arc::clone(port.progress()?.captured())));
    ports.iter().enumerate().filter_map(captured).collect()
}

/// Both clocks at one moment: the fastest of a few readings.
pub(crate) fn anchor(clock: &Tsc) -> Timebase {
    let pair = ClockPair::wall(clock);
    Timebase::new(pair.ticks, u64::try_from(pair.time.as_nanos()).unwrap_or(u64::MAX), clock.hz())
}

/// Locks; a poisoned lock is fine, because nothing under it leaves half a change.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A worker's records on their way to export.
pub(crate) struct Ended {
    records: EndedReader,
    /// Has the count of records that found no room.
    reader: Reader<SharedWords>,
    timebase: Arc<Mutex<Timebase>>,
}

impl Ended {
    /// Records with times of this base, as it is when they are pulled.
    pub(crate) fn new(records: EndedReader, reader: Reader<SharedWords>, timebase: Arc<Mutex<Timebase>>) -> Self {
        Self { records, reader, timebase }
    }
}

impl Records for Ended {
    fn pull(&mut self, into: &mut Vec<Record>, most: usize) {
        self.records.anchor(*lock(&self.timebase));
        into.extend(std::iter::from_fn(|| self.records.pop()).take(most));
    }

    fn missed(&self) -> u64 {
        self.reader.counts().dropped_records
    }
}

/// The kinds of frames other than IP that came, by name; those that are not decoded by EtherType, as far as these are known.
fn kinds(counts: &[u64; NotIp::KINDS], types: impl Iterator<Item = (u16, u64)>) -> BTreeMap<String, u64> {
    let came = NotIp::ALL.into_iter().zip(counts);
    let mut kinds: BTreeMap<_, _> = came.map(|(kind, n)| (kind.name().to_owned(), *n)).collect();
    for (ether_type, n) in types {
        if let Some(rest) = kinds.get_mut(NotIp::Other.name()) {
            *rest = rest.saturating_sub(n);
        }
        *kinds.entry(format!("EtherType 0x{ether_type:04x}")).or_default() += n;
    }
    kinds.retain(|_, n| *n > 0);
    kinds
}

/// What the driver and the loops said about a port when it was last read.
#[derive(Debug, Clone, Copy, Default)]
struct PortSeen {
    missed: u64,
    tx_dropped: u64,
    up: bool,
    /// Whether it has cut frames.
    cuts: bool,
}

/// What is said once of a port that cuts frames.
const CUT: &str =
    "frames longer than its buffers arrive, and are cut. Each counts as one packet, with the bytes of its IP header. \
                   Offloads make such frames: turn off gro at this interface, tso and gso at the sender (ethtool -K)";

/// Everything counted, for any thread.
pub struct Logged {
    clock: Tsc,
    /// How ticks become times. It follows the wall clock each second.
    timebase: Arc<Mutex<Timebase>>,
    /// Whether times are those of a capture.
    is_captured: bool,
    begun: Instant,
    names: Vec<String>,
    interfaces: Vec<ipfix::Port>,
    readers: Mutex<Vec<Reader<SharedWords>>>,
    /// By lcore, by port.
    counters: Vec<Vec<Arc<PortCounters>>>,
    seen: Mutex<Vec<PortSeen>>,
    exporter: Mutex<Option<Exporter>>,
    /// What became of the records, by sink, when export ended.
    exported: Mutex<Vec<SinkStats>>,
}

impl Logged {
    /// Takes the exporter.
    pub fn export(&self, exporter: Exporter) {
        *lock(&self.exporter) = Some(exporter);
    }

    /// Records in the longest queue of a collector that is up.
    pub fn queued(&self) -> u64 {
        let exporter = lock(&self.exporter);
        let waiting = exporter.iter().flat_map(Exporter::stats).filter(|sink| sink.up).map(|sink| sink.queued);
        waiting.max().unwrap_or_default()
    }

    /// Names of the sinks that have not sent all their records, or may have to send some again; and whether each of them is up.
    /// `None`: not all records are with the sinks yet.
    pub fn waited_for(&self) -> Option<Vec<(String, bool)>> {
        let ended = self.ended();
        let exporter = lock(&self.exporter);
        let sinks: Vec<_> = exporter.iter().flat_map(Exporter::stats).collect();
        let whole = sinks.iter().all(|sink| sink.totals.records >= ended);
        let waits = |sink: &SinkStats| {
            let ExportTotals { records, sent, dropped, uncertain, .. } = sink.totals;
            records.saturating_sub(sent + dropped) > 0 || uncertain > 0 && !sink.up
        };
        whole.then(|| sinks.into_iter().filter(waits).map(|sink| (sink.name, sink.up)).collect())
    }

    /// Records made so far that had room on their way to the exporter.
    fn ended(&self) -> u64 {
        let counts: Vec<_> = lock(&self.readers).iter().map(|reader| reader.counts()).collect();
        let ended: u64 = counts.iter().flat_map(|counts| counts.ended).sum();
        ended.saturating_sub(counts.iter().map(|counts| counts.dropped_records).sum())
    }

    /// To be called before the tables are flushed: makes all records leave within about this time, whatever the paces of the
    /// collectors. Returns a line for each collector that gets records faster than its pace.
    pub fn hasten(&self, within: Duration) -> Vec<ExportEvent> {
        let in_all = self.totals().table.flows + self.ended();
        lock(&self.exporter).as_ref().map(|exporter| exporter.hasten(in_all, within)).unwrap_or_default()
    }

    /// Ends the export within about this time. Returns what became of the records, by sink.
    pub fn finish_export(&self, deadline: Duration) -> Vec<SinkStats> {
        let exporter = {
            let mut exporter = lock(&self.exporter);
            // While it ends, clients and scrapers read these counts.
            *lock(&self.exported) = exporter.as_ref().map(Exporter::stats).unwrap_or_default();
            exporter.take()
        };
        let Some(exporter) = exporter else { return Vec::new() };
        let sinks = exporter.finish(deadline);
        (*lock(&self.exported)).clone_from(&sinks);
        sinks
    }

    /// Reads the ports and the clocks; to be called each second. Returns a line for each link that has changed, and
    /// for each port that has begun to cut frames.
    pub fn look(&self, ports: &[Port], lcores: &[Snapshot]) -> Vec<String> {
        let seen = |(n, port): (usize, &Port)| {
            // Frames that found the queue of their egress port full.
            let egress = if n ^ 1 < ports.len() { n ^ 1 } else { n };
            let refused = |l: &Snapshot| l.tx.get(egress).map_or(0, |tx| tx.refused);
            PortSeen {
                missed: port.stats().map_or(0, |stats| stats.imissed + stats.rx_nombuf),
                tx_dropped: lcores.iter().map(refused).sum(),
                up: port.link().up,
                cuts: self.counts(n).cut > 0,
            }
        };
        let now: Vec<_> = ports.iter().enumerate().map(seen).collect();
        let before = std::mem::replace(&mut *lock(&self.seen), now.clone());
        let changed = self.names.iter().zip(before.iter().zip(&now));
        let lines = changed.flat_map(|(name, (before, now))| {
            let link =
                (before.up != now.up).then(|| format!("port {name}: link {}", if now.up { "up" } else { "down" }));
            let cut = (!before.cuts && now.cuts).then(|| format!("port {name}: {CUT}"));
            [link, cut].into_iter().flatten()
        });
        let timebase = {
            let mut timebase = lock(&self.timebase);
            if !self.is_captured {
                timebase.follow(anchor(&self.clock));
            }
            *timebase
        };
        lock(&self.readers).iter_mut().for_each(|reader| reader.anchor(timebase));
        lines.collect()
    }

    /// The ports as collectors see them.
    pub fn interfaces(&self) -> &[ipfix::Port] {
        &self.interfaces
    }

    /// What all lcores counted on a port.
    fn counts(&self, port: usize) -> PortCounts {
        let mut counts = PortCounts::default();
        self.counters.iter().filter_map(|lcore| lcore.get(port)).for_each(|c| counts += c.read());
        counts
    }

    fn interface(&self, port: usize, name: &str) -> Interface {
        let counts = self.counts(port);
        let types = self.counters.iter().filter_map(|lcore| lcore.get(port)).flat_map(|c| c.types());
        let seen = lock(&self.seen).get(port).copied().unwrap_or_default();
        Interface {
            port: port as u8,
            name: name.to_owned(),
            index: self.interfaces.get(port).map_or(0, |interface| interface.index),
            packets: counts.packets,
            bytes: counts.bytes,
            not_ip: counts.not_ip.iter().sum(),
            not_ip_kinds: kinds(&counts.not_ip, types),
            malformed: counts.malformed,
            cut: counts.cut,
            missed: seen.missed,
            tx_dropped: seen.tx_dropped,
            up: seen.up,
            ..Interface::default()
        }
    }
}

impl Source for Logged {
    fn totals(&self) -> Totals {
        let mut table = TableTotals::default();
        let mut lost = 0;
        for reader in lock(&self.readers).iter() {
            let counts = reader.counts();
            table.flows += counts.flows;
            table.capacity += reader.capacity();
            table.memory += reader.memory();
            table.created += counts.created;
            table.ended.iter_mut().zip(counts.ended).for_each(|(sum, n)| *sum += n);
            table.refused_packets += counts.refused_packets;
            table.evicted += counts.evicted;
            lost += counts.dropped_records;
        }
        let sinks = lock(&self.exporter).as_ref().map_or_else(|| lock(&self.exported).clone(), Exporter::stats);
        let sum = |of: fn(&ExportTotals) -> u64| sinks.iter().map(|sink| of(&sink.totals)).sum::<u64>();
        Totals {
            at: u64::try_from(since_1970().as_nanos()).unwrap_or(u64::MAX),
            uptime_s: self.begun.elapsed().as_secs_f64(),
            interfaces: self.names.iter().enumerate().map(|(port, name)| self.interface(port, name)).collect(),
            table,
            // A record that found no room between an lcore and the exporter counts as given and dropped.
            export: ExportTotals {
                records: sum(|t| t.records) + lost,
                sent: sum(|t| t.sent),
                dropped: sum(|t| t.dropped) + lost,
                uncertain: sum(|t| t.uncertain),
                resent: sum(|t| t.resent),
            },
            sinks: sinks
                .into_iter()
                .map(|s| Sink { name: s.name, up: s.up, queued: s.queued, totals: s.totals })
                .collect(),
        }
    }

    fn places(&self) -> u64 {
        lock(&self.readers).iter().map(Reader::places).sum()
    }

    fn scan(&self, from: u64, to: u64, visit: &mut dyn FnMut(u64, &Record)) {
        // A walk takes long, so it holds no lock.
        let readers = lock(&self.readers).clone();
        let mut first = 0;
        for reader in readers {
            let places = reader.places();
            let (start, end) = (from.saturating_sub(first), to.saturating_sub(first).min(places));
            if start < end {
                reader.scan(start, end, &mut |place, record| visit(first + place, record));
            }
            first += places;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_that_are_not_decoded_are_told_by_ether_type() {
        let mut counts = [0; NotIp::KINDS];
        counts[NotIp::Arp as usize] = 3;
        counts[NotIp::Other as usize] = 9;
        let told = |types: &[(u16, u64)]| format!("{:?}", kinds(&counts, types.iter().copied()));
        assert_eq!(told(&[]), r#"{"ARP": 3, "other EtherTypes": 9}"#);
        // Of two lcores.
        let of_two = told(&[(0x88f7, 4), (0x892f, 1), (0x88f7, 2)]);
        assert_eq!(of_two, r#"{"ARP": 3, "EtherType 0x88f7": 6, "EtherType 0x892f": 1, "other EtherTypes": 2}"#);
        // Counted a moment before the kinds are.
        assert_eq!(told(&[(0x88f7, 10)]), r#"{"ARP": 3, "EtherType 0x88f7": 10}"#);
    }
}
