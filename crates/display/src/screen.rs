//! The terminal: set up for the display, and restored at the end, after a failure, on a signal and on a panic.

use std::{
    io::{self, stdin, stdout, ErrorKind, IsTerminal, Stdout},
    mem::ManuallyDrop,
    panic,
    sync::{
        atomic::{AtomicBool, Ordering},
        mpsc::{self, Receiver, RecvTimeoutError},
        Arc, Once,
    },
    thread,
    time::Duration,
};

use ratatui::{
    backend::CrosstermBackend,
    crossterm::{
        cursor,
        event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers},
        execute,
        terminal::{self, EnterAlternateScreen, LeaveAlternateScreen},
    },
    Frame, Terminal,
};
use signal_hook::{
    consts::{SIGHUP, SIGINT, SIGTERM},
    iterator::Signals,
};

use crate::terminal::is_hung_up;
use failure::{Exit, Failure};
use flow::watch::board::Act;

/// How long the display may take to end after a signal. A terminal that takes no output (Ctrl-S) would block it for ever.
const GRACE: Duration = Duration::from_secs(2);

/// Set by Ctrl-C, SIGTERM and SIGHUP.
///
/// Unlike [`failure::Stop`], a second signal does not end the process at once, because the terminal would stay as it is:
/// `timeout` sends two. The process ends `GRACE` after the first signal in any case.
#[derive(Debug, Clone)]
pub struct Quit(Arc<AtomicBool>);

impl Quit {
    /// Handles the signals from now on. Errors when they cannot be handled, or there is no thread for them.
    pub fn on_signals() -> Result<Self, Failure> {
        let fail = |e| Failure::failed(format!("cannot catch signals: {e}"));
        let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP]).map_err(fail)?;
        let quit = Arc::new(AtomicBool::new(false));
        let seen = Arc::clone(&quit);
        let wait = move || {
            if signals.forever().next().is_some() {
                seen.store(true, Ordering::Relaxed);
                thread::sleep(GRACE);
                let _ = terminal::disable_raw_mode();
                std::process::exit(Exit::Stopped as i32);
            }
        };
        thread::Builder::new().name("signals".into()).spawn(wait).map_err(fail)?;
        Ok(Self(quit))
    }

    /// Whether a signal has come.
    pub fn requested(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// The terminal while the display uses it.
///
/// Restores the terminal without ratatui, which prints to standard error when the cursor cannot be shown, and panics when
/// standard error is the closed terminal.
pub struct Screen(ManuallyDrop<Terminal<CrosstermBackend<Stdout>>>);

/// What a key means to the display.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pressed {
    /// End.
    Quit,
    /// Draw everything again.
    Redraw,
    /// An action of the board.
    Act(Act),
}

impl Screen {
    /// Sets the terminal up. Errors: it cannot be set up; it is restored then.
    pub fn open() -> io::Result<Self> {
        static HOOK: Once = Once::new();
        HOOK.call_once(|| {
            // Before the message, or it would go with the other screen; with `panic = "abort"` nothing is dropped.
            let usual = panic::take_hook();
            panic::set_hook(Box::new(move |info| {
                restore();
                usual(info);
            }));
        });
        terminal::enable_raw_mode()?;
        // From here on, a failure restores the terminal.
        let screen = Terminal::new(CrosstermBackend::new(stdout())).inspect_err(|_| restore())?;
        let screen = Self(ManuallyDrop::new(screen));
        execute!(stdout(), EnterAlternateScreen, cursor::Hide)?;
        Ok(screen)
    }

    /// Draws.
    pub fn draw(&mut self, draw: impl FnOnce(&mut Frame<'_>)) -> io::Result<()> {
        self.0.draw(draw).map(|_| ())
    }

    /// Draws everything again next time.
    pub fn clear(&mut self) -> io::Result<()> {
        self.0.clear()
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        restore();
    }
}

fn restore() {
    let _ = execute!(stdout(), LeaveAlternateScreen, cursor::Show);
    let _ = terminal::disable_raw_mode();
}

/// Keys and resizes, read on a thread of their own.
///
/// crossterm reads until it has a whole event. When the terminal is closed, it never returns from that, so only this thread
/// calls it, and the display watches the terminal itself.
pub struct Keys {
    events: Receiver<io::Result<Event>>,
    /// Whether keys come from standard input.
    is_stdin: bool,
}

impl Keys {
    /// Starts the thread, which ends with the process. Errors when the thread cannot be started.
    pub fn start() -> io::Result<Self> {
        let (tell, events) = mpsc::channel();
        let is_stdin = stdin().is_terminal();
        thread::Builder::new().name("keys".into()).spawn(move || loop {
            let event = event::read();
            let is_last = event.is_err();
            if tell.send(event).is_err() || is_last {
                return;
            }
        })?;
        Ok(Self { events, is_stdin })
    }

    /// The key pressed within this time, if any. A resize needs a new picture. Errors when the terminal cannot be read.
    pub fn next(&self, wait: Duration, typing: bool) -> io::Result<Option<Pressed>> {
        let event = match self.events.recv_timeout(wait) {
            Ok(event) => event?,
            Err(RecvTimeoutError::Timeout) => return Ok(None),
            Err(RecvTimeoutError::Disconnected) => return Err(ErrorKind::UnexpectedEof.into()),
        };
        Ok(match event {
            Event::Key(key) if key.kind != KeyEventKind::Release => meaning(key, typing),
            Event::Resize(..) => Some(Pressed::Redraw),
            _ => None,
        })
    }

    /// Whether the terminal was closed.
    pub fn is_gone(&self) -> bool {
        is_hung_up(stdout()) || self.is_stdin && is_hung_up(stdin())
    }
}

fn meaning(key: KeyEvent, typing: bool) -> Option<Pressed> {
    if key.modifiers.contains(KeyModifiers::CONTROL) {
        return match key.code {
            KeyCode::Char('c') => Some(Pressed::Quit),
            KeyCode::Char('l') => Some(Pressed::Redraw),
            _ => None,
        };
    }
    let act = match key.code {
        KeyCode::Char(c) if typing => Act::Type(c),
        KeyCode::Backspace if typing => Act::Erase,
        KeyCode::Enter if typing => Act::Apply,
        KeyCode::Esc if typing => Act::Cancel,
        KeyCode::Char('q') => return Some(Pressed::Quit),
        KeyCode::Up => Act::Lines(-1),
        KeyCode::Down => Act::Lines(1),
        KeyCode::PageUp => Act::Pages(-1),
        KeyCode::PageDown => Act::Pages(1),
        KeyCode::Home => Act::Home,
        KeyCode::End => Act::End,
        KeyCode::Char('s' | '>') => Act::NextSort,
        KeyCode::Char('<') => Act::PreviousSort,
        KeyCode::Char('/') => Act::EnterFilter,
        KeyCode::Char('a') => Act::AllOrOne,
        KeyCode::Char('p') => Act::Pause,
        KeyCode::Tab => Act::NextLogger,
        KeyCode::BackTab => Act::PreviousLogger,
        _ => return None,
    };
    Some(Pressed::Act(act))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(code: KeyCode, typing: bool) -> Option<Pressed> {
        meaning(KeyEvent::new(code, KeyModifiers::NONE), typing)
    }

    #[test]
    fn letters_are_letters_while_a_filter_is_typed() {
        assert_eq!(key(KeyCode::Char('q'), false), Some(Pressed::Quit));
        assert_eq!(key(KeyCode::Char('q'), true), Some(Pressed::Act(Act::Type('q'))));
        assert_eq!(key(KeyCode::Enter, false), None);
        assert_eq!(key(KeyCode::Esc, true), Some(Pressed::Act(Act::Cancel)));
        let ctrl_c = KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL);
        assert_eq!(meaning(ctrl_c, true), Some(Pressed::Quit));
    }
}
