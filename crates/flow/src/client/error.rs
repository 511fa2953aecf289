use std::{path::PathBuf, time::Duration};

/// Why a logger cannot be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ClientError {
    /// Nobody answers there.
    #[error("{address}: {why}: start a logger there (linerate flowlog --listen) or name another HOST:PORT")]
    Connect {
        /// Where.
        address: String,
        /// Why not.
        why: String,
    },
    /// Whom to trust is not known.
    #[error("TLS with {}: {why}: must be the PEM file of the authority that signed the logger's certificate", ca.display())]
    Trust {
        /// The file.
        ca: PathBuf,
        /// Why not.
        why: String,
    },
    /// Somebody else answers there.
    #[error("no flow logger answers there: {0}")]
    NotALogger(String),
    /// The logger said no, in its words.
    #[error("{0}")]
    Refused(String),
    /// The connection broke.
    #[error("the connection broke: {0}")]
    Lost(String),
    /// The logger does not answer.
    #[error("no answer in {} s", .0.as_secs_f64())]
    Late(Duration),
    /// It answers what cannot be understood.
    #[error("not an answer: {0}")]
    NotAnAnswer(String),
}
