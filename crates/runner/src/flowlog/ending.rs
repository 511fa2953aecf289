//! The end of a logger: every flow is recorded, every record is exported, and the totals are reported.

use std::time::{Duration, Instant};

use flow::{
    export::SinkStats,
    protocol::{ExportTotals, Totals},
};
use rig::device::{LogLoop, Logged};

/// How long flushing may take in all, and how long without progress.
const FLUSH: Duration = Duration::from_secs(60);
const STUCK: Duration = Duration::from_secs(3);
/// How long the collectors then have for the rest of the records.
pub const LAST_EXPORT: Duration = Duration::from_secs(10);
/// A collector that has not got all records by then is named as one that is waited for.
const SLOW: Duration = Duration::from_secs(1);
/// Places of a table flushed at once, and how many records may wait for a collector meanwhile.
const STEP: usize = 4096;
const WAITING: u64 = 1 << 16;
/// How often to look whether the collectors have caught up.
const POLL_INTERVAL: Duration = Duration::from_millis(1);

/// Records every flow as ended by force, no faster than the collectors take records. The loops must not run. Returns
/// whether all flows were recorded in time.
pub fn flush(loops: &mut [LogLoop], logged: &Logged) -> bool {
    let begun = Instant::now();
    for each in loops {
        let (mut waits, mut moved) = (logged.queued(), Instant::now());
        while !each.function_mut().flush(STEP) {
            let waiting = logged.queued();
            if waiting < waits || waiting < WAITING {
                moved = Instant::now();
            }
            waits = waiting;
            // The thread that takes records may need this CPU.
            if waiting >= WAITING {
                std::thread::sleep(POLL_INTERVAL);
            } else {
                std::thread::yield_now();
            }
            if moved.elapsed() > STUCK || begun.elapsed() > FLUSH {
                return false;
            }
        }
    }
    true
}

/// Names of the collectors that have not got all records after a second, for which the end waits.
pub fn waited_for(logged: &Logged) -> Vec<String> {
    let begun = Instant::now();
    loop {
        let waits = logged.waited_for();
        if waits.as_ref().is_some_and(Vec::is_empty) || begun.elapsed() > SLOW {
            return waits.unwrap_or_default().into_iter().map(|(name, _)| name).collect();
        }
        std::thread::sleep(POLL_INTERVAL);
    }
}

/// The totals of the tables, in a few lines.
pub fn table_totals(totals: &Totals) -> String {
    let table = &totals.table;
    let [idle, active, end_of_flow, forced, lack] = table.ended;
    let mut text = format!(
        "\nflows: {} in a table for {} ({} MiB); {} begun\nrecords: {idle} idle, {active} active, {end_of_flow} end of flow, \
         {forced} forced, {lack} lack of resources; {} exported, {} dropped\n",
        table.flows,
        table.capacity,
        table.memory >> 20,
        table.created,
        totals.export.sent,
        totals.export.dropped,
    );
    if table.refused_packets + table.evicted > 0 {
        text.push_str(&format!(
            "the table was full: {} packets of flows not recorded, {} flows evicted\n",
            table.refused_packets, table.evicted
        ));
    }
    for port in totals.interfaces.iter().filter(|p| p.not_ip + p.malformed + p.missed + p.tx_dropped > 0) {
        let kinds: Vec<String> = port.not_ip_kinds.iter().map(|(kind, n)| format!("{n} {kind}")).collect();
        let kinds = if kinds.is_empty() { String::new() } else { format!(" ({})", kinds.join(", ")) };
        text.push_str(&format!(
            "port {} ({}): {} not IP{kinds}, {} malformed, {} missed, {} not passed on\n",
            port.port, port.name, port.not_ip, port.malformed, port.missed, port.tx_dropped
        ));
    }
    for port in totals.interfaces.iter().filter(|port| port.cut > 0) {
        text.push_str(&format!(
            "port {} ({}): {} frames cut, as they are longer than the port's buffers: one packet each, bytes from the IP header\n",
            port.port, port.name, port.cut
        ));
    }
    text
}

/// What became of the records: a line for each collector and file.
pub fn export_totals(sinks: &[SinkStats], whole: bool) -> String {
    let line = |sink: &SinkStats| {
        let ExportTotals { records, sent, dropped, uncertain, resent } = sink.totals;
        let of = |n: u64, what: &str| if n > 0 { format!(", {n} {what}") } else { String::new() };
        let (uncertain, resent) = (of(uncertain, "of the sent uncertain"), of(resent, "sent again"));
        format!("{}: {records} records, {sent} sent, {dropped} dropped{uncertain}{resent}\n", sink.name)
    };
    let mut text: String = sinks.iter().map(line).collect();
    if !whole {
        text.push_str("not every flow could be recorded in time\n");
    }
    text
}
