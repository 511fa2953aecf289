//! What the kernel says about interfaces, which frames it keeps from its own stack, and the AF_XDP sockets that a driver
//! leaves open.

use std::{
    os::fd::{FromRawFd, OwnedFd},
    path::Path,
};

use dpdk_sys as sys;

use super::config::FrameMark;

/// What the kernel says about an interface; `None` when it does not exist in this network namespace.
pub(super) fn interface(name: &str) -> Option<sys::lr_iface> {
    let name = std::ffi::CString::new(name).ok()?;
    let mut out = sys::lr_iface::default();
    // SAFETY: the name is NUL-terminated and `out` is a plain structure.
    (unsafe { sys::lr_iface(name.as_ptr(), &mut out) } == 0).then_some(out)
}

/// Whether an interface receives frames for others; `None` when it does not exist in this network namespace.
pub fn is_promiscuous(name: &str) -> Option<bool> {
    interface(name).map(|found| found.promiscuous != 0)
}

/// Ends that an interface receives frames for others, which a process that was killed began.
///
/// # Errors
///
/// As the system says: no such interface, no right.
pub fn end_promiscuous(name: &str) -> std::io::Result<()> {
    let name = std::ffi::CString::new(name)?;
    // SAFETY: the name is NUL-terminated.
    match unsafe { sys::lr_iface_promiscuous_off(name.as_ptr()) } {
        0 => Ok(()),
        error => Err(std::io::Error::from_raw_os_error(error)),
    }
}

/// Keeps frames with this mark out of this kernel's own stack for as long as the descriptor is open; `None` where the kernel
/// (before Linux 6.6) or the rights do not allow it.
pub(super) fn keep_from_stack(iface: &str, mark: FrameMark) -> Option<OwnedFd> {
    let name = std::ffi::CString::new(iface).ok()?;
    // SAFETY: the name is NUL-terminated, the mark has three bytes, and a descriptor is ours alone.
    unsafe {
        let fd = sys::lr_iface_keep_from_stack(name.as_ptr(), mark.bytes.as_ptr(), mark.from_end);
        (fd >= 0).then(|| OwnedFd::from_raw_fd(fd))
    }
}

/// Offloads of an interface that are on and make frames longer than its MTU, as `ethtool -K` names them.
pub(super) fn long_frame_offloads(name: &str) -> Vec<&'static str> {
    let Ok(name) = std::ffi::CString::new(name) else { return Vec::new() };
    // SAFETY: the name is NUL-terminated.
    let on = unsafe { sys::lr_iface_offloads(name.as_ptr()) };
    let all = [
        (sys::LR_OFFLOAD_GRO, "gro"),
        (sys::LR_OFFLOAD_LRO, "lro"),
        (sys::LR_OFFLOAD_TSO, "tso"),
        (sys::LR_OFFLOAD_GSO, "gso"),
    ];
    all.into_iter().filter(|(bit, _)| on & bit != 0).map(|(_, name)| name).collect()
}

/// Whether its link runs.
pub(super) fn running(name: &str) -> bool {
    interface(name).is_some_and(|i| i.running != 0)
}

/// Bits per second of an interface with hardware behind it.
pub(super) fn hardware_speed(name: &str) -> Option<u64> {
    let dir = Path::new("/sys/class/net").join(name);
    if !dir.join("device").exists() {
        return None;
    }
    let mbps: i64 = std::fs::read_to_string(dir.join("speed")).ok()?.trim().parse().ok()?;
    u64::try_from(mbps).ok().filter(|&m| m > 0).map(|m| m * 1_000_000)
}

/// The interfaces of this network namespace.
pub(super) fn interfaces() -> String {
    let text = std::fs::read_to_string("/proc/net/dev").unwrap_or_default();
    let names: Vec<&str> = text.lines().filter_map(|l| Some(l.split_once(':')?.0.trim())).collect();
    names.join(", ")
}

/// Whether this thread has the capability of this number (`capabilities(7)`).
pub(super) fn has_capability(bit: u32) -> bool {
    let text = std::fs::read_to_string("/proc/thread-self/status").unwrap_or_default();
    let line = text.lines().find_map(|l| l.strip_prefix("CapEff:")).unwrap_or_default();
    u64::from_str_radix(line.trim(), 16).unwrap_or(0) >> bit & 1 == 1
}

/// The AF_XDP sockets of this process, at most 256.
pub(super) fn xdp_sockets() -> Vec<i32> {
    let mut fds = [0; 256];
    // SAFETY: the array holds the number of entries given.
    let n = unsafe { sys::lr_xdp_sockets(fds.as_mut_ptr(), fds.len() as i32) };
    fds.into_iter().take(usize::try_from(n).unwrap_or(0)).collect()
}

/// Whether AF_XDP sockets have zero-copy, all of them; `None` of no socket, and if the kernel does not say.
pub(super) fn have_zero_copy(fds: &[i32]) -> Option<bool> {
    // SAFETY: reads an option of a socket of ours, which the kernel checks.
    let of = |fd: &i32| match unsafe { sys::lr_xdp_zero_copy(*fd) } {
        -1 => None,
        flag => Some(flag == 1),
    };
    let all: Vec<bool> = fds.iter().map(of).collect::<Option<_>>()?;
    (!all.is_empty()).then(|| all.iter().all(|on| *on))
}

/// Closes AF_XDP sockets that their driver has left open.
pub(super) fn close_xdp_sockets(fds: &[i32]) {
    for &fd in fds {
        // SAFETY: closes the descriptor only if it is an AF_XDP socket, which only the driver of this port had, and it
        // has let go of it.
        unsafe { sys::lr_xdp_socket_close(fd) };
    }
}
