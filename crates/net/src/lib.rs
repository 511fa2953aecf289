//! TCP servers and clients for readers of flows, metrics, control and web pages: a limited number of connections, a deadline
//! for each read and write, lines of limited length, TLS, tokens, and threads that stop.
//!
//! [`Acceptor`] listens and runs one thread for each connection. [`Stream`] is a connection, plain or TLS. [`Lines`] reads
//! lines from it. [`Stop`] ends threads, also threads that sleep. Nothing here knows a protocol.
#![forbid(unsafe_code)]

mod acceptor;
mod deadline;
mod error;
mod limits;
mod lines;
mod sctp;
mod stop;
mod stream;
mod tcp_state;
mod tls;
mod token;

pub use acceptor::{Acceptor, Connection};
pub use deadline::within;
pub use error::{ServeError, TrustError, MAX_TOKEN, MIN_TOKEN};
pub use limits::{Limit, Limits};
pub use lines::{Line, Lines};
pub use sctp::{has_sctp, sctp_connect, SctpProbe};
pub use stop::{lock, Stop};
pub use stream::{timed_out, Stream, Timed};
pub use tcp_state::{TcpProbe, TcpState};
pub use tls::{client_tls, server_tls, TlsSpec, TlsTrust};
pub use token::{check_listen, same_token, token_from_file};
