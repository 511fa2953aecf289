//! How long a mix and its text may be.

use crate::UnitError;

/// Frames of a sequence at most: 256 of each of the letters is beyond every published mix.
pub(super) const MAX_FRAMES: usize = 4096;

/// Characters of a mix that an error repeats.
pub(super) const ERROR_CHARS: usize = 40;

/// Characters of a mix that a document for people shows.
pub(crate) const BRIEF_CHARS: usize = 96;

/// So many characters, and dots when there are more.
pub(crate) fn cut(text: &str, chars: usize) -> String {
    match text.char_indices().nth(chars) {
        Some((end, _)) => format!("{}...", text.get(..end).unwrap_or_default()),
        None => text.to_owned(),
    }
}

/// An error that names a mix, cut short when it is long.
pub(super) fn wrong(text: &str, legal: impl Into<String>) -> UnitError {
    UnitError::new("IMIX", cut(text, ERROR_CHARS), legal)
}
