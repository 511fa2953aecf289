//! Addresses of collectors.

use std::net::{SocketAddr, ToSocketAddrs};

use super::output::Trouble;

/// The addresses of `HOST:PORT`. May wait for a name server. Errors when the name has none.
pub(super) fn resolve(to: &str) -> Result<Vec<SocketAddr>, Trouble> {
    to.to_socket_addrs().map(Iterator::collect).map_err(|error| error.to_string())
}
