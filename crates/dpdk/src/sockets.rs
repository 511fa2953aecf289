//! Options of the kernel's sockets that the libraries of this workspace have no safe call for.

use std::{
    ffi::CString,
    io,
    os::fd::{AsRawFd, BorrowedFd},
};

use dpdk_sys as sys;

/// Makes calls that wait on this socket poll the device for so many microseconds before they sleep (SO_BUSY_POLL, socket(7)); with
/// `prefer` its interrupts stay off meanwhile (SO_PREFER_BUSY_POLL, Linux 5.11).
///
/// # Errors
///
/// `PermissionDenied` without CAP_NET_ADMIN; what the kernel says else.
pub fn set_busy_poll(socket: BorrowedFd<'_>, us: u32, prefer: bool) -> io::Result<()> {
    // SAFETY: sets options of an open socket, which the kernel checks.
    match unsafe { sys::lr_busy_poll(socket.as_raw_fd(), us, prefer.into()) } {
        0 => Ok(()),
        errno => Err(io::Error::from_raw_os_error(errno)),
    }
}

/// Whether the last packet of this socket came through a device that can be polled (SO_INCOMING_NAPI_ID): `lo` and veth without
/// XDP have none.
pub fn has_napi(socket: BorrowedFd<'_>) -> bool {
    // SAFETY: reads an option of an open socket.
    unsafe { sys::lr_napi_id(socket.as_raw_fd()) != 0 }
}

/// An interface whose NIC stamps frames. It stamps what it stamped before when this is dropped.
#[derive(Debug)]
pub struct HwStamps {
    name: CString,
    /// `tx_type` and `rx_filter` of before (timestamping.rst).
    before: (i32, i32),
}

impl HwStamps {
    /// `HWTSTAMP_TX_ON` and `HWTSTAMP_FILTER_ALL`.
    const ALL: (i32, i32) = (1, 1);

    /// Has the NIC of an interface of this thread's network namespace stamp all frames.
    ///
    /// # Errors
    ///
    /// `Unsupported` where the driver has no time stamps, and `PermissionDenied` without CAP_NET_ADMIN.
    pub fn on(interface: &str) -> io::Result<Self> {
        let name = CString::new(interface).map_err(|_| io::ErrorKind::InvalidInput)?;
        let before = set_hw_stamps(&name, Self::ALL)?;
        Ok(Self { name, before })
    }
}

impl Drop for HwStamps {
    fn drop(&mut self) {
        // An interface that has gone needs nothing.
        let _ = set_hw_stamps(&self.name, self.before);
    }
}

/// Returns what was set before.
fn set_hw_stamps(name: &CString, (mut tx, mut rx): (i32, i32)) -> io::Result<(i32, i32)> {
    // SAFETY: the name is NUL-terminated, and both numbers are written during the call only.
    match unsafe { sys::lr_hw_stamps(name.as_ptr(), &mut tx, &mut rx) } {
        0 => Ok((tx, rx)),
        errno => Err(io::Error::from_raw_os_error(errno)),
    }
}

#[cfg(test)]
mod tests {
    use std::{net::UdpSocket, os::fd::AsFd};

    use super::*;

    #[test]
    fn a_socket_polls_and_lo_has_nothing_to_poll() {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        match set_busy_poll(socket.as_fd(), 50, true) {
            Ok(()) => {}
            Err(e) => assert_eq!(e.kind(), io::ErrorKind::PermissionDenied),
        }
        socket.send_to(b"x", socket.local_addr().unwrap()).unwrap();
        socket.recv(&mut [0; 8]).unwrap();
        assert!(!has_napi(socket.as_fd()));
        let file = std::fs::File::open("/dev/null").unwrap();
        assert!(set_busy_poll(file.as_fd(), 50, false).is_err() && !has_napi(file.as_fd()));
    }

    #[test]
    fn an_interface_without_a_nic_stamps_nothing() {
        let lo = HwStamps::on("lo").unwrap_err();
        assert!(matches!(lo.kind(), io::ErrorKind::Unsupported | io::ErrorKind::PermissionDenied), "{lo:?}");
        assert!(HwStamps::on("none-such0").is_err() && HwStamps::on("a\0b").is_err());
    }
}
