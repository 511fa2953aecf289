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
/// First of the addresses offered: locally administered, and none of ours.
const FIRST: u64 = 0x02_4c_41_00_00_00;
/// Copies of the frame that teaches the test port's own address.
const COPIES: usize = 3;
/// A gap between polls that a full ring outlasts at no rate of these tests.
const GAP: Duration = Duration::from_millis(10);

/// One phase of a round: who sends which stream, how fast, for how long.
struct Phase {
    from: usize,
    stream: u16,
    generator: Generator,
    rate: Fps,
}

/// What a phase saw: frames sent, for each port the frames of its stream, and the longest gap between two polls.
struct Seen {
    sent: u64,
    came: Vec<u64>,
    gap: Duration,
}

impl Rig {
    /// Runs a round: the test port's address is learned, then the addresses at their rate, then a frame is sent to each at
    /// `test_fps`. The counts, and what disturbed the tester; `None` when a signal came.
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
        let everybody = MacAddr::BROADCAST.to_string();
        let greeting = Traffic { dst_mac: vec![everybody.clone(), everybody], ..Traffic::default() };
        let of = |traffic: &Traffic, direction, id| {
            let spec = stream(traffic, size, direction, macs)?;
            Generator::new(&spec, id, self.epoch(), false).map_err(Failure::usage)
        };
        let greeting = of(&greeting, TEST, TESTED)?;
        let (learning, tested) = (of(&offered, LEARNING, LEARN)?, of(&offered, TEST, TESTED)?);

        drain(&mut self.ports);
        self.greet(greeting);
        let phase = Phase { from: LEARNING, stream: LEARN, generator: learning, rate: round.learning_fps };
        let Some(learned) = self.phase(phase, round.addresses, size, residual, stop)? else { return Ok(None) };
        let phase = Phase { from: TEST, stream: TESTED, generator: tested, rate: test_fps };
        let Some(seen) = self.phase(phase, round.addresses, size, residual, stop)? else { return Ok(None) };
        let came = |port: usize| seen.came.get(port).copied().unwrap_or(0);
        let counts = RoundCounts {
            learned: learned.sent,
            tested: seen.sent,
            forwarded: came(LEARNING),
            flooded: (TEST + 1..self.ports.len()).map(came).sum(),
            returned: came(TEST),
        };
        let gap = learned.gap.max(seen.gap);
        let disturbed = (gap > GAP).then(|| format!("the tester was away for {gap:.1?}: keep its CPU free"));
        Ok(Some((counts, disturbed)))
    }

    fn epoch(&self) -> u8 {
        (self.number as u8).wrapping_add(self.epoch_base)
    }

    /// Tells the bridge where the test port is: a broadcast from its address.
    fn greet(&mut self, greeting: Generator) {
        let pacer = Pacer::new(Fps::ZERO, self.clock.hz(), 1, 0);
        if let Some(end) = self.ports.get_mut(TEST) {
            TxTask::new(&mut end.tx, self.frames.handle(), greeting, pacer).learn(COPIES);
            end.tx.tx_done_cleanup();
        }
        self.let_through(Duration::from_millis(20));
        drain(&mut self.ports);
    }

    /// Lets a built-in device forward for a while.
    fn let_through(&mut self, time: Duration) {
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
    ) -> Result<Option<Seen>, Failure> {
        let hz = self.clock.hz();
        let (epoch, gap, residual) = (self.epoch(), self.ticks(GAP) / 10, self.ticks(residual));
        // Exactly so many frames at the rate.
        let duration = (frames as f64 * hz as f64 / phase.rate.get().max(1e-3)).round() as u64;
        // Each address counts: none is left out for being late, and a round in which many were is invalid.
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
            // However this ends, the device's loop must, or the scope would wait for ever.
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
        let came = worker.rx.iter().map(|task| task.checker().received()).collect();
        let gap = Duration::from_nanos(units::Nanos::from_ticks(counters.gaps.largest, hz).0);
        Ok(Some(Seen { sent, came, gap }))
    }
}
