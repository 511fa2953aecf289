//! Which CPUs this process polls on, for other Linerates to see: two polling loops on one CPU halve each other's speed.

use std::path::Path;

use control::private_directory;

use crate::lock_file::{lock_files, remove_stale, Attempt, LockFile};

/// The CPUs that this process polls on: a locked file for each among the control sockets, until this is dropped.
#[derive(Debug, Default)]
pub struct PollingCpus {
    files: Vec<LockFile>,
    warnings: Vec<String>,
}

impl PollingCpus {
    /// Registers the CPUs and looks for other Linerates of this user that poll on them. Where no lock can be had, nothing
    /// is registered.
    pub fn register(cpus: &[u32]) -> Self {
        match private_directory() {
            Ok(dir) => Self::register_in(&dir, cpus, std::process::id(), &own_command()),
            Err(_) => Self::default(),
        }
    }

    fn register_in(dir: &Path, cpus: &[u32], pid: u32, command: &str) -> Self {
        remove_stale(dir, "cpu-");
        let mut own = Self::default();
        // First this process's own files: of two that start at once, at least one then sees the other.
        for cpu in cpus {
            if let Attempt::Taken(file) = LockFile::take(&dir.join(format!("cpu-{cpu}-{pid}.lock")), command) {
                own.files.push(file);
            }
        }
        for &cpu in cpus {
            let prefix = format!("cpu-{cpu}-");
            for path in lock_files(dir, &prefix) {
                let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
                let other = name.strip_prefix(&prefix).and_then(|name| name.strip_suffix(".lock"));
                let Some(other) = other.and_then(|text| text.parse::<u32>().ok()).filter(|&other| other != pid) else {
                    continue;
                };
                // A file that can be locked is of a process that has ended; it is removed right away.
                if let Attempt::Held(command) = LockFile::take(&path, "") {
                    own.warnings.push(warning(cpu, other, &command));
                }
            }
        }
        own
    }

    /// One line for each CPU and each other process that polls on it.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }
}

fn warning(cpu: u32, pid: u32, command: &str) -> String {
    // Another user cannot write the file, but its text goes to a terminal.
    let command: String = command.chars().filter(|c| !c.is_control()).take(80).collect();
    format!(
        "CPU {cpu} is also polled by process {pid} ({command}): both run slower. Choose another CPU or stop that process"
    )
}

/// The program and its subcommand, without arguments that may be secret.
fn own_command() -> String {
    let mut args = std::env::args();
    let program = args.next().unwrap_or_default();
    let program = Path::new(&program).file_name().and_then(|name| name.to_str()).unwrap_or("linerate").to_owned();
    match args.next().filter(|word| word.chars().all(|c| c.is_ascii_lowercase())) {
        Some(subcommand) => format!("{program} {subcommand}"),
        None => program,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_processes_on_one_cpu_name_each_other() {
        let dir = tempfile::tempdir().unwrap();
        let bench = PollingCpus::register_in(dir.path(), &[2, 3], 100, "linerate bench");
        assert!(bench.warnings().is_empty());
        let forward = PollingCpus::register_in(dir.path(), &[1, 3], 200, "linerate forward");
        assert_eq!(forward.warnings().len(), 1);
        insta::assert_snapshot!(forward.warnings()[0], @"CPU 3 is also polled by process 100 (linerate bench): both run slower. Choose another CPU or stop that process");
        // A third sees both; another CPU has nobody.
        let third = PollingCpus::register_in(dir.path(), &[3, 4], 300, "linerate flowlog");
        assert_eq!(third.warnings().len(), 2);
        drop((bench, forward, third));
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
    }

    #[test]
    fn files_of_killed_processes_are_removed() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("cpu-3-100.lock"), "linerate bench").unwrap();
        std::fs::write(dir.path().join("cpu-30-100.lock"), "linerate bench").unwrap();
        let own = PollingCpus::register_in(dir.path(), &[3], 200, "linerate forward");
        assert!(own.warnings().is_empty());
        drop(own);
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
    }

    #[test]
    fn without_a_directory_nothing_is_registered() {
        let own = PollingCpus::register_in(Path::new("/no/where"), &[3], 200, "linerate forward");
        assert!(own.files.is_empty() && own.warnings().is_empty());
    }
}
