//! `--dut sim:…`: a tester and a device that are not there, in virtual time. No DPDK, no memory, no rights.

use std::time::{Duration, Instant, SystemTime};

use measure::{
    diagnose::PortState,
    label::LabelFacts,
    placement::PlacementClassifier,
    plan::ValidPlan,
    result::{MixFacts, PortFacts, RunResult, SizeResult, Standing, Warning, WarningKind, SCHEMA},
    schema::device::DeviceRecord,
    sim::{SimDut, SimSetup},
    trial::{TrialRecord, TrialSpec},
    validity::{judge, Evidence},
};
use units::{Fps, Frames, LinkSpeed};

use super::bed::Bed;
use crate::{cli::PortArgs, engine::facts, failure::Failure, stop::Stop};

/// Where nothing else gives a highest load, the simulated tester offers so many times what the device forwards.
const TESTER_FACTOR: f64 = 4.0;

/// The simulated device that is asked for, if one is.
pub fn asked(ports: &PortArgs, plan: &ValidPlan) -> Result<Option<SimSetup>, Failure> {
    let dut = ports.dut.as_deref().or(plan.dut.function.as_deref()).filter(|_| ports.ports.is_empty());
    let Some(text) = dut.filter(|d| *d == "sim" || d.starts_with("sim:")) else { return Ok(None) };
    let beside =
        [("--impair", ports.impair.is_some() || plan.dut.impair.is_some()), ("--dut-tx", ports.dut_tx.is_some())];
    if let Some((flag, _)) = beside.iter().find(|(_, given)| *given) {
        return Err(Failure::usage(format!(
            "{flag} with --dut {text}: changes the built-in data plane, and a simulated device has none: say it in the \
             keys of --dut sim: (queue, onset, stalls, accidents, ...)"
        )));
    }
    let mut setup: SimSetup = text.parse()?;
    setup.directions = plan.traffic.directions();
    Ok(Some(setup))
}

/// A simulated rig and what was measured on it so far.
pub struct SimRun {
    plan: ValidPlan,
    setup: SimSetup,
    dut: SimDut,
    stop: Stop,
    trials: Vec<TrialRecord>,
    begun: (Instant, SystemTime),
}

impl SimRun {
    /// At virtual time zero.
    pub fn new(plan: ValidPlan, setup: SimSetup, stop: Stop) -> Self {
        let begun = (Instant::now(), SystemTime::now());
        let dut = setup.clone().start().with_residual(plan.trust.residual.as_secs_f64());
        let dut = dut.with_placements(plan.trust.placements);
        Self { plan, dut, setup, stop, trials: Vec::new(), begun }
    }

    /// Trials so far.
    pub fn made(&self) -> usize {
        self.trials.len()
    }

    /// Virtual seconds so far, the waits around trials included.
    pub fn now_s(&self) -> f64 {
        self.dut.now_s()
    }
}

impl Bed for SimRun {
    type Streams = ();

    fn plan(&self) -> &ValidPlan {
        &self.plan
    }

    fn stopped(&self) -> bool {
        self.stop.requested()
    }

    fn link(&self) -> Option<LinkSpeed> {
        self.plan.link.speed
    }

    fn streams(&mut self, _size: Frames) -> Result<(), Failure> {
        Ok(())
    }

    fn selftest(&mut self, _streams: &(), _duration: Duration) -> Result<Option<Fps>, Failure> {
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

    fn trial(
        &mut self,
        _streams: &(),
        spec: TrialSpec,
        attempt: u32,
        selftest_max: Option<Fps>,
        _tick: &mut dyn FnMut(f64),
    ) -> Result<Option<TrialRecord>, Failure> {
        if self.stop.requested() {
            return Ok(None);
        }
        let trust = &self.plan.trust;
        let mut record = TrialRecord { attempt, ..self.dut.run(&spec) };
        let violations = judge(&Evidence { trial: &record, trust, tsc_invariant: true, selftest_max });
        record.violations = violations;
        let drain = spec.drain();
        self.dut.wait((trust.residual + drain + trust.settle.max(drain)).as_secs_f64());
        self.trials.push(record.clone());
        Ok(Some(record))
    }

    fn event_comes(&mut self) {
        self.dut.event_comes();
    }

    fn trials(&self) -> &[TrialRecord] {
        &self.trials
    }

    fn links_down(&self) -> Vec<String> {
        Vec::new()
    }

    fn classifier(&self) -> &PlacementClassifier {
        self.dut.classifier()
    }

    fn label_facts(&self) -> LabelFacts {
        LabelFacts { simulated: true, ..LabelFacts::default() }
    }

    fn port_states(&self) -> Vec<PortState> {
        let port = |name: &str| PortState { name: name.to_owned(), link_up: Some(true), foreign_samples: Vec::new() };
        vec![port("a"), port("b")]
    }

    fn result(&self, sizes: Vec<SizeResult>, mut warnings: Vec<Warning>, standing: Standing) -> RunResult {
        let text = format!(
            "simulated: no frame was sent and no device measured; every figure is of {}, over {:.1} s of virtual time",
            self.setup,
            self.now_s()
        );
        warnings.insert(0, Warning { kind: WarningKind::Simulated, text });
        let device = DeviceRecord::Simulated { setup: self.setup.to_string() };
        let port =
            |name: &str| PortFacts { name: name.to_owned(), driver: "simulated".to_owned(), ..PortFacts::default() };
        RunResult {
            schema: SCHEMA.to_owned(),
            linerate_version: env!("CARGO_PKG_VERSION").to_owned(),
            plan_name: self.plan.name.clone(),
            started_at: humantime::format_rfc3339_seconds(self.begun.1).to_string(),
            elapsed_s: self.begun.0.elapsed().as_secs_f64(),
            host: facts::for_result(&facts::read(), "not used".to_owned(), String::new(), 0),
            dut: device.describe(),
            device,
            ports: vec![port("a"), port("b")],
            link_bps: self.link(),
            directions: self.plan.traffic.directions(),
            effective_plan: self.plan.to_json(),
            mixes: MixFacts::of(&self.plan.frame_sizes),
            selftest: Vec::new(),
            sizes,
            tests: Vec::new(),
            trials: self.trials.clone(),
            warnings,
            standing,
        }
    }
}

#[cfg(test)]
mod tests {
    use measure::{plan::Plan, trial::Purpose};

    use super::*;

    fn spec() -> TrialSpec {
        let load_fps = Fps::from_raw(1e6);
        TrialSpec::steady(units::FrameSize::MIN, load_fps, 60.0, Purpose::Search)
    }

    #[test]
    fn virtual_time_has_the_plan_s_waits() {
        let plan = Plan::default().validate().unwrap();
        let mut run = SimRun::new(plan, SimSetup::new(5e5, 1), Stop::simulated(false));
        let trial = Bed::trial(&mut run, &(), spec(), 3, None, &mut |_| {}).unwrap().unwrap();
        assert_eq!((trial.attempt, trial.valid(), run.now_s()), (3, true, 60.0 + 2.0 + 5.0));
        assert!((trial.loss_ratio() - 0.5).abs() < 0.01);
        let beyond = Bed::trial(&mut run, &(), spec(), 1, Some(Fps::from_raw(9e5)), &mut |_| {}).unwrap().unwrap();
        assert!(!beyond.valid(), "judged as real ones are");
    }

    #[test]
    fn a_signal_ends_it() {
        let plan = Plan::default().validate().unwrap();
        let mut run = SimRun::new(plan, SimSetup::new(5e5, 1), Stop::simulated(true));
        assert_eq!(Bed::trial(&mut run, &(), spec(), 1, None, &mut |_| {}).unwrap(), None);
        assert!(run.trials().is_empty());
    }

    #[test]
    fn only_sim_is_a_simulation() {
        let plan = Plan::default().validate().unwrap();
        let of = |dut: &str, impair: Option<&str>| {
            let (dut, impair) = (Some(dut.to_owned()), impair.map(str::to_owned));
            asked(&PortArgs { dut, impair, ..PortArgs::default() }, &plan)
        };
        assert_eq!(of("l3", None).unwrap(), None);
        assert_eq!(of("simple", None).unwrap(), None);
        assert_eq!(of("sim", None).unwrap().unwrap().queue, 256);
        assert!(of("sim:speed=3", None).unwrap_err().text.contains("sim.speed"));
        assert!(of("sim", Some("loss=1%")).unwrap_err().text.starts_with("--impair with --dut sim"));
    }
}
