//! What was changed on this machine and how it was before, so that it can be changed back: by who changed it, by somebody else
//! after a crash, twice, and in the middle.
//!
//! A journal is a file of JSON lines: a head, then one [`Change`] a line, written and synced *before* the change is made. So a
//! line may stand for a change that was never made, and the last line may be cut off; [`undo`] looks at what is there now.
//! What no longer is what the change made it belongs to somebody else and is left alone.

use std::{
    fs,
    io::{self, Read, Write},
    os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt},
    path::{Path, PathBuf},
    thread,
    time::Duration,
};

use serde::{Deserialize, Serialize};

use crate::{
    audit::{is_setting, is_unit},
    net_namespace,
    pci::{self, PciDevice},
    Fact, Roots,
};

/// Where the journals of root's changes are.
pub const DIR: &str = "/var/lib/linerate/journal";

/// Largest journal read.
const MAX_BYTES: u64 = 16 << 20;

/// One thing that is about to be changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Change {
    /// A file of the kernel gets other contents.
    File {
        /// Its path: below `/sys` or `/proc`.
        path: PathBuf,
        /// What is in it, without the end of the line.
        old: String,
        /// What will be in it.
        new: String,
        /// What is written before the old contents: an interrupt that may go to several CPUs stays where it is, so that it is
        /// sent back first to the one that had it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        first: Option<String>,
    },
    /// A network device on the PCI bus gets another driver.
    Driver {
        /// Its address.
        address: String,
        /// The driver that has it; `None` if none has.
        old: Option<String>,
        /// The driver that it gets.
        new: String,
    },
    /// A service that runs is stopped.
    Service {
        /// Its unit, `irqbalance.service`.
        unit: String,
    },
    /// A file of ours is made. It outlives a boot.
    Made {
        /// Its path: one of [`OURS`].
        path: PathBuf,
        /// What is in it.
        text: String,
    },
}

/// Files that are made, and removed again. No other file is ever touched.
pub const OURS: [&str; 4] = [
    "/etc/default/grub.d/50-linerate.cfg",
    "/etc/sysctl.d/90-linerate.conf",
    "/etc/systemd/system/linerate-host.service",
    "/etc/linerate/host-plan.toml",
];

/// A line behind the head.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Line {
    /// What the last change came to, as it is read back.
    Became(String),
    #[serde(untagged)]
    Change(Change),
}

/// A change, and what it came to; `None` if it was not finished.
#[derive(Debug)]
struct Noted {
    change: Change,
    became: Option<String>,
}

impl Noted {
    /// What was refused is as it was.
    fn was_made(&self) -> bool {
        match (&self.change, &self.became) {
            (Change::File { old, .. }, Some(became)) => became != old,
            _ => true,
        }
    }

    /// Whether each network namespace has such a setting of its own.
    fn is_of_namespace(&self) -> bool {
        matches!(&self.change, Change::File { path, .. } if net_namespace::has_own(path))
    }
}

/// The first line.
#[derive(Debug, Serialize, Deserialize)]
struct Head {
    /// The boot of the machine: another one has undone everything.
    boot: String,
    /// The network namespace of those who made the changes. Older journals do not have it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    net_namespace: Option<u64>,
}

/// A journal that is being written. Nobody else undoes it as long as this is there.
#[derive(Debug)]
pub struct Journal {
    file: fs::File,
    path: PathBuf,
}

/// What became of the changes of a journal.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Undone {
    /// Changed back, in this order.
    pub back: Vec<Change>,
    /// Left alone: what is there now is not what the change made it.
    pub left: Vec<(Change, String)>,
    /// Could not be changed back, and why. The journal stays.
    pub failed: Vec<(Change, String)>,
    /// The machine was booted since: there was nothing to change back.
    pub rebooted: bool,
    /// Lines that cannot be read, from 1 on: what they changed is not known.
    pub damaged: Vec<usize>,
    /// Where a file with such lines is kept.
    pub kept: Option<PathBuf>,
    /// The last line has no end. A crash leaves it so before the change is made.
    pub cut: bool,
    /// Of a network namespace that is gone, and gone with it.
    pub gone: Vec<Change>,
    /// Why the file is still there, although it could be removed now.
    pub stays: Option<String>,
}

impl Journal {
    /// Begins a journal, `DIR/NAME.journal`. An earlier one with nothing to undo is removed.
    ///
    /// # Errors
    ///
    /// `AlreadyExists` if there is one of this name: it has to be undone first. `WouldBlock` while somebody else writes or undoes
    /// it. Or the file cannot be written: nothing is left of it.
    pub fn begin(roots: &Roots, dir: &Path, name: &str) -> io::Result<Self> {
        fs::DirBuilder::new().recursive(true).mode(0o700).create(dir)?;
        let path = path_of(dir, name);
        let create = || fs::OpenOptions::new().append(true).create_new(true).mode(0o600).open(&path);
        let file = match create() {
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {
                clear(roots, &path)?;
                create()?
            }
            other => other?,
        };
        lock(&file, &path)?;
        let journal = Self { file, path }.begun(roots)?;
        // The name of the file has to survive a crash as well.
        fs::File::open(dir)?.sync_all()?;
        Ok(journal)
    }

    /// Writes the head. A journal without one is removed.
    fn begun(mut self, roots: &Roots) -> io::Result<Self> {
        let head = Head { boot: boot(roots), net_namespace: net_namespace::own(roots) };
        self.line(&head).inspect_err(|_| {
            // The error is told; an empty journal counts as none.
            let _ = fs::remove_file(&self.path);
        })?;
        Ok(self)
    }

    /// Writes down a change that is about to be made. It is on the disk when this returns.
    ///
    /// # Errors
    ///
    /// It could not be written, or is of what no journal is for (`InvalidInput`): the change must not be made.
    pub fn note(&mut self, change: &Change) -> io::Result<()> {
        if !is_sound(change) {
            // It would make the whole journal one that cannot be read.
            let why = "only settings that a plan may write, units and files of ours are changed";
            return Err(io::Error::new(io::ErrorKind::InvalidInput, why));
        }
        self.line(change)
    }

    /// Writes down what the last change came to, as it is read back: the kernel may write a value in another way, or not take
    /// all of it. Without this line a change counts as unfinished.
    ///
    /// # Errors
    ///
    /// It could not be written.
    pub fn became(&mut self, value: &str) -> io::Result<()> {
        // Not synced: it is for a program that dies, and a machine that dies has forgotten the change itself.
        self.write(&Line::Became(value.to_owned()))
    }

    /// Its file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    fn line(&mut self, what: &impl Serialize) -> io::Result<()> {
        self.write(what)?;
        self.file.sync_data()
    }

    fn write(&mut self, what: &impl Serialize) -> io::Result<()> {
        let mut text = serde_json::to_string(what)?;
        text.push('\n');
        self.file.write_all(text.as_bytes())
    }
}

/// The file of the journal of this name.
pub fn path_of(dir: &Path, name: &str) -> PathBuf {
    dir.join(format!("{name}.journal"))
}

/// The names of all journals in a directory, in order; none if there is no such directory.
pub fn names(dir: &Path) -> Vec<String> {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    let name = |entry: fs::DirEntry| Some(entry.file_name().to_str()?.strip_suffix(".journal")?.to_owned());
    let mut names: Vec<String> = entries.filter_map(name).collect();
    names.sort();
    names
}

/// Where a journal with lines that cannot be read is kept, once the others are undone: `NAME.damaged`, or with a number where
/// there is one already, since it may hold the only trace of an old value.
fn aside(path: &Path) -> PathBuf {
    let of = |n: usize| path.with_extension(if n == 1 { "damaged".to_owned() } else { format!("{n}.damaged") });
    (1..).map(of).find(|kept| !kept.exists()).unwrap_or_else(|| of(1))
}

/// Journals with lines that could not be read, which were put aside.
pub fn put_aside(dir: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten().map(|entry| entry.path());
    let mut all: Vec<PathBuf> = entries.filter(|path| path.extension().is_some_and(|end| end == "damaged")).collect();
    all.sort();
    all
}

/// Changes everything in a journal back, the last change first, and removes the journal if nothing failed. A journal that is
/// not there has nothing to undo. One with lines that cannot be read is put aside ([`Undone::kept`]).
///
/// # Errors
///
/// Nothing was changed: the file cannot be read, `WouldBlock` while somebody still writes it, or undoes it, `Unsupported` where it
/// has to be undone in another network namespace.
pub fn undo(roots: &Roots, path: &Path) -> io::Result<Undone> {
    let file = match fs::File::open(path) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Undone::default()),
        other => other?,
    };
    lock(&file, path)?;
    let Parsed { head, changes, damaged: lines, cut } = parse(&read(&file)?);
    let rebooted = head.as_ref().is_some_and(|head| head.boot != boot(roots));
    let another = head.and_then(|head| another_namespace(roots, &head)).filter(|_| !rebooted);
    let is_there = |noted: &Noted| another.is_some() && noted.is_of_namespace() && noted.was_made();
    if let (Some(namespace), true) = (another, changes.iter().any(is_there)) {
        if let Some(way) = net_namespace::way_into(roots, namespace)? {
            return Err(io::Error::new(
                io::ErrorKind::Unsupported,
                format!("changes were made in another network namespace: sudo {way} linerate host revert"),
            ));
        }
    }
    let mut undone = Undone { rebooted, damaged: lines, cut, ..Undone::default() };
    for noted in changes.into_iter().rev() {
        match &noted.change {
            // Only files outlive a boot.
            change if rebooted && !matches!(change, Change::Made { .. }) => {}
            _ if is_there(&noted) => undone.gone.push(noted.change),
            _ if another.is_some() && noted.is_of_namespace() => {}
            _ => one(roots, noted, &mut undone),
        }
    }
    if undone.failed.is_empty() {
        match end(path, &undone.damaged) {
            Ok(kept) => undone.kept = kept,
            Err(e) => undone.stays = Some(e.to_string()),
        }
    }
    Ok(undone)
}

/// Removes a journal that is undone, or puts it aside if there are lines of it that cannot be read: where.
fn end(path: &Path, damaged: &[usize]) -> io::Result<Option<PathBuf>> {
    if damaged.is_empty() {
        return fs::remove_file(path).map(|()| None);
    }
    let kept = aside(path);
    fs::rename(path, &kept)?;
    Ok(Some(kept))
}

/// Removes a journal with nothing to undo: it is empty, of an earlier boot, or everything is as it was.
///
/// # Errors
///
/// `AlreadyExists` if there is something to undo, `WouldBlock` while somebody writes or undoes it.
fn clear(roots: &Roots, path: &Path) -> io::Result<()> {
    let file = match hold(path) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(()),
        other => other?,
    };
    let parsed = parse(&read(&file)?);
    let is_known = parsed.damaged.is_empty() || parsed.is_of_earlier_boot(roots);
    match is_known && parsed.in_force(roots).is_empty() {
        true => end(path, &parsed.damaged).map(|_| ()),
        false => Err(io::ErrorKind::AlreadyExists.into()),
    }
}

/// Locks the file of a journal for this process, without waiting.
fn lock(file: &fs::File, path: &Path) -> io::Result<()> {
    let busy = || {
        let why = "somebody applies, reverts or measures with a plan just now: wait for the end of that command";
        io::Error::new(io::ErrorKind::WouldBlock, why)
    };
    match file.try_lock() {
        Err(fs::TryLockError::WouldBlock) => return Err(busy()),
        Err(fs::TryLockError::Error(e)) => return Err(e),
        Ok(()) => {}
    }
    // Somebody else may have undone and removed it since it was opened.
    let ours = file.metadata()?;
    match fs::metadata(path) {
        Ok(there) if (there.dev(), there.ino()) == (ours.dev(), ours.ino()) => Ok(()),
        _ => Err(busy()),
    }
}

/// Keeps everybody from undoing a journal until what this returns is dropped, or this process ends.
///
/// # Errors
///
/// The file is not there, or somebody else holds it (`WouldBlock`).
pub fn hold(path: &Path) -> io::Result<fs::File> {
    let file = fs::File::open(path)?;
    lock(&file, path)?;
    Ok(file)
}

/// Whether somebody holds a journal, by the kernel's list of locks: to try the lock would refuse it to others meanwhile. No
/// where it cannot be told, as in a PID namespace of its own.
pub fn is_held(path: &Path) -> bool {
    let (Ok(file), Ok(locks)) = (fs::metadata(path), fs::read_to_string("/proc/locks")) else { return false };
    // `1: FLOCK  ADVISORY  WRITE 1234 fe:00:56789 0 EOF`
    let (major, minor) = (rustix::fs::major(file.dev()), rustix::fs::minor(file.dev()));
    let place = format!(" {major:02x}:{minor:02x}:{} ", file.ino());
    locks.lines().any(|line| line.contains(" FLOCK ") && line.contains(&place))
}

/// The changes of a journal that are in force, in order, and the lines that cannot be read; none if it is not there. A change
/// whose file has its old value again is not in force; one that cannot be looked at is.
///
/// # Errors
///
/// The file cannot be read.
pub fn in_force(roots: &Roots, path: &Path) -> io::Result<(Vec<Change>, Vec<usize>)> {
    match fs::File::open(path) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok((Vec::new(), Vec::new())),
        file => {
            let parsed = parse(&read(&file?)?);
            Ok((parsed.in_force(roots), parsed.damaged))
        }
    }
}

/// Whether a journal was begun before the machine was booted the last time.
pub fn is_of_earlier_boot(roots: &Roots, path: &Path) -> bool {
    let parsed = || Some(parse(&read(&fs::File::open(path).ok()?).ok()?));
    parsed().is_some_and(|parsed| parsed.is_of_earlier_boot(roots))
}

/// The network namespace that a journal is of, if it is not the one of this process.
fn another_namespace(roots: &Roots, head: &Head) -> Option<u64> {
    let (of, own) = head.net_namespace.zip(net_namespace::own(roots))?;
    (of != own).then_some(of)
}

fn read(file: &fs::File) -> io::Result<String> {
    let mut bytes = Vec::new();
    // A part of it would undo a part, and forget the rest.
    match file.take(MAX_BYTES + 1).read_to_end(&mut bytes)? as u64 {
        // Bytes that are not text spoil their own line only: see `parse`.
        0..=MAX_BYTES => Ok(String::from_utf8_lossy(&bytes).into_owned()),
        _ => Err(io::Error::new(io::ErrorKind::InvalidData, format!("is longer than {MAX_BYTES} bytes"))),
    }
}

/// What a journal says.
#[derive(Debug, Default)]
struct Parsed {
    head: Option<Head>,
    changes: Vec<Noted>,
    /// Lines that are none of a journal, from 1 on.
    damaged: Vec<usize>,
    /// The last line has no end.
    cut: bool,
}

impl Parsed {
    fn is_of_earlier_boot(&self, roots: &Roots) -> bool {
        self.head.as_ref().is_some_and(|head| head.boot != boot(roots))
    }

    fn in_force(&self, roots: &Roots) -> Vec<Change> {
        let rebooted = self.is_of_earlier_boot(roots);
        let another = self.head.as_ref().and_then(|head| another_namespace(roots, head));
        // From here only one's own values can be read.
        let is_gone = another.is_some_and(|other| matches!(net_namespace::way_into(roots, other), Ok(None)));
        let is_in_force = |noted: &&Noted| match &noted.change {
            change if rebooted && !matches!(change, Change::Made { .. }) => false,
            _ if another.is_some() && noted.is_of_namespace() => noted.was_made() && !is_gone,
            change => noted.was_made() && !matches!(now(roots, change, noted.became.as_deref()), Ok(Now::Old)),
        };
        self.changes.iter().filter(is_in_force).map(|noted| noted.change.clone()).collect()
    }
}

/// The head and the changes. A last line that a crash cut off was never acted on. A head that is missing spoils nothing but itself.
fn parse(text: &str) -> Parsed {
    let (whole, rest) = text.rfind('\n').map_or(("", text), |end| text.split_at(end));
    let mut parsed = Parsed { cut: !rest.trim_start_matches('\n').is_empty(), ..Parsed::default() };
    for (n, line) in whole.lines().enumerate() {
        if let Some(head) = serde_json::from_str(line).ok().filter(|_| n == 0) {
            parsed.head = Some(head);
            continue;
        }
        let line = if line.contains(char::REPLACEMENT_CHARACTER) { "" } else { line };
        match (serde_json::from_str::<Line>(line), parsed.changes.last_mut()) {
            (Ok(Line::Change(change)), last) if is_sound(&change) => {
                // Another one follows: it was finished, as it was meant.
                if let Some(Noted { change: Change::File { new, .. }, became: became @ None }) = last {
                    *became = Some(new.clone());
                }
                parsed.changes.push(Noted { change, became: None });
            }
            // Of the change that cannot be read.
            (Ok(Line::Became(_)), _) if parsed.damaged.last() == Some(&n) => {}
            (Ok(Line::Became(value)), Some(last)) => last.became = Some(value),
            _ => parsed.damaged.push(n + 1),
        }
    }
    parsed
}

/// Whether a change is of what journals are for: no other file is ever written.
pub(crate) fn is_sound(change: &Change) -> bool {
    let plain = |text: &str| !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || ":._-".contains(c));
    match change {
        Change::Driver { address, new, .. } => plain(address) && plain(new) && !address.starts_with('.'),
        Change::Service { unit } => is_unit(unit),
        Change::Made { path, .. } => OURS.iter().any(|ours| path == Path::new(ours)),
        Change::File { path, .. } => is_setting(path),
    }
}

fn one(roots: &Roots, noted: Noted, undone: &mut Undone) {
    let Noted { change, became } = noted;
    match now(roots, &change, became.as_deref()) {
        Err(why) => undone.failed.push((change, why)),
        Ok(Now::Old) => {}
        Ok(Now::Other(other)) => undone.left.push((change, other)),
        Ok(Now::New) => match change_back(roots, &change) {
            Ok(()) => undone.back.push(change),
            Err(why) => undone.failed.push((change, why)),
        },
    }
}

/// What is there now.
enum Now {
    /// What was there before: the change was never made, or is undone already.
    Old,
    /// What the change made it.
    New,
    /// Something else.
    Other(String),
}

fn now(roots: &Roots, change: &Change, became: Option<&str>) -> Result<Now, String> {
    match change {
        Change::File { path, old, new, .. } => {
            let found = roots.read(path).map_err(|e| e.to_string())?;
            let found = chosen(found.trim());
            Ok(match became {
                _ if found == old => Now::Old,
                Some(became) if found == became => Now::New,
                // It was not finished: what is there is neither, and nobody else's.
                None => Now::New,
                _ if found == new => Now::New,
                _ => Now::Other(found.to_owned()),
            })
        }
        Change::Service { unit } => {
            Ok(if roots.command("systemctl", &["is-active", unit]).known().is_some() { Now::Old } else { Now::New })
        }
        Change::Made { path, text } => match roots.read(path) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(Now::Old),
            // One that was not finished is a part of it.
            Ok(found) if found == *text || (became.is_none() && text.starts_with(&found)) => Ok(Now::New),
            Ok(_) => Ok(Now::Other("something else".to_owned())),
            Err(e) => Err(e.to_string()),
        },
        Change::Driver { address, old, new } => match PciDevice::read(roots, address) {
            None => Ok(Now::Other("gone".to_owned())),
            Some(device) if device.driver == *old => Ok(Now::Old),
            Some(device) if device.driver.as_ref() == Some(new) => Ok(Now::New),
            // Between two drivers: the change was not finished.
            Some(PciDevice { driver: None, .. }) => Ok(Now::New),
            Some(device) => Ok(Now::Other(device.driver.unwrap_or_default())),
        },
    }
}

fn change_back(roots: &Roots, change: &Change) -> Result<(), String> {
    match change {
        Change::File { path, old, first, .. } => {
            // A CPU that is gone meanwhile cannot have it back.
            if let Some(first) = first.as_ref().filter(|first| roots.write(path, first).is_ok()) {
                let at = path.with_file_name("effective_affinity_list");
                // Some interrupts move when they come the next time: a rare one goes where the kernel likes.
                for _ in 0..20 {
                    if roots.fact(&at).known().is_none_or(|carrier| carrier == *first) {
                        break;
                    }
                    thread::sleep(Duration::from_millis(1));
                }
            }
            roots.write(path, old).map_err(|e| e.to_string())?;
            match roots.fact(path).known().map(|now| chosen(&now).to_owned()) {
                Some(now) if now != *old => Err(format!("it is still {now}")),
                _ => Ok(()),
            }
        }
        Change::Service { unit } => match roots.command("systemctl", &["start", unit]) {
            Fact::Known(_) => Ok(()),
            _ => Err(format!("systemctl start {unit} failed")),
        },
        Change::Made { path, .. } => {
            let at = roots.of_machine(path);
            fs::remove_file(&at).map_err(|e| e.to_string())?;
            // A directory of ours goes with its last file.
            if let Some(dir) = at.parent().filter(|dir| dir.ends_with("linerate")) {
                let _ = fs::remove_dir(dir);
            }
            Ok(())
        }
        Change::Driver { address, old, .. } => {
            let has = match old {
                Some(driver) => pci::return_to(roots, address, driver),
                None => pci::give_back(roots, address),
            };
            match (has, old) {
                (Err(e), _) => Err(format!("{e:?}")),
                (Ok(has), Some(old)) if has.as_ref() != Some(old) => {
                    Err(format!("{old} did not take it: {} has it", has.unwrap_or_else(|| "no driver".to_owned())))
                }
                _ => Ok(()),
            }
        }
    }
}

/// The chosen one of `always [madvise] never`, which is what is written; otherwise the text.
pub(crate) fn chosen(text: &str) -> &str {
    let inside = text.split_once('[').and_then(|(_, rest)| rest.split_once(']'));
    inside.map_or(text, |(chosen, _)| chosen)
}

/// The boot of the machine.
fn boot(roots: &Roots) -> String {
    roots.proc("sys/kernel/random/boot_id").unwrap_or_default().trim().to_owned()
}

#[cfg(test)]
mod tests;
