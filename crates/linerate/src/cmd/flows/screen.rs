//! The terminal, taken over and always given back: at the end, after a failure, on a signal, on a panic.

use std::{
    io::{self, stdout, Stdout},
    panic,
    sync::{
        atomic::{AtomicBool, Ordering},
        Arc, Once,
    },
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
    flag,
};

use super::board::Act;
use failure::Failure;

/// Set by Ctrl-C, SIGTERM and SIGHUP.
///
/// Unlike [`failure::Stop`], a second signal does not end the process at once, for the terminal would stay as it is:
/// `timeout` sends two.
#[derive(Debug, Clone)]
pub struct Quit(Arc<AtomicBool>);

impl Quit {
    /// Takes over the signals.
    pub fn on_signals() -> Result<Self, Failure> {
        let quit = Arc::new(AtomicBool::new(false));
        for signal in [SIGINT, SIGTERM, SIGHUP] {
            flag::register(signal, Arc::clone(&quit))
                .map_err(|e| Failure::failed(format!("cannot catch signal {signal}: {e}")))?;
        }
        Ok(Self(quit))
    }

    /// Whether it is time to end.
    pub fn asked(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// The terminal while it is ours.
pub struct Screen(Terminal<CrosstermBackend<Stdout>>);

/// What a key means to the display.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pressed {
    /// End.
    Quit,
    /// Draw everything again.
    Redraw,
    /// Something for the board.
    Act(Act),
}

impl Screen {
    /// Takes the terminal over.
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
        // From here on whatever fails gives the terminal back.
        let screen = Terminal::new(CrosstermBackend::new(stdout())).map(Self).inspect_err(|_| restore())?;
        execute!(stdout(), EnterAlternateScreen, cursor::Hide)?;
        Ok(screen)
    }

    /// Draws.
    pub fn draw(&mut self, draw: impl FnOnce(&mut Frame<'_>)) -> io::Result<()> {
        self.0.draw(draw).map(|_| ())
    }

    /// Draws everything anew next time.
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

/// What came from the keyboard within this time. A resize needs a new picture.
pub fn pressed(wait: Duration, typing: bool) -> io::Result<Option<Pressed>> {
    if !event::poll(wait)? {
        return Ok(None);
    }
    Ok(match event::read()? {
        Event::Key(key) if key.kind != KeyEventKind::Release => meaning(key, typing),
        Event::Resize(..) => Some(Pressed::Redraw),
        _ => None,
    })
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
