//! The server's end of the control socket.

use std::{
    fs,
    io::{self, BufRead, BufReader, Read, Write},
    os::unix::{
        fs::PermissionsExt,
        net::{UnixListener, UnixStream},
    },
    path::{Path, PathBuf},
    sync::{
        atomic::{AtomicBool, AtomicUsize, Ordering},
        mpsc::{self, Receiver, SyncSender},
        Arc,
    },
    thread,
    time::Duration,
};

use serde_json::{json, Value};

use failure::Failure;

use crate::{
    directory::private_directory,
    request::{Request, MAX_LOAD},
};

/// Longest request line, and longest line of a load, in bytes.
const MAX_LINE: u64 = 64 << 10;
/// Most bytes of one load.
const MAX_LOAD_BYTES: usize = 1 << 30;
/// A client that sends nothing for so long is disconnected.
const CLIENT_TIMEOUT: Duration = Duration::from_secs(10);
/// Most clients at once.
const MAX_CLIENTS: usize = 8;

/// A request that waits for the thread that owns the tables.
pub struct PendingRequest {
    /// The request; loads have become [`Request::Apply`].
    pub request: Request,
    /// Where the answer goes.
    pub answer: SyncSender<Result<Value, String>>,
}

/// The listening socket. It is removed when this is dropped.
pub struct Server {
    path: PathBuf,
    stop: Arc<AtomicBool>,
    thread: Option<thread::JoinHandle<()>>,
}

impl Server {
    /// Listens under this name; without one, under that of the `command`, or `command-PID` when that is taken. Requests
    /// arrive at the receiver.
    ///
    /// # Errors
    ///
    /// (usage) for a name that is not legal or is taken; (machine) when no socket can be made.
    pub fn start(command: &str, name: Option<&str>) -> Result<(Self, Receiver<PendingRequest>), Failure> {
        let dir = private_directory()?;
        let own = format!("{command}-{}", std::process::id());
        let candidates = name.map_or(vec![command, &own], |name| vec![name]);
        if let Some(bad) = candidates.iter().find(|n| {
            n.is_empty() || n.len() > 64 || !n.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c))
        }) {
            return Err(Failure::usage(format!("--name {bad:?}: must be 1 to 64 letters, digits, `-`, `_` or `.`")));
        }
        for candidate in &candidates {
            let path = dir.join(format!("{candidate}.sock"));
            if UnixStream::connect(&path).is_ok() {
                continue;
            }
            // A socket that nobody answers is of a process that was killed.
            let _ = fs::remove_file(&path);
            let fail = |e: io::Error| Failure::machine(format!("control socket {}: {e}", path.display()));
            let listener = UnixListener::bind(&path).map_err(fail)?;
            fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).map_err(fail)?;
            listener.set_nonblocking(true).map_err(fail)?;
            let (requests, asked) = mpsc::sync_channel(MAX_CLIENTS);
            let stop = Arc::new(AtomicBool::new(false));
            let (seen, command) = (Arc::clone(&stop), Arc::from(command));
            let thread = thread::Builder::new()
                .name("control".into())
                .spawn(move || accept(&listener, &command, &requests, &seen))
                .map_err(fail)?;
            return Ok((Self { path, stop, thread: Some(thread) }, asked));
        }
        Err(Failure::usage(format!(
            "--name {}: another linerate has this name: choose another",
            candidates.last().unwrap_or(&"")
        )))
    }

    /// The socket's path.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        let _ = fs::remove_file(&self.path);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn accept(listener: &UnixListener, command: &Arc<str>, requests: &SyncSender<PendingRequest>, stop: &Arc<AtomicBool>) {
    let clients = Arc::new(AtomicUsize::new(0));
    while !stop.load(Ordering::Relaxed) {
        let Ok((stream, _)) = listener.accept() else {
            thread::sleep(Duration::from_millis(10));
            continue;
        };
        let (command, requests, clients) = (Arc::clone(command), requests.clone(), Arc::clone(&clients));
        if clients.fetch_add(1, Ordering::Relaxed) >= MAX_CLIENTS {
            clients.fetch_sub(1, Ordering::Relaxed);
            send_answer(&stream, &Err(format!("busy: {MAX_CLIENTS} clients are connected already")));
            continue;
        }
        let done = Arc::clone(&clients);
        let serve = move || {
            let _ = serve(&stream, &command, &requests);
            done.fetch_sub(1, Ordering::Relaxed);
        };
        if thread::Builder::new().name("client".into()).spawn(serve).is_err() {
            clients.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

fn send_answer(mut stream: &UnixStream, answer: &Result<Value, String>) {
    let value = match answer {
        Ok(value) => json!({ "ok": value }),
        Err(text) => json!({ "error": text }),
    };
    let _ = stream.set_write_timeout(Some(CLIENT_TIMEOUT));
    let _ = stream.write_all(format!("{value}\n").as_bytes());
}

/// Answers one client until it leaves, sends nothing for [`CLIENT_TIMEOUT`], or sends something other than a request.
fn serve(stream: &UnixStream, command: &str, requests: &SyncSender<PendingRequest>) -> io::Result<()> {
    stream.set_nonblocking(false)?;
    stream.set_read_timeout(Some(CLIENT_TIMEOUT))?;
    let mut reader = BufReader::new(stream);
    loop {
        let line = match line(&mut reader)? {
            Line::End => return Ok(()),
            Line::TooLong => {
                send_answer(stream, &Err(format!("a request must be one line of at most {MAX_LINE} bytes")));
                return Ok(());
            }
            Line::Text(line) => line,
        };
        let request = match serde_json::from_str(&line) {
            Ok(Request::Stop(true)) => {
                // A client that stops the run may wait for its end: the connection breaks with the process. Later stops
                // are answered too, when requests are no longer read. The queue has room for a request of every client.
                stream.set_read_timeout(None)?;
                let (answer, _) = mpsc::sync_channel(1);
                let _ = requests.try_send(PendingRequest { request: Request::Stop(true), answer });
                send_answer(stream, &Ok(json!({ "stopping": true })));
                continue;
            }
            Ok(Request::Command) => {
                send_answer(stream, &Ok(json!(command)));
                continue;
            }
            Ok(Request::Load(lines)) => match load(&mut reader, lines)? {
                Ok(ops) => Request::Apply(ops),
                Err(why) => {
                    // What follows may be the rest of the load.
                    send_answer(stream, &Err(why));
                    return Ok(());
                }
            },
            Ok(request) => request,
            Err(e) => {
                send_answer(stream, &Err(format!("this is not a request: {e}")));
                continue;
            }
        };
        let (answer, answered) = mpsc::sync_channel(1);
        let ending = || Err("the data plane is ending".to_owned());
        let reply = match requests.send(PendingRequest { request, answer }) {
            Ok(()) => answered.recv().unwrap_or_else(|_| ending()),
            Err(_) => ending(),
        };
        send_answer(stream, &reply);
    }
}

enum Line {
    Text(String),
    TooLong,
    End,
}

fn line(reader: &mut impl BufRead) -> io::Result<Line> {
    let mut bytes = Vec::new();
    reader.by_ref().take(MAX_LINE).read_until(b'\n', &mut bytes)?;
    match bytes.last() {
        None => Ok(Line::End),
        Some(b'\n') => Ok(Line::Text(String::from_utf8_lossy(bytes.trim_ascii_end()).into_owned())),
        Some(_) if bytes.len() as u64 == MAX_LINE => Ok(Line::TooLong),
        // The client left in the middle of a line, which is not a request.
        Some(_) => Ok(Line::End),
    }
}

fn load(reader: &mut impl BufRead, lines: u64) -> io::Result<Result<Vec<String>, String>> {
    if lines > MAX_LOAD {
        return Ok(Err(format!("{lines} lines at once: must be at most {MAX_LOAD}")));
    }
    let mut ops = Vec::with_capacity((lines as usize).min(1 << 16));
    let mut bytes = 0;
    for number in 1..=lines {
        match line(reader)? {
            Line::Text(text) => {
                bytes += text.len();
                if bytes > MAX_LOAD_BYTES {
                    return Ok(Err(format!("line {number} exceeds {MAX_LOAD_BYTES} bytes in all: load in parts")));
                }
                ops.push(text);
            }
            Line::TooLong => return Ok(Err(format!("line {number} is longer than {MAX_LINE} bytes"))),
            Line::End => return Ok(Err(format!("{lines} lines were announced, {} were received", number - 1))),
        }
    }
    Ok(Ok(ops))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &str) -> Vec<String> {
        let mut reader = BufReader::new(text.as_bytes());
        let mut all = Vec::new();
        while let Line::Text(text) = line(&mut reader).unwrap() {
            all.push(text);
        }
        all
    }

    #[test]
    fn half_a_line_is_not_a_request() {
        assert_eq!(lines("one\ntwo\r\nthr"), ["one", "two"]);
        assert!(lines(&"x".repeat(MAX_LINE as usize + 1)).is_empty());
    }

    #[test]
    fn a_second_stop_is_answered_as_the_first() {
        let (requests, asked) = mpsc::sync_channel(MAX_CLIENTS);
        let stop = || {
            let (client, server) = UnixStream::pair().unwrap();
            let requests = requests.clone();
            let thread = thread::spawn(move || serve(&server, "forward", &requests));
            (&client).write_all(b"{\"stop\":true}\n").unwrap();
            let mut answer = String::new();
            BufReader::new(&client).read_line(&mut answer).unwrap();
            assert_eq!(answer, "{\"ok\":{\"stopping\":true}}\n");
            // It stays connected until the process ends.
            assert!(!thread.is_finished());
            (client, thread)
        };
        let first = stop();
        assert!(matches!(asked.recv().unwrap().request, Request::Stop(true)));
        // Nobody reads requests, and then nobody can.
        let second = stop();
        drop(asked);
        let third = stop();
        for (client, thread) in [first, second, third] {
            drop(client);
            thread.join().unwrap().unwrap();
        }
    }

    #[test]
    fn loads_are_bounded_and_whole() {
        let read = |text: &str, n| load(&mut BufReader::new(text.as_bytes()), n).unwrap();
        assert_eq!(read("a\nb\n", 2).unwrap(), ["a", "b"]);
        insta::assert_snapshot!(read("a\n", 2).unwrap_err(), @"2 lines were announced, 1 were received");
        insta::assert_snapshot!(read("", MAX_LOAD + 1).unwrap_err(), @"8388609 lines at once: must be at most 8388608");
    }
}
