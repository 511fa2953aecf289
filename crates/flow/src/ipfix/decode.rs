//! IPFIX messages as flow records.

use std::collections::HashMap;

use super::{
    element::Element,
    plan::{Context, Plan},
    take, take16, take32, Counts, FIRST_DATA, HEADER, OPTIONS_TEMPLATES, TEMPLATES, VERSION,
};
use crate::Record;

/// Limits of the memory of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Templates of one session.
    pub templates: usize,
    /// Fields of one template.
    pub fields: usize,
    /// Observation domains of one session.
    pub domains: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { templates: 1024, fields: 256, domains: 64 }
    }
}

/// Why a message could not be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// Fewer bytes than a header.
    #[error("shorter than the 16 bytes of a header")]
    Short,
    /// Another version.
    #[error("version {0}, not 10 (IPFIX)")]
    Version(u16),
    /// The length in the header differs from the length of the message.
    #[error("the header gives a length of {says} bytes, but the message has {has}")]
    Length {
        /// In the header.
        says: usize,
        /// Bytes received.
        has: usize,
    },
    /// A set is shorter than its header or longer than the message.
    #[error("set {id} of {length} bytes does not fit the message")]
    Set {
        /// Set ID.
        id: u16,
        /// Its length.
        length: u16,
    },
    /// Set ID 0, 1 (never used) or 4 to 255 (reserved).
    #[error("set ID {0} is reserved")]
    SetId(u16),
    /// More observation domains than [`Limits::domains`].
    #[error("too many observation domains")]
    Domains,
}

/// Reads the messages of one transport session: stores templates, and reads data with them (RFC 7011 9).
#[derive(Debug, Default)]
pub struct Decoder {
    limits: Limits,
    domains: HashMap<u32, Domain>,
    templates: usize,
    counts: Counts,
    ignore_withdrawals: bool,
}

/// State of one observation domain.
#[derive(Debug, Default)]
struct Domain {
    templates: HashMap<u16, Plan>,
    /// The sequence number of the next message, if known.
    sequence: Option<u32>,
    init_ms: u64,
}

impl Decoder {
    /// A session begins.
    pub fn new(limits: Limits) -> Self {
        Self { limits, counts: Counts { sessions: 1, ..Counts::default() }, ..Self::default() }
    }

    /// The counts so far.
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// For UDP: ignores withdrawals, which may come late and from anyone (RFC 7011 8.4).
    #[must_use]
    pub fn over_udp(self) -> Self {
        Self { ignore_withdrawals: true, ..self }
    }

    /// Reads one message and passes its flows to `flow`. A malformed message gives none (RFC 7011 9.1).
    ///
    /// # Errors
    ///
    /// When the message breaks the format; the session can go on.
    pub fn message(&mut self, bytes: &[u8], flow: &mut dyn FnMut(&Record)) -> Result<(), DecodeError> {
        let result = self.read(bytes, flow);
        match result {
            Ok(()) => self.counts.messages += 1,
            Err(_) => self.counts.malformed += 1,
        }
        result
    }

    fn read(&mut self, bytes: &[u8], flow: &mut dyn FnMut(&Record)) -> Result<(), DecodeError> {
        let header = Header::read(bytes)?;
        if bytes.len() != header.length {
            return Err(DecodeError::Length { says: header.length, has: bytes.len() });
        }
        if !self.domains.contains_key(&header.domain) && self.domains.len() >= self.limits.domains {
            return Err(DecodeError::Domains);
        }
        let mut domain = self.domains.remove(&header.domain).unwrap_or_default();
        let late = self.sequence(&mut domain, header.sequence);
        let mut records = Some(0);
        let result = self.sets(&mut domain, &header, bytes.get(HEADER..).unwrap_or_default(), &mut records, flow);
        match (late, records, result.is_ok()) {
            // Counted as lost before.
            (true, records, _) => self.counts.lost = self.counts.lost.saturating_sub(records.unwrap_or(0).into()),
            (false, Some(records), true) => domain.sequence = Some(header.sequence.wrapping_add(records)),
            (false, ..) => domain.sequence = None,
        }
        self.domains.insert(header.domain, domain);
        result
    }

    /// Checks a sequence number; returns whether the message is late.
    fn sequence(&mut self, domain: &mut Domain, sequence: u32) -> bool {
        let Some(expected) = domain.sequence else { return false };
        let ahead = sequence.wrapping_sub(expected);
        if ahead < 1 << 31 {
            self.counts.lost += u64::from(ahead);
            return false;
        }
        // A restarted exporter begins with zero.
        if sequence == 0 {
            return false;
        }
        self.counts.late += 1;
        true
    }

    /// Reads all sets. `records` becomes `None` when their number is unknown.
    fn sets(
        &mut self,
        domain: &mut Domain,
        header: &Header,
        mut bytes: &[u8],
        records: &mut Option<u32>,
        flow: &mut dyn FnMut(&Record),
    ) -> Result<(), DecodeError> {
        well_formed(bytes)?;
        while !bytes.is_empty() {
            let mut rest = bytes;
            let (Some(id), Some(length)) = (take16(&mut rest), take16(&mut rest)) else {
                // Padding after the last set is not allowed, but harmless.
                return Ok(());
            };
            let body = usize::from(length).checked_sub(4).and_then(|body| rest.split_at_checked(body));
            let Some((body, behind)) = body else { return Err(DecodeError::Set { id, length }) };
            bytes = behind;
            match id {
                TEMPLATES | OPTIONS_TEMPLATES => self.templates(domain, id == OPTIONS_TEMPLATES, body),
                FIRST_DATA.. => match domain.templates.get(&id) {
                    Some(plan) => {
                        let mut context = Context { export_s: header.export_s, init_ms: domain.init_ms };
                        let n = self.counts.data(plan, body, &mut context, flow);
                        domain.init_ms = context.init_ms;
                        *records = records.map(|sum| sum.wrapping_add(n));
                    }
                    None => {
                        self.counts.without_template += 1;
                        *records = None;
                    }
                },
                _ => return Err(DecodeError::SetId(id)),
            }
        }
        Ok(())
    }

    /// Reads a set of templates. A truncated template ends the set, because the start of the next one is unknown.
    fn templates(&mut self, domain: &mut Domain, options: bool, mut bytes: &[u8]) {
        // Bytes after the last template are padding (RFC 7011 3.3.1).
        while bytes.len() >= 4 {
            let (Some(id), Some(fields)) = (take16(&mut bytes), take16(&mut bytes)) else { return };
            if fields == 0 {
                // Padding may be longer than a withdrawal. It is zero.
                if id != 0 && !self.ignore_withdrawals {
                    self.withdraw(domain, options, id);
                }
                continue;
            }
            let Some(plan) = read_template(&mut bytes, options, fields) else {
                self.counts.refused += 1;
                return;
            };
            let known = domain.templates.contains_key(&id);
            let room = known || self.templates < self.limits.templates;
            if id < FIRST_DATA || plan.least == 0 || usize::from(fields) > self.limits.fields || !room {
                self.counts.refused += 1;
                continue;
            }
            self.counts.templates += 1;
            self.templates += usize::from(!known);
            domain.templates.insert(id, plan);
        }
    }

    /// Withdraws one template, or all templates of a kind if the ID is the set ID (RFC 7011 8.1).
    fn withdraw(&mut self, domain: &mut Domain, options: bool, id: u16) {
        let before = domain.templates.len();
        match (id, options) {
            (TEMPLATES, false) | (OPTIONS_TEMPLATES, true) => {
                domain.templates.retain(|_, plan| plan.options != options);
            }
            _ => drop(domain.templates.remove(&id)),
        }
        let gone = before - domain.templates.len();
        self.templates = self.templates.saturating_sub(gone);
        self.counts.withdrawn += gone as u64;
    }
}

/// Whether all sets of a message lie within it and have valid IDs.
fn well_formed(mut bytes: &[u8]) -> Result<(), DecodeError> {
    while !bytes.is_empty() {
        let mut rest = bytes;
        let (Some(id), Some(length)) = (take16(&mut rest), take16(&mut rest)) else { return Ok(()) };
        let body = usize::from(length).checked_sub(4).filter(|&body| body <= rest.len());
        let Some(body) = body else { return Err(DecodeError::Set { id, length }) };
        if !matches!(id, TEMPLATES | OPTIONS_TEMPLATES | FIRST_DATA..) {
            return Err(DecodeError::SetId(id));
        }
        bytes = rest.get(body..).unwrap_or_default();
    }
    Ok(())
}

impl Counts {
    /// Reads a set of data; returns the number of records.
    fn data(&mut self, plan: &Plan, mut body: &[u8], context: &mut Context, flow: &mut dyn FnMut(&Record)) -> u32 {
        let mut n = 0;
        // Shorter than any record: padding.
        while body.len() >= plan.least.max(1) {
            // The lengths inside exceed the set: padding, or a broken record.
            let Some(reading) = plan.read(&mut body, *context) else { break };
            n += 1;
            if plan.options {
                self.options += 1;
                context.init_ms = reading.context.init_ms;
            } else {
                self.flows += 1;
                flow(&reading.flow());
            }
        }
        n
    }
}

/// The fields of a template (RFC 7011 3.4.1) or options template (3.4.2.2); `None` when truncated.
fn read_template(bytes: &mut &[u8], options: bool, fields: u16) -> Option<Plan> {
    let mut plan = Plan::new(options);
    if options {
        let _scope_fields = take16(bytes)?;
    }
    for _ in 0..fields {
        let (id, length) = (take16(bytes)?, take16(bytes)?);
        let enterprise = if id & 0x8000 != 0 { take32(bytes)? } else { 0 };
        plan.push(Element { enterprise, id: id & 0x7fff }, length);
    }
    Some(plan)
}

/// A message header (RFC 7011 3.1).
#[derive(Debug, Clone, Copy)]
pub(super) struct Header {
    pub length: usize,
    export_s: u32,
    sequence: u32,
    domain: u32,
}

impl Header {
    /// At the front of `bytes`.
    pub fn read(mut bytes: &[u8]) -> Result<Self, DecodeError> {
        let has = bytes.len();
        let bytes = &mut bytes;
        let version = take(bytes).map(u16::from_be_bytes).ok_or(DecodeError::Short)?;
        if version != VERSION {
            return Err(DecodeError::Version(version));
        }
        let length = usize::from(take16(bytes).ok_or(DecodeError::Short)?);
        if length < HEADER {
            return Err(DecodeError::Length { says: length, has });
        }
        let mut word = || take32(bytes).ok_or(DecodeError::Short);
        Ok(Self { length, export_s: word()?, sequence: word()?, domain: word()? })
    }
}
