//! The control socket of a running data plane.
//!
//! A request is one line of JSON ([`Request`]), after [`Request::Load`] followed by as many lines of text as it says; the
//! answer is one line of JSON, `{"ok": ...}` or `{"error": "..."}`. The socket lies in a directory of the user's own
//! (mode 0700) and has mode 0600.
#![forbid(unsafe_code)]

mod client;
mod directory;
mod request;
mod server;

pub use client::Client;
pub use directory::{private_directory, running};
pub use request::{Request, MAX_LOAD};
pub use server::{Asked, Server};
