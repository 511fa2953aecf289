//! A connection to a logger: requests and their answers.

use std::{
    net::{TcpStream, ToSocketAddrs},
    time::{Duration, Instant},
};

use net::{client_tls, timed_out, within, Line, Lines, Stream, TlsTrust};

use super::{again::BackOff, error::ClientError};
use crate::protocol::{Answer, Ask, By, Filter, Hello, Page, Request, Totals, What, SERVER, VERSION};

/// Longest answer line in bytes; a page of 1,000 flows has about a tenth.
const MAX_ANSWER: usize = 8 << 20;

/// Which logger to connect to, and how.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientSpec {
    /// `HOST:PORT`.
    pub address: String,
    /// The token, if the logger asks for one.
    pub token: Option<String>,
    /// Use TLS, and trust this authority.
    pub tls: Option<TlsTrust>,
    /// Longest wait for a connection or an answer. Lists of the largest flows of large tables take seconds.
    pub timeout: Duration,
}

impl ClientSpec {
    /// Without token and TLS, waiting 10 s.
    pub fn new(address: impl Into<String>) -> Self {
        Self { address: address.into(), token: None, tls: None, timeout: Duration::from_secs(10) }
    }
}

/// A connection to a logger.
#[derive(Debug)]
pub struct Client {
    stream: Stream,
    lines: Lines,
    hello: Hello,
    pub(super) timeout: Duration,
    last: u64,
}

impl Client {
    /// Connects, checks that a logger answers, and shows the token if the logger asks for one.
    pub fn connect(spec: &ClientSpec) -> Result<Self, ClientError> {
        let tls = spec.tls.as_ref().map(|trust| client_tls(trust, None, &spec.address)).transpose()?;
        let connect = |why: String| ClientError::Connect { address: spec.address.clone(), why };
        let addresses = spec.address.to_socket_addrs().map_err(|e| connect(e.to_string()))?;
        let mut tcp = Err(connect("no such host".into()));
        for address in addresses {
            tcp = TcpStream::connect_timeout(&address, spec.timeout.max(Duration::from_millis(1)))
                .map_err(|e| connect(e.to_string()));
            if tcp.is_ok() {
                break;
            }
        }
        let mut stream = Stream::plain(tcp?, within(spec.timeout));
        if let Some(tls) = tls {
            stream = stream.client(tls);
        }
        let mut lines = Lines::new(MAX_ANSWER);
        let line = match lines.next(&mut stream) {
            Ok(Line::Text(line)) => line,
            Ok(Line::TooLong) => return Err(ClientError::NotALogger("its first line is too long".into())),
            Ok(Line::End) => return Err(ClientError::Lost("it closed the connection without a greeting".into())),
            Err(e) if timed_out(&e) => {
                return Err(ClientError::NotALogger("it sends no greeting: does it use TLS?".into()))
            }
            Err(e) => return Err(ClientError::Lost(e.to_string())),
        };
        let hello: Hello = match (serde_json::from_slice(&line), serde_json::from_slice(&line)) {
            (Ok(hello), _) => hello,
            (_, Ok(Answer { what: What::Error(why), .. })) => return Err(ClientError::Refused(why)),
            (Err(e), _) => return Err(ClientError::NotALogger(format!("its first line is not a greeting: {e}"))),
        };
        if hello.server != SERVER || hello.version != VERSION {
            let what = format!("it is {:.40?} version {}", hello.server, hello.version);
            return Err(ClientError::NotALogger(what));
        }
        let auth = hello.auth;
        let mut client = Self { stream, lines, hello, timeout: spec.timeout, last: 0 };
        match (&spec.token, auth) {
            (Some(token), true) => client.ask(Ask::Auth { token: token.clone() }).map(|_| client),
            (None, true) => Err(ClientError::NeedsToken),
            (_, false) => Ok(client),
        }
    }

    /// Connects, and tries again after errors: `wait` gets the error and how long to wait, and returns whether to try again.
    pub fn connect_patiently(
        spec: &ClientSpec,
        back_off: &mut BackOff,
        mut wait: impl FnMut(&ClientError, Duration) -> bool,
    ) -> Result<Self, ClientError> {
        loop {
            match Self::connect(spec) {
                Ok(client) => {
                    back_off.reset();
                    return Ok(client);
                }
                Err(error) if wait(&error, back_off.next_wait()) => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// The greeting of the logger.
    pub fn hello(&self) -> &Hello {
        &self.hello
    }

    /// Sends a request without waiting; returns its `id`, which its answers carry.
    pub fn send(&mut self, ask: Ask) -> Result<u64, ClientError> {
        self.last += 1;
        let id = self.last;
        let mut line = serde_json::to_vec(&Request { id, ask }).map_err(|e| ClientError::NotAnAnswer(e.to_string()))?;
        line.push(b'\n');
        self.stream.send(&line, self.timeout).map_err(|e| ClientError::Lost(e.to_string()))?;
        Ok(id)
    }

    /// The next answer to any request, if one comes within `wait`.
    pub fn receive(&mut self, wait: Duration) -> Result<Option<Answer>, ClientError> {
        // Reads data that has already arrived, however short the wait.
        self.stream.set_deadline(within(wait.max(Duration::from_millis(1))));
        match self.lines.next(&mut self.stream) {
            Ok(Line::Text(line)) => {
                serde_json::from_slice(&line).map(Some).map_err(|e| ClientError::NotAnAnswer(e.to_string()))
            }
            Ok(Line::TooLong) => Err(ClientError::NotAnAnswer(format!("more than {MAX_ANSWER} bytes"))),
            Ok(Line::End) => Err(ClientError::Lost("it closed the connection".into())),
            Err(e) if timed_out(&e) => Ok(None),
            Err(e) => Err(ClientError::Lost(e.to_string())),
        }
    }

    /// Sends a request and waits for its answer. Answers to other requests that come before are dropped.
    pub fn ask(&mut self, ask: Ask) -> Result<What, ClientError> {
        let id = self.send(ask)?;
        let patience = within(self.timeout);
        loop {
            let left = patience.saturating_duration_since(Instant::now());
            match self.receive(left)? {
                Some(Answer { what: What::Error(why), id: of }) if of == id || of == 0 => {
                    return Err(ClientError::Refused(why))
                }
                Some(Answer { what, id: of }) if of == id => return Ok(what),
                Some(_) => {}
                None if left.is_zero() => return Err(ClientError::Late(self.timeout)),
                None => {}
            }
        }
    }

    /// Everything counted so far.
    pub fn totals(&mut self) -> Result<Totals, ClientError> {
        match self.ask(Ask::Totals)? {
            What::Totals(totals) => Ok(totals),
            other => Err(unexpected(&other)),
        }
    }

    /// A page of flows from that cursor on, without rates.
    pub fn page(&mut self, cursor: Option<String>, limit: usize, filter: &Filter) -> Result<Page, ClientError> {
        match self.ask(Ask::Flows { cursor, limit, filter: filter.clone(), rates: false })? {
            What::Page(page) => Ok(page),
            other => Err(unexpected(&other)),
        }
    }

    /// The largest flows, largest first.
    pub fn top(&mut self, by: By, limit: usize, filter: &Filter) -> Result<Page, ClientError> {
        match self.ask(Ask::Top { by, limit, filter: filter.clone() })? {
            What::Page(page) => Ok(page),
            other => Err(unexpected(&other)),
        }
    }
}

/// An answer of the wrong kind.
pub(super) fn unexpected(what: &What) -> ClientError {
    let kind = match what {
        What::Totals(_) => "totals",
        What::Page(_) => "a page",
        What::Ok(_) => "ok",
        What::Error(_) => "an error",
    };
    ClientError::NotAnAnswer(format!("{kind} was not asked for"))
}
