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
    event::{Change, ExportEvent, Log},
    json_file::{is_file_itself, lock_alone, whole_lines},
    output::{Output, Trouble},
    spec::FileSpec,
};
use crate::{ipfix::Port, Record};

/// Characters of a port's name in each line: a file of captures may have a long path.
const MOST_NAME: usize = 255;
/// Bytes of one write, before its last line.
const WRITE: usize = 64 << 10;
/// Interval of the checks of the file's age and name.
const LOOK: Duration = Duration::from_secs(1);

/// Records as lines of JSON. See [`FileSpec`] for the guarantees to a reader.
pub(super) struct JsonLines {
    spec: FileSpec,
    counters: Arc<Counters>,
    log: Log,
    file: Option<File>,
    /// Whether it is a file, by its own name. Devices, pipes and symbolic links are never renamed.
    rotates: bool,
    /// Bytes of whole lines in the file.
    size: u64,
    opened: Instant,
    looked: Instant,
    out: Vec<u8>,
    /// What a line says of the interfaces of each port, before its end.
    interfaces: Vec<Vec<u8>>,
}

impl JsonLines {
    pub fn new(spec: FileSpec, ports: &[Port], counters: Arc<Counters>, log: Log) -> Self {
        let now = Instant::now();
        let interfaces = ports.iter().map(interfaces).collect();
        let out = Vec::new();
        Self { spec, counters, log, file: None, rotates: false, size: 0, opened: now, looked: now, out, interfaces }
    }

    fn open_file(&mut self) -> io::Result<()> {
        let file = OpenOptions::new().read(true).append(true).create(true).open(&self.spec.path)?;
        self.size = 0;
        let is_file = file.metadata()?.is_file();
        self.rotates = is_file && is_file_itself(&self.spec.path);
        if is_file {
            lock_alone(&file)?;
            let (whole, length) = (whole_lines(&file)?, file.metadata()?.len());
            if whole < length {
                file.set_len(whole)?;
                let sink = format!("json:{}", self.spec.path.display());
                (self.log)(&ExportEvent { sink, change: Change::LineRemoved { bytes: length - whole } });
            }
            self.size = whole;
        }
        self.file = Some(file);
        self.opened = Instant::now();
        Ok(())
    }

    /// Lines from the front of `records` for one write, as far as the file has room. Returns how many, and whether the next
    /// line needs a new file.
    fn lines(&mut self, records: &[Record]) -> Result<(usize, bool), Trouble> {
        self.out.clear();
        for (n, record) in records.iter().enumerate() {
            let before = self.out.len();
            serde_json::to_writer(&mut self.out, record)?;
            if let (Some(interfaces), Some(b'}')) = (self.interfaces.get(usize::from(record.ingress)), self.out.last())
            {
                self.out.pop();
                self.out.extend_from_slice(interfaces);
                self.out.push(b'}');
            }
            self.out.push(b'\n');
            let with = self.size + self.out.len() as u64;
            let first = self.size == 0 && before == 0;
            if self.rotates && with > self.spec.max_bytes && !first {
                self.out.truncate(before);
                return Ok((n, true));
            }
            if self.out.len() >= WRITE {
                return Ok((n + 1, false));
            }
        }
        Ok((records.len(), false))
    }

    /// Writes all of `out` or nothing: truncates a partial write on a full disk.
    fn write(&mut self) -> io::Result<()> {
        let Some(file) = &mut self.file else { return Err(ErrorKind::NotConnected.into()) };
        if let Err(error) = file.write_all(&self.out) {
            // If truncation fails too, opening the file again cuts the broken line.
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

    /// Renames the file and begins a new one. Writes on where a symbolic link has taken its name.
    fn rotate(&mut self) -> io::Result<()> {
        self.rotates = is_file_itself(&self.spec.path);
        if !self.rotates {
            return Ok(());
        }
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

    /// Whether the file was renamed or removed, so that its name no longer leads to our writes.
    fn is_gone(&self) -> bool {
        let there = fs::metadata(&self.spec.path).map(|meta| (meta.dev(), meta.ino()));
        let ours = self.file.as_ref().map(|file| file.metadata().map(|meta| (meta.dev(), meta.ino())));
        !matches!((there, ours), (Ok(there), Some(Ok(ours))) if there == ours)
    }
}

/// The members that name the interfaces of a port, as IPFIX has them: elements 10, 82 and 14.
fn interfaces(port: &Port) -> Vec<u8> {
    let Port { index, name, egress, .. } = port;
    let name: String = name.chars().take(MOST_NAME).collect();
    let name = serde_json::Value::from(name);
    format!(r#","ingress_interface":{index},"ingress_name":{name},"egress_interface":{egress}"#).into_bytes()
}

fn unrotated(error: &io::Error) -> Trouble {
    io::Error::new(error.kind(), format!("cannot rotate: {error}"))
}

impl Output for JsonLines {
    fn open(&mut self) -> Result<(), Trouble> {
        self.file = None;
        self.open_file()
    }

    fn send(&mut self, records: &[Record]) -> Result<usize, Trouble> {
        let (n, full) = self.lines(records)?;
        if n > 0 {
            self.write()?;
            self.counters.out(self.out.len());
            self.counters.sent(n);
        }
        if full {
            // The records are written, even if rotation fails.
            if let Err(error) = self.rotate() {
                return if n > 0 { Ok(n) } else { Err(unrotated(&error)) };
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
        if self.rotates && self.size > 0 && self.opened.elapsed() >= self.spec.max_age {
            self.rotate().map_err(|error| unrotated(&error))?;
        }
        Ok(())
    }

    fn close(&mut self) {
        if let Some(file) = self.file.take() {
            // The lines given to a sink count, even if the sink cannot keep them.
            let _ = file.sync_all();
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{json, Value};

    use super::*;

    #[test]
    fn a_line_names_the_interfaces_of_its_port() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("flows.jsonl");
        let port =
            Port { index: 7, egress: 9, name: "e\"th\n0".to_owned() + &"x".repeat(5000), description: String::new() };
        let way = json!({ "packets": 1, "ip_bytes": 2, "frame_bytes": 3, "tcp_flags": 0 });
        let record = |ingress: u8| -> Record {
            let record = json!({ "src": "10.0.0.1", "dst": "10.0.0.2", "sport": 1, "dport": 2, "protocol": 17, "port": 0,
                "scope": null, "ingress": ingress, "tos": 0, "forward": way, "back": way, "first_unix_ns": 1, "last_unix_ns": 2,
                "end": "idle" });
            serde_json::from_value(record).unwrap()
        };
        let counters = Arc::new(Counters::new(&Arc::default()));
        let mut lines = JsonLines::new(FileSpec::new(&path), &[port], counters, Arc::new(|_: &ExportEvent| {}));
        lines.open().unwrap();
        // The second is of a port that nobody described.
        assert_eq!(lines.send(&[record(0), record(1)]).unwrap(), 2);
        let text = fs::read_to_string(path).unwrap();
        let read: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let of =
            |line: &Value| ["ingress_interface", "ingress_name", "egress_interface"].map(|name| line[name].clone());
        assert_eq!(json!(of(&read[0])), json!([7, "e\"th\n0".to_owned() + &"x".repeat(MOST_NAME - 6), 9]));
        assert_eq!(json!(of(&read[1])), json!([null, null, null]));
        assert_eq!(serde_json::from_value::<Record>(read[0].clone()).unwrap(), record(0));
        assert!(text.lines().next().unwrap().len() < 4096, "whole lines are found by their last 4096 bytes");
    }
}
