//! The control thread of a data plane that runs: keeps its tables and its counters, answers who asks, draws the live view.

use std::{
    collections::VecDeque,
    sync::{mpsc::Receiver, Arc},
    time::{Duration, Instant},
};

use dataplane::{router::Op, runtime::Runtime, Control, Plane, Snapshot};
use dpdk::{Port, Tsc};
use packet::{Clock, MacAddr};
use serde_json::{json, Value};

use super::{config::Settings, show, snapshot};
use crate::{
    control::{Asked, Request},
    failure::Failure,
    out,
    stop::Stop,
};

/// How often counters are kept, and how many.
const SAMPLE: Duration = Duration::from_secs(1);
const SAMPLES: usize = 61;
/// How often the tables' own time goes on.
const TICK: Duration = Duration::from_millis(100);

/// What every lcore had counted at one moment.
pub struct Sample {
    /// When, since the start.
    pub at: Duration,
    /// By lcore.
    pub lcores: Vec<Snapshot>,
}

/// The control thread's things.
pub struct Desk {
    /// The tables.
    pub plane: Plane,
    /// The ports.
    pub ports: Vec<Port>,
    /// Their addresses, own or made up.
    pub macs: Vec<MacAddr>,
    /// Whether each is a socket at which peers come and go.
    sockets: Vec<bool>,
    /// What was asked for.
    pub settings: Settings,
    clock: Tsc,
    /// Ticks a second of the lcores' clock.
    pub hz: u64,
    controls: Vec<Arc<Control>>,
    asked: Receiver<Asked>,
    begun: Instant,
    first: Sample,
    samples: VecDeque<Sample>,
    ticked: Duration,
    live: bool,
    told_to_stop: bool,
}

impl Desk {
    /// Takes over the control side.
    #[allow(clippy::too_many_arguments)]
    pub fn new(
        plane: Plane,
        ports: Vec<Port>,
        macs: Vec<MacAddr>,
        sockets: Vec<bool>,
        settings: Settings,
        controls: Vec<Arc<Control>>,
        asked: Receiver<Asked>,
        clock: Tsc,
        live: bool,
    ) -> Self {
        Self {
            plane,
            ports,
            macs,
            sockets,
            settings,
            hz: clock.hz(),
            clock,
            controls,
            asked,
            begun: Instant::now(),
            // The loops have not run yet.
            first: Sample { at: Duration::ZERO, lcores: Vec::new() },
            samples: VecDeque::with_capacity(SAMPLES),
            ticked: Duration::ZERO,
            live,
            told_to_stop: false,
        }
    }

    /// Whether it is time to end.
    pub fn over(&self, stop: &Stop) -> bool {
        let done = self.settings.duration.is_some_and(|d| self.begun.elapsed() >= d);
        done || self.told_to_stop || stop.requested()
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

    /// Whether a port over a socket has no peer.
    pub fn is_lonely(&self) -> bool {
        self.ports.iter().zip(&self.sockets).any(|(port, &socket)| socket && !port.link().up)
    }

    /// Asks each port for its link.
    pub fn ask_links(&self) {
        for port in &self.ports {
            let _ = port.link();
        }
    }

    /// Answers for about so long; keeps tables and counters up to date.
    pub fn serve(&mut self, time: Duration) {
        let until = Instant::now() + time;
        loop {
            let now = self.begun.elapsed();
            if now >= self.ticked + TICK {
                self.ticked = now;
                self.plane.tick(now);
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
        self.samples.push_back(Sample { at, lcores });
        if self.live {
            let text = show::live(self);
            // Home, the text with every line's rest cleared, and all below it.
            out::print(&format!("\x1b[H{}\x1b[J", text.replace('\n', "\x1b[K\n")));
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
                show::answer(self, &what, json, limit.unwrap_or(usize::MAX), interval_s.unwrap_or(1.0))
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
                self.plane.apply(&ops).map_err(|e| e.to_string())?;
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
