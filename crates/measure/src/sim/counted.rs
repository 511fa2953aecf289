//! What was counted in a simulated trial, told apart by time.

use super::{
    delay::{Delays, Waits},
    flow::{Flow, Span},
};
use crate::{shape::WindowSummary, trial::LatencySummary};

/// Beyond so many windows the delays of the whole trial are not put together from theirs.
const MERGED_WINDOWS: usize = 3600;

/// What was counted of a direction, to be told apart by time.
pub(super) struct Counted<'a> {
    pub flow: &'a Flow,
    pub spans: &'a [Span],
    pub sent: u64,
    pub lost: u64,
    /// Seconds of sending.
    pub time: f64,
}

impl Counted<'_> {
    /// Of the frames that left by a moment of the trial those that are lost.
    pub fn lost_by(&self) -> impl Fn(f64) -> f64 + '_ {
        let total: f64 = self.spans.iter().map(|s| s.frames).sum();
        let scale = if total > 0.0 { self.lost as f64 / total } else { 0.0 };
        let share = |s: &Span, at: f64| ((at - s.from_s) / (s.to_s - s.from_s).max(1e-12)).clamp(0.0, 1.0);
        move |at| self.spans.iter().map(|s| s.frames * share(s, at)).sum::<f64>() * scale
    }

    /// Each interval between these moments of the trial: number, from, to, frames received and lost. They add up.
    pub fn each(&self, edges: &[f64], mut take: impl FnMut(usize, f64, f64, u64, u64)) {
        let lost_by = self.lost_by();
        let (mut from_s, mut received, mut lost) = (0.0, 0, 0);
        for (i, to_s) in edges.iter().copied().chain([self.time]).enumerate() {
            let (came, gone) = if i == edges.len() {
                (self.sent - self.lost, self.lost)
            } else {
                let gone = lost_by(to_s);
                let came = (self.flow.sent_by(to_s) - gone).round().max(0.0) as u64;
                (came.min(self.sent - self.lost).max(received), (gone.round() as u64).min(self.lost).max(lost))
            };
            take(i, from_s, to_s, came - received, gone - lost);
            (from_s, received, lost) = (to_s, came, gone);
        }
    }

    /// The windows between these moments, and the delays of all if they are not too many.
    pub fn windows(
        &self,
        edges: &[f64],
        waits: &dyn Fn(f64, f64, u64, u64) -> Waits,
    ) -> (Vec<WindowSummary>, Option<Delays>) {
        let mut all = (edges.len() < MERGED_WINDOWS).then(Delays::default);
        let mut windows = Vec::with_capacity(edges.len() + 1);
        self.each(edges, |_, from_s, to_s, received, missing| {
            let mut delays = Delays::default();
            delays.add(&waits(from_s, to_s, received, 0));
            if let Some(all) = &mut all {
                all.merge(&delays);
            }
            let seen = delays.summary().map(window).unwrap_or_default();
            windows.push(WindowSummary { from_s, to_s, received, missing, ..seen });
        });
        (windows, all)
    }
}

fn window(of: LatencySummary) -> WindowSummary {
    WindowSummary {
        min_ns: of.min_ns,
        p50_ns: of.p50_ns,
        p99_ns: of.p99_ns,
        max_ns: of.max_ns,
        pdv_p99_9_ns: of.pdv_p99_9_ns,
        ipdv: of.ipdv,
        ..WindowSummary::default()
    }
}
