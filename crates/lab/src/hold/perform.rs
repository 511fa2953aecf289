//! Carrying out steps.

use std::{
    fs,
    time::{Duration, Instant},
};

use failure::{Failure, Stop};

use super::programs::Programs;
use crate::step::{Program, Question, Step};

/// How often a question is asked until it is answered right.
const AGAIN: Duration = Duration::from_millis(20);

/// Of the time that a right answer may take, the part after which the other side is made to try again.
const BEFORE_AGAIN: u32 = 6;

/// Runs a step. What it was in words, where a user wants to read it.
///
/// # Errors
///
/// What could not be done, in one line, with what mends it.
pub fn one_step(step: &Step, programs: &mut Programs, stop: &Stop) -> Result<Option<String>, Failure> {
    match step {
        Step::Write { path, text } => {
            fs::write(path, text).map_err(|e| Failure::machine(format!("{path}: {e}")))?;
            Ok(None)
        }
        Step::Run(line) => {
            let out = programs.output(line)?;
            match out.succeeded {
                true => Ok(None),
                // A program that has ended knows better why.
                false => {
                    Err(Failure::machine(programs.dead().unwrap_or_else(|| format!("{line}: {}", out.last_line()))))
                }
            }
        }
        Step::Start(Program { name, .. }) => {
            let Step::Start(program) = step else { return Ok(None) };
            programs.start(program)?;
            Ok(Some(format!("{name} started")))
        }
        Step::Await(question) => {
            wait_for(question, programs, stop)?;
            Ok(Some(question.what.clone()))
        }
    }
}

fn wait_for(question: &Question, programs: &mut Programs, stop: &Stop) -> Result<(), Failure> {
    let until = Instant::now() + question.within;
    let mut again = Some((Instant::now() + question.within / BEFORE_AGAIN, &question.again));
    loop {
        let out = programs.output(&question.line)?;
        if question.want.is_met(out.succeeded, &out.printed) {
            return Ok(());
        }
        if let Some(dead) = programs.dead() {
            return Err(Failure::machine(format!("{dead} before this held: {}", question.what)));
        }
        if stop.requested() {
            return Err(Failure::stopped("stopped before the lab was up"));
        }
        if let Some(why) = programs.hopeless(&question.logs) {
            return Err(Failure::machine(format!("{why}, so this cannot hold: {}", question.what)));
        }
        if Instant::now() >= until {
            let lacks = question.want.lacks(&out.printed);
            let answer = if lacks.is_empty() || !out.succeeded { out.last_line() } else { lacks.join(", ") };
            let mut parts = vec![format!(
                "not within {} s: {}; {} answers: {answer}",
                question.within.as_secs(),
                question.what,
                question.line,
            )];
            parts.extend(Some(question.remedy.clone()).filter(|remedy| !remedy.is_empty()));
            // The logs go with the lab.
            parts.extend(question.logs.iter().filter_map(|name| programs.last_line(name)));
            parts.extend((!question.logs.is_empty()).then(|| "--logs DIR keeps the logs".to_owned()));
            return Err(Failure::machine(parts.join("; ")));
        }
        if let Some((_, lines)) = again.take_if(|(at, _)| Instant::now() >= *at) {
            for line in lines {
                programs.output(line)?;
            }
        }
        std::thread::sleep(AGAIN);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{line::CommandLine, step::Want};

    fn asks(line: &str, again: &[String]) -> Question {
        Question {
            what: "it is there".to_owned(),
            line: CommandLine::words(line),
            want: Want::Success,
            within: Duration::from_secs(3),
            remedy: String::new(),
            logs: Vec::new(),
            only_while_measured: false,
            again: again.iter().map(|line| CommandLine::words(line)).collect(),
        }
    }

    #[test]
    fn a_wrong_answer_makes_the_other_side_try_again_once() {
        let dir = tempfile::tempdir().unwrap();
        let file = |name: &str| dir.path().join(name).display().to_string();
        let mut programs = Programs::new(&dir.path().display().to_string());
        let stop = Stop::simulated(false);
        let start = Instant::now();
        let touched =
            asks(&format!("test -e {}", file("a")), &[format!("mkdir {}", file("b")), format!("touch {}", file("a"))]);
        wait_for(&touched, &mut programs, &stop).unwrap();
        assert!(start.elapsed() >= Duration::from_millis(500) && dir.path().join("b").is_dir(), "only after a while");

        // Never right: the second mkdir would fail, and does not come.
        let wrong = asks("false", &[format!("mkdir {}", file("c")), format!("mktemp -p {}", file("c"))]);
        wait_for(&wrong, &mut programs, &stop).unwrap_err();
        assert_eq!(fs::read_dir(dir.path().join("c")).unwrap().count(), 1);
        // Right at once: nothing is done.
        wait_for(&asks("true", &[format!("mkdir {}", file("d"))]), &mut programs, &stop).unwrap();
        assert!(!dir.path().join("d").exists());
    }
}
