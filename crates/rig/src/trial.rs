//! One trial on the rig: drain, send learning frames, probe, send and check, probe again, judge.

use std::time::{Duration, Instant};

use dpdk::{PeerWatch, PortStats};
use failure::{Failure, Stop};
use measure::{
    evidence::{self, Watch},
    plan::Placements,
    timeline::{Cut, Party, Timeline},
    trial::{Interference, LcoreInterference, LcoreRole, TrialRecord},
    validity::{self, Conditions},
};
use packet::Clock;
use traffic::control::{Control, Timing};
use units::{Fps, Nanos};

use crate::{
    device::{since, waits_of, BuiltIn, InLab, Watched},
    drive::{TrialCapture, TrialDriver, SETTLE},
    lcores::{OTHER_LCORE, TESTER_LCORE},
    record, replay,
    request::{Finished, TrialEnd, TrialRequest},
    rig::Rig,
    streams::Streams,
    tester_port::drain,
    worker::{tester_worker, Counted},
};

/// The least wait for the last frames where parts of a lab take turns on a CPU: their turns are tens of milliseconds long.
const TURNS: Duration = Duration::from_millis(200);
/// See [`Rig::longest_call_s`].
const KERNEL_CALL_S: f64 = 1e-3;

impl Rig {
    /// Runs one trial and judges it.
    ///
    /// # Errors
    ///
    /// When the rig fails, not when the trial does.
    pub fn run(
        &mut self,
        streams: &Streams,
        request: &TrialRequest<'_>,
        stop: &Stop,
        tick: &mut dyn FnMut(f64),
    ) -> Result<TrialEnd, Failure> {
        self.number += 1;
        self.power.measure_idle(stop);
        let hz = self.clock.hz();
        let epoch = (self.number as u8).wrapping_add(self.epoch_base);
        // A peer that dies must not take its memory away during a poll. Its link is read when the trial is over. Where all
        // memory is the tester's own, a peer that goes may come back within the trial.
        std::thread::sleep(self.realtime.rest());
        let peers: Vec<PeerWatch> =
            self.ports.iter().map(|end| end.port.peer_watch()).collect::<Option<_>>().unwrap_or_default();
        let park = self.built_in.is_none() && peers.is_empty();
        let parked = if park { self.eal.park_interrupts() } else { None };
        drain(&mut self.ports);
        self.built_in.iter_mut().for_each(BuiltIn::forget_ended);
        if streams.replay.is_none() {
            self.send_learning_frames(streams, request.trust)?;
        }
        let probe_before = self.probe_cores()?;
        let kernel_before = self.kernel_counters();
        let watched_before = self.watched.as_ref().map(Watched::count).transpose()?;
        let lab_before = self.in_lab.as_ref().map(InLab::read).transpose()?;
        let ports_before: Vec<_> = self.ports.iter().map(|e| e.port.stats().ok()).collect();
        let threshold = self.gap_threshold(request.spec.shape.peak(request.spec.load_fps), streams.directions);

        // Shorter ones are calls into a kernel, some thousand a second.
        let logged_from = self.ticks(Duration::from_secs_f64(self.longest_call_s()));

        let timing = Timing {
            residual: self.ticks(self.residual(request.trust.residual) + request.spec.drain()),
            settle: self.ticks(SETTLE.min(request.trust.residual)),
        };
        let control = Control::new(timing, streams.directions);
        let stretch = Duration::from_secs_f64(request.spec.duration_s)
            + self.residual(request.trust.residual)
            + request.spec.drain();
        let scheduling = self.realtime.scheduling(stretch);
        let duration = (request.spec.duration_s * hz as f64) as u64;
        let begun = Instant::now();
        let Self { ports, built_in, frames, eal, clock, device_threads, power, .. } = self;
        let device_threads = device_threads.as_ref();
        let peers = peers.as_slice();
        let driver =
            TrialDriver { control: &control, stop, request, threshold, scheduling, device_threads, peers, power };
        let (capture, tester_absences, counted) = match &streams.replay {
            None => {
                let worker = tester_worker(ports, streams, frames, &request.spec, epoch, hz, duration, threshold)?;
                let mut worker = worker.with_gaps_logged_from(logged_from);
                let capture = driver.run(eal, clock, built_in, &mut worker, tick)?;
                let away = worker.absences().to_vec();
                (capture, away, Counted::of(worker))
            }
            Some(replay) => {
                let mut worker = replay.worker(ports, streams.directions, frames, hz, threshold)?;
                let capture = driver.run(eal, clock, built_in, &mut worker, tick)?;
                (capture, Vec::new(), Counted::Replayed(replay::directions(worker, hz)))
            }
        };
        self.realtime.ended(scheduling, begun.elapsed());
        let TrialCapture { counters, drift_ppm, realtime, dut_gaps, readings, power, .. } = capture;
        let (mut dut_report, mut dut_absences) = (capture.dut_report, capture.dut_absences);
        if parked.is_some() {
            drop(parked);
            std::thread::sleep(Duration::from_millis(2));
        }
        let probe_after = self.probe_cores()?;
        if let (Some(watched), Some(before)) = (&self.watched, &watched_before) {
            dut_report = Some(since(&watched.count()?, before));
        }
        let stopped = stop.requested();
        let kernel = self.kernel_since(&kernel_before);
        let (gaps, cpu) = (counters.gaps, Some(self.cpus.tester));
        let tester = record::lcore(LcoreRole::Tester, TESTER_LCORE, cpu, realtime[0], gaps, kernel[0], hz);
        let busy_ns = Some(Nanos::from_ticks(counters.busy_ticks, hz).0);
        let mut lcores = vec![LcoreInterference { busy_ns, ..tester }];
        lcores.extend(
            dut_gaps
                .map(|g| record::lcore(LcoreRole::Dut, OTHER_LCORE, self.cpus.other, realtime[1], g, kernel[1], hz)),
        );
        let largest_gap = lcores.iter().map(|l| l.largest_gap_ns).max().unwrap_or_default();
        self.warnings.extend(self.realtime.warning(stretch, Duration::from_nanos(largest_gap)));
        let (waits, waited_ns) = waits_of(&readings, hz);
        dut_absences.extend(waits);
        let times = record::Times { hz, started: counters.started };
        let cut = Cut::of(request.spec.duration_s, request.spec.shape.peak(request.spec.load_fps));
        let mut timeline = Timeline {
            slice_s: cut.slice_s,
            directions: counted.slices(hz),
            absences: record::absences(
                Party::Tester,
                &tester_absences,
                times,
                request.spec.duration_s,
                self.longest_call_s(),
            ),
        };
        timeline.absences.extend(record::absences(Party::Device, &dut_absences, times, request.spec.duration_s, 0.0));
        timeline.absences.sort_by(|a, b| a.from_s.total_cmp(&b.from_s));
        let (mut directions, samples, sent_flows) = counted.directions(&request.spec, times);
        for (i, d) in directions.iter_mut().enumerate() {
            let [from, to] = [i, 1 - i].map(|end| self.ports.get(end).map_or_else(String::new, |e| e.name.clone()));
            (d.from, d.to) = (from, to);
            let delta = |e: usize, field: fn(&PortStats) -> u64| {
                let now = self.ports[e].port.stats().ok()?;
                Some(field(&now).saturating_sub(field(ports_before[e].as_ref()?)))
            };
            d.port_tx = delta(i, |s| s.opackets);
            d.port_rx = delta(1 - i, |s| s.ipackets);
            d.port_missed = delta(1 - i, |s| s.imissed);
        }
        let mut switch_threads = Vec::new();
        if let (Some(lab), Some(before)) = (&self.in_lab, &lab_before) {
            // The trial stands without the counters; a lab that has gone is seen before the next one.
            let now = lab.read().unwrap_or_default();
            lab.add(before, &now, &mut directions);
            switch_threads = now.threads_since(before);
        }
        // With few frames, the last is due well before the end of the trial.
        let due = if stopped { 0 } else { counters.started.saturating_add(duration) };
        let ended = control.ended().unwrap_or(counters.left).max(due);
        let real = Nanos::from_ticks(ended.saturating_sub(counters.started), hz).seconds() * (1.0 + drift_ppm / 1e6);
        let placement = self.classifier.classify(probe_before, probe_after);
        let combined = request.trust.placements == Placements::Combined;
        let mut record = TrialRecord {
            number: self.number,
            spec: request.spec,
            attempt: request.attempt,
            real_duration_s: real,
            directions,
            interference: Interference {
                lcores,
                core_to_core_before_ns: probe_before,
                core_to_core_after_ns: probe_after,
                placement: placement.or_else(|| (self.cpus.other.is_none() || combined).then_some(0)),
                device_waited_ns: self.device_threads.as_ref().map(|_| waited_ns),
                clock_drift_ppm: drift_ppm,
            },
            dut: dut_report,
            switch_threads,
            evidence: evidence::of(&timeline, request.spec.duration_s, self.watch(), cut.usual),
            power: None,
            violations: Vec::new(),
        };
        record.power = self.power.of_trial(power, &record);
        if stopped {
            record.violations.push(validity::cut_short(&record));
            return Ok(TrialEnd::Stopped(Box::new(Finished { record, samples, timeline, sent_flows })));
        }
        let conditions = Conditions {
            trust: request.trust,
            tsc_invariant: self.facts.tsc_invariant,
            selftest_max: request.selftest_max,
            probes_expected: self.cpus.other.is_some() && self.classifier.classes() > 0 && !combined,
        };
        validity::settle(&mut record, &conditions);
        Ok(TrialEnd::Done(Box::new(Finished { record, samples, timeline, sent_flows })))
    }

    /// How long the last frames are waited for. Parts of a lab that take turns on a CPU hold frames until their next turn.
    fn residual(&self, asked: Duration) -> Duration {
        match self.in_lab.as_ref().is_some_and(InLab::takes_turns) {
            true => asked.max(TURNS),
            false => asked,
        }
    }

    /// What is known of the time in which the device was away.
    fn watch(&self) -> Watch {
        // Parts of a lab that take turns on a CPU are silent by themselves: that is the device, not somebody else's doing.
        if self.in_lab.as_ref().is_some_and(InLab::takes_turns) {
            return Watch::Known;
        }
        match (&self.built_in, &self.facts.hypervisor) {
            (Some(_), _) => Watch::Known,
            (None, None) => Watch::Silence,
            (None, Some(_)) => Watch::Pauses,
        }
    }

    /// How long a call of the tester into its ports may take, seconds: over a kernel interface the kernel forwards within the
    /// tester's own call, and that time is the device's.
    fn longest_call_s(&self) -> f64 {
        let kernel = |driver: &str| driver.contains("af_packet") || driver.contains("af_xdp");
        match self.ports.iter().any(|port| kernel(port.port.driver())) {
            true => KERNEL_CALL_S,
            false => 0.0,
        }
    }

    /// The shortest gap between polls that counts at this load, in ticks.
    fn gap_threshold(&self, load: Fps, directions: usize) -> u64 {
        let ns = validity::gap_threshold_ns(load.get() * directions as f64, self.descriptors);
        self.ticks(Duration::from_nanos(ns))
    }
}
