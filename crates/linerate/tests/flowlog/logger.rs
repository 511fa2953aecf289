//! `linerate flowlog` with a directory of its own, and a client of it.

use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};
use std::time::Duration;

use serde_json::{json, Value};
use tempfile::TempDir;

use crate::support::{
    raw::inside,
    tester::{ended, Ended, BINARY},
    unique,
    words::{FLOWS_AT, READY},
    Netns, Process,
};

const PATIENCE: Duration = Duration::from_secs(60);

/// A directory for sockets, logs and files.
pub fn directory() -> TempDir {
    tempfile::Builder::new().prefix("lrflow").tempdir().expect("a directory")
}

/// `linerate flowlog` with `args`, to its end.
pub fn flowlog(dir: &Path, args: &[&str]) -> Ended {
    let mut command = Command::new(BINARY);
    command.arg("flowlog").args(args).env("XDG_RUNTIME_DIR", dir);
    ended(&command.output().expect("linerate runs"))
}

/// A logger that runs. Dropping it ends it.
pub struct Logger<'a> {
    pub process: Process,
    netns: Option<&'a Netns>,
    address: SocketAddr,
    dir: PathBuf,
}

impl<'a> Logger<'a> {
    /// Starts it and waits until it logs. Clients read it at a free port unless `args` say where.
    #[track_caller]
    pub fn start(netns: Option<&'a Netns>, dir: &Path, args: &[&str]) -> Self {
        Self::ready(Self::spawn(&[], netns, dir, args), netns, dir)
    }

    /// Starts it, by `how` if that is given.
    pub fn spawn(how: &[&str], netns: Option<&Netns>, dir: &Path, args: &[&str]) -> Process {
        let listen: &[&str] = if args.contains(&"--listen") { &[] } else { &["--listen", "127.0.0.1:0"] };
        let argv = [how, &[BINARY, "flowlog", "--quiet"], listen, args].concat();
        let argv: Vec<String> = argv.iter().map(|&a| a.to_owned()).collect();
        Process::spawn(&argv, netns, &[("XDG_RUNTIME_DIR", dir)], &dir.join(unique("log")))
    }

    /// Waits until it logs.
    #[track_caller]
    pub fn ready(mut process: Process, netns: Option<&'a Netns>, dir: &Path) -> Self {
        process.wait_output("logging", PATIENCE, |text| text.contains(READY));
        let said = process.output();
        let address = said.split_once(FLOWS_AT).and_then(|(_, rest)| rest.split(';').next()?.parse().ok());
        let address = address.unwrap_or_else(|| panic!("no address in {said}"));
        Self { process, netns, address, dir: dir.to_owned() }
    }

    /// Where it is read.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    pub fn client(&self) -> Client {
        let connect = || TcpStream::connect(self.address).expect("the logger answers");
        Client::new(match self.netns {
            Some(netns) => inside(netns, connect),
            None => connect(),
        })
    }

    /// `linerate flowlog WORDS` beside it.
    pub fn operator(&self, words: &[&str]) -> Ended {
        flowlog(&self.dir, words)
    }

    /// Sends it a signal and waits for its end; what it said.
    pub fn end_by(mut self, signal: &str) -> (Option<ExitStatus>, String) {
        self.process.signal(signal);
        let status = self.process.wait_end(PATIENCE);
        (status, self.process.output())
    }
}

/// A connection of the read protocol, spoken by hand.
pub struct Client {
    reader: BufReader<TcpStream>,
    pub hello: Value,
    asked: u64,
}

impl Client {
    fn new(stream: TcpStream) -> Self {
        stream.set_read_timeout(Some(PATIENCE)).expect("a timeout can be set");
        let mut client = Self { reader: BufReader::new(stream), hello: Value::Null, asked: 0 };
        client.hello = client.line();
        client
    }

    #[track_caller]
    fn line(&mut self) -> Value {
        let mut line = String::new();
        self.reader.read_line(&mut line).expect("a line");
        serde_json::from_str(&line).unwrap_or_else(|e| panic!("{line:?}: {e}"))
    }

    /// Asks; the answer of this name.
    #[track_caller]
    pub fn ask(&mut self, mut request: Value, what: &str) -> Value {
        self.asked += 1;
        request["id"] = self.asked.into();
        self.reader.get_mut().write_all(format!("{request}\n").as_bytes()).expect("it listens");
        let answer = self.line();
        assert_eq!(answer["id"], self.asked, "{answer}");
        assert!(answer.get(what).is_some(), "{request}: {answer}");
        answer[what].clone()
    }

    #[track_caller]
    pub fn totals(&mut self) -> Value {
        self.ask(json!({ "ask": "totals" }), "totals")
    }

    /// Every flow.
    #[track_caller]
    pub fn flows(&mut self) -> Vec<Value> {
        let (mut all, mut cursor) = (Vec::new(), Value::Null);
        loop {
            let page = self.ask(json!({ "ask": "flows", "limit": 1000, "cursor": cursor }), "page");
            all.extend(page["flows"].as_array().expect("flows").iter().cloned());
            cursor = page["next"].clone();
            if cursor.is_null() {
                return all;
            }
        }
    }
}

/// The records in a file of JSON lines, each of them whole.
#[track_caller]
pub fn records(path: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    assert!(text.is_empty() || text.ends_with('\n'), "half a line: {text}");
    text.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|e| panic!("{line}: {e}"))).collect()
}

/// The sum of a count, both ways, over records.
pub fn sum(records: &[Value], what: &str) -> u64 {
    let n = |way: &Value| way[what].as_u64().expect("a count");
    records.iter().map(|r| n(&r["forward"]) + n(&r["back"])).sum()
}
