//! The control thread of a data plane that runs: keeps its tables and its counters, answers who asks, draws the live view.

use std::{
    collections::VecDeque,
    sync::{mpsc::Receiver, Arc},
    time::{Duration, Instant},
};

use dataplane::{model::Op, runtime::Runtime, Control, OutputStats, Plane, Snapshot};
use dpdk::{Port, Tsc};
use packet::{Clock, MacAddr};
use serde_json::{json, Value};

use super::{show, snapshot, view};
use crate::out;
use control::{Asked, Request};
use failure::{Failure, Stop};
use rig::device::Polled;

/// What a function does each second with the ports and the counters of every lcore; it adds what it returns to the live
/// view.
pub type EachSecond = Box<dyn FnMut(&[Port], &[Snapshot]) -> String>;

/// How often counters are kept, and how many.
const SAMPLE: Duration = Duration::from_secs(1);
const SAMPLES: usize = 61;
/// The longest span that they cover.
const LONGEST: Duration = Duration::from_secs(60);
/// So many lulls without a frame end a run that ends by itself.
const LULLS: u32 = 3;
/// How often the tables' own time goes on.
const TICK: Duration = Duration::from_millis(100);

/// What every lcore had counted at one moment.
pub struct Sample {
    /// When, since the start.
    pub at: Duration,
    /// By lcore.
    pub lcores: Vec<Snapshot>,
}

/// How far the captures are that are read once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Captures {
    /// There are none, or one has more frames.
    Unread,
    /// All are read that we read ourselves. A driver does not say that it has read all: a lull does.
    LeftToDrivers,
    /// All are read.
    Read,
}

/// What runs, where.
pub struct Site {
    /// The function.
    pub function: String,
    /// The command with what tells it from others.
    pub title: String,
    /// CPUs that poll, the first lcore's first.
    pub cpus: Vec<u32>,
    /// Who polls what.
    pub polled: Vec<Polled>,
    /// Largest IP packet, by port.
    pub mtu: Vec<u16>,
    /// The ports' addresses, own or made up.
    pub macs: Vec<MacAddr>,
    /// Whether each port is a socket at which peers come and go.
    pub sockets: Vec<bool>,
    /// How long to run.
    pub duration: Option<Duration>,
    /// How many captures are read once; their end is the run's.
    pub once: Option<usize>,
    /// Whether somebody watches.
    pub live: bool,
}

/// The control thread's things.
pub struct Desk {
    /// The tables, of a function that has some.
    pub plane: Option<Plane>,
    /// The ports.
    pub ports: Vec<Port>,
    /// What runs, where.
    pub site: Site,
    clock: Tsc,
    /// Ticks a second of the lcores' clock.
    pub hz: u64,
    controls: Vec<Arc<Control>>,
    asked: Receiver<Asked>,
    begun: Instant,
    first: Sample,
    samples: VecDeque<Sample>,
    ticked: Duration,
    each_second: EachSecond,
    told_to_stop: bool,
    /// Lulls since a frame came, and the frames received until then.
    lulls: u32,
    lull_at: u64,
}

impl Desk {
    /// Takes over the control side.
    pub fn new(
        plane: Option<Plane>,
        ports: Vec<Port>,
        site: Site,
        controls: Vec<Arc<Control>>,
        asked: Receiver<Asked>,
        clock: Tsc,
        each_second: EachSecond,
    ) -> Self {
        Self {
            plane,
            ports,
            site,
            hz: clock.hz(),
            clock,
            controls,
            asked,
            begun: Instant::now(),
            // The loops have not run yet.
            first: Sample { at: Duration::ZERO, lcores: Vec::new() },
            samples: VecDeque::with_capacity(SAMPLES),
            ticked: Duration::ZERO,
            each_second,
            told_to_stop: false,
            lulls: 0,
            lull_at: 0,
        }
    }

    /// Whether it is time to end.
    pub fn over(&self, stop: &Stop) -> bool {
        let done = self.site.duration.is_some_and(|d| self.begun.elapsed() >= d);
        done || self.told_to_stop || stop.requested() || self.captures() == Captures::Read
    }

    /// How far the captures are whose end is the run's.
    fn captures(&self) -> Captures {
        let Some(asked) = self.site.once else { return Captures::Unread };
        let mut own = self.ports.iter().filter_map(|port| port.progress());
        match (own.clone().count(), own.all(|each| each.is_over())) {
            (_, false) => Captures::Unread,
            (own, true) if own < asked => Captures::LeftToDrivers,
            (_, true) => Captures::Read,
        }
    }

    /// The counters of every lcore now.
    pub fn snapshots(&self) -> Vec<Snapshot> {
        self.controls.iter().filter_map(|c| snapshot(c)).collect()
    }

    /// Frames received so far.
    pub fn received(&self) -> u64 {
        self.snapshots().iter().map(Snapshot::received).sum()
    }

    /// Seconds of the lcores' clock, by which stations age.
    pub fn lcore_seconds(&self) -> u32 {
        (self.clock.now() / self.hz.max(1)) as u32
    }

    /// Time since the start.
    pub fn elapsed(&self) -> Duration {
        self.begun.elapsed()
    }

    /// Whether there are ports over sockets.
    pub fn has_sockets(&self) -> bool {
        self.site.sockets.contains(&true)
    }

    /// Whether a port over a socket has no peer.
    pub fn is_lonely(&self) -> bool {
        self.ports.iter().zip(&self.site.sockets).any(|(port, &socket)| socket && !port.link().up)
    }

    /// What the loops sent by each port over a socket, all lcores together.
    pub fn sent_over_sockets(&self) -> Vec<OutputStats> {
        let lcores = self.snapshots();
        let sum = |(port, _): (usize, &bool)| {
            lcores.iter().filter_map(|lcore| lcore.tx.get(port)).fold(OutputStats::default(), |mut sum, tx| {
                sum.frames += tx.frames;
                sum.refused += tx.refused;
                sum
            })
        };
        self.site.sockets.iter().enumerate().filter(|(_, &socket)| socket).map(sum).collect()
    }

    /// Asks each port for its link.
    pub fn ask_links(&self) {
        for port in &self.ports {
            let _ = port.link();
        }
    }

    /// Nothing has come for a moment; after some of these a run that ends by itself has ended.
    pub fn lull(&mut self) {
        let received = self.received();
        self.lulls = if received == self.lull_at { self.lulls + 1 } else { 1 };
        self.lull_at = received;
        self.told_to_stop |= self.lulls > LULLS && self.captures() == Captures::LeftToDrivers;
    }

    /// Answers for about so long; keeps tables and counters up to date.
    pub fn serve(&mut self, time: Duration) {
        let until = Instant::now() + time;
        loop {
            let now = self.begun.elapsed();
            if now >= self.ticked + TICK {
                self.ticked = now;
                if let Some(plane) = &mut self.plane {
                    plane.tick(now);
                }
            }
            if now >= self.samples.back().map_or(Duration::ZERO, |s| s.at) + SAMPLE {
                self.sample(now);
            }
            let left = until.saturating_duration_since(Instant::now());
            let Ok(Asked { request, answer }) = self.asked.recv_timeout(left) else {
                // Nobody asks: the time is up, or the socket is gone and the wait was none.
                std::thread::sleep(until.saturating_duration_since(Instant::now()));
                return;
            };
            // A client that left does not want its answer.
            let _ = answer.send(self.answer(request));
        }
    }

    fn sample(&mut self, at: Duration) {
        let lcores = self.snapshots();
        if lcores.len() != self.controls.len() {
            return;
        }
        while self.samples.len() >= SAMPLES {
            self.samples.pop_front();
        }
        let more = (self.each_second)(&self.ports, &lcores);
        self.samples.push_back(Sample { at, lcores });
        if self.site.live {
            let mut view = show::live(self);
            view.add(view::KEPT, &more);
            // Home, the text with every line's rest cleared, and all below it.
            let text = view.fit(view::size()).join("\x1b[K\n");
            out::print(&format!("\x1b[H{text}\x1b[K\x1b[J"));
        }
    }

    /// What happened over about the last `seconds`, from the samples kept; 0: since the start.
    pub fn runtime(&self, seconds: f64) -> Runtime {
        let (earlier, now, _) = self.span(seconds);
        Runtime::between(&earlier, &now, self.hz)
    }

    /// Counters about `seconds` ago (0: at the start), counters now, and the seconds between them.
    pub fn span(&self, seconds: f64) -> (Vec<Snapshot>, Vec<Snapshot>, f64) {
        let now = self.snapshots();
        let at = self.elapsed();
        let wanted = at.saturating_sub(Duration::from_secs_f64(seconds.clamp(0.0, 3600.0)));
        // The youngest that is old enough.
        let young = self.samples.iter().rev().filter(|_| seconds > 0.0);
        let earlier = young.into_iter().find(|s| s.at <= wanted).unwrap_or(&self.first);
        (earlier.lcores.clone(), now, (at - earlier.at).as_secs_f64().max(1e-9))
    }

    fn answer(&mut self, request: Request) -> Result<Value, String> {
        match request {
            Request::Show { what, json, limit, interval_s } => {
                let interval_s = interval_s.unwrap_or(1.0);
                if !(0.0..=LONGEST.as_secs_f64()).contains(&interval_s) {
                    let most = LONGEST.as_secs();
                    return Err(format!("interval {interval_s}s: must be up to {most}s, or 0 for all since the start"));
                }
                show::answer(self, &what, json, limit.unwrap_or(usize::MAX), interval_s)
            }
            Request::Apply(lines) => {
                let began = Instant::now();
                let mut ops = Vec::with_capacity(lines.len());
                for (line, number) in lines.iter().zip(1..) {
                    let text = line.split('#').next().unwrap_or_default().trim();
                    if text.is_empty() {
                        continue;
                    }
                    let op: Op = text.parse().map_err(|e| {
                        if lines.len() == 1 {
                            format!("{e}")
                        } else {
                            format!("line {number}: {e}; nothing was changed")
                        }
                    })?;
                    ops.push(op);
                }
                let Some(plane) = &mut self.plane else {
                    return Err(format!("a {} has no tables to change", self.site.function));
                };
                plane.apply(&ops).map_err(|e| e.to_string())?;
                Ok(json!({ "applied": ops.len(), "took_s": began.elapsed().as_secs_f64() }))
            }
            Request::Load(_) => Err("a load comes with its lines".into()),
            Request::Stop(stop) => {
                self.told_to_stop |= stop;
                Ok(json!({ "stopping": stop }))
            }
        }
    }

    /// The counters since the start, for the end.
    pub fn last_words(&self, json: bool) -> Result<String, Failure> {
        if json {
            let value = show::total(self).map_err(Failure::failed)?;
            serde_json::to_string_pretty(&value).map_err(Failure::failed)
        } else {
            Ok(show::summary(self))
        }
    }
}
