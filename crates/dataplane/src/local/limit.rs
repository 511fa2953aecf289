//! Limits on what frames make this side send: a token bucket, and a memory of recent messages.

use std::net::IpAddr;

use packet::MacAddr;

/// A token bucket in whole numbers. It starts full. Each second adds as many tokens as `take` is given as its rate.
#[derive(Debug)]
pub(super) struct Bucket {
    /// In units of a token divided by the clock's rate, so that one tick adds the rate.
    level: u64,
    hz: u64,
    last: Option<u64>,
}

impl Bucket {
    pub(super) fn new(hz: u64) -> Self {
        Self { level: 0, hz: hz.max(1), last: None }
    }

    /// Takes a token; `false` when there is none. The depth is a tenth of a second's tokens, at least 10.
    pub(super) fn take(&mut self, now: u64, per_second: u32) -> bool {
        let depth = if per_second == 0 { 0 } else { self.hz.saturating_mul(u64::from(per_second / 10).max(10)) };
        self.level = match self.last {
            None => depth,
            Some(last) => {
                let filled = now.saturating_sub(last).saturating_mul(per_second.into());
                self.level.saturating_add(filled).min(depth)
            }
        };
        self.last = Some(now.max(self.last.unwrap_or(now)));
        let pays = self.level >= self.hz;
        if pays {
            self.level -= self.hz;
        }
        pays
    }
}

const SLOTS: usize = 256;

/// A message about a neighbour: a request for it, or a report to the control side.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Mention {
    pub(super) interface: u16,
    pub(super) addr: IpAddr,
    /// Zero where there is none.
    pub(super) mac: MacAddr,
}

/// Messages of the last second, one slot for each hash: a collision forgets the older one.
#[derive(Debug)]
pub(super) struct Recent {
    slots: Box<[Option<(Mention, u64)>]>,
    hz: u64,
}

impl Recent {
    pub(super) fn new(hz: u64) -> Self {
        Self { slots: vec![None; SLOTS].into_boxed_slice(), hz }
    }

    fn slot(mention: &Mention) -> usize {
        let bits = match mention.addr {
            IpAddr::V4(addr) => addr.to_bits().into(),
            IpAddr::V6(addr) => (addr.to_bits() >> 64) as u64 ^ addr.to_bits() as u64,
        };
        let key = bits ^ u64::from(mention.interface) << 48;
        (key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as usize % SLOTS
    }

    /// Whether the same message was sent less than a second ago.
    pub(super) fn has(&self, mention: &Mention, now: u64) -> bool {
        let slot = self.slots.get(Self::slot(mention)).copied().flatten();
        slot.is_some_and(|(last, at)| last == *mention && now.saturating_sub(at) < self.hz)
    }

    /// Remembers a message sent now.
    pub(super) fn note(&mut self, mention: Mention, now: u64) {
        if let Some(slot) = self.slots.get_mut(Self::slot(&mention)) {
            *slot = Some((mention, now));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_gives_its_depth_and_then_its_rate() {
        for (rate, depth) in [(0, 0), (1, 10), (100, 10), (1000, 100), (50_000, 5000)] {
            let mut bucket = Bucket::new(1_000_000);
            assert_eq!((0..10_000).filter(|_| bucket.take(5, rate)).count(), depth, "{rate}");
            let second = (0..1_000_000).filter(|us| bucket.take(6 + us, rate)).count();
            assert_eq!(second, rate as usize, "{rate}");
            assert_eq!((0..10_000).filter(|_| bucket.take(u64::MAX, rate)).count(), depth, "{rate}");
            assert!(!bucket.take(0, rate), "time runs backwards");
        }
    }

    #[test]
    fn a_message_is_sent_again_after_a_second_or_when_it_changed() {
        let mut recent = Recent::new(1000);
        let mention = Mention { interface: 3, addr: IpAddr::V4([10, 0, 0, 1].into()), mac: MacAddr([2; 6]) };
        assert!(!recent.has(&mention, 5));
        recent.note(mention, 5);
        assert!(recent.has(&mention, 1004) && !recent.has(&mention, 1005));
        assert!(!recent.has(&Mention { mac: MacAddr([4; 6]), ..mention }, 6));
        assert!(!recent.has(&Mention { interface: 4, ..mention }, 6));
        assert!(!recent.has(&Mention { addr: IpAddr::V6(1u128.into()), ..mention }, 6));
    }
}
