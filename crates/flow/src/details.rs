//! What can be recorded of a flow besides its counts: TTLs, lengths, DSCP, the link layer, and the times and losses of TCP.

use packet::headers::protocol::TCP;
use serde::{Deserialize, Serialize};

use crate::Link;

/// Details of a flow, since its last record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Details {
    /// From the source to the destination.
    pub forward: WayDetails,
    /// From the destination to the source; zeros without packets, and null as JSON.
    #[serde(with = "null_without_packets")]
    pub back: WayDetails,
    /// From the client's SYN to the server's SYN and ACK, in ns: the round trip to the server and back, seen from the logger.
    /// Only of biflows whose handshake was seen; none in further records of the flow. None where both have one time: they came
    /// in one burst, or within the resolution of a capture.
    pub server_rtt_ns: Option<u64>,
    /// From there to the client's ACK, in ns: the round trip to the client. None where both have one time.
    pub client_rtt_ns: Option<u64>,
}

mod null_without_packets {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use super::WayDetails;

    pub fn serialize<S: Serializer>(way: &WayDetails, to: S) -> Result<S::Ok, S::Error> {
        // A packet is at least as long as its header.
        Some(way).filter(|way| way.max_ip_bytes > 0).serialize(to)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<WayDetails, D::Error> {
        Option::deserialize(from).map(Option::unwrap_or_default)
    }
}

/// Details of one direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct WayDetails {
    /// Least and greatest TTL, or hop limit: `minimumTTL`, `maximumTTL` (IPFIX information elements 52, 53).
    pub min_ttl: u8,
    /// See [`Self::min_ttl`].
    pub max_ttl: u8,
    /// Shortest and longest IP packet, bytes: `minimumIpTotalLength`, `maximumIpTotalLength` (25, 26).
    pub min_ip_bytes: u16,
    /// See [`Self::min_ip_bytes`].
    pub max_ip_bytes: u16,
    /// How often the DSCP was another one than that of the packet before; at most 1,023.
    pub dscp_changes: u16,
    /// TCP segments whose bytes had come before, or whose place had been passed for longer than packets overtake each other.
    pub retransmissions: u32,
    /// TCP segments that others had overtaken: they filled a hole soon after it opened, in less than the round trip of the
    /// handshake, or 3 ms where that is not known. Who sends again learns of the hole first, which takes that round trip.
    pub out_of_order: u32,
    /// The link layer of the first frame; none without frames.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub link: Option<Link>,
}

/// What the details take from a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PacketDetails {
    ttl: u8,
    dscp: u8,
    ip_bytes: u16,
    /// Zero: no segment of TCP.
    flags: u8,
    sequence: u32,
    /// Bytes of the segment.
    payload: u16,
    pub(crate) link: Link,
}

const FIN: u8 = 1;
const SYN: u8 = 2;
const ACK: u8 = 0x10;

impl PacketDetails {
    /// Of no packet.
    pub(crate) const NONE: Self =
        Self { ttl: 0, dscp: 0, ip_bytes: 0, flags: 0, sequence: 0, payload: 0, link: Link([0; crate::link::BYTES]) };

    /// Reads a frame, and its packet from the IP header on. Of IPv6, a segment behind an extension header counts as none.
    #[inline]
    pub fn read(frame: &[u8], packet: &[u8]) -> Self {
        Self { link: Link::read(frame), ..Self::of_packet(packet) }
    }

    #[inline]
    fn of_packet(packet: &[u8]) -> Self {
        match packet {
            [first, tos, t0, t1, _, _, f0, f1, ttl, protocol, ..] if first >> 4 == 4 => {
                // A length of zero: captured at the sender before its NIC cut the packet into segments.
                let total = match u16::from_be_bytes([*t0, *t1]) {
                    0 => u16::try_from(packet.len()).unwrap_or(u16::MAX),
                    total => total,
                };
                let header = u16::from(first & 0xf) * 4;
                let this = Self { ttl: *ttl, dscp: tos >> 2, ip_bytes: total, ..Self::default() };
                let is_first = u16::from_be_bytes([*f0, *f1]) & 0x1fff == 0;
                let is_tcp = *protocol == TCP && is_first;
                this.with_segment(packet, is_tcp, header, total.saturating_sub(header))
            }
            [c0, c1, _, _, l0, l1, next, ttl, ..] if c0 >> 4 == 6 => {
                let behind = u16::from_be_bytes([*l0, *l1]);
                let dscp = (c0 & 0xf) << 2 | c1 >> 6;
                let this = Self { ttl: *ttl, dscp, ip_bytes: behind.saturating_add(40), ..Self::default() };
                this.with_segment(packet, *next == TCP, 40, behind)
            }
            _ => Self::default(),
        }
    }

    /// With the segment of TCP at `from`; `bytes` behind the IP header.
    #[inline]
    fn with_segment(self, packet: &[u8], is_tcp: bool, from: u16, bytes: u16) -> Self {
        let segment = packet.get(usize::from(from)..).and_then(|rest| rest.first_chunk::<14>());
        let Some([_, _, _, _, s0, s1, s2, s3, _, _, _, _, offset, flags]) = segment.filter(|_| is_tcp) else {
            return self;
        };
        let payload = bytes.saturating_sub(u16::from(offset >> 4) * 4);
        Self { flags: *flags, sequence: u32::from_be_bytes([*s0, *s1, *s2, *s3]), payload, ..self }
    }
}

/// The details of a flow in a cache line. All zero: none yet.
///
/// | word | holds, highest bits first |
/// |---|---|
/// | 0 | next sequence number forward 32, back 32 |
/// | 1 | when the oldest hole before it opened, in units of 2^10 ticks: forward 32, back 32 |
/// | 2 | step of the handshake 2, word 0 holds forward 1, back 1; tick of the step 60, or in steps 0 and 3 bytes of the holes: forward 30, back 30 |
/// | 3 | round trips in units of 2^4 ticks, zero: none: server 32, client 32 |
/// | 4 | retransmissions forward 32, back 32 |
/// | 5 | segments out of order forward 32, back 32 |
/// | 6 | forward: least TTL 8, greatest 8, shortest packet 16, longest 16, DSCP changes 10, DSCP 6 |
/// | 7 | the same for the way back |
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[repr(align(64))]
pub(crate) struct Line([u64; 8]);

const NEXT: usize = 0;
const OPENED: usize = 1;
const HANDSHAKE: usize = 2;
const TRIPS: usize = 3;
const RETRANSMISSIONS: usize = 4;
const OUT_OF_ORDER: usize = 5;
const FORWARD: usize = 6;
/// Units of ticks.
const OPENED_UNIT: u32 = 10;
const TRIP_UNIT: u32 = 4;
/// In the word of the handshake.
const STEP: u32 = 62;
const KNOWN: u32 = 60;
const TICK: u64 = (1 << KNOWN) - 1;
const MOST_CHANGES: u64 = 0x3ff;
const HOLES: u32 = 30;
const MOST_HOLES: u32 = (1 << HOLES) - 1;
/// Bytes that may have passed just before the first segment that was seen.
const BEFORE_FIRST: u32 = 0xffff;
/// A hole that is open for so many times as long as packets overtake each other without a round trip, a second, fills no more: the
/// logger itself has missed it.
const LOST: u64 = 333;

/// One half of a word: forward is the upper one.
#[inline]
fn half(word: u64, back: bool) -> u32 {
    (word >> if back { 0 } else { 32 }) as u32
}

#[inline]
fn set_half(word: &mut u64, back: bool, value: u32) {
    let shift = if back { 0 } else { 32 };
    *word = *word & !(0xffff_ffff << shift) | u64::from(value) << shift;
}

impl Line {
    /// Takes a packet that came at tick `now`. `overtaking`: ticks within which packets overtake each other, where no round
    /// trip tells. Returns whether it is the first of its direction.
    pub fn take(&mut self, packet: &PacketDetails, back: bool, now: u64, overtaking: u64) -> bool {
        let is_first = self.way(packet, back);
        if packet.flags != 0 {
            self.handshake(packet.flags, back, now);
            self.sequence(packet, back, now, overtaking);
        }
        is_first
    }

    fn way(&mut self, packet: &PacketDetails, back: bool) -> bool {
        let Some(word) = self.0.get_mut(FORWARD + usize::from(back)) else { return false };
        let (ttl, bytes, dscp) = (u64::from(packet.ttl), u64::from(packet.ip_bytes.max(1)), u64::from(packet.dscp));
        let [least, most, shortest, longest] =
            [*word >> 56, *word >> 48 & 0xff, *word >> 32 & 0xffff, *word >> 16 & 0xffff];
        let (changes, before) = (*word >> 6 & MOST_CHANGES, *word & 0x3f);
        let is_first = longest == 0;
        let [least, shortest, before] = if is_first { [ttl, bytes, dscp] } else { [least, shortest, before] };
        let changes = (changes + u64::from(before != dscp)).min(MOST_CHANGES);
        *word = least.min(ttl) << 56
            | most.max(ttl) << 48
            | shortest.min(bytes) << 32
            | longest.max(bytes) << 16
            | changes << 6
            | dscp;
        is_first
    }

    fn handshake(&mut self, flags: u8, back: bool, now: u64) {
        let word = self.0[HANDSHAKE];
        let (step, at) = (word >> STEP, word & TICK);
        let passed = (now & TICK).saturating_sub(at);
        // Frames of one burst have one time, which does not tell the trip between them.
        let trip = if passed == 0 { 0 } else { u32::try_from(passed >> TRIP_UNIT).unwrap_or(u32::MAX).max(1) };
        let step = match (step, back, flags & (SYN | ACK)) {
            // Also one that is sent again: which one is answered is not known, and the last one is nearest.
            (0 | 1, false, SYN) => 1,
            (1, true, all) if all == SYN | ACK => {
                set_half(&mut self.0[TRIPS], false, trip);
                2
            }
            (2, false, ACK) => {
                set_half(&mut self.0[TRIPS], true, trip);
                3
            }
            _ => return,
        };
        let rest = if step == 3 { 0 } else { now & TICK };
        self.0[HANDSHAKE] = step << STEP | word & (3 << KNOWN) | rest;
    }

    /// Bytes of the holes before the next sequence number.
    fn holes(&self, back: bool) -> u32 {
        match self.0[HANDSHAKE] >> STEP {
            0 | 3 => (self.0[HANDSHAKE] >> if back { 0 } else { HOLES }) as u32 & MOST_HOLES,
            _ => 0,
        }
    }

    fn set_holes(&mut self, back: bool, bytes: u32) {
        let word = &mut self.0[HANDSHAKE];
        if matches!(*word >> STEP, 0 | 3) {
            let shift = if back { 0 } else { HOLES };
            *word = *word & !(u64::from(MOST_HOLES) << shift) | u64::from(bytes.min(MOST_HOLES)) << shift;
        }
    }

    fn sequence(&mut self, packet: &PacketDetails, back: bool, now: u64, overtaking: u64) {
        let turns = u32::from(packet.flags & SYN != 0) + u32::from(packet.flags & FIN != 0);
        let length = u32::from(packet.payload) + turns;
        let end = packet.sequence.wrapping_add(length);
        let known = 1 << (KNOWN + u32::from(!back));
        let next = half(self.0[NEXT], back);
        let moment = (now >> OPENED_UNIT) as u32;
        let is_before = |one: u32, other: u32| (one.wrapping_sub(other) as i32) < 0;
        if self.0[HANDSHAKE] >> STEP == 1 && length > 0 && packet.flags & SYN == 0 {
            // Data, and the answer to the SYN was not seen: it does not come any more.
            self.0[HANDSHAKE] &= 3 << KNOWN;
        }
        if self.0[HANDSHAKE] & known == 0 {
            self.0[HANDSHAKE] |= known;
            set_half(&mut self.0[NEXT], back, end);
            set_half(&mut self.0[OPENED], back, moment);
            self.set_holes(back, if packet.flags & SYN != 0 { 0 } else { BEFORE_FIRST });
            return;
        }
        let open = u64::from(moment.wrapping_sub(half(self.0[OPENED], back))) << OPENED_UNIT;
        if length > 0 && !is_before(packet.sequence, next) {
            set_half(&mut self.0[NEXT], back, end);
            let hole = packet.sequence.wrapping_sub(next);
            if hole > 0 {
                let lasts = open <= overtaking.saturating_mul(LOST);
                let holes = Some(self.holes(back)).filter(|&holes| lasts && holes != BEFORE_FIRST).unwrap_or(0);
                if holes == 0 {
                    set_half(&mut self.0[OPENED], back, moment);
                }
                self.set_holes(back, holes.saturating_add(hole));
            }
            return;
        }
        // A probe of an idle connection repeats the last byte, or has none.
        let is_probe = turns == 0 && length <= 1 && packet.sequence == next.wrapping_sub(1);
        if length == 0 || is_probe {
            return;
        }
        let trips = self.0[TRIPS];
        let trip = (u64::from(half(trips, false)) + u64::from(half(trips, true))) << TRIP_UNIT;
        let within = if half(trips, true) > 0 && half(trips, false) > 0 { trip } else { overtaking };
        let holes = self.holes(back);
        // Where nothing is missing, its bytes came before.
        let kind = if holes > 0 && open < within && end != next { OUT_OF_ORDER } else { RETRANSMISSIONS };
        self.set_holes(back, holes.saturating_sub(length));
        let count = half(self.0[kind], back).saturating_add(1);
        set_half(&mut self.0[kind], back, count);
        if is_before(next, end) {
            set_half(&mut self.0[NEXT], back, end);
        }
    }

    /// The details so far, and begins anew. `goes_on`: the flow does, and its next segments are known from this.
    pub fn cut(&mut self, goes_on: bool) -> Self {
        let whole = *self;
        *self = Self::default();
        if goes_on {
            self.0[NEXT] = whole.0[NEXT];
            self.0[OPENED] = whole.0[OPENED];
            self.0[HANDSHAKE] = whole.0[HANDSHAKE];
        }
        whole
    }

    /// In figures, without the link layer; `ns` makes nanoseconds of ticks.
    pub fn details(&self, ns: impl Fn(u64) -> u64) -> Details {
        let way = |back: bool| {
            let word = self.0[FORWARD + usize::from(back)];
            WayDetails {
                min_ttl: (word >> 56) as u8,
                max_ttl: (word >> 48) as u8,
                min_ip_bytes: (word >> 32) as u16,
                max_ip_bytes: (word >> 16) as u16,
                dscp_changes: (word >> 6 & MOST_CHANGES) as u16,
                retransmissions: half(self.0[RETRANSMISSIONS], back),
                out_of_order: half(self.0[OUT_OF_ORDER], back),
                link: None,
            }
        };
        let trip =
            |client: bool| Some(half(self.0[TRIPS], client)).filter(|&n| n > 0).map(|n| ns(u64::from(n) << TRIP_UNIT));
        Details { forward: way(false), back: way(true), server_rtt_ns: trip(false), client_rtt_ns: trip(true) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn segment(flags: u8, sequence: u32, payload: u16) -> PacketDetails {
        PacketDetails { ttl: 64, dscp: 0, ip_bytes: 40 + payload, flags, sequence, payload, link: Link::default() }
    }

    #[test]
    fn least_and_greatest_are_of_all_packets() {
        let mut line = Line::default();
        for (ttl, ip_bytes) in [(62, 900), (60, 40), (61, 75)] {
            let packet = PacketDetails { ttl, ip_bytes, ..segment(0, 0, 0) };
            line.take(&packet, false, 0, 0);
            line.take(&PacketDetails { ttl: ttl + 100, ip_bytes: ip_bytes + 1000, ..packet }, true, 0, 0);
        }
        let Details { forward, back, .. } = line.details(|ticks| ticks);
        assert_eq!((forward.min_ttl, forward.max_ttl, forward.min_ip_bytes, forward.max_ip_bytes), (60, 62, 40, 900));
        assert_eq!((back.min_ttl, back.max_ttl, back.min_ip_bytes, back.max_ip_bytes), (160, 162, 1040, 1900));
        let text = serde_json::to_string(&Details { forward, ..Details::default() }).unwrap();
        assert!(text.contains(r#""back":null"#), "{text}");
        assert_eq!(serde_json::from_str::<Details>(&text).unwrap(), Details { forward, ..Details::default() });
    }

    /// The details of these segments: from the destination, flags, sequence, payload, ms.
    fn of(segments: &[(bool, u8, u32, u16, u64)]) -> Details {
        let mut line = Line::default();
        for &(back, flags, sequence, payload, at) in segments {
            line.take(&segment(flags, sequence, payload), back, 1000 * MS + at * MS, 3 * MS);
        }
        line.details(|ticks| ticks)
    }

    #[test]
    fn a_handshake_has_two_round_trips() {
        let trips = |d: Details| (d.server_rtt_ns.map(|ns| ns / MS), d.client_rtt_ns.map(|ns| ns / MS));
        let [syn, both, ack] = [(false, SYN, 9, 0, 0), (true, SYN | ACK, 5, 0, 30), (false, ACK, 10, 0, 42)];
        assert_eq!(trips(of(&[syn, both, ack])), (Some(30), Some(12)));
        // The last SYN counts; what follows the handshake does not.
        let again = (false, SYN, 9, 0, 10);
        assert_eq!(trips(of(&[syn, again, both, ack, (false, ACK, 10, 0, 99)])), (Some(20), Some(12)));
        assert_eq!(trips(of(&[both, ack])), (None, None));
        // What comes back without a SYN answers none.
        assert_eq!(trips(of(&[syn, (true, ACK, 5, 0, 10), both, ack])), (Some(30), Some(12)));
        assert_eq!(trips(of(&[syn, ack])), (None, None));
        assert_eq!(trips(of(&[syn, both])), (Some(30), None));
        assert_eq!(trips(of(&[syn, both, (false, ACK | SYN, 10, 0, 42)])), (Some(30), None));
        // Frames of one burst.
        assert_eq!(trips(of(&[syn, (true, SYN | ACK, 5, 0, 0), (false, ACK, 10, 0, 12)])), (None, Some(12)));
        assert_eq!(trips(of(&[syn, both, (false, ACK, 10, 0, 30)])), (Some(30), None));
    }

    #[test]
    fn segments_come_again_or_late() {
        let counts = |d: Details| [d.forward, d.back].map(|way| (way.retransmissions, way.out_of_order));
        let data = |sequence, at| (false, ACK, sequence, 100, at);
        assert_eq!(counts(of(&[data(0, 0), data(100, 1), data(200, 2)])), [(0, 0); 2]);
        // The same again, soon or late.
        assert_eq!(counts(of(&[data(0, 0), data(0, 1), data(100, 2), data(0, 90)])), [(2, 0), (0, 0)]);
        // A hole that fills soon, or late; without a round trip, soon is 3 ms.
        assert_eq!(counts(of(&[data(0, 0), data(200, 1), data(100, 2)])), [(0, 1), (0, 0)]);
        assert_eq!(counts(of(&[data(0, 0), data(200, 1), data(100, 9)])), [(1, 0), (0, 0)]);
        // A hole that opened long ago, whatever came since.
        let row = |n: u64| (false, ACK, 200 + 100 * n as u32, 100, n);
        let bulk: Vec<_> = [(false, ACK, 0, 100, 0)].into_iter().chain((0..40).map(row)).collect();
        assert_eq!(counts(of(&[&bulk[..], &[data(100, 40)]].concat())), [(1, 0), (0, 0)]);
        // Three segments that one has overtaken, and three that were lost.
        let block = |at| [data(0, 0), data(400, 10), data(100, at), data(200, at), data(300, at)];
        assert_eq!(counts(of(&block(11))), [(0, 3), (0, 0)]);
        assert_eq!(counts(of(&block(90))), [(3, 0), (0, 0)]);
        // With a round trip of 42 ms.
        let handshake = [(false, SYN, u32::MAX, 0, 0), (true, SYN | ACK, 5, 0, 30), (false, ACK, 0, 0, 42)];
        let late = |at| counts(of(&[&handshake[..], &[data(0, 50), data(200, 60), data(100, at)]].concat()));
        assert_eq!(late(95), [(0, 1), (0, 0)]);
        assert_eq!(late(110), [(1, 0), (0, 0)]);
        // Nothing is missing: the bytes came before, and were lost behind the logger.
        let seen = [data(0, 50), data(100, 51), data(200, 52), data(300, 53), data(100, 54)];
        assert_eq!(counts(of(&[&handshake[..], &seen].concat())), [(1, 0), (0, 0)]);
        // A hole that nothing fills, and a segment that is overtaken a second later.
        let missed = [data(0, 50), data(200, 60), data(400, 2000), data(300, 2010)];
        assert_eq!(counts(of(&[&handshake[..], &missed].concat())), [(0, 1), (0, 0)]);
        // One way of a connection, as without biflows.
        let alone =
            [(false, SYN, u32::MAX, 0, 0), data(0, 50), data(200, 60), data(100, 61), data(300, 62), data(200, 63)];
        assert_eq!(counts(of(&alone)), [(1, 1), (0, 0)]);
        // What passed before the first segment is not known, but behind a SYN everything is.
        assert_eq!(counts(of(&[data(100, 0), data(200, 1), data(0, 2)])), [(0, 1), (0, 0)]);
        let begun = [(false, SYN, u32::MAX, 0, 0), data(0, 1), data(100, 1), data(0, 2)];
        assert_eq!(counts(of(&begun)), [(1, 0), (0, 0)]);
        // Half of a round trip is none: 3 ms.
        let half = [(false, SYN, u32::MAX, 0, 0), (true, SYN | ACK, 5, 0, 0), (false, ACK, 0, 0, 12)];
        let late = [data(0, 50), data(200, 60), data(100, 66)];
        assert_eq!(counts(of(&[&half[..], &late].concat())), [(1, 0), (0, 0)]);
        // A SYN and a FIN count as a byte each; acknowledgements and probes do not.
        let more = [
            (false, SYN, u32::MAX, 0, 43),
            (false, ACK, 0, 0, 44),
            (true, ACK | FIN, 6, 0, 45),
            (true, ACK | FIN, 6, 0, 90),
        ];
        assert_eq!(counts(of(&[&handshake[..], &more].concat())), [(1, 0), (1, 0)]);
        assert_eq!(counts(of(&[data(0, 0), (false, ACK, 99, 1, 9), (false, ACK, 99, 0, 9)])), [(0, 0); 2]);
        // One that begins before and ends behind.
        assert_eq!(counts(of(&[data(0, 0), (false, ACK, 50, 100, 9), data(150, 10), data(150, 99)])), [(2, 0), (0, 0)]);
    }

    #[test]
    fn numbers_and_ticks_begin_anew() {
        let at = |sequence: u32, at| (false, ACK, sequence, 100, at);
        let d = of(&[at(u32::MAX - 49, 0), at(50, 1), at(u32::MAX - 49, 50)]);
        assert_eq!((d.forward.retransmissions, d.forward.out_of_order), (1, 0));
    }

    #[test]
    fn a_record_leaves_the_sequence_where_the_flow_goes_on() {
        let mut line = Line::default();
        let take = |line: &mut Line, sequence, at| line.take(&segment(ACK, sequence, 100), false, at * MS, 3 * MS);
        take(&mut line, 0, 0);
        let mut ended = line;
        assert_eq!(line.cut(true).details(|t| t).forward.max_ip_bytes, 140);
        assert_eq!(line.details(|t| t), Details::default());
        take(&mut line, 0, 90);
        assert_eq!(line.details(|t| t).forward.retransmissions, 1);
        ended.cut(false);
        assert_eq!(ended, Line::default());
    }

    #[test]
    fn least_and_most_are_kept_each_way() {
        let mut line = Line::default();
        for (ttl, dscp, ip_bytes, back) in
            [(64, 0, 40, false), (60, 46, 1500, false), (255, 46, 0, true), (62, 0, 100, false), (62, 0, 100, false)]
        {
            line.take(&PacketDetails { ttl, dscp, ip_bytes, ..PacketDetails::default() }, back, 0, 0);
        }
        let d = line.details(|t| t);
        let f = d.forward;
        assert_eq!((f.min_ttl, f.max_ttl, f.min_ip_bytes, f.max_ip_bytes, f.dscp_changes), (60, 64, 40, 1500, 2));
        assert_eq!((d.back.min_ttl, d.back.max_ttl, d.back.dscp_changes), (255, 255, 0));
        for n in 0..5000u16 {
            line.take(&PacketDetails { dscp: (n % 2) as u8, ip_bytes: 1, ..PacketDetails::default() }, false, 0, 0);
        }
        assert_eq!(line.details(|t| t).forward.dscp_changes, 1023);
    }

    #[test]
    fn packets_are_read_or_are_nothing() {
        let mut v4 = vec![0x45, 0xb8, 0, 60, 0, 0, 0x40, 0, 63, 6, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2];
        v4.extend([0, 80, 1, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0x80, 0x18, 0, 0]);
        let read = PacketDetails::of_packet(&v4);
        assert_eq!(
            read,
            PacketDetails {
                ttl: 63,
                dscp: 46,
                ip_bytes: 60,
                flags: 0x18,
                sequence: 256,
                payload: 8,
                link: Link::default()
            }
        );
        // Not yet cut into segments.
        let mut whole = v4.clone();
        whole[3] = 0;
        whole.extend([0; 300]);
        let bytes = whole.len() as u16;
        assert_eq!(
            PacketDetails::of_packet(&whole),
            PacketDetails { ip_bytes: bytes, payload: bytes - 20 - 32, ..read }
        );
        // A later fragment, a cut one, and one that is not TCP.
        let mut other = v4.clone();
        other[7] = 1;
        assert_eq!(PacketDetails::of_packet(&other).flags, 0);
        assert_eq!(PacketDetails::of_packet(&v4[..33]).flags, 0);
        other = v4.clone();
        other[9] = 17;
        assert_eq!(PacketDetails::of_packet(&other), PacketDetails { flags: 0, sequence: 0, payload: 0, ..read });
        let mut v6 = vec![0x6b, 0x80, 0, 0, 0, 40, 6, 64];
        v6.extend([0; 32]);
        v6.extend(&v4[20..]);
        let want = PacketDetails { ttl: 64, ip_bytes: 80, ..read };
        assert_eq!(PacketDetails::of_packet(&v6), want);
        for bytes in [&[][..], &[0x45], &[0x60; 8], &[0x15; 40]] {
            assert_eq!(PacketDetails::of_packet(bytes).flags, 0);
        }
    }
}
