//! The command that a user gave to cause an event: in a process group of its own, ended when it takes too long, its
//! output kept short.

use std::{
    fs::File,
    io::{Read, Seek, SeekFrom},
    os::unix::process::CommandExt,
    process::{Child, Command, ExitStatus, Stdio},
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use rustix::{
    fs::{memfd_create, MemfdFlags},
    process::{kill_process_group, Pid, Signal},
};

/// The most of its output that is kept, from the end, bytes.
const MAX_OUTPUT: u64 = 300;

/// A command that is started once, while a trial runs.
pub struct EventCommand {
    argv: Vec<String>,
    timeout: Duration,
    running: Option<JoinHandle<(bool, String)>>,
}

impl EventCommand {
    /// Nothing is run yet.
    pub fn new(argv: &[String], timeout: Duration) -> Self {
        Self { argv: argv.to_vec(), timeout, running: None }
    }

    /// Starts it beside the trial, unless it was started before.
    pub fn start(&mut self) {
        if self.running.is_none() {
            let (argv, timeout) = (self.argv.clone(), self.timeout);
            self.running = Some(thread::spawn(move || ended(&argv, &[], timeout, &|| false)));
        }
    }

    /// Waits until it has ended, which its timeout bounds. Whether it ended well, and how, in words; `None` when it was
    /// never started.
    pub fn end(self) -> Option<(bool, String)> {
        let job = self.running?;
        Some(job.join().unwrap_or_else(|_| (false, "its end is not known".to_owned())))
    }
}

/// Runs a command to its end, or until it is to be given up. Errors say in words how it ended, unless it ended well.
pub fn run_first(
    argv: &[String],
    env: &[(String, String)],
    timeout: Duration,
    given_up: &dyn Fn() -> bool,
) -> Result<(), String> {
    match ended(argv, env, timeout, given_up) {
        (true, _) => Ok(()),
        (false, how) => Err(how),
    }
}

/// Whether it ended well, and how.
fn ended(argv: &[String], env: &[(String, String)], timeout: Duration, given_up: &dyn Fn() -> bool) -> (bool, String) {
    let not = |why: &str| (false, why.to_owned());
    let Some((program, args)) = argv.split_first() else { return not("no command") };
    // What it leaves running may keep the output open: a file in memory waits for nobody.
    let Ok(mut output) = memfd_create("event", MemfdFlags::CLOEXEC).map(File::from) else {
        return not("not run: no memory for its output");
    };
    let (Ok(out), Ok(err)) = (output.try_clone(), output.try_clone()) else {
        return not("not run: too many open files");
    };
    // This program itself, wherever it is.
    let own = (program == "linerate").then(std::env::current_exe).and_then(Result::ok);
    let mut command = Command::new(own.as_deref().unwrap_or(program.as_ref()));
    let env = env.iter().map(|(name, value)| (name, value));
    command.args(args).envs(env).stdin(Stdio::null()).stdout(out).stderr(err).process_group(0);
    let begun = Instant::now();
    let child = match command.spawn() {
        Ok(child) => child,
        Err(e) => return not(&format!("not run: {program}: {e}")),
    };
    let ended = wait(child, begun + timeout, given_up);
    let took = begun.elapsed().as_secs_f64();
    let status = match ended {
        Some(status) => format!("{status} after {took:.2} s"),
        None if given_up() => format!("ended by us after {took:.2} s"),
        None => format!("ended by us after {took:.2} s, beyond its time of {} s", timeout.as_secs_f64()),
    };
    let how = match tail(&mut output) {
        text if text.is_empty() => status,
        text => format!("{status}: {text}"),
    };
    (ended.is_some_and(|status| status.success()), how)
}

/// How it ended; `None` when it had to be.
fn wait(mut child: Child, until: Instant, given_up: &dyn Fn() -> bool) -> Option<ExitStatus> {
    loop {
        match child.try_wait() {
            Ok(Some(status)) => return Some(status),
            Ok(None) if Instant::now() < until && !given_up() => thread::sleep(Duration::from_millis(10)),
            _ => {
                if let Some(group) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) {
                    let _ = kill_process_group(group, Signal::KILL);
                }
                let _ = child.wait();
                return None;
            }
        }
    }
}

/// The end of what it wrote, as one line.
fn tail(output: &mut File) -> String {
    let length = output.seek(SeekFrom::End(0)).unwrap_or(0);
    let mut bytes = Vec::new();
    if output.seek(SeekFrom::Start(length.saturating_sub(MAX_OUTPUT))).is_err() {
        return String::new();
    }
    // One that goes on writing is not read for ever.
    let _ = output.take(MAX_OUTPUT).read_to_end(&mut bytes);
    let text = String::from_utf8_lossy(&bytes);
    let words: Vec<&str> = text.split_whitespace().collect();
    words.join(" ").chars().filter(|c| !c.is_control()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ended(argv: &[&str], timeout: Duration) -> String {
        let (well, how) = how(argv, timeout);
        assert_eq!(well, how.starts_with("exit status: 0"), "{how}");
        how
    }

    /// How it ended, without the time it took.
    fn timeless(how: &str) -> String {
        let words =
            how.split(' ').map(|word| if word.parse::<f64>().is_ok() && word.contains('.') { "#" } else { word });
        words.collect::<Vec<_>>().join(" ")
    }

    fn how(argv: &[&str], timeout: Duration) -> (bool, String) {
        let argv: Vec<String> = argv.iter().map(|&a| a.to_owned()).collect();
        let mut command = EventCommand::new(&argv, timeout);
        command.start();
        command.start();
        command.end().unwrap()
    }

    #[test]
    fn how_it_ended_is_said_with_the_end_of_its_output() {
        let long = Duration::from_secs(20);
        let done = ended(&["sh", "-c", "echo went  down >&2; exit 3"], long);
        insta::assert_snapshot!(timeless(&done), @"exit status: 3 after # s: went down");
        insta::assert_snapshot!(ended(&["/nowhere/at-all"], long), @"not run: /nowhere/at-all: No such file or directory (os error 2)");
        let loud = ended(&["sh", "-c", "seq 1000; printf '\\033[31mred'"], long);
        assert!(loud.len() < 400 && loud.ends_with("999 1000 [31mred"), "{loud}");
        assert_eq!(EventCommand::new(&["true".to_owned()], long).end(), None, "only a started one runs");
    }

    #[test]
    fn what_must_be_done_first_says_how_it_failed() {
        let sh = |text: &str| ["sh", "-c", text].map(str::to_owned);
        let env = [("LINERATE_CORES".to_owned(), "2".to_owned())];
        let first = |text: &str, given_up| run_first(&sh(text), &env, Duration::from_secs(20), &|| given_up);
        assert_eq!(first("test $LINERATE_CORES = 2", false), Ok(()));
        insta::assert_snapshot!(timeless(&first("echo no such core; exit 1", false).unwrap_err()), @"exit status: 1 after # s: no such core");
        insta::assert_snapshot!(timeless(&first("sleep 100", true).unwrap_err()), @"ended by us after # s");
    }

    #[test]
    fn one_that_takes_too_long_is_ended_with_its_children() {
        let ended = ended(&["sh", "-c", "sleep 100 & sleep 100"], Duration::from_millis(50));
        insta::assert_snapshot!(timeless(&ended), @"ended by us after # s, beyond its time of # s");
    }
}
