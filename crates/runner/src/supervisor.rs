//! The control thread of a run: it owns the tables, samples the counters, answers requests and feeds the live view.

use std::{
    io,
    sync::{mpsc::Receiver, Arc},
    time::{Duration, Instant},
};

use control::{PendingRequest, Request};
use dataplane::{model::Op, Control, OutputStats, Plane, Snapshot};
use dpdk::{Port, Tsc};
use failure::{Failure, Stop};
use packet::Clock;
use serde_json::{json, Value};

use crate::{
    history::{History, LONGEST},
    output::Draw,
    run_info::RunInfo,
    view::{self, Counters, TableView},
};

/// What a function does each second with the ports and the counters of every lcore. What it returns is added to the live
/// view.
pub type EachSecond = Box<dyn FnMut(&[Port], &[Snapshot]) -> String>;

/// How often the tables' own clock goes on.
const TICK: Duration = Duration::from_millis(100);
/// How long an lcore may take to answer with its counters.
const SNAPSHOT_TIMEOUT: Duration = Duration::from_secs(1);

/// What a supervisor works with.
pub struct Parts {
    /// The tables, of a function that has some.
    pub plane: Option<Plane>,
    /// The ports.
    pub ports: Vec<Port>,
    /// What runs, and where.
    pub info: RunInfo,
    /// The counters of each loop.
    pub controls: Vec<Arc<Control>>,
    /// Requests from the control socket.
    pub requests: Receiver<PendingRequest>,
    /// The lcores' clock.
    pub clock: Tsc,
    /// What the function does each second.
    pub each_second: EachSecond,
    /// The live view; `None` when nobody watches.
    pub draw: Option<Draw>,
}

/// The control side of a run.
pub struct Supervisor {
    parts: Parts,
    begun: Instant,
    history: History,
    /// When the tables' clock last went on.
    ticked: Duration,
    stop_requested: bool,
}

impl Supervisor {
    /// Takes over the control side of loops that have not run yet.
    pub fn new(parts: Parts) -> Self {
        Self { parts, begun: Instant::now(), history: History::new(), ticked: Duration::ZERO, stop_requested: false }
    }

    /// The ports.
    pub fn ports(&self) -> &[Port] {
        &self.parts.ports
    }

    /// Whether the run is done: its time is up, somebody stopped it, or its captures are read.
    pub fn is_done(&self, stop: &Stop) -> bool {
        let timed_out = self.parts.info.duration.is_some_and(|d| self.begun.elapsed() >= d);
        timed_out || self.stop_requested || stop.requested() || self.captures_are_read()
    }

    fn captures_are_read(&self) -> bool {
        let mut captures = self.parts.ports.iter().filter_map(|port| port.progress());
        self.parts.info.once && captures.all(|capture| capture.is_over())
    }

    /// The counters of every lcore that answers.
    pub fn snapshots(&self) -> Vec<Snapshot> {
        self.parts.controls.iter().filter_map(|control| control.snapshot(SNAPSHOT_TIMEOUT).ok()).collect()
    }

    /// Frames received so far.
    pub fn received(&self) -> u64 {
        self.snapshots().iter().map(Snapshot::received).sum()
    }

    /// Whether there are ports over sockets.
    pub fn has_sockets(&self) -> bool {
        self.parts.info.sockets.contains(&true)
    }

    /// Whether a port over a socket has no peer.
    pub fn is_peerless(&self) -> bool {
        let Parts { ports, info, .. } = &self.parts;
        ports.iter().zip(&info.sockets).any(|(port, &socket)| socket && !port.link().up)
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
        self.parts.info.sockets.iter().enumerate().filter(|(_, &socket)| socket).map(sum).collect()
    }

    /// Reads each port's link.
    pub fn read_links(&self) {
        for port in &self.parts.ports {
            let _ = port.link();
        }
    }

    /// Answers requests for about so long. Tables and counters are kept up to date meanwhile.
    pub fn serve_for(&mut self, time: Duration) {
        let until = Instant::now() + time;
        loop {
            let now = self.begun.elapsed();
            if now >= self.ticked + TICK {
                self.ticked = now;
                if let Some(plane) = &mut self.parts.plane {
                    plane.tick(now);
                }
            }
            if self.history.is_due(now) {
                self.sample(now);
            }
            let left = until.saturating_duration_since(Instant::now());
            let Ok(PendingRequest { request, answer }) = self.parts.requests.recv_timeout(left) else {
                // The time is up; or the socket is gone and recv did not wait.
                std::thread::sleep(until.saturating_duration_since(Instant::now()));
                return;
            };
            // A client may have left without its answer.
            let _ = answer.send(self.answer(request));
        }
    }

    fn sample(&mut self, now: Duration) {
        let lcores = self.snapshots();
        if lcores.len() != self.parts.controls.len() {
            return;
        }
        let more = (self.parts.each_second)(&self.parts.ports, &lcores);
        self.history.add(now, lcores);
        if self.parts.draw.is_none() {
            return;
        }
        let mut view = view::live(&self.counters(1.0));
        view.add_always(&more);
        if let Some(draw) = &mut self.parts.draw {
            match draw(view) {
                // A terminal that takes nothing now may do so a second later.
                Err(e) if e.kind() != io::ErrorKind::WouldBlock => self.stop_requested = true,
                _ => {}
            }
        }
    }

    /// The counters now and about `seconds` ago; 0: at the start.
    fn counters(&self, seconds: f64) -> Counters<'_> {
        let now = self.snapshots();
        let elapsed = self.begun.elapsed();
        let ago = (seconds > 0.0).then(|| Duration::from_secs_f64(seconds.min(LONGEST.as_secs_f64())));
        let (at, earlier) = self.history.before(elapsed, ago);
        Counters {
            info: &self.parts.info,
            ports: &self.parts.ports,
            hz: self.parts.clock.hz(),
            elapsed,
            earlier: earlier.to_vec(),
            now,
            seconds: (elapsed - at).as_secs_f64().max(1e-9),
        }
    }

    fn answer(&mut self, request: Request) -> Result<Value, String> {
        match request {
            Request::Show { what, json, limit, interval_s } => self.show(&what, json, limit, interval_s),
            Request::Apply(lines) => self.apply(&lines),
            Request::Load(_) => Err("a load was sent without its lines".into()),
            // The socket's own thread answers it: a supervisor that is busy or ends does not hide what runs.
            Request::Command => Err("this request is the socket's".into()),
            Request::Stop(stop) => {
                self.stop_requested |= stop;
                Ok(json!({ "stopping": stop }))
            }
        }
    }

    fn show(&self, what: &str, json: bool, limit: Option<usize>, interval_s: Option<f64>) -> Result<Value, String> {
        let interval_s = interval_s.unwrap_or(1.0);
        if !(0.0..=LONGEST.as_secs_f64()).contains(&interval_s) {
            let most = LONGEST.as_secs();
            return Err(format!("interval {interval_s}s: must be up to {most}s, or 0 for everything since the start"));
        }
        if view::is_of_counters(what) {
            return view::show_counters(what, json, &self.counters(interval_s));
        }
        let Some(plane) = &self.parts.plane else {
            return Err(format!("show {what}: a {} can show runtime, ports and drops", self.parts.info.function));
        };
        // Stations age by the lcores' clock.
        let lcore_seconds = (self.parts.clock.now() / self.parts.clock.hz().max(1)) as u32;
        view::show_table(what, &TableView { plane, lcore_seconds, limit: limit.unwrap_or(usize::MAX), json })
    }

    /// Applies changes of the tables, all or none.
    fn apply(&mut self, lines: &[String]) -> Result<Value, String> {
        let began = Instant::now();
        let mut ops = Vec::with_capacity(lines.len());
        for (line, number) in lines.iter().zip(1..) {
            let text = line.split('#').next().unwrap_or_default().trim();
            if text.is_empty() {
                continue;
            }
            let op: Op = text.parse().map_err(|e| match lines.len() {
                1 => format!("{e}"),
                _ => format!("line {number}: {e}; nothing was changed"),
            })?;
            ops.push(op);
        }
        let Some(plane) = &mut self.parts.plane else {
            return Err(format!("a {} has no tables to change", self.parts.info.function));
        };
        plane.apply(&ops).map_err(|e| e.to_string())?;
        Ok(json!({ "applied": ops.len(), "took_s": began.elapsed().as_secs_f64() }))
    }

    /// The counters since the start, for the end of the run.
    ///
    /// # Errors
    ///
    /// (failed) for counters that are not JSON.
    pub fn final_report(&self, json: bool) -> Result<String, Failure> {
        let counters = self.counters(0.0);
        if json {
            let value = view::total(&counters).map_err(Failure::failed)?;
            serde_json::to_string_pretty(&value).map_err(Failure::failed)
        } else {
            Ok(view::summary(&counters))
        }
    }
}
