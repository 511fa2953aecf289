use std::sync::Arc;

use rustls::{
    pki_types::{pem::PemObject, CertificateDer, ServerName},
    ClientConfig, ClientConnection, RootCertStore,
};

use super::{ClientError, TlsTrust};

/// The host of `HOST:PORT`, without the brackets of an IPv6 address.
fn host(address: &str) -> &str {
    let host = address.rsplit_once(':').map_or(address, |(host, _)| host);
    host.strip_prefix('[').and_then(|h| h.strip_suffix(']')).unwrap_or(host)
}

/// A TLS connection to be, that trusts this authority only.
pub(super) fn connection(trust: &TlsTrust, address: &str) -> Result<ClientConnection, ClientError> {
    let fail = |why: String| ClientError::Trust { ca: trust.ca.clone(), why };
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
        .with_root_certificates(roots)
        .with_no_client_auth();
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
