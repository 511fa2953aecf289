//! What was sent: flows by number.

use std::collections::HashMap;

use crate::Key;

/// What was sent of one flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Sent {
    /// Frames; none: the flow was never sent.
    pub packets: u64,
    /// Their bytes without FCS.
    pub bytes: u64,
    /// When the first left, in ns since the Unix epoch.
    pub first: u64,
    /// When the last left.
    pub last: u64,
}

/// What was sent, flow by flow. Flows are numbered; a key says which, so that no table of keys has to be kept where
/// arithmetic will do.
pub trait Expected {
    /// Flows are numbered below this; some of them may not have been sent.
    fn flows(&self) -> u64;

    /// The flow that has this key, also one numbered above all that were sent; `None` for a key that is not of this
    /// test (other traffic on the link).
    ///
    /// [`Key::port`] and [`Key::scope`] are to be left out of account: only the logger knows them.
    fn find(&self, key: &Key) -> Option<u64>;

    /// What was sent of this flow.
    fn sent(&self, flow: u64) -> Sent;

    /// Bytes of a frame in front of its IP header.
    fn before_ip(&self) -> u32;
}

/// Flows one by one, of any keys.
#[derive(Debug, Clone, Default)]
pub struct Listed {
    numbers: HashMap<Key, u64>,
    sent: Vec<Sent>,
}

impl Listed {
    /// Adds a flow, which gets the next number.
    pub fn push(&mut self, key: Key, sent: Sent) {
        self.numbers.insert(Key { port: 0, scope: 0, ..key }, self.sent.len() as u64);
        self.sent.push(sent);
    }
}

impl Expected for Listed {
    fn flows(&self) -> u64 {
        self.sent.len() as u64
    }

    /// A key that is not listed counts as one above all that were sent: nothing else is known to be on the link.
    fn find(&self, key: &Key) -> Option<u64> {
        Some(self.numbers.get(&Key { port: 0, scope: 0, ..*key }).copied().unwrap_or(u64::MAX))
    }

    fn sent(&self, flow: u64) -> Sent {
        usize::try_from(flow).ok().and_then(|flow| self.sent.get(flow)).copied().unwrap_or_default()
    }

    fn before_ip(&self) -> u32 {
        14
    }
}
