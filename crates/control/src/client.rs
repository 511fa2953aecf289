//! The client's end of the control socket.

use std::{
    io::{self, BufRead, BufReader, Read, Write},
    os::unix::net::UnixStream,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use serde_json::Value;

use failure::Failure;

use crate::{
    directory::{directory, running},
    request::Request,
};

/// How long to wait for the next part of an answer.
const ANSWER: Duration = Duration::from_secs(5);
/// The same for a load, to which its lines add.
const LOAD: Duration = Duration::from_secs(60);
const LOAD_LINE: Duration = Duration::from_micros(20);

/// From when on a stop that lasts is told of.
const TELL_AFTER: Duration = Duration::from_secs(1);

/// How long to wait for the name of the command.
const COMMAND: Duration = Duration::from_secs(1);

/// How long to wait for the answer to this request.
fn answer_timeout(request: &Request) -> Duration {
    match request {
        Request::Load(lines) => LOAD + LOAD_LINE * u32::try_from(*lines).unwrap_or(u32::MAX),
        _ => ANSWER,
    }
}

/// A client's end.
pub struct Client {
    stream: UnixStream,
    reader: BufReader<UnixStream>,
    path: PathBuf,
}

impl Client {
    /// Connects to the data plane of this name or socket; without either, to the only one of this `command` that runs.
    ///
    /// # Errors
    ///
    /// (machine) when no data plane answers; (usage) when several run and none is named.
    pub fn connect(command: &str, name: Option<&str>, socket: Option<&Path>) -> Result<Self, Failure> {
        let path = match (socket, name) {
            (Some(path), _) => path.to_owned(),
            (None, Some(name)) => socket_of(name),
            (None, None) => socket_of(&only(command, &running(), runs)?),
        };
        Self::open(path)
    }

    fn open(path: PathBuf) -> Result<Self, Failure> {
        let fail = |e: io::Error| {
            let running = match running().as_slice() {
                [] => "none runs here as this user".to_owned(),
                names => format!("running here: {}", names.join(", ")),
            };
            Failure::machine(format!("no data plane answers at {}: {e}; {running}", path.display()))
        };
        let stream = UnixStream::connect(&path).map_err(fail)?;
        let reader = BufReader::new(stream.try_clone().map_err(fail)?);
        Ok(Self { stream, reader, path })
    }

    /// Stops the data plane, and waits until its process has ended. Calls `waits` once if that takes longer than a second.
    ///
    /// # Errors
    ///
    /// (failed) when it has not ended within the limit; (usage) when it refuses.
    pub fn stop(&mut self, limit: Duration, waits: impl FnOnce()) -> Result<(), Failure> {
        let by = Instant::now() + limit;
        let mut waits = Some(waits);
        let late = |at: &Path| {
            let at = at.display();
            Failure::failed(format!(
                "{at}: the process was told to stop and has not ended within {limit:?}: wait for it, or kill it"
            ))
        };
        match self.exchange(&Request::Stop(true), &[], limit) {
            Err(e) if is_wait(&e) => return Err(late(&self.path)),
            // It was ending already, and is gone.
            Err(_) => return Ok(()),
            Ok(answer) if answer.is_empty() => return Ok(()),
            Ok(answer) => _ = self.value(&answer)?,
        }
        loop {
            let left = by.saturating_duration_since(Instant::now());
            let step = if waits.is_some() { left.min(TELL_AFTER) } else { left };
            if left.is_zero() || self.limit(step).is_err() {
                return Err(late(&self.path));
            }
            // The kernel closes the other end when the last thread there is gone.
            match self.reader.read(&mut [0]) {
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) if is_wait(&e) => match waits.take() {
                    Some(waits) => waits(),
                    None => return Err(late(&self.path)),
                },
                _ => return Ok(()),
            }
        }
    }

    /// Sends the request and the lines that belong to it, and waits for the answer.
    ///
    /// # Errors
    ///
    /// (usage) when the data plane refuses, with its reason; (failed) when no answer comes in time.
    pub fn ask(&mut self, request: &Request, lines: &[u8]) -> Result<Value, Failure> {
        self.ask_within(request, lines, answer_timeout(request))
    }

    fn ask_within(&mut self, request: &Request, lines: &[u8], limit: Duration) -> Result<Value, Failure> {
        match self.exchange(request, lines, limit) {
            Ok(answer) if answer.is_empty() => Err(self.no_answer("it ended")),
            Ok(answer) => self.value(&answer),
            Err(e) if is_wait(&e) => Err(self.no_answer(format_args!(
                "nothing came for {limit:?}. Its process is suspended, ending or busy: check it, or ask again"
            ))),
            Err(e) => Err(self.no_answer(e)),
        }
    }

    /// Sends the request and returns the line that comes back; an empty one when the server is gone.
    fn exchange(&mut self, request: &Request, lines: &[u8], limit: Duration) -> io::Result<String> {
        let text = serde_json::to_string(request)?;
        self.limit(limit)?;
        // The server may refuse and close before everything is written: its answer is read all the same.
        let sent = self.stream.write_all(format!("{text}\n").as_bytes()).and_then(|()| self.stream.write_all(lines));
        let mut answer = String::new();
        match sent {
            Err(e) if is_wait(&e) => return Err(e),
            Err(e) if self.reader.read_line(&mut answer)? == 0 => return Err(e),
            Err(_) => {}
            Ok(()) => _ = self.reader.read_line(&mut answer)?,
        }
        Ok(answer)
    }

    /// The value in an answer.
    fn value(&self, answer: &str) -> Result<Value, Failure> {
        let malformed = || self.no_answer(format_args!("this is not an answer: {answer:.200}"));
        match serde_json::from_str::<Value>(answer) {
            Ok(Value::Object(mut map)) => match (map.remove("ok"), map.remove("error")) {
                (Some(value), _) => Ok(value),
                (_, Some(Value::String(text))) => Err(Failure::usage(text)),
                _ => Err(malformed()),
            },
            _ => Err(malformed()),
        }
    }

    fn limit(&self, time: Duration) -> io::Result<()> {
        self.stream.set_read_timeout(Some(time)).and_then(|()| self.stream.set_write_timeout(Some(time)))
    }

    fn no_answer(&self, why: impl std::fmt::Display) -> Failure {
        Failure::failed(format!("{}: the data plane did not answer: {why}", self.path.display()))
    }
}

fn socket_of(name: &str) -> PathBuf {
    directory().join(format!("{name}.sock"))
}

/// The command behind a name; `None` when it does not say.
fn runs(name: &str) -> Option<String> {
    let mut client = Client::open(socket_of(name)).ok()?;
    client.ask_within(&Request::Command, &[], COMMAND).ok()?.as_str().map(str::to_owned)
}

/// The only one of these names that runs the command. One that does not say what it runs may be it.
fn only(command: &str, names: &[String], runs: impl Fn(&str) -> Option<String>) -> Result<String, Failure> {
    let (own, others): (Vec<_>, Vec<_>) =
        names.iter().cloned().partition(|name| runs(name).is_none_or(|runs| runs == command));
    match (own.as_slice(), others.is_empty()) {
        ([one], _) => Ok(one.clone()),
        ([], true) => Err(Failure::machine(format!(
            "no linerate {command} runs here as this user: start one, or give the --socket of another user's"
        ))),
        ([], false) => Err(Failure::machine(format!(
            "no linerate {command} runs here as this user. What runs: {}. Start one, or give its --name",
            others.join(", ")
        ))),
        (many, _) => {
            Err(Failure::usage(format!("several linerate {command} run: choose one with --name {}", many.join("|"))))
        }
    }
}

/// Whether the timeout ended it.
fn is_wait(e: &io::Error) -> bool {
    matches!(e.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A client, and the other end of its connection.
    fn client() -> (Client, UnixStream) {
        let (stream, other) = UnixStream::pair().unwrap();
        let reader = BufReader::new(stream.try_clone().unwrap());
        (Client { stream, reader, path: "there".into() }, other)
    }

    #[test]
    fn a_stop_waits_for_the_end_of_the_process() {
        let (mut asking, mut other) = client();
        other.write_all(b"{\"ok\":{\"stopping\":true}}\n").unwrap();
        let failure = asking.stop(Duration::from_millis(20), || {}).unwrap_err();
        assert_eq!(failure.exit, failure::Exit::Failed);
        insta::assert_snapshot!(failure, @"there: the process was told to stop and has not ended within 20ms: wait for it, or kill it");

        for (ends_ms, told) in [(50, 0), (1_100, 1)] {
            let (mut asking, mut other) = client();
            other.write_all(b"{\"ok\":{\"stopping\":true}}\n").unwrap();
            let ends = std::thread::spawn(move || {
                std::thread::sleep(Duration::from_millis(ends_ms));
                drop(other);
            });
            let mut waits = 0;
            asking.stop(Duration::from_secs(60), || waits += 1).unwrap();
            ends.join().unwrap();
            assert_eq!(waits, told, "{ends_ms} ms");
        }
        // A refusal does not end the process.
        let (mut asking, mut other) = client();
        other.write_all(b"{\"error\":\"busy\"}\n").unwrap();
        drop(other);
        assert_eq!(asking.stop(Duration::from_secs(60), || {}).unwrap_err().text, "busy");
        // A suspended process does not even answer.
        let (mut asking, _other) = client();
        assert_eq!(asking.stop(Duration::from_millis(20), || {}).unwrap_err().exit, failure::Exit::Failed);
    }

    #[test]
    fn a_request_without_a_name_goes_to_the_only_one_of_its_command() {
        let names = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect::<Vec<_>>();
        let runs = |name: &str| match name {
            "old" => None,
            name => Some(name.trim_end_matches(char::is_numeric).to_owned()),
        };
        let choose = |running: &[&str]| only("forward", &names(running), runs);
        assert_eq!(choose(&["flowlog", "forward"]).unwrap(), "forward");
        assert_eq!(choose(&["flowlog", "old"]).unwrap(), "old");
        let refused =
            [&[][..], &["flowlog"], &["forward1", "forward2", "flowlog"]].map(|running| choose(running).unwrap_err());
        assert_eq!(
            refused.each_ref().map(|f| f.exit),
            [failure::Exit::Machine, failure::Exit::Machine, failure::Exit::Usage]
        );
        insta::assert_snapshot!(refused.map(|f| f.text).join("\n"), @r"
        no linerate forward runs here as this user: start one, or give the --socket of another user's
        no linerate forward runs here as this user. What runs: flowlog. Start one, or give its --name
        several linerate forward run: choose one with --name forward1|forward2
        ");
    }

    #[test]
    fn a_missing_answer_is_an_error_and_a_load_has_more_time() {
        let show = Request::Show { what: "runtime".into(), json: false, limit: None, interval_s: None };
        // Too much for the socket's buffer: not even the request can be sent.
        let many = vec![b'x'; 8 << 20];
        let mut texts = Vec::new();
        for (request, lines) in [(show, &[][..]), (Request::Load(1), &many)] {
            let (mut asking, _other) = client();
            let failure = asking.ask_within(&request, lines, Duration::from_millis(20)).unwrap_err();
            assert_eq!(failure.exit, failure::Exit::Failed);
            texts.push(failure.text);
        }
        assert_eq!(texts[0], texts[1]);
        insta::assert_snapshot!(texts[0], @"there: the data plane did not answer: nothing came for 20ms. Its process is suspended, ending or busy: check it, or ask again");
        assert_eq!(answer_timeout(&Request::Apply(vec![])), Duration::from_secs(5));
        assert_eq!(answer_timeout(&Request::Load(1_000_000)), Duration::from_secs(80));
    }
}
