//! How a benchmark ended, and what its reader should know.

use failure::Exit;
use measure::{
    result::{Standing, Warning, WarningKind},
    trial::TrialRecord,
};

use crate::{controller::Controller, testbed::Testbed};

impl<T: Testbed> Controller<'_, T> {
    pub(crate) fn warnings(&self, quick: bool) -> Vec<Warning> {
        let mut warnings = Vec::new();
        let mut warn = |kind, text: String| warnings.push(Warning { kind, text });
        if self.testbed.stopped() {
            warn(WarningKind::Stopped, "stopped before the end: what was measured until then is here".to_owned());
        }
        if quick {
            let text = "quick: trials are shorter than the standard's; to publish use --plan NAME without --quick";
            warn(WarningKind::ShortTrials, text.to_owned());
        }
        let classes = self.testbed.facts().placements.classes();
        if classes > 1 {
            warn(
                WarningKind::PlacementChanged,
                match self.by_slices() {
                    true => format!(
                        "the host moved the cores in use between {classes} placements; each interval covers all that its \
                         trials met"
                    ),
                    false => format!(
                        "the host moved the cores in use between {classes} placements; each answer is from one of them, \
                         and figures of different placements do not compare"
                    ),
                },
            );
        }
        for disagreement in port_disagreements(&self.trials) {
            warn(WarningKind::PortCounters, disagreement);
        }
        warnings
    }
}

/// Ports whose own counters of frames out or in differ from ours in valid trials: one line each.
fn port_disagreements(trials: &[TrialRecord]) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for t in trials.iter().filter(|t| t.valid()) {
        for d in &t.directions {
            // Learning frames and foreign ones pass the port too; fewer than we counted never do.
            if let Some(tx) = d.port_tx.filter(|&tx| tx > 0 && tx < d.sent) {
                let line = format!(
                    "port {} says it sent fewer frames than it took from the tester (trial {}: {tx} of {})",
                    d.from, t.number, d.sent
                );
                if !lines.iter().any(|l| l.starts_with(&format!("port {} ", d.from))) {
                    lines.push(line);
                }
            }
        }
    }
    lines
}

/// The exit code of a result.
pub fn exit_of(standing: Standing) -> Exit {
    match standing {
        Standing::CriterionMet | Standing::Completed | Standing::NotDeviceLimit => Exit::Passed,
        Standing::CriterionMissed | Standing::Interrupted => Exit::Failed,
        Standing::NotTrustworthy => Exit::Untrusted,
        Standing::Stopped => Exit::Stopped,
    }
}
