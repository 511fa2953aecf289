//! Answers to a lab's clients.

use std::{
    io::{BufRead, BufReader, Read, Write},
    os::unix::net::{UnixListener, UnixStream},
    path::Path,
    time::{Duration, Instant},
};

use failure::Stop;
use nix::sys::socket::{getsockopt, sockopt::PeerCredentials};
use rustix::{
    event::{poll, PollFd, PollFlags, Timespec},
    process::getuid,
};

use super::{
    held::{millis, Held},
    observe::Observed,
    perform::one_step,
    setup,
};
use crate::{
    build::{Act, Build},
    counters::{self, Place, Threads},
    line::CommandLine,
    protocol::{Answer, Ask},
    vm,
};

/// How long a guest may take to answer with what a command did: longer than it lets a command run.
const GUEST: Duration = Duration::from_secs(40);

/// How long each of the two commands about polling threads may take.
const THREADS: Duration = Duration::from_secs(10);

/// Longest question, and how long a client may take to put it.
const MAX_LINE: u64 = 4096;
const CLIENT: Duration = Duration::from_secs(1);

/// How often a stop is looked for.
const LOOK: Timespec = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };

/// Who answers for a lab.
pub(super) trait Answers {
    /// The answer to a question.
    fn answer(&mut self, ask: Ask, stop: &Stop) -> Answer;

    /// Whether the lab has ended by itself.
    fn is_over(&mut self) -> bool;
}

/// Answers until a client or a signal ends the lab, or it is over.
pub(super) fn until_down(lab: &mut impl Answers, listeners: &[UnixListener], stop: &Stop) {
    for listener in listeners {
        let _ = listener.set_nonblocking(true);
    }
    while !stop.requested() && !lab.is_over() {
        let mut ready: Vec<PollFd<'_>> = listeners.iter().map(|l| PollFd::new(l, PollFlags::IN)).collect();
        let _ = poll(&mut ready, Some(&LOOK));
        for listener in listeners {
            let Ok((stream, _)) = listener.accept() else { continue };
            if is_friend(&stream) && serve(lab, &stream, stop) {
                return;
            }
        }
    }
}

/// A name in the abstract name space has no owner: only this user and root are answered.
fn is_friend(stream: &UnixStream) -> bool {
    // rustix takes no process of another namespace, whose number is 0 here.
    let peer = getsockopt(stream, PeerCredentials);
    peer.is_ok_and(|peer| peer.uid() == getuid().as_raw() || peer.uid() == 0)
}

/// Answers one question. Whether the lab is to end.
fn serve(lab: &mut impl Answers, stream: &UnixStream, stop: &Stop) -> bool {
    let _ = stream.set_nonblocking(false);
    let (_, _) = (stream.set_read_timeout(Some(CLIENT)), stream.set_write_timeout(Some(CLIENT)));
    let mut line = String::new();
    let until = Instant::now() + CLIENT;
    if BufReader::new(stream.take(MAX_LINE)).read_line(&mut line).is_err() || Instant::now() > until + CLIENT {
        return false;
    }
    let answer = match serde_json::from_str(&line) {
        Ok(ask) => lab.answer(ask, stop),
        Err(e) => Answer::Refused(format!("this is not a question to a lab: {e}")),
    };
    if let Ok(text) = serde_json::to_string(&answer) {
        let mut out = stream;
        let _ = out.write_all(format!("{text}\n").as_bytes());
    }
    matches!(answer, Answer::Ending(_))
}

impl Answers for Held {
    fn answer(&mut self, ask: Ask, stop: &Stop) -> Answer {
        match ask {
            Ask::Status => Answer::Status(Box::new(self.status())),
            Ask::Counters => Answer::Counters(observed(self).counters()),
            Ask::Threads if self.programs.switch_has_ended() => Answer::Threads(Threads::new()),
            Ask::Threads => Answer::Threads(threads(self)),
            Ask::Check => Answer::Checked(observed(self).check(false)),
            Ask::CheckConnected => Answer::Checked(observed(self).check(true)),
            Ask::Versions => Answer::Versions(self.versions.clone()),
            Ask::Fault { name } => fault(self, name.as_deref(), stop),
            Ask::Run { node, line } => run_at(self, &node, line),
            Ask::Down => Answer::Ending(setup::own_host_pid()),
        }
    }

    fn is_over(&mut self) -> bool {
        false
    }
}

/// Makes something fail, or lists what can be made to.
fn fault(held: &mut Held, name: Option<&str>, stop: &Stop) -> Answer {
    let all: Vec<(String, String)> = held.build.faults.iter().map(|f| (f.name.clone(), f.what.clone())).collect();
    let Some(name) = name else { return Answer::Faults { done: all, took_ms: 0 } };
    let Some(fault) = held.build.faults.iter().find(|fault| fault.name == name).cloned() else {
        let names: Vec<String> = all.into_iter().map(|(name, _)| name).collect();
        let names = if names.is_empty() { "none in this lab".to_owned() } else { names.join(", ") };
        return Answer::Refused(format!("no fault {name}: faults are {names}"));
    };
    let began = Instant::now();
    for act in &fault.acts {
        let done = match act {
            Act::Kill(program) => held.programs.kill(program),
            Act::Start(program) => held.programs.start_again(program),
            Act::Do(step) => one_step(step, &mut held.programs, stop).map(drop),
        };
        if let Err(failure) = done {
            return Answer::Refused(format!("{name}: {}", failure.text));
        }
    }
    Answer::Faults { done: vec![(fault.name, fault.what)], took_ms: millis(began.elapsed()) }
}

/// What the polling threads of the switch have done. Empty without a switch, and when it does not answer.
fn threads(held: &Held) -> Threads {
    let ask =
        |line: &CommandLine| held.programs.output_within(line, THREADS).map(|out| out.printed).unwrap_or_default();
    match &held.build.threads {
        Some([stats, perf]) => counters::pmd(&ask(stats), &ask(perf)),
        None => Threads::new(),
    }
}

/// Where the commands of a node run.
#[derive(Debug, PartialEq, Eq)]
enum Runs {
    /// In a virtual machine, asked by this socket.
    Guest(String),
    /// In the network namespace of this kernel.
    Namespace,
    /// Among the lab's own programs.
    Here,
}

impl Runs {
    /// Where a node's commands run; why nowhere.
    fn of(build: &Build, node: &str) -> Result<Self, String> {
        let topology = &build.topology;
        if !topology.nodes().contains(&node) {
            return Err(format!("no node {node}: the nodes are {}", topology.nodes().join(", ")));
        }
        let guest = build.counters.iter().find_map(|source| match &source.place {
            Place::Guest { socket } if source.node == node => Some(socket.clone()),
            _ => None,
        });
        if let Some(socket) = guest {
            return Ok(Self::Guest(socket));
        }
        // Here it would run as root on the host, and the user means the machine.
        if build.machines.iter().any(|machine| machine.name == node) {
            return Err(format!("{node} boots a disk of yours: nothing in it is asked"));
        }
        let in_namespace = topology.kernel.iter().any(|kernel| kernel.name == node);
        Ok(if in_namespace { Self::Namespace } else { Self::Here })
    }
}

/// Runs a command at a node.
fn run_at(held: &mut Held, node: &str, line: CommandLine) -> Answer {
    let line = match Runs::of(&held.build, node) {
        Err(why) => return Answer::Refused(why),
        Ok(Runs::Guest(socket)) => {
            return vm::ask(Path::new(&socket), &Ask::Run { node: node.to_owned(), line }, GUEST)
                .unwrap_or_else(|failure| Answer::Refused(failure.text));
        }
        Ok(Runs::Namespace) => CommandLine::words("ip netns exec").with([node.to_owned()]).with(line.0),
        Ok(Runs::Here) => line,
    };
    observed(held).run(&line)
}

/// What of the lab is counted and checked.
fn observed(held: &mut Held) -> Observed<'_> {
    let Held { build, programs, exec, .. } = held;
    let shared = build.cpus.takes_turns();
    Observed { programs, counters: &build.counters, checks: &build.checks, shared, exec }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{options::GuestKind, topology, LabOptions};

    #[test]
    fn a_command_runs_where_its_node_is_or_nowhere() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let disk = file.path().to_str().unwrap().to_owned();
        let build = |name: &str, options: LabOptions| {
            Build::new(topology::load(name).unwrap(), options, &[0, 1], "linerate", "/run/lab").unwrap()
        };
        let machines = LabOptions { guests: GuestKind::Tcg, ..LabOptions::default() };
        let own = LabOptions { disks: [("vm2".to_owned(), disk)].into(), ..machines };
        let own = build("phy-vm-vm-phy", own);
        assert_eq!(Runs::of(&own, "vm1"), Ok(Runs::Guest("/run/lab/vm1.ctl".to_owned())));
        assert!(Runs::of(&own, "vm2").is_err_and(|why| why.contains("disk of yours")), "not on the host");
        assert_eq!((Runs::of(&own, "br0"), Runs::of(&own, "tester")), (Ok(Runs::Here), Ok(Runs::Here)));
        assert!(Runs::of(&own, "vm3").is_err());
        let processes = build("phy-vm-phy", LabOptions::default());
        assert_eq!(Runs::of(&processes, "vm1"), Ok(Runs::Here));
        let kernel = build("kernel-bridge", LabOptions::default());
        let node = kernel.topology.kernel[0].name.clone();
        assert_eq!(Runs::of(&kernel, &node), Ok(Runs::Namespace));
    }
}
