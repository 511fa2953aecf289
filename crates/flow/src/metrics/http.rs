//! One HTTP request for metrics and its answer.

use std::{
    io::Read,
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use net::{lock, same_token, Connection, Stream};

use super::text;
use crate::Source;

/// Limits of a request: bytes including headers, number of headers, time.
const MAX_REQUEST: usize = 8 << 10;
const MAX_HEADERS: usize = 64;
const PATIENCE: Duration = Duration::from_secs(5);
/// Scrapers share metrics younger than this.
const FRESH: Duration = Duration::from_millis(100);

/// One request per connection, which is enough for a scraper.
pub(super) struct Scrapes {
    source: Arc<dyn Source>,
    token: Option<String>,
    latest: Mutex<Option<(Instant, Arc<str>)>>,
}

/// Answers other than the metrics.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Refusal {
    Bad,
    Unauthorized,
    NotFound,
    NotAllowed,
    TooLarge,
    Busy,
}

impl Refusal {
    fn status(self) -> &'static str {
        match self {
            Self::Bad => "400 Bad Request",
            Self::Unauthorized => "401 Unauthorized",
            Self::NotFound => "404 Not Found",
            Self::NotAllowed => "405 Method Not Allowed",
            Self::TooLarge => "431 Request Header Fields Too Large",
            Self::Busy => "503 Service Unavailable",
        }
    }
}

/// Whether a request is complete, and whether it asks for the head only.
fn understand(bytes: &[u8], token: Option<&str>) -> Result<Option<bool>, Refusal> {
    let mut headers = [httparse::EMPTY_HEADER; MAX_HEADERS];
    let mut request = httparse::Request::new(&mut headers);
    match request.parse(bytes) {
        Ok(httparse::Status::Complete(_)) => {}
        Ok(httparse::Status::Partial) if bytes.len() < MAX_REQUEST => return Ok(None),
        Ok(httparse::Status::Partial) | Err(httparse::Error::TooManyHeaders) => return Err(Refusal::TooLarge),
        Err(_) => return Err(Refusal::Bad),
    }
    let shown = request.headers.iter().find(|h| h.name.eq_ignore_ascii_case("authorization"));
    let shown = shown.and_then(|h| std::str::from_utf8(h.value).ok()).and_then(bearer);
    if token.is_some_and(|token| !shown.is_some_and(|shown| same_token(shown.trim(), token))) {
        return Err(Refusal::Unauthorized);
    }
    if request.path.map(|p| p.split('?').next()) != Some(Some("/metrics")) {
        return Err(Refusal::NotFound);
    }
    match request.method {
        Some("GET") => Ok(Some(false)),
        Some("HEAD") => Ok(Some(true)),
        _ => Err(Refusal::NotAllowed),
    }
}

/// The token of an `Authorization` header. The scheme has no case (RFC 9110 11.1).
fn bearer(value: &str) -> Option<&str> {
    let (scheme, token) = value.trim().split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then_some(token)
}

/// The status of the answer to the bytes of a request so far; `None`: the request is incomplete. For fuzzing.
#[doc(hidden)]
pub fn status(bytes: &[u8], token: Option<&str>) -> Option<&'static str> {
    match understand(bytes, token) {
        Ok(None) => None,
        Ok(Some(_)) => Some("200 OK"),
        Err(refusal) => Some(refusal.status()),
    }
}

impl Scrapes {
    pub(super) fn new(source: Arc<dyn Source>, token: Option<String>) -> Self {
        Self { source, token, latest: Mutex::default() }
    }

    fn metrics(&self) -> Arc<str> {
        let mut latest = lock(&self.latest);
        match &*latest {
            Some((at, text)) if at.elapsed() < FRESH => Arc::clone(text),
            _ => {
                let text: Arc<str> = text(&self.source.totals()).into();
                *latest = Some((Instant::now(), Arc::clone(&text)));
                text
            }
        }
    }

    fn read_request(&self, stream: &mut Stream) -> Option<Result<bool, Refusal>> {
        let mut bytes = Vec::new();
        loop {
            let mut more = [0; 1024];
            let n = stream.read(&mut more).ok().filter(|&n| n > 0)?;
            bytes.extend_from_slice(more.get(..n)?);
            match understand(&bytes, self.token.as_deref()) {
                Ok(None) => {}
                Ok(Some(head)) => return Some(Ok(head)),
                Err(refusal) => return Some(Err(refusal)),
            }
        }
    }

    /// Answers one request, and ends the connection.
    pub(super) fn serve(&self, connection: Connection) {
        let mut stream = Stream::plain(connection.tcp, Instant::now() + PATIENCE);
        let request =
            if connection.over_limit.is_some() { Some(Err(Refusal::Busy)) } else { self.read_request(&mut stream) };
        let (status, kind, body, head) = match request {
            None => return,
            Some(Ok(head)) => ("200 OK", "text/plain; version=0.0.4; charset=utf-8", self.metrics(), head),
            Some(Err(refusal)) => {
                let why = format!("{}: metrics are at GET /metrics\n", refusal.status());
                (refusal.status(), "text/plain; charset=utf-8", why.into(), false)
            }
        };
        let extra = match status.get(..3) {
            Some("401") => "WWW-Authenticate: Bearer\r\n",
            Some("405") => "Allow: GET, HEAD\r\n",
            _ => "",
        };
        let mut answer = format!(
            "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\n{extra}Connection: close\r\n\r\n",
            body.len()
        );
        if !head {
            answer.push_str(&body);
        }
        if stream.send(answer.as_bytes(), PATIENCE).is_ok() {
            stream.finish();
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn requests() {
        let get = |text: &str| understand(text.as_bytes(), None);
        assert_eq!(get("GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n"), Ok(Some(false)));
        assert_eq!(get("HEAD /metrics?x=1 HTTP/1.0\r\n\r\n"), Ok(Some(true)));
        // Lines may end with a bare line feed (RFC 9112 2.2).
        assert_eq!(get("GET /metrics HTTP/1.1\nHost: x\n\n"), Ok(Some(false)));
        assert_eq!(get("GET /metrics HTTP/1.1\r\nHost"), Ok(None));
        assert_eq!(get("GET / HTTP/1.1\r\n\r\n"), Err(Refusal::NotFound));
        assert_eq!(get("GET /metricsx HTTP/1.1\r\n\r\n"), Err(Refusal::NotFound));
        assert_eq!(get("POST /metrics HTTP/1.1\r\n\r\n"), Err(Refusal::NotAllowed));
        assert_eq!(get("\u{0}\u{1}"), Err(Refusal::Bad));
        assert_eq!(get(&format!("GET /{}", "x".repeat(MAX_REQUEST))), Err(Refusal::TooLarge));
        assert_eq!(get(&format!("GET /metrics HTTP/1.1\r\n{}\r\n", "a: b\r\n".repeat(65))), Err(Refusal::TooLarge));
        let shown = |value: &str| {
            understand(format!("GET /metrics HTTP/1.1\r\nauthorization: {value}\r\n\r\n").as_bytes(), Some("12345678"))
        };
        for right in ["Bearer 12345678", "bearer 12345678", "BEARER  12345678 "] {
            assert_eq!(shown(right), Ok(Some(false)), "{right}");
        }
        for wrong in ["Bearer 12345679", "Basic 12345678", "12345678", "Bearer", "Bearer12345678", ""] {
            assert_eq!(shown(wrong), Err(Refusal::Unauthorized), "{wrong}");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_understood_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            let _ = understand(&bytes, Some("12345678"));
        }
    }
}
