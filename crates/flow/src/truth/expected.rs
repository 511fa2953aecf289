//! What was sent: flows by number.

use std::collections::HashMap;

use crate::Key;

/// The packets sent of one flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Sent {
    /// Frames; zero: the flow was never sent.
    pub packets: u64,
    /// Their bytes without FCS.
    pub bytes: u64,
    /// When the first frame left, in ns since the Unix epoch.
    pub first: u64,
    /// When the last frame left, in ns since the Unix epoch.
    pub last: u64,
}

/// What was sent, flow by flow. Flows have numbers. An implementation may compute the number from the key instead of
/// keeping a table of keys.
pub trait Expected {
    /// All flow numbers are below this; some flows may not have been sent.
    fn flows(&self) -> u64;

    /// The number of the flow with this key. A key of this test that was never sent has a number above all sent ones.
    /// `None`: other traffic on the link.
    ///
    /// Implementations must ignore [`Key::port`] and [`Key::scope`]: only the logger knows them.
    fn find(&self, key: &Key) -> Option<u64>;

    /// The packets sent of this flow.
    fn sent(&self, flow: u64) -> Sent;

    /// Bytes of a frame before its IP header.
    fn before_ip(&self) -> u32;
}

/// A list of flows with any keys.
#[derive(Debug, Clone, Default)]
pub struct Listed {
    numbers: HashMap<Key, u64>,
    sent: Vec<Sent>,
}

impl Listed {
    /// Adds a flow. Flows are numbered in the order added.
    pub fn push(&mut self, key: Key, sent: Sent) {
        self.numbers.insert(Key { port: 0, scope: None, ..key }, self.sent.len() as u64);
        self.sent.push(sent);
    }
}

impl Expected for Listed {
    fn flows(&self) -> u64 {
        self.sent.len() as u64
    }

    /// A key that is not listed counts as a flow that was never sent: other traffic on the link is not expected.
    fn find(&self, key: &Key) -> Option<u64> {
        Some(self.numbers.get(&Key { port: 0, scope: None, ..*key }).copied().unwrap_or(u64::MAX))
    }

    fn sent(&self, flow: u64) -> Sent {
        usize::try_from(flow).ok().and_then(|flow| self.sent.get(flow)).copied().unwrap_or_default()
    }

    fn before_ip(&self) -> u32 {
        14
    }
}
