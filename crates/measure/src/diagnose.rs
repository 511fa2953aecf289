//! When nothing came back: what was seen, and the likely cause.

use std::{collections::BTreeMap, fmt};

use units::Fps;

use crate::trial::{DirectionCounts, TrialRecord};

/// What is known of one port of the tester beside the counts of the trials.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PortState {
    /// As named by the user.
    pub name: String,
    /// Whether the link was up at the end; `None` when the port cannot tell.
    pub link_up: Option<bool>,
    /// A few frames without our stamp, each in words, such as `ARP who-has 198.19.0.2`.
    pub foreign_samples: Vec<String>,
}

/// Sums over the trials of one direction.
#[derive(Debug, Default)]
struct Seen {
    from: String,
    to: String,
    intended: u64,
    sent: u64,
    received: u64,
    refused: u64,
    foreign: u64,
    wrong_length: u64,
    misdirected: u64,
    port_tx: Option<u64>,
    port_rx: Option<u64>,
    port_missed: Option<u64>,
}

impl Seen {
    fn add(&mut self, d: &DirectionCounts) {
        let plus = |a: Option<u64>, b: Option<u64>| b.map_or(a, |b| Some(a.unwrap_or(0) + b));
        self.from.clone_from(&d.from);
        self.to.clone_from(&d.to);
        self.intended += d.intended;
        self.sent += d.sent;
        self.received += d.received;
        self.refused += d.refused;
        self.foreign += d.foreign;
        self.wrong_length += d.wrong_length;
        self.misdirected += d.misdirected;
        self.port_tx = plus(self.port_tx, d.port_tx);
        self.port_rx = plus(self.port_rx, d.port_rx);
        self.port_missed = plus(self.port_missed, d.port_missed);
    }

    fn way(&self) -> String {
        format!("{} -> {}", self.from, self.to)
    }
}

/// One paragraph on the trials of a frame size in which all frames were lost: the likely cause with what to try, and
/// what was seen at each port. Of little use when frames came back.
pub fn nothing_came_back(trials: &[&TrialRecord], ports: &[PortState]) -> String {
    let mut seen: Vec<Seen> = Vec::new();
    for trial in trials {
        for (i, d) in trial.directions.iter().enumerate() {
            if i == seen.len() {
                seen.push(Seen::default());
            }
            if let Some(s) = seen.get_mut(i) {
                s.add(d);
            }
        }
    }
    if seen.is_empty() {
        return "No trial was made.".to_owned();
    }
    let facts: Vec<_> = seen.iter().map(facts).collect();
    let links: Vec<_> = ports.iter().map(|p| format!("{} {}", p.name, link(p.link_up))).collect();
    let links = if links.is_empty() { String::new() } else { format!(" Links: {}.", links.join(", ")) };
    // The direction that fared worst says most. The cause comes first: a short text cuts the rest.
    let worst = seen.iter().min_by(|a, b| share(a).total_cmp(&share(b)));
    let cause = worst.map_or(String::new(), |worst| format!("Likely cause: {} ", cause(worst, ports, trials)));
    format!("{cause}Seen: {}.{links}", facts.join("; "))
}

fn share(s: &Seen) -> f64 {
    if s.sent == 0 {
        -1.0
    } else {
        s.received as f64 / s.sent as f64
    }
}

fn link(up: Option<bool>) -> &'static str {
    match up {
        Some(true) => "up",
        Some(false) => "DOWN",
        None => "unknown",
    }
}

fn facts(s: &Seen) -> String {
    let mut text = format!("{}: {} frames sent, {} came back with our stamp", s.way(), s.sent, s.received);
    let mut also = |n: u64, what: String| {
        if n > 0 {
            text.push_str(&format!(", {n} {what}"));
        }
    };
    also(s.refused, format!("refused by {}", s.from));
    also(s.foreign, format!("without it at {}", s.to));
    also(s.wrong_length, "of the wrong length".to_owned());
    also(s.misdirected, format!("at another port than {}", s.to));
    also(s.port_missed.unwrap_or(0), format!("missed by {}", s.to));
    if let (Some(tx), Some(rx)) = (s.port_tx, s.port_rx) {
        text.push_str(&format!(" (the ports' own counters: {tx} out, {rx} in)"));
    }
    text
}

/// The likely cause of a direction without received frames.
#[derive(Debug, Clone, PartialEq)]
enum Cause<'a> {
    /// A link is down.
    LinkDown { port: &'a str },
    /// The sending port took no frame.
    NotTaken { port: &'a str },
    /// Frames came to another port.
    OtherPort { expected: &'a str },
    /// Frames came back longer or shorter.
    Length,
    /// Frames reached the port, and the tester did not read them.
    NotRead { port: &'a str },
    /// Only frames of others came.
    ForeignOnly { port: &'a str, samples: String },
    /// The sending port accepted frames and sent none.
    NotSent { port: &'a str },
    /// Even the lowest load is too high.
    TooHigh { lowest: Fps },
    /// The device counted what it dropped.
    Dropped { frames: u64, reason: &'a str },
    /// Nothing else is known.
    DropsAll { ports: [&'a str; 2] },
}

fn cause<'a>(s: &'a Seen, ports: &'a [PortState], trials: &'a [&TrialRecord]) -> Cause<'a> {
    let port = |name: &str| ports.iter().find(|p| p.name == name);
    let is_down = |name: &str| port(name).is_some_and(|p| p.link_up == Some(false));
    if let Some(port) = [&s.from, &s.to].into_iter().find(|name| is_down(name)) {
        Cause::LinkDown { port }
    } else if s.sent == 0 && s.intended > 0 {
        Cause::NotTaken { port: &s.from }
    } else if s.misdirected > 0 && s.misdirected >= s.received {
        Cause::OtherPort { expected: &s.to }
    } else if s.wrong_length > 0 && s.wrong_length >= s.received {
        Cause::Length
    } else if s.port_rx.is_some_and(|rx| rx > s.received + s.foreign + s.misdirected + s.wrong_length) {
        Cause::NotRead { port: &s.to }
    } else if let (Some((reason, frames)), 0) = (top_drop(trials), s.received) {
        Cause::Dropped { frames, reason }
    } else if s.foreign > 0 {
        let samples = port(&s.to).map(|p| p.foreign_samples.join("; ")).unwrap_or_default();
        Cause::ForeignOnly { port: &s.to, samples }
    } else if s.port_tx == Some(0) {
        Cause::NotSent { port: &s.from }
    } else if s.received > 0 {
        let lowest = trials.iter().map(|t| t.spec.load_fps.get()).fold(f64::INFINITY, f64::min);
        Cause::TooHigh { lowest: Fps::from_raw(lowest) }
    } else {
        Cause::DropsAll { ports: [&s.from, &s.to] }
    }
}

/// The reason for which a built-in or a watched device dropped most, and how many frames.
fn top_drop<'a>(trials: &[&'a TrialRecord]) -> Option<(&'a str, u64)> {
    let mut drops: BTreeMap<&str, u64> = BTreeMap::new();
    for (reason, frames) in trials.iter().filter_map(|t| t.dut.as_ref()).flat_map(|dut| &dut.drops) {
        *drops.entry(reason).or_default() += frames;
    }
    drops.into_iter().filter(|(_, frames)| *frames > 0).max_by_key(|(_, frames)| *frames)
}

impl fmt::Display for Cause<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::LinkDown { port } => write!(
                f,
                "the link of {port} is down. Check that the other side runs and is connected, or wait longer for the link \
                 (--link-wait)."
            ),
            Self::NotTaken { port } => write!(
                f,
                "{port} took no frame, because nobody empties its queue. Check that the peer runs and that its queues are \
                 enabled."
            ),
            Self::OtherPort { expected } => write!(
                f,
                "the DUT forwards to another port than {expected}. Check the order of the --port arguments and the DUT's \
                 port pairs."
            ),
            Self::Length => write!(
                f,
                "the DUT changes the length of frames, by a tag or an encapsulation. Send what it expects (--vlan, --mpls), \
                 or let it restore the frames."
            ),
            Self::NotRead { port } => write!(
                f,
                "frames reached {port}, and the tester did not read them: another process reads that port, or the tester \
                 was too slow."
            ),
            Self::ForeignOnly { port, samples } => {
                let samples = if samples.is_empty() { String::new() } else { format!(", such as {samples}") };
                write!(
                    f,
                    "other frames reach {port}, but no test frames{samples}. The DUT answers or floods instead of \
                     forwarding: check its route to the destination address, the neighbour entry behind it and the \
                     destination MAC (--dst-mac)."
                )
            }
            Self::NotSent { port } => {
                write!(f, "{port} accepted frames and sent none: its link or its driver is at fault.")
            }
            Self::TooHigh { lowest } => write!(
                f,
                "the DUT forwards, but less than the lowest load tried ({lowest}): try a lower search.lower, or look at its \
                 drop counters."
            ),
            Self::Dropped { frames, reason } => {
                write!(f, "the DUT dropped {frames} frames as {reason}, its most frequent reason.")
            }
            Self::DropsAll { ports: [from, to] } => write!(
                f,
                "the DUT drops everything. It may not forward between these ports, not know the destination (route, \
                 neighbour, MAC table), or not accept the destination MAC: check its drop counters, --dst-mac for a router, \
                 and that {from} and {to} are the ports you mean."
            ),
        }
    }
}

#[cfg(test)]
mod tests;
