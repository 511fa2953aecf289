//! Why a server cannot start, and why a client cannot trust one.

use std::{io, net::SocketAddr, path::PathBuf};

use failure::Failure;

/// Shortest token, in bytes.
pub const MIN_TOKEN: usize = 8;
/// Longest token, in bytes.
pub const MAX_TOKEN: usize = 256;

/// Why a server does not start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServeError {
    /// Other machines can reach the address, and no token protects it.
    #[error("listen address {0}: needs a token, because it is not loopback: give a token file, or listen on 127.0.0.1 or [::1]")]
    NeedsToken(SocketAddr),
    /// The text is not a token. Holds the file it came from, if any.
    #[error(
        "token{}: must be {MIN_TOKEN} to {MAX_TOKEN} printable ASCII characters without spaces on one line",
        .0.as_ref().map(|p| format!(" in {}", p.display())).unwrap_or_default()
    )]
    BadToken(Option<PathBuf>),
    /// A file cannot be read.
    #[error("{what} {}: {why}", path.display())]
    File {
        /// What the file should hold.
        what: &'static str,
        /// The file.
        path: PathBuf,
        /// The cause.
        why: String,
    },
    /// The certificate and the key do not belong together.
    #[error("TLS with {} and {}: {why}: the key must belong to the first certificate", cert.display(), key.display())]
    Tls {
        /// The file of the certificate.
        cert: PathBuf,
        /// The file of the key.
        key: PathBuf,
        /// The cause.
        why: String,
    },
    /// The address cannot be bound.
    #[error("listen address {listen}: {why}: choose a free port (0: any) and an address of this machine")]
    Listen {
        /// The address.
        listen: SocketAddr,
        /// The cause.
        why: io::Error,
    },
    /// The system allows no more threads.
    #[error("cannot start a server thread: {0}: allow more processes (ulimit -u)")]
    Thread(io::Error),
}

impl From<ServeError> for Failure {
    fn from(e: ServeError) -> Self {
        match e {
            ServeError::Listen { .. } | ServeError::Thread(_) => Self::machine(e),
            _ => Self::usage(e),
        }
    }
}

/// Why a client cannot check the server's certificate, or show its own.
#[derive(Debug, thiserror::Error)]
#[error("TLS with {}: {why}: must be {must}", path.display())]
pub struct TrustError {
    /// The file that is wrong.
    pub path: PathBuf,
    /// What it must be.
    pub must: &'static str,
    /// The cause.
    pub why: String,
}
