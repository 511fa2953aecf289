use std::{io, net::SocketAddr, path::PathBuf};

use failure::Failure;

use super::{MAX_TOKEN, MIN_TOKEN};

/// Why a server does not start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServeError {
    /// Reachable from elsewhere, and nothing to show.
    #[error(
        "listen address {0}: other than loopback needs a token: give a token file, or listen on 127.0.0.1 or [::1]"
    )]
    Open(SocketAddr),
    /// A token that cannot be.
    #[error(
        "token{}: must be {MIN_TOKEN} to {MAX_TOKEN} printable ASCII characters without spaces on one line",
        .0.as_ref().map(|p| format!(" in {}", p.display())).unwrap_or_default()
    )]
    Token(Option<PathBuf>),
    /// A file that cannot be read.
    #[error("{what} {}: {why}", path.display())]
    File {
        /// What it should hold.
        what: &'static str,
        /// Which.
        path: PathBuf,
        /// Why not.
        why: String,
    },
    /// The certificate and the key do not make a server.
    #[error("TLS with {} and {}: {why}: the key must be the first certificate's", cert.display(), key.display())]
    Tls {
        /// The certificate's file.
        cert: PathBuf,
        /// The key's file.
        key: PathBuf,
        /// Why not.
        why: String,
    },
    /// The address cannot be had.
    #[error("listen address {listen}: {why}: choose a free port and an address of this machine")]
    Listen {
        /// Where.
        listen: SocketAddr,
        /// Why not.
        why: io::Error,
    },
    /// No more threads.
    #[error("a thread for the read server: {0}: allow more processes (ulimit -u)")]
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
