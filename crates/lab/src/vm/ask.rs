//! Questions to a guest over its virtio-serial port, a line of JSON each way.

use std::{
    io::{BufRead, BufReader, Read, Write},
    os::unix::net::UnixStream,
    path::Path,
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use failure::Failure;
use serde::{Deserialize, Serialize};

use crate::protocol::{Answer, Ask};

/// Most bytes read in search of an answer.
const MAX_BYTES: u64 = 1 << 20;

/// A question. Answers to earlier ones, which nobody waits for any more, may come first: each has a number.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Asked {
    /// The number.
    pub id: u64,
    /// The question.
    pub ask: Ask,
}

/// An answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Answered {
    /// The number of its question.
    pub id: u64,
    /// The answer.
    pub answer: Answer,
}

/// Asks the guest whose port QEMU joins to `socket`.
///
/// # Errors
///
/// (machine) when it does not answer in time.
pub fn ask(socket: &Path, ask: &Ask, within: Duration) -> Result<Answer, Failure> {
    let fail = |why: String| Failure::machine(format!("the guest behind {} does not answer: {why}", socket.display()));
    let until = Instant::now() + within;
    let talk = || -> std::io::Result<Option<Answer>> {
        let stream = UnixStream::connect(socket)?;
        stream.set_write_timeout(Some(within))?;
        let asked = Asked { id: number(), ask: ask.clone() };
        let mut out = &stream;
        out.write_all(format!("{}\n", serde_json::to_string(&asked)?).as_bytes())?;
        let mut lines = BufReader::new((&stream).take(MAX_BYTES));
        loop {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(None);
            }
            stream.set_read_timeout(Some(left))?;
            let mut line = Vec::new();
            if lines.read_until(b'\n', &mut line)? == 0 {
                return Ok(None);
            }
            // What is not an answer to this question is the rest of an earlier one.
            match serde_json::from_slice::<Answered>(&line) {
                Ok(Answered { id, answer }) if id == asked.id => return Ok(Some(answer)),
                _ => {}
            }
        }
    };
    match talk() {
        Ok(Some(Answer::Refused(why))) => {
            Err(Failure::machine(format!("the guest behind {}: {why}", socket.display())))
        }
        Ok(Some(answer)) => Ok(answer),
        Ok(None) => Err(fail(format!("nothing within {} ms", within.as_millis()))),
        Err(e) => Err(fail(e.to_string())),
    }
}

/// A number that no earlier question had.
fn number() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos() & u128::from(u64::MAX >> 1)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixListener;

    use super::*;

    /// A guest that answers with these lines; `ID` is the number of the question.
    fn guest(lines: &'static [&'static str]) -> (tempfile::TempDir, std::path::PathBuf) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("ctl");
        let listener = UnixListener::bind(&path).unwrap();
        std::thread::spawn(move || {
            let (stream, _) = listener.accept().unwrap();
            let mut line = String::new();
            BufReader::new(&stream).read_line(&mut line).unwrap();
            let asked: Asked = serde_json::from_str(&line).unwrap();
            let mut out = &stream;
            for line in lines {
                out.write_all(line.replace("ID", &asked.id.to_string()).as_bytes()).unwrap();
            }
            std::thread::sleep(Duration::from_millis(300));
        });
        (dir, path)
    }

    #[test]
    fn the_answer_with_the_questions_number_counts() {
        let lines = &[
            "rest of a line\n",
            "{\"id\":1,\"answer\":{\"versions\":[]}}\n",
            "{\"id\":ID,\"answer\":{\"versions\":[\"6.1\"]}}\n",
        ];
        let (_dir, path) = guest(lines);
        let answer = ask(&path, &Ask::Versions, Duration::from_secs(5)).unwrap();
        assert_eq!(answer, Answer::Versions(vec!["6.1".to_owned()]));
    }

    #[test]
    fn a_guest_that_is_silent_or_refuses_is_a_failure_of_the_machine() {
        let within = Duration::from_millis(100);
        for lines in [
            &[][..],
            &["{\"id\":ID,\"answer\":{\"refused\":\"no\"}}\n"],
            &["{\"id\":7,\"answer\":{\"refused\":\"no\"}}\n"],
        ] {
            let (_dir, path) = guest(lines);
            assert_eq!(ask(&path, &Ask::Check, within).unwrap_err().exit, failure::Exit::Machine);
        }
        assert!(ask(Path::new("/nothing/there"), &Ask::Check, within).is_err());
    }
}
