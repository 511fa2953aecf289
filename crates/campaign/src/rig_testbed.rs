//! The testbed of ports and lcores: a rig, and the trials run on it.

use std::time::{Duration, Instant};

use failure::{Failure, Stop};
use measure::{
    diagnose::PortState,
    label::LabelFacts,
    plan::{Traffic, ValidPlan},
    result::SelfTestPoint,
    timeline::Timeline,
    trial::TrialRecord,
};
use rig::{facts, Device, MachineOptions, Rig, RigOptions, SentFlows, Streams, TesterPort, TrialEnd, TrialRequest};
use traffic::{checker::Sample, generator::Generator};
use units::{Fps, Frames, LinkSpeed};

use crate::{
    requirements::without_tunnel,
    samples,
    testbed::{Measurement, Testbed, TestbedFacts},
};

/// A rig with what it sends now, and what its last trial left behind.
pub struct RigTestbed {
    /// The rig.
    pub rig: Rig,
    /// What trials run by.
    pub plan: ValidPlan,
    /// Ends trials and waits.
    pub stop: Stop,
    /// What is sent, once [`Testbed::prepare`] has made it.
    pub streams: Option<Streams>,
    /// The trial that a signal cut short.
    pub cut: Option<TrialRecord>,
    /// Self-tests so far.
    pub selftest: Vec<SelfTestPoint>,
    /// The last trial over time.
    pub timeline: Timeline,
    /// Unexpected frames of the last trial, by port.
    pub samples: Vec<Vec<Sample>>,
    /// What the last trial sent of a flow program.
    pub sent_flows: Option<SentFlows>,
}

impl RigTestbed {
    /// Brings up the rig for this plan and device.
    ///
    /// # Errors
    ///
    /// As [`Rig::new`].
    pub fn new(plan: ValidPlan, device: &Device, machine: &MachineOptions, stop: &Stop) -> Result<Self, Failure> {
        Self::with_third_port(plan, device, machine, None, stop)
    }

    /// The same with a third port, where one is wanted: see [`RigOptions::third_port`].
    ///
    /// # Errors
    ///
    /// As [`Rig::new`].
    pub fn with_third_port(
        plan: ValidPlan,
        device: &Device,
        machine: &MachineOptions,
        third_port: Option<Duration>,
        stop: &Stop,
    ) -> Result<Self, Failure> {
        let max_frame = plan.frame_sizes.iter().map(|frames| frames.largest().without_fcs()).max().unwrap_or(1514);
        let placements = plan.trust.placements;
        let options = RigOptions { device, machine, max_frame, third_port, placements, stop };
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
            stop: stop.clone(),
            streams: None,
            cut: None,
            selftest: Vec::new(),
            timeline: Timeline::default(),
            samples: Vec::new(),
            sent_flows: None,
        })
    }

    /// The speed used for percentages: given, or reported by the ports.
    pub fn link(&self) -> Option<LinkSpeed> {
        self.plan.link.speed.or_else(|| self.rig.reported_link())
    }

    /// What both ports send at this frame size or mix; fills the pool with the payload where every buffer is at hand.
    ///
    /// # Errors
    ///
    /// (usage) for headers that cannot be made.
    pub fn make_streams(&mut self, frames: Frames) -> Result<Streams, Failure> {
        let t = &self.plan.traffic;
        let macs = self.rig.macs();
        let directions = t.directions() as usize;
        // One way, the second port only sends learning frames: what varies in the first direction does not concern it.
        let back = Traffic { flows: 1, field: Vec::new(), ..t.clone() };
        let back = if directions == 2 { t } else { &back };
        let mut specs = [rig::stream(t, frames, 0, macs)?, rig::stream(back, frames, 1, macs)?];
        if let Some(routes) = self.plan.dut.routes {
            specs.iter_mut().take(directions).zip([1, 0]).for_each(|(spec, port)| rig::over_routes(spec, port, routes));
        }
        let template = Generator::new(&specs[0], 0, 0, false).map_err(Failure::usage)?;
        // Drivers of outside ports keep sent frames a while; these trials copy the whole frame instead.
        let prefilled = self.rig.frames.fill_all(template.template()).is_ok();
        self.rig.learned = false;
        Ok(Streams { specs, directions, prefilled, flows: None, replay: None })
    }

    /// The self-test of these streams, added to the others. `None` when a signal came.
    ///
    /// # Errors
    ///
    /// A rig that fails.
    pub fn test_self(&mut self, streams: &Streams, duration: Duration) -> Result<Option<Fps>, Failure> {
        let point = self.rig.selftest(streams, duration, &self.stop)?;
        let most = point.as_ref().map(|point| point.max_fps);
        self.selftest.extend(point);
        Ok(most)
    }

    /// Waits, unless a signal comes.
    pub fn pause(&self, time: Duration) {
        let end = Instant::now() + time;
        while Instant::now() < end && !self.stop.requested() {
            std::thread::sleep(Duration::from_millis(20).min(end.saturating_duration_since(Instant::now())));
        }
    }
}

impl Testbed for RigTestbed {
    fn prepare(&mut self, size: Frames, selftest: Duration) -> Result<Option<Fps>, Failure> {
        let streams = self.make_streams(size)?;
        let most = if self.plan.trust.selftest { self.test_self(&streams, selftest)? } else { None };
        self.streams = Some(streams);
        Ok(most)
    }

    fn measure(&mut self, request: &Measurement, tick: &mut dyn FnMut(f64)) -> Result<Option<TrialRecord>, Failure> {
        if self.stop.requested() {
            return Ok(None);
        }
        let Some(streams) = &self.streams else { return Err(Failure::failed("a trial before any frames were made")) };
        let trust = &self.plan.trust;
        let Measurement { spec, attempt, selftest_max } = *request;
        match self.rig.run(streams, &TrialRequest { spec, attempt, trust, selftest_max }, &self.stop, tick)? {
            TrialEnd::Stopped(cut) => {
                self.timeline = cut.timeline.until(cut.record.real_duration_s);
                self.cut = Some(cut.record);
                Ok(None)
            }
            TrialEnd::Done(done) => {
                self.timeline = done.timeline;
                self.samples = done.samples;
                self.sent_flows = done.sent_flows;
                // The device may need its rest, and so do the addresses it learned. Its queue is empty: the trial ended when all
                // frames were back, or long after the last of them was due.
                self.pause(trust.settle);
                Ok(Some(done.record))
            }
        }
    }

    fn device_answers(&mut self) -> Result<Option<bool>, Failure> {
        match &self.streams {
            Some(streams) if self.rig.built_in.is_none() => self.rig.device_answers(streams, &self.stop),
            _ => Ok(Some(true)),
        }
    }

    fn ended_part(&self) -> Option<String> {
        self.rig.in_lab.as_ref().and_then(|lab| lab.ended_part())
    }

    fn has_slices(&self) -> bool {
        true
    }

    fn timeline(&self) -> Option<&Timeline> {
        Some(&self.timeline).filter(|timeline| !timeline.directions.is_empty())
    }

    fn facts(&self) -> TestbedFacts {
        let lab = self.rig.in_lab.as_ref().map(|lab| lab.record().clone());
        let mut warnings = self.rig.warnings.clone();
        // A capture has what its user took.
        if self.streams.as_ref().is_none_or(|streams| streams.replay.is_none()) {
            warnings.extend(lab.as_ref().and_then(|lab| without_tunnel(&self.plan, lab)));
        }
        TestbedFacts {
            device: self.rig.device.clone(),
            lab,
            host: self.rig.with_power(facts::with_findings(
                facts::for_result(
                    &self.rig.facts,
                    dpdk::Eal::version(),
                    self.rig.eal.memory_kind().as_str().to_owned(),
                    packet::Clock::hz(&self.rig.clock),
                    self.rig.realtime_use(),
                ),
                self.rig.findings.clone(),
            )),
            ports: self.rig.port_facts(),
            link: self.link(),
            labels: LabelFacts {
                software_ports: self.rig.ports.iter().all(|e| e.port.numa_node().is_none()),
                learning_wait: self.rig.built_in.is_none().then_some(rig::LEARNING_WAIT),
                several_placements: self.rig.classifier.classes() > 1,
                ..LabelFacts::default()
            },
            placements: self.rig.classifier.clone(),
            selftest: self.selftest.clone(),
            warnings,
        }
    }

    fn ports(&self) -> Vec<PortState> {
        let state = |(i, port): (usize, &TesterPort)| PortState {
            name: port.name.clone(),
            link_up: Some(port.port.link().up),
            foreign_samples: self.samples.get(i).map(|s| s.iter().map(samples::describe).collect()).unwrap_or_default(),
        };
        self.rig.ports.iter().enumerate().map(state).collect()
    }

    fn stopped(&self) -> bool {
        self.stop.requested()
    }
}
