//! Totals, with rates over the last full second.

use std::{
    io,
    sync::{Arc, Mutex},
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use net::{lock, Stop};

use crate::{protocol::Totals, Source};

const SECOND: Duration = Duration::from_secs(1);
/// Clients together read the totals no more often than this, because the packet path writes the same cache lines.
const FRESH: Duration = Duration::from_millis(10);

/// Totals, with rates over the last full second.
#[derive(Debug)]
pub(crate) struct Samples {
    /// Start of the first second.
    start: Instant,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// Counters at the last full second.
    sample: Option<(Instant, Totals)>,
    rates: Rates,
    /// The last totals, with rates.
    latest: Option<(Instant, Totals)>,
}

/// Rates over the last full second.
#[derive(Debug, Default)]
struct Rates {
    /// Port, packets a second, bits a second.
    interfaces: Vec<(u8, f64, f64)>,
    new: f64,
}

/// A rate rounded to its significant digits.
pub(crate) fn rate(count: u64, over: Duration) -> f64 {
    let seconds = over.as_secs_f64();
    if seconds > 0.0 {
        (count as f64 / seconds * 1e3).round() / 1e3
    } else {
        0.0
    }
}

impl Rates {
    fn between(before: &Totals, now: &Totals, over: Duration) -> Self {
        let interface = |i: &crate::protocol::Interface| {
            let b = before.interfaces.iter().find(|b| b.port == i.port)?;
            let bits = i.bytes.saturating_sub(b.bytes).saturating_mul(8);
            Some((i.port, rate(i.packets.saturating_sub(b.packets), over), rate(bits, over)))
        };
        Self {
            interfaces: now.interfaces.iter().filter_map(interface).collect(),
            new: rate(now.table.created.saturating_sub(before.table.created), over),
        }
    }

    fn apply_to(&self, totals: &mut Totals) {
        for interface in &mut totals.interfaces {
            let found = self.interfaces.iter().find(|r| r.0 == interface.port);
            (interface.packet_rate, interface.bit_rate) = found.map_or((0.0, 0.0), |r| (r.1, r.2));
        }
        totals.table.new_rate = self.new;
    }
}

impl Samples {
    /// The current totals, with rates over the last full second; zero before the first full second.
    pub(crate) fn totals(&self, source: &dyn Source) -> Totals {
        let mut state = lock(&self.state);
        match &state.latest {
            Some((at, totals)) if at.elapsed() < FRESH => totals.clone(),
            _ => {
                let mut totals = source.totals();
                state.rates.apply_to(&mut totals);
                state.latest = Some((Instant::now(), totals.clone()));
                totals
            }
        }
    }

    /// The instant a little after full second `n` from now on, when its rates are known.
    pub(crate) fn after_second(&self, n: u32) -> Instant {
        let seconds = self.start.elapsed().as_secs() + u64::from(n);
        self.start + Duration::from_secs(seconds) + Duration::from_millis(20)
    }

    fn sample(&self, at: Instant, totals: Totals) {
        let mut state = lock(&self.state);
        if let Some((then, before)) = &state.sample {
            state.rates = Rates::between(before, &totals, at.saturating_duration_since(*then));
        }
        state.sample = Some((at, totals));
        state.latest = None;
    }
}

/// Reads the totals and the time to some microseconds, so that rates over a second have five digits.
fn read(source: &dyn Source) -> (Instant, Totals) {
    let mut best: Option<(Duration, Instant, Totals)> = None;
    for _ in 0..5 {
        let before = Instant::now();
        let totals = source.totals();
        let took = before.elapsed();
        if best.as_ref().is_none_or(|(t, ..)| took < *t) {
            best = Some((took, before + took / 2, totals));
        }
        if took < Duration::from_micros(5) {
            break;
        }
    }
    best.map_or_else(|| (Instant::now(), source.totals()), |(_, at, totals)| (at, totals))
}

/// The sampling thread. Ends when dropped.
#[derive(Debug)]
pub(crate) struct Sampler {
    samples: Arc<Samples>,
    stop: Arc<Stop>,
    thread: Option<JoinHandle<()>>,
}

impl Sampler {
    pub(crate) fn start(source: Arc<dyn Source>, stop: &Arc<Stop>) -> io::Result<Self> {
        let start = Instant::now();
        let samples = Arc::new(Samples { start, state: Mutex::default() });
        let (own, seen) = (Arc::clone(&samples), Arc::clone(stop));
        let run = move || {
            let mut mark = start;
            loop {
                let (at, totals) = read(&*source);
                own.sample(at, totals);
                // Missed seconds are left out, and the next rate is over the time that really passed.
                mark = own.start + SECOND * (mark.max(Instant::now()).duration_since(start).as_secs() as u32 + 1);
                if seen.sleep_until(mark) {
                    return;
                }
            }
        };
        let thread = thread::Builder::new().name("flows-totals".into()).spawn(run)?;
        Ok(Self { samples, stop: Arc::clone(stop), thread: Some(thread) })
    }

    pub(crate) fn samples(&self) -> Arc<Samples> {
        Arc::clone(&self.samples)
    }
}

impl Drop for Sampler {
    fn drop(&mut self) {
        self.stop.stop();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::Interface;

    #[test]
    fn rates_have_five_digits_over_the_true_time() {
        let totals = |packets, bytes, created| {
            let mut t = Totals {
                interfaces: vec![Interface { port: 3, packets, bytes, ..Default::default() }],
                ..Default::default()
            };
            t.table.created = created;
            t
        };
        let (before, mut now) = (totals(1_000, 64_000, 10), totals(14_881_953, 952_444_992, 1_010));
        Rates::between(&before, &now, Duration::from_nanos(1_000_012_345)).apply_to(&mut now);
        let i = &now.interfaces[0];
        assert_eq!((i.packet_rate, i.bit_rate, now.table.new_rate), (14_880_769.297, 7_618_953_880.014, 999.988));
        // A new interface, and counters that restarted.
        let mut other = totals(5, 5, 0);
        Rates::between(&now, &other, SECOND).apply_to(&mut other);
        assert_eq!((other.interfaces[0].packet_rate, other.table.new_rate), (0.0, 0.0));
    }
}
