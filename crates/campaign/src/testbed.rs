//! What a campaign is run on: a measurer of trials, as RFC 9971 §3 has it.

use std::time::Duration;

use failure::Failure;
use measure::{
    diagnose::PortState,
    label::LabelFacts,
    placement::PlacementClassifier,
    result::{HostFacts, PortFacts, SelfTestPoint, Warning},
    schema::{device::DeviceRecord, lab::LabRecord},
    timeline::Timeline,
    trial::{TrialRecord, TrialSpec},
};
use units::{Fps, Frames, LinkSpeed};

/// Runs trials and judges each. It knows nothing of searches.
pub trait Testbed {
    /// Makes ready to send frames of this size or mix. The most that the tester itself can do with them, where that is
    /// known; a self-test of that takes this long.
    ///
    /// # Errors
    ///
    /// Frames that cannot be made, or a rig that fails.
    fn prepare(&mut self, size: Frames, selftest: Duration) -> Result<Option<Fps>, Failure>;

    /// Runs one trial of the frames made ready; `tick` is called now and then with the seconds since it began. `None` when
    /// a signal came.
    ///
    /// # Errors
    ///
    /// The rig fails. A trial that does not count is not an error.
    fn measure(&mut self, request: &Measurement, tick: &mut dyn FnMut(f64)) -> Result<Option<TrialRecord>, Failure>;

    /// The next trial is one in which an event is caused: for a simulated device, which no command can reset.
    fn cause_event(&mut self) {}

    /// Sends a few of the frames made ready and tells whether one came back from each way; `None` when a signal came. A
    /// device in this process always answers.
    ///
    /// # Errors
    ///
    /// The rig fails.
    fn device_answers(&mut self) -> Result<Option<bool>, Failure> {
        Ok(Some(true))
    }

    /// The part of the system under test that has ended, where that is known, and what starts it again.
    fn ended_part(&self) -> Option<String> {
        None
    }

    /// Why nothing more can be measured: a part has ended, or the link of a port is down. `None`: all is there.
    fn gone(&self) -> Option<String> {
        self.ended_part().or_else(|| {
            let down: Vec<String> = links_down(self);
            let text =
                || format!("port {}: its link went down: the peer ended or was disconnected", down.join(" and "));
            (!down.is_empty()).then(text)
        })
    }

    /// Whether this trial was the last that could be measured. A link that is down without a loss may come up again.
    fn is_last(&self, trial: &TrialRecord) -> bool {
        self.ended_part().is_some() || trial.loss_ratio() > 0.0 && !links_down(self).is_empty()
    }

    /// Whether trials come with evidence by slices.
    fn has_slices(&self) -> bool {
        false
    }

    /// The last trial over time, where it has slices.
    fn timeline(&self) -> Option<&Timeline> {
        None
    }

    /// What the result says of the testbed, as of now.
    fn facts(&self) -> TestbedFacts;

    /// The tester's ports as they are now: links, and unexpected frames of the last trial.
    fn ports(&self) -> Vec<PortState>;

    /// Whether a signal has come.
    fn stopped(&self) -> bool;
}

/// One trial that is asked for.
#[derive(Debug, Clone, Copy)]
pub struct Measurement {
    /// The trial.
    pub spec: TrialSpec,
    /// Which try at it this is, from 1.
    pub attempt: u32,
    /// The most that the tester can do with these frames, where that is known.
    pub selftest_max: Option<Fps>,
}

/// What a testbed is.
#[derive(Debug, Clone)]
pub struct TestbedFacts {
    /// The device under test.
    pub device: DeviceRecord,
    /// The lab between the ports, where Linerate brought one up.
    pub lab: Option<LabRecord>,
    /// The machine.
    pub host: HostFacts,
    /// The tester's ports.
    pub ports: Vec<PortFacts>,
    /// The speed used for percentages: given, or reported by the ports.
    pub link: Option<LinkSpeed>,
    /// What labels depend on; the controller counts repeats.
    pub labels: LabelFacts,
    /// Placements of the cores seen so far.
    pub placements: PlacementClassifier,
    /// Self-tests so far.
    pub selftest: Vec<SelfTestPoint>,
    /// What a reader of the result must know.
    pub warnings: Vec<Warning>,
}

/// The ports whose link is down.
fn links_down<T: Testbed + ?Sized>(testbed: &T) -> Vec<String> {
    let down = |port: PortState| (port.link_up == Some(false)).then_some(port.name);
    testbed.ports().into_iter().filter_map(down).collect()
}
