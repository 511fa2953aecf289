//! What happens to the export to a sink, for the log.

use std::{fmt, io::ErrorKind, sync::Arc};

/// Takes the events of an exporter, one for each change, from any thread.
pub type Log = Arc<dyn Fn(&ExportEvent) + Send + Sync>;

/// A change of a sink. Its text is one line for a log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExportEvent {
    /// The sink in its text form: `udp:HOST:PORT`.
    pub sink: String,
    /// What changed.
    pub change: Change,
}

/// What changed in the export to a sink.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// It takes records.
    Up,
    /// It takes none; it is opened again until it does. Each cause is told once.
    Down {
        /// Kind of the error.
        kind: ErrorKind,
        /// The error in words.
        why: String,
    },
    /// Its queue is full: further records are dropped.
    QueueFull {
        /// Records that the queue holds.
        room: usize,
    },
    /// Its queue has room again.
    QueueDrained {
        /// Records dropped meanwhile.
        dropped: u64,
    },
    /// The file ended in a part of a line, which was removed.
    LineRemoved {
        /// Its bytes.
        bytes: u64,
    },
    /// Its connection broke, and records that were sent may not have been read. They are sent again.
    Uncertain {
        /// How many.
        records: u64,
    },
    /// The export has ended, and the collector has not: records that were sent may not have been read.
    Unread {
        /// How many.
        records: u64,
    },
    /// They were sent again.
    Resent {
        /// How many.
        records: u64,
    },
    /// Its rate was raised, so that all records are sent before the end.
    RateRaised {
        /// Records left.
        left: u64,
        /// Records per second before.
        from: u64,
        /// Records per second now.
        to: u64,
    },
}

impl fmt::Display for ExportEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "export to {}: ", self.sink)?;
        match &self.change {
            Change::Up => f.write_str("up"),
            Change::Down { why, .. } => write!(f, "down: {why}; retrying"),
            Change::QueueFull { room } => write!(f, "its queue of {room} records is full: dropping records"),
            Change::QueueDrained { dropped } => write!(f, "its queue has room again; {dropped} records were dropped"),
            Change::LineRemoved { bytes } => write!(f, "removed {bytes} bytes of an incomplete last line"),
            Change::Uncertain { records } => {
                write!(f, "{records} records may not have been read when the connection broke; they will be sent again")
            }
            Change::Unread { records } => {
                write!(f, "{records} records sent last may not have been read: it did not close the connection")
            }
            Change::Resent { records } => write!(f, "{records} records sent again, by templates of their own"),
            Change::RateRaised { left, from, to } => {
                write!(f, "{left} records left at the end: rate raised from {from}/s to {to}/s")
            }
        }
    }
}
