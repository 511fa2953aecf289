//! The host's settings for one run, taken back after it, whatever happens to this process.

use std::{
    fs::File,
    io::{ErrorKind, Read, Write},
    os::unix::process::CommandExt,
    path::Path,
    process::{Child, ChildStdin, Command, Stdio},
    thread,
    time::Duration,
};

use failure::{Exit, Failure, Stop};
use host::{
    journal,
    tuning::{self, Applied, HostPlan},
    Roots,
};

use crate::effect::{is_applied, not_applied};

/// What is written to a guard that has nothing to take back.
const DISMISSED: u8 = b'x';

/// Settings that are in force until [`Tuned::end`]; a process of its own takes them back if this one dies.
pub struct Tuned {
    guard: Child,
    input: Option<ChildStdin>,
    /// Nobody else takes the changes back while this is there.
    held: Option<File>,
}

impl Tuned {
    /// Makes the changes of a plan; and which.
    ///
    /// # Errors
    ///
    /// (machine) when something is applied already, or a right is missing.
    pub fn begin(plan: &HostPlan) -> Result<(Self, Applied), Failure> {
        let journals = Path::new(journal::DIR);
        // Who holds it now is told by apply.
        if is_applied(journals) && !journal::is_held(&journal::path_of(journals, tuning::NAME)) {
            return Err(Failure::machine(
                "--tune: a plan is applied already: leave out --tune, or sudo linerate host revert",
            ));
        }
        let mut tuned = Self::guarded()?;
        match tuning::apply(&Roots::default(), journals, plan, None, || true) {
            Ok(applied) => {
                // There is none if nothing had to be changed.
                tuned.held = journal::hold(&journal::path_of(journals, tuning::NAME)).ok();
                Ok((tuned, applied))
            }
            Err(error) => {
                tuned.dismiss();
                Err(not_applied(&error))
            }
        }
    }

    /// Starts a guard alone: it takes everything back once its input ends.
    ///
    /// # Errors
    ///
    /// (failed) when it cannot be started.
    pub fn guarded() -> Result<Self, Failure> {
        let failed = |e: std::io::Error| Failure::failed(format!("--tune: a process to take the changes back: {e}"));
        let program = std::env::current_exe().map_err(failed)?;
        let mut guard = Command::new(program)
            .args(["host", "revert", "--runtime", "--when-input-ends"])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            // Signals of the terminal are not for it.
            .process_group(0)
            .spawn()
            .map_err(failed)?;
        let input = guard.stdin.take();
        Ok(Self { guard, input, held: None })
    }

    /// Ends a guard that has nothing to take back.
    pub fn dismissed(mut self) {
        self.dismiss();
    }

    fn dismiss(&mut self) {
        if let Some(mut input) = self.input.take() {
            // A guard that is gone needs no word.
            let _ = input.write_all(&[DISMISSED]);
        }
        let _ = self.guard.wait();
    }

    /// Takes the changes back; and which were left alone, in words.
    ///
    /// # Errors
    ///
    /// (failed) when something could not be taken back.
    pub fn end(mut self) -> Result<Vec<String>, Failure> {
        drop(self.held.take());
        let reverted = tuning::revert(&Roots::default(), Path::new(journal::DIR), true);
        if reverted.is_ok() {
            self.dismiss();
        }
        let reverted = reverted.map_err(|e| Failure::failed(format!("--tune: {e}: sudo linerate host revert")))?;
        let left = reverted.left.iter();
        let left = left.map(|(change, now)| format!("--tune: {change}: left alone: somebody made it {now} meanwhile"));
        let left = left.collect();
        match (reverted.failed.first(), reverted.stays.first()) {
            (Some((change, why)), _) => {
                Err(Failure::failed(format!("--tune: {change}: could not be taken back: {why}")))
            }
            (None, Some((path, why))) => Err(Failure::failed(format!(
                "--tune: everything is taken back, but {} cannot be removed: {why}",
                path.display()
            ))),
            (None, None) => Ok(left),
        }
    }
}

impl Drop for Tuned {
    fn drop(&mut self) {
        drop(self.held.take());
        // Its input ends: if nobody has taken the changes back, the guard does so now.
        drop(self.input.take());
        let _ = self.guard.wait();
    }
}

/// What the guard does: waits for the end of its input, then takes everything back, unless it was dismissed.
///
/// # Errors
///
/// (failed) when a journal cannot be read.
pub fn guard() -> Result<Exit, Failure> {
    // Signals are for those who measure.
    let _ignored = Stop::on_signals()?;
    let mut said = Vec::new();
    let _ = std::io::stdin().read_to_end(&mut said);
    if said.contains(&DISMISSED) {
        return Ok(Exit::Passed);
    }
    let revert = || tuning::revert(&Roots::default(), Path::new(journal::DIR), true);
    let mut reverted = revert();
    // The journal may be closed a moment after our input.
    for _ in 0..50 {
        if !matches!(&reverted, Err(e) if e.kind() == ErrorKind::WouldBlock) {
            break;
        }
        thread::sleep(Duration::from_millis(100));
        reverted = revert();
    }
    let reverted = reverted.map_err(Failure::failed)?;
    Ok(if reverted.failed.is_empty() { Exit::Passed } else { Exit::Failed })
}
