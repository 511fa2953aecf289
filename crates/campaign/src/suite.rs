//! A suite: several plans, each run in a process of its own, one after the other.

use std::path::{Path, PathBuf};

use failure::{Exit, Failure, Stop};
use measure::result::RunResult;

use crate::{job::Job, job_answer::JobAnswer, process::Launcher};

/// One run of a suite.
#[derive(Debug, Clone)]
pub struct Member {
    /// Its name, which becomes part of file names.
    pub name: String,
    /// What is run.
    pub job: Job,
}

/// Shows a suite, and keeps what each run gave.
pub trait SuiteView {
    /// Run `number` of `of`, counted from 1, begins.
    fn begins(&mut self, number: usize, of: usize, name: &str);

    /// A run has ended: shows its result and writes its files.
    ///
    /// # Errors
    ///
    /// A file that cannot be written; the suite ends.
    fn ended(&mut self, name: &str, answer: &JobAnswer) -> Result<(), Failure>;
}

/// Runs all members, or until one shows that the next would fail for the same reason. The worst exit code, and every result.
///
/// # Errors
///
/// What the view could not do.
pub fn run(
    members: &[Member],
    launcher: &Launcher,
    stop: &Stop,
    view: &mut dyn SuiteView,
) -> Result<(Exit, Vec<RunResult>), Failure> {
    let (mut exit, mut results) = (Exit::Passed, Vec::new());
    for (number, Member { name, job }) in (1..).zip(members) {
        view.begins(number, members.len(), name);
        let answer = launcher.run(job, stop);
        view.ended(name, &answer)?;
        let code = answer.exit();
        exit = worst_exit(exit, code);
        results.extend(answer.result);
        if stop.requested() || exit == Exit::Stopped {
            return Ok((Exit::Stopped, results));
        }
        if matches!(code, Exit::Usage | Exit::Machine) {
            // What is wrong with the command or the machine is wrong for the next run, too.
            break;
        }
    }
    Ok((exit, results))
}

/// The file of one run: `dir/all.json` becomes `dir/all.RUN.json`.
pub fn path_for_run(path: &Path, run: &str) -> PathBuf {
    let name = match (path.file_stem(), path.extension()) {
        (Some(stem), Some(extension)) => {
            format!("{}.{run}.{}", stem.to_string_lossy(), extension.to_string_lossy())
        }
        _ => format!("{}.{run}", path.file_name().unwrap_or_default().to_string_lossy()),
    };
    path.with_file_name(name)
}

/// The exit code of all: stopped goes before what is wrong, that before inconclusive, that before failed.
pub fn worst_exit(so_far: Exit, this: Exit) -> Exit {
    let worst_first = [Exit::Stopped, Exit::Machine, Exit::Usage, Exit::Untrusted, Exit::Failed];
    worst_first.into_iter().find(|exit| [so_far, this].contains(exit)).unwrap_or(Exit::Passed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::tests::{job, launcher};

    /// The numbers of the runs that began.
    #[derive(Default)]
    struct Begun(Vec<usize>);

    impl SuiteView for Begun {
        fn begins(&mut self, number: usize, _: usize, _: &str) {
            self.0.push(number);
        }

        fn ended(&mut self, _: &str, _: &JobAnswer) -> Result<(), Failure> {
            Ok(())
        }
    }

    #[test]
    fn a_suite_goes_on_after_a_failure_and_ends_at_a_signal() {
        let members = ["a", "b"].map(|name| Member { name: name.to_owned(), job: job() });
        for (stopped, exit, begun) in [(false, Exit::Failed, vec![1, 2]), (true, Exit::Stopped, vec![1])] {
            let mut view = Begun::default();
            let ran = run(&members, &launcher("/bin/false"), &Stop::simulated(stopped), &mut view);
            assert_eq!(ran.unwrap(), (exit, Vec::new()));
            assert_eq!(view.0, begun);
        }
    }

    #[test]
    fn each_run_has_files_of_its_own() {
        let of = |file: &str| path_for_run(Path::new(file), "router-u1").to_string_lossy().into_owned();
        assert_eq!(of("out/all.json"), "out/all.router-u1.json");
        assert_eq!(of("t"), "t.router-u1");
        assert_eq!(of("o.j"), "o.router-u1.j");
    }

    #[test]
    fn the_worst_run_decides() {
        use Exit::{Failed, Passed, Stopped, Untrusted};
        let all = |exits: &[Exit]| exits.iter().fold(Passed, |exit, &this| worst_exit(exit, this));
        assert_eq!(all(&[Passed, Passed]), Passed);
        assert_eq!(all(&[Passed, Failed, Passed]), Failed);
        assert_eq!(all(&[Untrusted, Failed]), Untrusted);
        assert_eq!(all(&[Stopped, Untrusted]), Stopped);
        assert_eq!(all(&[Failed, Exit::Usage, Exit::Machine]), Exit::Machine);
    }
}
