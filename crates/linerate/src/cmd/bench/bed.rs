//! What a benchmark is run on: the rig, or a simulation of one.

use std::time::Duration;

use measure::{
    diagnose::PortState,
    label::LabelFacts,
    placement::PlacementClassifier,
    plan::ValidPlan,
    result::{RunResult, SizeResult, Standing, Warning},
    trial::{TrialRecord, TrialSpec},
};
use units::{Fps, Frames, LinkSpeed};

use crate::{
    cmd::{run::Run, samples},
    engine::{self, End},
    failure::Failure,
};

/// A testbed: runs trials and keeps them.
pub trait Bed {
    /// What is sent at one frame size.
    type Streams;

    fn plan(&self) -> &ValidPlan;
    /// Whether a signal has come.
    fn stopped(&self) -> bool;
    /// The speed used for percentages: given, or reported by the ports.
    fn link(&self) -> Option<LinkSpeed>;
    /// What is sent at this frame size.
    fn streams(&mut self, size: Frames) -> Result<Self::Streams, Failure>;
    /// What the tester can do at most; `None` when nobody knows.
    fn selftest(&mut self, streams: &Self::Streams, duration: Duration) -> Result<Option<Fps>, Failure>;
    /// Runs one trial and keeps it. `None` when a signal came.
    fn trial(
        &mut self,
        streams: &Self::Streams,
        spec: TrialSpec,
        attempt: u32,
        selftest_max: Option<Fps>,
        tick: &mut dyn FnMut(f64),
    ) -> Result<Option<TrialRecord>, Failure>;
    /// The next trial is one in which an event is caused: for a simulated device, which has no command to cause it.
    fn event_comes(&mut self) {}
    /// Every trial so far.
    fn trials(&self) -> &[TrialRecord];
    /// The ports whose link is down now.
    fn links_down(&self) -> Vec<String>;
    /// The placements seen.
    fn classifier(&self) -> &PlacementClassifier;
    /// What labels depend on; repeats are the caller's to count.
    fn label_facts(&self) -> LabelFacts;
    /// The ports, for the diagnosis of a run in which nothing came back.
    fn port_states(&self) -> Vec<PortState>;
    /// The result of everything so far.
    fn result(&self, sizes: Vec<SizeResult>, warnings: Vec<Warning>, standing: Standing) -> RunResult;
}

impl Bed for Run {
    type Streams = engine::Streams;

    fn plan(&self) -> &ValidPlan {
        &self.plan
    }

    fn stopped(&self) -> bool {
        self.stop.requested()
    }

    fn link(&self) -> Option<LinkSpeed> {
        Run::link(self)
    }

    fn streams(&mut self, size: Frames) -> Result<Self::Streams, Failure> {
        Run::streams(self, size)
    }

    fn selftest(&mut self, streams: &Self::Streams, duration: Duration) -> Result<Option<Fps>, Failure> {
        Run::selftest(self, streams, duration)
    }

    fn trial(
        &mut self,
        streams: &Self::Streams,
        spec: TrialSpec,
        attempt: u32,
        selftest_max: Option<Fps>,
        tick: &mut dyn FnMut(f64),
    ) -> Result<Option<TrialRecord>, Failure> {
        Run::trial(self, streams, spec, attempt, selftest_max, tick)
    }

    fn trials(&self) -> &[TrialRecord] {
        &self.trials
    }

    fn links_down(&self) -> Vec<String> {
        Run::links_down(self)
    }

    fn classifier(&self) -> &PlacementClassifier {
        &self.rig.classifier
    }

    fn label_facts(&self) -> LabelFacts {
        LabelFacts {
            software_ports: self.rig.ends.iter().all(|e| e.port.numa_node().is_none()),
            learning_wait: self.rig.dut.is_none().then_some(engine::LEARNING_WAIT),
            several_placements: self.rig.classifier.classes() > 1,
            ..LabelFacts::default()
        }
    }

    fn port_states(&self) -> Vec<PortState> {
        let state = |(i, e): (usize, &End)| PortState {
            name: e.name.clone(),
            link_up: Some(e.port.link().up),
            foreign_samples: self.samples.get(i).map(|s| s.iter().map(samples::words).collect()).unwrap_or_default(),
        };
        self.rig.ends.iter().enumerate().map(state).collect()
    }

    fn result(&self, sizes: Vec<SizeResult>, warnings: Vec<Warning>, standing: Standing) -> RunResult {
        Run::result(self, sizes, warnings, standing)
    }
}
