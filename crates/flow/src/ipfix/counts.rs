//! Counts of a decoder.

/// Counts of a decoder.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    /// Complete messages.
    pub messages: u64,
    /// Messages that broke the format. The part read before the error counts.
    pub malformed: u64,
    /// Flow records.
    pub flows: u64,
    /// Records of options data.
    pub options: u64,
    /// Templates accepted, including repeated ones.
    pub templates: u64,
    /// Templates withdrawn (RFC 7011 8.1).
    pub withdrawn: u64,
    /// Templates refused because they broke the format or a limit.
    pub refused: u64,
    /// Data sets skipped because their template was not known (yet).
    pub without_template: u64,
    /// Data records sent but not received, by the sequence numbers.
    pub lost: u64,
    /// Messages that arrived after later ones; their records are not in `lost`.
    pub late: u64,
    /// Sessions that began.
    pub sessions: u64,
}

impl Counts {
    /// Adds the difference from `before` to `now`. `lost` goes down again when late messages arrive.
    pub(super) fn add_since(&mut self, now: Self, before: Self) {
        self.messages = self.messages.wrapping_add(now.messages).wrapping_sub(before.messages);
        self.malformed = self.malformed.wrapping_add(now.malformed).wrapping_sub(before.malformed);
        self.flows = self.flows.wrapping_add(now.flows).wrapping_sub(before.flows);
        self.options = self.options.wrapping_add(now.options).wrapping_sub(before.options);
        self.templates = self.templates.wrapping_add(now.templates).wrapping_sub(before.templates);
        self.withdrawn = self.withdrawn.wrapping_add(now.withdrawn).wrapping_sub(before.withdrawn);
        self.refused = self.refused.wrapping_add(now.refused).wrapping_sub(before.refused);
        self.without_template =
            self.without_template.wrapping_add(now.without_template).wrapping_sub(before.without_template);
        self.lost = self.lost.wrapping_add(now.lost).wrapping_sub(before.lost);
        self.late = self.late.wrapping_add(now.late).wrapping_sub(before.late);
        self.sessions = self.sessions.wrapping_add(now.sessions).wrapping_sub(before.sessions);
    }
}
