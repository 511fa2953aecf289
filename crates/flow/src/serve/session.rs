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

/// The handshake and the token have to be done by then.
const WELCOME: Duration = Duration::from_secs(10);
/// A line that was begun has to end by then.
const LINE: Duration = Duration::from_secs(30);
/// How often it is looked whether a line has begun.
const LOOK: Duration = Duration::from_secs(5);
/// Who asks nothing and has no subscription is let go by then.
const SILENCE: Duration = Duration::from_secs(300);
/// What is written has to be taken by then.
const TAKEN: Duration = Duration::from_secs(10);
/// So many lines that are no JSON, or wrong tokens, end a connection.
const GARBAGE: u32 = 8;
const TOKENS: u32 = 3;
/// Requests a client may send at once, and the time in which it may send one more.
const BURST: u32 = 100;
const SPACING: Duration = Duration::from_millis(1);
/// Subscriptions with longer between do not keep the table being walked.
const HELD_S: u32 = 5;

/// What all sessions share.
pub(crate) struct Shared {
    pub(crate) name: String,
    pub(crate) token: Option<String>,
    pub(crate) tls: Option<Arc<ServerConfig>>,
    pub(crate) stop: Arc<Stop>,
    pub(crate) samples: Arc<Samples>,
    pub(crate) board: Arc<Board>,
    pub(crate) pages: Pages,
}

/// Why a session ends: a last line to say, if any.
enum End {
    Say(u64, String),
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
    /// Held as long as the list is to be ready each second.
    query: Option<Arc<Query>>,
    due: Instant,
}

struct Session<'a> {
    shared: &'a Shared,
    stream: Stream,
    lines: Lines,
    welcome: Instant,
    trusted: bool,
    /// Told when it is.
    proof: Arc<AtomicBool>,
    garbage: u32,
    tokens: u32,
    /// When its requests so far would have come, had they come evenly.
    paced: Instant,
    /// The table is not walked for it before.
    rested: Instant,
    subscription: Option<Subscription>,
}

/// Serves one who connected, until they leave or have to.
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
        Some(limit) => End::Say(0, over_limit(limit)),
        None => session.run(),
    };
    if let End::Say(id, why) = end {
        let _ = session.say(id, What::Error(why));
    }
    session.stream.finish();
}

fn over_limit(limit: Limit) -> String {
    let (n, who) = match limit {
        Limit::Total(n) => (n, "clients are connected already"),
        Limit::PerPeer(n) => (n, "clients are connected already from your address"),
        Limit::Unauthenticated(n) => {
            (n, "clients are connected already from your address that have not shown the token")
        }
    };
    format!("{n} {who}, and no more are let in: try again later")
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

    fn say(&mut self, id: u64, what: What) -> Result<(), End> {
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
                return End::Say(0, "the logger is ending".into());
            }
            if let Err(end) = self.push() {
                return end;
            }
            let (patience, why) = match (self.trusted, begun) {
                (false, _) => (self.welcome, format!("no token was shown in {} s", WELCOME.as_secs())),
                (_, Some(begun)) => (begun + LINE, format!("a line took more than {} s", LINE.as_secs())),
                _ => (heard + SILENCE, format!("nothing was asked for {} s", SILENCE.as_secs())),
            };
            let due = self.subscription.as_ref().map(|s| s.due);
            // Who has a subscription may say nothing else.
            let patient = due.is_some() && begun.is_none();
            if !patient && Instant::now() >= patience {
                return End::Say(0, why);
            }
            // From time to time it is looked whether a line has begun: it may come a byte at a time.
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
                Ok(Line::TooLong) => return End::Say(0, format!("a request is a line of at most {MAX_REQUEST} bytes")),
                Ok(Line::End) => return End::Silently,
                Err(e) if timed_out(&e) => begun = self.lines.begun().then(|| begun.unwrap_or_else(Instant::now)),
                Err(_) => return End::Silently,
            }
        }
    }

    /// A client has a burst, then one request a millisecond.
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
                return if self.garbage >= GARBAGE { Err(End::Say(0, why)) } else { self.say(0, What::Error(why)) };
            }
        };
        let id = value.get("id").and_then(Value::as_u64).unwrap_or(0);
        let what = match serde_json::from_value::<Request>(value) {
            Err(e) => What::Error(format!("not a request: {}", in_words(&e))),
            Ok(Request { ask: Ask::Auth { token }, .. }) => return self.auth(id, &token),
            Ok(_) if !self.trusted => What::Error("show the token first: {\"ask\":\"auth\",\"token\":...}".into()),
            Ok(Request { ask, .. }) => match self.answer(id, ask) {
                Ok(Some(what)) => what,
                Ok(None) => return Ok(()),
                Err(why) => What::Error(why),
            },
        };
        self.say(id, what)
    }

    fn auth(&mut self, id: u64, shown: &str) -> Result<(), End> {
        if self.shared.token.as_deref().is_none_or(|token| same_token(shown, token)) {
            self.trusted = true;
            self.proof.store(true, Ordering::Relaxed);
            return self.say(id, What::Ok(true));
        }
        self.tokens += 1;
        // Guessing takes time.
        self.shared.stop.sleep(Duration::from_secs(1));
        let why = "wrong token".to_owned();
        if self.tokens >= TOKENS {
            return Err(End::Say(id, why));
        }
        self.say(id, What::Error(why))
    }

    /// The answer, now or (none) with a subscription.
    fn answer(&mut self, id: u64, ask: Ask) -> Result<Option<What>, String> {
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
                // One who pages as fast as they can has the table walked a quarter of the time.
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

    /// Sends what the subscription is due. Seconds that passed while the client took nothing are left out.
    fn push(&mut self) -> Result<(), End> {
        let shared = self.shared;
        let Some(subscription) = self.subscription.as_mut().filter(|s| s.due <= Instant::now()) else { return Ok(()) };
        subscription.due = shared.samples.after_second(subscription.every_s);
        let (id, every_s) = (subscription.id, subscription.every_s);
        let (top, query) = (subscription.top, subscription.query.clone());
        self.say(id, What::Totals(shared.samples.totals(shared.pages.source())))?;
        let page = match (query, top) {
            // The next second is not far.
            (Some(query), _) if every_s == 1 => query.result(),
            (Some(query), _) => shared.board.wait(&query).ok(),
            (None, Some(wanted)) => shared.board.once(wanted).ok(),
            (None, None) => None,
        };
        match page {
            Some(page) => self.say(id, What::Page((*page).clone())),
            None => Ok(()),
        }?;
        // Nothing of what took too long is made up for.
        if let Some(subscription) = &mut self.subscription {
            if subscription.due <= Instant::now() {
                subscription.due = shared.samples.after_second(1);
            }
        }
        Ok(())
    }
}

/// What is wrong with a request, in the words of the protocol instead of Rust's.
fn in_words(why: &serde_json::Error) -> String {
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
