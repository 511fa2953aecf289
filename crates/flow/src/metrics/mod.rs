//! Counters for Prometheus: its text format over HTTP, `GET /metrics`, on a listener of its own.

mod http;
mod text;

use std::{net::SocketAddr, sync::Arc};

pub use http::status;
use net::{check_listen, Acceptor, Limits, ServeError, Stop};
pub use text::text;

use crate::Source;

/// Most scrapers at once.
const SCRAPERS: usize = 16;

/// Where metrics are served.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MetricsSpec {
    /// Address and port; port 0: any free one. Other addresses than loopback need a token.
    pub listen: SocketAddr,
    /// The token that scrapers must show, as `Authorization: Bearer TOKEN` (Prometheus: `authorization.credentials_file`).
    pub token: Option<String>,
}

/// A running metrics server. Dropping it waits for its threads.
#[derive(Debug)]
pub struct MetricsServer {
    acceptor: Acceptor,
}

impl MetricsServer {
    /// Starts to listen. Errors: the address needs a token or cannot be bound.
    pub fn start(spec: &MetricsSpec, source: Arc<dyn Source>) -> Result<Self, ServeError> {
        check_listen(spec.listen, spec.token.as_deref())?;
        let scrapes = http::Scrapes::new(source, spec.token.clone());
        let acceptor = Acceptor::start(
            spec.listen,
            "metrics",
            Limits::new(SCRAPERS, false),
            Arc::new(Stop::default()),
            move |connection| scrapes.serve(connection),
        )
        .map_err(|why| ServeError::Listen { listen: spec.listen, why })?;
        Ok(Self { acceptor })
    }

    /// The address it listens on, with the port that was chosen.
    pub fn local_addr(&self) -> SocketAddr {
        self.acceptor.address()
    }
}
