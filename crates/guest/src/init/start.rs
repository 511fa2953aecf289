//! What a kernel leaves to its first process.

use std::{ffi::CStr, fs, os::unix::fs::PermissionsExt};

use failure::Failure;
use lab::vm::GuestSpec;
use nix::kmod::{finit_module, ModuleInitFlags};
use rustix::{
    io::Errno,
    mount::{mount, MountFlags},
    thread::{sched_setaffinity, CpuSet},
};

use crate::image::MODULES;

/// File systems that programs expect: what, where, and how.
const FILE_SYSTEMS: [(&str, &str, &CStr); 7] = [
    ("proc", "/proc", c""),
    ("sysfs", "/sys", c""),
    ("devtmpfs", "/dev", c""),
    ("tmpfs", "/run", c"mode=0755"),
    ("tmpfs", "/tmp", c"mode=1777"),
    ("tmpfs", "/dev/shm", c"mode=1777"),
    ("hugetlbfs", "/dev/hugepages", c"pagesize=2M"),
];

/// Mounts them.
///
/// # Errors
///
/// What the kernel refuses; only hugepages may be missing.
pub(super) fn file_systems() -> Result<(), Failure> {
    // The kernel leaves it open to all; DPDK loads no driver then.
    fs::set_permissions("/", fs::Permissions::from_mode(0o755)).map_err(|e| Failure::failed(format!("/: {e}")))?;
    for (kind, place, options) in FILE_SYSTEMS {
        let _ = fs::create_dir_all(place);
        match mount(kind, place, kind, MountFlags::empty(), Some(options)) {
            Ok(()) | Err(Errno::BUSY) => {}
            Err(_) if kind == "hugetlbfs" => {}
            Err(e) => return Err(Failure::failed(format!("{place}: {kind}: {e}"))),
        }
    }
    Ok(())
}

/// Lets this process and all that it starts run on every CPU: those kept from the scheduler (`isolcpus`) are for the
/// programs that poll, and a program takes only CPUs that it may run on.
pub(super) fn all_cpus() {
    let mut set = CpuSet::new();
    (0..CpuSet::MAX_CPU).for_each(|cpu| set.set(cpu));
    let _ = sched_setaffinity(None, &set);
}

/// Loads the modules of the image in their order.
///
/// # Errors
///
/// A module that the kernel refuses.
pub(super) fn modules() -> Result<(), Failure> {
    let Ok(entries) = fs::read_dir(MODULES) else { return Ok(()) };
    let mut files: Vec<_> = entries.flatten().map(|entry| entry.path()).collect();
    files.sort();
    for path in files {
        let fail = |e: String| Failure::failed(format!("module {}: {e}", path.display()));
        let file = fs::File::open(&path).map_err(|e| fail(e.to_string()))?;
        match finit_module(&file, c"", ModuleInitFlags::empty()) {
            Ok(()) | Err(nix::errno::Errno::EEXIST) => {}
            Err(e) => return Err(fail(e.to_string())),
        }
    }
    Ok(())
}

/// The guest's kernel. Its programs are the host's own, and asked there: an emulated guest takes seconds to start one.
pub(super) fn versions(spec: &GuestSpec) -> Vec<String> {
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    vec![format!("{}: Linux {}", spec.name, release.trim())]
}
