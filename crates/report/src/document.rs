//! What every document of a result is made from: sections in one order, built once. A renderer says how a block looks, and
//! which blocks it shows; none decides on an order.

use std::borrow::Cow;

use measure::plan::Test;

use crate::{bars::Bars, standing::Standing, style::Paint, table::Table};

/// How much of a run a terminal shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Detail {
    /// Tables, picture, trust in three lines and the standing.
    #[default]
    Short,
    /// Everything but the list of trials.
    Verbose,
}

/// Which renderers show a block: any number of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Audience(u8);

impl Audience {
    /// Nobody.
    pub const NOBODY: Self = Self(0);
    /// A terminal with [`Detail::Short`].
    pub const SHORT: Self = Self(1);
    /// A terminal with [`Detail::Verbose`].
    pub const VERBOSE: Self = Self(2);
    /// A document in a file.
    pub const FILE: Self = Self(4);
    /// CSV of the figures.
    pub const CSV: Self = Self(8);
    /// CSV of the tests beside the throughput.
    pub const CSV_TESTS: Self = Self(16);
    /// Any terminal.
    pub const TERMINAL: Self = Self(Self::SHORT.0 | Self::VERBOSE.0);
    /// What [`Detail::Short`] leaves out.
    pub const DETAILS: Self = Self(Self::VERBOSE.0 | Self::FILE.0);
    /// Everybody who reads text.
    pub const READERS: Self = Self(Self::TERMINAL.0 | Self::FILE.0);

    /// Whether both have a renderer in common.
    pub fn shares(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    /// These without the others.
    fn minus(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }
}

/// What a section is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Topic {
    /// Program, plan, device, machine.
    Setting,
    /// The table of throughputs.
    Throughput,
    /// Search goals of MLRsearch.
    Goals,
    /// Delay at the throughput.
    Delay,
    /// Bars of the throughput.
    Picture,
    /// Where the cycles of the built-in data plane went.
    DataPlane,
    /// The same by load.
    DataPlaneByLoad,
    /// Frames at each hop of a lab.
    Hops,
    /// What the polling threads of a lab's switch did.
    SwitchThreads,
    /// Power and temperature of the machine.
    Power,
    /// What a lab was made of.
    Lab,
    /// A single trial.
    Trial,
    /// The windows of a single trial.
    Windows,
    /// What disturbed a single trial.
    Interference,
    /// The main figures of all tests beside the throughput.
    Tests,
    /// A test beside the throughput.
    Test(Test),
    /// A table in another layout, a comparison or a sweep.
    Sheet,
    /// What the reader needs to judge the figures by.
    Trust,
    /// How the result stands.
    Standing,
    /// Facts of the machine.
    Host,
    /// The effective plan.
    Plan,
    /// All trials.
    Trials,
    /// Exact figures for scripts.
    Data,
    /// Files written.
    Written,
}

/// A labelled statement.
#[derive(Debug, Clone)]
pub(crate) struct Fact {
    pub(crate) label: Cow<'static, str>,
    pub(crate) text: String,
    pub(crate) paint: Paint,
    /// On a terminal the statement takes one line: its text is cut so that these words have room behind it.
    pub(crate) ending: Option<String>,
}

impl Fact {
    pub(crate) fn new(label: impl Into<Cow<'static, str>>, text: impl Into<String>, paint: Paint) -> Self {
        Self { label: label.into(), text: text.into(), paint, ending: None }
    }

    /// In one line on a terminal, with these words whole at its end.
    pub(crate) fn in_one_line(self, ending: impl Into<String>) -> Self {
        Self { ending: Some(ending.into()), ..self }
    }
}

/// A paragraph without a label.
#[derive(Debug, Clone)]
pub(crate) struct Note {
    pub(crate) text: String,
    pub(crate) paint: Paint,
    /// Lines that it may take on a terminal; what is cut is marked.
    pub(crate) lines: Option<usize>,
}

impl Note {
    pub(crate) fn new(text: impl Into<String>, paint: Paint) -> Self {
        Self { text: text.into(), paint, lines: None }
    }

    pub(crate) fn plain(text: impl Into<String>) -> Self {
        Self::new(text, Paint::Plain)
    }
}

/// A part of a section. Text in it is as it came: each renderer makes it harmless.
#[derive(Debug, Clone)]
pub(crate) enum Block {
    /// The title of the whole document.
    Title(String),
    /// Labelled statements whose values are names and numbers.
    Facts(Vec<Fact>),
    /// Labelled statements in words.
    Statements(Vec<Fact>),
    Notes(Vec<Note>),
    Table(Table),
    /// Exact figures: shown even where there are none, since their names are a header.
    Data(Table),
    Bars(Bars),
    Standing(Standing),
    /// A picture of text, shown as it is.
    Picture(String),
    /// The source of something in JSON.
    Json(String),
}

impl Block {
    fn is_empty(&self) -> bool {
        match self {
            Self::Facts(facts) | Self::Statements(facts) => facts.is_empty(),
            Self::Notes(notes) => notes.is_empty(),
            Self::Table(table) => table.is_empty(),
            Self::Bars(bars) => bars.is_empty(),
            Self::Title(text) | Self::Json(text) | Self::Picture(text) => text.is_empty(),
            Self::Standing(_) | Self::Data(_) => false,
        }
    }
}

/// Blocks under a heading.
#[derive(Debug, Clone)]
pub struct Section {
    topic: Topic,
    title: String,
    short_title: Option<String>,
    folded: bool,
    blocks: Vec<(Audience, Block)>,
}

impl Section {
    /// A section; without a title it has no heading.
    pub(crate) fn new(topic: Topic, title: impl Into<String>) -> Self {
        Self { topic, title: title.into(), short_title: None, folded: false, blocks: Vec::new() }
    }

    /// Another heading for [`Detail::Short`]; an empty one is none.
    pub(crate) fn short_title(mut self, title: impl Into<String>) -> Self {
        self.short_title = Some(title.into());
        self
    }

    /// Folded away where a document can.
    pub(crate) fn folded(mut self) -> Self {
        self.folded = true;
        self
    }

    /// Adds a block. An empty one is never shown.
    pub(crate) fn with(mut self, audience: Audience, block: Block) -> Self {
        self.blocks.push((audience, block));
        self
    }

    /// The same for everybody but this audience.
    pub(crate) fn without(mut self, audience: Audience) -> Self {
        self.blocks.iter_mut().for_each(|(shown_to, _)| *shown_to = shown_to.minus(audience));
        self
    }

    /// Rows of its tables.
    pub(crate) fn rows(&self) -> usize {
        let of = |(_, block): &(Audience, Block)| if let Block::Table(t) = block { t.rows() } else { 0 };
        self.blocks.iter().map(of).sum()
    }

    /// What it is about.
    pub fn topic(&self) -> Topic {
        self.topic
    }

    /// What stands over it.
    pub fn title(&self) -> &str {
        &self.title
    }

    pub(crate) fn heading(&self, audience: Audience) -> &str {
        let short = self.short_title.as_deref().filter(|_| audience == Audience::SHORT);
        short.unwrap_or(&self.title)
    }

    pub(crate) fn is_folded(&self) -> bool {
        self.folded
    }

    fn shown(&self, audience: Audience) -> impl Iterator<Item = &Block> {
        self.blocks.iter().filter(move |(a, block)| a.shares(audience) && !block.is_empty()).map(|(_, block)| block)
    }

    /// Whether a renderer for this audience shows anything of it.
    pub fn is_for(&self, audience: Audience) -> bool {
        self.shown(audience).next().is_some()
    }
}

/// Sections in the order in which every renderer shows them.
#[derive(Debug, Clone, Default)]
pub struct Document {
    sections: Vec<Section>,
}

impl Document {
    /// A document of these sections.
    pub fn of(sections: Vec<Section>) -> Self {
        Self { sections }
    }

    /// Adds sections at the end.
    #[must_use]
    pub fn with(mut self, sections: impl IntoIterator<Item = Section>) -> Self {
        self.sections.extend(sections);
        self
    }

    /// The sections in order.
    pub fn sections(&self) -> &[Section] {
        &self.sections
    }

    /// Walks through the sections.
    pub(crate) fn render(&self, renderer: &mut dyn Render) {
        let audience = renderer.audience();
        for section in self.sections.iter().filter(|s| s.is_for(audience)) {
            renderer.open(section);
            section.shown(audience).for_each(|block| renderer.block(block));
            renderer.close(section);
        }
    }
}

/// Shows a document. [`Document::render`] calls it in the order of the sections, with what its audience is shown.
pub(crate) trait Render {
    /// Whose blocks are wanted.
    fn audience(&self) -> Audience;
    /// The heading of a section.
    fn open(&mut self, section: &Section);
    /// One block of it.
    fn block(&mut self, block: &Block);
    /// Its end.
    fn close(&mut self, section: &Section);
}
