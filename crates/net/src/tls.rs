//! TLS 1.2 and 1.3 for servers and clients, from PEM files.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use rustls::{
    pki_types::{pem::PemObject, CertificateDer, PrivateKeyDer, ServerName},
    ClientConfig, ClientConnection, RootCertStore, ServerConfig,
};

use crate::error::{ServeError, TrustError};

/// The PEM files of one side: who it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TlsSpec {
    /// Its certificate, followed by the intermediate ones.
    pub cert: PathBuf,
    /// Its private key.
    pub key: PathBuf,
}

/// The authority that a client trusts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TlsTrust {
    /// PEM file with the certificate of the authority, or of a self-signed server.
    pub ca: PathBuf,
    /// The name in the server's certificate; `None`: the host of the address.
    pub name: Option<String>,
}

/// The configuration of a TLS server. Errors: [`ServeError::File`] when a file cannot be read, [`ServeError::Tls`] when the
/// files do not belong together.
pub fn server_tls(spec: &TlsSpec) -> Result<Arc<ServerConfig>, ServeError> {
    let file = |what, path: &Path| {
        let path = path.to_owned();
        move |e: rustls::pki_types::pem::Error| ServeError::File { what, path, why: e.to_string() }
    };
    let certs = CertificateDer::pem_file_iter(&spec.cert)
        .and_then(Iterator::collect::<Result<Vec<_>, _>>)
        .map_err(file("certificate", &spec.cert))?;
    let key = PrivateKeyDer::from_pem_file(&spec.key).map_err(file("private key", &spec.key))?;
    let fail = |e: rustls::Error| ServeError::Tls {
        cert: spec.cert.clone(),
        key: spec.key.clone(),
        why: if certs.is_empty() { "no certificate in it".into() } else { e.to_string() },
    };
    let config = ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .and_then(|b| b.with_no_client_auth().with_single_cert(certs.clone(), key))
        .map_err(fail)?;
    Ok(Arc::new(config))
}

/// The host of `HOST:PORT`, without the brackets of an IPv6 address.
fn host(address: &str) -> &str {
    let host = address.rsplit_once(':').map_or(address, |(host, _)| host);
    host.strip_prefix('[').and_then(|h| h.strip_suffix(']')).unwrap_or(host)
}

/// A TLS connection to `address` (`HOST:PORT`) that trusts only the authority in `trust`, and says who it is where `own` is
/// given. Errors: a file cannot be read or holds something else, or the server name is not legal.
pub fn client_tls(trust: &TlsTrust, own: Option<&TlsSpec>, address: &str) -> Result<ClientConnection, TrustError> {
    let must = "the PEM file of the authority that signed the server's certificate";
    let fail = |why: String| TrustError { path: trust.ca.clone(), must, why };
    let certs = CertificateDer::pem_file_iter(&trust.ca).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    let certs = certs.map_err(|e| fail(e.to_string()))?;
    let mut roots = RootCertStore::empty();
    for cert in certs {
        roots.add(cert).map_err(|e| fail(e.to_string()))?;
    }
    if roots.is_empty() {
        return Err(fail("no certificate in it".into()));
    }
    let name = trust.name.as_deref().unwrap_or_else(|| host(address));
    let name = ServerName::try_from(name.to_owned()).map_err(|e| fail(format!("server name {name:?}: {e}")))?;
    let config = ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|e| fail(e.to_string()))?
        .with_root_certificates(roots);
    let config = match own {
        None => config.with_no_client_auth(),
        Some(own) => {
            let must = "a PEM certificate and its key";
            let fail = |path: &Path, why: String| TrustError { path: path.to_owned(), must, why };
            let certs = CertificateDer::pem_file_iter(&own.cert).and_then(Iterator::collect::<Result<Vec<_>, _>>);
            let certs = certs.map_err(|e| fail(&own.cert, e.to_string()))?;
            let key = PrivateKeyDer::from_pem_file(&own.key).map_err(|e| fail(&own.key, e.to_string()))?;
            config.with_client_auth_cert(certs, key).map_err(|e| fail(&own.cert, e.to_string()))?
        }
    };
    ClientConnection::new(Arc::new(config), name).map_err(|e| fail(e.to_string()))
}

#[cfg(test)]
mod tests {
    #[test]
    fn hosts() {
        for (address, host) in [("a.example:1", "a.example"), ("[::1]:9", "::1"), ("192.0.2.1:80", "192.0.2.1")] {
            assert_eq!(super::host(address), host);
        }
    }
}
