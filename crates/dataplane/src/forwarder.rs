use std::sync::{
    atomic::{AtomicBool, Ordering},
    Arc,
};

use packet::{Buffer, Burst, Clock, GapMeter, Rx, Tx};

use crate::{
    node::{Laps, NodeStats},
    Control, DropReason, Function, InputStats, Outputs, Snapshot, Trash, Verdict,
};

/// A receive queue an lcore polls.
#[derive(Debug)]
pub struct Input<R> {
    /// The port it belongs to.
    pub port: usize,
    /// The queue.
    pub queue: R,
}

/// How a loop behaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settings {
    /// How often a full transmit queue is tried again at once before the frames are dropped.
    pub tx_retries: u32,
    /// Whether the clock is read at every node. Off, nodes count calls and vectors only.
    pub node_clocks: bool,
    /// Polling gaps of at least so many ticks are summed.
    pub gap_threshold: u64,
}

impl Default for Settings {
    /// No retries, nodes timed, every gap summed.
    fn default() -> Self {
        Self { tx_retries: 0, node_clocks: true, gap_threshold: 0 }
    }
}

/// One lcore's loop: a burst from each receive queue in turn, through the function, to the egress ports.
///
/// Frames are sent as soon as the burst they came in is done; nothing waits for company.
#[derive(Debug)]
pub struct Forwarder<F, R: Rx, T, C> {
    function: F,
    inputs: Vec<Input<R>>,
    tx: Vec<T>,
    clock: C,
    settings: Settings,
    burst: Burst<R::Buf>,
    out: Outputs<R::Buf>,
    counts: Counts,
    gaps: GapMeter,
    control: Arc<Control>,
    answered: u64,
}

/// The loop's own counters.
#[derive(Debug)]
struct Counts {
    rx: Vec<u64>,
    tx: Vec<u64>,
    /// Idle, busy.
    polls: [u64; 2],
    clocks: [u64; 2],
    was_busy: bool,
    polled_at: Option<u64>,
    rx_node: NodeStats,
    tx_node: NodeStats,
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
        let counts = Counts {
            rx: vec![0; inputs.len()],
            tx: vec![0; tx.len()],
            polls: [0; 2],
            clocks: [0; 2],
            was_busy: false,
            polled_at: None,
            rx_node: NodeStats::new("rx"),
            tx_node: NodeStats::new("tx"),
        };
        let mut forwarder = Self {
            burst: Burst::new(),
            out: Outputs::new(tx.len()),
            gaps: GapMeter::new(settings.gap_threshold),
            control: Arc::new(Control::new(Snapshot::default())),
            answered: 0,
            function,
            inputs,
            tx,
            clock,
            settings,
            counts,
        };
        forwarder.control = Arc::new(Control::new(forwarder.snapshot()));
        forwarder
    }

    /// The handle by which another thread reads the counters and stops the loop.
    pub fn control(&self) -> Arc<Control> {
        Arc::clone(&self.control)
    }

    /// The function.
    pub fn function(&self) -> &F {
        &self.function
    }

    /// Polls until [`Control::stop`] is called or `stop` is set, then sends what is held and publishes a last
    /// snapshot. Returns that snapshot.
    pub fn run(&mut self, stop: &AtomicBool) -> Snapshot {
        self.control.set_finished(false);
        while !self.control.stopped() && !stop.load(Ordering::Relaxed) {
            self.poll_once();
        }
        self.finish()
    }

    /// One round: every receive queue once, and the frames held that have become due. Returns the frames received.
    #[inline]
    pub fn poll_once(&mut self) -> usize {
        let now = self.clock.now();
        self.gaps.poll(now);
        self.counts.poll(now);
        let request = self.control.request();
        if request != self.answered {
            self.answer(request, now);
        }
        let Self { function, inputs, tx, clock, settings, burst, out, counts, .. } = self;
        let mut laps = Laps::start(&*clock, now, settings.node_clocks);
        if function.due() {
            let verdict = function.poll(burst, out, &mut laps);
            send(verdict, burst, out, tx, settings.tx_retries, counts, &mut laps);
        }
        let mut received = 0;
        for (i, input) in inputs.iter_mut().enumerate() {
            let n = input.queue.rx(burst);
            if n == 0 {
                continue;
            }
            received += n;
            counts.rx[i] += n as u64;
            laps.lap(&mut counts.rx_node, n);
            let verdict = function.process(input.port, burst, out, &mut laps);
            send(verdict, burst, out, tx, settings.tx_retries, counts, &mut laps);
        }
        counts.was_busy = received > 0;
        received
    }

    #[cold]
    fn answer(&mut self, request: u64, now: u64) {
        self.answered = request;
        let snapshot = self.snapshot();
        let threshold = self.control.new_gap_threshold();
        self.control.publish(request, &snapshot);
        if let Some(threshold) = threshold {
            self.gaps = GapMeter::new(threshold);
            self.gaps.start(now);
        }
    }

    /// Sends everything held, without waiting for its time, and publishes the last counters.
    pub fn finish(&mut self) -> Snapshot {
        self.function.release();
        let Self { function, tx, clock, settings, burst, out, counts, .. } = self;
        // Every call takes at least one frame out; the bound is for a function that breaks its word.
        for _ in 0..function.held() {
            if function.held() == 0 {
                break;
            }
            let mut laps = Laps::start(&*clock, clock.now(), settings.node_clocks);
            let verdict = function.poll(burst, out, &mut laps);
            send(verdict, burst, out, tx, settings.tx_retries, counts, &mut laps);
        }
        self.counts.poll(self.clock.now());
        let snapshot = self.snapshot();
        self.control.publish(self.control.request(), &snapshot);
        self.control.set_finished(true);
        snapshot
    }

    /// The counters now. For another thread while the loop runs: [`Control::snapshot`].
    pub fn snapshot(&self) -> Snapshot {
        let counts = &self.counts;
        let mut nodes = vec![counts.rx_node];
        self.function.nodes(&mut |node| nodes.push(*node));
        nodes.push(counts.tx_node);
        let mut counters = Vec::new();
        self.function.counters(&mut |name, count| counters.push((name, count)));
        let rx = self.inputs.iter().zip(&counts.rx);
        Snapshot {
            taken_at: counts.polled_at.unwrap_or(0),
            busy_polls: counts.polls[1],
            idle_polls: counts.polls[0],
            busy_clocks: counts.clocks[1],
            idle_clocks: counts.clocks[0],
            held: self.function.held() as u64,
            gaps: self.gaps.gaps(),
            rx: rx.map(|(input, &frames)| InputStats { port: input.port, frames }).collect(),
            tx: counts.tx.clone(),
            drops: self.out.trash.counters().clone(),
            punted: self.out.punted,
            originated: self.out.originated,
            nodes,
            counters,
        }
    }
}

impl Counts {
    /// Books the poll that ended as `now` was read.
    #[inline]
    fn poll(&mut self, now: u64) {
        if let Some(before) = self.polled_at.replace(now) {
            let kind = usize::from(self.was_busy);
            self.polls[kind] += 1;
            self.clocks[kind] += now.saturating_sub(before);
        }
    }
}

/// Sends what a function let out, and gives what it dropped back to the pool.
#[inline]
fn send<B: Buffer, T: Tx<Buf = B>, C: Clock>(
    verdict: Verdict,
    burst: &mut Burst<B>,
    out: &mut Outputs<B>,
    tx: &mut [T],
    retries: u32,
    counts: &mut Counts,
    laps: &mut Laps<'_, C>,
) {
    let mut n = 0;
    match verdict {
        Verdict::All(port) => {
            n += burst.len();
            transmit(tx.get_mut(port), burst, &mut out.trash, retries, counts.tx.get_mut(port));
        }
        Verdict::Split => {
            for (port, frames) in out.ports.iter_mut().enumerate().filter(|(_, frames)| !frames.is_empty()) {
                n += frames.len();
                transmit(tx.get_mut(port), frames, &mut out.trash, retries, counts.tx.get_mut(port));
            }
            // A function that leaves frames behind has broken its word; they must not meet the next burst.
            if !burst.is_empty() {
                out.trash.drop_all(burst, DropReason::NoPort);
            }
        }
    }
    out.trash.empty();
    if n > 0 {
        laps.lap(&mut counts.tx_node, n);
    }
}

#[inline]
fn transmit<B: Buffer, T: Tx<Buf = B>>(
    queue: Option<&mut T>,
    burst: &mut Burst<B>,
    trash: &mut Trash<B>,
    retries: u32,
    sent: Option<&mut u64>,
) {
    let (Some(queue), Some(sent)) = (queue, sent) else {
        return trash.drop_all(burst, DropReason::NoPort);
    };
    for _ in 0..=retries {
        if burst.is_empty() {
            return;
        }
        *sent += queue.tx(burst) as u64;
    }
    if !burst.is_empty() {
        trash.drop_all(burst, DropReason::TxFull);
    }
}
