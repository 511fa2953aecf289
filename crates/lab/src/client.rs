//! Labs from outside: started, found, asked, ended.
//!
//! A lab is found by a name in the abstract name space of sockets, `linerate-lab/UID/NAME`: two labs cannot have the same
//! name, and a lab that was killed leaves no file.

use std::{
    fs,
    io::{BufRead, BufReader, ErrorKind, Read, Write},
    os::{
        fd::OwnedFd,
        linux::net::SocketAddrExt,
        unix::{
            net::{SocketAddr, UnixListener, UnixStream},
            process::CommandExt,
        },
    },
    path::Path,
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use failure::{Failure, Stop};
use nix::sys::socket::{getsockopt, sockopt::PeerCredentials};
use rustix::{
    event::{poll, PollFd, PollFlags, Timespec},
    process::getuid,
};

use crate::{
    hidden,
    hold::SOCKET,
    protocol::{Answer, Ask, Progress, Spec, Status, LONGEST},
    silent, topology,
};

/// The hidden command of the process that holds a lab.
pub const HOLD_COMMAND: &str = "lab-hold";

/// Set for a process that runs inside a lab: the lab's name.
pub const INSIDE: &str = "LINERATE_IN_LAB";

// Each is longer than the limit of the lab itself, so that its own message is seen, with the command that did not end.
/// How long a lab may take to answer: it reads counters of programs, or runs a command for up to 20 s.
const ANSWER: Duration = Duration::from_secs(45);
/// How long a question may take to be put.
const PUT: Duration = Duration::from_secs(20);
/// How long a list of labs waits for each.
const SOON: Duration = Duration::from_secs(3);
/// How long the lab may take to become what was asked for: the driver of a disk of the user's may take 300 s.
const CHECK: Duration = Duration::from_secs(400);
/// How long something may take to fail and to come back: a machine boots meanwhile, and each of its questions has its own limit.
const FAULT: Duration = LONGEST;
/// How long it may take to answer that it ends: it may be busy with another question.
const END_ANSWER: Duration = Duration::from_secs(10);
/// How long it may take to end: one on another host ends there first.
const END: Duration = Duration::from_secs(15);
/// Longest answer.
const MAX_ANSWER: u64 = 1 << 20;
/// Start of the names of all labs, as `/proc/net/unix` has them.
const PREFIX: &str = "linerate-lab/";

fn socket_of(name: &str) -> String {
    format!("{PREFIX}{}/{name}", getuid().as_raw())
}

fn address(name: &str) -> Result<SocketAddr, Failure> {
    SocketAddr::from_abstract_name(socket_of(name))
        .map_err(|_| Failure::usage(format!("--name {name:.40}: must be shorter")))
}

/// Checks the name of a lab.
///
/// # Errors
///
/// (usage) for a name that is not a short word.
pub fn check_name(name: &str) -> Result<(), Failure> {
    match topology::is_name(name) {
        true => Ok(()),
        false => Err(Failure::usage(format!("--name {name:?}: must be {}", topology::NAME_RULE))),
    }
}

/// The failure of a second lab of one name.
pub fn is_up(name: &str) -> Failure {
    Failure::usage(format!("a lab named {name} is up: end it with linerate lab down {name}, or choose another --name"))
}

/// The names of this user's labs that are up.
pub fn running() -> Vec<String> {
    let own = format!("@{PREFIX}{}/", getuid().as_raw());
    let text = fs::read_to_string("/proc/net/unix").unwrap_or_default();
    let mut names: Vec<String> =
        text.lines().filter_map(|line| line.split_once(&own)).map(|(_, name)| name.trim().to_owned()).collect();
    names.sort();
    names.dedup();
    names
}

/// A lab that is coming up: the process that started it reads its progress.
pub struct Starting {
    child: Child,
    lines: BufReader<std::process::ChildStdout>,
    own: bool,
}

/// Starts a lab. If `bound`, the lab ends with the calling thread.
///
/// # Errors
///
/// (usage) when a lab has this name; (machine) when namespaces cannot be made.
pub fn start(spec: &Spec, bound: bool) -> Result<Starting, Failure> {
    check_name(&spec.name)?;
    let listener = UnixListener::bind_addr(&address(&spec.name)?).map_err(|e| match e.kind() {
        ErrorKind::AddrInUse => is_up(&spec.name),
        _ => Failure::machine(format!("lab {}: {e}", spec.name)),
    })?;
    let text = serde_json::to_string(spec).map_err(Failure::failed)?;
    let mut argv: Vec<&str> = Vec::new();
    if bound {
        argv.extend(["setpriv", "--pdeathsig", "KILL", "--"]);
    }
    // The process here of a lab on another host only speaks with that one, as this user.
    if spec.on.is_none() {
        argv.extend(["unshare", "--net", "--pid", "--mount", "--fork", "--kill-child"]);
        if !getuid().is_root() {
            argv.extend(["--user", "--map-root-user"]);
        }
        argv.push("--");
    }
    argv.extend([&spec.linerate, HOLD_COMMAND, &text]);
    let mut command = Command::new(argv[0]);
    command.args(&argv[1..]).stdin(OwnedFd::from(listener)).stdout(Stdio::piped()).stderr(Stdio::piped());
    // A group of its own is safe from Ctrl-C and from a terminal that closes. The programs are each a session (`hold/programs.rs`);
    // what asks them is in the session of the tester, which waits for its answers.
    command.process_group(0);
    let mut child = command
        .spawn()
        .map_err(|e| Failure::machine(format!("cannot run {} (Debian package util-linux): {e}", argv[0])))?;
    let stdout = child.stdout.take().ok_or_else(|| Failure::failed("a lab without output"))?;
    Ok(Starting { child, lines: BufReader::new(stdout), own: bound })
}

impl Starting {
    /// Waits for the lab and calls `done` with each step and the milliseconds since the start.
    ///
    /// # Errors
    ///
    /// What did not come up. Nothing is left of the lab then.
    pub fn wait(mut self, stop: &Stop, done: &mut dyn FnMut(&str, u64)) -> Result<Up, Failure> {
        loop {
            if stop.requested() {
                self.end();
                return Err(Failure::stopped("stopped before the lab was up; nothing is left of it"));
            }
            if self.lines.buffer().is_empty() && !self.has_news() {
                continue;
            }
            let mut line = String::new();
            let read = self.lines.read_line(&mut line).unwrap_or(0);
            if read == 0 {
                return Err(self.died());
            }
            match serde_json::from_str(&line) {
                Ok(Progress::Done { what, at_ms }) => done(&what, at_ms),
                Ok(Progress::Up(status)) => return Ok(Up { status: *status, child: self.own.then_some(self.child) }),
                Ok(Progress::Failed { text, exit }) => {
                    self.end();
                    return Err(Failure { exit, text });
                }
                Err(_) => {}
            }
        }
    }

    /// Whether the lab has said something, or has ended; waits a moment for it, so that a stop is seen meanwhile.
    fn has_news(&self) -> bool {
        let mut ready = [PollFd::new(self.lines.get_ref(), PollFlags::IN)];
        let polled = poll(&mut ready, Some(&Timespec { tv_sec: 0, tv_nsec: 50_000_000 }));
        polled.is_ok_and(|n| n > 0)
    }

    fn end(&mut self) {
        // The holder ends by itself after a failure; killing the outer process ends it with everything in it.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// Why the lab did not start: the outer process says it, when namespaces cannot be made.
    fn died(&mut self) -> Failure {
        let mut text = String::new();
        if let Some(errors) = self.child.stderr.take() {
            let _ = errors.take(1 << 16).read_to_string(&mut text);
        }
        self.end();
        let line = text.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or("it ended at once").to_owned();
        let remedy =
            "a lab needs root, or user namespaces (sysctl kernel.unprivileged_userns_clone user.max_user_namespaces)";
        Failure::machine(format!("the lab did not start: {line}: {remedy}"))
    }
}

/// A lab that is up.
pub struct Up {
    /// What it is.
    pub status: Status,
    child: Option<Child>,
}

impl Up {
    /// Ends a lab that belongs to this process, and waits until it is gone.
    pub fn down(&mut self) {
        let ended = down(&self.status.name);
        if let Some(mut child) = self.child.take() {
            if ended.is_err() {
                // With it the kernel ends all that the lab has started.
                let _ = child.kill();
            }
            let _ = child.wait();
        }
    }
}

impl Drop for Up {
    fn drop(&mut self) {
        if self.child.is_some() {
            self.down();
        }
    }
}

/// The lab of this name; without one, the only lab that is up.
///
/// # Errors
///
/// (machine) when none is up, (usage) when several are.
pub fn named(name: Option<&str>) -> Result<String, Failure> {
    let labs = running();
    match (name, labs.as_slice()) {
        (Some(name), _) if labs.iter().any(|lab| lab == name) => Ok(name.to_owned()),
        (Some(name), []) => Err(Failure::machine(format!(
            "no lab {name} is up, nor another: linerate lab up TOPOLOGY --name {name} (linerate lab list)"
        ))),
        (Some(name), _) => Err(Failure::machine(format!("no lab {name} is up; up here: {}", labs.join(", ")))),
        (None, [one]) => Ok(one.clone()),
        (None, []) => {
            Err(Failure::machine("no lab is up: bring one up with linerate lab up TOPOLOGY (linerate lab list)"))
        }
        (None, _) => Err(Failure::usage(format!("several labs are up: name one of {}", labs.join(", ")))),
    }
}

/// Asks a lab from outside.
///
/// # Errors
///
/// (machine) when it does not answer.
pub fn ask(name: &str, question: &Ask) -> Result<Answer, Failure> {
    let wait = wait_of(question);
    if wait > ANSWER {
        // One that answers nothing at all is found out sooner.
        ask_within(name, &Ask::Status, ANSWER)?;
    }
    ask_within(name, question, wait)
}

fn ask_within(name: &str, question: &Ask, wait: Duration) -> Result<Answer, Failure> {
    put(name, question, wait)?.map_err(|e| match e.kind() {
        // It answers, and says why not.
        ErrorKind::Other => Failure::machine(format!("lab {name}: {e}")),
        ErrorKind::WouldBlock | ErrorKind::TimedOut => Failure::machine(format!(
            "lab {name} does not answer within {} s: it is coming up, or hangs: linerate lab down {name} ends it",
            wait.as_secs()
        )),
        _ => gone(name, &e),
    })
}

/// The failure of a lab that is not there any more.
fn gone(name: &str, e: &std::io::Error) -> Failure {
    Failure::machine(format!("lab {name} is gone ({e}): somebody took it down, or its first process was killed"))
}

/// Puts a question. The inner error is of the lab's answer.
fn put(name: &str, question: &Ask, wait: Duration) -> Result<std::io::Result<Answer>, Failure> {
    let fail = |e: std::io::Error| gone(name, &e);
    let stream = UnixStream::connect_addr(&address(name)?).map_err(fail)?;
    // A name of this form may be anybody's: only what this user or root started is believed.
    let peer = getsockopt(&stream, PeerCredentials).map_err(|e| fail(e.into()))?;
    if peer.uid() != getuid().as_raw() && peer.uid() != 0 {
        return Err(Failure::machine(format!("lab {name}: another user has this name")));
    }
    Ok(exchange(&stream, question, wait))
}

/// Asks the lab that this process is inside of.
///
/// # Errors
///
/// (machine) when it does not answer.
pub fn ask_inside(question: &Ask) -> Result<Answer, Failure> {
    if let Some(name) = far_lab() {
        return ask(&name, question);
    }
    let name = std::env::var(INSIDE).unwrap_or_else(|_| "of this process".to_owned());
    let fail = |e: std::io::Error| match e.kind() {
        ErrorKind::Other => Failure::machine(format!("lab {name}: {e}")),
        ErrorKind::WouldBlock | ErrorKind::TimedOut => Failure::machine(format!("lab {name} does not answer: {e}")),
        _ => gone(&name, &e),
    };
    let stream = UnixStream::connect(SOCKET).map_err(fail)?;
    exchange(&stream, question, wait_of(question)).map_err(fail)
}

/// The lab that this process measures, if it runs on another host: it has no directories of its own here.
fn far_lab() -> Option<String> {
    let name = std::env::var(INSIDE).ok()?;
    (!Path::new(SOCKET).exists()).then_some(name)
}

/// How long the answer to a question may take.
fn wait_of(question: &Ask) -> Duration {
    match question {
        Ask::Fault { .. } => FAULT,
        Ask::Check | Ask::CheckConnected => CHECK,
        _ => ANSWER,
    }
}

fn exchange(stream: &UnixStream, question: &Ask, wait: Duration) -> std::io::Result<Answer> {
    stream.set_read_timeout(Some(wait))?;
    stream.set_write_timeout(Some(PUT))?;
    let text = serde_json::to_string(question)?;
    let mut out = stream;
    out.write_all(format!("{text}\n").as_bytes())?;
    let mut line = String::new();
    BufReader::new(stream.take(MAX_ANSWER)).read_line(&mut line)?;
    match serde_json::from_str(&line)? {
        Answer::Refused(why) => Err(std::io::Error::other(why)),
        answer => Ok(answer),
    }
}

/// The status of a lab.
///
/// # Errors
///
/// As [`ask`].
pub fn status(name: &str) -> Result<Status, Failure> {
    status_within(name, ANSWER)
}

/// The same of one lab among several: one that is still coming up is not waited for.
///
/// # Errors
///
/// As [`ask`].
pub fn status_soon(name: &str) -> Result<Status, Failure> {
    status_within(name, SOON)
}

fn status_within(name: &str, wait: Duration) -> Result<Status, Failure> {
    match ask_within(name, &Ask::Status, wait)? {
        Answer::Status(status) => Ok(*status),
        _ => Err(Failure::failed(format!("lab {name}: another answer than its status"))),
    }
}

/// Ends a lab and waits until it is gone. The processes that had to be killed: none if it answers.
///
/// # Errors
///
/// (machine) when it is gone, another's or not found, (failed) when it does not end.
pub fn down(name: &str) -> Result<Vec<u32>, Failure> {
    let holder = match put(name, &Ask::Down, END_ANSWER)? {
        Ok(Answer::Ending(holder)) => holder,
        // Stopped, or busy for too long.
        Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => return end_silent(name),
        Err(e) => return Err(Failure::machine(format!("lab {name}: {e}"))),
        Ok(_) => return Err(Failure::failed(format!("lab {name}: another answer than its end"))),
    };
    let until = Instant::now() + END;
    // Gone, or a dead process that its parent has yet to notice.
    let alive = || {
        let stat = fs::read_to_string(format!("/proc/{holder}/stat")).unwrap_or_default();
        stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with(['Z', 'X']))
    };
    // The outer process has the name for a moment longer.
    while alive() || running().iter().any(|lab| lab == name) {
        if Instant::now() > until {
            return Err(Failure::failed(format!(
                "lab {name} does not end: kill -9 {holder} ends it, with all it started"
            )));
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    Ok(Vec::new())
}

/// Ends a lab that does not answer: the kernel ends all in it with its first process.
fn end_silent(name: &str) -> Result<Vec<u32>, Failure> {
    let killed = silent::kill(&socket_of(name));
    let until = Instant::now() + END;
    while running().iter().any(|lab| lab == name) {
        if killed.is_empty() || Instant::now() > until {
            return Err(Failure::machine(format!("lab {name} does not answer, and its first process was not found")));
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    Ok(killed)
}

/// Checks that all programs of a lab run, before anything waits for them.
///
/// # Errors
///
/// (machine) the first that has ended, and what starts it again.
pub fn check_running(status: &Status) -> Result<(), Failure> {
    let Some((program, how)) = status.programs.iter().find_map(|p| Some((p, p.ended.as_ref()?))) else { return Ok(()) };
    let (lab, name) = (&status.name, &program.name);
    let guest = status.topology.guest.iter().any(|guest| guest.name == *name);
    let again = match name.as_str() {
        "vswitchd" if !status.topology.switch.is_empty() => format!("linerate lab fault --lab {lab} restart-switch"),
        _ if guest && status.options.guests.accelerator().is_none() => {
            format!("linerate lab fault --lab {lab} restart:{name}")
        }
        _ => format!("linerate lab down {lab}, then bring it up again"),
    };
    Err(Failure::machine(format!("lab {lab}: {name} has ended ({how}), so nothing can be measured: {again}")))
}

/// The command that runs this program with these arguments inside a lab's network and mounts. If `bound`, it ends at once with
/// the thread that starts it: nobody reads its result then.
///
/// # Errors
///
/// (machine) when this program cannot be found; (usage) for a file that is not seen inside.
pub fn command_in(status: &Status, arguments: &[std::ffi::OsString], bound: bool) -> Result<Command, Failure> {
    let program = std::env::current_exe().map_err(|e| Failure::machine(format!("where this program is: {e}")))?;
    let here = std::env::current_dir().unwrap_or_else(|_| Path::new("/").to_owned());
    if status.on.is_some() {
        let mut command = Command::new(if bound { "setpriv".as_ref() } else { program.as_os_str() });
        if bound {
            command.args(["--pdeathsig", "KILL", "--"]).arg(&program);
        }
        command.args(arguments).env(INSIDE, &status.name);
        return Ok(command);
    }
    hidden::check_words(arguments.iter().map(std::ffi::OsString::as_os_str), &here)?;
    let mut command = Command::new(if bound { "setpriv" } else { "nsenter" });
    if bound {
        command.args(["--pdeathsig", "KILL", "--", "nsenter"]);
    }
    command.args(["--target", &status.holder.to_string(), "--mount", "--net"]);
    if !getuid().is_root() {
        command.args(["--user", "--preserve-credentials"]);
    }
    command.arg(format!("--wdns={}", here.display())).arg("--").arg(program).args(arguments).env(INSIDE, &status.name);
    Ok(command)
}

/// Continues this command inside a lab's network and mounts: replaces the process.
///
/// # Errors
///
/// (machine) when that fails. It does not return otherwise.
pub fn enter(status: &Status, arguments: &[std::ffi::OsString]) -> Failure {
    match command_in(status, arguments, false) {
        Ok(mut command) => {
            Failure::machine(format!("cannot run nsenter (Debian package util-linux): {}", command.exec()))
        }
        Err(failure) => failure,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{build::TesterSide, cpus::CpuLayout, protocol::ProgramStatus, LabOptions};

    #[test]
    fn a_lab_without_its_switch_is_not_measured() {
        let topology = topology::load("phy-vm-phy").unwrap();
        let cpus = CpuLayout::choose(&topology, &LabOptions::default(), &[0, 1]).unwrap();
        let program = |name: &str, ended: Option<&str>| ProgramStatus {
            name: name.to_owned(),
            pid: None,
            threads: Vec::new(),
            ended: ended.map(str::to_owned),
        };
        let said = |programs: Vec<ProgramStatus>| {
            let status = Status {
                name: "own".into(),
                topology: topology.clone(),
                options: LabOptions::default(),
                cpus: cpus.clone(),
                accelerator: None,
                tester: TesterSide::default(),
                holder: 1,
                up_s: 0,
                ready_ms: 0,
                programs,
                commands: Vec::new(),
                versions: Vec::new(),
                on: None,
            };
            check_running(&status).map_err(|failure| failure.text)
        };
        assert_eq!(said(vec![program("vswitchd", None), program("vm1", None)]), Ok(()));
        let ended = Some("signal: 9 (SIGKILL)");
        let all = ["ovsdb", "vswitchd", "vm1"].map(|name| said(vec![program(name, ended)]).unwrap_err());
        insta::assert_snapshot!(all.join("\n"));
    }
}
