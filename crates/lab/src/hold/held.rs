//! A lab that is up.

use std::time::{Duration, Instant};

use super::{programs::Programs, setup};
use crate::{
    build::Build,
    protocol::{Spec, Status},
    step::{Program, Step},
};

/// A lab that is up.
pub(super) struct Held {
    pub(super) spec: Spec,
    pub(super) build: Build,
    pub(super) programs: Programs,
    pub(super) started: Instant,
    pub(super) up: Instant,
    pub(super) versions: Vec<String>,
    /// The command that runs another one inside.
    pub(super) exec: String,
}

impl Held {
    pub(super) fn status(&mut self) -> Status {
        let Spec { name, topology, options, .. } = self.spec.clone();
        let commands = self.build.steps.iter().filter_map(|step| match step {
            Step::Run(line) | Step::Start(Program { line, .. }) => Some(line.to_string()),
            Step::Await(_) | Step::Write { .. } => None,
        });
        Status {
            name,
            topology: self.build.options.applied_to(topology),
            options,
            cpus: self.build.cpus.clone(),
            accelerator: self.build.machines.first().map(|machine| machine.accelerator.to_owned()),
            tester: self.build.tester.clone(),
            holder: setup::own_host_pid(),
            up_s: self.up.elapsed().as_secs(),
            ready_ms: millis(self.up.duration_since(self.started)),
            programs: self.programs.status(),
            commands: commands.collect(),
            versions: self.versions.clone(),
            on: None,
        }
    }
}

pub(super) fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
