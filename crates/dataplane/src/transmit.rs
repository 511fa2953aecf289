use std::{fmt, ops::RangeInclusive, str::FromStr};

use packet::{Buffer, Burst, Tx, BURST};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::{DropBatch, DropReason, OutputStats, SpecError};

const SMALL: RangeInclusive<usize> = 1..=BURST;
const WAIT_POLLS: RangeInclusive<u32> = 0..=1000;

/// When the frames for an egress port leave.
///
/// A network card is told of new frames by a write over PCIe, and a second write waits for the first: telling it of
/// one frame at a time stalls the core, waiting for 32 makes latency large and loses the last frames of a test. So a
/// handful waits a poll or two for company, and no longer.
///
/// Written `now` or `small=4,polls=2`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TxPolicy {
    small: usize,
    wait_polls: u32,
}

impl TxPolicy {
    /// Every burst leaves at once.
    pub const NOW: Self = Self { small: 1, wait_polls: 0 };

    /// Fewer than `small` frames (1 to 64) for a port wait up to `wait_polls` polls (0 to 1000) for more.
    pub fn new(small: usize, wait_polls: u32) -> Result<Self, SpecError> {
        if !SMALL.contains(&small) {
            return Err(SpecError::new("transmit small", small, range(&SMALL)));
        }
        if !WAIT_POLLS.contains(&wait_polls) {
            return Err(SpecError::new("transmit polls", wait_polls, range(&WAIT_POLLS)));
        }
        Ok(Self { small, wait_polls })
    }

    /// So many frames leave at once.
    pub fn small(self) -> usize {
        self.small
    }

    /// No frame waits for more polls than this.
    pub fn wait_polls(self) -> u32 {
        self.wait_polls
    }

    /// Whether no frame ever waits.
    pub fn is_now(self) -> bool {
        self.small <= 1 || self.wait_polls == 0
    }
}

fn range<T: fmt::Display>(legal: &RangeInclusive<T>) -> String {
    format!("must be {} to {}", legal.start(), legal.end())
}

impl Default for TxPolicy {
    /// [`TxPolicy::NOW`].
    fn default() -> Self {
        Self::NOW
    }
}

impl FromStr for TxPolicy {
    type Err = SpecError;

    fn from_str(text: &str) -> Result<Self, SpecError> {
        if text.trim() == "now" {
            return Ok(Self::NOW);
        }
        let err = || SpecError::new("transmit policy", text, "must be now, or both keys like small=4,polls=2");
        let (mut small, mut polls) = (None, None);
        for part in text.split(',') {
            let (key, value) = part.split_once('=').ok_or_else(err)?;
            let value = value.trim();
            match key.trim() {
                "small" if small.is_none() => {
                    small = Some(value.parse().map_err(|_| SpecError::new("transmit small", value, range(&SMALL)))?);
                }
                "polls" if polls.is_none() => {
                    let bad = |_| SpecError::new("transmit polls", value, range(&WAIT_POLLS));
                    polls = Some(value.parse().map_err(bad)?);
                }
                _ => return Err(err()),
            }
        }
        Self::new(small.ok_or_else(err)?, polls.ok_or_else(err)?)
    }
}

impl fmt::Display for TxPolicy {
    /// As [`FromStr`] reads it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if *self == Self::NOW {
            return f.pad("now");
        }
        f.pad(&format!("small={},polls={}", self.small, self.wait_polls))
    }
}

impl Serialize for TxPolicy {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for TxPolicy {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        String::deserialize(d)?.parse().map_err(serde::de::Error::custom)
    }
}

/// An lcore's transmit queues and the frames that wait to leave by them. Order within a port is kept.
#[derive(Debug)]
pub(crate) struct Transmit<T, B: Buffer> {
    egress: Vec<Egress<T, B>>,
    retries: u32,
    /// So many frames leave at once: all of them when nothing is to wait.
    small: usize,
    wait_polls: u32,
    /// The poll now, counted round.
    poll: u32,
    held: usize,
}

#[derive(Debug)]
struct Egress<T, B: Buffer> {
    queue: T,
    stats: OutputStats,
    /// The poll that put the first frame of `pending` there.
    since: u32,
    pending: Burst<B>,
}

impl<T: Tx<Buf = B>, B: Buffer> Transmit<T, B> {
    pub(crate) fn new(queues: Vec<T>, policy: TxPolicy, retries: u32) -> Self {
        let egress = |queue| Egress { queue, stats: OutputStats::default(), since: 0, pending: Burst::new() };
        Self {
            egress: queues.into_iter().map(egress).collect(),
            retries,
            small: if policy.is_now() { 1 } else { policy.small },
            wait_polls: policy.wait_polls,
            poll: 0,
            held: 0,
        }
    }

    /// Takes all frames of a burst for a port. Returns how many were handed to the port's queue, pending ones
    /// included: zero when they wait.
    #[inline]
    pub(crate) fn send_or_hold(&mut self, port: usize, frames: &mut Burst<B>, drops: &mut DropBatch<B>) -> usize {
        let Some(egress) = self.egress.get_mut(port) else {
            drops.drop_all(frames, DropReason::NoPort);
            return 0;
        };
        if frames.len() >= self.small && (self.held == 0 || egress.pending.is_empty()) {
            return transmit(&mut egress.queue, &mut egress.stats, frames, self.retries, drops);
        }
        self.gather(port, frames, drops)
    }

    /// A handful of frames, or frames that have others of their port before them.
    #[inline(never)]
    fn gather(&mut self, port: usize, frames: &mut Burst<B>, drops: &mut DropBatch<B>) -> usize {
        let Some(Egress { queue, stats, since, pending }) = self.egress.get_mut(port) else { return 0 };
        let (waiting, new) = (pending.len(), frames.len());
        if new == 0 {
            return 0;
        }
        if waiting + new < self.small {
            if waiting == 0 {
                *since = self.poll;
            }
            self.held += new;
            pending.extend(frames.drain(..));
            return 0;
        }
        self.held -= waiting;
        if waiting + new <= BURST {
            pending.extend(frames.drain(..));
            return transmit(queue, stats, pending, self.retries, drops);
        }
        transmit(queue, stats, pending, self.retries, drops) + transmit(queue, stats, frames, self.retries, drops)
    }

    /// Ends a poll. Whether there are frames that have waited their time: to be flushed now.
    #[inline]
    pub(crate) fn next_poll(&mut self) -> bool {
        self.poll = self.poll.wrapping_add(1);
        self.held > 0 && self.egress.iter().any(|egress| egress.is_due(self.poll, self.wait_polls))
    }

    /// Makes every frame due.
    pub(crate) fn make_all_due(&mut self) {
        self.poll = self.poll.wrapping_add(self.wait_polls + 1);
    }

    /// Sends the frames that are due. Returns how many.
    #[inline(never)]
    pub(crate) fn flush(&mut self, drops: &mut DropBatch<B>) -> usize {
        let mut sent = 0;
        for egress in self.egress.iter_mut().filter(|egress| egress.is_due(self.poll, self.wait_polls)) {
            sent += transmit(&mut egress.queue, &mut egress.stats, &mut egress.pending, self.retries, drops);
        }
        self.held -= sent;
        sent
    }

    /// Frames that wait.
    #[inline]
    pub(crate) fn held(&self) -> usize {
        self.held
    }

    /// What left, for each port.
    pub(crate) fn stats(&self) -> impl Iterator<Item = OutputStats> + '_ {
        self.egress.iter().map(|egress| egress.stats)
    }
}

impl<T, B: Buffer> Egress<T, B> {
    /// Whether its frames have waited their time, now that poll `poll` is about to begin.
    fn is_due(&self, poll: u32, wait_polls: u32) -> bool {
        !self.pending.is_empty() && poll.wrapping_sub(self.since) > wait_polls
    }
}

/// Empties a burst that is not empty into a queue; what the queue refuses to the last is dropped. Returns how many
/// frames there were.
#[inline]
fn transmit<B: Buffer, T: Tx<Buf = B>>(
    queue: &mut T,
    stats: &mut OutputStats,
    burst: &mut Burst<B>,
    retries: u32,
    drops: &mut DropBatch<B>,
) -> usize {
    let n = burst.len();
    for _ in 0..=retries {
        stats.calls += 1;
        stats.frames += queue.tx(burst) as u64;
        if burst.is_empty() {
            return n;
        }
    }
    stats.refused += burst.len() as u64;
    drops.drop_all(burst, DropReason::TxFull);
    n
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn policies_survive_their_text() {
        for text in ["now", "small=4,polls=2", "small=1,polls=1000", "small=64,polls=0"] {
            let policy: TxPolicy = text.parse().unwrap();
            assert_eq!(policy.to_string(), text);
            assert_eq!(policy.is_now(), text != "small=4,polls=2");
        }
        assert_eq!(" polls = 2 , small = 4 ".parse(), TxPolicy::new(4, 2));
        assert_eq!("now".parse(), Ok(TxPolicy::default()));
    }

    #[test]
    fn errors_name_the_key_and_what_is_legal() {
        let mut shown = String::new();
        for (text, what, value) in [
            ("", "transmit policy", ""),
            ("later", "transmit policy", "later"),
            ("small=4", "transmit policy", "small=4"),
            ("small=4,small=4,polls=2", "transmit policy", "small=4,small=4,polls=2"),
            ("small=4,polls=2,more=1", "transmit policy", "small=4,polls=2,more=1"),
            ("small=0,polls=2", "transmit small", "0"),
            ("small=65,polls=2", "transmit small", "65"),
            ("small=x,polls=2", "transmit small", "x"),
            ("small=4,polls=1001", "transmit polls", "1001"),
            ("small=4,polls=-1", "transmit polls", "-1"),
        ] {
            let error = text.parse::<TxPolicy>().unwrap_err();
            assert_eq!((error.what.as_str(), error.value.as_str()), (what, value), "{text}");
            shown += &format!("{text}\n    {error}\n");
        }
        insta::assert_snapshot!("errors", shown);
    }
}
