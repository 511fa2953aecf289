//! Options data: what an exporter says of itself, in the forms of both versions.

use super::{
    element::{self as e, Element},
    wire::{count, pad, set, specify, Version},
    Port,
};
use crate::{Sampling, SamplingMode};

/// Template ID of the statistics of RFC 7011 4.1, by observation domain.
const BY_DOMAIN: u16 = 512;
/// Template ID of the statistics of RFC 7011 4.3, by exporting process.
const BY_PROCESS: u16 = 513;
/// Template ID of the names of interfaces.
const INTERFACES: u16 = 514;
/// Template ID of the sampling.
const SAMPLING: u16 = 515;
/// Template ID of the reliability of templates.
const RELIABILITY: u16 = 516;
/// What the IDs of templates of records that are sent again have more than the others.
pub(super) const AGAIN: u16 = 64;
/// Set IDs of options templates: RFC 7011 3.3.2, RFC 3954 6.1.
const TEMPLATES: u16 = 3;
const TEMPLATES9: u16 = 1;
/// Scope of NetFlow v9 (RFC 3954 6.1).
const SYSTEM: u16 = 1;

/// Totals of an exporter, as its options data reports them (RFC 7011 4.1 and 4.3). The caller of
/// [`Encoder::message`](super::Encoder::message) keeps them.
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
    /// Their IP bytes.
    pub not_sent_octets: u64,
    /// Times of the first and the last loss, in milliseconds since 1970; zero: none.
    pub not_sent_ms: [u64; 2],
}

/// A form of options data.
struct Form {
    id: u16,
    /// The element of IPFIX that the record is about, and the scope of NetFlow v9.
    scope: (u16, u16),
    scope_bytes: u16,
    fields: Vec<(u16, u16)>,
}

/// Longest name and description that a collector gets.
const NAME: usize = 64;

/// The options data of one exporter.
#[derive(Debug, Clone)]
pub(super) struct Options {
    pub version: Version,
    pub domain: u32,
    pub ports: Vec<Port>,
    pub sampling: Option<Sampling>,
    /// Whether records may be sent again with [`AGAIN`].
    pub again: bool,
}

impl Options {
    /// Lengths of the names and descriptions: collectors expect fixed ones, and nfcapd a zero at the end.
    fn lengths(&self) -> [u16; 2] {
        let longest = |text: fn(&Port) -> &str| self.ports.iter().map(|port| cut(text(port)).len()).max().unwrap_or(0);
        [longest(|port| &port.name), longest(|port| &port.description)].map(|bytes| bytes as u16 + 1)
    }

    fn forms(&self) -> Vec<Form> {
        let eight = |ids: &[u16]| ids.iter().map(|&id| (id, 8)).collect();
        let mut forms = Vec::new();
        if self.version == Version::Ipfix {
            let fields = eight(&[e::EXPORTED_MESSAGES, e::EXPORTED_FLOWS, e::EXPORTED_OCTETS]);
            forms.push(Form { id: BY_DOMAIN, scope: (e::DOMAIN, SYSTEM), scope_bytes: 4, fields });
            let not_sent = [e::NOT_SENT_FLOWS, e::NOT_SENT_PACKETS, e::NOT_SENT_OCTETS];
            let fields = eight(&[&not_sent[..], &[e::OBSERVATION_MS; 2]].concat());
            forms.push(Form { id: BY_PROCESS, scope: (e::EXPORTING_PROCESS, SYSTEM), scope_bytes: 4, fields });
        }
        if !self.ports.is_empty() {
            let [name, description] = self.lengths();
            // nfcapd reads the number as a field only, not as the scope. Routers send the same.
            let fields = vec![(e::INGRESS, 4), (e::INTERFACE_NAME, name), (e::INTERFACE_DESCRIPTION, description)];
            forms.push(Form { id: INTERFACES, scope: (e::DOMAIN, SYSTEM), scope_bytes: 4, fields });
        }
        if let Some(sampling) = self.sampling {
            let fields =
                sampling_fields(sampling, self.version).into_iter().map(|(id, length, _)| (id, length)).collect();
            forms.push(Form { id: SAMPLING, scope: (e::DOMAIN, SYSTEM), scope_bytes: 4, fields });
        }
        if self.again {
            let fields = vec![(e::RELIABILITY, 1)];
            forms.push(Form { id: RELIABILITY, scope: (e::TEMPLATE, SYSTEM), scope_bytes: 2, fields });
        }
        forms
    }

    /// Number of templates.
    pub fn count(&self) -> usize {
        self.forms().len()
    }

    /// The templates.
    pub fn templates(&self, out: &mut Vec<u8>) {
        // One set per template: nfcapd reads only the first template of a set.
        for Form { id, scope: (scope, scope9), scope_bytes, fields } in self.forms() {
            let all =
                |out: &mut Vec<u8>| fields.iter().for_each(|&(id, length)| specify(Element::iana(id), length, out));
            match self.version {
                Version::Ipfix => set(TEMPLATES, out, |out| {
                    out.extend(id.to_be_bytes());
                    count(fields.len() + 1, out);
                    count(1, out);
                    specify(Element::iana(scope), scope_bytes, out);
                    all(out);
                }),
                Version::NetFlow9 => set(TEMPLATES9, out, |out| {
                    out.extend(id.to_be_bytes());
                    // Lengths of the scope and of the other specifiers in bytes.
                    count(4, out);
                    count(4 * fields.len(), out);
                    specify(Element::iana(scope9), scope_bytes, out);
                    all(out);
                    pad(out);
                }),
            }
        }
    }

    /// The statistics, of IPFIX only; returns the number of records.
    pub fn statistics(&self, s: &Statistics, out: &mut Vec<u8>) -> u32 {
        if self.version != Version::Ipfix {
            return 0;
        }
        let [first, last] = s.not_sent_ms;
        for (id, scope, values) in [
            (BY_DOMAIN, self.domain, &[s.messages, s.flows, s.octets][..]),
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
        2
    }

    /// The sampling; returns the number of records.
    pub fn sampling(&self, out: &mut Vec<u8>) -> u32 {
        let Some(sampling) = self.sampling else { return 0 };
        set(SAMPLING, out, |out| {
            out.extend(self.domain.to_be_bytes());
            for (_, length, value) in sampling_fields(sampling, self.version) {
                out.extend(value.to_be_bytes().iter().skip(8 - usize::from(length)));
            }
            self.end(out);
        });
        1
    }

    /// Of these templates, which have records that are sent once (1, true), and which have those that are sent again (2, false:
    /// RFC 7011 6.1.5); returns the number of records.
    pub fn reliability(&self, templates: impl Iterator<Item = u16>, out: &mut Vec<u8>) -> u32 {
        if !self.again {
            return 0;
        }
        let mut records = 0;
        set(RELIABILITY, out, |out| {
            for id in templates {
                out.extend(id.to_be_bytes());
                out.push(1);
                out.extend((id + AGAIN).to_be_bytes());
                out.push(2);
                records += 2;
            }
        });
        records
    }

    /// The names of the interfaces from port `from` on, as many as fit a message of `most` bytes; returns how many.
    pub fn interfaces(&self, from: usize, most: usize, out: &mut Vec<u8>) -> usize {
        let ports = self.ports.get(from..).unwrap_or_default();
        let [name, description] = self.lengths();
        // With the header of a set and its padding.
        let bytes = 4 + 8 + usize::from(name) + usize::from(description) + 3;
        let room = most.saturating_sub(out.len()) / bytes;
        let ports = ports.get(..room.min(ports.len())).unwrap_or_default();
        for port in ports {
            // One set per record: nfcapd reads only the first name of a set.
            set(INTERFACES, out, |out| {
                out.extend(self.domain.to_be_bytes());
                out.extend(port.index.to_be_bytes());
                for (text, length) in [(&port.name, name), (&port.description, description)] {
                    let from = out.len();
                    out.extend(cut(text).bytes());
                    out.resize(from + usize::from(length), 0);
                }
                self.end(out);
            });
        }
        ports.len()
    }

    fn end(&self, out: &mut Vec<u8>) {
        if self.version == Version::NetFlow9 {
            pad(out);
        }
    }
}

/// Element, length and value of each field. The old elements of NetFlow stand beside those of PSAMP: collectors read one
/// or the other.
fn sampling_fields(sampling: Sampling, version: Version) -> Vec<(u16, u16, u64)> {
    let (interval, random) = (u64::from(sampling.interval.max(1)), sampling.mode == SamplingMode::Random);
    let old = [(e::SAMPLING_INTERVAL, 4, interval), (e::SAMPLING_ALGORITHM, 1, if random { 2 } else { 1 })];
    let selector = [(e::SELECTOR, 8, 1), (e::SELECTOR_ALGORITHM, 2, if random { 3 } else { 1 })];
    let how = if random {
        [(e::SAMPLING_SIZE, 4, 1), (e::SAMPLING_POPULATION, 4, interval)]
    } else {
        [(e::PACKET_INTERVAL, 4, 1), (e::PACKET_SPACE, 4, interval - 1)]
    };
    match version {
        Version::Ipfix => [old, selector, how].concat(),
        Version::NetFlow9 => old.to_vec(),
    }
}

/// At most [`NAME`] bytes, whole characters.
fn cut(text: &str) -> &str {
    let end = (0..=text.len().min(NAME)).rev().find(|&at| text.is_char_boundary(at)).unwrap_or(0);
    text.get(..end).unwrap_or_default()
}
