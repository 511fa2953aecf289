//! Rounds of the address tests (RFC 2889 §5.7.3) between three ports: learning port, test port, monitoring port.

use std::{
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use measure::{
    addresses::{Round, RoundCounts},
    plan::{Direction, FieldMode, FieldPlan, Traffic},
};
use packet::{Clock, MacAddr};
use traffic::{
    checker::Checker,
    control::{Control, Timing},
    generator::Generator,
    pacer::Pacer,
    worker::{RxTask, TxTask, Worker},
};
use units::{Fps, FrameSize};

use failure::{Failure, Stop};

use crate::{
    device::BuiltIn,
    lcores::{SetOnDrop, OTHER_LCORE, TESTER_LCORE},
    rig::Rig,
    stream_spec::stream,
    tester_port::{drain, TesterPort},
    timed::timed,
};

/// The learning port and the test port, by their place among the ports.
const LEARNING: usize = 0;
const TEST: usize = 1;
/// Streams: of the learning frames, and of the test frames.
const LEARN: u16 = 0;
const TESTED: u16 = 1;
/// First of the addresses offered: locally administered, and not one of the tester's.
const FIRST: u64 = 0x02_4c_41_00_00_00;
/// Copies of the frame from which the bridge learns the test port's own address.
const COPIES: usize = 3;
/// The longest gap between polls that no receive ring overflows in, at any rate of these tests.
const GAP: Duration = Duration::from_millis(10);

/// One phase of a round: which port sends which stream, and how fast.
struct Phase {
    from: usize,
    stream: u16,
    generator: Generator,
    rate: Fps,
}

/// What a phase counted: frames sent, frames received by each port, and the longest gap between two polls.
struct PhaseCounts {
    sent: u64,
    received: Vec<u64>,
    gap: Duration,
}

impl Rig {
    /// Runs a round: the bridge learns the test port's address, then the addresses at their rate; then a frame is sent to
    /// each address at `test_fps`. Returns the counts and what disturbed the tester; `None` when a signal came.
    ///
    /// # Errors
    ///
    /// (usage) for addresses that are not legal; (failed) when an lcore fails.
    pub fn address_round(
        &mut self,
        round: &Round,
        test_fps: Fps,
        size: FrameSize,
        residual: Duration,
        stop: &Stop,
    ) -> Result<Option<(RoundCounts, Option<String>)>, Failure> {
        self.number += 1;
        let macs = self.macs();
        let count = Some(round.addresses);
        let field = |start| FieldPlan {
            field: "src_mac".to_owned(),
            mode: FieldMode::Increment,
            start: Some(start),
            count,
            step: None,
            mask: None,
            values: Vec::new(),
        };
        let offered =
            Traffic { direction: Direction::BothWays, field: vec![field(format!("{FIRST:#x}"))], ..Traffic::default() };
        let broadcast = MacAddr::BROADCAST.to_string();
        let announcement = Traffic { dst_mac: vec![broadcast.clone(), broadcast], ..Traffic::default() };
        let generator = |traffic: &Traffic, direction, id| {
            let spec = stream(traffic, size, direction, macs)?;
            Generator::new(&spec, id, self.epoch(), false).map_err(Failure::usage)
        };
        let announcement = generator(&announcement, TEST, TESTED)?;
        let (learning, tested) = (generator(&offered, LEARNING, LEARN)?, generator(&offered, TEST, TESTED)?);

        drain(&mut self.ports);
        self.announce_test_port(announcement);
        let phase = Phase { from: LEARNING, stream: LEARN, generator: learning, rate: round.learning_fps };
        let Some(learned) = self.phase(phase, round.addresses, size, residual, stop)? else { return Ok(None) };
        let phase = Phase { from: TEST, stream: TESTED, generator: tested, rate: test_fps };
        let Some(tested) = self.phase(phase, round.addresses, size, residual, stop)? else { return Ok(None) };
        let received = |port: usize| tested.received.get(port).copied().unwrap_or(0);
        let counts = RoundCounts {
            learned: learned.sent,
            tested: tested.sent,
            forwarded: received(LEARNING),
            flooded: (TEST + 1..self.ports.len()).map(received).sum(),
            returned: received(TEST),
        };
        let gap = learned.gap.max(tested.gap);
        let disturbed = (gap > GAP).then(|| format!("the tester was interrupted for {gap:.1?}: keep its CPU free"));
        Ok(Some((counts, disturbed)))
    }

    fn epoch(&self) -> u8 {
        (self.number as u8).wrapping_add(self.epoch_base)
    }

    /// Sends a broadcast from the test port, from which the bridge learns its address.
    fn announce_test_port(&mut self, announcement: Generator) {
        let pacer = Pacer::new(Fps::ZERO, self.clock.hz(), 1, 0);
        if let Some(end) = self.ports.get_mut(TEST) {
            TxTask::new(&mut end.tx, self.frames.handle(), announcement, pacer).learn(COPIES);
            end.tx.tx_done_cleanup();
        }
        self.forward_for(Duration::from_millis(20));
        drain(&mut self.ports);
    }

    /// Runs a built-in device for a while; waits for any other.
    fn forward_for(&mut self, time: Duration) {
        let Some(dut) = self.built_in.as_mut() else {
            std::thread::sleep(time);
            return;
        };
        let stop = AtomicBool::new(false);
        let polling = dut.polling();
        let _ = self.eal.scope(|s| -> Result<(), Failure> {
            let job = s.launch(OTHER_LCORE, || polling.run(&stop))?;
            std::thread::sleep(time);
            stop.store(true, Ordering::Relaxed);
            job.join()?;
            Ok(())
        });
    }

    fn phase(
        &mut self,
        phase: Phase,
        frames: u64,
        size: FrameSize,
        residual: Duration,
        stop: &Stop,
    ) -> Result<Option<PhaseCounts>, Failure> {
        let hz = self.clock.hz();
        let (epoch, gap, residual) = (self.epoch(), self.ticks(GAP) / 10, self.ticks(residual));
        // Exactly so many frames at the rate.
        let duration = (frames as f64 * hz as f64 / phase.rate.get().max(1e-3)).round() as u64;
        // Each address counts, so late frames are sent all the same; a round with many late frames is invalid.
        let pacer = Pacer::new(phase.rate, hz, duration, duration);
        // A peer that dies must not take its memory from under a poll.
        let parked = if self.built_in.is_none() { self.eal.park_interrupts() } else { None };
        let control = Control::new(Timing { residual, settle: residual / 10 }, 1);
        let Self { ports, built_in, frames: pool, eal, clock, .. } = self;
        let (mut txs, mut rxs, mut generator) = (Vec::new(), Vec::new(), Some(phase.generator));
        for (i, TesterPort { tx, rx, .. }) in ports.iter_mut().enumerate() {
            if let Some(generator) = generator.take_if(|_| i == phase.from) {
                txs.push(TxTask::new(tx, pool.handle(), generator, pacer.clone()));
            }
            rxs.push(RxTask::new(rx, Checker::new(epoch, &[phase.stream], &[], size.without_fcs())));
        }
        let mut worker = Worker::new(txs, rxs, gap);
        let dut_stop = AtomicBool::new(false);
        let (worker_ref, control_ref, clock_ref, dut_stop_ref) = (&mut worker, &control, &*clock, &dut_stop);
        let counters = eal.scope(|s| -> Result<_, Failure> {
            // The device's loop must end on every way out, or the scope would wait for ever.
            let _dut_ends = SetOnDrop(dut_stop_ref);
            let forwarder = built_in.as_mut().map(BuiltIn::polling);
            let forwarding = match forwarder {
                Some(forwarder) => Some(s.launch(OTHER_LCORE, move || forwarder.run(dut_stop_ref))?),
                None => None,
            };
            let job = s.launch(TESTER_LCORE, move || timed(worker_ref, clock_ref, control_ref).0)?;
            while !job.is_finished() {
                if stop.requested() {
                    control_ref.stop();
                }
                std::thread::sleep(Duration::from_millis(1));
            }
            let counters = job.join();
            dut_stop_ref.store(true, Ordering::Relaxed);
            if let Some(job) = forwarding {
                job.join()?;
            }
            Ok(counters?)
        })?;
        drop(parked);
        if stop.requested() {
            return Ok(None);
        }
        let sent = worker.tx.iter().map(|task| task.counters().sent).sum();
        let received = worker.rx.iter().map(|task| task.checker().received()).collect();
        let gap = Duration::from_nanos(units::Nanos::from_ticks(counters.gaps.largest, hz).0);
        Ok(Some(PhaseCounts { sent, received, gap }))
    }
}
