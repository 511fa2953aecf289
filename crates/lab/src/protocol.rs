//! What is said between a lab and its clients: one line of JSON each way, one question a connection.

use std::{path::PathBuf, time::Duration};

use failure::Failure;
use serde::{Deserialize, Serialize};

use crate::{
    build::TesterSide,
    counters::{Counts, Threads},
    cpus::CpuLayout,
    line::CommandLine,
    options::LabOptions,
    step::Want,
    topology::Topology,
};

/// The longest time that a client waits for an answer.
pub const LONGEST: Duration = Duration::from_secs(600);

/// What a lab is started with.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Spec {
    /// The lab's name.
    pub name: String,
    /// What it is made of.
    pub topology: Topology,
    /// The user's choices.
    pub options: LabOptions,
    /// CPUs that its programs may use.
    pub cpus: Vec<u32>,
    /// The path of the program itself.
    pub linerate: String,
    /// Where the logs of its programs are kept when it ends, or does not come up.
    #[serde(default)]
    pub logs: Option<PathBuf>,
    /// The other host that it runs on.
    #[serde(default)]
    pub on: Option<On>,
    /// Fail in place of this step, counted from 0: for tests of what a failure leaves.
    #[serde(default)]
    pub fail_at: Option<usize>,
}

/// Another host that a lab runs on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct On {
    /// Where it is, as `ssh` takes it: `ssh://root@dut:22`.
    pub url: String,
    /// The command that reaches it: `ssh` with its flags.
    pub ssh: Vec<String>,
    /// The path of this program there; none: it is copied.
    pub program: Option<String>,
    /// What guests are to be, as the flag has it: the other host decides.
    pub guests: String,
    /// Where kernels that forward are to be.
    pub kernel_in: String,
}

/// What the other host is told, a line of JSON.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FarSpec {
    /// The lab's name.
    pub name: String,
    /// What it is made of.
    pub topology: Topology,
    /// The user's choices.
    pub options: LabOptions,
    /// What guests are to be.
    pub guests: String,
    /// Where kernels that forward are to be.
    pub kernel_in: String,
}

/// What a lab tells while it comes up, a line of JSON each.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Progress {
    /// A step is done: what it was, and how long it took, ms.
    Done {
        /// In words.
        what: String,
        /// Milliseconds since the lab was started.
        at_ms: u64,
    },
    /// The lab is up.
    Up(Box<Status>),
    /// The lab did not come up, and is gone.
    Failed {
        /// One line.
        text: String,
        /// Whether a file or a flag is wrong, or the machine lacks something: the exit code.
        exit: failure::Exit,
    },
}

/// A question to a lab.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Ask {
    /// What it is, and how it is.
    Status,
    /// The counters of all its ports.
    Counters,
    /// What the polling threads of its switch have done.
    Threads,
    /// Whether it is what was asked for.
    Check,
    /// The same with the tester's ports up: what may still become right is waited for.
    CheckConnected,
    /// The versions of its parts.
    Versions,
    /// Make this fail.
    Fault {
        /// Its name; none: the answer lists those there are.
        name: Option<String>,
    },
    /// Run this command at a node: in a guest, in a kernel's namespace, else among the lab's own programs.
    Run {
        /// The node.
        node: String,
        /// The command.
        line: CommandLine,
    },
    /// It is to end.
    Down,
}

/// What a lab is, and how it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Status {
    /// Its name.
    pub name: String,
    /// What it is made of.
    pub topology: Topology,
    /// The user's choices.
    pub options: LabOptions,
    /// Who polls where.
    pub cpus: CpuLayout,
    /// What its virtual machines are run by, `kvm` or `tcg`; `None` if it has none.
    #[serde(default)]
    pub accelerator: Option<String>,
    /// How the tester is joined to it.
    pub tester: TesterSide,
    /// The process that holds it, as the machine counts processes.
    pub holder: u32,
    /// Seconds since it came up.
    pub up_s: u64,
    /// Milliseconds that it took to come up.
    pub ready_ms: u64,
    /// Its programs.
    pub programs: Vec<ProgramStatus>,
    /// Every command line that brought it up.
    pub commands: Vec<String>,
    /// Versions of its parts, in words.
    pub versions: Vec<String>,
    /// The other host that it runs on.
    #[serde(default)]
    pub on: Option<String>,
}

/// A program of a lab.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProgramStatus {
    /// Its name in the lab.
    pub name: String,
    /// Its process, as the machine counts processes; `None` when it is gone.
    pub pid: Option<u32>,
    /// The CPUs of its threads as read back: the name of each thread and its CPUs.
    pub threads: Vec<(String, String)>,
    /// How it ended; `None` while it runs.
    pub ended: Option<String>,
}

/// The answer to a question about the lab.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Checked {
    /// What is shown by the right answer.
    pub what: String,
    /// The command that asked.
    pub command: String,
    /// The right answer.
    pub want: Want,
    /// Whether the answer was right.
    pub met: bool,
    /// What the command printed.
    pub printed: String,
    /// What to do when it was wrong.
    pub remedy: String,
    /// It is about the tester's ports, which are up only while the tester measures.
    #[serde(default)]
    pub only_while_measured: bool,
}

/// What a lab answers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    /// To [`Ask::Status`].
    Status(Box<Status>),
    /// To [`Ask::Counters`]: by node and port, `br0:1`.
    Counters(Counts),
    /// To [`Ask::Threads`].
    Threads(Threads),
    /// To [`Ask::Check`].
    Checked(Vec<Checked>),
    /// To [`Ask::Versions`]: in words.
    Versions(Vec<String>),
    /// To [`Ask::Fault`]: what was done and how long it took, ms; or every fault, as its name and what it is.
    Faults {
        /// In words.
        done: Vec<(String, String)>,
        /// Milliseconds.
        took_ms: u64,
    },
    /// To [`Ask::Run`].
    Ran {
        /// Whether it ended with 0.
        succeeded: bool,
        /// Standard output.
        printed: String,
        /// Standard error.
        errors: String,
    },
    /// To [`Ask::Down`]: it ends now. The process that holds it.
    Ending(u32),
    /// It is not a question.
    Refused(String),
}

/// Checks the address of another host.
///
/// # Errors
///
/// (usage) for one that `ssh` would not take, or would take for a flag.
pub fn check_url(url: &str) -> Result<(), Failure> {
    match is_url(url) {
        true => Ok(()),
        false => Err(Failure::usage(format!("--on {url:.80}: must be ssh://[USER@]HOST[:PORT]"))),
    }
}

fn is_url(url: &str) -> bool {
    let Some(rest) = url.strip_prefix("ssh://") else { return false };
    let (user, host) = rest.rsplit_once('@').unwrap_or(("root", rest));
    let (host, port) = match host.strip_prefix('[') {
        Some(v6) => v6.split_once(']').unwrap_or(("", "")),
        None => host.split_once(':').map_or((host, ""), |(host, _)| (host, host_port(rest))),
    };
    let port = port.strip_prefix(':').unwrap_or(port);
    let word = |text: &str, more: &str| {
        !text.is_empty()
            && !text.starts_with('-')
            && text.chars().all(|c| c.is_ascii_alphanumeric() || more.contains(c))
    };
    word(user, "._-") && word(host, ".-:_") && (port.is_empty() || port.parse::<u16>().is_ok())
}

/// The part of an address behind the last colon.
fn host_port(rest: &str) -> &str {
    rest.rsplit_once(':').map_or("", |(_, port)| port)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_one_that_ssh_takes() {
        for good in ["ssh://dut", "ssh://root@dut", "ssh://root@10.0.0.2:2222", "ssh://u_x@[fe80::1]:22", "ssh://[::1]"]
        {
            assert!(is_url(good), "{good}");
        }
        for wrong in [
            "dut",
            "ssh://",
            "ssh://root@",
            "ssh://-oProxyCommand=x",
            "ssh://-x@dut",
            "ssh://dut:port",
            "ssh://dut:99999",
            "ssh://a b",
            "ssh://dut;x",
            "ssh://[fe80::1",
            "http://dut",
        ] {
            assert!(!is_url(wrong), "{wrong}");
        }
    }
}
