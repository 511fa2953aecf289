//! What the builders of all kinds of nodes read, and what they make.

use std::time::Duration;

use crate::{
    counters::Source,
    cpus::CpuLayout,
    line::CommandLine,
    options::LabOptions,
    step::{Question, Step, Want},
    topology::{End, Guest, Topology},
};

/// A part of a build, made for the nodes of one kind.
#[derive(Debug, Default)]
pub(super) struct Part {
    pub(super) steps: Vec<Step>,
    pub(super) checks: Vec<Question>,
    pub(super) counters: Vec<Source>,
}

/// What the builders of all kinds read.
pub(super) struct Context<'a> {
    pub(super) topology: &'a Topology,
    pub(super) options: &'a LabOptions,
    pub(super) cpus: &'a CpuLayout,
    /// The program itself, as the lab's processes find it.
    pub(super) linerate: &'a str,
    pub(super) dir: &'a str,
}

impl Context<'_> {
    /// A file of the lab.
    pub(super) fn file(&self, name: &str) -> String {
        format!("{}/{name}", self.dir)
    }

    /// The CPUs that a guest polls on.
    pub(super) fn polling(&self, guest: &Guest) -> Vec<u32> {
        let own = self.cpus.guests.get(&guest.name).filter(|cpus| !cpus.is_empty());
        own.cloned().unwrap_or_else(|| vec![self.cpus.control])
    }

    /// The NIC of the device under test at the other end of a tester's cable; `None` where the lab makes that port.
    pub(super) fn nic(&self, tester: &End) -> Option<&str> {
        self.options.phy.get(tester.port as usize).filter(|_| tester.is_tester()).map(String::as_str)
    }

    /// The guests behind these ports of a switch.
    pub(super) fn guests_behind<'a>(&'a self, bridge: &str, ports: &'a [String]) -> impl Iterator<Item = String> + 'a {
        let ends = self.topology.ports_of(bridge);
        let peers = ends.into_iter().filter_map(|end| self.topology.peer(end));
        let names =
            peers.filter(|peer| !peer.is_tester() && ports.contains(&port_name(peer))).map(|peer| peer.node.clone());
        names.collect::<std::collections::BTreeSet<_>>().into_iter()
    }

    /// The vhost-user socket of a port that is joined to a switch: it belongs to the other end of the cable.
    pub(super) fn socket(&self, end: &End) -> String {
        self.file(&format!("{}.sock", port_name(end)))
    }
}

/// The name of a port that is joined to a switch, as the documents have them: `phy0`, `vm1p0`.
pub fn port_name(end: &End) -> String {
    end.port_name()
}

/// A question about a file that a program makes.
pub(super) fn await_file(what: &str, flag: &str, path: String, within: Duration, program: &str) -> Step {
    Step::Await(Question {
        what: what.to_owned(),
        line: CommandLine::words("test").with([flag.to_owned(), path]),
        want: Want::Success,
        within,
        remedy: String::new(),
        logs: vec![program.to_owned()],
        only_while_measured: false,
        again: Vec::new(),
    })
}

pub(super) fn run(text: &str) -> Step {
    Step::Run(CommandLine::words(text))
}
