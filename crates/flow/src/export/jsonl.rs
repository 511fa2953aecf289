//! Records as lines of JSON in a file that is rotated.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, ErrorKind, Write},
    os::unix::fs::MetadataExt,
    path::PathBuf,
    sync::Arc,
    time::{Duration, Instant},
};

use super::{
    counters::Counters,
    json_file::{lock_alone, whole_lines},
    output::{Log, Output, Trouble},
    spec::FileSpec,
};
use crate::Record;

/// Bytes of one write, but for its last line.
const WRITE: usize = 64 << 10;
/// How often to look for the file's age, and whether it is still the one of that name.
const LOOK: Duration = Duration::from_secs(1);

/// Records as lines of JSON; see [`FileSpec`] for what a reader can count on.
pub(super) struct JsonLines {
    spec: FileSpec,
    counters: Arc<Counters>,
    log: Log,
    file: Option<File>,
    /// A file, not a device or a pipe: those are never moved or cut.
    regular: bool,
    /// Bytes of whole lines in the file.
    size: u64,
    opened: Instant,
    looked: Instant,
    out: Vec<u8>,
}

impl JsonLines {
    pub fn new(spec: FileSpec, counters: Arc<Counters>, log: Log) -> Self {
        let now = Instant::now();
        Self { spec, counters, log, file: None, regular: false, size: 0, opened: now, looked: now, out: Vec::new() }
    }

    fn open_file(&mut self) -> io::Result<()> {
        let file = OpenOptions::new().read(true).append(true).create(true).open(&self.spec.path)?;
        self.size = 0;
        self.regular = file.metadata()?.is_file();
        if self.regular {
            lock_alone(&file)?;
            let (whole, length) = (whole_lines(&file)?, file.metadata()?.len());
            if whole < length {
                file.set_len(whole)?;
                let (path, cut) = (self.spec.path.display(), length - whole);
                (self.log)(&format!("export to json:{path}: cut {cut} bytes of a line that was left half written"));
            }
            self.size = whole;
        }
        self.file = Some(file);
        self.opened = Instant::now();
        Ok(())
    }

    /// Lines from the front of `records` for one write, as far as they fit the file; says how many, and whether the
    /// next one needs another file.
    fn lines(&mut self, records: &[Record]) -> Result<(usize, bool), Trouble> {
        self.out.clear();
        for (n, record) in records.iter().enumerate() {
            let before = self.out.len();
            serde_json::to_writer(&mut self.out, record).map_err(|error| error.to_string())?;
            self.out.push(b'\n');
            let with = self.size + self.out.len() as u64;
            let first = self.size == 0 && before == 0;
            if self.regular && with > self.spec.max_bytes && !first {
                self.out.truncate(before);
                return Ok((n, true));
            }
            if self.out.len() >= WRITE {
                return Ok((n + 1, false));
            }
        }
        Ok((records.len(), false))
    }

    /// All of `out`, or nothing: what a full disk took of it is taken back.
    fn write(&mut self) -> io::Result<()> {
        let Some(file) = &mut self.file else { return Err(ErrorKind::NotConnected.into()) };
        if let Err(error) = file.write_all(&self.out) {
            // Where that fails too, opening the file again cuts the broken line.
            let _ = file.set_len(self.size);
            return Err(error);
        }
        self.size += self.out.len() as u64;
        Ok(())
    }

    fn numbered(&self, n: u32) -> PathBuf {
        let mut name = self.spec.path.clone().into_os_string();
        name.push(format!(".{n}"));
        name.into()
    }

    /// Moves the file out of the way and begins a new one.
    fn rotate(&mut self) -> io::Result<()> {
        if let Some(file) = self.file.take() {
            file.sync_data()?;
        }
        if self.spec.keep == 0 {
            fs::remove_file(&self.spec.path)?;
        } else {
            for n in (1..self.spec.keep).rev() {
                match fs::rename(self.numbered(n), self.numbered(n + 1)) {
                    Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
                    _ => {}
                }
            }
            fs::rename(&self.spec.path, self.numbered(1))?;
        }
        self.open_file()
    }

    /// Whether somebody has moved or removed the file, so that what we write is not found under its name.
    fn is_gone(&self) -> bool {
        let there = fs::metadata(&self.spec.path).map(|meta| (meta.dev(), meta.ino()));
        let ours = self.file.as_ref().map(|file| file.metadata().map(|meta| (meta.dev(), meta.ino())));
        !matches!((there, ours), (Ok(there), Some(Ok(ours))) if there == ours)
    }
}

impl Output for JsonLines {
    fn open(&mut self) -> Result<(), Trouble> {
        self.file = None;
        self.open_file().map_err(|error| error.to_string())
    }

    fn send(&mut self, records: &[Record]) -> Result<usize, Trouble> {
        let (n, full) = self.lines(records)?;
        if n > 0 {
            self.write().map_err(|error| error.to_string())?;
            self.counters.out(self.out.len());
            self.counters.sent(n);
        }
        if full {
            // What was written stays written, whatever becomes of the rotation.
            if let Err(error) = self.rotate() {
                return if n > 0 { Ok(n) } else { Err(format!("cannot rotate: {error}")) };
            }
        }
        Ok(n)
    }

    fn tick(&mut self) -> Result<(), Trouble> {
        if self.looked.elapsed() < LOOK && self.file.is_some() {
            return Ok(());
        }
        self.looked = Instant::now();
        if self.is_gone() {
            return self.open();
        }
        if self.regular && self.size > 0 && self.opened.elapsed() >= self.spec.max_age {
            self.rotate().map_err(|error| format!("cannot rotate: {error}"))?;
        }
        Ok(())
    }

    fn close(&mut self) {
        if let Some(file) = self.file.take() {
            // What it cannot keep it has been given all the same.
            let _ = file.sync_all();
        }
    }
}
