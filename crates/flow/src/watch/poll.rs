//! One logger, polled on a thread of its own. When the connection is lost, the thread connects again, with growing waits.

use std::{
    sync::mpsc::{Receiver, RecvTimeoutError, Sender},
    time::{Duration, Instant},
};

use crate::protocol::{Ask, By, Filter, Page, Totals, What};

use super::{
    link::{Talk, Trouble},
    text::clean,
};
use failure::Exit;

/// First and longest wait before a lost logger is tried again.
const FIRST: Duration = Duration::from_secs(1);
const LONGEST: Duration = Duration::from_secs(15);
/// Interfaces kept of one logger: ports are numbered in a byte.
const MAX_INTERFACES: usize = 256;

/// What is requested at each poll besides totals.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Want {
    /// Number of largest flows; zero: totals only.
    pub top: usize,
    /// What the flows are sorted by.
    pub by: By,
    /// Which flows.
    pub filter: Filter,
}

/// The answers of a logger to one poll.
#[derive(Debug, Clone, PartialEq)]
pub struct Look {
    /// Its name.
    pub name: String,
    /// Its counters.
    pub totals: Totals,
    /// Its largest flows, if requested, or its error.
    pub page: Option<Result<Page, String>>,
    /// The request.
    pub want: Want,
}

/// News from a watcher.
#[derive(Debug, Clone, PartialEq)]
pub enum News {
    /// The counters of a poll; its flows follow.
    Early(Box<Look>),
    /// The complete answers to a poll.
    Look(Box<Look>),
    /// The logger cannot be read; the next try is at this time.
    Down(Trouble, Instant),
}

/// Connects to a logger.
pub type Dial = Box<dyn FnMut() -> Result<Box<dyn Talk + Send>, Trouble> + Send>;

/// Polls one logger. The caller gives the time.
pub struct Watcher {
    dial: Dial,
    link: Option<Box<dyn Talk + Send>>,
    failures: u32,
    down: Option<(Trouble, Instant)>,
}

impl Watcher {
    /// For a logger that `dial` connects to.
    pub fn new(dial: Dial) -> Self {
        Self { dial, link: None, failures: 0, down: None }
    }

    /// Polls, and connects first if needed and due. `early` gets the counters at once, because flows take a second or more.
    pub fn step(&mut self, now: Instant, want: &Want, early: &mut dyn FnMut(News)) -> News {
        if let Some((why, next)) = self.down.as_ref().filter(|(_, next)| now < *next) {
            return News::Down(why.clone(), *next);
        }
        match self.look(want, early) {
            Ok(look) => {
                (self.failures, self.down) = (0, None);
                News::Look(Box::new(look))
            }
            Err(why) => {
                self.link = None;
                let wait = FIRST.saturating_mul(1 << self.failures.min(8)).min(LONGEST);
                // A logger that refused will refuse again.
                let wait = if why.exit == Exit::Usage { LONGEST } else { wait };
                self.failures = self.failures.saturating_add(1);
                self.down = Some((why.clone(), now + wait));
                News::Down(why, now + wait)
            }
        }
    }

    /// When the next try is, while it is down.
    pub fn next_try(&self) -> Option<Instant> {
        self.down.as_ref().map(|(_, next)| *next)
    }

    fn look(&mut self, want: &Want, early: &mut dyn FnMut(News)) -> Result<Look, Trouble> {
        let link = match &mut self.link {
            Some(link) => link,
            None => self.link.insert((self.dial)().map_err(clean_trouble)?),
        };
        let totals = match link.ask(Ask::Totals).map_err(clean_trouble)? {
            What::Totals(totals) => totals,
            What::Error(why) => return Err(clean_trouble(Trouble::refused(why))),
            _ => return Err(Trouble::broken("its answer to a request for totals is of another kind")),
        };
        let totals = clean_trouble_totals(totals);
        let mut look = Look { name: clean(link.name(), 32), totals, page: None, want: want.clone() };
        if want.top == 0 {
            return Ok(look);
        }
        early(News::Early(Box::new(look.clone())));
        let ask = Ask::Top { by: want.by, limit: want.top, filter: want.filter.clone() };
        look.page = Some(match link.ask(ask).map_err(clean_trouble)? {
            What::Page(mut page) => {
                page.flows.truncate(want.top);
                page.next = None;
                Ok(page)
            }
            What::Error(why) => Err(clean(&why, 200)),
            _ => return Err(Trouble::broken("its answer to a request for flows is of another kind")),
        });
        Ok(look)
    }
}

/// The trouble with its text made safe for a terminal.
fn clean_trouble(trouble: Trouble) -> Trouble {
    Trouble { text: clean(&trouble.text, 200), ..trouble }
}

fn clean_trouble_totals(mut totals: Totals) -> Totals {
    totals.interfaces.truncate(MAX_INTERFACES);
    for interface in &mut totals.interfaces {
        interface.name = clean(&interface.name, 64);
    }
    totals
}

/// Polls until `wants` has no sender, or the receiver of the news is gone. A new want is polled at once.
pub fn run(
    mut watcher: Watcher,
    logger: usize,
    every: Duration,
    mut want: Want,
    wants: &Receiver<Want>,
    news: &Sender<(usize, News)>,
) {
    let mut due = Instant::now();
    loop {
        let mut early = |early| {
            // If the receiver is gone, the poll finds out.
            let _ = news.send((logger, early));
        };
        let new = watcher.step(Instant::now(), &want, &mut early);
        if news.send((logger, new)).is_err() {
            return;
        }
        // Missed polls are not made up for. A retry does not wait for the end of a long interval.
        due = (due + every).max(Instant::now());
        due = watcher.next_try().map_or(due, |next| next.min(due));
        match wants.recv_timeout(due.saturating_duration_since(Instant::now())) {
            Ok(new) => {
                want = wants.try_iter().last().unwrap_or(new);
                due = Instant::now();
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use crate::protocol::Interface;

    use super::*;

    /// What the logger does next, last first.
    type Script = Arc<Mutex<Vec<Result<Vec<What>, Trouble>>>>;

    struct Said(Vec<What>);

    impl Talk for Said {
        fn name(&self) -> &str {
            "bad\u{1b}name"
        }
        fn ask(&mut self, _: Ask) -> Result<What, Trouble> {
            self.0.pop().ok_or_else(|| Trouble::broken("it closed the connection"))
        }
    }

    fn watcher(mut script: Vec<Result<Vec<What>, Trouble>>) -> Watcher {
        script.reverse();
        let script: Script = Arc::new(Mutex::new(script));
        Watcher::new(Box::new(move || {
            let next = script.lock().unwrap().pop().unwrap();
            next.map(|mut answers| -> Box<dyn Talk + Send> {
                answers.reverse();
                Box::new(Said(answers))
            })
        }))
    }

    fn step(watcher: &mut Watcher, now: Instant, want: &Want) -> News {
        watcher.step(now, want, &mut |early| assert!(matches!(early, News::Early(_))))
    }

    fn gone() -> Trouble {
        Trouble { exit: Exit::Machine, text: "connection refused".into() }
    }

    fn wait(news: &News, now: Instant) -> u64 {
        match news {
            News::Down(_, next) => (*next - now).as_secs(),
            _ => panic!("{news:?}"),
        }
    }

    #[test]
    fn waits_double_to_a_bound_and_begin_anew() {
        let mut script: Vec<_> = (0..6).map(|_| Err(gone())).collect();
        script.push(Ok(vec![What::Totals(Totals::default())]));
        script.push(Err(gone()));
        let mut w = watcher(script);
        let (mut now, want) = (Instant::now(), Want::default());
        for expected in [1, 2, 4, 8, 15, 15] {
            let news = step(&mut w, now, &want);
            assert_eq!(wait(&news, now), expected);
            // Tries are not made before their time.
            let early = now + Duration::from_millis(500);
            assert_eq!(step(&mut w, early, &want), news);
            now += Duration::from_secs(expected);
        }
        assert!(matches!(step(&mut w, now, &want), News::Look(_)));
        // The logger has no more answers: lost, and gone after a second.
        assert_eq!(step(&mut w, now, &want), News::Down(Trouble::broken("it closed the connection"), now + FIRST));
        now += FIRST;
        assert_eq!(wait(&step(&mut w, now, &want), now), 2);
    }

    #[test]
    fn who_refuses_us_is_left_in_peace() {
        let mut w = watcher(vec![Err(Trouble::refused("wrong\u{7} token"))]);
        let now = Instant::now();
        assert_eq!(
            step(&mut w, now, &Want::default()),
            News::Down(Trouble::refused("wrong\\u{7} token"), now + LONGEST)
        );
    }

    #[test]
    fn what_is_said_is_bounded_and_clean() {
        let name = "\u{1b}]0;x\u{7}".repeat(100);
        let interface = Interface { name, ..Interface::default() };
        let totals = Totals { interfaces: vec![interface; 1000], ..Totals::default() };
        let error = What::Error("no\nsuch prefix".into());
        let mut w = watcher(vec![Ok(vec![What::Totals(totals), error])]);
        let News::Look(look) = step(&mut w, Instant::now(), &Want { top: 5, ..Want::default() }) else { panic!() };
        assert_eq!(look.name, "bad\\u{1b}name");
        assert_eq!(look.totals.interfaces.len(), MAX_INTERFACES);
        assert!(look.totals.interfaces.iter().all(|i| i.name.chars().count() <= 64 && !i.name.contains('\u{1b}')));
        assert_eq!(look.page, Some(Err("no\\u{a}such prefix".into())));
    }

    #[test]
    fn an_answer_of_another_kind_is_no_answer() {
        let mut w = watcher(vec![Ok(vec![What::Ok(true)])]);
        assert!(matches!(step(&mut w, Instant::now(), &Want::default()), News::Down(t, _) if t.exit == Exit::Failed));
    }
}
