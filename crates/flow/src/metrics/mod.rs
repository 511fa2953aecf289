//! Counters for Prometheus: its text format over HTTP, `GET /metrics`, on a listener of its own.

mod http;
mod text;

use std::{net::SocketAddr, sync::Arc};

pub use http::status;
use net::{check_listen, Acceptor, Limits, ServeError, Stop};
pub use text::text;

use crate::Source;

/// Scrapers at once; there is rarely more than one.
const SCRAPERS: usize = 16;

/// Where metrics are served.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MetricsSpec {
    /// Address and port; port 0: any free one. Other addresses than loopback need a token.
    pub listen: SocketAddr,
    /// What scrapers have to show, as `Authorization: Bearer TOKEN` (Prometheus: `authorization.credentials_file`).
    pub token: Option<String>,
}

/// A metrics server that runs. Dropped, its threads have ended.
#[derive(Debug)]
pub struct MetricsServer {
    acceptor: Acceptor,
}

impl MetricsServer {
    /// Listens.
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

    /// Where it listens, with the port that was free.
    pub fn local_addr(&self) -> SocketAddr {
        self.acceptor.address()
    }
}
