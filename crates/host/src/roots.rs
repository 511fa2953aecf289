//! Where `/proc` and `/sys` are.

use std::{
    fs,
    io::{self, Write},
    path::{Path, PathBuf},
    str::FromStr,
};

/// Where `/proc` and `/sys` are: the machine's own, or a fixture tree.
#[derive(Debug, Clone)]
pub struct Roots {
    proc: PathBuf,
    sys: PathBuf,
}

impl Default for Roots {
    fn default() -> Self {
        Self { proc: "/proc".into(), sys: "/sys".into() }
    }
}

impl Roots {
    /// A fixture tree holding `proc/` and `sys/`.
    pub fn at(root: impl Into<PathBuf>) -> Self {
        let root = root.into();
        Self { proc: root.join("proc"), sys: root.join("sys") }
    }

    /// A file under `/proc`; `None` when it cannot be read as text.
    pub(crate) fn proc(&self, path: &str) -> Option<String> {
        fs::read_to_string(self.proc.join(path)).ok()
    }

    /// A file under `/proc`, opened for reading.
    pub(crate) fn open_proc(&self, path: &str) -> Option<fs::File> {
        fs::File::open(self.proc.join(path)).ok()
    }

    /// A value under `/sys`; `None` when it cannot be read or is not what it should be.
    pub(crate) fn sys<T: FromStr>(&self, path: &str) -> Option<T> {
        fs::read_to_string(self.sys.join(path)).ok()?.trim().parse().ok()
    }

    /// A path under `/sys`.
    pub(crate) fn sys_path(&self, path: &str) -> PathBuf {
        self.sys.join(path)
    }

    /// Whether there is such a file or directory under `/sys`.
    pub(crate) fn sys_is_there(&self, path: &str) -> bool {
        self.sys_path(path).exists()
    }

    /// The last part of what a link under `/sys` points to.
    pub(crate) fn sys_link(&self, path: &str) -> Option<String> {
        Some(fs::read_link(self.sys_path(path)).ok()?.file_name()?.to_str()?.to_owned())
    }

    /// The names in a directory under `/sys`; none when it cannot be read.
    pub(crate) fn sys_names(&self, path: &str) -> Vec<String> {
        let Ok(entries) = fs::read_dir(self.sys_path(path)) else { return Vec::new() };
        entries.flatten().filter_map(|entry| entry.file_name().into_string().ok()).collect()
    }

    /// A file of the machine by its whole path, which begins with `/proc` or `/sys`.
    fn of_machine(&self, path: &Path) -> PathBuf {
        match (path.strip_prefix("/proc"), path.strip_prefix("/sys")) {
            (Ok(rest), _) => self.proc.join(rest),
            (_, Ok(rest)) => self.sys.join(rest),
            _ => path.to_owned(),
        }
    }

    /// Reads a file of the kernel by its whole path.
    ///
    /// # Errors
    ///
    /// As of the system.
    pub(crate) fn read(&self, path: &Path) -> io::Result<String> {
        fs::read_to_string(self.of_machine(path))
    }

    /// Writes a file of the kernel by its whole path. It is never made: one that is not there is not the kernel's.
    ///
    /// # Errors
    ///
    /// As of the system.
    pub(crate) fn write(&self, path: &Path, text: &str) -> io::Result<()> {
        let mut file = fs::OpenOptions::new().write(true).truncate(true).open(self.of_machine(path))?;
        file.write_all(text.as_bytes())
    }

    /// The numbered directories in a directory under `/proc`, such as those of processes; none when it cannot be read.
    pub(crate) fn proc_numbers(&self, path: &str) -> Vec<u32> {
        let Ok(entries) = fs::read_dir(self.proc.join(path)) else { return Vec::new() };
        entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
    }
}
