//! The loop of one lcore: receive, function, transmit.

use std::sync::{
    atomic::{AtomicBool, Ordering},
    Arc,
};

use packet::{Absence, Buffer, Burst, Clock, GapMeter, Rx, Tx};

use crate::{
    node::{NodeStats, NodeTimer},
    sampling::Sampling,
    transmit::Transmit,
    Control, Dispatch, DropReason, Function, InputStats, Outputs, Snapshot, TxPolicy,
};

/// A receive queue an lcore polls.
#[derive(Debug)]
pub struct Input<R> {
    /// The port it belongs to.
    pub port: usize,
    /// Its number among the port's receive queues.
    pub queue_id: u16,
    /// The queue.
    pub queue: R,
}

/// How often a function is asked at the end to release what it holds.
const RELEASES: usize = 4;

/// How a loop behaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settings {
    /// How often a full transmit queue is tried again at once before the frames are dropped.
    pub tx_retries: u32,
    /// Whether small bursts are held for a few polls before they are sent.
    pub tx_policy: TxPolicy,
    /// Whether the clock is read at every node. Off, nodes count calls and vectors only, and all time is the loop's.
    pub node_clocks: bool,
    /// Once every `node_sample` polls the clock is read at every node. The time of the other polls is shared out in the
    /// same proportions.
    pub node_sample: u32,
    /// Polling gaps of at least so many ticks are summed.
    pub gap_threshold: u64,
    /// So many of these gaps are remembered with their times.
    pub gaps_logged: usize,
}

impl Default for Settings {
    /// No retries, nothing waits, nodes timed in every poll, every gap summed, none remembered.
    fn default() -> Self {
        Self {
            tx_retries: 0,
            tx_policy: TxPolicy::NOW,
            node_clocks: true,
            node_sample: 1,
            gap_threshold: 0,
            gaps_logged: 0,
        }
    }
}

/// One lcore's loop: a burst from each receive queue in turn, through the function, to the egress ports.
///
/// Frames are sent as soon as the burst they came in is done, or as [`TxPolicy`] says. Every tick between the start
/// and the end of a run is some node's, the loop's own, or idle; see [`Snapshot`].
#[derive(Debug)]
pub struct Forwarder<F, R: Rx, T, C> {
    function: F,
    inputs: Vec<Input<R>>,
    tx: Transmit<T, R::Buf>,
    clock: C,
    burst: Burst<R::Buf>,
    out: Outputs<R::Buf>,
    counts: Counts,
    sampling: Sampling,
    gaps: GapMeter,
    control: Arc<Control>,
    answered: u64,
}

/// How many times the mean clocks of its frames a poll may take before the loop was away.
const WORK: u64 = 3;
/// Frames after which their mean is known.
const KNOWN: u64 = 1024;

/// The loop's own counters.
#[derive(Debug)]
struct Counts {
    rx: Vec<InputStats>,
    rx_node: NodeStats,
    tx_node: NodeStats,
    /// When the poll under way began; none while the loop rests.
    polled_at: Option<u64>,
    /// The time up to here is booked: what is left of the poll after it is the loop's own, or idle.
    booked_to: u64,
    /// A busy poll ended looking at a queue in vain: what is left of it is the rx node's. Saves reading the clock.
    rest_is_rx: bool,
    /// Frames that the last poll received or sent, whichever were more: it was busy if there were any.
    handled: usize,
    /// Idle, busy.
    polls: [u64; 2],
    clocks: [u64; 2],
    loop_clocks: u64,
    rested_clocks: u64,
    suspends: u64,
    /// When the first poll began, and the latest.
    span: Option<(u64, u64)>,
}

impl<F, R, T, C> Forwarder<F, R, T, C>
where
    R: Rx,
    T: Tx<Buf = R::Buf>,
    F: Function<R::Buf>,
    C: Clock,
{
    /// A loop over these receive queues; `tx[p]` is this lcore's transmit queue of port `p`.
    pub fn new(function: F, inputs: Vec<Input<R>>, tx: Vec<T>, clock: C, settings: Settings) -> Self {
        let stats = |input: &Input<R>| InputStats { port: input.port, queue: input.queue_id, ..InputStats::default() };
        let mut forwarder = Self {
            burst: Burst::new(),
            out: Outputs::new(tx.len()),
            counts: Counts::new(inputs.iter().map(stats).collect()),
            sampling: Sampling::new(settings.node_clocks, settings.node_sample),
            gaps: GapMeter::new(settings.gap_threshold).with_log(settings.gaps_logged),
            control: Arc::new(Control::new(Snapshot::default())),
            answered: 0,
            function,
            inputs,
            tx: Transmit::new(tx, settings.tx_policy, settings.tx_retries),
            clock,
        };
        forwarder.control = Arc::new(Control::new(forwarder.snapshot()));
        forwarder
    }

    /// The handle by which another thread reads the counters and stops the loop.
    pub fn control(&self) -> Arc<Control> {
        Arc::clone(&self.control)
    }

    /// The gaps remembered since the gap meter started, in order.
    pub fn absences(&self) -> &[Absence] {
        self.gaps.absences()
    }

    /// The function.
    pub fn function(&self) -> &F {
        &self.function
    }

    /// The function, to be used while the loop rests.
    pub fn function_mut(&mut self) -> &mut F {
        &mut self.function
    }

    /// Polls until [`Control::stop`] is called or `stop` is set, then sends what is held and publishes a last
    /// snapshot. Returns that snapshot.
    pub fn run(&mut self, stop: &AtomicBool) -> Snapshot {
        self.poll_until(stop);
        self.finish()
    }

    /// As [`run`](Self::run), but what the function holds stays held, to go on with later: a rest, not the end.
    pub fn run_and_rest(&mut self, stop: &AtomicBool) -> Snapshot {
        self.poll_until(stop);
        self.end(false)
    }

    fn poll_until(&mut self, stop: &AtomicBool) {
        self.control.set_resting(false);
        while !self.control.stopped() && !stop.load(Ordering::Relaxed) {
            self.poll_once();
        }
    }

    /// One round: every receive queue once, and the frames held that have become due. Returns the frames received.
    #[inline]
    pub fn poll_once(&mut self) -> usize {
        let now = self.clock.now();
        let begun = self.begin(now);
        let Self { function, inputs, tx, clock, burst, out, counts, sampling, .. } = self;
        let timed = sampling.next();
        let mut timer = NodeTimer::start(&*clock, begun, timed);
        let mut sent = 0;
        if function.due() {
            let dispatch = function.poll(burst, out, &mut timer);
            sent += send(dispatch, burst, out, tx, counts, &mut timer);
        }
        let (mut received, mut in_vain) = (0, false);
        for (i, input) in inputs.iter_mut().enumerate() {
            let n = input.queue.rx(burst);
            in_vain = n == 0;
            if in_vain {
                continue;
            }
            received += n;
            counts.rx[i].count(n);
            timer.end_node(&mut counts.rx_node, n);
            let dispatch = function.process(input.port, burst, out, &mut timer);
            sent += send(dispatch, burst, out, tx, counts, &mut timer);
        }
        if tx.next_poll() {
            timer.charge(&mut counts.rx_node);
            sent += flush(out, tx, counts, &mut timer);
            in_vain = false;
        }
        counts.handled = received.max(sent);
        counts.rest_is_rx = in_vain && timed;
        counts.booked_to = timer.now();
        received
    }

    /// Books the last poll, and answers a question that waits. Returns the time that was read last.
    #[inline]
    fn begin(&mut self, now: u64) -> u64 {
        if self.counts.book(now, &mut self.sampling) {
            let counts = &self.counts;
            self.gaps.poll_but(now, || counts.own_work());
        } else {
            self.gaps.skip(now);
        }
        let request = self.control.request();
        if request == self.answered {
            return now;
        }
        self.answer(request, now)
    }

    #[cold]
    fn answer(&mut self, request: u64, now: u64) -> u64 {
        self.answered = request;
        let threshold = self.control.take_gap_threshold();
        self.share_out();
        self.control.publish(request, self.snapshot());
        if let Some(threshold) = threshold {
            self.gaps.start_with(threshold, now);
        }
        let answered = self.clock.now();
        self.counts.loop_clocks += answered.saturating_sub(now);
        answered
    }

    /// Sends everything held, without waiting for its time, and publishes the last counters.
    pub fn finish(&mut self) -> Snapshot {
        self.end(true)
    }

    /// One more poll, that receives nothing, and the loop rests.
    fn end(&mut self, drain: bool) -> Snapshot {
        if self.counts.polled_at.is_some() || drain && self.held() > 0 {
            let now = self.clock.now();
            self.counts.book(now, &mut self.sampling);
            let Self { function, tx, clock, burst, out, counts, sampling, .. } = self;
            let mut timer = NodeTimer::start(&*clock, now, sampling.outside());
            let mut sent = 0;
            // A frame that one part releases may be held by another: a frame delayed before a router may then wait for a
            // neighbour. The bounds are for a function that counts wrong.
            for _ in 0..if drain { RELEASES } else { 0 } {
                function.release();
                for _ in 0..function.held() {
                    if function.held() == 0 {
                        break;
                    }
                    let dispatch = function.poll(burst, out, &mut timer);
                    sent += send(dispatch, burst, out, tx, counts, &mut timer);
                }
            }
            tx.make_all_due();
            sent += flush(out, tx, counts, &mut timer);
            counts.handled = sent;
            counts.rest_is_rx = false;
            counts.booked_to = timer.now();
            counts.book(clock.now(), sampling);
            counts.polled_at = None;
        }
        self.share_out();
        let snapshot = self.snapshot();
        self.control.publish(self.control.request(), snapshot.clone());
        self.control.set_resting(true);
        snapshot
    }

    fn held(&self) -> usize {
        self.function.held() + self.tx.held()
    }

    /// The nodes with the time they were seen to take.
    fn nodes(&self) -> Vec<NodeStats> {
        let mut nodes = vec![self.counts.rx_node];
        self.function.nodes(&mut |node| nodes.push(*node));
        nodes.push(self.counts.tx_node);
        nodes
    }

    /// Shares the time of polls passed over out among the nodes.
    fn share_out(&mut self) {
        if self.sampling.pending() > 0 {
            let nodes = self.nodes();
            self.counts.loop_clocks += self.sampling.share(&nodes);
        }
    }

    /// The counters now. For another thread while the loop runs: [`Control::snapshot`].
    pub fn snapshot(&self) -> Snapshot {
        let counts = &self.counts;
        let mut nodes = self.nodes();
        self.sampling.complete(&mut nodes);
        let mut counters = Vec::new();
        self.function.counters(&mut |name, count| counters.push((name, count)));
        let (started_at, taken_at) = counts.span.unwrap_or_default();
        // Of a poll that is not over, what its nodes have booked.
        let under_way = counts.polled_at.map_or(0, |began| counts.booked_to.saturating_sub(began));
        Snapshot {
            started_at,
            taken_at: taken_at + under_way,
            busy_polls: counts.polls[1],
            idle_polls: counts.polls[0],
            busy_clocks: counts.clocks[1] + under_way,
            idle_clocks: counts.clocks[0],
            loop_clocks: counts.loop_clocks + self.sampling.pending(),
            rested_clocks: counts.rested_clocks,
            suspends: counts.suspends,
            held: self.held() as u64,
            gaps: self.gaps.gaps(),
            rx: counts.rx.clone(),
            tx: self.tx.stats().collect(),
            drops: self.out.drops.counters().clone(),
            punted: self.out.punted,
            originated: self.out.originated,
            nodes,
            counters,
        }
    }
}

impl Counts {
    fn new(rx: Vec<InputStats>) -> Self {
        Self {
            rx,
            rx_node: NodeStats::new("rx"),
            tx_node: NodeStats::new("tx"),
            polled_at: None,
            booked_to: 0,
            rest_is_rx: false,
            handled: 0,
            polls: [0; 2],
            clocks: [0; 2],
            loop_clocks: 0,
            rested_clocks: 0,
            suspends: 0,
            span: None,
        }
    }

    /// Books the poll that ended as `now` was read, the start of the next. False when there was none: the loop starts,
    /// or goes on after a rest.
    #[inline]
    fn book(&mut self, now: u64, sampling: &mut Sampling) -> bool {
        let Some(before) = self.polled_at.replace(now) else {
            self.resume(now);
            return false;
        };
        let (all, rest) = (now.saturating_sub(before), now.saturating_sub(self.booked_to));
        if self.handled > 0 {
            self.polls[1] += 1;
            self.clocks[1] += all;
            if !sampling.takes(rest) {
                let row = if self.rest_is_rx { &mut self.rx_node.clocks } else { &mut self.loop_clocks };
                *row += rest;
            }
        } else {
            self.polls[0] += 1;
            self.clocks[0] += rest;
            self.clocks[1] += all.saturating_sub(rest);
        }
        if let Some((_, last)) = &mut self.span {
            *last = now;
        }
        true
    }

    /// Clocks that the last poll may have taken for its frames: a slow function is not away while it works.
    #[cold]
    fn own_work(&self) -> u64 {
        if self.rx_node.vectors < KNOWN {
            return 0;
        }
        let mean = self.clocks[1] / self.rx_node.vectors;
        WORK * mean.saturating_mul(self.handled as u64)
    }

    #[cold]
    fn resume(&mut self, now: u64) {
        if let Some((_, last)) = &mut self.span {
            self.suspends += 1;
            self.rested_clocks += now.saturating_sub(*last);
            *last = now;
        } else {
            self.span = Some((now, now));
        }
    }
}

/// Hands what a function let out to the egress ports, and gives what it dropped back to the pool. Returns how many
/// frames were handed to transmit queues.
#[inline]
fn send<B: Buffer, T: Tx<Buf = B>, C: Clock>(
    dispatch: Dispatch,
    burst: &mut Burst<B>,
    out: &mut Outputs<B>,
    tx: &mut Transmit<T, B>,
    counts: &mut Counts,
    timer: &mut NodeTimer<'_, C>,
) -> usize {
    let held = tx.held();
    let mut sent = match dispatch {
        Dispatch::All(port) if !burst.is_empty() => tx.send_or_hold(port, burst, &mut out.drops),
        // A function must not leave frames behind: they would mix with the next burst.
        Dispatch::Split if !burst.is_empty() => {
            out.drops.drop_all(burst, DropReason::NoPort);
            0
        }
        _ => 0,
    };
    for (port, frames) in out.ports.iter_mut().enumerate().filter(|(_, frames)| !frames.is_empty()) {
        sent += tx.send_or_hold(port, frames, &mut out.drops);
    }
    out.drops.empty();
    if sent > 0 {
        timer.end_node(&mut counts.tx_node, sent);
    } else if tx.held() != held {
        timer.charge(&mut counts.tx_node);
    }
    sent
}

/// Sends what has waited long enough. Returns how many frames.
fn flush<B: Buffer, T: Tx<Buf = B>, C: Clock>(
    out: &mut Outputs<B>,
    tx: &mut Transmit<T, B>,
    counts: &mut Counts,
    timer: &mut NodeTimer<'_, C>,
) -> usize {
    let sent = tx.flush(&mut out.drops);
    out.drops.empty();
    if sent > 0 {
        timer.end_node(&mut counts.tx_node, sent);
    }
    sent
}
