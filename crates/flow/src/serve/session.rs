//! The connection of one client: requests, answers, subscriptions, limits.

use std::{
    io,
    sync::{
        atomic::{AtomicBool, Ordering},
        Arc,
    },
    time::{Duration, Instant},
};

use net::{same_token, timed_out, Connection, Limit, Line, Lines, Stop, Stream};
use rustls::{ServerConfig, ServerConnection};
use serde::Serialize;
use serde_json::Value;

use super::{
    pages::Pages,
    sampler::Samples,
    top::{Query, Wanted},
    walks::Board,
    Matcher,
};
use crate::protocol::{
    Answer, Ask, Filter, Hello, Request, What, MAX_EVERY_S, MAX_LIMIT, MAX_REQUEST, SERVER, VERSION,
};

/// Time for the handshake and the token.
const WELCOME: Duration = Duration::from_secs(10);
/// Time for a line to end after it began.
const LINE: Duration = Duration::from_secs(30);
/// How often a session checks whether a line has begun.
const LOOK: Duration = Duration::from_secs(5);
/// A client without requests and subscription is disconnected after this time.
const SILENCE: Duration = Duration::from_secs(300);
/// Time for a client to read what was written.
const TAKEN: Duration = Duration::from_secs(10);
/// Number of lines that are not JSON, or of wrong tokens, that ends a connection.
const GARBAGE: u32 = 8;
const TOKENS: u32 = 3;
/// Requests a client may send at once, and the time in which it may send one more.
const BURST: u32 = 100;
const SPACING: Duration = Duration::from_millis(1);
/// Longest interval of a subscription that keeps the walks going all the time.
const HELD_S: u32 = 5;

/// State that all sessions share.
pub(crate) struct Shared {
    pub(crate) name: String,
    pub(crate) token: Option<String>,
    pub(crate) tls: Option<Arc<ServerConfig>>,
    pub(crate) stop: Arc<Stop>,
    pub(crate) samples: Arc<Samples>,
    pub(crate) board: Arc<Board>,
    pub(crate) pages: Pages,
}

/// How a session ends.
enum End {
    /// With a last error line.
    WithError(u64, String),
    /// Without a line.
    Silently,
}

impl From<io::Error> for End {
    fn from(_: io::Error) -> Self {
        Self::Silently
    }
}

struct Subscription {
    id: u64,
    every_s: u32,
    top: Option<Wanted>,
    /// Held while the list must be ready each second.
    query: Option<Arc<Query>>,
    due: Instant,
}

struct Session<'a> {
    shared: &'a Shared,
    stream: Stream,
    lines: Lines,
    welcome: Instant,
    trusted: bool,
    /// Whether the client has shown the token.
    proof: Arc<AtomicBool>,
    garbage: u32,
    tokens: u32,
    /// Time at which the requests so far would have arrived at an even rate.
    paced: Instant,
    /// Earliest time of the next walk for this client.
    rested: Instant,
    subscription: Option<Subscription>,
}

/// Serves a connection to its end.
pub(crate) fn serve(connection: Connection, shared: &Shared) {
    let now = Instant::now();
    let mut stream = Stream::plain(connection.tcp, now + WELCOME);
    if let Some(config) = &shared.tls {
        let Ok(tls) = ServerConnection::new(Arc::clone(config)) else { return };
        stream = stream.server(tls);
    }
    let mut session = Session {
        shared,
        stream,
        lines: Lines::new(MAX_REQUEST),
        welcome: now + WELCOME,
        trusted: shared.token.is_none(),
        proof: connection.authenticated,
        garbage: 0,
        tokens: 0,
        paced: now,
        rested: now,
        subscription: None,
    };
    let end = match connection.over_limit {
        Some(limit) => End::WithError(0, over_limit(limit)),
        None => session.run(),
    };
    if let End::WithError(id, why) = end {
        let _ = session.answer_with(id, What::Error(why));
    }
    session.stream.finish();
}

fn over_limit(limit: Limit) -> String {
    let (n, who) = match limit {
        Limit::Total(n) => (n, "clients are connected already"),
        Limit::PerPeer(n) => (n, "clients are connected already from your address"),
        Limit::Unauthenticated(n) => (n, "clients without the token are connected already from your address"),
    };
    format!("{n} {who}: try again later")
}

fn checked_limit(limit: usize) -> Result<usize, String> {
    match limit {
        1..=MAX_LIMIT => Ok(limit),
        _ => Err(format!("limit {limit}: must be 1 to {MAX_LIMIT}")),
    }
}

impl Session<'_> {
    fn line(&mut self, line: &impl Serialize) -> Result<(), End> {
        let mut text = serde_json::to_vec(line).map_err(|_| End::Silently)?;
        text.push(b'\n');
        Ok(self.stream.send(&text, TAKEN)?)
    }

    fn answer_with(&mut self, id: u64, what: What) -> Result<(), End> {
        self.line(&Answer { id, what })
    }

    fn run(&mut self) -> End {
        let shared = self.shared;
        let hello =
            Hello { server: SERVER.into(), version: VERSION, name: shared.name.clone(), auth: shared.token.is_some() };
        if let Err(end) = self.line(&hello) {
            return end;
        }
        let mut heard = Instant::now();
        let mut begun = None;
        loop {
            if shared.stop.stopped() {
                return End::WithError(0, "the logger ends".into());
            }
            if let Err(end) = self.push() {
                return end;
            }
            let (patience, why) = match (self.trusted, begun) {
                (false, _) => (self.welcome, format!("no token within {} s", WELCOME.as_secs())),
                (_, Some(begun)) => (begun + LINE, format!("a line took more than {} s", LINE.as_secs())),
                _ => (heard + SILENCE, format!("no request within {} s", SILENCE.as_secs())),
            };
            let due = self.subscription.as_ref().map(|s| s.due);
            // A client with a subscription may stay silent.
            let patient = due.is_some() && begun.is_none();
            if !patient && Instant::now() >= patience {
                return End::WithError(0, why);
            }
            // Checks from time to time whether a line has begun, because a line may arrive byte by byte.
            let look = if patient { Instant::now() + LOOK } else { patience.min(Instant::now() + LOOK) };
            self.stream.set_deadline(due.map_or(look, |due| due.min(look)));
            match self.lines.next(&mut self.stream) {
                Ok(Line::Text(text)) => {
                    heard = Instant::now();
                    if let Err(end) = self.request(text.trim_ascii()) {
                        return end;
                    }
                    begun = self.lines.begun().then(Instant::now);
                }
                Ok(Line::TooLong) => {
                    return End::WithError(
                        0,
                        format!("request too long: must be a line of at most {MAX_REQUEST} bytes"),
                    )
                }
                Ok(Line::End) => return End::Silently,
                Err(e) if timed_out(&e) => begun = self.lines.begun().then(|| begun.unwrap_or_else(Instant::now)),
                Err(_) => return End::Silently,
            }
        }
    }

    /// Limits a client to a burst, then one request per millisecond.
    fn pace(&mut self) {
        let now = Instant::now();
        self.paced = self.paced.max(now) + SPACING;
        if let Some(then) = self.paced.checked_sub(SPACING * BURST).filter(|then| *then > now) {
            self.shared.stop.sleep_until(then);
        }
    }

    fn request(&mut self, text: &[u8]) -> Result<(), End> {
        if text.is_empty() {
            return Ok(());
        }
        self.pace();
        let value: Value = match serde_json::from_slice(text) {
            Ok(value) => value,
            Err(e) => {
                self.garbage += 1;
                let why = format!("not JSON: {e}");
                return if self.garbage >= GARBAGE {
                    Err(End::WithError(0, why))
                } else {
                    self.answer_with(0, What::Error(why))
                };
            }
        };
        let id = value.get("id").and_then(Value::as_u64).unwrap_or(0);
        let what = match serde_json::from_value::<Request>(value) {
            Err(e) => What::Error(format!("not a request: {}", in_protocol_terms(&e))),
            Ok(Request { ask: Ask::Auth { token }, .. }) => return self.auth(id, &token),
            Ok(_) if !self.trusted => What::Error("show the token first: {\"ask\":\"auth\",\"token\":...}".into()),
            Ok(Request { ask, .. }) => match self.handle(id, ask) {
                Ok(Some(what)) => what,
                Ok(None) => return Ok(()),
                Err(why) => What::Error(why),
            },
        };
        self.answer_with(id, what)
    }

    fn auth(&mut self, id: u64, shown: &str) -> Result<(), End> {
        if self.shared.token.as_deref().is_none_or(|token| same_token(shown, token)) {
            self.trusted = true;
            self.proof.store(true, Ordering::Relaxed);
            return self.answer_with(id, What::Ok(true));
        }
        self.tokens += 1;
        // Slows down guessing.
        self.shared.stop.sleep(Duration::from_secs(1));
        let why = "wrong token".to_owned();
        if self.tokens >= TOKENS {
            return Err(End::WithError(id, why));
        }
        self.answer_with(id, What::Error(why))
    }

    /// The answer; none when the subscription sends it.
    fn handle(&mut self, id: u64, ask: Ask) -> Result<Option<What>, String> {
        let shared = self.shared;
        Ok(Some(match ask {
            Ask::Auth { .. } => What::Ok(true),
            Ask::Totals => What::Totals(shared.samples.totals(shared.pages.source())),
            Ask::Flows { cursor, limit, filter, rates } => {
                let (filter, limit) = (Matcher::new(&filter)?, checked_limit(limit)?);
                let from = shared.pages.start(cursor.as_deref())?;
                if rates {
                    shared.board.warm()?;
                }
                // A client that pages at full speed has the table walked for a quarter of the time.
                shared.stop.sleep_until(self.rested);
                let (page, took) = shared.pages.page(from, limit, &filter, rates.then_some(&*shared.board));
                self.rested = Instant::now() + took * 3;
                What::Page(page)
            }
            Ask::Top { by, limit, filter } => {
                let wanted = Wanted { by, limit: checked_limit(limit)?, filter: Matcher::new(&filter)? };
                What::Page((*shared.board.once(wanted)?).clone())
            }
            Ask::Subscribe { every_s, top, by, filter } => {
                self.subscribe(id, every_s, top, by, &filter)?;
                return Ok(None);
            }
            Ask::Unsubscribe => {
                self.subscription = None;
                What::Ok(true)
            }
        }))
    }

    fn subscribe(
        &mut self,
        id: u64,
        every_s: u32,
        top: Option<usize>,
        by: crate::protocol::By,
        filter: &Filter,
    ) -> Result<(), String> {
        if !(1..=MAX_EVERY_S).contains(&every_s) {
            return Err(format!("every_s {every_s}: must be 1 to {MAX_EVERY_S}"));
        }
        let filter = Matcher::new(filter)?;
        let top = top.map(checked_limit).transpose()?.map(|limit| Wanted { by, limit, filter });
        let query = top.filter(|_| every_s <= HELD_S).map(|wanted| self.shared.board.want(wanted));
        self.subscription = Some(Subscription { id, every_s, top, query, due: Instant::now() });
        Ok(())
    }

    /// Sends the update of the subscription when it is due. Seconds in which the client read nothing are left out.
    fn push(&mut self) -> Result<(), End> {
        let shared = self.shared;
        let Some(subscription) = self.subscription.as_mut().filter(|s| s.due <= Instant::now()) else { return Ok(()) };
        subscription.due = shared.samples.after_second(subscription.every_s);
        let (id, every_s) = (subscription.id, subscription.every_s);
        let (top, query) = (subscription.top, subscription.query.clone());
        self.answer_with(id, What::Totals(shared.samples.totals(shared.pages.source())))?;
        let page = match (query, top) {
            // The next second is near.
            (Some(query), _) if every_s == 1 => query.result(),
            (Some(query), _) => shared.board.wait(&query).ok(),
            (None, Some(wanted)) => shared.board.once(wanted).ok(),
            (None, None) => None,
        };
        match page {
            Some(page) => self.answer_with(id, What::Page((*page).clone())),
            None => Ok(()),
        }?;
        // Missed updates are not made up for.
        if let Some(subscription) = &mut self.subscription {
            if subscription.due <= Instant::now() {
                subscription.due = shared.samples.after_second(1);
            }
        }
        Ok(())
    }
}

/// The error of a request, with the type names of the protocol instead of Rust's.
fn in_protocol_terms(why: &serde_json::Error) -> String {
    let types = [
        ("u8", "a whole number from 0 to 255"),
        ("u16", "a whole number from 0 to 65535"),
        ("u32", "a whole number from 0 to 4294967295"),
        ("u64", "a whole number from 0"),
        ("usize", "a whole number from 0"),
    ];
    let mut text = why.to_string();
    for (rust, plain) in types {
        if let Some(before) = text.strip_suffix(&format!("expected {rust}")) {
            text = format!("{before}expected {plain}");
        }
    }
    text
}
