//! The state of the display: every logger as last seen, which flows, in which order. Independent of the terminal.

use std::{
    cmp::Reverse,
    time::{Duration, Instant},
};

use crate::protocol::{By, Filter, Row};

use super::{
    filter,
    link::Trouble,
    poll::{Look, News, Want},
};

/// Flows requested from all loggers together when all are shown.
const ALL_FLOWS: usize = 2000;
/// Longest filter that can be typed.
const MAX_ENTRY: usize = 128;

/// The state of the connection to a logger.
#[derive(Debug, Clone, PartialEq)]
pub enum State {
    /// No answer yet.
    Connecting,
    /// It answers.
    Connected,
    /// It does not answer; the next try is at this time.
    Down(Trouble, Instant),
}

/// A logger.
#[derive(Debug, Clone, PartialEq)]
pub struct Logger {
    /// HOST:PORT.
    pub address: String,
    /// Its state.
    pub state: State,
    /// Its last answer.
    pub look: Option<Look>,
}

impl Logger {
    /// Its name, or its address while that is not known.
    pub fn name(&self) -> &str {
        match &self.look {
            Some(look) if !look.name.is_empty() => &look.name,
            _ => &self.address,
        }
    }
}

/// The column flows are sorted by, largest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sort {
    /// Packets.
    Packets,
    /// Bytes of frames.
    Bytes,
    /// Packets a second.
    PacketRate,
    /// Bits a second.
    BitRate,
    /// Time since the first packet.
    Age,
}

impl Sort {
    const ALL: [Self; 5] = [Self::Packets, Self::Bytes, Self::PacketRate, Self::BitRate, Self::Age];

    /// The column's name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Packets => "packets",
            Self::Bytes => "bytes",
            Self::PacketRate => "pps",
            Self::BitRate => "bps",
            Self::Age => "age",
        }
    }

    fn step(self, by: usize) -> Self {
        let at = Self::ALL.iter().position(|s| *s == self).unwrap_or(0);
        Self::ALL[(at + by) % Self::ALL.len()]
    }

    /// The order to request: loggers cannot sort by age.
    fn by(self) -> By {
        match self {
            Self::Packets => By::Packets,
            Self::Bytes | Self::Age => By::Bytes,
            Self::PacketRate => By::PacketRate,
            Self::BitRate => By::BitRate,
        }
    }
}

impl From<By> for Sort {
    fn from(by: By) -> Self {
        match by {
            By::Packets => Self::Packets,
            By::Bytes => Self::Bytes,
            By::PacketRate => Self::PacketRate,
            By::BitRate => Self::BitRate,
        }
    }
}

/// One flow to show.
#[derive(Debug, Clone, Copy)]
pub struct Flow<'a> {
    /// The number of its logger.
    pub logger: usize,
    /// Its record and rates.
    pub row: &'a Row,
    /// Nanoseconds since its first frame, by the logger's clock.
    pub age: u64,
}

impl Flow<'_> {
    /// Packets, both ways.
    pub fn packets(&self) -> u64 {
        self.row.record.forward.packets.saturating_add(self.row.record.back.packets)
    }

    /// Bytes, both ways.
    pub fn bytes(&self) -> u64 {
        self.row.record.frame_bytes()
    }

    fn rank(&self, sort: Sort) -> u64 {
        // Rates are compared to a thousandth; casts saturate.
        match sort {
            Sort::Packets => self.packets(),
            Sort::Bytes => self.bytes(),
            Sort::PacketRate => (self.row.packet_rate * 1e3) as u64,
            Sort::BitRate => (self.row.bit_rate * 1e3) as u64,
            Sort::Age => self.age,
        }
    }
}

/// What a key does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Act {
    /// Scrolls by lines.
    Lines(isize),
    /// Scrolls by pages.
    Pages(isize),
    /// To the first flow.
    Home,
    /// To the last flow.
    End,
    /// Sorts by the next column.
    NextSort,
    /// Sorts by the column before.
    PreviousSort,
    /// Selects the next logger.
    NextLogger,
    /// Selects the logger before.
    PreviousLogger,
    /// Flows of all loggers, or of the selected one.
    AllOrOne,
    /// Stops the picture, or lets it go on.
    Pause,
    /// Begins to type a filter.
    EnterFilter,
    /// A character of it.
    Type(char),
    /// Takes the last character away.
    Erase,
    /// The filter holds.
    Apply,
    /// The filter stays as it was.
    Cancel,
}

/// The whole picture.
#[derive(Debug, Clone)]
pub struct Board {
    /// Every logger.
    pub loggers: Vec<Logger>,
    /// The logger whose flows are shown.
    pub selected: usize,
    /// Flows of all loggers.
    pub all: bool,
    /// The column flows are sorted by.
    pub sort: Sort,
    /// Which flows are shown.
    pub filter: Filter,
    /// The filter being typed, and what is wrong with it.
    pub entry: Option<(String, String)>,
    /// Whether the picture stands still.
    pub paused: bool,
    /// First flow shown, from 0.
    pub offset: usize,
    /// Flows shown at once, as last drawn.
    pub page: usize,
    /// The largest number of flows so far. It only grows, so that panels keep their size.
    pub most: usize,
    top: usize,
}

impl Board {
    /// A board for these loggers before their first answers, with at most `top` flows.
    pub fn new(addresses: &[String], top: usize, by: By, filter: Filter) -> Self {
        let logger = |address: &String| Logger { address: address.clone(), state: State::Connecting, look: None };
        Self {
            loggers: addresses.iter().map(logger).collect(),
            selected: 0,
            all: false,
            sort: by.into(),
            filter,
            entry: None,
            paused: false,
            offset: 0,
            page: 1,
            most: 0,
            top,
        }
    }

    /// What to request from a logger now.
    pub fn want(&self, logger: usize) -> Want {
        let top = match (self.all, logger == self.selected) {
            (true, _) => self.top.min((ALL_FLOWS / self.loggers.len().max(1)).max(20)),
            (false, true) => self.top,
            (false, false) => 0,
        };
        // Without flows, a change of order does not need a new request.
        if top == 0 {
            return Want::default();
        }
        Want { top, by: self.sort.by(), filter: self.filter.clone() }
    }

    /// Takes in the news of a watcher. While paused, the display does not change.
    pub fn update(&mut self, logger: usize, news: News) {
        if self.paused {
            return;
        }
        let Some(logger) = self.loggers.get_mut(logger) else { return };
        match news {
            News::Look(mut look) => {
                // Flows in another order can be sorted. Flows of another filter are not the requested ones.
                if look.want.filter != self.filter {
                    look.page = None;
                }
                logger.state = State::Connected;
                logger.look = Some(*look);
            }
            News::Early(mut look) => {
                // Keeps the flows of the last poll until the new flows arrive.
                let before = logger.look.take().filter(|b| b.want.filter == look.want.filter);
                look.page = before.and_then(|before| before.page);
                logger.state = State::Connected;
                logger.look = Some(*look);
            }
            News::Down(why, next) => logger.state = State::Down(why, next),
        }
    }

    /// Flows shown, largest first.
    pub fn flows<'a>(&'a self) -> Vec<Flow<'a>> {
        let shown = |(n, _): &(usize, &Logger)| self.all || *n == self.selected;
        let mut flows = Vec::new();
        for (logger, l) in self.loggers.iter().enumerate().filter(shown) {
            // The state of a lost logger is unknown.
            let (State::Connected, Some(look)) = (&l.state, &l.look) else { continue };
            let Some(Ok(page)) = &look.page else { continue };
            let flow = |row: &'a Row| Flow { logger, row, age: look.totals.at.saturating_sub(row.record.first) };
            flows.extend(page.flows.iter().map(flow));
        }
        flows.sort_by_key(|f| Reverse(f.rank(self.sort)));
        flows
    }

    /// Flows that match in all; `None` when a logger shown does not report it.
    pub fn matching(&self) -> Option<u64> {
        let shown = |(n, _): &(usize, &Logger)| self.all || *n == self.selected;
        let matching = |(_, l): (usize, &Logger)| match (&l.state, &l.look.as_ref()?.page) {
            (State::Connected, Some(Ok(page))) => page.matching,
            _ => None,
        };
        let all: Option<Vec<u64>> = self.loggers.iter().enumerate().filter(shown).map(matching).collect();
        all.map(|all| all.into_iter().fold(0, u64::saturating_add))
    }

    /// Runs the action of a key.
    pub fn act(&mut self, act: Act) {
        let last = self.flows().len().saturating_sub(self.page);
        let page = self.page.saturating_sub(1).max(1) as isize;
        match act {
            Act::Lines(n) => self.offset = self.offset.saturating_add_signed(n).min(last),
            Act::Pages(n) => self.offset = self.offset.saturating_add_signed(n * page).min(last),
            Act::Home => self.offset = 0,
            Act::End => self.offset = last,
            Act::NextSort => self.order(self.sort.step(1)),
            Act::PreviousSort => self.order(self.sort.step(Sort::ALL.len() - 1)),
            Act::NextLogger => self.select(1),
            Act::PreviousLogger => self.select(self.loggers.len().saturating_sub(1)),
            Act::AllOrOne => {
                self.all = !self.all;
                (self.offset, self.paused) = (0, false);
            }
            Act::Pause => self.paused = !self.paused,
            Act::EnterFilter => self.entry = Some((filter::show(&self.filter), String::new())),
            Act::Type(c) => {
                if let Some((text, wrong)) = self.entry.as_mut().filter(|(text, _)| text.len() < MAX_ENTRY) {
                    text.extend((c.is_ascii_graphic() || c == ' ').then_some(c));
                    wrong.clear();
                }
            }
            Act::Erase => {
                if let Some((text, wrong)) = &mut self.entry {
                    text.pop();
                    wrong.clear();
                }
            }
            Act::Cancel => self.entry = None,
            Act::Apply => match self.entry.take().map(|(text, _)| (filter::parse(&text), text)) {
                Some((Ok(filter), _)) => {
                    self.filter = filter;
                    (self.offset, self.paused) = (0, false);
                    self.forget_flows();
                }
                Some((Err(wrong), text)) => self.entry = Some((text, wrong)),
                None => {}
            },
        }
    }

    /// Another order needs other flows, but the present flows are sorted at once, also while paused.
    fn order(&mut self, sort: Sort) {
        self.sort = sort;
        self.offset = 0;
    }

    fn select(&mut self, by: usize) {
        self.selected = (self.selected + by) % self.loggers.len().max(1);
        if !self.all {
            (self.offset, self.paused) = (0, false);
        }
    }

    /// Clears the flows, because they belong to another filter.
    fn forget_flows(&mut self) {
        for look in self.loggers.iter_mut().filter_map(|l| l.look.as_mut()) {
            look.page = None;
        }
    }
}

/// Whole seconds until then, rounded up.
pub fn seconds_until(then: Instant, now: Instant) -> u64 {
    (then.saturating_duration_since(now) + Duration::from_millis(999)).as_secs()
}
