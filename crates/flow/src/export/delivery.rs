//! Which records of a TCP session the collector may not have read.

use std::collections::VecDeque;

use crate::Record;

/// Bytes that may be in a collector's buffer without a narrower window: Linux starts with 128 KiB of buffer
/// and half of that as its window.
const HIDDEN: u64 = 128 << 10;
/// The same where no window is known: Linux takes no more than 208 KiB into a buffer that nobody but root made larger, and
/// counts it double where a program asked for it.
const HIDDEN_WITHOUT_WINDOW: u64 = 512 << 10;
/// Most records kept. A session has about ten MiB on the way at most, which is less than that many.
const MOST: usize = 1 << 19;

/// The records of a session that the collector may not have read yet.
///
/// IPFIX has no acknowledgement, and the one of TCP says that the collector's kernel has the bytes, not that anybody read them.
/// But its window does: bytes that wait in its buffer make the window smaller, and reading them makes it larger again. So the
/// bytes acknowledged, less what the window lacks to its widest, less what may hide from it, were read.
#[derive(Debug, Default)]
pub(super) struct Delivery {
    records: VecDeque<Record>,
    /// Of each message: the bytes of the session at its end, and its records.
    messages: VecDeque<(u64, usize)>,
    /// Bytes known to be read.
    read: u64,
    /// The widest window seen, in bytes.
    widest: u64,
    /// Whether no window is ever known.
    blind: bool,
}

impl Delivery {
    /// Of a session whose transport tells no window.
    pub fn without_window() -> Self {
        Self { blind: true, ..Self::default() }
    }

    /// A message is with our kernel; the session has `end` bytes with it.
    pub fn sent(&mut self, end: u64, records: impl IntoIterator<Item = Record>) {
        let before = self.records.len();
        self.records.extend(records);
        self.messages.push_back((end, self.records.len() - before));
        while self.records.len() > MOST {
            self.forget_first();
        }
    }

    /// So many bytes of the session are acknowledged, and the window is so large now.
    pub fn seen(&mut self, acknowledged: u64, window: u64) {
        self.widest = self.widest.max(window);
        let hidden = if self.blind { HIDDEN_WITHOUT_WINDOW } else { HIDDEN.max(self.widest / 2) };
        let unread = self.widest - window + hidden;
        self.read_to(acknowledged.saturating_sub(unread));
    }

    /// The collector has ended the connection and has left nothing unread: else its kernel would have reset the connection. It
    /// read all that was acknowledged.
    pub fn ended(&mut self, acknowledged: u64) {
        self.read_to(acknowledged);
    }

    fn read_to(&mut self, read: u64) {
        self.read = self.read.max(read);
        while self.messages.front().is_some_and(|&(end, _)| end <= self.read) {
            self.forget_first();
        }
    }

    fn forget_first(&mut self) {
        if let Some((_, records)) = self.messages.pop_front() {
            self.records.drain(..records.min(self.records.len()));
        }
    }

    /// How many records may not have been read.
    pub fn uncertain(&self) -> usize {
        self.records.len()
    }

    /// The session is over: the records that may not have been read, in their order.
    pub fn end(&mut self) -> VecDeque<Record> {
        let next = Self { blind: self.blind, ..Self::default() };
        std::mem::replace(self, next).records
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;
    use crate::{Addresses, Key, Way};

    fn some(n: usize) -> Vec<Record> {
        let any = Ipv4Addr::UNSPECIFIED;
        let of = |n| Record {
            key: Key {
                addresses: Addresses::V4 { src: any, dst: any },
                sport: 0,
                dport: 0,
                protocol: 17,
                port: 0,
                scope: None,
                bottom: false,
            },
            ingress: 0,
            tos: 0,
            forward: Way::default(),
            back: Way::default(),
            first: n as u64,
            last: 0,
            end: None,
            details: None,
        };
        (0..n).map(of).collect()
    }

    #[test]
    fn what_was_read_is_forgotten_message_by_message() {
        let mut delivery = Delivery::default();
        for message in 1..=100 {
            delivery.sent(message * 10_000, some(10));
        }
        // Acknowledged, and the window is as wide as before: all but what may hide.
        delivery.seen(1_000_000, 65_536);
        assert_eq!(delivery.uncertain(), 140);
        // The window is closed: nobody reads. What was known to be read stays so.
        delivery.seen(1_000_000, 0);
        assert_eq!(delivery.uncertain(), 140);
        // A connection that ended without a reset: what was acknowledged was read.
        delivery.ended(989_999);
        assert_eq!(delivery.uncertain(), 20);
        let rest = delivery.end();
        assert_eq!((rest.len(), delivery.uncertain()), (20, 0));
    }

    #[test]
    fn a_window_that_closes_says_that_nobody_reads() {
        let mut delivery = Delivery::default();
        delivery.seen(0, 4 << 20);
        delivery.sent(8 << 20, some(5));
        delivery.sent(16 << 20, some(7));
        // 4 MiB in its buffer, and 2 MiB may hide.
        delivery.seen(14 << 20, 0);
        assert_eq!(delivery.uncertain(), 7);
        delivery.seen((14 << 20) - 1, 0);
        assert_eq!(delivery.uncertain(), 7);
        delivery.seen(16 << 20, 0);
        assert_eq!(delivery.uncertain(), 7);
        delivery.seen(16 << 20, 4 << 20);
        assert_eq!(delivery.uncertain(), 7);
        delivery.ended(16 << 20);
        assert_eq!(delivery.uncertain(), 0);
    }

    #[test]
    fn nothing_is_certain_of_a_session_that_was_not_acknowledged() {
        let mut delivery = Delivery::default();
        delivery.sent(100, some(1));
        delivery.seen(0, 65_536);
        delivery.ended(0);
        assert_eq!(delivery.end().len(), 1);
    }

    #[test]
    fn memory_has_an_end() {
        let mut delivery = Delivery::default();
        let records = some(1000);
        for message in 0..600 {
            delivery.sent(message, records.iter().copied());
        }
        assert_eq!(delivery.uncertain(), MOST / 1000 * 1000);
    }

    #[test]
    fn without_a_window_the_last_half_mebibyte_is_uncertain_in_every_session() {
        let mut delivery = Delivery::without_window();
        for _ in 0..2 {
            delivery.sent(1000, some(2));
            delivery.sent(2000, some(3));
            delivery.seen(999 + HIDDEN_WITHOUT_WINDOW, 0);
            assert_eq!(delivery.uncertain(), 5);
            delivery.seen(1000 + HIDDEN_WITHOUT_WINDOW, 0);
            assert_eq!(delivery.uncertain(), 3);
            assert_eq!(delivery.end().len(), 3);
        }
    }
}
