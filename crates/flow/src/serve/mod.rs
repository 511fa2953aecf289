//! The server of the read protocol ([`crate::protocol`]) over any [`Source`].
//!
//! A thread for each client, up to a limit; one that reads the totals at each full second; one that walks the table for
//! all who ask for rates or the largest flows, and sleeps when nobody does. A client has bounded room and time for
//! everything, so that a slow, silent or hostile one costs itself only.

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

/// How to serve.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServeSpec {
    /// Address and port; port 0: any free one. Other addresses than loopback need a token.
    pub listen: SocketAddr,
    /// The logger's name, as [`crate::protocol::Hello::name`] says it.
    pub name: String,
    /// What clients have to show ([`crate::protocol::Ask::Auth`]). See [`token_from_file`].
    pub token: Option<String>,
    /// Speak TLS and nothing else.
    pub tls: Option<TlsSpec>,
    /// Most clients at once; the next is told so and let go. A quarter of them from one address that is not of this machine,
    /// and where a token is asked for, a sixteenth that have not shown it.
    pub clients: usize,
}

impl ServeSpec {
    /// Without token and TLS, for 64 clients.
    pub fn new(listen: SocketAddr) -> Self {
        Self { listen, name: "flowlog".into(), token: None, tls: None, clients: 64 }
    }
}

/// A server that runs. Dropped, it lets all clients go, and its threads have ended.
#[derive(Debug)]
pub struct Server {
    acceptor: Acceptor,
    _sampler: sampler::Sampler,
    _walks: walks::Walks,
}

impl Server {
    /// Listens. Its threads run on the CPUs the caller may run on: those that pass frames should not be among them.
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

    /// Where it listens, with the port that was free.
    pub fn local_addr(&self) -> SocketAddr {
        self.acceptor.address()
    }

    /// Clients connected now.
    pub fn clients(&self) -> usize {
        self.acceptor.connections()
    }
}
