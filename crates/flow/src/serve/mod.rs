//! The server of the read protocol ([`crate::protocol`]) over any [`Source`].
//!
//! Each client has a thread, up to a limit. One thread reads the totals at each full second. Another thread walks the
//! table while clients ask for rates or the largest flows. Every client has limits of memory and time, so that a slow,
//! silent or hostile client affects only itself.

mod filter;
mod pages;
mod sampler;
mod session;
mod top;
mod walks;

use std::{net::SocketAddr, sync::Arc};

pub use filter::Matcher;
use net::{check_listen, server_tls, Acceptor, Connection, Limits, Stop};
pub use net::{token_from_file, ServeError, TlsSpec, MAX_TOKEN, MIN_TOKEN};

use crate::Source;

/// Configuration of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServeSpec {
    /// Address and port; port 0: any free one. Other addresses than loopback need a token.
    pub listen: SocketAddr,
    /// The logger's name in [`crate::protocol::Hello::name`].
    pub name: String,
    /// The token that clients must show ([`crate::protocol::Ask::Auth`]). See [`token_from_file`].
    pub token: Option<String>,
    /// Accept TLS only.
    pub tls: Option<TlsSpec>,
    /// Most clients at once; more are refused. One address of another machine may have at most a quarter of them, and at most
    /// a sixteenth without having shown the token.
    pub clients: usize,
}

impl ServeSpec {
    /// Without token and TLS, for 64 clients.
    pub fn new(listen: SocketAddr) -> Self {
        Self { listen, name: "flowlog".into(), token: None, tls: None, clients: 64 }
    }
}

/// A running server. Dropping it disconnects all clients and waits for its threads.
#[derive(Debug)]
pub struct Server {
    acceptor: Acceptor,
    _sampler: sampler::Sampler,
    _walks: walks::Walks,
}

impl Server {
    /// Starts to listen. Its threads run on the CPUs of the caller, so the caller must not run on CPUs that poll.
    pub fn start(spec: &ServeSpec, source: Arc<dyn Source>) -> Result<Self, ServeError> {
        check_listen(spec.listen, spec.token.as_deref())?;
        let tls = spec.tls.as_ref().map(server_tls).transpose()?;
        let stop = Arc::new(Stop::default());
        let thread = |e| ServeError::Thread(e);
        let sampler = sampler::Sampler::start(Arc::clone(&source), &stop).map_err(thread)?;
        let walks = walks::Walks::start(Arc::clone(&source), &stop).map_err(thread)?;
        let shared = session::Shared {
            name: spec.name.clone(),
            token: spec.token.clone(),
            tls,
            stop: Arc::clone(&stop),
            samples: sampler.samples(),
            board: walks.board(),
            pages: pages::Pages::new(source),
        };
        let serve = move |connection: Connection| session::serve(connection, &shared);
        let limits = Limits::new(spec.clients, spec.token.is_some());
        let acceptor = Acceptor::start(spec.listen, "flows", limits, stop, serve)
            .map_err(|why| ServeError::Listen { listen: spec.listen, why })?;
        Ok(Self { acceptor, _sampler: sampler, _walks: walks })
    }

    /// The address it listens on, with the port that was chosen.
    pub fn local_addr(&self) -> SocketAddr {
        self.acceptor.address()
    }

    /// Clients connected now.
    pub fn clients(&self) -> usize {
        self.acceptor.connections()
    }
}
