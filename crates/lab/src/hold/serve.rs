//! Answers to a lab's clients.

use std::{
    io::{BufRead, BufReader, Read, Write},
    os::unix::net::{UnixListener, UnixStream},
    path::Path,
    time::{Duration, Instant},
};

use control::{Client, Request};
use failure::Stop;
use nix::sys::socket::{getsockopt, sockopt::PeerCredentials};
use rustix::{
    event::{poll, PollFd, PollFlags, Timespec},
    process::getuid,
};

use super::{
    held::{Held, DIR},
    setup,
};
use crate::{
    counters::{self, Counts, Place},
    protocol::{Answer, Ask, Checked},
    step::Question,
};

/// Longest question, and how long a client may take to put it.
const MAX_LINE: u64 = 4096;
const CLIENT: Duration = Duration::from_secs(1);

/// Most further readings of counters that still move.
const READINGS: usize = 8;
/// Time between two of them: in it every polling thread has had its turn, also where several share a CPU.
const TURN: Duration = Duration::from_millis(2);
const TURN_SHARED: Duration = Duration::from_millis(30);

/// How often a stop is looked for.
const LOOK: Timespec = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };

/// Answers until a client or a signal ends the lab.
pub(super) fn until_down(held: &mut Held, listeners: &[UnixListener], stop: &Stop) {
    for listener in listeners {
        let _ = listener.set_nonblocking(true);
    }
    while !stop.requested() {
        let mut ready: Vec<PollFd<'_>> = listeners.iter().map(|l| PollFd::new(l, PollFlags::IN)).collect();
        let _ = poll(&mut ready, Some(&LOOK));
        for listener in listeners {
            let Ok((stream, _)) = listener.accept() else { continue };
            if is_friend(&stream) && serve(held, &stream) {
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
fn serve(held: &mut Held, stream: &UnixStream) -> bool {
    let _ = stream.set_nonblocking(false);
    let (_, _) = (stream.set_read_timeout(Some(CLIENT)), stream.set_write_timeout(Some(CLIENT)));
    let mut line = String::new();
    let until = Instant::now() + CLIENT;
    if BufReader::new(stream.take(MAX_LINE)).read_line(&mut line).is_err() || Instant::now() > until + CLIENT {
        return false;
    }
    let answer = match serde_json::from_str(&line) {
        Ok(Ask::Status) => Answer::Status(Box::new(held.status())),
        Ok(Ask::Counters) => Answer::Counters(count(held)),
        Ok(Ask::Check) => Answer::Checked(check(held, false)),
        Ok(Ask::CheckConnected) => Answer::Checked(check(held, true)),
        Ok(Ask::Down) => Answer::Ending(setup::own_host_pid()),
        Err(e) => Answer::Refused(format!("this is not a question to a lab: {e}")),
    };
    if let Ok(text) = serde_json::to_string(&answer) {
        let mut out = stream;
        let _ = out.write_all(format!("{text}\n").as_bytes());
    }
    matches!(answer, Answer::Ending(_))
}

/// The counters of all ports, as of one moment: nodes are read one after the other, so frames that are still on the way would
/// be counted at one and not yet at the other. Read until two readings agree; traffic that goes on ends the tries.
fn count(held: &mut Held) -> Counts {
    let turn = if held.build.cpus.shared.is_empty() { TURN } else { TURN_SHARED };
    let mut counts = count_once(held);
    for _ in 0..READINGS {
        std::thread::sleep(turn);
        let again = count_once(held);
        if again == counts {
            break;
        }
        counts = again;
    }
    counts
}

/// The counters of all ports. A port whose counters cannot be read has none.
fn count_once(held: &mut Held) -> Counts {
    let mut all = Counts::new();
    for source in held.build.counters.clone() {
        let read = match &source.place {
            Place::OpenFlow { line } => held.programs.output(line).ok().map(|out| counters::openflow(&out.printed)),
            Place::Kernel { line } => held.programs.output(line).ok().map(|out| counters::kernel(&out.printed)),
            Place::Testpmd { program } => {
                held.programs.ask(program, "show port stats all").map(|text| counters::testpmd(&text))
            }
            Place::Linerate { socket } => ask_linerate(Path::new(socket)).map(|answer| counters::linerate(&answer)),
        };
        let read = read.unwrap_or_default();
        for end in &source.ends {
            // A switch may list a port by its name.
            let name = held.build.topology.peer(end).map(crate::build::port_name).unwrap_or_default();
            let found = read.get(&end.port.to_string()).or_else(|| read.get(&name));
            all.insert(end.to_string(), found.copied().unwrap_or_default());
        }
    }
    all
}

/// The table `ports` of a `linerate forward`; `None` if it does not answer.
fn ask_linerate(socket: &Path) -> Option<serde_json::Value> {
    let ports = Request::Show { what: "ports".to_owned(), json: true, limit: None, interval_s: None };
    Client::connect("forward", None, Some(socket)).ok()?.ask(&ports, &[]).ok()
}

/// The answers to all questions; those that may still become right are waited for if `wait`.
fn check(held: &mut Held, wait: bool) -> Vec<Checked> {
    let questions = held.build.checks.clone();
    let mut all: Vec<Checked> = Vec::new();
    for question in questions {
        let patience = if wait { question.within } else { Duration::ZERO };
        let until = Instant::now() + patience;
        let out = loop {
            let out = held.programs.output(&question.line);
            let met = out.as_ref().is_ok_and(|out| question.want.is_met(out.succeeded, &out.printed));
            if met || Instant::now() > until {
                break out;
            }
            std::thread::sleep(Duration::from_millis(50));
        };
        let (met, printed) = match out {
            Ok(out) => (question.want.is_met(out.succeeded, &out.printed), out.printed + &out.errors),
            Err(e) => (false, e.text),
        };
        let command = question.line.to_string();
        let Question { what, want, remedy, only_while_measured, .. } = question;
        all.push(Checked { what, command, want, met, printed, remedy, only_while_measured });
    }
    for program in held.programs.status() {
        let what = format!("{} runs", program.name);
        let printed = program.ended.clone().unwrap_or_default();
        let (met, want) = (program.ended.is_none(), crate::step::Want::Success);
        let remedy = format!("see {}/{}.log", DIR, program.name);
        let only_while_measured = false;
        all.push(Checked { what, command: String::new(), want, met, printed, remedy, only_while_measured });
    }
    all
}
