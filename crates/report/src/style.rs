//! How text is drawn: colours, characters, width.

/// How text is drawn on a terminal or in a pipe.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Style {
    /// ANSI colours; the words are the same without them.
    pub colour: bool,
    /// Block characters, `≥` and `→`; otherwise ASCII alone.
    pub unicode: bool,
    /// Columns to use.
    pub width: usize,
}

/// What a piece of text means, which a colour may underline.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Paint {
    /// Nothing to add.
    #[default]
    Plain,
    /// The answer of a row, or a heading.
    Bold,
    /// Less important than what stands beside it.
    Dim,
    /// A bar of a picture.
    Bar,
    /// As it should be.
    Good,
    /// To be looked at.
    Warn,
    /// Wrong.
    Bad,
}

impl Style {
    /// What a pipe or a file gets: no colours, 100 columns.
    pub const PIPE: Self = Self { colour: false, unicode: true, width: 100 };

    /// A terminal of so many columns: uses 40 to 120 of them, 80 when the number is not known.
    pub fn terminal(columns: Option<usize>, colour: bool, unicode: bool) -> Self {
        Self { colour, unicode, width: columns.unwrap_or(80).clamp(40, 120) }
    }

    pub(crate) fn paint(&self, paint: Paint, text: &str) -> String {
        let code = match paint {
            Paint::Plain => return text.to_owned(),
            Paint::Bold => "1",
            Paint::Dim => "2",
            Paint::Bar => "34",
            Paint::Good => "32",
            Paint::Warn => "33",
            Paint::Bad => "31",
        };
        if self.colour && !text.is_empty() {
            format!("\u{1b}[{code}m{text}\u{1b}[0m")
        } else {
            text.to_owned()
        }
    }
}
