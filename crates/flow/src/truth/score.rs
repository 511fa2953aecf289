//! How far the recorded flows agree with the flows sent.

use serde::Serialize;

use super::{
    recorded::{Recorded, Seen},
    Expected, Sent,
};

/// The most examples a score keeps.
pub const EXAMPLES: usize = 8;

/// How far the recorded flows agree with the flows sent.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Score {
    /// Flows sent, each in one class.
    pub flows: Flows,
    /// Packets of the flows sent.
    pub packets: Packets,
    /// Bytes of the flows sent, counted as [`octets`](Self::octets) says.
    pub bytes: Packets,
    /// What the byte counts of the logger include: the choice that fits most records.
    pub octets: Octets,
    /// Records read, one for each direction.
    pub records: u64,
    /// Duplicates: the same record again, or a record that overlaps another record of its flow in time.
    pub duplicate_records: u64,
    /// Flows of this test that were recorded but never sent.
    pub invented: Strangers,
    /// Records of other traffic.
    pub foreign: Strangers,
    /// Records above the limit, which the score ignores.
    pub beyond: u64,
    /// Recorded time minus sending time of the first packet, over flows recorded exactly or twice.
    pub first_error: Option<Spread>,
    /// Recorded time minus sending time of the last packet, over the same flows.
    pub last_error: Option<Spread>,
    /// The first few flows that were not recorded exactly, by number.
    pub examples: Vec<Example>,
}

/// Flows sent: `sent = exact + missed + duplicated + miscounted`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Flows {
    /// Sent.
    pub sent: u64,
    /// Recorded once, with the right packets and bytes.
    pub exact: u64,
    /// Not recorded at all.
    pub missed: u64,
    /// Recorded correctly, but more than once.
    pub duplicated: u64,
    /// Recorded with other packets or bytes than sent, without duplicates.
    pub miscounted: u64,
}

/// Packets (or bytes): `recorded = sent - missed + extra`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Packets {
    /// Sent.
    pub sent: u64,
    /// Recorded for the flows sent, without duplicates.
    pub recorded: u64,
    /// Sent but not recorded, in missed and miscounted flows.
    pub missed: u64,
    /// Recorded but not sent, in miscounted flows.
    pub extra: u64,
    /// In duplicate records.
    pub duplicated: u64,
    /// Largest error of a miscounted flow.
    pub worst: u64,
}

/// Records that match nothing sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Strangers {
    /// Distinct flows, if they can be distinguished.
    pub flows: u64,
    /// Records.
    pub records: u64,
    /// Their packets.
    pub packets: u64,
}

/// What the byte counts of a logger include.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Octets {
    /// Frames without FCS.
    Frame,
    /// IP packets, from the IP header on (`octetDeltaCount` as RFC 5102 has it).
    Ip,
    /// Frames with FCS.
    FrameAndFcs,
}

/// Errors in nanoseconds over many flows; negative: early.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Spread {
    /// Flows.
    pub flows: u64,
    /// Least.
    pub min_ns: i64,
    /// Median.
    pub median_ns: i64,
    /// 99th percentile of the absolute error.
    pub p99_abs_ns: u64,
    /// Greatest.
    pub max_ns: i64,
}

/// A flow that was not recorded exactly.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Example {
    /// Its number.
    pub flow: u64,
    /// What is wrong.
    pub what: Difference,
    /// Packets sent.
    pub sent: u64,
    /// Packets recorded, without duplicates.
    pub recorded: u64,
}

/// What is wrong with a flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Difference {
    /// Not recorded.
    Missed,
    /// Recorded more than once.
    Duplicated,
    /// Recorded with other counts.
    Miscounted,
    /// Recorded but never sent.
    Invented,
}

impl Score {
    /// Compares the flows. Sorts the records, walks all flows, and takes 16 bytes of memory per flow.
    pub fn new(recorded: Recorded, expected: &impl Expected) -> Self {
        let Recorded { mut seen, beyond, foreign, .. } = recorded;
        seen.sort_unstable();
        let octets = octets(&seen, expected);
        let mut tally = Tally::new(octets.less(expected.before_ip()), seen.len() as u64);
        let mut rest = seen.as_slice();
        for flow in 0..expected.flows() {
            let here = rest.iter().take_while(|seen| u64::from(seen.flow) == flow).count();
            let (group, behind) = rest.split_at(here);
            rest = behind;
            tally.flow(flow, &expected.sent(flow), group);
        }
        for group in rest.chunk_by(|a, b| a.flow == b.flow) {
            tally.flow(group.first().map_or(0, |seen| seen.flow.into()), &Sent::default(), group);
        }
        let mut score = tally.score;
        (score.octets, score.beyond) = (octets, beyond);
        (score.foreign.records, score.foreign.packets) = foreign;
        (score.first_error, score.last_error) = (spread(tally.firsts), spread(tally.lasts));
        score
    }

    /// Whether every flow was recorded exactly and nothing else was.
    pub fn perfect(&self) -> bool {
        self.flows.exact == self.flows.sent && self.invented.records == 0 && self.beyond == 0
    }

    /// Whether every packet of every flow sent was recorded.
    pub fn nothing_missed(&self) -> bool {
        self.packets.missed == 0 && self.beyond == 0
    }
}

impl Octets {
    /// Bytes to subtract from the length of a frame without FCS.
    fn less(self, before_ip: u32) -> i64 {
        match self {
            Self::Frame => 0,
            Self::Ip => before_ip.into(),
            Self::FrameAndFcs => -4,
        }
    }
}

/// The choice that fits most records, over flows whose frames have one length.
fn octets(seen: &[Seen], expected: &impl Expected) -> Octets {
    let all = [Octets::Frame, Octets::Ip, Octets::FrameAndFcs];
    let less = all.map(|octets| i128::from(octets.less(expected.before_ip())));
    let mut fits = [0u64; 3];
    for group in seen.chunk_by(|a, b| a.flow == b.flow) {
        let sent = group.first().map(|seen| expected.sent(seen.flow.into())).unwrap_or_default();
        if sent.packets == 0 {
            continue;
        }
        for seen in group {
            for (fits, less) in fits.iter_mut().zip(less) {
                let frames = i128::from(seen.bytes) + less * i128::from(seen.packets);
                *fits +=
                    u64::from(frames * i128::from(sent.packets) == i128::from(sent.bytes) * i128::from(seen.packets));
            }
        }
    }
    let most = fits.iter().max().copied().unwrap_or(0);
    all.into_iter().zip(fits).find(|(_, n)| *n == most).map_or(Octets::Frame, |(octets, _)| octets)
}

struct Tally {
    less: i64,
    firsts: Vec<i64>,
    lasts: Vec<i64>,
    score: Score,
}

/// The sum of the records of one flow, without duplicates.
#[derive(Default)]
struct Kept {
    packets: u64,
    bytes: u64,
    first: u64,
    last: u64,
    duplicates: u64,
    duplicate_packets: u64,
    duplicate_bytes: u64,
}

impl Tally {
    fn new(less: i64, records: u64) -> Self {
        let score = Score {
            flows: Flows::default(),
            packets: Packets::default(),
            bytes: Packets::default(),
            octets: Octets::Frame,
            records,
            duplicate_records: 0,
            invented: Strangers::default(),
            foreign: Strangers::default(),
            beyond: 0,
            first_error: None,
            last_error: None,
            examples: Vec::new(),
        };
        Self { less, firsts: Vec::new(), lasts: Vec::new(), score }
    }

    /// Puts one flow in its class. `group` is sorted.
    fn flow(&mut self, flow: u64, sent: &Sent, group: &[Seen]) {
        let score = &mut self.score;
        if sent.packets == 0 {
            if !group.is_empty() {
                let packets = group.iter().fold(0u64, |sum, seen| sum.saturating_add(seen.packets));
                score.invented.flows += 1;
                score.invented.records += group.len() as u64;
                score.invented.packets = score.invented.packets.saturating_add(packets);
                self.example(flow, Difference::Invented, 0, packets);
            }
            return;
        }
        let kept = keep(group, sent.packets);
        let less = i128::from(self.less) * i128::from(sent.packets);
        let bytes = u64::try_from(i128::from(sent.bytes) - less).unwrap_or(0);
        score.flows.sent += 1;
        score.duplicate_records += kept.duplicates;
        score.packets.add(sent.packets, kept.packets, kept.duplicate_packets);
        score.bytes.add(bytes, kept.bytes, kept.duplicate_bytes);
        let right = (kept.packets, kept.bytes) == (sent.packets, bytes);
        let what = match (group.is_empty(), right, kept.duplicates) {
            (true, ..) => (&mut score.flows.missed, Some(Difference::Missed)),
            (_, true, 0) => (&mut score.flows.exact, None),
            (_, true, _) => (&mut score.flows.duplicated, Some(Difference::Duplicated)),
            (_, false, _) => (&mut score.flows.miscounted, Some(Difference::Miscounted)),
        };
        *what.0 += 1;
        if let Some(what) = what.1 {
            self.example(flow, what, sent.packets, kept.packets);
        }
        if right {
            self.firsts.push(kept.first.wrapping_sub(sent.first) as i64);
            self.lasts.push(kept.last.wrapping_sub(sent.last) as i64);
        }
    }

    fn example(&mut self, flow: u64, what: Difference, sent: u64, recorded: u64) {
        if self.score.examples.len() < EXAMPLES {
            self.score.examples.push(Example { flow, what, sent, recorded });
        }
    }
}

impl Packets {
    fn add(&mut self, sent: u64, kept: u64, duplicated: u64) {
        self.sent += sent;
        self.recorded = self.recorded.saturating_add(kept);
        self.missed += sent.saturating_sub(kept);
        self.extra = self.extra.saturating_add(kept.saturating_sub(sent));
        self.duplicated = self.duplicated.saturating_add(duplicated);
        if kept > 0 {
            self.worst = self.worst.max(sent.abs_diff(kept));
        }
    }
}

/// Marks the duplicates among the records of one flow, sorted by time.
///
/// The records of a flow follow each other in time. Two records that overlap for more than an instant are duplicates.
/// With millisecond clocks, short records last only an instant: equal ones are duplicates if the flow would otherwise
/// have more packets than were sent.
fn keep(group: &[Seen], sent: u64) -> Kept {
    let all = group.iter().fold(0u64, |sum, seen| sum.saturating_add(seen.packets));
    let mut kept = Kept::default();
    let mut surplus = all.saturating_sub(sent);
    let mut before: Option<&Seen> = None;
    for seen in group {
        let shares = before.is_some() && seen.first < kept.last;
        let again = before == Some(seen) && surplus >= seen.packets && seen.packets > 0;
        if shares || again {
            surplus = surplus.saturating_sub(seen.packets);
            kept.duplicates += 1;
            kept.duplicate_packets = kept.duplicate_packets.saturating_add(seen.packets);
            kept.duplicate_bytes = kept.duplicate_bytes.saturating_add(seen.bytes);
            continue;
        }
        if before.is_none() {
            kept.first = seen.first;
        }
        kept.last = kept.last.max(seen.last);
        kept.packets = kept.packets.saturating_add(seen.packets);
        kept.bytes = kept.bytes.saturating_add(seen.bytes);
        before = Some(seen);
    }
    kept
}

/// `None` without values.
fn spread(mut errors: Vec<i64>) -> Option<Spread> {
    let flows = errors.len();
    let (min_ns, max_ns) = (*errors.iter().min()?, *errors.iter().max()?);
    let median_ns = *errors.select_nth_unstable((flows - 1) / 2).1;
    errors.iter_mut().for_each(|e| *e = e.saturating_abs());
    let p99_abs_ns = errors.select_nth_unstable((flows * 99).div_ceil(100).max(1) - 1).1.unsigned_abs();
    Some(Spread { flows: flows as u64, min_ns, median_ns, p99_abs_ns, max_ns })
}
