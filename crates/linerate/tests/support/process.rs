//! Child processes that end with their owner.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{kill_process, Pid, Signal};

use super::Netns;

/// A child process with its output in a file. Dropping it ends the process.
///
/// It is started through `setpriv --pdeathsig KILL`, so it also ends when the thread that started it does: nothing
/// stays even if the test process is killed and no destructor runs.
#[derive(Debug)]
pub struct Process {
    name: String,
    child: Child,
    stdin: Option<ChildStdin>,
    log: PathBuf,
}

impl Process {
    /// Starts `argv` (in `netns` if given) with `env` added, its output going to `log`.
    pub fn spawn(argv: &[String], netns: Option<&Netns>, env: &[(&str, &Path)], log: &Path) -> Self {
        let name = argv.first().cloned().unwrap_or_default();
        let out = File::create(log).unwrap_or_else(|e| panic!("{}: {e}", log.display()));
        let err = out.try_clone().expect("a log file can be cloned");
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "KILL", "--"]);
        if let Some(netns) = netns {
            command.args(["ip", "netns", "exec", netns.name()]);
        }
        command.args(argv).envs(env.iter().copied()).env("PATH", path_with_sbin());
        command.stdin(Stdio::piped()).stdout(out).stderr(err);
        let mut child = command.spawn().unwrap_or_else(|e| panic!("cannot start {name}: {e}"));
        let stdin = child.stdin.take();
        Self { name, child, stdin, log: log.to_owned() }
    }

    /// The process's id.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Whether it still runs.
    pub fn alive(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    /// Everything it has written.
    pub fn output(&self) -> String {
        String::from_utf8_lossy(&std::fs::read(&self.log).unwrap_or_default()).into_owned()
    }

    /// The end of its output, for an error message.
    pub fn tail(&self) -> String {
        tail(&self.output())
    }

    /// Writes one line to its standard input.
    pub fn say(&mut self, line: &str) {
        let sent = self.stdin.as_mut().map(|pipe| writeln!(pipe, "{line}").and_then(|()| pipe.flush()));
        assert!(matches!(sent, Some(Ok(()))), "{} does not take {line:?}: {sent:?}\n{}", self.name, self.tail());
    }

    /// Waits until its output satisfies `ready`; panics with the output's tail when `limit` passes or it ends first.
    #[track_caller]
    pub fn wait_output(&mut self, what: &str, limit: Duration, ready: impl Fn(&str) -> bool) {
        let end = Instant::now() + limit;
        loop {
            let alive = self.alive();
            if ready(&self.output()) {
                return;
            }
            let state = if alive { "still runs" } else { "has ended" };
            assert!(alive && Instant::now() < end, "{}: no {what} ({state}):\n{}", self.name, self.tail());
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Sends a signal by name (`TERM`, `STOP`, `CONT`, `INT`).
    pub fn signal(&self, signal: &str) {
        send_signal(self.id(), signal);
    }

    /// Stops it with SIGSTOP for `time`, then lets it go on.
    pub fn freeze_for(&self, time: Duration) {
        self.signal("STOP");
        std::thread::sleep(time);
        self.signal("CONT");
    }

    /// Asks it to end (SIGTERM), waits up to `grace`, then kills it.
    pub fn end(&mut self, grace: Duration) -> Option<ExitStatus> {
        drop(self.stdin.take());
        if self.alive() {
            self.signal("TERM");
        }
        self.wait_end(grace)
    }

    /// Waits up to `grace` for it to end by itself, then kills it.
    pub fn wait_end(&mut self, grace: Duration) -> Option<ExitStatus> {
        let end = Instant::now() + grace;
        while self.alive() && Instant::now() < end {
            std::thread::sleep(Duration::from_millis(10));
        }
        let _ = self.child.kill();
        self.child.wait().ok()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.end(Duration::from_millis(1500));
    }
}

/// Sends `signal` to the process `id`, which the caller started.
pub fn send_signal(id: u32, signal: &str) {
    // By a system call: starting a program for it would take the tester's core away in the middle of a trial.
    let number = match signal {
        "STOP" => Signal::STOP,
        "CONT" => Signal::CONT,
        "HUP" => Signal::HUP,
        "INT" => Signal::INT,
        "TERM" => Signal::TERM,
        "KILL" => Signal::KILL,
        other => panic!("no signal {other}"),
    };
    if let Some(pid) = i32::try_from(id).ok().and_then(Pid::from_raw) {
        let _ = kill_process(pid, number);
    }
}

/// Runs a short command to its end and returns its standard output; panics with its error output if it fails.
#[track_caller]
pub fn run(argv: &[&str]) -> String {
    let [program, args @ ..] = argv else { panic!("no command") };
    let out = Command::new(program).args(args).env("PATH", path_with_sbin()).stdin(Stdio::null()).output();
    let out = out.unwrap_or_else(|e| panic!("cannot run {argv:?}: {e}"));
    assert!(out.status.success(), "{argv:?}: {}\n{}", out.status, String::from_utf8_lossy(&out.stderr));
    String::from_utf8_lossy(&out.stdout).into_owned()
}

/// Asks again and again until `check` says yes; panics when `limit` passes.
#[track_caller]
pub fn wait_until(what: &str, limit: Duration, mut check: impl FnMut() -> bool) {
    let end = Instant::now() + limit;
    while !check() {
        assert!(Instant::now() < end, "{what}: not within {limit:?}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

pub fn path_with_sbin() -> String {
    std::env::var("PATH").unwrap_or_default() + ":/usr/sbin:/sbin"
}

pub fn tail(text: &str) -> String {
    let lines: Vec<&str> = text.lines().collect();
    let start = lines.len().saturating_sub(25);
    lines.get(start..).unwrap_or_default().join("\n")
}
