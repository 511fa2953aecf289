//! The testbed of `--dut sim:…`: a tester and a device that are not there, in virtual time. It needs no DPDK, no memory and
//! no rights.

use std::{sync::OnceLock, time::Duration};

use failure::{Failure, Stop};
use measure::{
    diagnose::PortState,
    label::LabelFacts,
    plan::ValidPlan,
    result::{HostFacts, PortFacts, Warning, WarningKind},
    schema::device::DeviceRecord,
    sim::{SimDut, SimSetup},
    timeline::Timeline,
    trial::TrialRecord,
    validity::{judge, Evidence},
};
use rig::facts;
use units::{Fps, Frames};

use crate::testbed::{Measurement, Testbed, TestbedFacts};

/// Where nothing else gives a highest load, the simulated tester offers so many times what the device forwards.
const TESTER_FACTOR: f64 = 4.0;

/// A simulated rig.
pub struct SimTestbed {
    plan: ValidPlan,
    setup: SimSetup,
    dut: SimDut,
    stop: Stop,
}

impl SimTestbed {
    /// At virtual time zero.
    pub fn new(plan: ValidPlan, setup: SimSetup, stop: &Stop) -> Self {
        let dut = setup.clone().start().with_residual(plan.trust.residual.as_secs_f64());
        let dut = dut.with_placements(plan.trust.placements);
        Self { plan, dut, setup, stop: stop.clone() }
    }

    /// Virtual seconds so far, the waits around trials included.
    pub fn now_s(&self) -> f64 {
        self.dut.now_s()
    }
}

impl Testbed for SimTestbed {
    fn prepare(&mut self, _size: Frames, _selftest: Duration) -> Result<Option<Fps>, Failure> {
        if !self.plan.trust.selftest {
            return Ok(None);
        }
        let tester = self.setup.tester_max;
        if tester.is_finite() {
            return Ok(Some(Fps::from_raw(tester)));
        }
        let bounded = self.plan.search.upper.is_some() || self.plan.link.speed.is_some();
        let capacity = self.setup.capacity(0, 0.0, 0.0);
        Ok((!bounded).then(|| Fps::from_raw(capacity * TESTER_FACTOR)))
    }

    fn measure(&mut self, request: &Measurement, _tick: &mut dyn FnMut(f64)) -> Result<Option<TrialRecord>, Failure> {
        if self.stop.requested() {
            return Ok(None);
        }
        let Measurement { spec, attempt, selftest_max } = *request;
        let trust = &self.plan.trust;
        let mut record = TrialRecord { attempt, ..self.dut.run(&spec) };
        let violations = judge(&Evidence { trial: &record, trust, tsc_invariant: true, selftest_max });
        record.violations = violations;
        self.dut.wait((trust.residual + spec.drain() + trust.settle).as_secs_f64());
        Ok(Some(record))
    }

    fn cause_event(&mut self) {
        self.dut.event_comes();
    }

    fn has_slices(&self) -> bool {
        self.dut.has_slices()
    }

    fn timeline(&self) -> Option<&Timeline> {
        Some(self.dut.timeline()).filter(|timeline| !timeline.directions.is_empty())
    }

    fn facts(&self) -> TestbedFacts {
        let text = format!(
            "simulated: no frame was sent and no device measured; every figure is of {}, over {:.1} s of virtual time",
            self.setup,
            self.now_s()
        );
        let port =
            |name: &str| PortFacts { name: name.to_owned(), driver: "simulated".to_owned(), ..PortFacts::default() };
        TestbedFacts {
            device: DeviceRecord::Simulated { setup: self.setup.to_string() },
            lab: None,
            host: HOST.get_or_init(host).clone(),
            ports: PORTS.map(port).to_vec(),
            link: self.plan.link.speed,
            labels: LabelFacts { simulated: true, ..LabelFacts::default() },
            placements: self.dut.classifier().clone(),
            selftest: Vec::new(),
            warnings: vec![Warning { kind: WarningKind::Simulated, text }],
        }
    }

    fn ports(&self) -> Vec<PortState> {
        let port = |name: &str| PortState { name: name.to_owned(), link_up: Some(true), foreign_samples: Vec::new() };
        PORTS.map(port).to_vec()
    }

    fn stopped(&self) -> bool {
        self.stop.requested()
    }
}

/// The machine, read once: a dry run asks for it thousands of times.
static HOST: OnceLock<HostFacts> = OnceLock::new();

fn host() -> HostFacts {
    facts::for_result(&facts::read(), "not used".to_owned(), String::new(), 0, String::new())
}

/// Names of the ports.
const PORTS: [&str; 2] = ["a", "b"];

#[cfg(test)]
mod tests {
    use measure::{
        plan::Plan,
        trial::{Purpose, TrialSpec},
    };

    use super::*;

    fn ask(attempt: u32, selftest_max: Option<Fps>) -> Measurement {
        let load_fps = Fps::from_raw(1e6);
        Measurement {
            spec: TrialSpec::steady(units::FrameSize::MIN, load_fps, 60.0, Purpose::Search),
            attempt,
            selftest_max,
        }
    }

    #[test]
    fn virtual_time_has_the_plan_s_waits() {
        let plan = Plan::default().validate().unwrap();
        let mut run = SimTestbed::new(plan, SimSetup::new(5e5, 1), &Stop::simulated(false));
        let trial = run.measure(&ask(3, None), &mut |_| {}).unwrap().unwrap();
        assert_eq!((trial.attempt, trial.valid(), run.now_s()), (3, true, 60.0 + 2.0 + 5.0));
        assert!((trial.loss_ratio() - 0.5).abs() < 0.01);
        let beyond = run.measure(&ask(1, Some(Fps::from_raw(9e5))), &mut |_| {}).unwrap().unwrap();
        assert!(!beyond.valid(), "judged as real ones are");
    }

    #[test]
    fn a_signal_ends_it() {
        let plan = Plan::default().validate().unwrap();
        let mut run = SimTestbed::new(plan, SimSetup::new(5e5, 1), &Stop::simulated(true));
        assert_eq!(run.measure(&ask(1, None), &mut |_| {}).unwrap(), None);
    }
}
