//! Runs one trial on the lcores: the tester's worker, and the built-in device's loop.

use std::{
    sync::atomic::{AtomicBool, Ordering},
    time::{Duration, Instant},
};

use dpdk::{Eal, PeerWatch, Scheduling, Tsc};
use measure::trial::DutReport;
use packet::{Absence, Clock, Gaps};
use traffic::{
    control::Control,
    worker::{Receives, Sends, Worker, WorkerCounters},
};

use failure::{Failure, Stop};
use host::ThreadWaits;

use crate::{
    device::{BuiltIn, Reading},
    lcores::{SetOnDrop, OTHER_LCORE, TESTER_LCORE},
    power::MachinePower,
    probe::PROBE_LIMIT,
    record,
    request::TrialRequest,
    timed::timed,
};

/// Wait after the last expected frame: duplicates may follow.
pub(crate) const SETTLE: Duration = Duration::from_millis(5);

/// The longest sleep of the thread that waits for a trial to end, seconds; and where it reads the waits of a device.
const WAKE_S: f64 = 0.25;
const READING_S: f64 = 1e-3;
/// How often ports are looked at whose peers may come back: a reset time is not better than this.
const PEERS: Duration = Duration::from_millis(20);

/// Runs the worker of a trial, whatever it sends.
pub struct TrialDriver<'a> {
    pub control: &'a Control,
    pub stop: &'a Stop,
    pub request: &'a TrialRequest<'a>,
    /// Ticks of a polling gap that counts.
    pub threshold: u64,
    /// How the lcores are scheduled.
    pub scheduling: Scheduling,
    /// Threads of an outside device, whose waits are read now and then.
    pub device_threads: Option<&'a ThreadWaits>,
    /// Ports whose peers may come back within the trial.
    pub peers: &'a [PeerWatch],
    /// Sensors of the machine.
    pub power: &'a MachinePower,
}

/// What the lcores counted.
pub struct TrialCapture {
    pub counters: WorkerCounters,
    /// TSC against CLOCK_MONOTONIC; positive: too slow.
    pub drift_ppm: f64,
    /// Whether the tester's lcore, and the device's, really had real-time priority.
    pub realtime: [bool; 2],
    /// Polling gaps of the built-in device while frames were sent.
    pub dut_gaps: Option<Gaps>,
    pub dut_report: Option<DutReport>,
    /// When the built-in device was away, in order.
    pub dut_absences: Vec<Absence>,
    /// What the threads of an outside device waited while frames were sent.
    pub readings: Vec<Reading>,
    /// What the machine took while frames were sent.
    pub power: Option<host::Power>,
}

impl TrialDriver<'_> {
    /// Runs the worker and the device to the end of the trial. `tick` gets the elapsed seconds now and then.
    ///
    /// # Errors
    ///
    /// (failed) when an lcore fails or does not answer.
    pub fn run<S: Sends + Send, R: Receives + Send>(
        &self,
        eal: &'static Eal,
        clock: &Tsc,
        dut: &mut Option<BuiltIn>,
        worker: &mut Worker<S, R>,
        tick: &mut dyn FnMut(f64),
    ) -> Result<TrialCapture, Failure> {
        let (mut dut_gaps, mut dut_report) = (None, None);
        let mut readings = Vec::new();
        let (dut_stop, done) = (AtomicBool::new(false), AtomicBool::new(false));
        let (control, done_ref, dut_stop_ref) = (self.control, &done, &dut_stop);
        let (mut tester_realtime, mut dut_realtime) = (false, false);
        let (measuring, mut power) = (self.power.begin(), None);
        let realtime = (&mut tester_realtime, &mut dut_realtime);
        let (counters, drift_ppm) = eal.scope_as(self.scheduling, |s| -> Result<_, Failure> {
            // The device's loop must end on every way out, or the scope would wait for ever.
            let _dut_ends = SetOnDrop(dut_stop_ref);
            let forwarder = dut.as_mut().map(BuiltIn::polling);
            let running = match forwarder {
                Some(forwarder) => {
                    let dut_control = forwarder.control();
                    let job = s.launch(OTHER_LCORE, move || {
                        *realtime.1 = dpdk::is_realtime();
                        forwarder.run(dut_stop_ref)
                    })?;
                    let begun = dut_control.snapshot_and_reset_gaps(self.threshold, Duration::from_secs(2));
                    Some((job, begun, dut_control))
                }
                None => None,
            };
            let job = s.launch(TESTER_LCORE, move || {
                let _done = SetOnDrop(done_ref);
                *realtime.0 = dpdk::is_realtime();
                timed(worker, clock, control)
            })?;
            // Gaps of the device count only while frames are sent: later gaps lose nothing.
            let mut gaps = None;
            let mut sent = || {
                let now = running.as_ref().and_then(|(_, _, control)| control.snapshot(PROBE_LIMIT).ok());
                gaps = now.map(|snapshot| snapshot.gaps);
                power = measuring.end();
            };
            let mut looked = Instant::now();
            let mut read = || {
                measuring.look();
                if let Some(threads) = self.device_threads {
                    readings.push(Reading { at: clock.now(), times: threads.read() });
                }
                if looked.elapsed() >= PEERS {
                    self.peers.iter().for_each(PeerWatch::look);
                    looked = Instant::now();
                }
            };
            let alone = if self.peers.is_empty() { WAKE_S } else { PEERS.as_secs_f64() };
            let step = self.device_threads.map_or(alone, |_| READING_S);
            wait(done_ref, control, self.stop, self.request, tick, &mut sent, (step, &mut read));
            let tester = job.join();
            power = power.take().or_else(|| measuring.end());
            dut_stop_ref.store(true, Ordering::Relaxed);
            if let Some((job, begun, _)) = running {
                let snapshot = job.join()?;
                let begun = begun.map_err(Failure::failed)?;
                dut_gaps = Some(gaps.unwrap_or(snapshot.gaps));
                dut_report = Some(record::dut(&snapshot.since(&begun)));
            }
            Ok(tester?)
        })?;
        let dut_absences = dut.as_mut().map(|dut| dut.polling().absences().to_vec()).unwrap_or_default();
        let realtime = [tester_realtime, dut_realtime];
        Ok(TrialCapture { counters, drift_ppm, realtime, dut_gaps, dut_report, dut_absences, readings, power })
    }
}

/// Sleeps until the trial is over. It wakes now and then, to show progress and to look for a signal; rarely, because the
/// polling cores should have the machine to themselves.
///
/// `sent` is called once, when sending has ended and frames had time to settle, unless the trial is over by then. `read` is
/// called each time until then, and at the longest after so many seconds.
fn wait(
    done: &AtomicBool,
    control: &Control,
    stop: &Stop,
    request: &TrialRequest<'_>,
    tick: &mut dyn FnMut(f64),
    sent: &mut dyn FnMut(),
    (longest, read): (f64, &mut dyn FnMut()),
) {
    let begun = Instant::now();
    let sending = request.spec.duration_s;
    let (mut ended, mut called) = (None, false);
    while !done.load(Ordering::Acquire) {
        if ended.is_none() && control.ended().is_some() {
            ended = Some(Instant::now());
        }
        if !called {
            read();
        }
        if !called && ended.is_some_and(|ended| ended.elapsed() >= SETTLE) {
            called = true;
            sent();
        }
        if stop.requested() {
            control.stop();
        }
        let elapsed = begun.elapsed().as_secs_f64();
        tick(elapsed);
        // To the end of sending where that is near; then small steps for the residual frames.
        let step = if elapsed < sending { (sending - elapsed).min(longest) } else { 0.002 };
        std::thread::sleep(Duration::from_secs_f64(step.max(0.001)));
    }
}
