//! The control socket of a running data plane.
//!
//! A request is one line of JSON ([`Request`]). [`Request::Load`] is followed by as many lines of text as it says. The answer
//! is one line of JSON, `{"ok": ...}` or `{"error": "..."}`. The socket has mode 0600, in a directory with mode 0700 that
//! belongs to the user.
#![forbid(unsafe_code)]

mod client;
mod directory;
mod request;
mod server;

pub use client::Client;
pub use directory::{private_directory, running};
pub use request::{Request, MAX_LOAD};
pub use server::{PendingRequest, Server};
