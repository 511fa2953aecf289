//! A lab on another host: what the flags say of it, and what this program does there.

use std::{
    io::{self, BufRead, BufReader},
    sync::mpsc::{self, RecvTimeoutError},
    time::Duration,
};

use clap::ValueEnum;
use failure::{Exit, Failure, Stop};
use lab::{
    client,
    hold::tell,
    protocol::{check_url, Answer, Ask, FarSpec, On, Progress},
    start::{bring_up, give_nics_back, mend_before, spec_of},
};

use super::guests;
use crate::cli::lab::{GuestsArg, KernelInArg, UpArgs};

/// How often a stop is looked for.
const LOOK: Duration = Duration::from_millis(100);

/// The other host of the flags, if they name one.
///
/// # Errors
///
/// (usage) for an address that is none, and for flags that go only with a lab here.
pub fn on(args: &UpArgs) -> Result<Option<On>, Failure> {
    let Some(url) = &args.on else { return Ok(None) };
    check_url(url)?;
    if args.topology.phy.is_empty() {
        return Err(Failure::usage(
            "--on: needs --phy (the NICs of that host) and --tester-ports (the ports here that are cabled to them)",
        ));
    }
    if args.topology.core_plan.is_some() {
        return Err(Failure::usage(
            "--core-plan: not with --on: the plan is one of this host; choose the other host's CPUs with --pmd-cpus",
        ));
    }
    if args.logs.is_some() {
        return Err(Failure::usage("--logs: not with --on: the logs are on the other host, and go with the lab"));
    }
    let ssh: Vec<String> = args.ssh.split_whitespace().map(str::to_owned).collect();
    if ssh.is_empty() {
        return Err(Failure::usage("--ssh: must be a command, such as \"ssh -i KEY\""));
    }
    let program = args.remote_program.clone();
    Ok(Some(On {
        url: url.clone(),
        ssh,
        program,
        guests: name(&args.topology.guests),
        kernel_in: name(&args.topology.kernel_in),
    }))
}

/// As flags have it.
fn name(value: &impl ValueEnum) -> String {
    value.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default()
}

/// The hidden command of this program on the other host: brings a lab up as its first line of input says, and answers each
/// further line with one. The lab ends with the input.
pub fn serve() -> Result<Exit, Failure> {
    let stop = Stop::on_signals()?;
    let lines = lines();
    let ended = served(&lines, &stop);
    if let Err(Failure { text, exit }) = &ended {
        let _ = tell(&Progress::Failed { text: text.clone(), exit: *exit });
    }
    ended
}

fn served(lines: &mpsc::Receiver<String>, stop: &Stop) -> Result<Exit, Failure> {
    let first =
        next(lines, stop).ok_or_else(|| Failure::usage("this command is spoken to by a lab elsewhere (--on)"))?;
    let asked: FarSpec = serde_json::from_str(&first).map_err(|e| {
        Failure::usage(format!("not what this version is told ({e}): both hosts need the same version"))
    })?;
    let FarSpec { name, topology, options, guests, kernel_in } = asked;
    options.check()?;
    let guests = GuestsArg::from_str(&guests, true).map_err(Failure::usage)?;
    let kernel_in = KernelInArg::from_str(&kernel_in, true).map_err(Failure::usage)?;
    topology.check().map_err(|why| Failure::usage(format!("topology {}: {why}", topology.name)))?;
    let options = guests::decided(options, &topology, guests, kernel_in)?;
    let spec = spec_of(name, topology, options)?;
    mend_before(&spec).into_iter().collect::<Result<Vec<_>, _>>()?;
    let mut up = bring_up(&spec, true, stop, &mut |what, at_ms| {
        let _ = tell(&Progress::Done { what: what.to_owned(), at_ms });
    })?;
    let _ = tell(&Progress::Up(Box::new(up.status.clone())));
    while let Some(line) = next(lines, stop) {
        let answer = match serde_json::from_str::<Ask>(&line) {
            Ok(Ask::Down) => break,
            Ok(ask) => client::ask(&spec.name, &ask).unwrap_or_else(|failure| Answer::Refused(failure.text)),
            Err(e) => Answer::Refused(format!("this is not a question to a lab: {e}")),
        };
        let _ = tell(&answer);
    }
    up.down();
    give_nics_back(&spec.name)?;
    Ok(Exit::Passed)
}

/// The lines of standard input. It is read by a thread of its own, so that a signal is seen meanwhile.
fn lines() -> mpsc::Receiver<String> {
    let (to, from) = mpsc::channel();
    std::thread::spawn(move || {
        let input = BufReader::new(io::stdin());
        for line in input.lines().map_while(Result::ok) {
            if to.send(line).is_err() {
                break;
            }
        }
    });
    from
}

/// The next line; `None` at the end of the input, and after a signal.
fn next(lines: &mpsc::Receiver<String>, stop: &Stop) -> Option<String> {
    while !stop.requested() {
        match lines.recv_timeout(LOOK) {
            Ok(line) => return Some(line),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return None,
        }
    }
    None
}
