//! `linerate forward` in a namespace, with a directory of its own for its control socket.

use std::io::{BufRead, BufReader, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};
use std::time::Duration;

use serde_json::Value;
use tempfile::TempDir;

use super::process::path_with_sbin;
use super::tester::{ended, Ended, BINARY};
use super::words::READY;
use super::{Netns, Process};

/// How long a data plane may take to start or to end on a busy machine.
const PATIENCE: Duration = Duration::from_secs(30);

/// A data plane that runs. Dropping it ends it.
#[derive(Debug)]
pub struct Forwarder {
    process: Process,
    dir: PathBuf,
    _own: Option<TempDir>,
}

impl Forwarder {
    /// Starts `linerate forward` with `args` in the namespace and waits until it forwards.
    #[track_caller]
    pub fn start(netns: &Netns, args: &[&str]) -> Self {
        let own = tempfile::Builder::new().prefix("lrfwd").tempdir().expect("a directory");
        let dir = own.path().to_owned();
        Self { _own: Some(own), ..Self::start_in(netns, &dir, args) }
    }

    /// The same with its socket in a directory that is already there and may have others in it.
    #[track_caller]
    pub fn start_in(netns: &Netns, dir: &Path, args: &[&str]) -> Self {
        let mut argv = vec![BINARY.to_owned(), "forward".to_owned()];
        argv.extend(args.iter().map(|&a| a.to_owned()));
        argv.push("--quiet".to_owned());
        let log = dir.join(super::unique("log"));
        let mut process = Process::spawn(&argv, Some(netns), &[("XDG_RUNTIME_DIR", dir)], &log);
        process.wait_output("forwarding", PATIENCE, |text| text.contains(READY));
        Self { process, dir: dir.to_owned(), _own: None }
    }

    /// The process.
    pub fn process(&mut self) -> &mut Process {
        &mut self.process
    }

    /// The control socket of a data plane with this name.
    pub fn socket(&self, name: &str) -> PathBuf {
        self.dir.join("linerate").join(format!("{name}.sock"))
    }

    /// Runs `linerate forward WORDS` beside it, as an operator at another terminal does.
    pub fn operator(&self, words: &[&str]) -> Ended {
        let mut command = Command::new(BINARY);
        command.arg("forward").args(words).env("XDG_RUNTIME_DIR", &self.dir).env("PATH", path_with_sbin());
        ended(&command.output().expect("linerate runs"))
    }

    /// The same, which must succeed.
    #[track_caller]
    pub fn does(&self, words: &[&str]) -> Ended {
        let done = self.operator(words);
        assert_eq!(done.code, 0, "{words:?}: {}{}\n{}", done.stdout, done.stderr, self.process.tail());
        done
    }

    /// `show WHAT --json`.
    #[track_caller]
    pub fn show(&self, what: &str) -> Value {
        self.does(&["show", what, "--json"]).json()
    }

    /// Writes these bytes to the socket, closes that direction, and returns the lines that come back.
    pub fn raw_request(&self, name: &str, bytes: &[u8]) -> Vec<String> {
        let mut stream = UnixStream::connect(self.socket(name)).expect("the socket answers");
        stream.set_read_timeout(Some(Duration::from_secs(20))).expect("a timeout can be set");
        // A refusal may come before everything is written.
        let _ = stream.write_all(bytes);
        let _ = stream.shutdown(Shutdown::Write);
        BufReader::new(stream).lines().map_while(Result::ok).collect()
    }

    /// Frames in and made here against frames out, dropped, taken in and held, as (left, right) of the ledger
    /// `received + originated = sent + dropped + punted + held`.
    #[track_caller]
    pub fn ledger(&self) -> (u64, u64) {
        // Two questions: a frame of the kernel's own may come between them, so it is asked again until none has.
        let frames = |ports: &Value| -> Vec<(Value, Value)> {
            let all = ports.as_array().expect("a list of ports");
            all.iter().map(|p| (p["rx_frames"].clone(), p["tx_frames"].clone())).collect()
        };
        let (mut ports, mut drops) = (self.show("ports"), self.show("drops"));
        for _ in 0..20 {
            let after = self.show("ports");
            if frames(&after) == frames(&ports) {
                break;
            }
            (ports, drops) = (after, self.show("drops"));
        }
        let n = |value: &Value| value.as_u64().unwrap_or_else(|| panic!("no count in {ports} {drops}"));
        let sum = |key: &str| ports.as_array().expect("a list of ports").iter().map(|p| n(&p[key])).sum::<u64>();
        let dropped: u64 = drops["drops"].as_object().expect("drops by reason").values().map(n).sum();
        let received = sum("rx_frames") + n(&drops["originated_frames"]);
        (received, sum("tx_frames") + dropped + n(&drops["punted_frames"]) + n(&drops["held_frames"]))
    }

    /// Sends it a signal and waits for its end.
    pub fn end_by(&mut self, signal: &str) -> Option<ExitStatus> {
        self.process.signal(signal);
        self.process.wait_end(PATIENCE)
    }
}
