//! What the lcores did between two moments: rates, and where the cycles went, as the `show runtime` of a vector data
//! plane has it. Arithmetic only; nothing is printed.
//!
//! Every tick of a core is in one row: a node's, the loop's own (`loop`), polling in vain (`idle`) or at rest (`rest`).
//! So cycles a frame times frames a second, and the share that is not busy, make up the core's frequency; how nearly
//! is [`CoreRuntime::accounted_share`].

use serde::Serialize;

use crate::Snapshot;

/// What some lcores did, each by itself and all together.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Runtime {
    /// Ticks a second of the clock that everything was counted with.
    pub tsc_hz: u64,
    /// All lcores: rates added up, shares of the time of all of them.
    pub total: CoreRuntime,
    /// Each lcore, in the order of the snapshots.
    pub lcores: Vec<CoreRuntime>,
}

/// What one lcore did, or several. A rate, share or mean over nothing is zero.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct CoreRuntime {
    /// The time between the two snapshots; of several lcores the longest.
    pub duration_s: f64,
    /// Frames received.
    pub rx_frames: u64,
    /// Frames sent.
    pub tx_frames: u64,
    /// Frames dropped, whatever the reason.
    pub drop_frames: u64,
    /// Frames taken in for ourselves.
    pub punt_frames: u64,
    /// Frames received a second.
    pub rx_fps: f64,
    /// Frames sent a second.
    pub tx_fps: f64,
    /// Frames dropped a second.
    pub drop_fps: f64,
    /// Frames taken in for ourselves a second.
    pub punt_fps: f64,
    /// Polls, busy and idle, a second.
    pub polls_per_s: f64,
    /// Frames received in a poll that did something.
    pub frames_per_busy_poll: f64,
    /// Share of the polling time in which there was something to do, by clocks.
    pub busy_share: f64,
    /// Busy ticks for each frame received: the sum of the rows without `idle` and `rest`.
    pub cycles_per_frame: f64,
    /// `cycles_per_frame` times `rx_fps`: what of the core's frequency the frames took.
    pub busy_hz: f64,
    /// Share of the time between the snapshots that is in one of the rows; 1 when everything adds up.
    pub accounted_share: f64,
    /// How often the loop has rested.
    pub suspends: u64,
    /// Where the time went: the nodes in the order frames meet them, then `loop`, `idle`, and `rest` if there was one.
    pub nodes: Vec<NodeRow>,
}

/// A line of the runtime table.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct NodeRow {
    /// The node's name.
    pub name: &'static str,
    /// Bursts handled; polls, for `loop` (busy ones) and `idle`; rests, for `rest`.
    pub calls: u64,
    /// Frames handled.
    pub vectors: u64,
    /// How often it went to rest, where that means something.
    pub suspends: Option<u64>,
    /// Ticks spent.
    pub clocks: u64,
    /// Ticks a frame.
    pub clocks_per_vector: f64,
    /// Ticks a call: what there is to say of a row without frames.
    pub clocks_per_call: f64,
    /// Frames a call.
    pub vectors_per_call: f64,
    /// Share of the core's time.
    pub share: f64,
}

impl Runtime {
    /// What lcore `i` did between `earlier[i]` and `later[i]`, for each `i`; one that `earlier` does not have, or
    /// that was started anew since, from its start. `hz` is the rate of the lcores' clock.
    pub fn between(earlier: &[Snapshot], later: &[Snapshot], hz: u64) -> Self {
        let fresh = Snapshot::default();
        let mut all = Sums::default();
        let mut lcores = Vec::with_capacity(later.len());
        for (i, now) in later.iter().enumerate() {
            let before = earlier.get(i).filter(|before| before.started_at == now.started_at).unwrap_or(&fresh);
            let sums = Sums::between(before, now);
            lcores.push(sums.core(hz));
            all.add(&sums);
        }
        let mut total = all.core(hz);
        // Not over the sum of their times, which `all` has, and not over the longest, which not all may have had.
        let sum = |rate: fn(&CoreRuntime) -> f64| lcores.iter().map(rate).sum();
        total.duration_s = lcores.iter().map(|core| core.duration_s).fold(0.0, f64::max);
        total.rx_fps = sum(|core| core.rx_fps);
        total.tx_fps = sum(|core| core.tx_fps);
        total.drop_fps = sum(|core| core.drop_fps);
        total.punt_fps = sum(|core| core.punt_fps);
        total.polls_per_s = sum(|core| core.polls_per_s);
        total.busy_hz = sum(|core| core.busy_hz);
        Self { tsc_hz: hz, total, lcores }
    }
}

/// Counts of one lcore or of several, before they are divided by anything.
#[derive(Debug, Default)]
struct Sums {
    elapsed: u64,
    busy_clocks: u64,
    idle_clocks: u64,
    busy_polls: u64,
    idle_polls: u64,
    suspends: u64,
    /// Received, sent, dropped, punted.
    frames: [u64; 4],
    rows: Vec<NodeRow>,
}

impl Sums {
    fn between(before: &Snapshot, now: &Snapshot) -> Self {
        let moved = now.since(before);
        let rx = moved.received();
        let mut rows: Vec<_> =
            moved.nodes.iter().map(|node| row(node.name, node.calls, node.vectors, node.clocks)).collect();
        rows.push(NodeRow { suspends: Some(moved.suspends), ..row("loop", moved.busy_polls, rx, moved.loop_clocks) });
        rows.push(row("idle", moved.idle_polls, 0, moved.idle_clocks));
        if moved.rested_clocks > 0 {
            rows.push(row("rest", moved.suspends, 0, moved.rested_clocks));
        }
        Self {
            elapsed: now.taken_at.saturating_sub(before.taken_at.max(now.started_at)),
            busy_clocks: moved.busy_clocks,
            idle_clocks: moved.idle_clocks,
            busy_polls: moved.busy_polls,
            idle_polls: moved.idle_polls,
            suspends: moved.suspends,
            frames: [rx, moved.sent(), moved.drops.total(), moved.punted],
            rows,
        }
    }

    /// Adds another lcore's; rows of the same name become one.
    fn add(&mut self, other: &Self) {
        for (sum, count) in [
            (&mut self.elapsed, other.elapsed),
            (&mut self.busy_clocks, other.busy_clocks),
            (&mut self.idle_clocks, other.idle_clocks),
            (&mut self.busy_polls, other.busy_polls),
            (&mut self.idle_polls, other.idle_polls),
            (&mut self.suspends, other.suspends),
        ] {
            *sum += count;
        }
        self.frames.iter_mut().zip(other.frames).for_each(|(sum, count)| *sum += count);
        let mut at = 0;
        for new in &other.rows {
            match self.rows.iter().position(|row| row.name == new.name) {
                Some(i) => {
                    let row = &mut self.rows[i];
                    row.calls += new.calls;
                    row.vectors += new.vectors;
                    row.clocks += new.clocks;
                    row.suspends = row.suspends.zip(new.suspends).map(|(a, b)| a + b);
                    at = i + 1;
                }
                // Behind the row it comes after on its own lcore.
                None => {
                    self.rows.insert(at, new.clone());
                    at += 1;
                }
            }
        }
    }

    fn core(&self, hz: u64) -> CoreRuntime {
        let seconds = per(self.elapsed, hz);
        let rate = |count: u64| if seconds > 0.0 { count as f64 / seconds } else { 0.0 };
        let [rx, tx, drops, punts] = self.frames;
        let nodes = self.rows.iter().map(|row| NodeRow {
            clocks_per_vector: per(row.clocks, row.vectors),
            clocks_per_call: per(row.clocks, row.calls),
            vectors_per_call: per(row.vectors, row.calls),
            share: per(row.clocks, self.elapsed),
            ..row.clone()
        });
        CoreRuntime {
            duration_s: seconds,
            rx_frames: rx,
            tx_frames: tx,
            drop_frames: drops,
            punt_frames: punts,
            rx_fps: rate(rx),
            tx_fps: rate(tx),
            drop_fps: rate(drops),
            punt_fps: rate(punts),
            polls_per_s: rate(self.busy_polls + self.idle_polls),
            frames_per_busy_poll: per(rx, self.busy_polls),
            busy_share: per(self.busy_clocks, self.busy_clocks + self.idle_clocks),
            cycles_per_frame: per(self.busy_clocks, rx),
            busy_hz: per(self.busy_clocks, rx) * rate(rx),
            accounted_share: per(self.rows.iter().map(|row| row.clocks).sum(), self.elapsed),
            suspends: self.suspends,
            nodes: nodes.collect(),
        }
    }
}

fn row(name: &'static str, calls: u64, vectors: u64, clocks: u64) -> NodeRow {
    NodeRow { name, calls, vectors, clocks, ..NodeRow::default() }
}

fn per(a: u64, b: u64) -> f64 {
    if b == 0 {
        0.0
    } else {
        a as f64 / b as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{node::NodeStats, InputStats, OutputStats};

    /// A core of 1 kHz, `seconds` after its start at tick 500: 600 of 1000 ticks busy, 400 of them in nodes.
    fn snapshot(seconds: u64, names: &[&'static str]) -> Snapshot {
        let s = seconds;
        let nodes = names.iter().map(|&name| NodeStats { name, calls: s, vectors: 20 * s, clocks: 200 * s });
        Snapshot {
            started_at: 500,
            taken_at: 500 + 1000 * s,
            busy_polls: 2 * s,
            idle_polls: 8 * s,
            busy_clocks: 600 * s,
            idle_clocks: 300 * s,
            loop_clocks: (600 - 200 * names.len() as u64) * s,
            rested_clocks: 100 * s,
            suspends: s,
            rx: vec![InputStats { frames: 20 * s, ..InputStats::default() }],
            tx: vec![OutputStats { frames: 15 * s, ..OutputStats::default() }],
            punted: 5 * s,
            nodes: nodes.collect(),
            ..Snapshot::default()
        }
    }

    fn shares(core: &CoreRuntime) -> Vec<(&str, f64)> {
        core.nodes.iter().map(|row| (row.name, row.share)).collect()
    }

    #[test]
    fn the_parts_make_up_the_frequency() {
        let names = ["rx", "tx"];
        let runtime = Runtime::between(&[snapshot(1, &names)], &[snapshot(3, &names)], 1000);
        let core = &runtime.lcores[0];
        assert_eq!(
            (core.duration_s, core.rx_fps, core.tx_fps, core.drop_fps, core.punt_fps),
            (2.0, 20.0, 15.0, 0.0, 5.0)
        );
        assert_eq!((core.cycles_per_frame, core.busy_hz, core.accounted_share), (30.0, 600.0, 1.0));
        assert_eq!((core.busy_share, core.polls_per_s, core.frames_per_busy_poll), (600.0 / 900.0, 10.0, 10.0));
        assert_eq!(shares(core), [("rx", 0.2), ("tx", 0.2), ("loop", 0.2), ("idle", 0.3), ("rest", 0.1)]);
        let rx = &core.nodes[0];
        assert_eq!((rx.calls, rx.vectors, rx.clocks, rx.suspends), (2, 40, 400, None));
        assert_eq!((rx.clocks_per_vector, rx.clocks_per_call, rx.vectors_per_call), (10.0, 200.0, 20.0));
        assert_eq!((core.nodes[2].suspends, core.nodes[3].clocks_per_call), (Some(2), 300.0 / 8.0));
        assert_eq!(runtime.total, *core);
    }

    #[test]
    fn lcores_are_added_up() {
        let later = [snapshot(2, &["rx", "tx"]), snapshot(4, &["rx", "lookup", "tx"])];
        let runtime = Runtime::between(&[], &later, 1000);
        let total = &runtime.total;
        assert_eq!((total.duration_s, total.rx_frames, total.rx_fps, total.busy_hz), (4.0, 120, 40.0, 1200.0));
        assert_eq!((total.cycles_per_frame, total.accounted_share, total.suspends), (30.0, 1.0, 6));
        let names: Vec<_> = total.nodes.iter().map(|row| (row.name, row.vectors)).collect();
        assert_eq!(names, [("rx", 120), ("lookup", 80), ("tx", 120), ("loop", 120), ("idle", 0), ("rest", 0)]);
        assert_eq!(total.nodes[3].suspends, Some(6));
    }

    #[test]
    fn time_in_no_row_shows() {
        let mut later = snapshot(1, &["rx"]);
        later.loop_clocks -= 250;
        assert_eq!(Runtime::between(&[], &[later], 1000).lcores[0].accounted_share, 0.75);
    }

    #[test]
    fn nothing_is_zero_and_never_not_a_number() {
        let (one, two) = (snapshot(1, &["rx", "tx"]), snapshot(2, &["rx"]));
        let other = Snapshot { started_at: 9000, taken_at: 10_000, ..one.clone() };
        for (earlier, later) in [
            (vec![], vec![]),
            (vec![one.clone()], vec![]),
            (vec![one.clone()], vec![one.clone()]),
            (vec![two.clone()], vec![one.clone()]),
            (vec![one.clone()], vec![two, Snapshot::default()]),
            (vec![Snapshot::default(); 3], vec![one.clone()]),
            (vec![one], vec![other]),
        ] {
            for hz in [0, 1000] {
                let runtime = Runtime::between(&earlier, &later, hz);
                assert_eq!(runtime.lcores.len(), later.len());
                for core in runtime.lcores.iter().chain([&runtime.total]) {
                    let figures = [core.rx_fps, core.busy_share, core.cycles_per_frame, core.busy_hz, core.duration_s];
                    let rows = core.nodes.iter().flat_map(|r| [r.clocks_per_vector, r.vectors_per_call, r.share]);
                    assert!(figures.into_iter().chain(rows).all(|f| f.is_finite() && f >= 0.0), "{core:?}");
                }
            }
        }
    }

    #[test]
    fn a_loop_started_anew_counts_from_its_start() {
        let old = snapshot(5, &["rx"]);
        let new = Snapshot { started_at: 90_000, taken_at: 91_000, ..snapshot(1, &["rx"]) };
        assert_eq!(Runtime::between(&[old], &[new], 1000).lcores[0].rx_fps, 20.0);
    }
}
