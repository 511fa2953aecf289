//! Totals in the text format of Prometheus.

use std::fmt::{Display, Write};

use crate::protocol::{Interface, Sink, Totals};

/// The reasons of [`crate::protocol::TableTotals::ended`], in its order.
const ENDED: [&str; 5] = ["idle", "active", "end_of_flow", "forced", "lack_of_resources"];

/// Totals in Prometheus' text format 0.0.4.
///
/// Names follow Prometheus: counters end in `_total`, sizes are in bytes, times in seconds.
pub fn text(totals: &Totals) -> String {
    let mut out = Text(String::with_capacity(8 << 10));
    let interfaces = &totals.interfaces;
    let t = &totals.table;
    out.each("receive_packets_total", "counter", "Frames received.", interfaces, |i| i.packets);
    out.each("receive_bytes_total", "counter", "Bytes of frames received, without FCS.", interfaces, |i| i.bytes);
    let help = "Frames received that are no IP; with --sample, of the sampled frames only.";
    out.each("receive_not_ip_total", "counter", help, interfaces, |i| i.not_ip);
    out.kinds(interfaces);
    out.each(
        "receive_malformed_total",
        "counter",
        "Frames received that claim to be IP and are not readable; with --sample, of the sampled frames only.",
        interfaces,
        |i| i.malformed,
    );
    out.each(
        "receive_cut_total",
        "counter",
        "Frames received longer than the port's buffers; their bytes are those of their IP header. With --sample, of the sampled \
         frames only.",
        interfaces,
        |i| i.cut,
    );
    out.each("receive_missed_total", "counter", "Frames the port had no room for.", interfaces, |i| i.missed);
    out.each("transmit_dropped_total", "counter", "Frames received that could not be passed on.", interfaces, |i| {
        i.tx_dropped
    });
    out.each("interface_up", "gauge", "Whether the link is up.", interfaces, |i| u8::from(i.up));
    out.one("flows", "gauge", "Flows in the table.", t.flows);
    out.one("flows_limit", "gauge", "Flows the table has room for.", t.capacity);
    out.one("table_memory_bytes", "gauge", "Memory of the table.", t.memory);
    out.one("flows_created_total", "counter", "Flows begun.", t.created);
    out.head("flows_ended_total", "counter", "Flows recorded, by reason (IPFIX flowEndReason).");
    for (reason, count) in ENDED.iter().zip(t.ended) {
        out.sample("flows_ended_total", &[("reason", reason)], count);
    }
    out.one(
        "refused_packets_total",
        "counter",
        "Packets of flows that found no place in the table.",
        t.refused_packets,
    );
    out.one("flows_evicted_total", "counter", "Flows evicted for others.", t.evicted);
    out.one("export_records_total", "counter", "Records of ended flows given to export.", totals.export.records);
    out.one("export_sent_total", "counter", "Records sent or written.", totals.export.sent);
    out.one("export_dropped_total", "counter", "Records lost on their way out.", totals.export.dropped);
    let uncertain = "Records sent that may not have been read when a connection broke, and were not sent again yet.";
    out.one("export_uncertain_records", "gauge", uncertain, totals.export.uncertain);
    out.one("export_resent_total", "counter", "Records sent again after a connection broke.", totals.export.resent);
    let sinks = &totals.sinks;
    out.sinks("collector_records_total", "counter", "Records given to this collector or file.", sinks, |s| {
        s.totals.records
    });
    out.sinks("collector_sent_total", "counter", "Records sent or written to it.", sinks, |s| s.totals.sent);
    out.sinks("collector_dropped_total", "counter", "Records lost on their way to it.", sinks, |s| s.totals.dropped);
    out.sinks("collector_uncertain_records", "gauge", uncertain, sinks, |s| s.totals.uncertain);
    out.sinks("collector_resent_total", "counter", "Records sent again to it.", sinks, |s| s.totals.resent);
    out.sinks("collector_queued_records", "gauge", "Records that wait for it.", sinks, |s| s.queued);
    out.sinks("collector_up", "gauge", "Whether it takes records, as far as is known.", sinks, |s| u8::from(s.up));
    out.one("uptime_seconds", "gauge", "Time since the logger started.", totals.uptime_s);
    out.0
}

struct Text(String);

impl Text {
    // Writing to a string cannot fail.
    fn head(&mut self, name: &str, kind: &str, help: &str) {
        let _ = writeln!(self.0, "# HELP linerate_flowlog_{name} {help}\n# TYPE linerate_flowlog_{name} {kind}");
    }

    fn sample(&mut self, name: &str, labels: &[(&str, &str)], value: impl Display) {
        let _ = write!(self.0, "linerate_flowlog_{name}");
        for (n, (label, text)) in labels.iter().enumerate() {
            let _ = write!(self.0, "{}{label}=\"{}\"", if n == 0 { '{' } else { ',' }, escaped(text));
        }
        let _ = writeln!(self.0, "{} {value}", if labels.is_empty() { "" } else { "}" });
    }

    fn one(&mut self, name: &str, kind: &str, help: &str, value: impl Display) {
        self.head(name, kind, help);
        self.sample(name, &[], value);
    }

    fn each<V: Display>(
        &mut self,
        name: &str,
        kind: &str,
        help: &str,
        interfaces: &[Interface],
        value: impl Fn(&Interface) -> V,
    ) {
        self.head(name, kind, help);
        for interface in interfaces {
            let port = interface.port.to_string();
            self.sample(name, &[("port", &port), ("interface", &interface.name)], value(interface));
        }
    }

    /// Frames that are not IP, by kind; nothing while none has come.
    fn kinds(&mut self, interfaces: &[Interface]) {
        let name = "receive_not_ip_kind_total";
        if interfaces.iter().any(|i| !i.not_ip_kinds.is_empty()) {
            let help = "Frames received that are no IP, by kind; with --sample, of the sampled frames only.";
            self.head(name, "counter", help);
        }
        for interface in interfaces {
            let port = interface.port.to_string();
            for (kind, n) in &interface.not_ip_kinds {
                self.sample(name, &[("port", &port), ("interface", &interface.name), ("kind", kind)], n);
            }
        }
    }

    /// Writes one sample for each sink; nothing without sinks.
    fn sinks<V: Display>(&mut self, name: &str, kind: &str, help: &str, sinks: &[Sink], value: impl Fn(&Sink) -> V) {
        if !sinks.is_empty() {
            self.head(name, kind, help);
        }
        for sink in sinks {
            self.sample(name, &[("collector", &sink.name)], value(sink));
        }
    }
}

fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}
