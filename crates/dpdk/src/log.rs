//! What DPDK logs, and its error numbers.

use dpdk_sys as sys;

/// The last few KiB DPDK logged. It never reaches the terminal by itself.
pub fn log_tail() -> String {
    let mut text = vec![0u8; 8192];
    // SAFETY: the buffer is valid for the length given; the shim locks its own state.
    let len = unsafe { sys::lr_log_tail(text.as_mut_ptr().cast(), text.len()) };
    text.truncate(len);
    String::from_utf8_lossy(&text).into_owned()
}

/// Forgets the error remembered so far, so that [`error_line`] tells about what comes next.
pub(crate) fn mark() {
    // SAFETY: takes nothing, locks its own state.
    unsafe { sys::lr_log_mark() }
}

/// The first error DPDK logged since [`mark`], without trailing space; empty when it logged none.
pub(crate) fn error_line() -> String {
    let mut text = vec![0u8; 512];
    // SAFETY: the buffer is valid for the length given; the shim locks its own state.
    let len = unsafe { sys::lr_log_error(text.as_mut_ptr().cast(), text.len()) };
    text.truncate(len);
    String::from_utf8_lossy(&text).trim().to_string()
}

/// The text of an errno, DPDK's own included.
pub(crate) fn errno_text(err: i32) -> String {
    // SAFETY: rte_strerror returns a NUL-terminated string, static or thread-local, copied at once.
    unsafe { std::ffi::CStr::from_ptr(sys::lr_strerror(err.abs())) }.to_string_lossy().into_owned()
}

/// DPDK's errno of this thread.
pub(crate) fn errno() -> i32 {
    // SAFETY: reads a thread-local variable.
    unsafe { sys::lr_errno() }
}
