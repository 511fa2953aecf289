//! Records of ended flows, from the worker to the exporter.

use rtrb::Consumer;

use super::{
    detail_table::EndedDetails,
    slot::{Family, IP_BYTES, REVERSED, SPILL, UPPER, V4, V6, WALL},
    Timebase,
};
use crate::{
    facts::{AROUND, FLAGS},
    EndReason, Key, Key4, Key6, Record, Way,
};

/// Takes the records of ended flows, on one thread of its own.
pub struct EndedReader {
    pub(crate) v4: Consumer<<V4 as Family>::Raw>,
    pub(crate) v6: Consumer<<V6 as Family>::Raw>,
    /// One for each of them, if records have details.
    pub(crate) details4: Option<Consumer<EndedDetails>>,
    pub(crate) details6: Option<Consumer<EndedDetails>>,
    pub(crate) timebase: Timebase,
}

impl EndedReader {
    /// The next record, if there is one now.
    pub fn pop(&mut self) -> Option<Record> {
        let (mut record, lines) = match self.v4.pop() {
            Ok(raw) => (record::<V4>(&raw, &self.timebase), &mut self.details4),
            Err(_) => (record::<V6>(&self.v6.pop().ok()?, &self.timebase), &mut self.details6),
        };
        let line = lines.as_mut().and_then(|lines| lines.pop().ok());
        record.details =
            line.map(|line| line.details(|ticks| u64::try_from(self.timebase.ns(ticks)).unwrap_or(u64::MAX)));
        Some(record)
    }

    /// Whether the worker is gone; [`Self::pop`] then gives the last records.
    pub fn is_closed(&self) -> bool {
        self.v4.is_abandoned() && self.v6.is_abandoned()
    }

    /// Uses this timebase from now on.
    pub fn anchor(&mut self, timebase: Timebase) {
        self.timebase = timebase;
    }
}

/// A slot's words as a record.
pub(crate) fn record<F: Packed>(raw: &F::Raw, timebase: &Timebase) -> Record {
    let words = raw.as_ref();
    let word = |i: usize| words.get(F::A + i).copied().unwrap_or_default();
    let (ports, scope, packets, around) = (word(0), word(1) & 0xffff_ffff, word(4), word(7));
    let wall = (ports >> WALL & 0xf) as u8;
    let key = F::unpack(words, ports & !0xffff, scope, ports & REVERSED != 0);
    Record {
        ingress: key.port | u8::from(ports & UPPER != 0),
        key,
        tos: (ports >> 8) as u8,
        forward: way(packets >> 32, word(5), around >> 32),
        back: way(packets & 0xffff_ffff, word(6), around & 0xffff_ffff),
        first: timebase.at_by(word(2), wall),
        last: timebase.at_by(word(3), wall),
        end: reason(word(1) >> 32),
        details: None,
    }
}

/// One direction, from its word in the slot and its part of the spill.
fn way(packets: u64, word: u64, spilled: u64) -> Way {
    let ip_bytes = word & IP_BYTES;
    let around = (word >> AROUND & (2 * SPILL - 1)) + spilled * SPILL;
    Way { packets, ip_bytes, frame_bytes: ip_bytes + around, tcp_flags: (word >> FLAGS) as u16 }
}

fn reason(number: u64) -> Option<EndReason> {
    use EndReason::{Active, EndOfFlow, Forced, Idle, LackOfResources};
    [Idle, Active, EndOfFlow, Forced, LackOfResources].into_iter().find(|reason| *reason as u64 == number)
}

/// Back from words to a key.
pub(crate) trait Packed: Family {
    /// The key in the direction of the first frame.
    fn unpack(addresses: &[u64], ports: u64, scope: u64, reversed: bool) -> Key;
}

macro_rules! packed {
    ($family:ty, $key:ident, [$($i:literal),*]) => {
        impl Packed for $family {
            fn unpack(addresses: &[u64], ports: u64, scope: u64, reversed: bool) -> Key {
                let key = $key([$(addresses[$i],)* ports, scope]);
                if reversed { key.flipped() } else { key }.into()
            }
        }
    };
}
packed!(V4, Key4, [0]);
packed!(V6, Key6, [0, 1, 2, 3]);
