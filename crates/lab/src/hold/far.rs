//! A lab on another host: the process here starts the same program there through `ssh`, and hands questions and answers on.
//! When either end of the connection goes, the lab there ends.

use std::{
    fs,
    hash::{DefaultHasher, Hasher},
    io::{BufRead, BufReader, Read, Write},
    os::unix::net::UnixListener,
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
    thread::JoinHandle,
    time::{Duration, Instant},
};

use failure::{Exit, Failure, Stop};
use rustix::event::{poll, PollFd, PollFlags, Timespec};

use super::{
    serve::{self, Answers},
    setup,
    told::tell,
};
use crate::{
    line::quoted,
    options::LabOptions,
    protocol::{Answer, Ask, FarSpec, On, Progress, Spec, Status, LONGEST},
};

/// How long the other host may take to answer the first time, to take the program, and to bring the lab up: guests boot.
const CONNECT: Duration = Duration::from_secs(30);
const COPY: Duration = Duration::from_secs(300);
const UP: Duration = Duration::from_secs(300);
/// How long it may take to end.
const END: Duration = Duration::from_secs(10);

/// Longest line that is read from the other host.
const MAX_LINE: usize = 4 << 20;

/// Brings a lab up on another host and answers for it until it ends.
///
/// # Errors
///
/// What did not come up. The connection is closed then, and so the lab there ends.
pub(super) fn run(spec: &Spec, on: &On, listener: UnixListener, stop: &Stop) -> Result<Exit, Failure> {
    let mut far = Far::connect(spec, on, stop)?;
    tell(&Progress::Up(Box::new(far.status.clone())))?;
    serve::until_down(&mut far, &[listener], stop);
    far.end();
    Ok(Exit::Passed)
}

/// The lab there.
struct Far {
    link: Link,
    status: Status,
}

/// A connection; it is closed when this is dropped.
struct Link {
    url: String,
    ssh: Child,
    to: ChildStdin,
    from: BufReader<ChildStdout>,
    /// The last line of its standard error, when that has ended.
    errors: Option<JoinHandle<String>>,
}

impl Far {
    fn connect(spec: &Spec, on: &On, stop: &Stop) -> Result<Self, Failure> {
        let program = match &on.program {
            Some(program) => quoted(program),
            None => copied(on, &spec.linerate, stop)?,
        };
        let mut link = Link::open(on, &format!("{program} lab serve"))?;
        link.put(&serde_json::to_string(&asked(spec, on)).map_err(Failure::failed)?)?;
        let until = Instant::now() + UP;
        loop {
            let line = link.line(until, stop)?;
            match serde_json::from_str(&line) {
                Ok(Progress::Done { what, at_ms }) => tell(&Progress::Done { what, at_ms })?,
                Ok(Progress::Failed { text, exit }) => {
                    return Err(Failure { exit, text: format!("{}: {text}", on.url) });
                }
                Ok(Progress::Up(status)) => {
                    return Ok(Self { status: local(*status, spec, on), link });
                }
                Err(_) => {
                    let start: String = line.chars().filter(|c| !c.is_control()).take(80).collect();
                    return Err(Failure::machine(format!(
                        "{}: the program there does not speak as this one does ({start:?}): --remote-program must be this version",
                        on.url
                    )));
                }
            }
        }
    }

    fn ask(&mut self, ask: &Ask, stop: &Stop) -> Result<Answer, Failure> {
        self.link.put(&serde_json::to_string(ask).map_err(Failure::failed)?)?;
        let line = self.link.line(Instant::now() + LONGEST + END, stop)?;
        serde_json::from_str(&line).map_err(|e| Failure::failed(format!("{}: not an answer: {e}", self.link.url)))
    }

    /// Tells the lab there to end, and waits a while for it.
    fn end(&mut self) {
        let _ = self.link.put(&serde_json::to_string(&Ask::Down).unwrap_or_default());
        let until = Instant::now() + END;
        while Instant::now() < until && !self.is_over() {
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

impl Answers for Far {
    fn answer(&mut self, ask: Ask, stop: &Stop) -> Answer {
        if ask == Ask::Down {
            return Answer::Ending(setup::own_host_pid());
        }
        match self.ask(&ask, stop) {
            Ok(Answer::Status(mut status)) => {
                status.name.clone_from(&self.status.name);
                status.tester.clone_from(&self.status.tester);
                status.options.tester_cpu = self.status.options.tester_cpu;
                (status.holder, status.on) = (self.status.holder, self.status.on.clone());
                Answer::Status(status)
            }
            Ok(answer) => answer,
            Err(failure) => Answer::Refused(failure.text),
        }
    }

    fn is_over(&mut self) -> bool {
        !matches!(self.link.ssh.try_wait(), Ok(None))
    }
}

/// What the other host is told.
fn asked(spec: &Spec, on: &On) -> FarSpec {
    FarSpec {
        name: spec.name.clone(),
        topology: spec.topology.clone(),
        // The tester's CPU is one of this host.
        options: LabOptions { tester_elsewhere: true, tester_cpu: None, ..spec.options.clone() },
        guests: on.guests.clone(),
        kernel_in: on.kernel_in.clone(),
    }
}

/// The status as this host has it: the lab's holder is the process here, and so are the tester's ports.
fn local(mut status: Status, spec: &Spec, on: &On) -> Status {
    status.name.clone_from(&spec.name);
    // Never what the other host says of ports here.
    status.tester.ports.clone_from(&spec.options.tester_ports);
    status.options.tester_cpu = spec.options.tester_cpu;
    status.holder = setup::own_host_pid();
    status.on = Some(on.url.clone());
    status
}

impl Link {
    fn open(on: &On, far: &str) -> Result<Self, Failure> {
        let (mut ssh, errors) = spawn(on, far, Stdio::piped())?;
        let (Some(to), Some(from)) = (ssh.stdin.take(), ssh.stdout.take()) else {
            return Err(Failure::failed("ssh without input or output"));
        };
        Ok(Self { url: on.url.clone(), ssh, to, from: BufReader::new(from), errors: Some(errors) })
    }

    fn put(&mut self, text: &str) -> Result<(), Failure> {
        let sent = self.to.write_all(format!("{text}\n").as_bytes()).and_then(|()| self.to.flush());
        match sent {
            Ok(()) => Ok(()),
            Err(_) => Err(self.gone()),
        }
    }

    /// The next line of the other host.
    fn line(&mut self, until: Instant, stop: &Stop) -> Result<String, Failure> {
        let mut text = Vec::new();
        loop {
            if self.from.buffer().is_empty() {
                let mut ready = [PollFd::new(self.from.get_ref(), PollFlags::IN)];
                let polled = poll(&mut ready, Some(&Timespec { tv_sec: 0, tv_nsec: 50_000_000 }));
                if stop.requested() {
                    return Err(Failure::stopped(format!("{}: stopped", self.url)));
                }
                if Instant::now() > until {
                    return Err(Failure::machine(format!("{}: does not answer in time", self.url)));
                }
                if !polled.is_ok_and(|n| n > 0) {
                    continue;
                }
            }
            let read = match self.from.fill_buf() {
                Ok(read) if !read.is_empty() => read,
                _ => return Err(self.gone()),
            };
            let (part, whole) = match read.iter().position(|byte| *byte == b'\n') {
                Some(end) => (end + 1, true),
                None => (read.len(), false),
            };
            text.extend_from_slice(&read[..part]);
            self.from.consume(part);
            if text.len() > MAX_LINE {
                return Err(Failure::machine(format!("{}: a line longer than {MAX_LINE} bytes", self.url)));
            }
            if whole {
                return String::from_utf8(text).map_err(|e| Failure::machine(format!("{}: {e}", self.url)));
            }
        }
    }

    /// Why the connection has ended.
    fn gone(&mut self) -> Failure {
        let _ = self.ssh.kill();
        let _ = self.ssh.wait();
        let said = self.errors.take().and_then(|errors| errors.join().ok()).unwrap_or_default();
        Failure::machine(ended(&self.url, &said))
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        let _ = self.ssh.kill();
        let _ = self.ssh.wait();
    }
}

/// The sentence about a connection that has ended, with the last line that it said.
fn ended(url: &str, said: &str) -> String {
    let said = if said.is_empty() { "without a word" } else { said };
    format!("{url}: the connection has ended: {said}; it needs a key that asks nothing, and root there")
}

/// Starts `ssh` with this command. Its last line of standard error is kept.
fn spawn(on: &On, far: &str, input: Stdio) -> Result<(Child, JoinHandle<String>), Failure> {
    let mut command = command(on, far);
    command.stdin(input).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut ssh = command.spawn().map_err(|e| {
        Failure::machine(format!("cannot run {} (Debian package openssh-client): {e}", on.ssh.join(" ")))
    })?;
    let errors = ssh.stderr.take();
    let reader = std::thread::spawn(move || {
        let mut last = String::new();
        for line in errors.into_iter().flat_map(|errors| BufReader::new(errors).lines().map_while(Result::ok)) {
            let line: String = line.chars().filter(|c| !c.is_control()).take(300).collect();
            if !line.trim().is_empty() {
                last = line;
            }
        }
        last
    });
    Ok((ssh, reader))
}

/// `ssh` to the other host with this command. It asks nothing, gives up on its own, and ends with this process.
fn command(on: &On, far: &str) -> Command {
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", "TERM", "--"]).args(&on.ssh);
    let wait = CONNECT.as_secs();
    command.args(["-T", "-o", "BatchMode=yes", "-o", "ServerAliveInterval=5", "-o"]);
    command.arg(format!("ConnectTimeout={wait}")).arg(&on.url).arg("--").arg(far);
    command
}

/// Copies this program to the other host, if it is not there: into the user's cache, named after its contents.
fn copied(on: &On, program: &str, stop: &Stop) -> Result<String, Failure> {
    let fail = |e: std::io::Error| Failure::machine(format!("{program}: {e}"));
    let mut hasher = DefaultHasher::new();
    let mut file = fs::File::open(program).map_err(fail)?;
    let mut part = vec![0; 1 << 20];
    loop {
        match file.read(&mut part).map_err(fail)? {
            0 => break,
            read => hasher.write(&part[..read]),
        }
    }
    let place = format!("\"$HOME\"/.cache/linerate/linerate-{:016x}", hasher.finish());
    let there = format!("test -x {place} && echo there; true");
    if finish(on, &there, Stdio::null(), CONNECT * 2, stop)?.trim() == "there" {
        return Ok(place);
    }
    let script = format!(
        "umask 077; n={place}.$$; mkdir -p \"$HOME\"/.cache/linerate && cat >\"$n\" && chmod 700 \"$n\" && mv \"$n\" {place} && \
         echo done || rm -f \"$n\""
    );
    let file = fs::File::open(program).map_err(fail)?;
    match finish(on, &script, Stdio::from(file), COPY, stop)?.trim() {
        "done" => Ok(place),
        _ => Err(Failure::machine(format!("{}: the program could not be copied to ~/.cache/linerate there", on.url))),
    }
}

/// What a command there printed.
fn finish(on: &On, far: &str, input: Stdio, within: Duration, stop: &Stop) -> Result<String, Failure> {
    let (mut ssh, errors) = spawn(on, far, input)?;
    let until = Instant::now() + within;
    let succeeded = loop {
        match ssh.try_wait() {
            Ok(Some(ended)) => break ended.success(),
            Ok(None) if !stop.requested() && Instant::now() < until => std::thread::sleep(Duration::from_millis(20)),
            _ => {
                let _ = ssh.kill();
                let _ = ssh.wait();
                return Err(match stop.requested() {
                    true => Failure::stopped(format!("{}: stopped", on.url)),
                    false => Failure::machine(format!("{}: does not answer within {} s", on.url, within.as_secs())),
                });
            }
        }
    };
    let said = errors.join().unwrap_or_default();
    if !succeeded {
        return Err(Failure::machine(ended(&on.url, &said)));
    }
    let mut text = String::new();
    if let Some(out) = ssh.stdout.take() {
        let _ = out.take(4096).read_to_string(&mut text);
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topology;

    #[test]
    fn the_testers_cpu_is_one_of_this_host() {
        let options = LabOptions { tester_cpu: Some(63), pmd_cpus: vec![2], ..LabOptions::default() };
        let spec = Spec {
            name: "own".into(),
            topology: topology::load("phy-ovs-phy").unwrap(),
            options,
            cpus: Vec::new(),
            linerate: "linerate".into(),
            logs: None,
            on: None,
            fail_at: None,
        };
        let on = On {
            url: "ssh://dut".into(),
            ssh: vec!["ssh".into()],
            program: None,
            guests: "auto".into(),
            kernel_in: "auto".into(),
        };
        let asked = asked(&spec, &on).options;
        assert_eq!((asked.tester_cpu, asked.tester_elsewhere, asked.pmd_cpus.as_slice()), (None, true, &[2][..]));
    }
}
