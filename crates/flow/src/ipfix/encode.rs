//! Flow records as messages of IPFIX or NetFlow v9.

use super::{
    options::{Options, Statistics, AGAIN},
    template::{Exporter, Field, Shape},
    wire::{count, fill, fill_length, pad, set, Version},
    Port, HEADER, TEMPLATES, VERSION,
};
use crate::{Distinguish, Record, Sampling};

/// Least size of a message: all templates, the statistics and the sampling, and a record of the largest form or the names of
/// an interface.
const LEAST: usize = 1200;
/// Set ID of templates in NetFlow v9, its version, and the bytes of its header (RFC 3954 5).
const TEMPLATES9: u16 = 0;
const VERSION9: u16 = 9;
const HEADER9: usize = 20;
/// How long before the first message the boot was, for NetFlow v9: flows may have begun before the exporter.
const BOOT_BEFORE_MS: u64 = 24 * 3600 * 1000;

/// Configuration of an encoder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EncodeSpec {
    /// The version of the messages.
    pub version: Version,
    /// Observation domain ID in every message (RFC 7011 3.1); the source ID of NetFlow v9.
    pub domain: u32,
    /// Whether records have two directions: biflows (RFC 5103). Not with NetFlow v9, which has only the forward one.
    pub biflow: bool,
    /// What [`Key::scope`](crate::Key) is.
    pub distinguish: Distinguish,
    /// Largest message in bytes with its header, clamped to 1200 to 65535.
    pub message_bytes: usize,
    /// The ports of the logger.
    pub ports: Vec<Port>,
    /// Whether their names are sent.
    pub names: bool,
    /// Which packets the records are of; none: of all.
    pub sampling: Option<Sampling>,
    /// Whether TCP flags are the low eight in one byte: reduced-size encoding (RFC 7012 on tcpControlBits), for collectors that
    /// read one byte. NetFlow v9 always has it.
    pub short_flags: bool,
    /// Whether records have [`Details`](crate::Details), of which TTL and length are sent.
    pub details: bool,
    /// Whether records may be sent again, with [`Encoder::message_again`]. With IPFIX only.
    pub again: bool,
}

impl Default for EncodeSpec {
    fn default() -> Self {
        Self {
            version: Version::Ipfix,
            domain: 0,
            biflow: false,
            distinguish: Distinguish::None,
            message_bytes: 1400,
            ports: Vec::new(),
            names: true,
            sampling: None,
            short_flags: false,
            details: false,
            again: false,
        }
    }
}

/// What a message holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Message {
    /// Flow records in it.
    pub records: usize,
    /// Data records in it: flow records and options data.
    pub data_records: u32,
    /// Whether it has the templates.
    pub templates: bool,
    /// Interfaces whose names are in it.
    pub interfaces: usize,
}

/// Makes the messages of one transport session.
///
/// Call [`Encoder::message`], send the message, then call [`Encoder::sent`]: the sequence number counts sent messages only.
#[derive(Debug)]
pub struct Encoder {
    spec: EncodeSpec,
    options: Options,
    shapes: Vec<Layout>,
    sequence: u32,
    /// Ports whose names were sent since the templates.
    named: usize,
    boot_ms: u64,
}

#[derive(Debug)]
struct Layout {
    shape: Shape,
    fields: Vec<Field>,
    bytes: usize,
}

impl Encoder {
    /// A session begins.
    pub fn new(spec: EncodeSpec) -> Self {
        let biflow = spec.biflow && spec.version == Version::Ipfix;
        let EncodeSpec { distinguish, version, short_flags, details, .. } = spec;
        let shape = Shape { v6: false, icmp: false, biflow, distinguish, version, short_flags, details };
        let shapes = Shape::all(shape).into_iter().map(|shape| {
            let fields = shape.fields();
            Layout { shape, bytes: fields.iter().map(|field| usize::from(field.length)).sum(), fields }
        });
        let shapes: Vec<Layout> = shapes.collect();
        let EncodeSpec { version, domain, sampling, message_bytes, .. } = spec;
        let ports = if spec.names { spec.ports.clone() } else { Vec::new() };
        let again = spec.again && version == Version::Ipfix;
        let reliable = shapes.iter().map(|layout| layout.shape.id()).filter(|_| again).collect();
        let options = Options { version, domain, ports, sampling, reliable };
        let boot_ms = u64::from(crate::unix_time::unix_s()) * 1000;
        let boot_ms = boot_ms.saturating_sub(BOOT_BEFORE_MS);
        let mut encoder = Self { options, shapes, sequence: 0, named: 0, boot_ms, spec };
        encoder.set_message_bytes(message_bytes);
        encoder
    }

    /// Sets the largest length of further messages, within the legal range.
    pub fn set_message_bytes(&mut self, bytes: usize) {
        self.spec.message_bytes = bytes.clamp(LEAST, 65535);
    }

    /// Begins another session: the sequence restarts, and templates are due.
    pub fn restart(&mut self) {
        self.sequence = 0;
        self.named = 0;
    }

    /// Makes a message in `out` (emptied first): templates if requested, statistics if given, names of interfaces that are
    /// still to be sent, and as many records from the front of `records` as fit.
    pub fn message(
        &self,
        export_s: u32,
        templates: bool,
        statistics: Option<&Statistics>,
        records: &[Record],
        out: &mut Vec<u8>,
    ) -> Message {
        self.begin(export_s, out);
        let mut data_records = 0;
        if templates {
            self.templates(out);
            data_records += self.options.sampling(out) + self.options.reliability(out);
        }
        if let Some(statistics) = statistics {
            data_records += self.options.statistics(statistics, out);
        }
        let named = if templates { 0 } else { self.named };
        let interfaces = self.options.interfaces(named, self.spec.message_bytes, out);
        let taken = self.records(records, 0, out);
        data_records += u32::try_from(taken + interfaces).unwrap_or(u32::MAX);
        match self.spec.version {
            Version::Ipfix => fill_length(out, 0),
            // The number of all records in it, of templates too.
            Version::NetFlow9 => {
                let all = data_records as usize + if templates { self.shapes.len() + self.options.count() } else { 0 };
                fill(out, 0, all);
            }
        }
        Message { records: taken, data_records, templates, interfaces }
    }

    /// Makes a message in `out` (emptied first) with records that an earlier session may have delivered, as many from the front
    /// as fit. Their templates have the fields of the others and IDs of their own: 64 more. The options data calls these
    /// templates unreliable (`dataRecordsReliability`, information element 276), which is the nearest mark that IPFIX has.
    pub fn message_again(&self, export_s: u32, records: &[Record], out: &mut Vec<u8>) -> Message {
        self.begin(export_s, out);
        let taken = self.records(records, AGAIN, out);
        fill_length(out, 0);
        let data_records = u32::try_from(taken).unwrap_or(u32::MAX);
        Message { records: taken, data_records, templates: false, interfaces: 0 }
    }

    /// Writes the header of a message.
    fn begin(&self, export_s: u32, out: &mut Vec<u8>) {
        out.clear();
        match self.spec.version {
            Version::Ipfix => {
                out.extend(VERSION.to_be_bytes());
                out.extend([0; 2]);
                [export_s, self.sequence, self.spec.domain].iter().for_each(|word| out.extend(word.to_be_bytes()));
            }
            Version::NetFlow9 => {
                out.extend(VERSION9.to_be_bytes());
                out.extend([0; 2]);
                let uptime = (u64::from(export_s) * 1000).saturating_sub(self.boot_ms) as u32;
                let words = [uptime, export_s, self.sequence, self.spec.domain];
                words.iter().for_each(|word| out.extend(word.to_be_bytes()));
            }
        }
    }

    /// Counts a sent message in the sequence number: in data records (RFC 7011 3.1), NetFlow v9 in messages (RFC 3954 5.1).
    pub fn sent(&mut self, message: &Message) {
        let counted = if self.spec.version == Version::Ipfix { message.data_records } else { 1 };
        self.sequence = self.sequence.wrapping_add(counted);
        self.named = message.interfaces + if message.templates { 0 } else { self.named };
    }

    /// The next message's sequence number.
    pub fn sequence(&self) -> u32 {
        self.sequence
    }

    fn templates(&self, out: &mut Vec<u8>) {
        let id = if self.spec.version == Version::Ipfix { TEMPLATES } else { TEMPLATES9 };
        set(id, out, |out| {
            let again = if self.options.reliable.is_empty() { None } else { Some(AGAIN) };
            for more in [Some(0), again].into_iter().flatten() {
                for Layout { shape, fields, .. } in &self.shapes {
                    out.extend((shape.id() + more).to_be_bytes());
                    count(fields.len(), out);
                    fields.iter().for_each(|field| field.specify(out));
                }
            }
        });
        self.options.templates(out);
    }

    /// Writes data sets, a new one at each change of form; returns the number of records written. Set IDs are those of the
    /// templates and `more`.
    fn records(&self, records: &[Record], more: u16, out: &mut Vec<u8>) -> usize {
        let exporter = Exporter { version: self.spec.version, ports: &self.spec.ports, boot_ms: self.boot_ms };
        let distinguished = self.spec.distinguish != Distinguish::None;
        let padding = if self.spec.version == Version::Ipfix { 0 } else { 3 };
        let mut open = None;
        let mut taken = 0;
        for record in records {
            let index = Shape::index(record, distinguished);
            let Some(layout) = self.shapes.get(index) else { break };
            let begun = open.filter(|&(at, _)| at == index);
            let header = if begun.is_some() { 0 } else { 4 + padding };
            if out.len() + header + layout.bytes + padding > self.spec.message_bytes {
                break;
            }
            if begun.is_none() {
                if let Some((_, start)) = open {
                    self.close(out, start);
                }
                open = Some((index, out.len()));
                out.extend((layout.shape.id() + more).to_be_bytes());
                out.extend([0; 2]);
            }
            layout.fields.iter().for_each(|field| field.item.write(record, &exporter, out));
            taken += 1;
        }
        if let Some((_, start)) = open {
            self.close(out, start);
        }
        taken
    }

    /// Ends a data set.
    fn close(&self, out: &mut Vec<u8>, start: usize) {
        if self.spec.version == Version::NetFlow9 {
            pad(out);
        }
        fill_length(out, start);
    }
}

const _: () = assert!(LEAST > HEADER && HEADER9 > HEADER);
