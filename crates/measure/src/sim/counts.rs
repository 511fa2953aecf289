//! What is counted in a simulated trial.

use units::Nanos;

use super::{
    counted::Counted,
    delay::{Delays, Waits},
    flow::{whole, Flow, Part, Server, Span},
    rng::Rng,
    slices::{self, Queue},
    state::SimDut,
};
use crate::{
    schema::timeline::{Cut, Slice},
    shape::{self, LoadShape},
    trial::{DirectionCounts, TrialSpec},
};

/// How late the frames of a burst may leave, seconds: the tester's own bound.
const BURST_LATE_S: f64 = 20e-6;

/// So many stalls of a trial in slices have a moment each; more of them are spread over it.
const MOST_STALLS: u64 = 100;

/// What the chances of a trial came to.
pub(super) struct Chances {
    /// Seconds that the tester is away.
    pub away_s: f64,
    /// When it is, in a trial that is cut into slices: it sends nothing then. In others it makes up for it.
    pub gap: Option<(f64, f64)>,
    /// Frames lost at once, at any load.
    pub sudden: u64,
}

impl SimDut {
    /// Counts of one direction of a trial that begins now, at the worse of two placements of the cores, and its slices
    /// where the trial is to be cut so.
    pub(super) fn counts(
        &mut self,
        spec: &TrialSpec,
        placements: [usize; 2],
        chances: &Chances,
        cut: Option<&Cut>,
    ) -> (DirectionCounts, Vec<Slice>) {
        let (load, time, now_s) = (spec.load_fps.get(), spec.duration_s, self.now_s);
        let intended = spec.shape.frames(spec.load_fps, time);
        let due = chances.gap.map_or(intended, |_| spec.shape.frames(spec.load_fps, time - chances.away_s));
        let sent = self.can_send(spec, due, time - chances.away_s);
        let setup = self.setup.clone();
        let capacity = |from: f64, to: f64| {
            let [a, b] = placements.map(|at| setup.capacity(at, now_s + from, now_s + to));
            a.min(b)
        };
        let flow = Flow::new(spec, sent, intended);
        let flow = match chances.gap {
            Some(gap) => flow.without(gap),
            None => flow,
        };
        let grid = spec.window_s.and_then(|w| shape::windows(w, time)).unwrap_or((time, 1));
        let edges: Vec<f64> = (1..grid.1).map(|i| f64::from(i) * grid.0).collect();
        let server = Server {
            capacity: &capacity,
            queue: setup.queue as f64,
            queued: self.queued,
            dead: setup
                .dead
                .map(|(from, to)| (from - now_s, to - now_s))
                .filter(|(from, to)| *from < time && *to > 0.0),
            recovery_s: if matches!(spec.shape, LoadShape::Step { .. }) { setup.recovery_s } else { 0.0 },
            edges: if setup.drift_per_min == 0.0 { Vec::new() } else { edges.clone() },
        };
        let (mut spans, queued) = flow.overload(&server);
        let in_time = self.patience_s.map(|s| (s + spec.drain_s) * capacity(time, time));
        self.queued = in_time.map_or(0.0, |_| queued);
        let late = whole(in_time.map_or(0.0, |frames| queued - frames)).min(sent);
        let sharp = whole(spans.iter().map(|s| s.frames).sum()).min(sent);
        let overload = sharp.max(self.soft(&flow, &server).min(sent));
        let (stalls, stalled) = self.stalled(time);
        let inverted = self.inverted(load, sent);
        let lost = (overload.max(chances.sudden) + stalled + inverted + late).min(sent);
        // Moments of what has none of its own, drawn apart: what is lost must not depend on who asks when.
        let mut moments = Rng::new(setup.seed ^ u64::from(self.trials).wrapping_add(1).rotate_left(32));
        let mut also = |frames: u64, run: u64, from_s: f64, to_s: f64| {
            spans.push(Span { from_s, to_s, frames: frames as f64, run: run as f64 });
        };
        also(overload - sharp, 1, 0.0, time);
        let at_s = moments.share() * time;
        let sudden = chances.sudden.saturating_sub(overload);
        also(sudden, sudden, at_s, (at_s + sudden as f64 / load).min(time));
        let longest = setup.stalls.iter().map(|s| s.frames).max().unwrap_or(0);
        match cut {
            Some(_) if stalls <= MOST_STALLS => (0..stalls).for_each(|i| {
                let (frames, at_s) = (stalled * (i + 1) / stalls - stalled * i / stalls, moments.share() * time);
                also(frames, frames, at_s, (at_s + frames as f64 / load).min(time));
            }),
            _ => also(stalled, longest, 0.0, time * moments.share().sqrt()),
        }
        also(inverted, 1, 0.0, time);
        also(late, late, (time - late as f64 / load).max(0.0), time);
        spans.retain(|s| s.frames > 0.0);
        let base = setup.latency;
        let (last_lost, outage) = flow.evidence(&spans, lost, time, base.seconds());
        let counted = Counted { flow: &flow, spans: &spans, sent, lost, time };
        let waits = |from: f64, to: f64, received: u64, stalls: u64| {
            let capacity = capacity(from, to);
            Waits {
                base_ns: base.0,
                load: (flow.sent_by(to) - flow.sent_by(from)) / (to - from),
                capacity,
                queue: setup.queue,
                burst: flow.train.map(|t| t.peak(capacity)),
                time_s: to - from,
                stalls,
                received,
            }
        };
        let (windows, merged) = match spec.window_s {
            Some(_) => counted.windows(&edges, &waits),
            None => (Vec::new(), None),
        };
        let latency = merged.unwrap_or_else(|| {
            let mut all = Delays::default();
            let parts: Vec<f64> = flow.parts.iter().skip(1).map(|p| p.from_s).collect();
            counted.each(&parts, |i, from, to, received, _| {
                all.add(&waits(from, to, received, if i == 0 { stalls } else { 0 }));
            });
            all
        });
        let received = sent - lost;
        let slices = cut
            .map_or_else(Vec::new, |cut| slices::of(cut, &counted, &Queue { server: &server, base_s: base.seconds() }));
        let counts = DirectionCounts {
            intended,
            sent,
            skipped: intended - sent,
            received,
            lost,
            received_bytes: (received as f64 * spec.frame_size_bytes.average_bytes()).round() as u64,
            tx_span_s: time,
            latency: latency.summary(),
            last_lost,
            outage,
            windows,
            ..DirectionCounts::default()
        };
        (counts, slices)
    }

    /// Of the frames intended those that the tester sends in this time.
    fn can_send(&self, spec: &TrialSpec, intended: u64, seconds: f64) -> u64 {
        let most = self.setup.tester_max;
        let frames = match spec.shape {
            LoadShape::Steady | LoadShape::Step { .. } | LoadShape::Replay { .. } => most * seconds,
            LoadShape::Burst { .. } | LoadShape::Bursts { .. } => {
                let burst = match spec.shape {
                    LoadShape::Bursts { frames, .. } => f64::from(frames),
                    _ => intended as f64,
                };
                let burst_s = burst / spec.shape.peak(spec.load_fps).get() + BURST_LATE_S;
                intended as f64 * (most * burst_s / burst).min(1.0)
            }
        };
        intended.min(frames.clamp(0.0, 1e18) as u64)
    }

    /// Frames lost to the softness of the onset: it rises as a softplus, exponentially below the capacity, all of the
    /// excess above it. Such losses come from short crowds that the queue does not hold, so it saves none of them.
    fn soft(&mut self, flow: &Flow, server: &Server<'_>) -> u64 {
        if self.setup.onset <= 0.0 {
            return 0;
        }
        let of = |p: &Part| {
            let capacity = (server.capacity)(p.from_s, p.to_s);
            let onset = self.setup.onset * capacity;
            let dead = server.dead.map_or(0.0, |(from, to)| (to.min(p.to_s) - from.max(p.from_s)).max(0.0));
            let above = (p.fps - capacity) / onset;
            let rate = onset * if above > 30.0 { above } else { above.exp().ln_1p() };
            rate * (p.to_s - p.from_s - dead)
        };
        let mean = flow.parts.iter().map(of).sum();
        self.rng.events(mean)
    }
}

/// 30 ms, when the tester is away.
pub(super) const AWAY: Nanos = Nanos(30_000_000);
