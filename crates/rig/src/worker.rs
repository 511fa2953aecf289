//! The tester's worker of a trial: each loaded port sends a paced stream, each port checks what it receives.

use dpdk::{Mempool, PoolHandle, RxQueue, TxQueue};
use failure::Failure;
use measure::{
    shape::{self, LoadShape},
    timeline::{Cut, Slice},
    trial::{DirectionCounts, TrialSpec},
};
use traffic::{
    checker::{Checker, Grid, Sample},
    generator::Generator,
    pacer::{Pacer, Shape},
    worker::{RxTask, SentSlice, TxCounters, TxTask, Worker},
};

use crate::{
    lcores::GAPS_LOGGED,
    record,
    streams::{SentFlows, Streams},
    tester_port::TesterPort,
};

/// The tester's tasks over its own queues.
pub(crate) type TesterWorker<'a> = Worker<TxTask<&'a mut TxQueue, PoolHandle>, RxTask<&'a mut RxQueue>>;

/// The windows of a trial: the length of one in seconds, and how many; `None` without windows.
fn windows_of(spec: &TrialSpec) -> Option<(f64, u32)> {
    shape::windows(spec.window_s?, spec.duration_s)
}

/// How a trial is cut into slices, in ticks; `None` of one with windows, which has those instead.
fn grid_of(spec: &TrialSpec, hz: u64) -> Option<Grid> {
    let Cut { slice_s, count, .. } = Cut::of(spec.duration_s, spec.shape.peak(spec.load_fps));
    spec.window_s.is_none().then(|| Grid { width: ((slice_s * hz as f64) as u64).max(1), count })
}

/// When the frames of a trial are due.
fn pacer(spec: &TrialSpec, hz: u64, duration: u64) -> Pacer {
    let (shape, catch_up) = match spec.shape {
        // A replay has a timeline instead of a pacer.
        LoadShape::Steady | LoadShape::Replay { .. } => (Shape::Steady, Pacer::default_catch_up(hz)),
        LoadShape::Burst { frames } => (Shape::Burst { frames }, Pacer::burst_catch_up(hz)),
        LoadShape::Bursts { frames, burst_fps } => {
            (Shape::Bursts { frames, rate: burst_fps }, Pacer::burst_catch_up(hz))
        }
        LoadShape::Step { step_s, then_fps } => {
            (Shape::Step { after: (step_s * hz as f64) as u64, rate: then_fps }, Pacer::default_catch_up(hz))
        }
    };
    Pacer::shaped(shape, spec.load_fps, hz, duration, catch_up)
}

/// The tester's tasks: a stream sent by each loaded port, a checker at each port.
#[allow(clippy::too_many_arguments)]
pub fn tester_worker<'a>(
    ports: &'a mut [TesterPort],
    streams: &Streams,
    frames: &Mempool,
    spec: &TrialSpec,
    epoch: u8,
    hz: u64,
    duration: u64,
    threshold: u64,
) -> Result<TesterWorker<'a>, Failure> {
    let (mut txs, mut rxs) = (Vec::new(), Vec::new());
    let grid = grid_of(spec, hz);
    for (i, port) in ports.iter_mut().enumerate() {
        let stream = &streams.specs[i.min(1)];
        if i < streams.directions {
            let generator = match &streams.flows {
                Some((stream, program)) if i == 0 => {
                    Generator::with_flows(stream, program, 0, epoch, streams.prefilled)
                }
                _ => Generator::new(stream, i as u16, epoch, streams.prefilled),
            };
            let generator = generator.map_err(Failure::usage)?;
            let pacer = pacer(spec, hz, duration);
            let task = TxTask::new(&mut port.tx, frames.handle(), generator, pacer);
            txs.push(match grid {
                Some(grid) => task.with_slices(grid),
                None => task,
            });
        }
        // Port i receives what the other port sends.
        let own = if 1 - i.min(1) < streams.directions { vec![1 - i as u16] } else { vec![] };
        let others: Vec<u16> = (0..streams.directions as u16).filter(|id| !own.contains(id)).collect();
        let mut checker = Checker::new(epoch, &own, &others, 0).with_sizes(stream.frame_size);
        if let Some((width_s, count)) = windows_of(spec).filter(|_| !own.is_empty()) {
            checker = checker.with_intervals((width_s * hz as f64) as u64, count as usize);
        }
        if let Some(grid) = grid.filter(|_| !own.is_empty()) {
            checker = checker.with_slices(grid);
        }
        rxs.push(RxTask::new(&mut port.rx, checker));
    }
    Ok(Worker::new(txs, rxs, threshold).with_gap_log(GAPS_LOGGED))
}

/// What one port sent.
pub(crate) struct Sent {
    counters: TxCounters,
    slices: Vec<SentSlice>,
}

/// What the workers of a trial counted.
pub(crate) enum Counted {
    Checked(Vec<Sent>, Vec<Checker>, Option<SentFlows>),
    /// Already in the form of the record.
    Replayed(Vec<DirectionCounts>),
}

impl Counted {
    pub(crate) fn of(worker: TesterWorker<'_>) -> Self {
        let sent_flows = worker.tx.first().and_then(|task| {
            let (counters, departures) = (task.counters(), task.generator().departures()?.clone());
            Some(SentFlows { frames: counters.sent, departures, last_tick: counters.last_tick })
        });
        let txs = worker
            .tx
            .into_iter()
            .map(|task| {
                let sent = Sent { counters: task.counters(), slices: task.slices() };
                // The driver may still hold frames: it must send them now.
                task.into_parts().0.tx_done_cleanup();
                sent
            })
            .collect();
        Self::Checked(txs, worker.rx.into_iter().map(|task| task.into_parts().1).collect(), sent_flows)
    }

    /// The slices of each direction; none of a replay.
    pub(crate) fn slices(&self, hz: u64) -> Vec<Vec<Slice>> {
        let Self::Checked(txs, rxs, _) = self else { return Vec::new() };
        let slices = |(i, tx): (usize, &Sent)| Some(record::slices(&tx.slices, &rxs.get(1 - i)?.slices(), hz));
        txs.iter().enumerate().filter_map(slices).collect()
    }

    /// The directions without the names of their ports, the unexpected frames at each port, and what was sent of a flow
    /// program.
    pub(crate) fn directions(
        self,
        spec: &TrialSpec,
        times: record::Times,
    ) -> (Vec<DirectionCounts>, Vec<Vec<Sample>>, Option<SentFlows>) {
        let (txs, rxs, sent_flows) = match self {
            Self::Checked(txs, rxs, sent_flows) => (txs, rxs, sent_flows),
            Self::Replayed(directions) => return (directions, Vec::new(), None),
        };
        let direction = |(i, tx): (usize, &Sent)| {
            let checker = rxs.get(1 - i)?;
            let mut d = record::direction(i as u16, &tx.counters, checker, times);
            if let Some((width_s, _)) = windows_of(spec) {
                let found = checker.intervals().iter().map(|w| w.missing).sum();
                let tail = d.lost.saturating_sub(found);
                d.windows = record::windows(checker, width_s, spec.duration_s, tail, times.hz);
            }
            Some(d)
        };
        let directions = txs.iter().enumerate().filter_map(direction).collect();
        (directions, rxs.iter().map(|c| c.samples().to_vec()).collect(), sent_flows)
    }
}
