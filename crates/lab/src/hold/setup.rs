//! What a lab's holder does before anything is started, and what it knows of itself.

use std::{fs, os::unix::fs::DirBuilderExt, path::Path, time::Duration};

use failure::Failure;
use rustix::mount::{mount, mount_change, MountFlags, MountPropagationFlags};

use crate::{
    build::{Build, VSWITCHD},
    counters::Place,
    hidden,
    protocol::{Answer, Ask},
    topology::Application,
    versions,
    vm::{self, Definition},
};

/// How long a guest may take to say its versions.
const GUEST: Duration = Duration::from_secs(10);

/// Gives the lab directories of its own. The mount namespace is the lab's, so nothing else sees them, and they go with it.
///
/// # Errors
///
/// (machine) when the kernel refuses.
pub(super) fn private(dir: &Path) -> Result<(), Failure> {
    let fail = |what: &str, e: &dyn std::fmt::Display| Failure::machine(format!("lab: {what}: {e}"));
    mount_change("/", MountPropagationFlags::PRIVATE | MountPropagationFlags::REC)
        .map_err(|e| fail("mounts of its own", &e))?;
    for path in hidden::DIRECTORIES {
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
    let mut all = Vec::new();
    if !build.topology.switch.is_empty() {
        // The second line is its DPDK.
        all.extend(versions::of(VSWITCHD, 2));
    }
    let testpmd = |application: Application| application.testpmd_mode().is_some();
    let processes = build.options.guests.accelerator().is_none();
    if processes && build.topology.guest.iter().any(|guest| testpmd(guest.application)) {
        all.extend(versions::of("dpdk-testpmd", 1));
    }
    if !build.topology.kernel.is_empty() {
        all.extend(versions::of("uname", 1));
    }
    if !build.machines.is_empty() {
        all.extend(versions::of("qemu-system-x86_64", 1));
    }
    for source in &build.counters {
        let Place::Guest { socket } = &source.place else { continue };
        if let Ok(Answer::Versions(of_guest)) = vm::ask(Path::new(socket), &Ask::Versions, GUEST) {
            all.extend(of_guest);
        }
    }
    // The images of guests are made of programs of this machine.
    for program in ["dpdk-testpmd", "ovs-vsctl"] {
        let has = |machine: &&Definition| machine.disk.is_none() && machine.spec.programs.iter().any(|p| p == program);
        let machines: Vec<&Definition> = build.machines.iter().filter(has).collect();
        let version = if machines.is_empty() { Vec::new() } else { versions::of(program, 1) };
        all.extend(machines.iter().flat_map(|m| version.iter().map(move |line| format!("{}: {line}", m.name))));
    }
    all
}
