//! The loop of one lcore: receives, checks, sends what is due, and watches its own gaps.

use packet::{Absence, Alloc, Buffer, Burst, Clock, GapMeter, Gaps, Rx, Tx, BURST};

pub use crate::slices::SentSlice;
use crate::{
    checker::Checker,
    control::Control,
    generator::Generator,
    pacer::Pacer,
    slices::{Grid, SentSlices},
};

/// The most bursts taken from a queue in one loop: a tester that sends more than it receives would lose frames to
/// its own full queue and blame the device.
const RX_BURSTS: usize = 4;
/// Loops between two publications of progress.
const PUBLISH_LOOPS: u32 = 4096;

/// What sends: a stream, or a capture.
pub trait Sends {
    /// The trial starts at this tick.
    fn start(&mut self, tick: u64);
    /// Sends what is due; whether anything was.
    fn poll(&mut self, now: u64) -> bool;
    /// Whether nothing follows.
    fn finished(&self) -> bool;
    /// Ends the trial now.
    fn finish(&mut self, now: u64);
    /// Frames the port took so far.
    fn sent(&self) -> u64;
}

/// What receives.
pub trait Receives {
    /// The trial starts at this tick: what came before does not count.
    fn begin(&mut self, start: u64);
    /// Takes in what is there; whether anything was.
    fn poll(&mut self, clock: &impl Clock) -> bool;
    /// Frames received so far.
    fn received(&self) -> u64;
}

/// One stream going out of one transmit queue.
pub struct TxTask<T: Tx, A: Alloc<Buf = T::Buf>> {
    tx: T,
    alloc: A,
    generator: Generator,
    pacer: Pacer,
    /// Empty, or frames that the port refused, to be written anew.
    burst: Burst<T::Buf>,
    max_burst: usize,
    counters: TxCounters,
    slices: SentSlices,
}

/// What one transmit task did, in frames and ticks. `intended == sent + refused + skipped` once it is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TxCounters {
    /// Frames that the rate asked for.
    pub intended: u64,
    /// Frames the port took.
    pub sent: u64,
    /// Frames due that the port did not take.
    pub refused: u64,
    /// Frames due that the task did not offer to the port in time, frames without a buffer included.
    pub skipped: u64,
    /// Of the skipped: frames for which there was no buffer.
    pub alloc_failures: u64,
    /// Departure of the first frame the port took.
    pub first_tick: u64,
    /// Departure of the last frame the port took.
    pub last_tick: u64,
    /// The longest run of frames refused.
    pub longest_refused: RefusedRun,
    /// The last run of frames refused.
    pub last_refused: RefusedRun,
}

/// Frames refused with none taken between them. Ticks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RefusedRun {
    /// Number of the frame that was to be sent: that of the next one taken.
    pub sequence: u64,
    /// How many; none: there was no such run.
    pub frames: u64,
    /// Departure of the frame taken before; `None` when none was.
    pub from: Option<u64>,
    /// When the last of them was refused.
    pub to: u64,
}

impl TxCounters {
    /// Counts frames that the port took.
    #[inline]
    pub(crate) fn took(&mut self, frames: u64, now: u64) {
        if frames > 0 {
            if self.sent == 0 {
                self.first_tick = now;
            }
            self.sent += frames;
            self.last_tick = now;
        }
    }

    #[cold]
    pub(crate) fn refuse(&mut self, frames: u64, now: u64) {
        self.refused += frames;
        let run = &mut self.last_refused;
        if run.frames == 0 || run.sequence != self.sent {
            let from = (self.sent > 0).then_some(self.last_tick);
            *run = RefusedRun { sequence: self.sent, frames: 0, from, to: now };
        }
        run.frames += frames;
        run.to = now;
        if run.frames > self.longest_refused.frames {
            self.longest_refused = *run;
        }
    }
}

impl<T: Tx, A: Alloc<Buf = T::Buf>> TxTask<T, A> {
    /// A task that sends the generator's frames when the pacer says so.
    pub fn new(tx: T, alloc: A, generator: Generator, pacer: Pacer) -> Self {
        let counters = TxCounters::default();
        let slices = SentSlices::new(Grid::default());
        Self { tx, alloc, generator, pacer, burst: Burst::new(), max_burst: BURST, counters, slices }
    }

    /// Also counts slice by slice.
    #[must_use]
    pub fn with_slices(mut self, grid: Grid) -> Self {
        self.slices = SentSlices::new(grid);
        self
    }

    /// Sends at most so many frames at once, 1 to [`BURST`].
    #[must_use]
    pub fn with_max_burst(mut self, frames: usize) -> Self {
        self.max_burst = frames.clamp(1, BURST);
        self
    }

    /// Sends `n` learning frames (RFC 2544 §23 b): the stream's first, unpaced and not counted, with a stamp that is
    /// foreign to every checker. Returns how many the port took.
    pub fn learn(&mut self, n: usize) -> usize {
        let mut generator = self.generator.learning();
        let (mut burst, mut sent) = (Burst::new(), 0);
        while sent < n {
            let wanted = (n - sent).min(BURST);
            let got = self.alloc.alloc(&mut burst, wanted, generator.frame_len());
            generator.fill(&mut burst, 0);
            let taken = self.tx.tx(&mut burst);
            sent += taken;
            if taken < wanted || got < wanted {
                break;
            }
        }
        Buffer::discard(&mut burst);
        sent
    }

    /// What was done so far.
    pub fn counters(&self) -> TxCounters {
        let skipped = self.pacer.skipped() + self.counters.alloc_failures;
        TxCounters { intended: self.pacer.intended(), skipped, ..self.counters }
    }

    /// Each slice that was asked for, in order.
    pub fn slices(&self) -> Vec<SentSlice> {
        self.slices.all(self.counters.sent, self.counters.refused)
    }

    /// What writes the frames.
    pub fn generator(&self) -> &Generator {
        &self.generator
    }

    /// The queue and the pool, for the next trial.
    pub fn into_parts(self) -> (T, A) {
        (self.tx, self.alloc)
    }
}

impl<T: Tx, A: Alloc<Buf = T::Buf>> Sends for TxTask<T, A> {
    fn start(&mut self, tick: u64) {
        self.pacer.start(tick);
        self.slices.begin(tick);
    }

    #[inline]
    fn poll(&mut self, now: u64) -> bool {
        let due = self.pacer.due(now, self.max_burst);
        if due == 0 {
            return false;
        }
        self.burst.truncate(due);
        let missing = due - self.burst.len();
        if missing > 0 {
            let got = self.alloc.alloc(&mut self.burst, missing, self.generator.frame_len());
            self.counters.alloc_failures += (missing - got) as u64;
        }
        let offered = self.burst.len();
        if offered == 0 {
            return true;
        }
        self.generator.fill(&mut self.burst, now);
        let sent = self.tx.tx(&mut self.burst);
        if now >= self.slices.until() {
            self.slices.roll(self.counters.sent, self.counters.refused, now);
        }
        self.counters.took(sent as u64, now);
        if sent < offered {
            self.generator.unsent(offered - sent);
            self.counters.refuse((offered - sent) as u64, now);
        }
        true
    }

    fn finished(&self) -> bool {
        self.pacer.finished()
    }

    fn finish(&mut self, now: u64) {
        self.pacer.stop(now);
        Buffer::discard(&mut self.burst);
    }

    fn sent(&self) -> u64 {
        self.counters.sent
    }
}

/// One receive queue and its checker.
pub struct RxTask<R: Rx> {
    rx: R,
    checker: Checker,
    burst: Burst<R::Buf>,
}

impl<R: Rx> RxTask<R> {
    /// A task that checks whatever the queue brings.
    pub fn new(rx: R, checker: Checker) -> Self {
        Self { rx, checker, burst: Burst::new() }
    }

    /// The counts.
    pub fn checker(&self) -> &Checker {
        &self.checker
    }

    /// The queue, for the next trial, and the counts.
    pub fn into_parts(self) -> (R, Checker) {
        (self.rx, self.checker)
    }
}

impl<R: Rx> Receives for RxTask<R> {
    fn begin(&mut self, start: u64) {
        self.checker.begin(start);
    }

    /// Frames are timed after they were received, since receiving takes its time, too.
    #[inline]
    fn poll(&mut self, clock: &impl Clock) -> bool {
        let Self { rx, checker, burst } = self;
        take_in(rx, burst, |frames| checker.check(frames, clock.now()))
    }

    fn received(&self) -> u64 {
        self.checker.received()
    }
}

/// Receives a few bursts, each for `each` to look at; whether anything came.
#[inline(always)]
pub(crate) fn take_in<R: Rx>(rx: &mut R, burst: &mut Burst<R::Buf>, mut each: impl FnMut(&[R::Buf])) -> bool {
    let mut any = false;
    for _ in 0..RX_BURSTS {
        let n = rx.rx(burst);
        if n == 0 {
            break;
        }
        each(burst);
        Buffer::discard(burst);
        any = true;
        if n < BURST {
            break;
        }
    }
    any
}

/// What one worker's loop saw.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct WorkerCounters {
    /// Loops since the start.
    pub loops: u64,
    /// Loops that received or sent something.
    pub busy_loops: u64,
    /// Ticks that these took, until sending ended.
    pub busy_ticks: u64,
    /// Polling gaps from the start until sending ended and frames had time to settle.
    pub gaps: Gaps,
    /// Tick at which the trial started.
    pub started: u64,
    /// Tick at which the worker left.
    pub left: u64,
}

/// The tasks of one lcore.
pub struct Worker<S, R> {
    /// What is to be sent.
    pub tx: Vec<S>,
    /// Queues to receive from.
    pub rx: Vec<R>,
    gaps: GapMeter,
    counters: WorkerCounters,
    started: bool,
    /// When the turn before was, and whether it received anything.
    last_turn: u64,
    receiving: bool,
    /// Whether it received or sent anything.
    busy: bool,
    /// Transmit tasks whose end has been told to the control.
    told_done: bool,
    published: (u64, u64),
    until_publish: u32,
}

impl<S: Sends, R: Receives> Worker<S, R> {
    /// A worker with these tasks that counts polling gaps of at least `gap_threshold` ticks.
    pub fn new(tx: Vec<S>, rx: Vec<R>, gap_threshold: u64) -> Self {
        Self {
            tx,
            rx,
            gaps: GapMeter::new(gap_threshold),
            counters: WorkerCounters::default(),
            started: false,
            last_turn: 0,
            receiving: false,
            busy: false,
            told_done: false,
            published: (0, 0),
            until_publish: PUBLISH_LOOPS,
        }
    }

    /// Also remembers when so many of the gaps were.
    #[must_use]
    pub fn with_gap_log(mut self, most: usize) -> Self {
        self.gaps = self.gaps.with_log(most);
        self
    }

    /// Remembers only gaps of at least so many ticks; shorter ones are counted.
    #[must_use]
    pub fn with_gaps_logged_from(mut self, ticks: u64) -> Self {
        self.gaps = self.gaps.logging_from(ticks);
        self
    }

    /// The gaps remembered, in order.
    pub fn absences(&self) -> &[Absence] {
        self.gaps.absences()
    }

    /// Runs the trial: waits for its start, sends and checks, waits for residual frames, and returns.
    ///
    /// Leaves when told to stop; or when all tasks of all workers have sent everything and either the residual time
    /// has passed, or everything sent has come back and the settling time has passed.
    pub fn run(&mut self, clock: &impl Clock, control: &Control) -> WorkerCounters {
        while self.turn(clock, control) {}
        self.counters()
    }

    /// One turn of the loop; `false` once the worker is done. For callers that share the core with something else.
    #[inline]
    pub fn turn(&mut self, clock: &impl Clock, control: &Control) -> bool {
        let mut now = clock.now();
        if !self.started {
            return self.wait(clock, control, now);
        }
        let ended = control.ended();
        // Judged by the turn before, so that a gap across the end counts; and for as long as late frames come.
        if self.receiving || ended.is_none_or(|ended| self.last_turn <= ended.saturating_add(control.timing().settle)) {
            self.gaps.poll(now);
        } else {
            self.gaps.skip(now);
        }
        if self.busy && ended.is_none() {
            self.counters.busy_ticks += now.saturating_sub(self.last_turn);
        }
        self.last_turn = now;
        let (mut busy, mut stale) = (false, false);
        for task in &mut self.rx {
            stale |= task.poll(clock);
        }
        self.receiving = stale;
        for task in &mut self.tx {
            if stale {
                now = clock.now();
            }
            busy |= stale;
            stale = task.poll(now);
        }
        self.counters.loops += 1;
        self.busy = busy | stale;
        self.counters.busy_loops += u64::from(self.busy);
        self.until_publish -= 1;
        if self.until_publish == 0 {
            self.publish(control);
        }
        if control.stopped() {
            self.leave(now, control);
            return false;
        }
        if !self.told_done && self.tx.iter().all(Sends::finished) {
            self.publish(control);
            control.senders_done(self.tx.len(), now);
            self.told_done = true;
        }
        match ended {
            None => true,
            Some(ended) => self.settle(now, ended, control),
        }
    }

    /// Before the start: what comes in is from before the trial, or just ahead of this worker's noticing it.
    fn wait(&mut self, clock: &impl Clock, control: &Control, now: u64) -> bool {
        let start = control.start();
        if now >= start {
            self.begin(start);
        }
        for task in &mut self.rx {
            task.poll(clock);
        }
        if control.stopped() {
            self.leave(now, control);
            return false;
        }
        true
    }

    fn begin(&mut self, start: u64) {
        self.started = true;
        self.counters.started = start;
        self.gaps.start(start);
        self.tx.iter_mut().for_each(|task| task.start(start));
        self.rx.iter_mut().for_each(|task| task.begin(start));
    }

    /// After sending: whether to go on waiting for frames.
    fn settle(&mut self, now: u64, ended: u64, control: &Control) -> bool {
        let timing = control.timing();
        self.publish(control);
        let waited = now.saturating_sub(ended);
        let complete = control.received() == control.sent();
        if waited >= timing.residual || complete && waited >= timing.settle {
            self.leave(now, control);
            return false;
        }
        true
    }

    fn leave(&mut self, now: u64, control: &Control) {
        self.tx.iter_mut().for_each(|task| task.finish(now));
        self.publish(control);
        self.counters.left = now;
    }

    fn publish(&mut self, control: &Control) {
        let sent = self.tx.iter().map(Sends::sent).sum();
        let received = self.rx.iter().map(Receives::received).sum();
        control.add(sent - self.published.0, received - self.published.1);
        self.published = (sent, received);
        self.until_publish = PUBLISH_LOOPS;
    }

    /// What the loop saw so far.
    pub fn counters(&self) -> WorkerCounters {
        WorkerCounters { gaps: self.gaps.gaps(), ..self.counters }
    }
}
