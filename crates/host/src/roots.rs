//! Where the kernel's files are.

use std::{
    fs,
    io::{self, Read, Write},
    path::{Path, PathBuf},
    str::FromStr,
    sync::Arc,
};

use crate::{
    beside::beside,
    fact::Fact,
    recording::{Entry, Recorder, Recording, WHY_UNREADABLE},
    run,
};

/// Largest file of the kernel that is read whole.
const MAX_BYTES: u64 = 16 << 20;

/// Where the files of a machine are (`/proc`, `/sys`, `/boot`, `/etc`): its own, or a tree of another one.
#[derive(Debug, Clone)]
pub struct Roots {
    root: PathBuf,
    recorder: Option<Arc<Recorder>>,
}

impl Default for Roots {
    fn default() -> Self {
        Self { root: "/".into(), recorder: None }
    }
}

impl Roots {
    /// A tree of another machine: it holds `proc/`, `sys/` and what else is read.
    pub fn at(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into(), recorder: None }
    }

    /// The same, and everything that is read from now on is kept.
    pub fn recording(self) -> Self {
        Self { recorder: Some(Arc::default()), ..self }
    }

    /// Whether what is read is kept.
    pub(crate) fn is_recording(&self) -> bool {
        self.recorder.is_some()
    }

    /// What was read since [`Roots::recording`].
    pub fn recorded(&self) -> Recording {
        self.recorder.as_ref().map(|recorder| recorder.recording()).unwrap_or_default()
    }

    /// Whether this is the machine that the program runs on.
    pub fn is_here(&self) -> bool {
        self.root == Path::new("/")
    }

    /// Where a file of the machine is, by its whole path.
    pub fn of_machine(&self, path: impl AsRef<Path>) -> PathBuf {
        let path = path.as_ref();
        self.root.join(path.strip_prefix("/").unwrap_or(path))
    }

    /// The bytes of a file, by its whole path.
    ///
    /// # Errors
    ///
    /// As of the system; `FileTooLarge` above 16 MiB.
    pub fn bytes(&self, path: impl AsRef<Path>) -> io::Result<Vec<u8>> {
        let read = self.open(path.as_ref()).and_then(|file| read_some(&file));
        let read = read.map_err(|e| self.as_recorded(path.as_ref(), e));
        self.keep(path.as_ref(), &read);
        read
    }

    /// At most the first `most` bytes of a file, by its whole path. Only these bytes are recorded.
    ///
    /// # Errors
    ///
    /// As of the system.
    pub(crate) fn first_bytes(&self, path: &Path, most: u64) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        let read = self.open(path).and_then(|file| file.take(most).read_to_end(&mut bytes));
        let read = read.map(|_| bytes).map_err(|e| self.as_recorded(path, e));
        self.keep(path, &read);
        read
    }

    /// Opens a file by its whole path. In a tree of another machine it is a regular file of that tree: a link out of it would show a
    /// file of this machine, and a pipe would be waited for.
    fn open(&self, path: &Path) -> io::Result<fs::File> {
        let at = self.of_machine(path);
        if !self.is_here() {
            let real = fs::canonicalize(&at)?;
            if !real.starts_with(fs::canonicalize(&self.root)?) {
                return Err(io::Error::new(io::ErrorKind::NotFound, "a link that leads out of the tree"));
            }
            let kind = fs::metadata(&real)?;
            if !kind.is_file() && !kind.is_dir() {
                return Err(io::Error::other("not a regular file"));
            }
        }
        fs::File::open(at)
    }

    /// The error of the machine that a tree is of, where it was recorded.
    fn as_recorded(&self, path: &Path, error: io::Error) -> io::Error {
        if self.is_here() || error.kind() != io::ErrorKind::IsADirectory {
            return error;
        }
        match fs::read_to_string(self.of_machine(path).join(WHY_UNREADABLE)) {
            Ok(why) if why == "needs root" || why.starts_with("Permission denied") => {
                io::Error::new(io::ErrorKind::PermissionDenied, why)
            }
            Ok(why) => io::Error::other(why),
            Err(_) => error,
        }
    }

    /// Records what was read of a file.
    fn keep(&self, path: &Path, read: &io::Result<Vec<u8>>) {
        if let Some(recorder) = &self.recorder {
            match read {
                Ok(bytes) => recorder.note(path, Entry::Bytes(bytes.clone())),
                Err(e) => recorder.note_error(path, e),
            }
        }
    }

    /// A file as text, by its whole path, without the white space around it.
    pub fn fact(&self, path: impl AsRef<Path>) -> Fact<String> {
        self.read(path.as_ref()).map(|text| text.trim().to_owned()).into()
    }

    /// A file as a value, by its whole path; `None` when it cannot be read or is not what it should be.
    pub fn value<T: FromStr>(&self, path: impl AsRef<Path>) -> Option<T> {
        self.fact(path).known()?.parse().ok()
    }

    /// The names in a directory, by its whole path, in order; none when it cannot be read.
    pub fn names(&self, path: impl AsRef<Path>) -> Vec<String> {
        let read = fs::read_dir(self.of_machine(&path));
        if let (Some(recorder), Err(e)) = (&self.recorder, &read) {
            recorder.note_error(path.as_ref(), e);
        }
        let Ok(entries) = read else { return Vec::new() };
        let mut names: Vec<String> =
            entries.flatten().filter_map(|entry| entry.file_name().into_string().ok()).collect();
        if !self.is_here() && names == [WHY_UNREADABLE] {
            if let (Some(recorder), Ok(why)) =
                (&self.recorder, fs::read_to_string(self.of_machine(&path).join(WHY_UNREADABLE)))
            {
                recorder.note(path.as_ref(), Entry::Unreadable(why));
            }
            return Vec::new();
        }
        names.sort();
        if let Some(recorder) = &self.recorder {
            recorder.note(path.as_ref(), Entry::Directory(names.clone()));
        }
        names
    }

    /// Whether there is such a file or directory, by its whole path.
    pub fn is_there(&self, path: impl AsRef<Path>) -> bool {
        let there = self.of_machine(&path).exists();
        if let (Some(recorder), true) = (&self.recorder, there) {
            recorder.note(path.as_ref(), Entry::There);
        }
        there
    }

    /// What a link points to, as it stands there.
    pub fn link(&self, path: impl AsRef<Path>) -> Option<PathBuf> {
        let target = fs::read_link(self.of_machine(&path)).ok()?;
        if let Some(recorder) = &self.recorder {
            recorder.note(path.as_ref(), Entry::Link(target.clone()));
        }
        Some(target)
    }

    /// Where a path leads when its last part is a link, by names only: no other link is followed.
    pub fn follow(&self, path: impl AsRef<Path>) -> Option<PathBuf> {
        let path = path.as_ref();
        let target = self.link(path)?;
        Some(beside(path, &target))
    }

    /// What a program of the machine prints when it is run with these arguments; absent if there is no such program or it
    /// fails. In a recorded tree it is a file below `/command`.
    pub fn command(&self, program: &str, args: &[&str]) -> Fact<String> {
        let line = [&[program], args].concat().join(" ").replace('/', "-");
        let path = Path::new("/command").join(line);
        if !self.is_here() {
            return self.fact(path);
        }
        let printed = run::printed(program, args);
        if let (Some(recorder), Fact::Known(text)) = (&self.recorder, &printed) {
            recorder.note(&path, Entry::Bytes(text.clone().into_bytes()));
        }
        printed
    }

    /// A file under `/proc`; `None` when it cannot be read as text.
    pub(crate) fn proc(&self, path: &str) -> Option<String> {
        self.read(&Path::new("/proc").join(path)).ok()
    }

    /// A file under `/proc`, opened for reading.
    pub(crate) fn open_proc(&self, path: &str) -> Option<fs::File> {
        fs::File::open(self.of_machine(Path::new("/proc").join(path))).ok()
    }

    /// A value under `/sys`; `None` when it cannot be read or is not what it should be.
    pub(crate) fn sys<T: FromStr>(&self, path: &str) -> Option<T> {
        self.value(Path::new("/sys").join(path))
    }

    /// A path under `/sys`.
    pub(crate) fn sys_path(&self, path: &str) -> PathBuf {
        self.of_machine(Path::new("/sys").join(path))
    }

    /// Whether there is such a file or directory under `/sys`.
    pub(crate) fn sys_is_there(&self, path: &str) -> bool {
        self.is_there(Path::new("/sys").join(path))
    }

    /// The last part of what a link under `/sys` points to.
    pub(crate) fn sys_link(&self, path: &str) -> Option<String> {
        Some(self.link(Path::new("/sys").join(path))?.file_name()?.to_str()?.to_owned())
    }

    /// The names in a directory under `/sys`; none when it cannot be read.
    pub(crate) fn sys_names(&self, path: &str) -> Vec<String> {
        self.names(Path::new("/sys").join(path))
    }

    /// Reads a file of the kernel by its whole path.
    ///
    /// # Errors
    ///
    /// As of the system; `InvalidData` if it is not text.
    pub(crate) fn read(&self, path: &Path) -> io::Result<String> {
        String::from_utf8(self.bytes(path)?).map_err(|e| io::Error::new(io::ErrorKind::InvalidData, e))
    }

    /// Writes a file of the kernel by its whole path. It is never made: one that is not there is not the kernel's. No text is
    /// written as an empty line: the kernel does not see a write of no bytes.
    ///
    /// # Errors
    ///
    /// As of the system.
    pub(crate) fn write(&self, path: &Path, text: &str) -> io::Result<()> {
        let mut file = fs::OpenOptions::new().write(true).truncate(true).open(self.of_machine(path))?;
        file.write_all(if text.is_empty() { b"\n" } else { text.as_bytes() })
    }

    /// The numbered directories in a directory under `/proc`, such as those of processes; none when it cannot be read.
    pub(crate) fn proc_numbers(&self, path: &str) -> Vec<u32> {
        let mut numbers: Vec<u32> =
            self.names(Path::new("/proc").join(path)).iter().filter_map(|name| name.parse().ok()).collect();
        numbers.sort_unstable();
        numbers
    }
}

fn read_some(file: &fs::File) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    match file.take(MAX_BYTES + 1).read_to_end(&mut bytes)? as u64 {
        0..=MAX_BYTES => Ok(bytes),
        _ => Err(io::Error::new(io::ErrorKind::FileTooLarge, format!("is longer than {MAX_BYTES} bytes"))),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn absent_unreadable_and_known_are_three_things() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir_all(dir.path().join("sys/a")).unwrap();
        fs::write(dir.path().join("sys/b"), " 7 \n").unwrap();
        let roots = Roots::at(dir.path());
        assert_eq!(roots.fact("/sys/b"), Fact::Known("7".to_owned()));
        assert_eq!(roots.fact("/sys/b").map(|text| text.len()).known(), Some(1));
        assert_eq!(roots.value::<u32>("/sys/b"), Some(7));
        assert_eq!(roots.value::<std::net::Ipv4Addr>("/sys/b"), None);
        assert_eq!(roots.fact("/sys/c"), Fact::Absent);
        assert_eq!(roots.fact("/sys/b/c"), Fact::Absent);
        assert!(matches!(roots.fact("/sys/a"), Fact::Unreadable(_)));
        let refused = io::Error::from(io::ErrorKind::PermissionDenied);
        assert_eq!(Fact::<()>::from(Err(refused)), Fact::Unreadable("needs root".to_owned()));
        assert_eq!(Fact::<()>::from(Err(io::Error::from_raw_os_error(19))), Fact::Absent);
        assert!(Fact::<()>::from(Err(io::Error::from_raw_os_error(22))) != Fact::Absent);
    }

    #[test]
    fn a_tree_leads_nowhere_else_and_waits_for_nobody() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join("tree/sys").join(name);
        fs::create_dir_all(at("")).unwrap();
        fs::write(dir.path().join("secret"), "1").unwrap();
        fs::write(at("a"), "7").unwrap();
        symlink("a", at("inside")).unwrap();
        symlink("../../secret", at("outside")).unwrap();
        symlink("/proc/version", at("absolute")).unwrap();
        rustix::fs::mkfifoat(rustix::fs::CWD, at("pipe"), rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR).unwrap();
        let roots = Roots::at(dir.path().join("tree"));
        assert_eq!(roots.fact("/sys/inside"), Fact::Known("7".to_owned()));
        assert_eq!((roots.fact("/sys/outside"), roots.fact("/sys/absolute")), (Fact::Absent, Fact::Absent));
        assert!(matches!(roots.fact("/sys/pipe"), Fact::Unreadable(_)));
        assert!(roots.first_bytes(Path::new("/sys/outside"), 9).is_err());
    }

    #[test]
    fn links_are_followed_by_name_inside_the_tree() {
        let dir = tempfile::tempdir().unwrap();
        let bus = dir.path().join("sys/bus/pci/devices");
        fs::create_dir_all(&bus).unwrap();
        symlink("../../../devices/pci0000:00/0000:00:01.0/0000:02:00.0", bus.join("0000:02:00.0")).unwrap();
        symlink("/sys/./x", bus.join("absolute")).unwrap();
        let roots = Roots::at(dir.path());
        let at = roots.follow("/sys/bus/pci/devices/0000:02:00.0");
        assert_eq!(at.unwrap(), Path::new("/sys/devices/pci0000:00/0000:00:01.0/0000:02:00.0"));
        assert_eq!(roots.follow("/sys/bus/pci/devices/absolute").unwrap(), Path::new("/sys/x"));
        assert_eq!(roots.follow("/sys/bus/pci"), None);
        assert!(!roots.is_here() && Roots::default().is_here());
    }
}
