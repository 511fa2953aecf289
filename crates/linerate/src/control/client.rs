//! The asking end of the control socket.

use std::{
    io::{self, BufRead, BufReader, Read, Write},
    os::unix::net::UnixStream,
    path::{Path, PathBuf},
    time::Duration,
};

use serde_json::Value;

use super::{directory, running, Request};
use crate::failure::Failure;

/// A client's end.
pub struct Client {
    stream: UnixStream,
    reader: BufReader<UnixStream>,
    path: PathBuf,
}

impl Client {
    /// Connects to the data plane of this name or socket, or to the only one that runs.
    pub fn connect(name: Option<&str>, socket: Option<&Path>) -> Result<Self, Failure> {
        let path = match (socket, name) {
            (Some(path), _) => path.to_owned(),
            (None, Some(name)) => directory().join(format!("{name}.sock")),
            (None, None) => match running().as_slice() {
                [one] => directory().join(format!("{one}.sock")),
                [] => {
                    return Err(Failure::machine(
                        "no linerate forward or flowlog runs here as this user: start one, or name its --socket",
                    ))
                }
                many => return Err(Failure::usage(format!("several run: choose one with --name {}", many.join("|")))),
            },
        };
        let fail = |e: io::Error| {
            let there = match running().as_slice() {
                [] => "none runs here as this user".to_owned(),
                names => format!("running here: {}", names.join(", ")),
            };
            Failure::machine(format!("no data plane answers at {}: {e}; {there}", path.display()))
        };
        let stream = UnixStream::connect(&path).map_err(fail)?;
        let reader = BufReader::new(stream.try_clone().map_err(fail)?);
        Ok(Self { stream, reader, path })
    }

    /// Tells it to end, and waits so long until its process has.
    pub fn stop(&mut self, limit: Duration) -> Result<(), Failure> {
        self.ask(&Request::Stop(true), &[])?;
        let at = self.path.display();
        self.stream.set_read_timeout(Some(limit)).map_err(|e| Failure::failed(format!("{at}: {e}")))?;
        loop {
            // The kernel closes the other end when the last thread there is gone.
            match self.reader.read(&mut [0]) {
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) if matches!(e.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => {
                    return Err(Failure::failed(format!(
                        "{at}: was told to end and has not ended within {limit:?}: wait for its process, or kill it"
                    )))
                }
                _ => return Ok(()),
            }
        }
    }

    /// Asks, sends the lines that belong to it, and waits for the answer. A refusal is a usage failure in the data
    /// plane's words.
    pub fn ask(&mut self, request: &Request, lines: &[u8]) -> Result<Value, Failure> {
        let lost = |e: String| Failure::failed(format!("{}: the data plane did not answer: {e}", self.path.display()));
        let text = serde_json::to_string(request).map_err(Failure::failed)?;
        // A refusal may come, and the other side be gone, before everything is written: the answer says which.
        let sent = self.stream.write_all(format!("{text}\n").as_bytes()).and_then(|()| self.stream.write_all(lines));
        let mut answer = String::new();
        self.reader.read_line(&mut answer).map_err(|e| lost(e.to_string()))?;
        if answer.is_empty() {
            return Err(lost(sent.err().map_or("it ended".into(), |e| e.to_string())));
        }
        match serde_json::from_str::<Value>(&answer) {
            Ok(Value::Object(mut map)) => match (map.remove("ok"), map.remove("error")) {
                (Some(value), _) => Ok(value),
                (_, Some(Value::String(text))) => Err(Failure::usage(text)),
                _ => Err(lost(format!("not an answer: {answer:.200}"))),
            },
            _ => Err(lost(format!("not an answer: {answer:.200}"))),
        }
    }
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
    fn who_ends_is_waited_for_and_who_does_not_is_told_of() {
        let (mut asking, mut other) = client();
        other.write_all(b"{\"ok\":{\"stopping\":true}}\n").unwrap();
        let failure = asking.stop(Duration::from_millis(20)).unwrap_err();
        assert_eq!(failure.exit, crate::failure::Exit::Failed);
        assert!(failure.text.starts_with("there: was told to end and has not ended within 20ms"), "{failure}");

        let (mut asking, mut other) = client();
        other.write_all(b"{\"ok\":{\"stopping\":true}}\n").unwrap();
        let ends = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(50));
            drop(other);
        });
        asking.stop(Duration::from_secs(60)).unwrap();
        ends.join().unwrap();
    }
}
