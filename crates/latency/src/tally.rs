//! What became of each message: replied, lost, late, twice, out of order.

use std::io;

use serde::{Deserialize, Serialize};

/// Messages that are looked after at once. A reply to an older one is late whatever it says.
const WINDOW: usize = 1 << 16;

/// How many messages there were, and what became of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Counts {
    /// Messages sent that asked for a reply.
    pub sent: u64,
    /// Replied to in time.
    pub replied: u64,
    /// Given up: no reply in time.
    pub lost: u64,
    /// Of the lost ones, those that were replied to later.
    pub late: u64,
    /// Further replies to a message that was replied to.
    pub duplicates: u64,
    /// Replies that came after one to a later message.
    pub reordered: u64,
    /// Received messages that are not replies of this test.
    pub foreign: u64,
    /// Replies whose payload was not what was sent.
    pub damaged: u64,
}

impl std::ops::AddAssign for Counts {
    fn add_assign(&mut self, other: Self) {
        self.sent += other.sent;
        self.replied += other.replied;
        self.lost += other.lost;
        self.late += other.late;
        self.duplicates += other.duplicates;
        self.reordered += other.reordered;
        self.foreign += other.foreign;
        self.damaged += other.damaged;
    }
}

/// The state of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// No message of this number.
    None,
    /// Sent, not replied to yet.
    Sent,
    /// Given up.
    Lost,
    /// Replied to.
    Replied,
}

/// What a reply is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Seen {
    /// The first, in time: it counts.
    Good,
    /// The first, after it was given up.
    Late,
    /// Twice, or to nothing that was sent.
    Other,
}

/// Keeps the books of one client.
#[derive(Debug)]
pub struct Tally {
    counts: Counts,
    /// By the number of the message, modulo the window.
    states: Vec<(u64, State)>,
    newest_reply: u64,
    open: u64,
}

impl Default for Tally {
    fn default() -> Self {
        Self::with_window(WINDOW)
    }
}

impl Tally {
    /// With so many messages looked after at once.
    pub fn with_window(window: usize) -> Self {
        Self { counts: Counts::default(), states: vec![(0, State::None); window.max(1)], newest_reply: 0, open: 0 }
    }

    fn place(&self, sequence: u64) -> usize {
        (sequence % self.states.len() as u64) as usize
    }

    /// Why nothing was measured where no reply came: somebody else answers there, or nobody.
    pub fn nobody(&self) -> io::Error {
        match self.counts.foreign {
            0 => io::ErrorKind::TimedOut.into(),
            _ => io::Error::new(io::ErrorKind::InvalidData, "it answers with messages that do not reply to ours"),
        }
    }

    /// A message goes out that asks for a reply. Numbers rise.
    pub fn sent(&mut self, sequence: u64) {
        self.counts.sent += 1;
        self.open += 1;
        let place = self.place(sequence);
        let slot = &mut self.states[place];
        if slot.1 == State::Sent {
            // So many went out since that nobody waits for it any more.
            self.counts.lost += 1;
            self.open -= 1;
        }
        *slot = (sequence, State::Sent);
    }

    /// Nobody waits for the reply to this one any more.
    pub fn gave_up(&mut self, sequence: u64) {
        let place = self.place(sequence);
        let slot = &mut self.states[place];
        if *slot == (sequence, State::Sent) {
            slot.1 = State::Lost;
            self.counts.lost += 1;
            self.open -= 1;
        }
    }

    /// A reply came.
    pub fn came(&mut self, sequence: u64) -> Seen {
        let place = self.place(sequence);
        let slot = &mut self.states[place];
        let state = if slot.0 == sequence { slot.1 } else { State::None };
        match state {
            State::Sent => {
                slot.1 = State::Replied;
                self.counts.replied += 1;
                self.open -= 1;
                if sequence < self.newest_reply {
                    self.counts.reordered += 1;
                }
                self.newest_reply = self.newest_reply.max(sequence);
                Seen::Good
            }
            State::Lost => {
                slot.1 = State::Replied;
                self.counts.late += 1;
                Seen::Late
            }
            State::Replied => {
                self.counts.duplicates += 1;
                Seen::Other
            }
            State::None => {
                self.counts.foreign += 1;
                Seen::Other
            }
        }
    }

    /// Messages that are neither replied to nor given up.
    pub fn open(&self) -> u64 {
        self.open
    }

    /// Counts a received message that is not a reply.
    pub fn foreign(&mut self) {
        self.counts.foreign += 1;
    }

    /// The payload of a reply was not what was sent.
    pub fn damaged(&mut self) {
        self.counts.damaged += 1;
    }

    /// The end: what is not replied to by now is lost.
    pub fn end(mut self) -> Counts {
        self.counts.lost += self.open;
        self.counts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_message_ends_up_somewhere() {
        let mut tally = Tally::default();
        (1..=6).for_each(|n| tally.sent(n));
        assert_eq!(tally.came(1), Seen::Good);
        assert_eq!(tally.came(3), Seen::Good);
        assert_eq!(tally.came(2), Seen::Good, "out of order");
        assert_eq!(tally.came(2), Seen::Other, "twice");
        tally.gave_up(4);
        assert_eq!(tally.came(4), Seen::Late);
        tally.gave_up(4);
        tally.gave_up(1);
        assert_eq!(tally.came(4), Seen::Other, "late and twice");
        assert_eq!(tally.came(99), Seen::Other, "never sent");
        tally.foreign();
        tally.damaged();
        tally.gave_up(5);
        assert_eq!(tally.open(), 1);
        let counts = tally.end();
        assert_eq!(
            counts,
            Counts { sent: 6, replied: 3, lost: 3, late: 1, duplicates: 2, reordered: 1, foreign: 2, damaged: 1 }
        );
        assert_eq!(counts.sent, counts.replied + counts.lost);
    }

    #[test]
    fn a_message_that_is_overtaken_by_a_whole_window_is_lost() {
        let mut tally = Tally::default();
        (1..=WINDOW as u64 + 1).for_each(|n| tally.sent(n));
        assert_eq!(tally.came(1), Seen::Other);
        assert_eq!(tally.came(2), Seen::Good);
        let counts = tally.end();
        assert_eq!((counts.replied, counts.lost, counts.foreign), (1, WINDOW as u64, 1));
    }
}
