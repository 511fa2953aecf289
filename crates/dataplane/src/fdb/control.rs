//! What the control side does with the table: static entries, flushing, showing.

use packet::MacAddr;

use super::{
    line::{self, Hit},
    Fdb, Place,
};

/// Which learned entries to forget; static ones stay.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flush {
    /// All of them.
    All,
    /// Those that lead to this endpoint.
    Endpoint(u16),
    /// Those of this domain.
    Domain(u16),
}

/// An entry, to be shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Entry {
    /// The VLAN or VXLAN network.
    pub domain: u16,
    /// The station.
    pub mac: MacAddr,
    /// Where it is: a port or a tunnel.
    pub endpoint: u16,
    /// Seconds since it was last seen; `None` for a static entry.
    pub age_s: Option<u32>,
}

impl Fdb {
    /// Sets an entry that neither ages nor moves. `false` when its bucket holds only static ones.
    pub fn set_static(&self, domain: u16, mac: MacAddr, endpoint: u16) -> bool {
        let place = self.place(domain, mac);
        let word = line::word(place.want, endpoint, true);
        loop {
            let old = self.find(place).or_else(|| self.spare(place, |hit| !hit.is_static()));
            let Some((line, hit)) = old else { return false };
            if line.replace(hit, word) {
                // A learned entry may have been made at the same moment.
                self.forget_but(place, Some(word));
                return true;
            }
        }
    }

    /// Removes a station's entry, static or learned; whether there was one.
    pub fn remove(&self, domain: u16, mac: MacAddr) -> bool {
        self.forget_but(self.place(domain, mac), None)
    }

    /// Forgets learned entries; returns how many.
    pub fn flush(&self, which: Flush) -> usize {
        let mut flushed = 0;
        for (number, line) in self.lines.iter().enumerate() {
            for hit in line.hits().filter(|hit| hit.is_used() && !hit.is_static()) {
                let go = match which {
                    Flush::All => true,
                    Flush::Endpoint(endpoint) => hit.endpoint() == endpoint,
                    Flush::Domain(domain) => self.key(number, hit).0 == domain & 0xfff,
                };
                flushed += usize::from(go && line.replace(hit, line::EMPTY));
            }
        }
        flushed
    }

    /// The entries that are static or have not aged out, in no particular order.
    pub fn entries(&self, now_s: u32) -> impl Iterator<Item = Entry> + '_ {
        self.lines.iter().enumerate().flat_map(move |(number, line)| {
            line.hits().filter(move |&hit| hit.is_used() && !self.aged(line, hit, now_s)).map(move |hit| {
                let (domain, mac) = self.key(number, hit);
                let age_s = (!hit.is_static()).then(|| line.age(hit, now_s).max(0) as u32);
                Entry { domain, mac, endpoint: hit.endpoint(), age_s }
            })
        })
    }

    /// How many entries are static or have not aged out.
    pub fn len(&self, now_s: u32) -> usize {
        self.entries(now_s).count()
    }

    /// Empties the slots of a key whose word is not `but`; whether there was one.
    fn forget_but(&self, place: Place, but: Option<u64>) -> bool {
        let mut any = false;
        for line in self.bucket(place) {
            for hit in line.hits().filter(|hit| hit.matches(place.want) && Some(hit.word) != but) {
                any |= line.replace(hit, line::EMPTY);
            }
        }
        any
    }

    /// The key of an entry in this line.
    fn key(&self, line: usize, hit: Hit) -> (u16, MacAddr) {
        let rest = hit.rest();
        let low = (line as u64 ^ self.hash(rest)) >> 1 & ((1 << self.bits) - 1);
        let [g, h, a, b, c, d, e, f] = (rest << self.bits | low).to_be_bytes();
        (u16::from_be_bytes([g, h]), MacAddr([a, b, c, d, e, f]))
    }
}
