//! What a job answers.

use failure::{Exit, Failure};
use measure::result::RunResult;
use serde::{Deserialize, Serialize};

use crate::ending::exit_of;

/// What came of a job. Both may be there: a rig that failed half way says so after what it measured before.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct JobAnswer {
    /// What was measured, if anything.
    pub result: Option<RunResult>,
    /// What ended the job before its end.
    pub failure: Option<Failure>,
}

impl JobAnswer {
    /// The exit code of a process that answers this.
    pub fn exit(&self) -> Exit {
        match (&self.failure, &self.result) {
            (Some(failure), _) => failure.exit,
            (None, Some(result)) => exit_of(result.standing),
            (None, None) => Exit::Failed,
        }
    }
}
