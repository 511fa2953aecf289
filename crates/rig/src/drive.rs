//! The lcores of one trial: the tester's worker and the built-in device's loop, started, watched and ended.

use std::{
    sync::atomic::{AtomicBool, Ordering},
    time::{Duration, Instant},
};

use dpdk::{Eal, Tsc};
use measure::trial::DutReport;
use packet::Gaps;
use traffic::{
    control::Control,
    worker::{Receives, Sends, Worker, WorkerCounters},
};

use failure::{Failure, Stop};

use crate::{
    device::BuiltIn,
    lcores::{SetOnDrop, OTHER_LCORE, TESTER_LCORE},
    probe::PROBE_LIMIT,
    record,
    request::TrialRequest,
    timed::timed,
};

/// Copies may follow even when everything came back.
pub(crate) const SETTLE: Duration = Duration::from_millis(5);

/// How the worker of a trial is run, whatever it sends.
pub struct TrialDriver<'a> {
    pub control: &'a Control,
    pub stop: &'a Stop,
    pub request: &'a TrialRequest<'a>,
    /// Ticks of a polling gap that counts.
    pub threshold: u64,
}

/// What was seen of the lcores.
pub struct TrialCapture {
    pub counters: WorkerCounters,
    /// TSC against CLOCK_MONOTONIC; positive: too slow.
    pub drift_ppm: f64,
    /// Polling gaps of the built-in device while frames were sent.
    pub dut_gaps: Option<Gaps>,
    pub dut_report: Option<DutReport>,
}

impl TrialDriver<'_> {
    /// Runs worker and device to the end of the trial.
    pub fn run<S: Sends + Send, R: Receives + Send>(
        &self,
        eal: &'static Eal,
        clock: &Tsc,
        dut: &mut Option<BuiltIn>,
        worker: &mut Worker<S, R>,
        tick: &mut dyn FnMut(f64),
    ) -> Result<TrialCapture, Failure> {
        let (mut dut_gaps, mut dut_report) = (None, None);
        let (dut_stop, done) = (AtomicBool::new(false), AtomicBool::new(false));
        let (control, done_ref, dut_stop_ref) = (self.control, &done, &dut_stop);
        let (counters, drift_ppm) = eal.scope(|s| -> Result<_, Failure> {
            // However this ends, the DUT's loop must, or the scope would wait for ever.
            let _dut_ends = SetOnDrop(dut_stop_ref);
            let forwarder = dut.as_mut().map(BuiltIn::polling);
            let dut = match forwarder {
                Some(forwarder) => {
                    let dut_control = forwarder.control();
                    let job = s.launch(OTHER_LCORE, move || forwarder.run(dut_stop_ref))?;
                    let begun = dut_control.snapshot_and_reset_gaps(self.threshold, Duration::from_secs(2));
                    Some((job, begun, dut_control))
                }
                None => None,
            };
            let job = s.launch(TESTER_LCORE, move || {
                let _told = SetOnDrop(done_ref);
                timed(worker, clock, control)
            })?;
            // The device may rest as long as it likes when nothing is sent any more: it loses nothing by that.
            let mut gaps = None;
            let mut sent = || {
                let now = dut.as_ref().and_then(|(_, _, control)| control.snapshot(PROBE_LIMIT).ok());
                gaps = now.map(|snapshot| snapshot.gaps);
            };
            wait(done_ref, control, self.stop, self.request, tick, &mut sent);
            let tester = job.join();
            dut_stop_ref.store(true, Ordering::Relaxed);
            if let Some((job, begun, _)) = dut {
                let snapshot = job.join()?;
                let begun = begun.map_err(Failure::failed)?;
                dut_gaps = Some(gaps.unwrap_or(snapshot.gaps));
                dut_report = Some(record::dut(&snapshot.since(&begun)));
            }
            Ok(tester?)
        })?;
        Ok(TrialCapture { counters, drift_ppm, dut_gaps, dut_report })
    }
}

/// Sleeps until the trial is over, waking now and then to show progress and to look for a signal. The polling cores
/// have the machine to themselves as far as that goes, so it wakes rarely.
///
/// `sent` is called once, when sending has ended and frames had time to settle, unless the trial is over by then.
fn wait(
    done: &AtomicBool,
    control: &Control,
    stop: &Stop,
    request: &TrialRequest<'_>,
    tick: &mut dyn FnMut(f64),
    sent: &mut dyn FnMut(),
) {
    let begun = Instant::now();
    let sending = request.spec.duration_s;
    let (mut ended, mut told) = (None, false);
    while !done.load(Ordering::Acquire) {
        if ended.is_none() && control.ended().is_some() {
            ended = Some(Instant::now());
        }
        if !told && ended.is_some_and(|ended| ended.elapsed() >= SETTLE) {
            told = true;
            sent();
        }
        if stop.requested() {
            control.stop();
        }
        let elapsed = begun.elapsed().as_secs_f64();
        tick(elapsed);
        // Asleep to the end of sending if that is near, then in small steps for the residual frames.
        let step = if elapsed < sending { (sending - elapsed).min(0.25) } else { 0.002 };
        std::thread::sleep(Duration::from_secs_f64(step.max(0.001)));
    }
}
