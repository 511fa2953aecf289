//! What a lab's holder does before anything is started, and what it knows of itself.

use std::{fs, os::unix::fs::DirBuilderExt, path::Path, process::Command, time::Duration};

use failure::Failure;
use rustix::mount::{mount, mount_change, MountFlags, MountPropagationFlags};

use crate::{
    build::{Build, VSWITCHD},
    counters::Place,
    protocol::{Answer, Ask},
    topology::Application,
    vm,
};

/// How long a guest may take to say its versions.
const GUEST: Duration = Duration::from_secs(10);

/// Directories that get a file system of their own: sockets and run-time files of everything that runs in a lab are there.
const PRIVATE: [&str; 2] = ["/run", "/dev/shm"];

/// Gives the lab directories of its own. The mount namespace is the lab's, so nothing else sees them, and they go with it.
///
/// # Errors
///
/// (machine) when the kernel refuses.
pub(super) fn private(dir: &Path) -> Result<(), Failure> {
    let fail = |what: &str, e: &dyn std::fmt::Display| Failure::machine(format!("lab: {what}: {e}"));
    mount_change("/", MountPropagationFlags::PRIVATE | MountPropagationFlags::REC)
        .map_err(|e| fail("mounts of its own", &e))?;
    for path in PRIVATE {
        let flags = MountFlags::NOSUID | MountFlags::NODEV;
        mount("linerate-lab", path, "tmpfs", flags, Some(c"mode=0755")).map_err(|e| fail(path, &e))?;
    }
    fs::DirBuilder::new().mode(0o700).create(dir).map_err(|e| fail(&dir.display().to_string(), &e))
}

/// This process as the machine counts processes: `/proc` is the machine's.
pub(super) fn own_host_pid() -> u32 {
    let link = fs::read_link("/proc/self").ok();
    link.and_then(|path| path.to_str()?.parse().ok()).unwrap_or(0)
}

/// Versions of the parts that a build uses, as they say them.
pub(super) fn versions(build: &Build) -> Vec<String> {
    let mut versions = Vec::new();
    let mut ask = |program: &str, argument: &str, lines: usize| {
        let Ok(out) = Command::new(program).arg(argument).output() else { return };
        let text = String::from_utf8_lossy(&out.stdout).into_owned();
        versions.extend(text.lines().filter(|line| !line.trim().is_empty()).take(lines).map(str::to_owned));
    };
    if !build.topology.switch.is_empty() {
        // The second line is its DPDK.
        ask(VSWITCHD, "--version", 2);
    }
    let testpmd = |application: Application| application.testpmd_mode().is_some();
    let processes = build.options.guests.accelerator().is_none();
    if processes && build.topology.guest.iter().any(|guest| testpmd(guest.application)) {
        ask("dpdk-testpmd", "--version", 1);
    }
    if !build.topology.kernel.is_empty() {
        ask("uname", "-sr", 1);
    }
    if build.counters.iter().any(|source| matches!(source.place, Place::Guest { .. })) {
        ask("qemu-system-x86_64", "--version", 1);
    }
    for source in &build.counters {
        let Place::Guest { socket } = &source.place else { continue };
        if let Ok(Answer::Versions(all)) = vm::ask(Path::new(socket), &Ask::Versions, GUEST) {
            versions.extend(all);
        }
    }
    versions
}
