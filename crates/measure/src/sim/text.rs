//! The simulated DUT as a line of text, such as `sim:capacity=10M,queue=1024,stalls=0.05/s:2000,seed=7`.

use std::{fmt, str::FromStr};

use units::{parse_duration, si_short, Load, Nanos, Ratio};

use super::setup::{Inversion, SimSetup, Stalls};
use crate::plan::PlanError;

/// The capacity of a DUT whose text does not give one.
const CAPACITY: f64 = 10e6;

/// Each key, what it takes, and how it is read.
type Key = (&'static str, &'static str, fn(&mut SimSetup, &str) -> Option<()>);

const KEYS: [Key; 13] = [
    ("capacity", "must be frames/s above zero, such as 10M", |s, v| {
        let capacity = rate(v).filter(|&c| c > 0.0)?;
        s.placements.iter_mut().for_each(|p| p.capacity = capacity);
        Some(())
    }),
    ("queue", "must be a whole number of frames up to 1G, such as 1024", |s, v| set(&mut s.queue, frames(v))),
    ("onset", "must be a share of the capacity below 100%, such as 1%", |s, v| {
        set(&mut s.onset, ratio(v).filter(|&r| r < 1.0))
    }),
    ("stalls", "must be RATE/s:FRAMES, such as 0.05/s:2000; several joined by +", |s, v| {
        set(&mut s.stalls, v.split('+').map(stalls).collect())
    }),
    ("inversion", "must be LOW-HIGH:LOSS, such as 2M-3M:0.1%", |s, v| set(&mut s.inversion, inversion(v).map(Some))),
    ("drift", "must be a change per minute above -100%, such as -0.1%/min", |s, v| {
        let (sign, share) = v.strip_prefix('-').map_or((1.0, v.strip_prefix('+').unwrap_or(v)), |v| (-1.0, v));
        set(&mut s.drift_per_min, share.strip_suffix("/min").and_then(ratio).map(|r| sign * r).filter(|&d| d > -1.0))
    }),
    ("dead", "must be FROM-TO in virtual time, such as 10s-12s or 0-5s", |s, v| {
        let (from, to) = v.split_once('-')?;
        let (from, to) = (span(from)?, span(to)?);
        (from < to).then(|| s.dead = Some((from, to)))
    }),
    ("latency", "must be a time, such as 10us", |s, v| {
        set(&mut s.latency, span(v).map(|seconds| Nanos((seconds * 1e9).round() as u64)))
    }),
    ("recovery", "must be a time, such as 50ms", |s, v| set(&mut s.recovery_s, span(v))),
    ("accidents", "must be PROBABILITY:FRAMES of a trial, such as 10%:50", |s, v| {
        let (probability, most) = v.split_once(':')?;
        s.accidents = (ratio(probability)?, frames(most)?);
        Some(())
    }),
    ("tester", "must be the most frames/s the tester offers, such as 14M", |s, v| {
        set(&mut s.tester_max, rate(v).filter(|&r| r > 0.0))
    }),
    ("tester-stalls", "must be the probability that a trial's tester is away, such as 5%", |s, v| {
        set(&mut s.tester_stalls, ratio(v))
    }),
    ("seed", "must be a whole number", |s, v| set(&mut s.seed, v.parse().ok())),
];

fn set<T>(field: &mut T, value: Option<T>) -> Option<()> {
    *field = value?;
    Some(())
}

fn rate(text: &str) -> Option<f64> {
    match text.parse() {
        Ok(Load::Frames(fps)) => Some(fps.get()),
        _ => None,
    }
}

fn frames(text: &str) -> Option<u64> {
    rate(text).filter(|r| r.fract() == 0.0 && *r <= 1e9).map(|r| r as u64)
}

fn ratio(text: &str) -> Option<f64> {
    text.parse::<Ratio>().ok().map(Ratio::get)
}

/// Seconds, zero allowed.
fn span(text: &str) -> Option<f64> {
    match text.trim_end_matches(|c: char| c.is_ascii_alphabetic()).parse::<f64>() {
        Ok(0.0) => Some(0.0),
        _ => parse_duration(text).ok().map(|d| d.as_secs_f64()),
    }
}

fn stalls(text: &str) -> Option<Stalls> {
    let (per_second, lost) = text.split_once("/s:")?;
    // More often than a thousand times a second it is the capacity that is lower.
    Some(Stalls { rate: rate(per_second).filter(|&r| r <= 1000.0)?, frames: frames(lost)? })
}

fn inversion(text: &str) -> Option<Inversion> {
    let (band, loss) = text.split_once(':')?;
    let (low, high) = band.split_once('-')?;
    let band = (rate(low)?, rate(high)?);
    (band.0 < band.1).then_some(Inversion { band, loss: ratio(loss)? })
}

impl FromStr for SimSetup {
    type Err = PlanError;

    /// Reads `sim:KEY=VALUE,...`, every key at most once; those left out are as in [`SimSetup::new`] at 10M frames/s.
    ///
    /// Errors in one line that names the key, the value and what is legal.
    fn from_str(text: &str) -> Result<Self, PlanError> {
        let bad = |key: &str, value: &str, legal: String| PlanError::value(key, value, legal);
        let known = || KEYS.map(|k| k.0).join(", ");
        let list = match text.trim().strip_prefix("sim") {
            Some("") => "",
            Some(rest) if rest.starts_with(':') => &rest[1..],
            _ => return Err(bad("dut", text, "must be like sim:capacity=10M,queue=1024,seed=7".to_owned())),
        };
        let mut setup = Self::new(CAPACITY, 1);
        let mut seen = Vec::new();
        for part in list.split(',').map(str::trim).filter(|p| !p.is_empty()) {
            let (key, value) = part.split_once('=').map_or((part, ""), |(k, v)| (k.trim(), v.trim()));
            let Some((name, legal, read)) = KEYS.iter().find(|k| k.0 == key) else {
                return Err(bad(
                    &format!("sim.{key}"),
                    value,
                    format!("is not a key of a simulated DUT: must be {}", known()),
                ));
            };
            if seen.contains(name) {
                return Err(bad(&format!("sim.{key}"), value, "is given twice".to_owned()));
            }
            seen.push(*name);
            read(&mut setup, value).ok_or_else(|| bad(&format!("sim.{key}"), value, (*legal).to_owned()))?;
        }
        Ok(setup)
    }
}

impl fmt::Display for SimSetup {
    /// The text that reads as this, without what the text cannot say (placements, directions).
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let capacity = self.placements.first().map_or(0.0, |p| p.capacity);
        write!(f, "sim:capacity={},queue={}", si_short(capacity), self.queue)?;
        if self.onset > 0.0 {
            write!(f, ",onset={}", self.onset)?;
        }
        if !self.stalls.is_empty() {
            let each: Vec<_> = self.stalls.iter().map(|s| format!("{}/s:{}", s.rate, s.frames)).collect();
            write!(f, ",stalls={}", each.join("+"))?;
        }
        if let Some(Inversion { band: (low, high), loss }) = self.inversion {
            write!(f, ",inversion={}-{}:{loss}", si_short(low), si_short(high))?;
        }
        if self.drift_per_min != 0.0 {
            write!(f, ",drift={}/min", self.drift_per_min)?;
        }
        if let Some((from, to)) = self.dead {
            write!(f, ",dead={from}s-{to}s")?;
        }
        write!(f, ",latency={}ns", self.latency.0)?;
        if self.recovery_s > 0.0 {
            write!(f, ",recovery={}s", self.recovery_s)?;
        }
        if self.accidents.0 > 0.0 {
            write!(f, ",accidents={}:{}", self.accidents.0, self.accidents.1)?;
        }
        if self.tester_max.is_finite() {
            write!(f, ",tester={}", si_short(self.tester_max))?;
        }
        if self.tester_stalls > 0.0 {
            write!(f, ",tester-stalls={}", self.tester_stalls)?;
        }
        write!(f, ",seed={}", self.seed)
    }
}
