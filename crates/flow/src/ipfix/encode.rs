//! Flow records as IPFIX messages.

use super::{
    element::{self as e, Element},
    template::{specify, Field, Shape},
    HEADER, OPTIONS_TEMPLATES, TEMPLATES, VERSION,
};
use crate::{Distinguish, Record};

/// Template ID of the statistics of RFC 7011 4.1, by observation domain.
const BY_DOMAIN: u16 = 512;
/// Template ID of the statistics of RFC 7011 4.3, by exporting process.
const BY_PROCESS: u16 = 513;
/// Least size of a message: all templates, both statistics, and a record of the largest form.
const LEAST: usize = 768;

/// Configuration of an encoder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EncodeSpec {
    /// Observation domain ID in every message (RFC 7011 3.1).
    pub domain: u32,
    /// Whether records have two directions: biflows (RFC 5103).
    pub biflow: bool,
    /// What [`Key::scope`](crate::Key) is.
    pub distinguish: Distinguish,
    /// Largest message in bytes with its header, clamped to 768 to 65535.
    pub message_bytes: usize,
}

/// Totals of an exporter, as its options data reports them (RFC 7011 4.1 and 4.3). The caller of [`Encoder::message`] keeps them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Statistics {
    /// Messages sent.
    pub messages: u64,
    /// Flow records sent.
    pub flows: u64,
    /// Bytes of messages sent.
    pub octets: u64,
    /// Flow records not sent, including those lost on the way to the exporter.
    pub not_sent_flows: u64,
    /// Packets of these.
    pub not_sent_packets: u64,
    /// Their bytes.
    pub not_sent_octets: u64,
    /// Times of the first and the last loss, in milliseconds since 1970; zero: none.
    pub not_sent_ms: [u64; 2],
}

/// What a message holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Message {
    /// Flow records in it.
    pub records: usize,
    /// Data records in it: flow records and statistics.
    pub data_records: u32,
}

/// Makes the messages of one transport session.
///
/// Call [`Encoder::message`], send the message, then call [`Encoder::sent`]: the sequence number counts sent messages only.
#[derive(Debug)]
pub struct Encoder {
    spec: EncodeSpec,
    shapes: [Layout; 4],
    sequence: u32,
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
        let shapes = Shape::all(spec.biflow, spec.distinguish).map(|shape| {
            let fields = shape.fields();
            Layout { shape, bytes: fields.iter().map(|field| usize::from(field.length)).sum(), fields }
        });
        let mut encoder = Self { spec, shapes, sequence: 0 };
        encoder.set_message_bytes(spec.message_bytes);
        encoder
    }

    /// Sets the largest length of further messages, within the legal range.
    pub fn set_message_bytes(&mut self, bytes: usize) {
        self.spec.message_bytes = bytes.clamp(LEAST, 65535);
    }

    /// Begins another session: the sequence restarts, and templates are due.
    pub fn restart(&mut self) {
        self.sequence = 0;
    }

    /// Makes a message in `out` (emptied first): templates if requested, statistics if given, and as many records from the
    /// front of `records` as fit.
    pub fn message(
        &self,
        export_s: u32,
        templates: bool,
        statistics: Option<&Statistics>,
        records: &[Record],
        out: &mut Vec<u8>,
    ) -> Message {
        out.clear();
        out.extend(VERSION.to_be_bytes());
        out.extend([0; 2]);
        for word in [export_s, self.sequence, self.spec.domain] {
            out.extend(word.to_be_bytes());
        }
        if templates {
            self.templates(out);
        }
        let mut data_records = 0;
        if let Some(statistics) = statistics {
            self.statistics(statistics, out);
            data_records += 2;
        }
        let taken = self.records(records, out);
        fill_length(out, 0);
        data_records += u32::try_from(taken).unwrap_or(u32::MAX);
        Message { records: taken, data_records }
    }

    /// Counts a sent message in the sequence number.
    pub fn sent(&mut self, message: &Message) {
        self.sequence = self.sequence.wrapping_add(message.data_records);
    }

    /// The data records sent so far in this session, modulo 2^32: the next message's sequence number (RFC 7011 3.1).
    pub fn sequence(&self) -> u32 {
        self.sequence
    }

    fn templates(&self, out: &mut Vec<u8>) {
        set(TEMPLATES, out, |out| {
            for Layout { shape, fields, .. } in &self.shapes {
                out.extend(shape.id().to_be_bytes());
                count(fields.len(), out);
                fields.iter().for_each(|field| field.specify(out));
            }
        });
        let by_domain = [e::EXPORTED_MESSAGES, e::EXPORTED_FLOWS, e::EXPORTED_OCTETS];
        let by_process =
            [e::NOT_SENT_FLOWS, e::NOT_SENT_PACKETS, e::NOT_SENT_OCTETS, e::OBSERVATION_MS, e::OBSERVATION_MS];
        let both = [(BY_DOMAIN, e::DOMAIN, &by_domain[..]), (BY_PROCESS, e::EXPORTING_PROCESS, &by_process[..])];
        // One set per template: nfcapd reads only the first template of a set.
        for (id, scope, fields) in both {
            set(OPTIONS_TEMPLATES, out, |out| {
                out.extend(id.to_be_bytes());
                count(fields.len() + 1, out);
                count(1, out);
                specify(Element::iana(scope), 4, out);
                fields.iter().for_each(|&field| specify(Element::iana(field), 8, out));
            });
        }
    }

    fn statistics(&self, s: &Statistics, out: &mut Vec<u8>) {
        let [first, last] = s.not_sent_ms;
        for (id, scope, values) in [
            (BY_DOMAIN, self.spec.domain, &[s.messages, s.flows, s.octets][..]),
            (
                BY_PROCESS,
                std::process::id(),
                &[s.not_sent_flows, s.not_sent_packets, s.not_sent_octets, first, last][..],
            ),
        ] {
            set(id, out, |out| {
                out.extend(scope.to_be_bytes());
                values.iter().for_each(|value| out.extend(value.to_be_bytes()));
            });
        }
    }

    /// Writes data sets, a new one at each change of form; returns the number of records written.
    fn records(&self, records: &[Record], out: &mut Vec<u8>) -> usize {
        let mut open = None;
        let mut taken = 0;
        for record in records {
            let index = Shape::index(record);
            let Some(layout) = self.shapes.get(index) else { break };
            let begun = open.filter(|&(at, _)| at == index);
            let header = if begun.is_some() { 0 } else { 4 };
            if out.len() + header + layout.bytes > self.spec.message_bytes {
                break;
            }
            if begun.is_none() {
                if let Some((_, start)) = open {
                    fill_length(out, start);
                }
                open = Some((index, out.len()));
                out.extend(layout.shape.id().to_be_bytes());
                out.extend([0; 2]);
            }
            layout.fields.iter().for_each(|field| field.item.write(record, out));
            taken += 1;
        }
        if let Some((_, start)) = open {
            fill_length(out, start);
        }
        taken
    }
}

/// Writes a whole set.
fn set(id: u16, out: &mut Vec<u8>, body: impl FnOnce(&mut Vec<u8>)) {
    let start = out.len();
    out.extend(id.to_be_bytes());
    out.extend([0; 2]);
    body(out);
    fill_length(out, start);
}

/// Writes the length into the set or message that begins at `start`. Both have their length after two bytes.
fn fill_length(out: &mut [u8], start: usize) {
    let length = u16::try_from(out.len() - start).unwrap_or(u16::MAX).to_be_bytes();
    if let Some(place) = out.get_mut(start + 2..start + 4) {
        place.copy_from_slice(&length);
    }
}

fn count(n: usize, out: &mut Vec<u8>) {
    out.extend(u16::try_from(n).unwrap_or(u16::MAX).to_be_bytes());
}

const _: () = assert!(LEAST > HEADER);
