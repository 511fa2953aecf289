//! Flow records as messages of IPFIX or NetFlow v9.

use super::{
    clock::{Clock, BOOT_BEFORE_MS},
    options::{Options, Statistics, AGAIN},
    template::{Exporter, Field, Shape},
    wire::{count, fill, fill_length, pad, set, Version},
    Port, HEADER, TEMPLATES, VERSION,
};
use crate::{Distinguish, Record, Sampling};

/// Least size of a message: half of the templates with the statistics and the sampling, or a record of the largest form with its
/// template, or the names of an interface.
const LEAST: usize = 1200;
/// Set ID of templates in NetFlow v9, its version, and the bytes of its header (RFC 3954 5).
const TEMPLATES9: u16 = 0;
const VERSION9: u16 = 9;
const HEADER9: usize = 20;
/// No record of NetFlow v9 has fewer bytes.
const LEAST_RECORD9: usize = 32;
/// Bytes of a set that says how reliable the records of a template are.
const RELIABILITY_BYTES: usize = 12;

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
    /// Whether records have [`Details`](crate::Details), of which TTL, length and the link layer are sent. Templates for frames
    /// with tags or labels are sent with the first record that needs them.
    pub details: bool,
    /// In how many further messages with its records a template is repeated that came with them, up to 2: over UDP, the first of
    /// them may be lost.
    pub templates_again: usize,
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
            templates_again: 0,
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
    /// Bits of the templates in it that are not among the first, and whether they are of records sent again.
    needed: u64,
    again: bool,
}

/// Bits of the templates that were sent once, twice and three times since the first templates.
#[derive(Debug, Clone, Copy, Default)]
struct Known([u64; 3]);

impl Known {
    /// Counts a message with these templates.
    fn add(&mut self, templates: u64) {
        let [once, twice, thrice] = &mut self.0;
        *thrice |= *twice & templates;
        *twice |= *once & templates;
        *once |= templates;
    }

    /// Forgets all other templates.
    fn keep(&mut self, templates: u64) {
        self.0.iter_mut().for_each(|bits| *bits &= templates);
    }

    /// Those that were sent and repeated so often.
    fn repeated(&self, times: usize) -> u64 {
        self.0[times.min(2)]
    }
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
    /// The other templates that were sent since, with the records that needed them; and those of records sent again.
    known: [Known; 2],
    /// Number of templates that are sent first: those of frames without tags and labels, as far as a message has room.
    first: usize,
    /// Bytes that a message with these has left.
    left: usize,
    boot_ms: u64,
}

#[derive(Debug)]
struct Layout {
    shape: Shape,
    fields: Vec<Field>,
    bytes: usize,
    /// Bytes of a set with the template.
    template_bytes: usize,
}

impl Layout {
    /// The ID of its template.
    fn id(&self) -> u16 {
        self.shape.id()
    }

    /// Writes the template.
    fn specify(&self, more: u16, out: &mut Vec<u8>) {
        out.extend((self.id() + more).to_be_bytes());
        count(self.fields.len(), out);
        self.fields.iter().for_each(|field| field.specify(out));
    }
}

/// Bytes of the header of a set.
const SET: usize = 4;

/// What [`Encoder::records`] has written.
#[derive(Debug, Clone, Copy, Default)]
struct Written {
    /// Flow records.
    records: usize,
    /// Other data records.
    more_records: u32,
    /// Bits of the templates that went with them.
    needed: u64,
}

impl Encoder {
    /// A session begins.
    pub fn new(spec: EncodeSpec) -> Self {
        let biflow = spec.biflow && spec.version == Version::Ipfix;
        let EncodeSpec { distinguish, version, short_flags, details, .. } = spec;
        let shape = Shape {
            v6: false,
            icmp: false,
            biflow,
            distinguish,
            version,
            short_flags,
            details,
            tags: 0,
            labels: false,
        };
        let shapes = Shape::all(shape).into_iter().map(|shape| {
            let fields = shape.fields();
            let bytes = fields.iter().map(|field| usize::from(field.length)).sum();
            let mut layout = Layout { shape, bytes, fields, template_bytes: 0 };
            let mut template = Vec::new();
            layout.specify(0, &mut template);
            layout.template_bytes = SET + template.len();
            layout
        });
        let shapes: Vec<Layout> = shapes.collect();
        let EncodeSpec { version, domain, sampling, message_bytes, .. } = spec;
        let ports = if spec.names { spec.ports.clone() } else { Vec::new() };
        let again = spec.again && version == Version::Ipfix;
        let options = Options { version, domain, ports, sampling, again };
        let boot_ms = u64::from(crate::unix_time::unix_s()) * 1000;
        let boot_ms = boot_ms.saturating_sub(BOOT_BEFORE_MS);
        let known = Default::default();
        let mut encoder = Self { options, shapes, sequence: 0, named: 0, known, first: 0, left: 0, boot_ms, spec };
        encoder.set_message_bytes(message_bytes);
        encoder
    }

    /// Sets the largest length of further messages, within the legal range.
    pub fn set_message_bytes(&mut self, bytes: usize) {
        self.spec.message_bytes = bytes.clamp(LEAST, 65535);
        // What every message with templates may hold besides those of flows.
        let mut rest = Vec::new();
        self.begin(Clock::of_day(0, 0), &mut rest);
        self.options.templates(&mut rest);
        self.options.sampling(&mut rest);
        self.options.statistics(&Statistics::default(), &mut rest);
        let (times, more) = if self.options.again { (2, RELIABILITY_BYTES) } else { (1, 0) };
        self.left = self.spec.message_bytes.saturating_sub(rest.len() + SET + if more > 0 { SET } else { 0 });
        self.first = 0;
        let plain = Shape::plain(self.spec.distinguish != Distinguish::None);
        for layout in self.shapes.iter().take(plain) {
            let Some(left) = self.left.checked_sub(times * (layout.template_bytes - SET) + more) else { break };
            (self.first, self.left) = (self.first + 1, left);
        }
    }

    /// Begins another session: the sequence restarts, and templates are due.
    pub fn restart(&mut self) {
        self.sequence = 0;
        self.named = 0;
        self.known = Default::default();
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
        let clock = self.clock(export_s, records);
        self.begin(clock, out);
        let (mut data_records, mut refreshed) = (0, 0);
        if templates {
            refreshed = self.templates(out);
            data_records +=
                self.options.sampling(out) + self.options.reliability(self.first().iter().map(Layout::id), out);
        }
        if let Some(statistics) = statistics {
            data_records += self.options.statistics(statistics, out);
        }
        let named = if templates { 0 } else { self.named };
        let interfaces = self.options.interfaces(named, self.spec.message_bytes, out);
        let known = if templates { refreshed } else { self.known[0].repeated(self.spec.templates_again) };
        let written = self.records(clock, records, 0, known, out);
        data_records += u32::try_from(written.records + interfaces).unwrap_or(u32::MAX) + written.more_records;
        let needed = written.needed | refreshed;
        match self.spec.version {
            Version::Ipfix => fill_length(out, 0),
            // The number of all records in it, of templates too.
            Version::NetFlow9 => {
                let all = data_records as usize + if templates { self.first + self.options.count() } else { 0 };
                let all = all + needed.count_ones() as usize;
                fill(out, 0, all);
            }
        }
        Message { records: written.records, data_records, templates, interfaces, needed, again: false }
    }

    /// Makes a message in `out` (emptied first) with records that an earlier session may have delivered, as many from the front
    /// as fit. Their templates have the fields of the others and IDs of their own: 64 more. The options data calls these
    /// templates unreliable (`dataRecordsReliability`, information element 276), which is the nearest mark that IPFIX has.
    pub fn message_again(&self, export_s: u32, records: &[Record], out: &mut Vec<u8>) -> Message {
        let clock = self.clock(export_s, records);
        self.begin(clock, out);
        let known = self.known[1].repeated(0);
        let Written { records, more_records, needed } = self.records(clock, records, AGAIN, known, out);
        fill_length(out, 0);
        let data_records = u32::try_from(records).unwrap_or(u32::MAX) + more_records;
        Message { records, data_records, needed, again: true, ..Message::default() }
    }

    /// The clock of a message with these records; IPFIX has times since 1970, and needs none.
    fn clock(&self, export_s: u32, records: &[Record]) -> Clock {
        let clock = Clock::of_day(export_s, self.boot_ms);
        match self.spec.version {
            Version::Ipfix => clock,
            Version::NetFlow9 => {
                let fit = self.spec.message_bytes / LEAST_RECORD9;
                clock.of(records.iter().take(fit).map(|record| (record.first, record.last)))
            }
        }
    }

    fn exporter(&self, clock: Clock) -> Exporter<'_> {
        Exporter { version: self.spec.version, ports: &self.spec.ports, boot_ms: clock.boot_ms }
    }

    /// Writes the header of a message.
    fn begin(&self, clock: Clock, out: &mut Vec<u8>) {
        let export_s = clock.export_s;
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
                let uptime = self.exporter(clock).uptime_ms(u64::from(export_s) * 1_000_000_000);
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
        if message.templates {
            self.known[0].keep(message.needed);
            self.known[1] = Known::default();
        }
        self.known[usize::from(message.again)].add(message.needed);
    }

    /// The next message's sequence number.
    pub fn sequence(&self) -> u32 {
        self.sequence
    }

    /// Writes the first templates, and of those that records have needed so far as many as there is room for; returns the bits
    /// of these.
    fn templates(&self, out: &mut Vec<u8>) -> u64 {
        let id = if self.spec.version == Version::Ipfix { TEMPLATES } else { TEMPLATES9 };
        let (mut left, mut refreshed) = (self.left, 0);
        set(id, out, |out| {
            for more in [Some(0), self.options.again.then_some(AGAIN)].into_iter().flatten() {
                self.first().iter().for_each(|layout| layout.specify(more, out));
            }
            for (index, layout) in self.shapes.iter().enumerate().skip(self.first) {
                let was_needed = self.known[0].repeated(0) >> index & 1 == 1;
                // Where records may be sent again, nothing is lost, and templates need no refreshing.
                let bytes = layout.template_bytes - SET;
                if was_needed && !self.options.again && bytes <= left {
                    layout.specify(0, out);
                    left -= bytes;
                    refreshed |= 1 << index;
                }
            }
        });
        self.options.templates(out);
        refreshed
    }

    /// The forms whose templates are sent first.
    fn first(&self) -> &[Layout] {
        self.shapes.get(..self.first).unwrap_or(&self.shapes)
    }

    /// Whether a template has to be sent with a record. `known`: bits of those that were sent often enough.
    fn is_needed(&self, index: usize, known: u64) -> bool {
        index >= self.first && known >> index & 1 == 0
    }

    /// Writes a template with its records, and how reliable these are; returns the number of data records.
    fn need(&self, layout: &Layout, more: u16, out: &mut Vec<u8>) -> u32 {
        let id = if self.spec.version == Version::Ipfix { TEMPLATES } else { TEMPLATES9 };
        set(id, out, |out| layout.specify(more, out));
        self.options.reliability(std::iter::once(layout.id()), out)
    }

    /// Writes data sets, a new one at each change of form, and templates that are not `known` before their records. Set IDs are
    /// those of the templates and `more`.
    fn records(&self, clock: Clock, records: &[Record], more: u16, known: u64, out: &mut Vec<u8>) -> Written {
        let exporter = self.exporter(clock);
        let any_time = self.spec.version == Version::Ipfix;
        let distinguished = self.spec.distinguish != Distinguish::None;
        let padding = if self.spec.version == Version::Ipfix { 0 } else { 3 };
        let mut open = None;
        let mut written = Written::default();
        for record in records {
            let index = Shape::index(record, distinguished);
            let Some(layout) = self.shapes.get(index) else { break };
            // The first is what the clock was made for.
            if written.records > 0 && !any_time && !clock.holds(record.first, record.last) {
                break;
            }
            let begun = open.filter(|&(at, _)| at == index);
            let header = if begun.is_some() { 0 } else { 4 + padding };
            let is_needed = self.is_needed(index, known | written.needed);
            let template = if is_needed { layout.template_bytes + RELIABILITY_BYTES } else { 0 };
            if out.len() + header + template + layout.bytes + padding > self.spec.message_bytes {
                break;
            }
            if begun.is_none() {
                if let Some((_, start)) = open {
                    self.close(out, start);
                }
                if is_needed {
                    written.more_records += self.need(layout, more, out);
                    written.needed |= 1 << index;
                }
                open = Some((index, out.len()));
                out.extend((layout.id() + more).to_be_bytes());
                out.extend([0; 2]);
            }
            layout.fields.iter().for_each(|field| field.item.write(record, &exporter, out));
            written.records += 1;
        }
        if let Some((_, start)) = open {
            self.close(out, start);
        }
        written
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
