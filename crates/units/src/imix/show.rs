//! How a mix shows: as RFC 6985 writes it, and in short.

use std::fmt;

use super::{
    order::Range,
    sequence::{Imix, Sequence, Way},
    text::{cut, BRIEF_CHARS},
};
use crate::FrameSize;

impl fmt::Display for Imix {
    /// As RFC 6985 §4 and §5 write it: `IMIX - aaafg`, `CUSTOM IMIX - AAB (A=78, B=1400)`. A mix given by counts is a custom
    /// one. What is not written out is told as §6 asks: how it was made, and of what.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (frames, Sequence { way, seed, times, .. }) = (self.sizes().len(), self.0);
        let told = self.name().split(":seed=").next().unwrap_or_default();
        match (way, seed) {
            (Way::Range(Range { low, high, step }), None) => {
                write!(f, "{low} to {high} bytes, rising by {step} ({frames} frames)")
            }
            (Way::Range(Range { low, high, step }), Some(seed)) => {
                write!(f, "{frames} sizes drawn by SplitMix64, seed {seed}, from {low} to {high} bytes by {step}")
            }
            (_, Some(seed)) => write!(f, "{frames} frames shuffled by SplitMix64, seed {seed}: {times} times {told}"),
            (Way::Spread, None) => write!(f, "{frames} frames evenly spread: {told}"),
            (Way::Written, None) => self.fmt_genome(f),
        }
    }
}

impl Imix {
    /// For a document that people read: as it displays, but cut short when it is long.
    pub fn brief(&self) -> String {
        let (whole, frames) = (self.to_string(), self.sizes().len());
        match whole.chars().count() > BRIEF_CHARS {
            true => format!("{} ({frames} frames)", cut(&whole, BRIEF_CHARS)),
            false => whole,
        }
    }

    fn fmt_genome(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (letters, table) = self.name().split_once(':').unwrap_or((self.name(), ""));
        if letters == "IMIX_v4" || letters.starts_with(|c: char| c.is_ascii_digit()) {
            return self.fmt_custom(f);
        }
        let custom = if letters.contains(|c: char| c.is_ascii_uppercase()) { "CUSTOM " } else { "" };
        write!(f, "{custom}IMIX - {letters}")?;
        if !table.is_empty() {
            write!(f, " ({})", table.replace(':', ", "))?;
        }
        Ok(())
    }

    /// With the letters A to Z for its sizes as they come. A mix of more sizes than letters is left as it was given.
    fn fmt_custom(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut table: Vec<(FrameSize, char)> = Vec::new();
        for &size in self.sizes() {
            if table.iter().all(|(known, _)| *known != size) {
                let Some(letter) = ('A'..='Z').nth(table.len()) else { return f.write_str(self.name()) };
                table.push((size, letter));
            }
        }
        let letter = |size: &FrameSize| table.iter().find(|(known, _)| known == size).map(|(_, letter)| *letter);
        let letters: String = self.sizes().iter().filter_map(letter).collect();
        let sizes: Vec<String> = table.iter().map(|(size, letter)| format!("{letter}={size}")).collect();
        write!(f, "CUSTOM IMIX - {letters} ({})", sizes.join(", "))
    }
}
