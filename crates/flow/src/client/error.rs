//! Why a logger cannot be read.

use std::time::Duration;

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
    /// The server's certificate cannot be checked.
    #[error(transparent)]
    Trust(#[from] net::TrustError),
    /// Somebody else answers there.
    #[error("no flow logger answers there: {0}")]
    NotALogger(String),
    /// The logger asks for a token, and none was given.
    #[error("the logger asks for a token: give one")]
    NeedsToken,
    /// The logger refused a request. Holds its message.
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
