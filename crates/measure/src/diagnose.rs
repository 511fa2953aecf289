//! When nothing came back: what was seen, and the likely cause.

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

/// One paragraph on the trials of a frame size in which all frames were lost: what was seen at each port, and the likely
/// cause with what to try. Sensible, if of little use, when some came back.
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
    // The direction that fared worst says most.
    let worst = seen.iter().min_by(|a, b| share(a).total_cmp(&share(b)));
    let cause = worst.map_or(String::new(), |w| cause(w, ports, trials));
    format!("{}.{links} {cause}", facts.join("; "))
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

fn cause(s: &Seen, ports: &[PortState], trials: &[&TrialRecord]) -> String {
    let port = |name: &str| ports.iter().find(|p| p.name == name);
    let down = |name: &str| port(name).is_some_and(|p| p.link_up == Some(false));
    let samples = port(&s.to).filter(|p| !p.foreign_samples.is_empty());
    let samples = samples.map(|p| format!(", such as {}", p.foreign_samples.join("; "))).unwrap_or_default();
    if down(&s.from) || down(&s.to) {
        let which = if down(&s.from) { &s.from } else { &s.to };
        return format!(
            "Likely cause: the link of {which} is down. Check that the other side is running and connected, or wait \
             longer for it (--link-wait)."
        );
    }
    if s.sent == 0 && s.intended > 0 {
        return format!(
            "Likely cause: {} took no frame at all, nobody empties its queue. Check that the peer is running and its \
             queues are enabled.",
            s.from
        );
    }
    if s.misdirected > 0 && s.misdirected >= s.received {
        return format!(
            "Likely cause: the DUT forwards to another port than {}. Check the order of the --port arguments and the \
             DUT's port pairs.",
            s.to
        );
    }
    if s.wrong_length > 0 && s.wrong_length >= s.received {
        return "Likely cause: the DUT changes the length of frames, by a tag or an encapsulation. Send what it expects \
                (--vlan, --mpls) or have it restore them."
            .to_owned();
    }
    if s.port_rx.is_some_and(|rx| rx > s.received + s.foreign + s.misdirected + s.wrong_length) {
        return format!(
            "Likely cause: frames reached {} and were not read by us: another process reads that port, or the tester \
             was too slow to empty it.",
            s.to
        );
    }
    if s.foreign > 0 {
        return format!(
            "Likely cause: frames reach {} but not ours{samples}. The DUT answers or floods instead of forwarding: check \
             its route to the destination address, the neighbour entry behind it and the destination MAC (--dst-mac).",
            s.to
        );
    }
    if s.port_tx.is_some_and(|tx| tx == 0) {
        return format!("Likely cause: {} accepted frames and sent none: its link or its driver is at fault.", s.from);
    }
    if s.received > 0 {
        let lowest = trials.iter().map(|t| t.spec.load_fps.get()).fold(f64::INFINITY, f64::min);
        return format!(
            "Likely cause: the DUT forwards, but less than the lowest load tried ({}): try a lower search.lower, or look \
             at its drop counters.",
            Fps::from_raw(lowest)
        );
    }
    format!(
        "Likely cause: the DUT drops everything. It may not forward between these ports, not know the destination \
         (route, neighbour, MAC table), or not accept the destination MAC: check its drop counters, --dst-mac for a \
         router, and that {} and {} are the ports you mean.",
        s.from, s.to
    )
}

#[cfg(test)]
mod tests;
