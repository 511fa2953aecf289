//! The guest's end of its virtio-serial port.

use std::{
    fs::{self, File, OpenOptions},
    io::{Read, Write},
    path::PathBuf,
    time::{Duration, Instant},
};

use failure::Failure;
use lab::vm::PORT;
use rustix::event::{poll, PollFd, PollFlags, Timespec};

/// How long the kernel may take to find the port after its module is loaded.
const FOUND: Duration = Duration::from_secs(20);

/// Time between looks while nobody is connected: the port cannot be waited for then.
const LOOK: Duration = Duration::from_millis(20);

/// Time between two questions whether to go on.
const WAIT: Timespec = Timespec { tv_sec: 0, tv_nsec: 200_000_000 };

/// Longest question.
const MAX_LINE: usize = 4096;

/// The port.
pub(super) struct Port {
    file: File,
    unread: Vec<u8>,
}

impl Port {
    pub(super) fn open() -> Result<Self, Failure> {
        let until = Instant::now() + FOUND;
        loop {
            if let Some(path) = find() {
                let file = OpenOptions::new().read(true).write(true).open(&path);
                let file = file.map_err(|e| Failure::failed(format!("{}: {e}", path.display())))?;
                return Ok(Self { file, unread: Vec::new() });
            }
            if Instant::now() > until {
                return Err(Failure::failed(format!("no virtio-serial port named {PORT}")));
            }
            std::thread::sleep(LOOK);
        }
    }

    /// The next line; waits for it, and asks now and then whether to go on.
    pub(super) fn line(&mut self, mut go_on: impl FnMut() -> Result<(), Failure>) -> Result<Vec<u8>, Failure> {
        loop {
            if let Some(end) = self.unread.iter().position(|&byte| byte == b'\n') {
                let mut line: Vec<u8> = self.unread.drain(..=end).collect();
                line.pop();
                return Ok(line);
            }
            if self.unread.len() > MAX_LINE {
                self.unread.clear();
            }
            go_on()?;
            let mut ready = [PollFd::new(&self.file, PollFlags::IN)];
            if poll(&mut ready, Some(&WAIT)).is_ok_and(|n| n == 0) {
                continue;
            }
            let mut bytes = [0; 1024];
            match self.file.read(&mut bytes) {
                // Nobody is connected.
                Ok(0) => std::thread::sleep(LOOK),
                Ok(n) => self.unread.extend(bytes.get(..n).unwrap_or_default()),
                Err(e) if e.kind() == std::io::ErrorKind::Interrupted => {}
                Err(e) => return Err(Failure::failed(format!("virtio-serial port: {e}"))),
            }
        }
    }

    /// Answers. Waits while nobody is connected.
    pub(super) fn answer(&mut self, text: &[u8]) -> Result<(), Failure> {
        self.file.write_all(text).map_err(|e| Failure::failed(format!("virtio-serial port: {e}")))
    }
}

/// The device of the port with our name.
fn find() -> Option<PathBuf> {
    let entries = fs::read_dir("/sys/class/virtio-ports").ok()?;
    let ours = entries.flatten().find(|entry| {
        let name = fs::read_to_string(entry.path().join("name")).unwrap_or_default();
        name.trim() == PORT
    })?;
    Some(PathBuf::from("/dev").join(ours.file_name()))
}
