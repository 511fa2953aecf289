//! Addresses of collectors.

use std::{
    io::ErrorKind,
    net::{SocketAddr, ToSocketAddrs},
};

use super::output::Trouble;

/// The addresses of `HOST:PORT`. May wait for a name server. Errors when the name has none.
pub(super) fn resolve(to: &str) -> Result<Vec<SocketAddr>, Trouble> {
    to.to_socket_addrs().map(Iterator::collect)
}

/// The name has no address.
pub(super) fn no_address(to: &str) -> Trouble {
    Trouble::new(ErrorKind::AddrNotAvailable, format!("no address for {to}"))
}
