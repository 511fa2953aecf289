use std::{fs::File, io::Read, net::SocketAddr, path::Path, sync::Arc};

use rustls::{
    pki_types::{pem::PemObject, CertificateDer, PrivateKeyDer},
    ServerConfig,
};
use subtle::ConstantTimeEq;

use super::{ServeError, TlsSpec};

/// Shortest token, in bytes.
pub const MIN_TOKEN: usize = 8;
/// Longest token, in bytes.
pub const MAX_TOKEN: usize = 256;

fn is_token(text: &str) -> bool {
    (MIN_TOKEN..=MAX_TOKEN).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_graphic())
}

/// The token in a file: its only line.
pub fn token_from_file(path: &Path) -> Result<String, ServeError> {
    let fail = |e: std::io::Error| ServeError::File { what: "token file", path: path.into(), why: e.to_string() };
    let mut text = String::new();
    File::open(path).and_then(|f| f.take(MAX_TOKEN as u64 + 3).read_to_string(&mut text)).map_err(fail)?;
    let token = text.trim_end_matches(['\r', '\n']);
    if is_token(token) {
        Ok(token.into())
    } else {
        Err(ServeError::Token(Some(path.into())))
    }
}

/// Loopback, or a token; and the token, if any, is one.
pub(crate) fn check_listen(listen: SocketAddr, token: Option<&str>) -> Result<(), ServeError> {
    match token {
        Some(token) if !is_token(token) => Err(ServeError::Token(None)),
        None if !listen.ip().to_canonical().is_loopback() => Err(ServeError::Open(listen)),
        _ => Ok(()),
    }
}

/// Compares in a time that tells nothing but the length.
pub(crate) fn same_token(shown: &str, token: &str) -> bool {
    shown.as_bytes().ct_eq(token.as_bytes()).into()
}

/// What a TLS server is made of.
pub(crate) fn tls(spec: &TlsSpec) -> Result<Arc<ServerConfig>, ServeError> {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_loopback_is_open() {
        let check = |listen: &str, token| check_listen(listen.parse().unwrap(), token).map_err(|e| e.to_string());
        for open in ["127.0.0.1:0", "[::1]:0", "127.9.9.9:1", "[::ffff:127.0.0.1]:1"] {
            assert_eq!(check(open, None), Ok(()), "{open}");
        }
        for closed in ["0.0.0.0:0", "[::]:0", "192.0.2.1:9", "[::ffff:192.0.2.1]:1"] {
            assert!(check(closed, None).unwrap_err().contains("needs a token"), "{closed}");
            assert_eq!(check(closed, Some("12345678")), Ok(()), "{closed}");
        }
        for bad in ["", "short", "with space", "line\nline", &"x".repeat(MAX_TOKEN + 1)] {
            assert!(check("127.0.0.1:0", Some(bad)).unwrap_err().contains("8 to 256"), "{bad}");
        }
    }

    #[test]
    fn tokens_come_from_files_of_one_line() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("token");
        for (text, token) in [("correct-horse\n", Some("correct-horse")), ("a b c d e f g\n", None), ("x\n", None)] {
            std::fs::write(&path, text).unwrap();
            assert_eq!(token_from_file(&path).ok().as_deref(), token);
        }
        std::fs::write(&path, "x".repeat(1 << 20)).unwrap();
        assert!(token_from_file(&path).unwrap_err().to_string().contains("token in /"));
        assert!(token_from_file(&dir.path().join("no")).unwrap_err().to_string().contains("No such file"));
        assert!(same_token("12345678", "12345678") && !same_token("12345678", "12345679") && !same_token("", "x"));
    }
}
