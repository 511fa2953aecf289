//! What `bench` and `trial` share: a rig, the trials run on it, and the result made of them.

use std::time::{Duration, Instant, SystemTime};

use measure::{
    plan::{Traffic, ValidPlan},
    result::{MixFacts, RunResult, SelfTestPoint, SizeResult, Standing, Warning, SCHEMA},
    trial::{TrialRecord, TrialSpec},
};
use traffic::{checker::Sample, generator::Generator};
use units::{Fps, Frames, LinkSpeed};

use crate::{
    cli::{MachineArgs, PortArgs},
    engine::{self, facts, Attempt, Departed, Rig, RigOptions, Streams, TrialEnd},
    failure::Failure,
    stop::Stop,
};

/// A rig and what was measured on it so far.
pub struct Run {
    pub rig: Rig,
    pub plan: ValidPlan,
    pub stop: Stop,
    pub trials: Vec<TrialRecord>,
    /// The trial that a signal cut short; it is not among the others.
    pub cut: Option<TrialRecord>,
    pub selftest: Vec<SelfTestPoint>,
    /// Odd frames of the last trial, by port.
    pub samples: Vec<Vec<Sample>>,
    /// What the last trial sent of a flow program.
    pub departed: Option<Departed>,
    begun: (Instant, SystemTime),
}

impl Run {
    /// Brings up the rig for this plan.
    pub fn new(plan: ValidPlan, ports: &PortArgs, machine: &MachineArgs) -> Result<Self, Failure> {
        Self::with(plan, ports, machine, None)
    }

    /// The same with a third port, where one is wanted: see [`RigOptions::third_port`].
    pub fn with(
        plan: ValidPlan,
        ports: &PortArgs,
        machine: &MachineArgs,
        third_port: Option<Duration>,
    ) -> Result<Self, Failure> {
        let begun = (Instant::now(), SystemTime::now());
        let stop = Stop::on_signals()?;
        let max_frame = plan.frame_sizes.iter().map(|frames| frames.largest().without_fcs()).max().unwrap_or(1514);
        let (dut, impair) = (
            ports.dut.as_deref().or(plan.dut.function.as_deref()),
            ports.impair.as_deref().or(plan.dut.impair.as_deref()),
        );
        let behind = |port| plan.dut.routes.filter(|_| port == 1 || plan.traffic.directions() == 2);
        let routes = [0, 1].map(|port| behind(port).map_or(0, |n| n as u32));
        let placements = plan.trust.placements;
        let options =
            RigOptions { ports, dut, impair, machine, routes, max_frame, third_port, placements, stop: &stop };
        let rig = Rig::new(&options).map_err(|e| {
            // A wait for a peer that was cut short says only that it was.
            if stop.requested() {
                Failure::stopped(e)
            } else {
                e
            }
        })?;
        Ok(Self {
            rig,
            plan,
            stop,
            trials: Vec::new(),
            cut: None,
            selftest: Vec::new(),
            samples: Vec::new(),
            departed: None,
            begun,
        })
    }

    /// The speed used for percentages: given, or reported by the ports.
    pub fn link(&self) -> Option<LinkSpeed> {
        self.plan.link.speed.or_else(|| self.rig.reported_link())
    }

    /// Directions loaded.
    pub fn directions(&self) -> usize {
        self.plan.traffic.directions() as usize
    }

    /// What both ports send at this frame size or mix; fills the pool with the payload where every buffer is at hand.
    pub fn streams(&mut self, frames: Frames) -> Result<Streams, Failure> {
        let t = &self.plan.traffic;
        let macs = self.rig.macs();
        let directions = self.directions();
        // One way, the second port only teaches its address: what varies in the first direction does not concern it.
        let back = Traffic { flows: 1, field: Vec::new(), ..t.clone() };
        let back = if directions == 2 { t } else { &back };
        let mut specs = [engine::stream(t, frames, 0, macs)?, engine::stream(back, frames, 1, macs)?];
        if let Some(routes) = self.plan.dut.routes {
            specs
                .iter_mut()
                .take(directions)
                .zip([1, 0])
                .for_each(|(spec, port)| engine::over_routes(spec, port, routes));
        }
        let template = Generator::new(&specs[0], 0, 0, false).map_err(Failure::usage)?;
        // Drivers of outside ports keep sent frames a while; these trials copy the whole frame instead.
        let prefilled = self.rig.frames.fill_all(template.template()).is_ok();
        self.rig.taught = false;
        Ok(Streams { specs, directions, prefilled, flows: None, replay: None })
    }

    /// The self-test at this frame size, when the plan has it.
    pub fn selftest(&mut self, streams: &Streams, duration: Duration) -> Result<Option<Fps>, Failure> {
        if !self.plan.trust.selftest {
            return Ok(None);
        }
        let point = self.rig.selftest(streams, duration)?;
        let most = point.max_fps;
        self.selftest.push(point);
        Ok(Some(most))
    }

    /// Runs one trial and keeps it. `None` when a signal came.
    pub fn trial(
        &mut self,
        streams: &Streams,
        spec: TrialSpec,
        attempt: u32,
        selftest_max: Option<Fps>,
        tick: &mut dyn FnMut(f64),
    ) -> Result<Option<TrialRecord>, Failure> {
        if self.stop.requested() {
            return Ok(None);
        }
        let trust = self.plan.trust.clone();
        let attempt = Attempt { spec, attempt, trust: &trust, selftest_max };
        match self.rig.run(streams, &attempt, &self.stop, tick)? {
            TrialEnd::Stopped(cut) => {
                self.cut = Some(cut.record);
                Ok(None)
            }
            TrialEnd::Done(done) => {
                self.samples = done.samples;
                self.departed = done.departed;
                self.trials.push(done.record.clone());
                // The DUT may need its rest, and so do the addresses it learned.
                self.pause(trust.settle.max(spec.drain()));
                Ok(Some(done.record))
            }
        }
    }

    fn pause(&self, time: Duration) {
        let end = Instant::now() + time;
        while Instant::now() < end && !self.stop.requested() {
            std::thread::sleep(Duration::from_millis(20).min(end.saturating_duration_since(Instant::now())));
        }
    }

    /// The ports whose link is down now.
    pub fn links_down(&self) -> Vec<String> {
        self.rig.ends.iter().filter(|e| !e.port.link().up).map(|e| e.name.clone()).collect()
    }

    /// The result of everything so far.
    pub fn result(&self, sizes: Vec<SizeResult>, mut warnings: Vec<Warning>, standing: Standing) -> RunResult {
        warnings.extend(self.rig.warnings.iter().cloned());
        RunResult {
            schema: SCHEMA.to_owned(),
            linerate_version: env!("CARGO_PKG_VERSION").to_owned(),
            plan_name: self.plan.name.clone(),
            started_at: humantime::format_rfc3339_seconds(self.begun.1).to_string(),
            elapsed_s: self.begun.0.elapsed().as_secs_f64(),
            host: facts::for_result(
                &self.rig.facts,
                dpdk::Eal::version(),
                self.rig.eal.memory_kind().as_str().to_owned(),
                packet::Clock::hz(&self.rig.clock),
            ),
            dut: self.rig.device.describe(),
            device: self.rig.device.clone(),
            ports: self.rig.port_facts(),
            link_bps: self.link(),
            directions: self.plan.traffic.directions(),
            effective_plan: self.plan.to_json(),
            mixes: MixFacts::of(&self.plan.frame_sizes),
            selftest: self.selftest.clone(),
            sizes,
            tests: Vec::new(),
            trials: self.trials.clone(),
            warnings,
            standing,
        }
    }
}
