//! The text form of an impairment.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use units::{parse_duration, Load, Nanos, Ratio};

use crate::SpecError;

/// What a policer counts, in a second.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Limit {
    /// Frames.
    Frames(f64),
    /// Bits of layer 2, the FCS counted.
    L2(f64),
    /// Bits of layer 1: with FCS, preamble and inter-frame gap.
    L1(f64),
}

/// A token bucket that drops what is over its rate, or lets it wait first.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Policer {
    /// The rate.
    pub limit: Limit,
    /// Depth of the bucket in frames (of 1518 bytes for a bit rate); by default the larger of 64 frames and 500 us
    /// of the rate.
    pub burst_frames: Option<u32>,
    /// How long a frame over the rate may wait for its turn. Zero: it is dropped at once.
    pub queue: Nanos,
}

impl Policer {
    /// Frames that wait at most, each of them as small as a frame may be.
    fn waiting(&self) -> f64 {
        let bits = 8.0 * f64::from(units::FrameSize::MIN.bytes());
        let fps = match self.limit {
            Limit::Frames(fps) => fps,
            Limit::L1(bps) => bps / (bits + 8.0 * f64::from(units::WIRE_OVERHEAD_BYTES)),
            Limit::L2(bps) => bps / bits,
        };
        fps * self.queue.seconds()
    }
}

/// On which side of the function the impairment stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Place {
    /// On received frames, for each ingress port by itself.
    Before,
    /// On frames about to be sent, for each egress port by itself.
    #[default]
    After,
}

/// What `impair` does to frames, in this order: work, police, lose, duplicate, reorder, delay.
///
/// Written `work=200,rate=1Mpps,burst=128,queue=1ms,loss=0.1%,dup=0.05%,reorder=0.1%,distance=3,delay=10us,jitter=5us,seed=7`; every
/// key may be left out.
#[derive(Debug, Clone, PartialEq)]
pub struct ImpairSpec {
    /// `work`: clocks spent on each frame.
    pub work: u32,
    /// `rate`, `burst`, `queue`: the policer.
    pub police: Option<Policer>,
    /// `loss`: share of the frames lost.
    pub loss: Ratio,
    /// `dup`: share of the frames sent twice.
    pub dup: Ratio,
    /// `reorder`: share of the frames held back until `distance` later ones have passed.
    pub reorder: Ratio,
    /// `distance`: how many later frames pass one that is held back.
    pub distance: u32,
    /// `delay`: added to every frame.
    pub delay: Nanos,
    /// `jitter`: up to this much more, uniformly; frames whose times cross are sent in the order of their times.
    pub jitter: Nanos,
    /// `hold`: frames held at most, for each port; see [`held_frames`](Self::held_frames).
    pub hold: Option<u32>,
    /// `seed` of everything random.
    pub seed: u64,
    /// `place`: `before` or `after` the function.
    pub place: Place,
}

impl Default for ImpairSpec {
    fn default() -> Self {
        Self {
            work: 0,
            police: None,
            loss: Ratio::ZERO,
            dup: Ratio::ZERO,
            reorder: Ratio::ZERO,
            distance: 3,
            delay: Nanos(0),
            jitter: Nanos(0),
            hold: None,
            seed: 1,
            place: Place::After,
        }
    }
}

const KEYS: &str =
    "keys are work, rate, burst, queue, loss, dup, reorder, distance, delay, jitter, hold, seed and place";
/// Frames held by default, and at most.
const HOLD: u32 = 4096;
const HOLD_MOST: u32 = 1 << 20;
const RATE: &str = "must be above zero and at most 10Gpps, in frames (1Mpps) or bits of layer 1 (1Gbps) or 2 (1GbpsL2)";

/// The keys of a policer, as far as they have been read.
#[derive(Debug, Default)]
struct PoliceKeys {
    limit: Option<Limit>,
    burst: Option<u32>,
    queue: Option<Nanos>,
}

impl ImpairSpec {
    /// Whether it does anything at all.
    pub fn is_active(&self) -> bool {
        self.work > 0 || self.police.is_some() || self.holds() || self.loss > Ratio::ZERO
    }

    /// Whether frames may stay behind in a queue, of which there is one a port.
    pub fn holds(&self) -> bool {
        self.dup > Ratio::ZERO
            || self.reorder > Ratio::ZERO
            || self.delay.0 > 0
            || self.jitter.0 > 0
            || self.police.is_some_and(|police| police.queue.0 > 0)
    }

    /// Frames held at most for each port: `hold`, or else 4096 and what the queue of the policer needs. Size buffer pools
    /// by this times the number of ports.
    pub fn held_frames(&self) -> u32 {
        let queued = self.police.map_or(0.0, |police| police.waiting());
        match self.holds() {
            true => self.hold.unwrap_or(HOLD.saturating_add(queued.ceil() as u32).min(HOLD_MOST)),
            false => 0,
        }
    }

    fn set(&mut self, key: &str, value: &str, police: &mut PoliceKeys) -> Result<(), SpecError> {
        match key {
            "work" => self.work = number(key, value, 1, 1_000_000)?,
            "rate" => police.limit = Some(limit(value)?),
            "burst" => police.burst = Some(number(key, value, 1, 16_777_216)?),
            "queue" => police.queue = Some(span(key, value)?),
            "loss" => self.loss = ratio(key, value)?,
            "dup" => self.dup = ratio(key, value)?,
            "reorder" => self.reorder = ratio(key, value)?,
            "distance" => self.distance = number(key, value, 1, 1_024)?,
            "delay" => self.delay = span(key, value)?,
            "jitter" => self.jitter = span(key, value)?,
            "hold" => self.hold = Some(number(key, value, 64, HOLD_MOST)?),
            "seed" => self.seed = number(key, value, 0, u64::MAX)?,
            "place" => {
                self.place = match value {
                    "before" => Place::Before,
                    "after" => Place::After,
                    _ => return Err(SpecError::new("impair place", value, "must be before or after")),
                }
            }
            _ => return Err(SpecError::new("impair key", key, KEYS)),
        }
        Ok(())
    }
}

fn limit(value: &str) -> Result<Limit, SpecError> {
    let limit = match value.parse() {
        Ok(Load::Frames(fps)) => Limit::Frames(fps.get()),
        Ok(Load::L1(bps)) => Limit::L1(bps),
        Ok(Load::L2(bps)) => Limit::L2(bps),
        Ok(Load::LinePercent(_)) | Err(_) => return Err(SpecError::new("impair rate", value, RATE)),
    };
    match limit {
        Limit::Frames(rate) | Limit::L1(rate) | Limit::L2(rate) if rate > 0.0 => Ok(limit),
        _ => Err(SpecError::new("impair rate", value, RATE)),
    }
}

fn ratio(key: &str, value: &str) -> Result<Ratio, SpecError> {
    value.parse().map_err(|e: units::UnitError| SpecError::new(format!("impair {key}"), value, e.legal))
}

fn number<N>(key: &str, value: &str, least: N, most: N) -> Result<N, SpecError>
where
    N: FromStr + PartialOrd + fmt::Display,
{
    match value.parse::<N>() {
        Ok(n) if n >= least && n <= most => Ok(n),
        _ => Err(SpecError::new(format!("impair {key}"), value, format!("must be {least} to {most}"))),
    }
}

fn span(key: &str, value: &str) -> Result<Nanos, SpecError> {
    match parse_duration(value).map(Nanos::from) {
        Ok(span) if (1..=10_000_000_000).contains(&span.0) => Ok(span),
        _ => Err(SpecError::new(format!("impair {key}"), value, "must be 1ns to 10s, like 10us or 1.5ms")),
    }
}

impl FromStr for ImpairSpec {
    type Err = SpecError;
    fn from_str(text: &str) -> Result<Self, SpecError> {
        let (mut spec, mut police, mut seen) = (Self::default(), PoliceKeys::default(), Vec::new());
        for part in text.split(',').map(str::trim).filter(|part| !part.is_empty()) {
            let Some((key, value)) = part.split_once('=') else {
                return Err(SpecError::new("impair", part, format!("must be key=value; {KEYS}")));
            };
            let key = key.trim();
            if seen.contains(&key) {
                return Err(SpecError::new("impair key", key, "is given twice: keep one"));
            }
            seen.push(key);
            spec.set(key, value.trim(), &mut police)?;
        }
        let needs = |key, other| Err(SpecError::new("impair key", key, format!("needs {other}=, which is missing")));
        let PoliceKeys { limit, burst, queue } = police;
        let policer = |limit| Policer { limit, burst_frames: burst, queue: queue.unwrap_or_default() };
        spec.police = limit.map(policer);
        if spec.police.is_none() && burst.is_some() {
            return needs("burst", "rate");
        }
        if spec.police.is_none() && queue.is_some() {
            return needs("queue", "rate");
        }
        if seen.contains(&"distance") && spec.reorder == Ratio::ZERO {
            return needs("distance", "reorder");
        }
        Ok(spec)
    }
}

impl fmt::Display for ImpairSpec {
    /// As [`FromStr`] reads it, keys at their defaults left out; empty when it does nothing.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut parts = Vec::new();
        parts.extend((self.work > 0).then(|| format!("work={}", self.work)));
        if let Some(police) = self.police {
            parts.push(match police.limit {
                Limit::Frames(fps) => format!("rate={fps}pps"),
                Limit::L1(bps) => format!("rate={bps}bps"),
                Limit::L2(bps) => format!("rate={bps}bpsL2"),
            });
            parts.extend(police.burst_frames.map(|n| format!("burst={n}")));
            parts.extend((police.queue.0 > 0).then(|| format!("queue={}ns", police.queue.0)));
        }
        for (key, ratio) in [("loss", self.loss), ("dup", self.dup), ("reorder", self.reorder)] {
            if ratio > Ratio::ZERO {
                parts.push(format!("{key}={}", ratio.get()));
            }
        }
        if self.reorder > Ratio::ZERO {
            parts.push(format!("distance={}", self.distance));
        }
        for (key, span) in [("delay", self.delay), ("jitter", self.jitter)] {
            if span.0 > 0 {
                parts.push(format!("{key}={}ns", span.0));
            }
        }
        let default = Self::default();
        parts.extend(self.hold.map(|hold| format!("hold={hold}")));
        if self.seed != default.seed {
            parts.push(format!("seed={}", self.seed));
        }
        if self.place == Place::Before {
            parts.push("place=before".to_owned());
        }
        f.pad(&parts.join(","))
    }
}

impl Serialize for ImpairSpec {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for ImpairSpec {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        String::deserialize(d)?.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_is_read() {
        let text = "work=200,rate=1Mpps,burst=128,queue=1ms,loss=0.1%,dup=0.05%,reorder=0.1%,distance=5,delay=10us,jitter=5us,seed=7,\
                    hold=100,place=before";
        let spec: ImpairSpec = text.parse().unwrap();
        let police = Policer { limit: Limit::Frames(1e6), burst_frames: Some(128), queue: Nanos(1_000_000) };
        let share = |s| Ratio::new(s).unwrap();
        let want = ImpairSpec {
            work: 200,
            police: Some(police),
            loss: share(0.001),
            dup: share(0.0005),
            reorder: share(0.001),
            distance: 5,
            delay: Nanos(10_000),
            jitter: Nanos(5_000),
            hold: Some(100),
            seed: 7,
            place: Place::Before,
        };
        assert_eq!(spec, want);
        assert!(spec.is_active() && spec.holds());
    }

    #[test]
    fn a_queue_has_room_for_its_frames() {
        let held = |text: &str| text.parse::<ImpairSpec>().unwrap().held_frames();
        assert_eq!(held("rate=1Mpps,burst=9"), 0);
        assert_eq!(held("delay=1ms"), 4096);
        assert_eq!(held("rate=1Mpps,queue=50ms"), 4096 + 50_000);
        assert_eq!(held("rate=1GbpsL2,queue=1ms"), 4096 + 1954);
        assert_eq!(held("rate=1Gbps,queue=1ms"), 4096 + 1489);
        assert_eq!(held("rate=1Gpps,queue=10s"), 1 << 20);
        assert_eq!(held("rate=1Mpps,queue=50ms,hold=100"), 100);
    }

    #[test]
    fn specs_survive_their_text() {
        for text in [
            "",
            "work=7",
            "rate=1Mpps,queue=50ms",
            "rate=1Gbps",
            "rate=10GbpsL2,burst=9",
            "loss=1e-6,seed=0",
            "reorder=50%",
            "delay=3ms",
        ] {
            let spec: ImpairSpec = text.parse().unwrap();
            assert_eq!(spec.to_string().parse::<ImpairSpec>().unwrap(), spec, "{text}: {spec}");
            assert_eq!(spec.is_active(), !text.is_empty());
        }
    }

    #[test]
    fn errors_name_the_key_and_what_is_legal() {
        let mut shown = String::new();
        for (text, what, value) in [
            ("loss=101%", "impair loss", "101%"),
            ("loss", "impair", "loss"),
            ("lose=1%", "impair key", "lose"),
            ("rate=50%", "impair rate", "50%"),
            ("rate=0", "impair rate", "0"),
            ("rate=fast", "impair rate", "fast"),
            ("burst=5", "impair key", "burst"),
            ("queue=5ms", "impair key", "queue"),
            ("rate=1k,queue=0s", "impair queue", "0s"),
            ("work=0", "impair work", "0"),
            ("rate=1k,burst=0", "impair burst", "0"),
            ("distance=3", "impair key", "distance"),
            ("reorder=1%,distance=1025", "impair distance", "1025"),
            ("delay=11s", "impair delay", "11s"),
            ("hold=63", "impair hold", "63"),
            ("seed=-1", "impair seed", "-1"),
            ("place=inside", "impair place", "inside"),
            ("loss=1%,loss=2%", "impair key", "loss"),
        ] {
            let error = text.parse::<ImpairSpec>().unwrap_err();
            assert_eq!((error.what.as_str(), error.value.as_str()), (what, value), "{text}");
            shown += &format!("{text}\n    {error}\n");
        }
        insta::assert_snapshot!("errors", shown);
    }
}
