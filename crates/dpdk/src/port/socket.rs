//! What can be known about a unix socket before DPDK is asked to use it.

use std::{
    io::ErrorKind,
    os::unix::{fs::FileTypeExt, net::UnixStream},
    path::Path,
};

use crate::DpdkError;

/// We are to listen: the directory must exist and nobody else may listen. A socket nobody listens on is removed.
pub(super) fn check_server(port: &str, path: &Path) -> Result<(), DpdkError> {
    let file = |why: String| DpdkError::File { port: port.to_string(), path: path.to_path_buf(), why };
    let parent = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    if !parent.is_dir() {
        return Err(file(format!("the directory {} does not exist; make it first", parent.display())));
    }
    let Ok(meta) = std::fs::symlink_metadata(path) else { return Ok(()) };
    if !meta.file_type().is_socket() {
        return Err(file("exists and is not a socket; choose another path".into()));
    }
    if is_listening(path) {
        return Err(DpdkError::SocketBusy { port: port.to_string(), path: path.to_path_buf() });
    }
    match connect(path) {
        Ok(()) => Err(DpdkError::SocketBusy { port: port.to_string(), path: path.to_path_buf() }),
        Err(e) if e.kind() == ErrorKind::ConnectionRefused => {
            std::fs::remove_file(path).map_err(|e| file(format!("a stale socket that cannot be removed: {e}")))
        }
        Err(e) => Err(file(e.to_string())),
    }
}

/// The peer is to listen. Only the file is looked at: a guest's side waits for one peer and takes a knock for that, and
/// DPDK's memif server does not survive many.
pub(super) fn check_client(port: &str, path: &Path, server: &'static str) -> Result<(), DpdkError> {
    let missing = |why: String| DpdkError::SocketMissing { port: port.to_string(), why, server };
    match std::fs::metadata(path) {
        Err(e) if e.kind() == ErrorKind::NotFound => Err(missing(format!("{} does not exist", path.display()))),
        Err(e) => Err(denied_or(port, path, &e)),
        Ok(meta) if !meta.file_type().is_socket() => {
            let why = "exists and is not a socket".into();
            Err(DpdkError::File { port: port.to_string(), path: path.to_path_buf(), why })
        }
        Ok(_) => Ok(()),
    }
}

/// The error of a client whose driver failed with `error`: [`DpdkError::SocketStale`] when nobody listens on the socket.
/// Only connects when the kernel knows no listener, so that no peer takes it for a client.
pub(super) fn stale_or(port: &str, path: &Path, server: &'static str, error: DpdkError) -> DpdkError {
    let is_driver = matches!(error, DpdkError::Driver { .. });
    let is_refused = || matches!(connect(path), Err(e) if e.kind() == ErrorKind::ConnectionRefused);
    if is_driver && !is_listening(path) && is_refused() {
        return DpdkError::SocketStale { port: port.to_string(), path: path.to_path_buf(), server };
    }
    error
}

/// Whether the kernel knows of a listener on this path in our network namespace. Asked before connecting: DPDK's memif
/// server does not survive many peers that connect and hang up.
fn is_listening(path: &Path) -> bool {
    const ACCEPTING: u32 = 0x1_0000;
    let table = std::fs::read_to_string("/proc/net/unix").unwrap_or_default();
    table.lines().skip(1).any(|line| {
        let mut fields = line.split_ascii_whitespace();
        let flags = fields.nth(3).and_then(|f| u32::from_str_radix(f, 16).ok()).unwrap_or(0);
        flags & ACCEPTING != 0 && fields.nth(3).is_some_and(|bound| Path::new(bound) == path)
    })
}

/// Whether somebody is behind the socket.
fn connect(path: &Path) -> std::io::Result<()> {
    // memif listens with SOCK_SEQPACKET, which is told apart only after a listener was found.
    const EPROTOTYPE: i32 = 91;
    match UnixStream::connect(path) {
        Err(e) if e.raw_os_error() == Some(EPROTOTYPE) => Ok(()),
        other => other.map(drop),
    }
}

/// Connects and hangs up, so that who waits for a peer waits no longer.
pub(super) fn wake(path: &Path) {
    let _ = connect(path);
}

fn denied_or(port: &str, path: &Path, e: &std::io::Error) -> DpdkError {
    if e.kind() == ErrorKind::PermissionDenied {
        let mend = format!("run as root, or: sudo chmod a+rw {}", path.display());
        return DpdkError::NoPermission { what: format!("port {port}"), mend };
    }
    DpdkError::File { port: port.to_string(), path: path.to_path_buf(), why: e.to_string() }
}

/// Removes the socket we listened on, if the driver has left it.
pub(super) fn remove(path: &Path) {
    if std::fs::symlink_metadata(path).is_ok_and(|m| m.file_type().is_socket()) {
        let _ = std::fs::remove_file(path);
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixListener;

    use super::*;

    #[test]
    fn sockets_are_told_apart() {
        let dir = std::env::temp_dir().join(format!("linerate-socket-{}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        let path = dir.join("s");
        let client = || check_client("memif:s", &path, "role=server");
        let is_file = |e: Result<(), DpdkError>| matches!(e, Err(DpdkError::File { .. }));
        assert!(check_server("memif:s", &path).is_ok());
        assert!(matches!(client(), Err(DpdkError::SocketMissing { .. })));

        assert!(!is_listening(&path));
        let listener = UnixListener::bind(&path).unwrap();
        assert!(is_listening(&path));
        let busy = check_server("memif:s", &path).unwrap_err();
        assert!(busy.machine_lacks() && matches!(busy, DpdkError::SocketBusy { .. }), "{busy}");
        assert!(client().is_ok());

        let refused = || DpdkError::Driver { port: "memif:s".into(), step: "x".into(), reason: "y".into() };
        assert!(matches!(stale_or("memif:s", &path, "role=server", refused()), DpdkError::Driver { .. }));
        drop(listener);
        let stale = stale_or("memif:s", &path, "role=server", refused());
        assert!(stale.machine_lacks() && matches!(stale, DpdkError::SocketStale { path: p, .. } if p == path));
        assert!(check_server("memif:s", &path).is_ok() && !path.exists());

        std::fs::write(&path, "x").unwrap();
        assert!(is_file(check_server("memif:s", &path)) && is_file(client()));
        assert!(is_file(check_server("memif:s", &dir.join("no/s"))));
        std::fs::remove_dir_all(&dir).unwrap();
    }
}
