//! Counters of ports, and answers to the questions about a lab, or about a guest from inside it.

use std::{
    path::Path,
    time::{Duration, Instant},
};

use control::{Client, Request};

use super::programs::{Output, Programs, COMMAND, SWITCH};
use crate::{
    counters::{self, Counts, Place, PortCounts, Source},
    line::CommandLine,
    protocol::{Answer, Ask, Checked},
    step::{Question, Want},
    vm,
};

/// How long a command of a user's may take. In an emulated guest beside other work the start of a DPDK program alone took over 20 s.
const RUN: Duration = Duration::from_secs(35);

/// Most further readings of counters that still move.
const READINGS: usize = 8;
/// Time between two of them: in it every polling thread has had its turn, also where several share a CPU.
const TURN: Duration = Duration::from_millis(2);
const TURN_SHARED: Duration = Duration::from_millis(30);

/// How long a guest may take to count.
const GUEST: Duration = Duration::from_secs(5);

/// What each source has at least, also when others were slow.
const LEAST: Duration = Duration::from_millis(100);

/// What is counted and checked.
pub struct Observed<'a> {
    /// The programs that run.
    pub programs: &'a mut Programs,
    /// Where counters are.
    pub counters: &'a [Source],
    /// What is to hold.
    pub checks: &'a [Question],
    /// Whether polling threads share CPUs.
    pub shared: bool,
    /// The command of a user that runs another one where the logs are.
    pub exec: &'a str,
}

impl Observed<'_> {
    /// The counters of all ports, as of one moment: nodes are read one after the other, so frames that are still on the way
    /// would be counted at one and not yet at the other. Read until two readings agree; traffic that goes on ends the tries.
    /// All readings together take no longer than a command may: what does not answer in it is unknown.
    pub fn counters(&mut self) -> Counts {
        let until = Instant::now() + COMMAND;
        let turn = if self.shared { TURN_SHARED } else { TURN };
        let mut counts = self.read_once(until);
        for _ in 0..READINGS {
            std::thread::sleep(turn);
            if Instant::now() > until {
                break;
            }
            let again = self.read_once(until);
            if again == counts {
                break;
            }
            counts = again;
        }
        counts
    }

    /// The counters of all ports. A port whose counters cannot be read has none.
    fn read_once(&mut self, until: Instant) -> Counts {
        let mut all = Counts::new();
        let left = || until.saturating_duration_since(Instant::now()).max(LEAST);
        for source in self.counters {
            let counts_it = match &source.place {
                Place::OpenFlow { .. } => Some(SWITCH[0]),
                Place::Testpmd { program } => Some(program.as_str()),
                Place::Linerate { .. } | Place::Guest { .. } => Some(source.node.as_str()),
                Place::Kernel { .. } => None,
            };
            // What asks a program that has ended may wait long, and the others are to be read as of now.
            let is_dead = match &source.place {
                Place::OpenFlow { .. } => self.programs.switch_has_ended(),
                _ => counts_it.is_some_and(|program| self.programs.has_ended(program)),
            };
            let read = match &source.place {
                _ if is_dead => None,
                Place::OpenFlow { line } => {
                    self.programs.output_within(line, left()).ok().map(|out| counters::openflow(&out.printed))
                }
                Place::Kernel { line } => {
                    self.programs.output_within(line, left()).ok().map(|out| counters::kernel(&out.printed))
                }
                Place::Testpmd { program } => {
                    self.programs.ask(program, "show port stats all").map(|text| counters::testpmd(&text))
                }
                Place::Linerate { socket } => ask_linerate(Path::new(socket)).map(|answer| counters::linerate(&answer)),
                Place::Guest { socket } => match vm::ask(Path::new(socket), &Ask::Counters, GUEST.min(left())) {
                    Ok(Answer::Counters(counts)) => {
                        all.extend(counts);
                        continue;
                    }
                    _ => None,
                },
            };
            let read = read.unwrap_or_default();
            let run = match (&source.place, counts_it) {
                // A guest counts its own.
                (Place::Guest { .. }, _) => None,
                (_, Some(program)) => self.programs.run_of(program),
                // It counts from 0 after a reboot.
                (_, None) => Programs::boot(),
            };
            for counted in &source.ends {
                // A switch may list a port by its name.
                let found = read.get(&counted.end.port.to_string()).or_else(|| read.get(&counted.name));
                all.insert(counted.end.to_string(), PortCounts { run, ..found.copied().unwrap_or_default() });
            }
        }
        all
    }

    /// The command that shows the end of a program's log: files of a lab are seen only inside it.
    fn log_of(&self, program: &str) -> String {
        format!("{} tail {}", self.exec, self.programs.log_of(program))
    }

    /// Runs a command here.
    pub fn run(&self, line: &CommandLine) -> Answer {
        match self.programs.output_within(line, RUN) {
            Ok(Output { succeeded, printed, errors }) => Answer::Ran { succeeded, printed, errors },
            Err(failure) => Answer::Refused(failure.text),
        }
    }

    /// The answers to all questions; those that may still become right are waited for if `wait`, all from the same moment on.
    pub fn check(&mut self, wait: bool) -> Vec<Checked> {
        let mut all: Vec<Checked> = Vec::new();
        let began = Instant::now();
        let switch_ended = self.programs.status().iter().any(|p| p.name == "vswitchd" && p.ended.is_some());
        for question in self.checks {
            let patience = if wait { question.within } else { Duration::ZERO };
            let until = began + patience;
            let out = loop {
                let out = self.programs.output(&question.line);
                let met = out.as_ref().is_ok_and(|out| question.want.is_met(out.succeeded, &out.printed));
                if met || Instant::now() > until {
                    break out;
                }
                std::thread::sleep(Duration::from_millis(50));
            };
            let command = question.line.to_string();
            let Question { what, want, mut remedy, mut only_while_measured, logs, .. } = question.clone();
            let (mut met, mut printed) = match out {
                Ok(out) => {
                    // A tester that is not there is a reason for another answer, not for none.
                    only_while_measured &= out.succeeded;
                    (want.is_met(out.succeeded, &out.printed), out.printed + &out.errors)
                }
                Err(e) => {
                    only_while_measured = false;
                    (false, e.text)
                }
            };
            if switch_ended && question.line.0.first().is_some_and(|program| program == "ovs-vsctl") {
                // The database says what was, and the remedy is the switch's.
                remedy.clear();
                (met, only_while_measured, printed) =
                    (false, false, format!("vswitchd has ended; before that: {printed}"));
            }
            let remedies = Some(remedy).filter(|remedy| !remedy.is_empty()).into_iter();
            let remedy = remedies.chain(logs.iter().map(|name| self.log_of(name))).collect::<Vec<_>>().join("; ");
            all.push(Checked { what, command, want, met, printed, remedy, only_while_measured });
        }
        for program in self.programs.status() {
            let what = format!("{} runs", program.name);
            let printed = program.ended.clone().unwrap_or_default();
            let (met, want) = (program.ended.is_none(), Want::Success);
            let remedy = self.log_of(&program.name);
            let only_while_measured = false;
            all.push(Checked { what, command: String::new(), want, met, printed, remedy, only_while_measured });
        }
        all
    }
}

/// The table `ports` of a `linerate forward`; `None` if it does not answer.
fn ask_linerate(socket: &Path) -> Option<serde_json::Value> {
    let ports = Request::Show { what: "ports".to_owned(), json: true, limit: None, interval_s: None };
    Client::connect("forward", None, Some(socket)).ok()?.ask(&ports, &[]).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{step::Program, topology::End};

    #[test]
    fn a_program_that_has_ended_is_not_asked_and_the_others_are() {
        let dir = tempfile::tempdir().unwrap();
        let mut programs = Programs::new(&dir.path().display().to_string());
        let asked = dir.path().join("asked");
        let answers = |text: &str| CommandLine::words("sh -c").with([format!("echo >>{}; {text}", asked.display())]);
        let line = CommandLine::words("true");
        programs
            .start(&Program { name: "vswitchd".into(), line, cpus: Vec::new(), wants_input: false, quits_by: None })
            .unwrap();
        while !programs.has_ended("vswitchd") {
            std::thread::sleep(Duration::from_millis(1));
        }
        assert!(!programs.has_ended("vm1"), "not started here");
        let kernel = r#"echo '[{"ifname":"d0","stats64":{"rx":{"packets":5},"tx":{"packets":4}}}]'"#;
        let source = |node: &str, place| Source { node: node.into(), place, ends: vec![End::new(node, 0).into()] };
        let counters = [
            source("br0", Place::OpenFlow { line: answers("sleep 9") }),
            source("dut", Place::Kernel { line: CommandLine::words("sh -c").with([kernel]) }),
        ];
        let mut observed =
            Observed { programs: &mut programs, counters: &counters, checks: &[], shared: false, exec: "" };
        let counts = observed.counters();
        assert_eq!((counts["br0:0"].rx, counts["dut:0"].rx), (None, Some(5)));
        assert!(!asked.exists(), "the dead switch was asked");
    }

    #[test]
    fn what_a_kernel_has_counted_is_of_one_boot() {
        let answer = r#"[{"ifname":"d0","stats64":{"rx":{"packets":5},"tx":{"packets":4}}}]"#;
        let place = Place::Kernel { line: CommandLine::words("echo").with([answer]) };
        let counters = [Source { node: "vm1".into(), place, ends: vec![End::new("vm1", 0).into()] }];
        let mut programs = Programs::new("/tmp");
        let mut observed =
            Observed { programs: &mut programs, counters: &counters, checks: &[], shared: false, exec: "" };
        let counts = observed.counters()["vm1:0"];
        assert_eq!((counts.rx, counts.tx), (Some(5), Some(4)));
        assert!(counts.run.is_some() && counts.run == Programs::boot());
    }
}
