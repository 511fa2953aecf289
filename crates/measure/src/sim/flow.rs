//! When the frames of a simulated trial leave, and what a queue of fixed depth before a server of fixed rate loses of them.

use crate::{
    shape::{LastLost, LoadShape, Outage},
    trial::TrialSpec,
};

/// Frames at an even rate from one moment of the trial to another, seconds.
#[derive(Debug, Clone, Copy)]
pub(super) struct Part {
    pub from_s: f64,
    pub to_s: f64,
    pub fps: f64,
}

/// Frames lost between two moments of the trial, evenly, and the most of them one after the other.
#[derive(Debug, Clone, Copy)]
pub(super) struct Span {
    pub from_s: f64,
    pub to_s: f64,
    pub frames: f64,
    pub run: f64,
}

/// Bursts at an even distance.
#[derive(Debug, Clone, Copy)]
pub(super) struct Train {
    pub frames: f64,
    pub burst_s: f64,
    pub period_s: f64,
    pub count: f64,
}

/// How the frames of a trial leave.
#[derive(Debug, Clone)]
pub(super) struct Flow {
    pub parts: Vec<Part>,
    /// In place of parts.
    pub train: Option<Train>,
}

/// The DUT during a trial, in seconds of it.
pub(super) struct Server<'a> {
    /// Frames/s that it forwards over a span on average.
    pub capacity: &'a dyn Fn(f64, f64) -> f64,
    pub queue: f64,
    /// Frames in the queue when the trial begins.
    pub queued: f64,
    pub dead: Option<(f64, f64)>,
    pub recovery_s: f64,
    /// Moments from which on its capacity is taken anew.
    pub edges: Vec<f64>,
}

/// Whole frames, rounded up. A fraction that comes from rounding of floats does not count as a frame.
pub(super) fn whole(frames: f64) -> u64 {
    (frames - 1e-6 - frames.abs() * 1e-12).ceil().max(0.0) as u64
}

impl Flow {
    /// The frames of this trial when so many of those intended are sent.
    pub fn new(spec: &TrialSpec, sent: u64, intended: u64) -> Self {
        let (load, time) = (spec.load_fps.get(), spec.duration_s);
        let share = if intended > 0 { sent as f64 / intended as f64 } else { 0.0 };
        let part = |from_s: f64, to_s: f64, fps: f64| Part { from_s, to_s, fps: fps * share };
        let parts = match spec.shape {
            LoadShape::Steady | LoadShape::Burst { .. } | LoadShape::Replay { .. } => {
                vec![part(0.0, time, intended as f64 / time)]
            }
            LoadShape::Step { step_s, then_fps } => {
                let step_s = step_s.clamp(0.0, time);
                vec![part(0.0, step_s, load), part(step_s, time, then_fps.get())]
            }
            LoadShape::Bursts { frames, .. } => {
                let frames = f64::from(frames.max(1)) * share;
                let (burst_s, period_s) = (frames / spec.shape.peak(spec.load_fps).get(), frames / load / share);
                let count = (intended as f64 * share / frames).round();
                return Self { parts: Vec::new(), train: Some(Train { frames, burst_s, period_s, count }) };
            }
        };
        Self { parts: parts.into_iter().filter(|p| p.from_s < p.to_s).collect(), train: None }
    }

    /// As many frames, but none in this span of the trial: whoever sends them evenly is away.
    pub fn without(mut self, (from_s, to_s): (f64, f64)) -> Self {
        let [all] = self.parts[..] else { return self };
        let length = all.to_s - all.from_s;
        let fps = all.fps * length / (length - (to_s - from_s)).max(1e-9);
        let part = |from_s: f64, to_s: f64, fps: f64| Part { from_s, to_s, fps };
        self.parts = vec![part(all.from_s, from_s, fps), part(from_s, to_s, 0.0), part(to_s, all.to_s, fps)];
        self.parts.retain(|p| p.from_s < p.to_s);
        self
    }

    /// Frames that have left by a moment of the trial.
    pub fn sent_by(&self, at_s: f64) -> f64 {
        let within = |p: &Part| (at_s.min(p.to_s) - p.from_s).max(0.0) * p.fps;
        let train = self.train.map_or(0.0, |t| {
            let begun = (at_s / t.period_s).floor().clamp(0.0, t.count - 1.0);
            begun * t.frames + ((at_s - begun * t.period_s) / t.burst_s).clamp(0.0, 1.0) * t.frames
        });
        train + self.parts.iter().map(within).sum::<f64>()
    }

    /// The last frame that left before a moment: its number and when.
    fn last_before(&self, at_s: f64) -> LastLost {
        let sequence = whole(self.sent_by(at_s)).saturating_sub(1);
        let part = self.parts.iter().rev().find(|p| p.from_s < at_s && p.fps > 0.0);
        let since = |p: &Part| sequence as f64 - self.sent_by(p.from_s);
        let departed_s = match (part, self.train) {
            (Some(p), _) => p.from_s + since(p).max(0.0) / p.fps,
            (None, Some(t)) => {
                let burst = (sequence as f64 / t.frames).floor();
                burst * t.period_s + (sequence as f64 / t.frames - burst) * t.burst_s
            }
            (None, None) => 0.0,
        };
        LastLost { sequence, departed_s }
    }

    /// What the DUT loses of it for want of capacity or of life, and the frames in its queue at the end.
    pub fn overload(&self, server: &Server<'_>) -> (Vec<Span>, f64) {
        let Some(train) = &self.train else { return self.steps(server) };
        let end = train.period_s * train.count;
        let capacity = (server.capacity)(0.0, end);
        let mut spans = train.overload(capacity, server.queue);
        if let Some((dies, returns)) = server.dead {
            let frames = self.sent_by(returns) - self.sent_by(dies);
            let alive = (1.0 - frames / (train.frames * train.count)).max(0.0);
            spans.iter_mut().for_each(|s| s.frames *= alive);
            spans.push(Span { from_s: dies.max(0.0), to_s: returns.min(end), frames, run: frames });
        }
        spans.retain(|s| s.frames > 0.0);
        (spans, train.peak(capacity).min(server.queue))
    }

    fn steps(&self, server: &Server<'_>) -> (Vec<Span>, f64) {
        let (mut spans, mut queued): (Vec<Span>, f64) = (Vec::new(), server.queued);
        for (i, part) in self.parts.iter().enumerate() {
            let recovered = part.from_s + if i > 0 && !spans.is_empty() { server.recovery_s } else { 0.0 };
            let mut edges = vec![part.from_s, part.to_s, recovered];
            edges.extend(server.dead.into_iter().flat_map(|(from, to)| [from, to]));
            edges.extend(&server.edges);
            edges.retain(|e| (part.from_s..=part.to_s).contains(e));
            edges.sort_unstable_by(f64::total_cmp);
            for (from_s, to_s) in edges.iter().zip(edges.iter().skip(1)).map(|(a, b)| (*a, *b)).filter(|(a, b)| a < b) {
                let (time, capacity) = (to_s - from_s, (server.capacity)(from_s, to_s));
                let dead = server.dead.is_some_and(|(dies, returns)| dies <= from_s && to_s <= returns);
                if dead || to_s <= recovered || capacity <= 0.0 {
                    let frames = time * part.fps;
                    spans.push(Span { from_s, to_s, frames, run: frames });
                    continue;
                }
                let excess = part.fps - capacity;
                let full_after = if excess > 0.0 { (server.queue - queued) / excess } else { f64::INFINITY };
                if full_after < time {
                    let run = (part.fps / capacity).ceil() - 1.0;
                    spans.push(Span { from_s: from_s + full_after, to_s, frames: excess * (time - full_after), run });
                }
                queued = (queued + excess * time).clamp(0.0, server.queue);
            }
        }
        spans.retain(|s| s.frames > 0.0);
        (spans, queued)
    }

    /// The last frame lost and the longest run, of what was lost in these spans.
    pub fn evidence(
        &self,
        spans: &[Span],
        lost: u64,
        end_s: f64,
        latency_s: f64,
    ) -> (Option<LastLost>, Option<Outage>) {
        let last = spans.iter().map(|s| s.to_s).max_by(f64::total_cmp).map(|to_s| self.last_before(to_s));
        let longest = spans.iter().max_by(|a, b| a.run.total_cmp(&b.run)).map(|s| {
            let run = s.run.max(1.0).min(s.frames.max(1.0));
            // All of a span is one run, or the first of its runs stands for all.
            let to_s = if run >= s.frames { s.to_s } else { s.from_s + (s.to_s - s.from_s) * run / s.frames };
            Outage {
                lost: (run.round() as u64).min(lost),
                from_s: if s.from_s > 0.0 { s.from_s + latency_s } else { 0.0 },
                to_s: (to_s < end_s).then_some(to_s + latency_s),
            }
        });
        if lost > 0 {
            (last, longest)
        } else {
            (None, None)
        }
    }
}

impl Train {
    /// The most frames that wait at the end of a burst, were there room for all.
    pub fn peak(&self, capacity: f64) -> f64 {
        let grown = (self.frames - capacity * self.period_s).max(0.0) * (self.count - 1.0);
        grown + (self.frames - capacity * self.burst_s).max(0.0)
    }

    /// Each burst finds what the ones before it left in the queue.
    fn overload(&self, capacity: f64, queue: f64) -> Vec<Span> {
        let Self { frames, burst_s, period_s, count } = *self;
        let queue = if capacity > 0.0 { queue } else { 0.0 };
        let (over, growth) = (frames - capacity * burst_s - queue, frames - capacity * period_s);
        let first = match () {
            () if over > 1e-6 => 0.0,
            () if growth > 1e-9 => (-over / growth).floor() + 1.0,
            () => return Vec::new(),
        };
        if first >= count {
            return Vec::new();
        }
        let left = (queue - capacity * (period_s - burst_s)).max(0.0);
        let lost = if growth > 1e-9 {
            over + first * growth + (count - first - 1.0) * (left + over).max(0.0)
        } else {
            // The queue is empty again before each: every burst loses whole frames.
            whole(over) as f64 * count
        };
        let run = if capacity > 0.0 { (frames / burst_s / capacity).ceil() - 1.0 } else { frames * count };
        vec![Span { from_s: first * period_s, to_s: (count - 1.0) * period_s + burst_s, frames: lost, run }]
    }
}
