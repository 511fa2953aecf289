//! `linerate flows`: flows and counters of flow loggers, on a terminal or as lines.

use std::{
    io::{stdout, IsTerminal, Write},
    path::Path,
    sync::mpsc::{self, Receiver, RecvTimeoutError, Sender},
    thread,
    time::{Duration, Instant},
};

use display::{
    plain,
    screen::{Keys, Pressed, Quit, Screen},
    view,
};
use flow::{
    client::{ClientSpec, TlsTrust},
    protocol::Filter,
    serve::token_from_file,
    watch::{
        board::{self, Board, State},
        filter,
        link::Trouble,
        poll::{News, Want, Watcher},
    },
};

use crate::{cli::flows::FlowsArgs, out};
use failure::{Exit, Failure};

/// Most loggers at once: each has a thread.
const MAX_LOGGERS: usize = 256;
const SHORTEST: Duration = Duration::from_millis(100);
const LONGEST: Duration = Duration::from_secs(3600);
/// How often signals and news are checked.
const TICK: Duration = Duration::from_millis(40);

/// The checked arguments.
struct Settings {
    loggers: Vec<String>,
    every: Duration,
    filter: Filter,
    token: Option<String>,
    tls: Option<TlsTrust>,
}

impl Settings {
    fn check(args: &FlowsArgs) -> Result<Self, Failure> {
        for logger in &args.loggers {
            if !is_address(logger) {
                let form = "must be HOST:PORT, such as 127.0.0.1:9395 or [::1]:9395";
                return Err(Failure::usage(format!("{logger:?}: {form}")));
            }
        }
        if args.loggers.len() > MAX_LOGGERS {
            return Err(Failure::usage(format!("{} loggers: must be at most {MAX_LOGGERS}", args.loggers.len())));
        }
        let mut seen = std::collections::HashSet::new();
        if let Some(twice) = args.loggers.iter().find(|l| !seen.insert(*l)) {
            return Err(Failure::usage(format!("{twice} is given twice: give each logger once")));
        }
        let every = units::parse_duration(&args.every)?;
        if !(SHORTEST..=LONGEST).contains(&every) {
            return Err(Failure::usage(format!("--every {}: must be 100ms to 1h", args.every)));
        }
        let filter = filter::parse(&args.filter).map_err(|e| Failure::usage(format!("--filter: {e}")))?;
        let token = args.token_file.as_deref().map(token_from_file).transpose().map_err(Failure::usage)?;
        let tls = args.tls_ca.as_deref().map(trust).transpose()?;
        Ok(Self { loggers: args.loggers.clone(), every, filter, token, tls })
    }

    fn watcher(&self, logger: usize) -> Watcher {
        let address = self.loggers.get(logger).cloned().unwrap_or_default();
        let spec = ClientSpec { token: self.token.clone(), tls: self.tls.clone(), ..ClientSpec::new(address) };
        Watcher::new(Box::new(move || Ok(Box::new(flow::watch::link::connect(&spec)?))))
    }
}

fn is_address(text: &str) -> bool {
    let Some((host, port)) = text.rsplit_once(':') else { return false };
    let bracketed = host.starts_with('[') && host.ends_with(']');
    let named = !host.is_empty() && !host.contains([':', '[', ']', '/', ' ']);
    (bracketed || named) && port.parse::<u16>().is_ok_and(|p| p > 0) && !text.contains(char::is_control)
}

/// The file of trusted certificates, if it can be opened. The connection checks its contents.
fn trust(path: &Path) -> Result<TlsTrust, Failure> {
    let fail = |why: String| Failure::usage(format!("--tls-ca {}: {why}", path.display()));
    let file = std::fs::File::open(path).and_then(|file| file.metadata()).map_err(|e| fail(failure::unreadable(&e)))?;
    if !file.is_file() {
        return Err(fail("must be a regular file with certificates in PEM".into()));
    }
    Ok(TlsTrust { ca: path.to_owned(), name: None })
}

/// Runs the command.
pub fn run(args: &FlowsArgs) -> Result<Exit, Failure> {
    let settings = Settings::check(args)?;
    let terminal = stdout().is_terminal();
    let few = usize::from(args.top.unwrap_or(10));
    if args.once || !(args.json || terminal) {
        return once(&settings, args, few);
    }
    // First of all, so that a signal during the start is handled.
    let quit = Quit::on_signals()?;
    let top = if args.json { few } else { usize::from(args.top.unwrap_or(1000)) };
    let mut board = Board::new(&settings.loggers, top, args.by.into(), settings.filter.clone());
    // For scripts: the requested number of flows from every logger.
    let want = Want { top, by: args.by.into(), filter: settings.filter.clone() };
    let wanted = |logger| if args.json { want.clone() } else { board.want(logger) };
    let (wants, news) = watch(&settings, wanted)?;
    if args.json {
        return stream(&settings, &news, args.count, &quit);
    }
    let fail = |e: std::io::Error| Failure::failed(format!("the terminal: {e}"));
    let mut screen = Screen::open().map_err(fail)?;
    let keys = Keys::start().map_err(fail)?;
    let shown = show(&mut screen, &keys, &mut board, &wants, &news, &quit);
    drop(screen);
    // An error on a closed terminal ends the display without failure.
    shown.or_else(|e| if keys.is_gone() { Ok(Exit::Stopped) } else { Err(fail(e)) })
}

/// The senders of wants to the watchers, and the receiver of their news.
type Watched = (Vec<Sender<Want>>, Receiver<(usize, News)>);

/// Starts a watcher for each logger. They end with the senders.
fn watch(settings: &Settings, want: impl Fn(usize) -> Want) -> Result<Watched, Failure> {
    let (tell, news) = mpsc::channel();
    let mut wants = Vec::new();
    for logger in 0..settings.loggers.len() {
        let (request, requested) = mpsc::channel();
        let (watcher, tell, every, want) = (settings.watcher(logger), tell.clone(), settings.every, want(logger));
        thread::Builder::new()
            .name(format!("logger {logger}"))
            .spawn(move || flow::watch::poll::run(watcher, logger, every, want, &requested, &tell))
            .map_err(|e| Failure::machine(format!("cannot start a thread for each logger: {e}")))?;
        wants.push(request);
    }
    Ok((wants, news))
}

/// The display, until a key, a signal or the end of the terminal ends it.
fn show(
    screen: &mut Screen,
    keys: &Keys,
    board: &mut Board,
    wants: &[Sender<Want>],
    news: &Receiver<(usize, News)>,
    quit: &Quit,
) -> std::io::Result<Exit> {
    let mut requested: Vec<Want> = (0..wants.len()).map(|n| board.want(n)).collect();
    let (mut changed, mut drawn) = (true, Instant::now());
    while !quit.requested() && !keys.is_gone() {
        // Draws at least once a second, to count down the seconds to the next try.
        if changed || drawn.elapsed() >= Duration::from_secs(1) {
            drawn = Instant::now();
            screen.draw(|frame| view::draw(frame, board, drawn))?;
        }
        changed = false;
        match keys.next(TICK, board.entry.is_some())? {
            Some(Pressed::Quit) => return Ok(Exit::Passed),
            Some(Pressed::Redraw) => {
                screen.clear()?;
                changed = true;
            }
            Some(Pressed::Act(act)) => {
                board.act(act);
                changed = true;
            }
            None => {}
        }
        for (n, (request, requested)) in wants.iter().zip(&mut requested).enumerate() {
            let want = board.want(n);
            if want != *requested {
                *requested = want.clone();
                // A watcher ends only with its sender.
                let _ = request.send(want);
            }
        }
        for (logger, new) in news.try_iter() {
            board.update(logger, new);
            changed = true;
        }
    }
    Ok(Exit::Stopped)
}

/// A line of JSON for each poll, until each logger has had `count` of them, a signal comes, or standard output is closed.
fn stream(
    settings: &Settings,
    news: &Receiver<(usize, News)>,
    count: Option<u64>,
    quit: &Quit,
) -> Result<Exit, Failure> {
    let mut left = vec![count.unwrap_or(u64::MAX); settings.loggers.len()];
    let mut troubles: Vec<Option<Trouble>> = vec![None; settings.loggers.len()];
    let mut answered = false;
    while !quit.requested() && left.iter().any(|n| *n > 0) {
        let (logger, new) = match news.recv_timeout(TICK) {
            Ok(new) => new,
            Err(RecvTimeoutError::Timeout) => continue,
            Err(RecvTimeoutError::Disconnected) => break,
        };
        let (Some(left), Some(address)) = (left.get_mut(logger), settings.loggers.get(logger)) else { continue };
        if *left == 0 || matches!(new, News::Early(_)) {
            continue;
        }
        *left -= 1;
        answered |= matches!(new, News::Look(_));
        if let (News::Down(why, _), Some(trouble)) = (&new, troubles.get_mut(logger)) {
            *trouble = Some(why.clone());
        }
        let line = plain::json(address, &new, Instant::now()) + "\n";
        if stdout().write_all(line.as_bytes()).and_then(|()| stdout().flush()).is_err() {
            return Ok(Exit::Passed);
        }
    }
    // A run with a count but without any answer has failed.
    let first = troubles.into_iter().zip(&settings.loggers).find_map(|(t, address)| Some((t?, address)));
    match first {
        Some((why, address)) if !answered && count.is_some() => Err(failure(address, &why)),
        _ => Ok(Exit::Passed),
    }
}

/// Polls each logger once, all at the same time.
fn once(settings: &Settings, args: &FlowsArgs, top: usize) -> Result<Exit, Failure> {
    let want = Want { top, by: args.by.into(), filter: settings.filter.clone() };
    let (_wants, news) = watch(settings, |_| want.clone())?;
    let mut board = Board::new(&settings.loggers, top, args.by.into(), settings.filter.clone());
    let mut answers: Vec<Option<News>> = vec![None; settings.loggers.len()];
    while answers.iter().any(Option::is_none) {
        let Ok((logger, new)) = news.recv() else { break };
        if matches!(new, News::Early(_)) {
            continue;
        }
        // The first answer counts.
        if let Some(place) = answers.get_mut(logger).filter(|place| place.is_none()) {
            board.update(logger, new.clone());
            *place = Some(new);
        }
    }
    if args.json {
        for (address, answer) in settings.loggers.iter().zip(&answers) {
            out::print(&answer.as_ref().map(|answer| plain::json(address, answer, Instant::now())).unwrap_or_default());
        }
    } else if board.loggers.iter().any(|l| l.state == State::Connected) {
        out::print(&plain::table(&board));
    }
    let down = |logger: &board::Logger| match &logger.state {
        State::Down(why, _) => Some(failure(&logger.address, why)),
        _ => None,
    };
    let mut failures = board.loggers.iter().filter_map(down);
    let Some(first) = failures.next() else { return Ok(Exit::Passed) };
    // The first failure ends the command; the others are printed as lines.
    for other in failures {
        out::note(&format!("linerate: {other}"));
    }
    Err(first)
}

fn failure(address: &str, why: &Trouble) -> Failure {
    let text = match why.exit {
        Exit::Machine => format!("no flow logger answers at {address}: {}: start one with linerate flowlog", why.text),
        Exit::Usage => format!("the flow logger at {address} refuses: {}", why.text),
        _ => format!("{address}: {}", why.text),
    };
    Failure { exit: why.exit, text }
}
