//! Tokens that clients show, and which addresses need one.

use std::{fs::File, io::Read, net::SocketAddr, path::Path};

use subtle::ConstantTimeEq;

use crate::error::{ServeError, MAX_TOKEN, MIN_TOKEN};

fn is_token(text: &str) -> bool {
    (MIN_TOKEN..=MAX_TOKEN).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_graphic())
}

/// Reads the token from a file, which holds it on its only line. Errors: [`ServeError::File`], [`ServeError::BadToken`].
pub fn token_from_file(path: &Path) -> Result<String, ServeError> {
    let fail = |e: std::io::Error| ServeError::File { what: "token file", path: path.into(), why: e.to_string() };
    let mut text = String::new();
    File::open(path).and_then(|f| f.take(MAX_TOKEN as u64 + 3).read_to_string(&mut text)).map_err(fail)?;
    let token = text.trim_end_matches(['\r', '\n']);
    if is_token(token) {
        Ok(token.into())
    } else {
        Err(ServeError::BadToken(Some(path.into())))
    }
}

/// Checks that a server on `listen` is on loopback or has a token, and that the token is well-formed. Errors:
/// [`ServeError::NeedsToken`], [`ServeError::BadToken`].
pub fn check_listen(listen: SocketAddr, token: Option<&str>) -> Result<(), ServeError> {
    match token {
        Some(token) if !is_token(token) => Err(ServeError::BadToken(None)),
        None if !listen.ip().to_canonical().is_loopback() => Err(ServeError::NeedsToken(listen)),
        _ => Ok(()),
    }
}

/// Whether two tokens are equal. The time it takes depends only on their lengths.
pub fn same_token(shown: &str, token: &str) -> bool {
    shown.as_bytes().ct_eq(token.as_bytes()).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_loopback_is_open() {
        fn check(listen: &str, token: Option<&str>) -> Result<(), ServeError> {
            check_listen(listen.parse().unwrap(), token)
        }
        for open in ["127.0.0.1:0", "[::1]:0", "127.9.9.9:1", "[::ffff:127.0.0.1]:1"] {
            assert!(check(open, None).is_ok(), "{open}");
        }
        for closed in ["0.0.0.0:0", "[::]:0", "192.0.2.1:9", "[::ffff:192.0.2.1]:1"] {
            assert!(matches!(check(closed, None), Err(ServeError::NeedsToken(_))), "{closed}");
            assert!(check(closed, Some("12345678")).is_ok(), "{closed}");
        }
        for bad in ["", "short", "with space", "line\nline", &"x".repeat(MAX_TOKEN + 1)] {
            assert!(matches!(check("127.0.0.1:0", Some(bad)), Err(ServeError::BadToken(None))), "{bad}");
        }
        insta::assert_snapshot!(check("0.0.0.0:9", None).unwrap_err().to_string(), @"listen address 0.0.0.0:9: needs a token, because it is not loopback: give a token file, or listen on 127.0.0.1 or [::1]");
        insta::assert_snapshot!(check("127.0.0.1:9", Some("")).unwrap_err().to_string(), @"token: must be 8 to 256 printable ASCII characters without spaces on one line");
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
        assert!(matches!(token_from_file(&path), Err(ServeError::BadToken(Some(p))) if p == path));
        assert!(matches!(token_from_file(&dir.path().join("no")), Err(ServeError::File { what: "token file", .. })));
        assert!(same_token("12345678", "12345678") && !same_token("12345678", "12345679") && !same_token("", "x"));
    }
}
